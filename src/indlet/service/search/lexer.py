"""The words of the query language: a text cut into tokens, the names of fields, the forms of dates."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from typing import Final, NamedTuple

from indlet.errors import QueryError
from indlet.service.search.notes import Note

# Fields whose words are indexed apart, then those that only filter; each with its other names.
WORD_FIELDS: Final = {
    "title": (),
    "creator": ("author",),
    "subject": ("keyword", "topic"),
    "description": ("abstract",),
    "publisher": (),
    "contributor": ("editor",),
}
FILTER_FIELDS: Final = {
    "date": ("year",),
    "source": (),
    "set": ("collection",),
    "type": (),
    "language": ("lang",),
}
# Fields whose values are identifiers (formats/identifiers.py).
KEY_FIELDS: Final = {
    "doi": (),
    "handle": ("hdl",),
    "isbn": (),
    "issn": (),
    "arxiv": (),
    "url": (),
    "identifier": ("id", "oai"),
}
FIELDS: Final = {
    alias: name
    for table in (WORD_FIELDS, FILTER_FIELDS, KEY_FIELDS)
    for name, aliases in table.items()
    for alias in (name, *aliases)
}

_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")
SPOKEN = re.compile(r"\w")
_QUOTES = '"“”„«»'
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<open>\()
    | (?P<close>\))
    | (?P<quote>[{_QUOTES}])
    | (?P<sign>(?<![^\s(])[-+](?=[\w(*{_QUOTES}]))
    | (?P<field>(?<![^\s(+-])[^\W\d]\w*:(?!//)(?=[^\s:)]))
    | (?P<word>[^\s(){_QUOTES}]+)
    """,
    re.VERBOSE,
)
_VALUE = re.compile(rf"[^\s(){_QUOTES}]+")
_OPERATORS = frozenset(("AND", "OR", "NOT"))


def clean(text: str) -> str:
    """The text with every control character, lone surrogate and line end made a space: places stay."""
    return _UNSPEAKABLE.sub(" ", text)


class Token(NamedTuple):
    kind: str  # "(", ")", "phrase", "sign", "field", "word", "AND", "OR", "NOT", "end"
    text: str
    at: int


def tokenise(text: str, notes: list[str]) -> Iterator[Token]:
    """The tokens of a text that went through `clean`, the end last; `notes` hear what was read oddly."""
    at, filtering = 0, False
    while at < len(text):
        # What follows `date:` or `set:` is a value as it stands; it may hold colons and dots.
        found = _VALUE.match(text, at) if filtering else None
        if found is not None:
            yield Token("word", found.group(), at)
            at, filtering = found.end(), False
            continue
        filtering = False
        found = _TOKEN.match(text, at)
        assert found is not None, "the last alternatives take any character"
        kind, word = str(found.lastgroup), found.group()
        end = found.end()
        if kind == "quote":
            close = next((i for i in range(end, len(text)) if text[i] in _QUOTES), -1)
            if close < 0:
                raise QueryError(Note("unclosed_quote"), text, at)
            yield Token("phrase", text[end:close], at)
            end = close + 1
        elif kind == "field":
            name = word[:-1].casefold()
            yield Token("field", name, at)
            filtering = FIELDS.get(name) in FILTER_FIELDS or FIELDS.get(name) in KEY_FIELDS
        elif kind == "word":
            if word in _OPERATORS:
                yield Token(word, word, at)
            elif word == "*" or SPOKEN.search(word):
                if word.endswith(":") and word[:-1].casefold() in FIELDS:
                    notes.append(Note("read_as_word", word=word))
                yield Token("word", word, at)
            elif at and text[at - 1] == ":":
                raise QueryError(Note("colon_alone"), text, at)
        elif kind != "space":
            yield Token({"open": "(", "close": ")"}.get(kind, kind), word, at)
        at = end
    yield Token("end", "", len(text))


_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$")
OPEN: Final = 9999_12_31


def date_range(text: str, query: str = "", at: int = 0) -> tuple[int, int]:
    """The first and the last day, as yyyymmdd, that "2001", "2001-05", "2001..2005" or "2001.." states.

    A fault is pointed at in the query in which the text stands; in the text itself if there is none.
    """
    query = query or text
    low, dots, high = text.strip().partition("..")
    if not dots:
        return _date(low, at, query)
    first = _date(low, at, query)[0] if low else 0
    last = _date(high, at + len(low) + 2, query)[1] if high else OPEN
    if first > last:
        raise QueryError(Note("backwards"), query, at)
    return first, last


def _date(text: str, at: int, query: str) -> tuple[int, int]:
    """The first and the last day of a year, month or day, as yyyymmdd; a year begins with its day 0."""
    found = _DATE.match(text)
    if found is None:
        raise QueryError(Note("date"), query, at)
    year, month, day = (int(part) if part else 0 for part in found.groups())
    given = found.lastindex or 1
    if given >= 2 and not 1 <= month <= 12:
        raise QueryError(Note("no_month", month=str(month)), query, at)
    if given == 3 and not 1 <= day <= monthrange(year or 4, month)[1]:
        raise QueryError(Note("no_day", month=f"{year:04}-{month:02}", day=str(day)), query, at)
    low = year * 10000 + month * 100 + day
    if given == 3:
        return low, low
    return low, (low + 31 if given == 2 else year * 10000 + 1231)
