"""Which models there are, one file each, and how a query names one with its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from indlet.errors import SettingsError
from indlet.service.search.rank.bm25 import Bm25
from indlet.service.search.rank.model import (
    Collection,
    DocumentStatistics,
    Model,
    QueryTerm,
    canonical,
    score,
)

__all__ = [
    "MODELS",
    "Bm25",
    "Collection",
    "DocumentStatistics",
    "Model",
    "QueryTerm",
    "canonical",
    "model",
    "parameters_of",
    "score",
]


def _models() -> dict[str, type[Model]]:
    """The models in this folder, by their names, in their order."""
    found: list[type[Model]] = []
    for module in iter_modules(__path__, f"{__name__}."):
        named = vars(import_module(module.name)).values()
        found += (
            kind
            for kind in named
            if isinstance(kind, type)
            and kind.__module__ == module.name
            and issubclass(kind, Model)
            and kind is not Model
        )
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.order)}


MODELS: Final = _models()


def parameters_of(kind: Model | type[Model]) -> tuple[str, ...]:
    """The names of a model's parameters, as dataclasses know them: `lambda_` for lambda."""
    return tuple(field.name for field in fields(kind))  # type: ignore[arg-type]  # each model is a dataclass


def model(name: str, parameters: Iterable[str] = ()) -> Model:
    """The named model, with parameters given as "name=value"; SettingsError says what is wrong with them."""
    kind: Any = MODELS.get(name)
    if kind is None:
        raise SettingsError(f"there is no model {name!r}: choose one of {', '.join(MODELS)}")
    known = {own.rstrip("_"): own for own in parameters_of(kind)}
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
        low, high, words = kind.ranges[key]
        if not low <= value <= high:
            raise SettingsError(f"parameter {key} of {name} cannot be {text!r}: give a number {words}")
        values[known[key]] = value
    chosen: Model = kind(**values)
    return chosen
