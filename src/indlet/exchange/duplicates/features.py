"""What of a record is compared: words of the title, names, years, identifiers, in one form each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from indlet.formats import identifiers, people
from indlet.formats.dublin import year
from indlet.model import Metadata, Stored
from indlet.text.tokens import split
from indlet.text.tokens import words as tokens

_TITLE: Final = 400  # characters of a title that are looked at
_WORDS: Final = 40  # of a title
_NAMES: Final = 20  # of a record
_KEYS: Final = 30
_PUNCTUATION: Final = re.compile(r"[^a-z0-9]+")
# "/ by Jane Austen", "[electronic resource]": other cataloguing rules put them elsewhere, or nowhere.
_BESIDE: Final = re.compile(r"\s/\s.*|\[[^\]]{0,60}(?:\]|$)", re.DOTALL)
_ARTICLES: Final = frozenset(
    (
        "a", "an", "the", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el", "los",
        "las",
    )
)  # fmt: skip
# Numbers that are written in several ways within titles.
_NUMBERS: Final = {
    "i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9",
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "first": "1", "second": "2", "third": "3",
    "x": "10", "1st": "1", "2nd": "2", "3rd": "3",
}  # fmt: skip
# A report number: letters, then digits, with any punctuation between ("NASA/TM-2002-211234").
_REPORT: Final = re.compile(r"([a-z][a-z/ ._–—-]*?)[/ ._–—-]*(\d[a-z0-9/ ._–—-]*)$")
_STRONG: Final = ("doi", "hdl", "isbn", "arxiv", "url")


@dataclass(frozen=True, slots=True)
class Features:
    """A record as it is compared."""

    identifier: str
    origin: int
    id: int
    words: tuple[str, ...]  # of the title, without accents, capitals and a leading article
    title: str  # these words, joined by spaces
    proper: int  # how many of them stand before a subtitle
    names: tuple[tuple[str, str], ...]  # (family name, given name or initial), of creators and contributors
    years: frozenset[int]
    keys: frozenset[str]  # identifiers that name one work: DOI, ISBN …
    reports: frozenset[tuple[str, str]]  # report numbers as (series, number)

    @property
    def order(self) -> tuple[str, int]:
        """What a pair is ordered by, so that it does not matter which record came first."""
        return self.identifier, self.origin


def features(stored: Stored) -> Features:
    """What is compared of a stored record."""
    return described(stored.identifier, orjson.loads(stored.metadata or b"{}"), stored.origin, stored.id)


def described(identifier: str, metadata: Metadata, origin: int = 0, number: int = 0) -> Features:
    """What is compared of a record with these metadata."""
    title = next(iter(metadata.get("title", ())), "")
    words = title_words(title)
    values = [identifier, *metadata.get("identifier", ())][:_KEYS]
    keys = {key for value in values for key in identifiers.keys_of(value)}
    years = {found for value in metadata.get("date", ())[:5] if (found := year(value))}
    return Features(
        identifier,
        origin,
        number,
        words,
        " ".join(words),
        len(title_words(title.partition(":")[0])) if ":" in title else len(words),
        tuple(dict.fromkeys(_names(metadata))),
        frozenset(years),
        frozenset(key for key in keys if key.partition(":")[0] in _STRONG),
        frozenset(_reports(key.removeprefix("id:") for key in keys if key.startswith("id:"))),
    )


def title_words(title: str) -> tuple[str, ...]:
    title = people.folded(_BESIDE.sub(" ", title[:_TITLE]).replace("'", "").replace("’", ""))
    found = split(title) if title.isascii() else (word for piece in split(title) for word in tokens(piece))
    words = [_NUMBERS.get(word, word) for word in found]
    if len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    return tuple(words[:_WORDS])


def _names(metadata: Metadata) -> Iterator[tuple[str, str]]:
    values = [*metadata.get("creator", ()), *metadata.get("contributor", ())][:_NAMES]
    for value in values:
        for name in people.names(value)[:_NAMES]:
            family, given = people.parts(name)
            if family:
                yield family, given


def _reports(values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Report numbers among values; plain numbers are none, for every catalogue counts its records."""
    for value in values:
        found = _REPORT.match(value)
        if found and len(value) > 4:
            yield _PUNCTUATION.sub("", found[1]), _PUNCTUATION.sub("", found[2])
