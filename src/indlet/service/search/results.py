"""What a search gives: values that a page, a command and the JSON API only have to show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from indlet.model import Facet, JsonMapping, JsonObject, Metadata

_WEB: Final = re.compile(r"(?:https?|ftp)://[^\s<>\"]+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Matched:
    """A query term that a record holds: `share` is its part of what all of them add to the score, 0 to 1."""

    term: str
    field: str
    words: tuple[str, ...]  # as they stand in the query
    frequency: int
    df: int
    share: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A record in a list of results, with all the sources through which its resource was reached."""

    rank: int
    id: int
    identifier: str
    score: float
    source: str
    sources: tuple[str, ...]
    metadata: Metadata
    url: str
    date: str  # as precise as the record: "2001", "2001-05", "2001-05-31"; empty if unknown
    language: str
    sets: tuple[str, ...]
    datestamp: int
    length: int
    terms: tuple[Matched, ...] = ()
    properties: JsonMapping = field(default_factory=dict)
    in_full_text: bool = False  # a word of the query is in the document, and not in the metadata

    @property
    def title(self) -> str:
        return next(iter(self.metadata.get("title", ())), "") or self.identifier

    @property
    def creators(self) -> tuple[str, ...]:
        return tuple(self.metadata.get("creator", ()))

    @property
    def year(self) -> str:
        return self.date[:4]

    def to_json(self) -> JsonObject:
        return {
            "rank": self.rank,
            "identifier": self.identifier,
            "source": self.source,
            "sources": list(self.sources),
            "score": self.score,
            "url": self.url,
            "date": self.date,
            "language": self.language,
            "sets": list(self.sets),
            "datestamp": iso(self.datestamp),
            "length": self.length,
            "metadata": {name: list(values) for name, values in self.metadata.items()},
            "terms": [
                {
                    "term": matched.term,
                    "field": matched.field,
                    "words": list(matched.words),
                    "frequency": matched.frequency,
                    "df": matched.df,
                    "share": matched.share,
                }
                for matched in self.terms
            ],
        }


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word of the query that no record holds, and words like it that records do hold, best first."""

    word: str
    at: int
    instead: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {"word": self.word, "at": self.at, "instead": list(self.instead)}


@dataclass(frozen=True, slots=True)
class Result:
    """An answer. `total` counts every match, or at least so many where it is not exact; `hits` are the page
    from `offset`. Iterates over its hits.
    """

    query: str
    model: str
    parameters: Mapping[str, float]
    total: int
    hits: tuple[Hit, ...]
    offset: int
    limit: int
    sort: str
    languages: tuple[str, ...] = ()
    facets: Mapping[str, Facet] = field(default_factory=dict)
    histogram: tuple[tuple[int, int], ...] = ()  # (year, records), every year once, in order
    notes: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    corrected: str = ""  # the query with the best suggestions put in; empty if there are none
    took_ms: float = 0.0
    ahead: int = 0  # hits, of all pages, that go before the others: known items, records with all the words
    words: int = 0  # different words of the query, where records with all of them go first or alone
    any_words: int = 0  # records with any of the words, where only those with all of them are listed
    total_is_exact: bool = True

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_json(self) -> JsonObject:
        return {
            "query": self.query,
            "model": self.model,
            "parameters": dict(self.parameters),
            "languages": list(self.languages),
            "sort": self.sort,
            "total": self.total,
            "total_is_exact": self.total_is_exact,
            "ahead": self.ahead,
            "any_words": self.any_words,
            "offset": self.offset,
            "limit": self.limit,
            "hits": [hit.to_json() for hit in self.hits],
            "facets": {
                name: [
                    {"value": value, "count": count}
                    | ({"label": facet.labels[value]} if value in facet.labels else {})
                    for value, count in facet.values
                ]
                for name, facet in self.facets.items()
            },
            "histogram": [{"year": year, "count": count} for year, count in self.histogram],
            "notes": list(self.notes),
            "suggestions": [suggestion.to_json() for suggestion in self.suggestions],
            "corrected": self.corrected,
            "took_ms": round(self.took_ms, 3),
        }


@dataclass(frozen=True, slots=True)
class Share:
    """One line of an explanation. The contributions and the remainder add up to the score."""

    term: str
    field: str
    words: tuple[str, ...]
    frequency: int
    df: int
    cf: int
    weight: float
    contribution: float
    derived: Mapping[str, float]  # values of signs in the model's formula

    def to_json(self) -> JsonObject:
        return {
            "term": self.term,
            "field": self.field,
            "words": list(self.words),
            "frequency": self.frequency,
            "df": self.df,
            "cf": self.cf,
            "weight": self.weight,
            "contribution": self.contribution,
        }


@dataclass(frozen=True, slots=True)
class Explained:
    """How a record came by its score: `remainder` is what the model adds whatever terms the record holds."""

    identifier: str
    model: str
    parameters: Mapping[str, float]
    score: float
    matches: bool
    shares: tuple[Share, ...]
    remainder: float
    formula: str
    length: int
    average_length: float
    records: int
    tokens: int = 0  # of all records together
    norm: float = 0.0  # of the record's lnc vector: the vector space model divides by it
    query_constants: tuple[float, float] = (0.0, 0.0)  # two numbers of the query, see `rank/model.py`
    all_words: str = (
        ""  # by the rule "records with all words first": "all", "some"; empty where it is not asked
    )
    missing: tuple[Share, ...] = ()  # terms of the query that others hold and this record does not

    def to_json(self) -> JsonObject:
        return {
            "identifier": self.identifier,
            "model": self.model,
            "parameters": dict(self.parameters),
            "score": self.score,
            "matches": self.matches,
            "terms": [share.to_json() for share in self.shares],
            "missing": [share.to_json() for share in self.missing],
            "remainder": self.remainder,
            "formula": self.formula,
            "length": self.length,
            "average_length": self.average_length,
            "records": self.records,
            "tokens": self.tokens,
            "norm": self.norm,
            "all_words": self.all_words,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """A record in a comparison, with its rank under each model; None where it is not among the first."""

    hit: Hit
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One query under several models: each result, all records found side by side, and how far they agree.

    `overlap[i][j]` is the share of the first records that models i and j have in common.
    """

    results: tuple[Result, ...]
    rows: tuple[Row, ...]
    overlap: tuple[tuple[float, ...], ...]

    def to_json(self) -> JsonObject:
        return {
            "models": [result.model for result in self.results],
            "results": [result.to_json() for result in self.results],
            "rows": [
                {
                    "identifier": row.hit.identifier,
                    "source": row.hit.source,
                    "title": row.hit.title,
                    "ranks": list(row.ranks),
                }
                for row in self.rows
            ],
            "overlap": [list(line) for line in self.overlap],
        }


