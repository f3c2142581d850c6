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
from indlet.memo import remembered
from indlet.model import KEY_MARKS, Metadata
from indlet.service.index.values import labelled, value_terms
from indlet.text.tokens import split, words

# What an index says of the keys in it: one without, or with others, is made anew.
VERSION: Final = 3
_TITLES: Final = 2
_NAMES: Final = 200  # of a record
_WORDS: Final = 60  # of a title


def keys(identifier: str, metadata: Metadata) -> bytes:
    """The terms of all keys of a record, separated by spaces."""
    get, named = metadata.get, KEY_MARKS["identifier"]
    found = [named + key for key in identifiers.of_record(identifier, metadata)]
    for value in get("creator", ())[:_NAMES]:
        for name in people.names(value)[:_NAMES]:
            found += _creator(name)
    for value in get("contributor", ())[:_NAMES]:
        for name in people.names(value)[:_NAMES]:
            found += _contributor(name)
    for title in get("title", ())[:_TITLES]:
        found += title_keys(title)
        whole, colon, _ = title.partition(":")
        if colon and len(whole.split()) > 2:
            found += title_keys(whole)
    found += value_terms(metadata)
    return " ".join(dict.fromkeys(found)).encode("utf-8", "replace")


@remembered(1 << 15)
def _creator(name: str) -> tuple[str, ...]:
    """The terms of a creator: of the person, and of the value that facets show."""
    return (*[KEY_MARKS["creator"] + key for key in people.record_keys(name)], *labelled("creator", name))


@remembered(1 << 15)
def _contributor(name: str) -> tuple[str, ...]:
    return tuple([KEY_MARKS["contributor"] + key for key in people.record_keys(name)])


def title_keys(title: str) -> list[str]:
    """The key of a title: a digest of its words without case and accents; none if it has no word."""
    title = title[:2000]
    told = split(title)  # of ASCII, pieces are words
    if not title.isascii():
        told = [word for piece in told for word in _folded(piece)]
    if not told:
        return []
    return [KEY_MARKS["title"] + blake2b(" ".join(told[:_WORDS]).encode(), digest_size=6).hexdigest()]


@remembered(1 << 15)
def _folded(piece: str) -> list[str]:
    """The words of a piece of a text, without accents."""
    return [piece] if piece.isascii() else [people.folded(word) for word in words(piece)]


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
