"""Expressions as queries of the cluster that decide what matches; scores come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from indlet.cluster.opensearch.cluster import Json
from indlet.cluster.opensearch.schema import FACETS, REACH, escape_term, phrase
from indlet.errors import QueryError
from indlet.service.index.expression import (
    And,
    Dates,
    Everything,
    Expression,
    Filter,
    Ids,
    Not,
    Or,
    Phrase,
    Positioned,
    Prefix,
    Term,
)
from indlet.service.index.values import VALUE_FACETS, term_beginning

NOTHING: Json = {"match_none": {}}
EVERYTHING: Json = {"match_all": {}}


def matching(expression: Expression) -> Json:
    match expression:
        case Term(term):
            return {"term": {"terms": escape_term(term)}}
        case Phrase():
            return _phrase(expression)
        case Prefix(prefix):
            return {"prefix": {"terms": escape_term(prefix)}} if prefix else {"exists": {"field": "terms"}}
        case And(parts):
            return all_of(map(matching, parts))
        case Or(parts):
            return _any(parts)
        case Not(part):
            return {"bool": {"must_not": [matching(part)]}}
        case Filter(facet, value):
            if facet in VALUE_FACETS:
                return {"prefix": {"terms": escape_term(term_beginning(facet, value))}}
            return {"term": {f"key_{facet}": value.casefold()}} if facet in FACETS else NOTHING
        case Dates(low, high):
            return {"range": {"date": {"gte": max(low, 1), "lte": max(high, 0)}}}
        case Ids(ids):
            return {"terms": {"id": list(ids)}}
        case Everything():
            return EVERYTHING
        case Positioned():
            return {"term": {"placed": True}}


def all_of(queries: Iterable[Json]) -> Json:
    """What matches all of them; everything, if there are none."""
    each = list(queries)
    return {"bool": {"filter": each}} if each else EVERYTHING


def none_of(query: Json, others: Sequence[Json]) -> Json:
    return {"bool": {"filter": [query], "must_not": list(others)}} if others else query


def loosely(expression: Expression) -> list[Json]:
    """What matches each phrase as a conjunction, in records whose positions are not known."""
    match expression:
        case Phrase(terms) if len(terms) > 1:
            return [all_of([*_each(terms), {"term": {"placed": False}}])]
        case And(parts) | Or(parts):
            return [query for part in parts for query in loosely(part)]
        case Not(part):
            return loosely(part)
        case _:
            return []


def _any(parts: Sequence[Expression]) -> Json:
    words = [escape_term(part.term) for part in parts if isinstance(part, Term)]
    each = [matching(part) for part in parts if not isinstance(part, Term)]
    if words:
        each.append({"terms": {"terms": words}})
    return {"bool": {"should": each, "minimum_should_match": 1}} if each else NOTHING


def _each(terms: Iterable[str]) -> list[Json]:
    return [{"term": {"terms": escape_term(term)}} for term in dict.fromkeys(terms)]


def _phrase(asked: Phrase) -> Json:
    """Where positions are known the terms stand at their offsets; else all are there."""
    together = _each(asked.terms)
    if len(asked.terms) < 2:
        return all_of(together)
    offsets = asked.offsets or tuple(range(len(asked.terms)))
    if max(offsets) - min(offsets) > REACH:
        said = f"a phrase may be {REACH} words long here: make it shorter, or leave out the quotes"
        raise QueryError(said, " ".join(asked.terms), 0)
    if len(set(offsets)) < len(offsets):
        said = "two words of a phrase stand at one place, which this index cannot look up: leave one out"
        raise QueryError(said, " ".join(asked.terms), 0)
    placed = {"match_phrase": {"places": {"query": phrase(asked.terms, offsets), "analyzer": "places"}}}
    loose = all_of([*together, {"term": {"placed": False}}])
    return {"bool": {"should": [placed, loose], "minimum_should_match": 1}}
