"""Values of metadata as facets, lists and orders know them: terms of the index that people never type.

A value becomes a term of its field's mark, its key and its spelling: `␟Cwang, wei␁Wang, Wei`. Spellings that
differ by case, accents, or the order of a name have one key and count as one value; it is shown in the
spelling that most records have. The dictionary keeps terms in order, so it is also the list from A to Z, and
the records' order by title or author. Spaces are U+0002 here, for they separate terms.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

from indlet.formats import people
from indlet.memo import remembered
from indlet.model import SORT_MARKS, VALUE_MARKS, Metadata
from indlet.text.tokens import split

VALUE_FACETS: Final = tuple(VALUE_MARKS)
SEPARATOR: Final = "\x01"
SPACE: Final = "\x02"
LONGEST: Final = 200  # characters of a value; longer ones are cut
_KEY: Final = 120  # of a key
# White space after which a mark is no accent.
APART: Final = re.compile("[\u1680\u2028\u2029]")
# Words that do not count where a title begins with them, by language.
ARTICLES: Final = {
    "en": frozenset(("a", "an", "the")),
    "de": frozenset(("der", "die", "das", "ein", "eine")),
    "fr": frozenset(("le", "la", "les", "un", "une", "l")),
    "es": frozenset(("el", "la", "los", "las", "un", "una")),
    "it": frozenset(("il", "lo", "la", "i", "gli", "le", "un", "una")),
    "nl": frozenset(("de", "het", "een")),
    "pt": frozenset(("o", "a", "os", "as", "um", "uma")),
}

_EVERY_ARTICLE: Final = frozenset().union(*ARTICLES.values())


def labelled(facet: str, value: str) -> tuple[str, ...]:
    """The term of a value of a facet (of creators: of one name); none if it has no letter."""
    key = value_key(facet, value)
    if not key:
        return ()
    return (VALUE_MARKS[facet] + _packed(key) + SEPARATOR + _packed(" ".join(value[:LONGEST].split())),)


def author_term(name: str) -> str:
    """What a record is sorted by whose first author has this name; empty for none."""
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
    return _filed(words, next(iter(metadata.get("language", ())), "en"))


def title_term(words: list[str], language: str) -> list[str]:
    """The term of that; none if it has no word."""
    filed = _filed(words, language)
    return [SORT_MARKS["title"] + _packed(filed)] if filed else []


def _filed(words: list[str], language: str) -> str:
    if len(words) > 1 and words[0] in ARTICLES.get(language[:2].lower(), ARTICLES["en"]):
        words = words[1:]
    return " ".join(words)[:_KEY].strip()


def _words(title: str) -> list[str]:
    """The words of a title without case and accents. Its pieces are folded one by one, for they come back."""
    title = title[:1000]
    if APART.search(title):
        return split(people.folded(title))
    return filed_words(split(title))


def filed_words(pieces: list[str]) -> list[str]:
    """The same for the pieces of a title without the white space of `APART`."""
    if all(map(str.isascii, pieces)):
        return pieces
    return list(chain.from_iterable(map(_folded, pieces)))


@remembered(1 << 15)
def _folded(piece: str) -> list[str]:
    # After a space, as it stands in the title: a mark that begins it is an accent.
    return [piece] if piece.isascii() else split(people.folded(f" {piece}"))


def _packed(text: str) -> str:
    text = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return text.replace(" ", SPACE)