def compared(results: Sequence[Result]) -> Comparison:
    hits: dict[int, Hit] = {}
    places: list[dict[int, int]] = []
    for result in results:
        places.append({hit.id: hit.rank for hit in result.hits})
        for hit in result.hits:
            hits.setdefault(hit.id, hit)
    rows = [Row(hit, tuple(place.get(number) for place in places)) for number, hit in hits.items()]
    rows.sort(key=lambda row: (min(rank for rank in row.ranks if rank is not None), row.hit.identifier))
    overlap = tuple(
        tuple(len(one.keys() & two.keys()) / max(len(one), len(two), 1) for two in places) for one in places
    )
    return Comparison(tuple(results), tuple(rows), overlap)


def link(metadata: Metadata, properties: JsonMapping) -> str:
    """Where the owner's copy is: the record's own address, else the first identifier that is one.

    Only web addresses come out: what a harvested record claims must not become a script on our pages.
    """
    for candidate in (properties.get("url"), *metadata.get("identifier", ()), *metadata.get("relation", ())):
        if isinstance(candidate, str) and _WEB.match(candidate.strip()):
            return candidate.strip()
    return ""


def shown_date(number: int) -> str:
    """A date as yyyymmdd, with 00 for what is unknown, as ISO 8601 writes it."""
    if not number:
        return ""
    year, month, day = number // 10000, number // 100 % 100, number % 100
    return f"{year:04}" + (f"-{month:02}" + (f"-{day:02}" if day else "") if month else "")


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
