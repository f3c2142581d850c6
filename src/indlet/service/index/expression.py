"""What can be asked of the index: a small tree. The query language is parsed into it elsewhere.

A term is an analysed word, or a field's mark (`model.FIELD_MARKS`) and an analysed word. Which
documents match is decided by the tree; how they score, by all the terms in it that are not under a `Not`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """Documents that hold the term. `weight` counts how often it was asked for; it must be above 0."""

    term: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Phrase:
    """Documents in which the terms stand together: each at its offset (default: one after another).

    A document whose positions were not harvested matches if it holds all the terms; the result says so
    (`loose`).
    """

    terms: tuple[str, ...]
    offsets: tuple[int, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Prefix:
    """Documents that hold a term that begins so. For scoring, the `limit` most frequent such terms count."""

    prefix: str
    limit: int = 64


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Expression, ...]
    # Languages in which the alternatives are a stop word; the index itself does not look at it.
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """Every document but these."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Filter:
    """Documents with this value in a facet (origin, type, language, set, year), whatever its case; or with a
    value of the same key (creator, subject, format; `values.py`).

    A set includes its subsets: "a" also finds "a:b".
    """

    facet: str
    value: str


@dataclass(frozen=True, slots=True)
class Dates:
    """Documents dated from `low` to `high`, both included, as yyyymmdd: 20010000 to 20019999 is 2001."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Ids:
    """Records by their numbers in the store."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Everything:
    pass


@dataclass(frozen=True, slots=True)
class Positioned:
    """Documents whose word positions are known: in these, phrases are exact."""


Expression = Term | Phrase | Prefix | And | Or | Not | Filter | Dates | Ids | Everything | Positioned


def any_of(expression: Expression) -> tuple[Term, ...] | None:
    """The terms of an expression that asks for any of some; None for others."""
    if isinstance(expression, Or):
        parts = [part for part in expression.parts if isinstance(part, Term)]
        return tuple(parts) if len(parts) == len(expression.parts) else None
    return (expression,) if isinstance(expression, Term) else None


def within(expression: Expression, terms: Collection[str]) -> bool:
    """Whether what matches surely holds one of the terms."""
    match expression:
        case Term(term):
            return term in terms
        case And(parts):
            return any(within(part, terms) for part in parts)
        case Or(parts):
            return all(within(part, terms) for part in parts)
        case _:
            return False


def positive(expression: Expression) -> Iterator[Term | Phrase | Prefix]:
    """The leaves that count for the score."""
    match expression:
        case Term() | Phrase() | Prefix():
            yield expression
        case And(parts) | Or(parts):
            for part in parts:
                yield from positive(part)
        case _:
            return
