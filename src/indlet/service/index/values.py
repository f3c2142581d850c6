"""Values of metadata as facets, lists and orders know them: terms of the index that people never type.

A value becomes a term of its field's mark, its key and its spelling: `␟Cwang, wei␁Wang, Wei`. Spellings that
differ by case, accents, or the order of a name have one key and count as one value; it is shown in the
spelling that most records have. The dictionary keeps terms in order, so it is also the list from A to Z, and
the records' order by title or author. Spaces are U+0002 here, for they separate terms.
"""

from __future__ import annotations

from typing import Final

from indlet.formats import people
from indlet.formats.file_formats import file_format
from indlet.memo import remembered
from indlet.model import SORT_MARKS, VALUE_MARKS, Metadata
from indlet.text.tokens import split

VALUE_FACETS: Final = tuple(VALUE_MARKS)
SEPARATOR: Final = "\x01"
SPACE: Final = "\x02"
LONGEST: Final = 200  # characters of a value; longer ones are cut
_KEY: Final = 120  # of a key
_MOST: Final = 200  # values of a record
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


def value_terms(metadata: Metadata) -> list[str]:
    """The terms of a record's values, and those that it is sorted by."""
    found: list[str] = []
    for facet in VALUE_FACETS:
        for value in metadata.get(facet, ())[:_MOST]:
            found += _of_value(facet, value)
    if title := title_order(metadata):
        found.append(SORT_MARKS["title"] + _packed(title))
    for value in metadata.get("creator", ())[:1]:
        found += _first_author(value)
    return found


@remembered(1 << 15)
def _of_value(facet: str, value: str) -> tuple[str, ...]:
    """The terms of what one element says: several names may stand in it."""
    labels = [value]
    if facet == "creator":
        labels = people.names(value)[:_MOST]
    elif facet == "format":
        labels = [name] if (name := file_format(value)) else []
    keyed = ((value_key(facet, text), " ".join(text[:LONGEST].split())) for text in labels)
    mark = VALUE_MARKS[facet]
    return tuple([mark + _packed(key) + SEPARATOR + _packed(text) for key, text in keyed if key])


@remembered(1 << 15)
def _first_author(value: str) -> tuple[str, ...]:
    filed = next(filter(None, map(people.filing_name, people.names(value))), "")
    return (SORT_MARKS["author"] + _packed(filed[:_KEY]),) if filed else ()


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
    return split(people.folded(title[:1000]))


def _packed(text: str) -> str:
    text = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return text.replace(" ", SPACE)
