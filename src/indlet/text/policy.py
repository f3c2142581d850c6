"""An analysis policy: what is done to text, in a form that people set and machines compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

from indlet.errors import SettingsError
from indlet.model import JsonMapping, JsonObject
from indlet.settings import Analysis
from indlet.text.language import code
from indlet.text.rules import STEMMER, stops_digest

# Names the rules of core/src/text: a change of any outcome needs a new name.
RULES: Final = "indlet-text-2"

# What a value of each declared type may be, and what to do where it is not. JSON knows no better.
_VALID: Final[Mapping[object, Callable[[Any], bool]]] = {
    "str": lambda value: isinstance(value, str) and len(value) <= 100,
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int and 1 <= value <= 255,
    "float | None": lambda value: value is None or (type(value) in (int, float) and 0 < value <= 1),
}
_REMEDY: Final[Mapping[object, str]] = {
    "str": "a short text",
    "bool": "true or false",
    "int": "a number from 1 to 255",
    "float | None": "the share of terms to keep, such as 0.4, or leave it out",
}


@dataclass(frozen=True)
class Policy:
    """How a text becomes terms.

    - `language`: "auto" detects it for each document; an ISO 639-1 code applies to all; "" applies no rules
    - `default_language`: under "auto", for texts whose language cannot be detected
    - `stop`: drop stop words
    - `stem`: replace words by their stems
    - `positions`: keep the positions of each term; dropped tokens count, so that a phrase is a phrase
    - `lead`: keep only the terms of this share of a text, from its beginning, and the keywords of `prune`
    - `prune`: keep only this share of a document's terms, above 0 and at most 1; see `indlet.text.prune`
    - `min_length`, `max_length`: shortest and longest token, in characters, that becomes a term

    The last three fields name the rules, stop lists and stemmers in use. They are this program's own, unless
    the policy came from elsewhere.
    """

    language: str = "auto"
    default_language: str = "en"
    stop: bool = True
    stem: bool = True
    positions: bool = False
    prune: float | None = None
    lead: float | None = None
    min_length: int = 1
    max_length: int = 64
    rules: str = RULES
    stops: str = ""
    stemmer: str = STEMMER

    def __post_init__(self) -> None:
        if not self.stops:
            object.__setattr__(self, "stops", stops_digest())
        for field in fields(self):
            value = getattr(self, field.name)
            if not _VALID[field.type](value):
                raise SettingsError(f"analysis policy: {field.name} is {value!r}; give {_REMEDY[field.type]}")
        for share in ("prune", "lead"):
            if (value := getattr(self, share)) is not None:
                object.__setattr__(self, share, float(value))
        if self.min_length > self.max_length:
            bounds = f"{self.min_length} is above max_length {self.max_length}"
            raise SettingsError(f"analysis policy: min_length {bounds}; swap them")
        for name, value in (("language", self.language), ("default_language", self.default_language)):
            if value != code(value) and (name, value) != ("language", "auto"):
                remedy = f"write {code(value)!r}" if code(value) else "give an ISO 639-1 code such as 'en'"
                raise SettingsError(f"analysis policy: {name} is {value!r}, which is not known; {remedy}")

    def to_json(self) -> JsonObject:
        """The machine-readable form, as it stands in ListIndexFormats and in Identify.

        What came later than the first release stands there only where it is used, so that digests stay.
        """
        form = asdict(self)
        if self.lead is None:
            del form["lead"]
        return form

    @classmethod
    def from_json(cls, data: JsonMapping) -> Policy:
        """A policy from settings or from its machine-readable form; what is left out has its default."""
        unknown = sorted(set(data) - {field.name for field in fields(cls)})
        if unknown:
            raise SettingsError(
                f"analysis policy: no such key: {', '.join(map(repr, unknown))}; "
                f"known are {', '.join(field.name for field in fields(cls))}"
            )
        return cls(**data)

    @classmethod
    def read(cls, wire: str | bytes | JsonMapping | None) -> Policy | None:
        """The policy that a source states, or None where it states none that we can follow."""
        try:
            data = json.loads(wire) if isinstance(wire, str | bytes) else wire
            # What leaves out the rules that it follows was not written by a program of this kind.
            return cls.from_json(data) if isinstance(data, Mapping) and data.get("rules") else None
        except (ValueError, RecursionError, SettingsError):
            return None

    @cached_property
    def digest(self) -> str:
        """Stable hexadecimal digits; policies that share them make the same of every text."""
        form = self.to_json()
        if not self.stem:
            del form["stemmer"]
            if not self.stop:
                del form["stops"]
        if self.language != "auto":
            del form["default_language"]
        return blake2b(json.dumps(form, sort_keys=True).encode(), digest_size=16).hexdigest()


def policy_of(analysis: Analysis) -> Policy:
    """The analysis policy that the settings state; there, keeping no share of the terms means keeping all."""
    return Policy(**{**asdict(analysis), "prune": analysis.prune or None, "lead": analysis.lead or None})
