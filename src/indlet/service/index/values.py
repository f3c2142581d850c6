"""Values of metadata as facets, lists and orders know them: terms of the index that people never type.

A value becomes a term of its field's mark, its key and its spelling: `␟Cwang, wei␁Wang, Wei`. Spellings that
differ by case, accents, or the order of a name have one key and count as one value; it is shown in the
spelling that most records have. The dictionary keeps terms in order, so it is also the list from A to Z, and
the records' order by title or author. Spaces are U+0002 here, for they separate terms. The terms of a record
are made in `core/src/keys/values.rs`; here is what questions ask for.
"""

from __future__ import annotations

from typing import Final

from indlet._core import pack_value, title_words, value_key
from indlet.model import SORT_MARKS, VALUE_MARKS

VALUE_FACETS: Final = tuple(VALUE_MARKS)
SEPARATOR: Final = "\x01"
SPACE: Final = "\x02"
_KEY: Final = 120  # characters of a key
# Words that do not count where a title begins with them, in any language.
_ARTICLES: Final = frozenset(
    (
        "a", "an", "as", "das", "de", "der", "die", "een", "ein", "eine", "el", "gli", "het", "i", "il", "l",
        "la", "las", "le", "les", "lo", "los", "o", "os", "the", "um", "uma", "un", "una", "une",
    )
)  # fmt: skip


def beginning(facet: str, key: str) -> str:
    """What the terms of a key, or of keys that begin so, begin with."""
    return VALUE_MARKS[facet] + pack_value(key)


def term_beginning(facet: str, value: str) -> str:
    """What all terms of a value begin with, and no others."""
    return beginning(facet, value_key(facet, value)) + SEPARATOR


def title_beginning(title: str) -> str:
    """What the order of titles that begin so begins with."""
    return SORT_MARKS["title"] + pack_value(" ".join(title_words(title))[:_KEY])


def title_orders(title: str) -> list[str]:
    """The terms that records of this title may be sorted by, whatever language they are in."""
    words = title_words(title)
    forms = [words, words[1:]] if len(words) > 1 and words[0] in _ARTICLES else [words]
    return [SORT_MARKS["title"] + pack_value(" ".join(form)[:_KEY].strip()) for form in forms]


def plain(packed: str) -> str:
    """A part of a term as people write it."""
    return packed.replace(SPACE, " ")
