"""Keys of a record: terms of the index that stand for a value as a whole.

Words find what is about something; keys find the very thing: a record by any of its identifiers, the records
of a person, the record of a title that was pasted whole. They are made of the metadata, wherever an index is
made, and have marks of their own (`model.KEY_MARKS`); they count for no length and no norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple

from indlet.formats import identifiers, people
from indlet.formats.file_formats import file_format
from indlet.memo import remembered
from indlet.model import KEY_MARKS, Metadata
from indlet.service.index.values import APART, author_term, filed_words, labelled, title_order, title_term
from indlet.text.tokens import split, words

# What an index says of the keys in it: one without, or with others, is made anew.
VERSION: Final = 3
_NAMES: Final = 200  # in a value
_WORDS: Final = 60  # of a title
_USUAL: Final = 1000  # characters of a title that is looked at as a whole


class ElementKeys(NamedTuple):
    """What becomes of the values of an element: how many are looked at, the keys of the first and of another.

    A function takes a value and the language that the record states; it gives terms, each with a space after
    it. Of `recurring` values, which other records have too, the language makes no difference.
    """

    most: int
    first: Callable[[str, str], str]
    another: Callable[[str, str], str]
    recurring: bool = True


def keys(identifier: str, metadata: Metadata) -> bytes:
    """The terms of all keys of a record, separated by spaces."""
    language = next(iter(metadata.get("language", ())), "en")
    made = [identifier_keys(identifier)]
    for element, by in ELEMENTS.items():
        for place, value in enumerate(metadata.get(element, ())[: by.most]):
            made.append((by.another if place else by.first)(value, language))
    return " ".join(dict.fromkeys("".join(made).split(" ")[:-1])).encode("utf-8", "replace")


def identifier_keys(value: str, _: str = "") -> str:
    mark = KEY_MARKS["identifier"]
    return "".join([f"{mark}{key} " for key in identifiers.keys_of(value)])


def _creator(value: str, _: str) -> str:
    """The terms of a creator: of the person, and of the value that facets show."""
    terms = [term for name in people.names(value)[:_NAMES] for term in labelled("creator", name)]
    return _person("creator", value, _) + _spaced(terms)


def _first_creator(value: str, _: str) -> str:
    filed = next(filter(None, map(author_term, people.names(value))), "")
    return _creator(value, _) + _spaced([filed] if filed else [])


def _person(field: str, value: str, _: str) -> str:
    names, mark = people.names(value)[:_NAMES], KEY_MARKS[field]
    return "".join([f"{mark}{key} " for name in names for key in people.record_keys(name)])


def _title(title: str, _: str) -> str:
    """The key of a title, and of what stands before a colon in it."""
    whole, colon, _ = title.partition(":")
    before = title_keys(whole) if colon and len(whole.split()) > 2 else []
    return _spaced(title_keys(title) + before)


def _first_title(title: str, language: str) -> str:
    """The same, and what the record is sorted by."""
    if len(title) > _USUAL or APART.search(title):
        order = title_order({"title": [title], "language": [language]})
        return _title(title, language) + _spaced(title_term([order], "") if order else [])
    # What is made of it elsewhere, of pieces that are cut but once.
    pieces = split(title)
    whole, colon, _ = title.partition(":")
    found = _digest(_unaccented(pieces))
    if colon and len(whole.split()) > 2:
        found += _digest(_unaccented(split(whole)))
    return _spaced([*found, *title_term(filed_words(pieces), language)])


def _value(facet: str, value: str, _: str) -> str:
    return _spaced(labelled(facet, value))


def _format(value: str, _: str) -> str:
    return _spaced(labelled("format", name)) if (name := file_format(value)) else ""


def _spaced(terms: Iterable[str]) -> str:
    return "".join([f"{term} " for term in terms])


def title_keys(title: str) -> list[str]:
    """The key of a title: a digest of its words without case and accents; none if it has no word."""
    return _digest(_unaccented(split(title[:2000])))


def _digest(told: list[str]) -> list[str]:
    if not told:
        return []
    return [KEY_MARKS["title"] + blake2b(" ".join(told[:_WORDS]).encode(), digest_size=6).hexdigest()]


def _unaccented(pieces: list[str]) -> list[str]:
    """The words of the pieces of a text, without accents; of ASCII, pieces are words."""
    if all(map(str.isascii, pieces)):
        return pieces
    return list(chain.from_iterable(map(unaccented_words, pieces)))


@remembered(1 << 15)
def unaccented_words(piece: str) -> list[str]:
    """The words of a piece of a text, without accents."""
    return [piece] if piece.isascii() else [people.folded(word) for word in words(piece)]


def _same(most: int, by: Callable[[str, str], str], recurring: bool = True) -> ElementKeys:
    return ElementKeys(most, by, by, recurring)


# The elements of which keys are made.
ELEMENTS: Final = {
    "identifier": _same(50, identifier_keys, recurring=False),
    "creator": ElementKeys(200, _first_creator, _creator),
    "contributor": _same(200, partial(_person, "contributor")),
    "title": ElementKeys(2, _first_title, _title, recurring=False),
    "format": ElementKeys(200, _format, _format),
    **{
        facet: _same(200, partial(_value, facet))
        for facet in ("subject", "inferred_subject", "inferred_type")
    },
}


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
