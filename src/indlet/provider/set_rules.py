"""Sets besides folders: by type, language, subject or year, or by a rule of the settings.

A rule is a line of conditions that must all hold: ``type:thesis year:2010-2019 -language:de``. A value
matches where its words stand in a row in one of the element's values, whatever their case.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final

from indlet.errors import SettingsError
from indlet.formats.dublin import year
from indlet.model import DUBLIN_CORE, Metadata
from indlet.oai.identifier import set_spec
from indlet.settings import SetRule

BY: Final = ("type", "language", "subject", "year")
_VALUES: Final = 50  # of an element, that make sets
_LONGEST: Final = 200  # characters of a value that makes a set
_SPEC = re.compile(r"[A-Za-z0-9\-_.!~*'()]+(?::[A-Za-z0-9\-_.!~*'()]+)*")
_YEARS = re.compile(r"(\d{4})?(-)?(\d{4})?")

NamedSet = tuple[str, str]  # setSpec, name
_Condition = Callable[[Metadata], bool]
_Maker = Callable[[Metadata], Iterator[NamedSet]]


@dataclass(frozen=True)
class SetRules:
    """The rules of the settings, checked."""

    rules: Sequence[SetRule]
    _made: Sequence[_Maker] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """SettingsError for a wrong rule: before the crawl begins."""
        made = [_by(rule) if rule.by else _where(rule) for rule in self.rules]
        object.__setattr__(self, "_made", made)

    @cached_property
    def digest(self) -> str:
        """Changes with the rules; empty without any."""
        return blake2b(repr(self.rules).encode(), digest_size=6).hexdigest() if self.rules else ""

    def of(self, metadata: Metadata) -> Iterator[NamedSet]:
        """Every set that a record with such metadata is in, and those above it, broadest first."""
        for made in self._made:
            yield from made(metadata)


def _by(rule: SetRule) -> _Maker:
    if rule.by not in BY:
        raise SettingsError(f"[[set]]: by is {rule.by!r}; choose from {', '.join(BY)}")
    if rule.where:
        raise SettingsError("[[set]]: give `by` or `where`, not both")
    top = rule.spec or rule.by
    _check(top)

    def sets(metadata: Metadata) -> Iterator[NamedSet]:
        seen = False
        for path in _paths(rule.by, metadata):
            if not seen:
                yield top, rule.name or rule.by
                seen = True
            for depth in range(1, len(path) + 1):
                yield f"{top}:{set_spec(path[:depth])}", path[depth - 1]

    return sets


def _paths(by: str, metadata: Metadata) -> Iterator[tuple[str, ...]]:
    """The values that make sets, each with what is above it."""
    if by == "year":
        year = _year(metadata)
        if year:
            yield f"{year[:3]}0s", year
        return
    for value in list(metadata.get(by, ()))[:_VALUES]:
        # Subdivided headings ("Wings -- Flutter") are sets within sets.
        parts = [part.strip() for part in value.split(" -- ")] if by == "subject" else [value.strip()]
        if all(parts) and len(value) <= _LONGEST:
            yield tuple(parts)


def _where(rule: SetRule) -> _Maker:
    if not rule.where or not rule.spec:
        raise SettingsError(
            "[[set]]: give `by`, or `spec` and `where` such as  where = 'type:thesis year:2010-'"
        )
    _check(rule.spec)
    try:
        conditions = [_condition(word) for word in shlex.split(rule.where)]
    except ValueError as e:
        raise SettingsError(f"[[set]] {rule.spec}: {rule.where!r}: {e}") from e
    parts = rule.spec.split(":")
    above = [":".join(parts[:depth]) for depth in range(1, len(parts))]

    def sets(metadata: Metadata) -> Iterator[NamedSet]:
        if all(condition(metadata) for condition in conditions):
            for spec in above:
                yield spec, spec.rpartition(":")[2]
            yield rule.spec, rule.name or rule.spec

    return sets


def _condition(word: str) -> _Condition:
    denied, word = word.startswith("-"), word.removeprefix("-")
    field, colon, value = word.partition(":")
    if not colon or not value or (field != "year" and field not in DUBLIN_CORE):
        raise SettingsError(
            f"[[set]]: {word!r} is no condition; write field:value with a Dublin Core element or year"
        )
    holds = _between(value) if field == "year" else _holds(field, value)
    return (lambda metadata: not holds(metadata)) if denied else holds


def _holds(field: str, value: str) -> _Condition:
    wanted = f" {_words(value)} "
    return lambda metadata: any(wanted in f" {_words(found)} " for found in metadata.get(field, ()))


def _between(value: str) -> _Condition:
    found = _YEARS.fullmatch(value)
    if found is None or not (found[1] or found[3]):
        raise SettingsError(f"[[set]]: {value!r} is no range of years; write 2019, 2010-2019 or 2010-")
    first = found[1] or "0000"
    last = found[3] or ("9999" if found[2] else first)

    def holds(metadata: Metadata) -> bool:
        year = _year(metadata)
        return bool(year) and first <= year <= last

    return holds


def _year(metadata: Metadata) -> str:
    return next((str(found) for value in metadata.get("date", ()) if (found := year(value))), "")


def _words(value: str) -> str:
    return " ".join(re.findall(r"\w+", value.casefold()))


def _check(spec: str) -> None:
    if not _SPEC.fullmatch(spec):
        raise SettingsError(f"[[set]]: {spec!r} is no setSpec; use letters, digits, -_.!~*'() and colons")
