"""Which models there are, and how a query names one with its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from indlet.errors import SettingsError
from indlet.service.rank.models import (
    Bm25,
    Boolean,
    Collection,
    Dirichlet,
    Document,
    JelinekMercer,
    Model,
    QueryTerm,
    Vsm,
    canonical,
    score,
)

__all__ = [
    "MODELS", "Bm25", "Boolean", "Collection", "Dirichlet", "Document", "JelinekMercer", "Model", "QueryTerm",
    "Vsm", "canonical", "model", "score",
]  # fmt: skip

AnyModel = Bm25 | Vsm | Dirichlet | JelinekMercer | Boolean

MODELS: Final[dict[str, type[AnyModel]]] = {
    kind.name: kind for kind in (Bm25, Vsm, Dirichlet, JelinekMercer, Boolean)
}

# What a parameter may be: outside, a formula would divide by zero or turn its sense round.
_RANGES: Final = {
    "k1": (0.0, 1e6, "at least 0"),
    "b": (0.0, 1.0, "from 0 to 1"),
    "mu": (1e-9, 1e12, "above 0"),
    "lambda": (1e-9, 1.0 - 1e-9, "between 0 and 1"),
}


def model(name: str, parameters: Iterable[str] = ()) -> AnyModel:
    """The named model, with parameters given as "name=value"; SettingsError says what is wrong with them."""
    kind = MODELS.get(name)
    if kind is None:
        raise SettingsError(f"there is no model {name!r}: choose one of {', '.join(MODELS)}")
    known = {field.name.rstrip("_"): field.name for field in fields(kind)}
    values: dict[str, float] = {}
    for parameter in parameters:
        key, _, text = parameter.partition("=")
        key = key.strip().rstrip("_")
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise SettingsError(f"model {name} has no parameter {key!r}: {takes}")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        low, high, words = _RANGES[key]
        if not low <= value <= high:
            raise SettingsError(f"parameter {key} of {name} cannot be {text!r}: give a number {words}")
        values[known[key]] = value
    return kind(**values)
