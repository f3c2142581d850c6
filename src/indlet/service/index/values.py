"""Values of metadata as facets, lists and orders know them: terms of the index that people never type.

A value becomes a term of its field's mark, its key and its spelling: `␟Cwang, wei␁Wang, Wei`. Spellings that
differ by case, accents, or the order of a name have one key and count as one value; it is shown in the
spelling that most records have. The dictionary keeps terms in order, so it is also the list from A to Z, and
the records' order by title or author. Spaces are U+0002 here, for they separate terms.
"""

from __future__ import annotations

import re
from typing import Final

from indlet.formats import people
from indlet.formats.file_formats import file_format
from indlet.memo import remembered
from indlet.model import SORT_MARKS, VALUE_MARKS, Metadata
from indlet.text.tokens import split

VALUE_FACETS: Final = tuple(VALUE_MARKS)
_INFERRED: Final = ("inferred_subject", "inferred_type")
SEPARATOR: Final = "\x01"
SPACE: Final = "\x02"
LONGEST: Final = 200  # characters of a value; longer ones are cut
_KEY: Final = 120  # of a key
_MOST: Final = 200  # values of a record
# White space after which a mark is no accent.
_APART: Final = re.compile("[\u1680\u2028\u2029]")
# Words that do not count where a title begins with them, by language.
_ARTICLES: Final = {
    "en": frozenset(("a", "an", "the")),
    "de": frozenset(("der", "die", "das", "ein", "eine")),
    "fr": frozenset(("le", "la", "les", "un", "une", "l")),
    "es": frozenset(("el", "la", "los", "las", "un", "una")),
    "it": frozenset(("il", "lo", "la", "i", "gli", "le", "un", "una")),
    "nl": frozenset(("de", "het", "een")),
    "pt": frozenset(("o", "a", "os", "as", "um", "uma")),
}

_EVERY_ARTICLE: Final = frozenset().union(*_ARTICLES.values())


def value_terms(metadata: Metadata) -> list[str]:
    """The terms of a record's formats, subjects and what is inferred, and those that it is sorted by."""
    found: list[str] = []
    for value in metadata.get("format", ())[:_MOST]:
        found += _format(value)
    for value in metadata.get("subject", ())[:_MOST]:
        found += _subject(value)
    for facet in _INFERRED:
        for value in metadata.get(facet, ()):
            found += labelled(facet, value)
    if title := title_order(metadata):
        found.append(SORT_MARKS["title"] + _packed(title))
    for value in metadata.get("creator", ())[:1]:
        if filed := next(filter(None, map(_author, people.names(value))), ""):
            found.append(filed)
    return found


def labelled(facet: str, value: str) -> tuple[str, ...]:
    """The term of a value of a facet (of creators: of one name); none if it has no letter."""
    key = value_key(facet, value)
    if not key:
        return ()
    return (VALUE_MARKS[facet] + _packed(key) + SEPARATOR + _packed(" ".join(value[:LONGEST].split())),)


@remembered(1 << 12)
def _format(value: str) -> tuple[str, ...]:
    return labelled("format", name) if (name := file_format(value)) else ()


@remembered(1 << 15)
def _subject(value: str) -> tuple[str, ...]:
    return labelled("subject", value)


@remembered(1 << 15)
def _author(name: str) -> str:
    filed = people.filing_name(name)
    return SORT_MARKS["author"] + _packed(filed[:_KEY]) if filed else ""


def value_key(facet: str, value: str) -> str:
    """By what a value is told from others of its facet; empty for none."""
    if facet == "creator":
        return people.filing_name(value)[:_KEY]
    return people.folded(" ".join(value[:LONGEST].split()))[:_KEY].strip()


def beginning(facet: str, key: str) -> str:
    """What the terms of a key, or of keys that begin so, begin with."""
    return VALUE_MARKS[facet] + _packed(key)


def term_beginning(facet: str, value: str) -> str:
    """What all terms of a value begin with, and no others."""
    return beginning(facet, value_key(facet, value)) + SEPARATOR


def title_beginning(title: str) -> str:
    """What the order of titles that begin so begins with."""
    return SORT_MARKS["title"] + _packed(" ".join(_words(title))[:_KEY])


def title_orders(title: str) -> list[str]:
    """The terms that records of this title may be sorted by, whatever language they are in."""
    words = _words(title)
    forms = [words, words[1:]] if len(words) > 1 and words[0] in _EVERY_ARTICLE else [words]
    return [SORT_MARKS["title"] + _packed(" ".join(form)[:_KEY].strip()) for form in forms]


def plain(packed: str) -> str:
    """A part of a term as people write it."""
    return packed.replace(SPACE, " ")


def title_order(metadata: Metadata) -> str:
    """By what a record stands among titles: the words of its first one, without an article before them."""
    words = _words(next(iter(metadata.get("title", ())), ""))
    language = next(iter(metadata.get("language", ())), "en")[:2].lower()
    if len(words) > 1 and words[0] in _ARTICLES.get(language, _ARTICLES["en"]):
        words = words[1:]
    return " ".join(words)[:_KEY].strip()


def _words(title: str) -> list[str]:
    """The words of a title without case and accents. Its pieces are folded one by one, for they come back."""
    title = title[:1000]
    if _APART.search(title):
        return split(people.folded(title))
    pieces = split(title)
    return pieces if title.isascii() else [word for piece in pieces for word in _folded(piece)]


@remembered(1 << 15)
def _folded(piece: str) -> list[str]:
    # After a space, as it stands in the title: a mark that begins it is an accent.
    return [piece] if piece.isascii() else split(people.folded(f" {piece}"))


def _packed(text: str) -> str:
    text = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return text.replace(" ", SPACE)
