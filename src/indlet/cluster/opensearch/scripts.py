"""The models' formulas in the language of the cluster's scripts, one for each term that a document holds.

They need not be exact: what counts is scored again by the model itself. They must not be negative, and come
within a few units of a 32-bit float of the *comparable* score, which orders documents as the score does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indlet.cluster.opensearch.cluster import Json
from indlet.cluster.opensearch.schema import escape_term
from indlet.service.search.rank import Collection, DocumentStatistics, Model, QueryTerm, parameters_of

_OKAPI: Final = "params.k1 * (1.0 - params.b + params.b * doc['length'].value / params.average)"
_LENGTH: Final = "double l = doc['length'].value == 0 ? 1.0 : doc['length'].value; "
_FORMULAS: Final = {
    "bm25": f"return params.first * _score / (_score + {_OKAPI})",
    "bm25-plus": (f"return params.first * (_score * (params.k1 + 1.0) / (_score + {_OKAPI}) + params.delta)"),
    "vsm": (
        "double n = doc['norm'].value == 0.0 ? 1.0 : doc['norm'].value; "
        "return params.first * (1.0 + Math.log(_score)) / (n * params.size)"
    ),
    "lm-dirichlet": "return params.first * Math.log(1.0 + _score / params.second)",
    "lm-jm": f"{_LENGTH}return params.first * Math.log(1.0 + _score * params.second / l)",
    "pl2": (
        f"{_LENGTH}double t = _score * Math.log1p(params.c * params.average / l) / Math.log(2.0); "
        "double p = t * Math.log(t / params.second) + params.second + 1.0 / (12.0 * t) - t "
        "+ 0.5 * Math.log(2.0 * Math.PI * t); "
        "return params.first * p / (Math.log(2.0) * (t + 1.0))"
    ),
}
# What every document gets beside the shares of its terms: longer ones less, and none less than nothing.
_DIRICHLET: Final = (
    "return params.size * Math.log((params.longest + params.mu) / (doc['length'].value + params.mu))"
)
ERROR: Final = 2.0**-21  # of a score in 32-bit floats, with room to spare
_SMALLEST: Final = 1e-44


@dataclass(frozen=True, slots=True)
class Scoring:
    """A query's terms and model, and how documents are scored by them here and in the cluster."""

    model: Model
    terms: Sequence[QueryTerm]
    collection: Collection
    longest: int

    @property
    def is_constant(self) -> bool:
        """Whether all documents score the same."""
        return not self.terms or self.model.finishing == "constant"

    @property
    def has_formula(self) -> bool:
        return self.model.name in _FORMULAS

    @property
    def by_length(self) -> bool:
        """Whether documents without any of the terms differ."""
        return self.model.name == "lm-dirichlet"

    def clauses(self) -> list[Json]:
        """A clause for each term, whose name is the term's number, and what the length adds."""
        if self.is_constant or not self.has_formula:
            return self.named_terms()
        size, _ = self.model.query_constants(self.terms, self.collection)
        fixed: Json = {
            name.rstrip("_"): float(getattr(self.model, name)) for name in parameters_of(self.model)
        }
        fixed |= {"average": self.collection.average, "size": size or 1.0}
        made: list[Json] = []
        for number, term in enumerate(self.terms):
            first, second = self.model.constants(term, self.collection)
            script = {
                "source": _FORMULAS[self.model.name],
                "params": {**fixed, "first": first, "second": second},
            }
            made.append({"script_score": {"query": _term(number, term), "script": script}})
        if self.by_length:
            script = {"source": _DIRICHLET, "params": {**fixed, "longest": float(self.longest)}}
            made.append({"script_score": {"query": {"match_all": {}}, "script": script}})
        return made

    def named_terms(self) -> list[Json]:
        """A clause for each term, which brings its frequency back under the term's number."""
        return [_term(number, term) for number, term in enumerate(self.terms)]

    def score(self, frequencies: Sequence[int], document: DocumentStatistics) -> tuple[float, float]:
        """A document's score by the model itself; and the comparable one."""
        total = 0.0
        for term, frequency in zip(self.terms, frequencies, strict=True):
            if frequency:
                constants = self.model.constants(term, self.collection)
                total += self.model.contribution(constants, frequency, document, self.collection)
        query_constants = self.model.query_constants(self.terms, self.collection)
        score = self.model.finish(total, query_constants, document)
        if self.by_length:
            mu = float(getattr(self.model, "mu"))  # noqa: B009 - a parameter of one model
            return score, total + query_constants[0] * math.log((self.longest + mu) / (document.length + mu))
        return score, total if self.model.finishing == "shifted" else score

    def above(self, comparable: float, last: float) -> bool:
        """Whether a score is above that of every document that comes after one which the cluster scored
        `last`.
        """
        if not self.has_formula:
            return False
        _, constant = self.model.query_constants(self.terms, self.collection)
        return comparable > last * (1.0 + ERROR) + _SMALLEST + 1e-12 * abs(constant)

    def all_equal_from(self, last: float) -> bool:
        """Whether that document and those after it hold none of the terms, and so score the same."""
        return self.has_formula and last == 0.0 and not self.by_length


def _term(number: int, term: QueryTerm) -> Json:
    value = escape_term(term.term.decode("utf-8", "surrogatepass"))
    return {"term": {"terms": {"value": value, "_name": str(number)}}}
