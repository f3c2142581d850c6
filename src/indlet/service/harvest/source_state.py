"""What is remembered of a source between runs, kept as JSON with its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from indlet.model import JsonMapping, JsonObject
from indlet.service.harvest.run_state import RunState, from_json, to_json
from indlet.service.harvest.source_shape import Shape, shape_of


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run that has not ended: the next one resumes it."""

    key: tuple[str, ...]  # set and dates that it was asked for
    asked: str  # when it began
    state: RunState
    everything: bool = False  # it lists all that the source has
    historical: bool = False  # in date windows, from the beginning

    @classmethod
    def from_json(cls, data: JsonMapping) -> KeptRun:
        return cls(
            tuple(data["key"]), data["asked"], from_json(data["course"]), bool(data.get("everything")),
            bool(data.get("historical")),
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return {
            "key": list(self.key), "asked": self.asked, "everything": self.everything,
            "historical": self.historical,
            "course": to_json(self.state),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LastRun:
    """How the last run ended."""

    at: str = ""
    outcome: str = ""
    reason: str = ""
    records: int = 0
    deleted: int = 0
    failed: int = 0
    owed: int = 0
    warning: str = ""


@dataclass(frozen=True, slots=True)
class SetNames:
    """When a source was asked for the names of its sets, and how many it left without one."""

    asked: str = ""
    nameless: int = 0


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source, as far as it is known."""

    url: str = ""  # the base URL that answered
    shape: Shape | None = None
    format: str = ""
    identified: bool = False  # it answered Identify
    name: str = ""  # that of the repository
    deleted_record: str = ""
    granularity: str = ""
    policy: JsonMapping | None = None
    loss: tuple[str, ...] = ()
    reconciliation: str = ""
    run: KeptRun | None = None
    marks: Mapping[str, str] = field(default_factory=dict)  # by set: where the next run starts
    vague: int = 0  # seconds of overlap, for a source whose clock cannot be relied on
    reconciled: str = ""  # when all identifiers were compared last
    sets: SetNames | None = None
    size_lies: bool = False
    repairs: Mapping[str, int] = field(default_factory=dict)
    last: LastRun | None = None
    confirmed: str = ""  # when a run last ended complete: what is held is then what the source has
    stored_bytes: int = 0
    store: str = ""  # what names the store behind the source, and its history (`Identity.store`)
    requester: str = ""  # digest of the credentials by which it was harvested
    restored: bool = False  # store or requester have become others: all identifiers must be compared
    other: JsonMapping = field(default_factory=dict)  # what others keep with it

    @classmethod
    def from_json(cls, data: JsonMapping) -> SourceState:
        """The state as this version kept it, or the one before. A run that cannot be read is dropped."""
        names = {f.name for f in fields(cls)} - {"other"}
        known = {key: value for key, value in data.items() if key in names and value is not None}
        if "shape" in known:
            known["shape"] = shape_of(known)
        if "loss" in known:
            known["loss"] = tuple(known["loss"])
        for key, kind in (("sets", SetNames), ("last", LastRun)):
            if key in known:
                known[key] = kind(**{k: v for k, v in known[key].items() if k in kind.__slots__})
        if "run" in known:
            try:
                known["run"] = KeptRun.from_json(known["run"])
            except (KeyError, TypeError, ValueError):
                del known["run"]
        return cls(**known, other={key: value for key, value in data.items() if key not in names})

    def to_json(self) -> JsonObject:
        found = JsonObject(self.other)
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "other" or value == f.default or (f.name in ("marks", "repairs") and not value):
                continue
            found[f.name] = value
        if self.shape is not None:
            found |= {"shape": list(self.shape), "loss": list(self.loss)}
        if self.run is not None:
            found["run"] = self.run.to_json()
        for key, part in (("sets", self.sets), ("last", self.last)):
            if part is not None:
                found[key] = {name: getattr(part, name) for name in part.__slots__}
        return found

    def with_repairs(self, more: Mapping[str, int]) -> SourceState:
        total = dict(self.repairs)
        for kind, count in more.items():
            total[kind] = total.get(kind, 0) + count
        return replace(self, repairs=total)
