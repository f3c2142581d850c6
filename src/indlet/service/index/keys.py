"""Keys of a record: terms of the index that stand for a value as a whole.

Words find what is about something; keys find the very thing: a record by any of its identifiers, the records
of a person, the record of a title that was pasted whole. They are made of the metadata, wherever an index is
made, and have marks of their own (`model.KEY_MARKS`); they count for no length and no norm.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from indlet.formats import identifiers, people
from indlet.model import KEY_MARKS, Metadata
from indlet.text.tokens import split, words

# What an index says of the keys in it: one without, or with others, is made anew.
VERSION: Final = 1
_TITLES: Final = 2
_NAMES: Final = 200  # of a record
_WORDS: Final = 60  # of a title


def keys(identifier: str, metadata: Metadata) -> bytes:
    """The terms of all keys of a record, separated by spaces."""
    named = KEY_MARKS["identifier"]
    found = [named + key for key in identifiers.of_record(identifier, metadata)]
    for element in ("creator", "contributor"):
        mark = KEY_MARKS[element]
        found += [
            mark + key
            for value in metadata.get(element, ())[:_NAMES]
            for name in people.names(value)[:_NAMES]
            for key in people.record_keys(name)
        ]
    for title in metadata.get("title", ())[:_TITLES]:
        found += title_keys(title)
        whole, colon, _ = title.partition(":")
        if colon and len(whole.split()) > 2:
            found += title_keys(whole)
    return " ".join(dict.fromkeys(found)).encode("utf-8", "replace")


def title_keys(title: str) -> list[str]:
    """The key of a title: a digest of its words without case and accents; none if it has no word."""
    title = title[:2000]
    told = split(title)[:_WORDS]  # of ASCII, pieces are words
    if not title.isascii():
        told = [people.folded(word) for piece in split(title) for word in words(piece)][:_WORDS]
    if not told:
        return []
    return [KEY_MARKS["title"] + blake2b(" ".join(told).encode(), digest_size=6).hexdigest()]


def identifier_terms(keys: Iterable[str]) -> list[str]:
    return [KEY_MARKS["identifier"] + key for key in keys]


def person_terms(field: str, name: str) -> list[str]:
    """The terms of which a record of the person has one."""
    return [KEY_MARKS[field] + key for key in people.query_keys(name)]


def with_keys(fields: bytes, made: bytes) -> bytes:
    """A packed vector of field terms with keys among the terms that occur once."""
    if not made:
        return fields
    if fields.startswith(b"1 "):
        return b"1 " + made + fields[1:]
    return b"1 " + made + (b"\n" + fields if fields else b"")
