"""Which sources there are, by the settings and by what was decided at the desk.

What the desk decides (sources added, changed, renamed, paused, removed) is one entry of the store, which
outlives a restart. The settings file lists the initial sources; a field that the desk has changed takes
precedence until the desk resets it. Of two sources with one name the file's counts.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any, Final

from indlet.errors import SettingsError
from indlet.model import JsonObject
from indlet.node import job_entries
from indlet.service.harvest.cache import KEPT_AS, permit_to_decide
from indlet.service.harvest.negotiate import source_name
from indlet.service.harvest.one_origin import rename_source, sources_in_file
from indlet.settings import Settings, Source
from indlet.store import Store, configured_for, desk_sources

NAME: Final = 100  # characters of a source's name
_BLANKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class SourceList:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = configured_for(store, settings)

    def sources(self) -> dict[str, Source]:
        """Every source by its name: the settings', those added here, those harvested by hand before."""
        kept = self.decided()
        with self._store.read() as view:
            origins = view.origins("source")
        found = {
            name: desk_sources.source_from({**asdict(source), **changes_of(kept, name)})
            for name, source in sources_in_file(self._settings, kept).items()
        }
        for name, raw in kept["added"].items():
            found.setdefault(name, desk_sources.source_from(raw))
        for origin in origins:
            if origin.settings.get("url") and not origin.state.get("removed"):
                # One whose records another keeps is republished by that one.
                republish = origin.settings.get("republish") or KEPT_AS in origin.settings
                settings = {**origin.settings, "name": origin.name, "republish": bool(republish)}
                found.setdefault(origin.name, desk_sources.source_from(settings))
        return {
            name: replace(source, paused=kept["paused"].get(name, source.paused))
            for name, source in found.items()
        }

    def in_file(self) -> dict[str, Source]:
        """The sources of the settings file, as it describes them, by their names here."""
        return sources_in_file(self._settings, self.decided())

    def on_schedule(self) -> set[str]:
        """The names of the sources that are harvested by the clock: those of the settings file and the desk.

        One that the settings no longer name keeps its records, and is harvested only when somebody asks.
        """
        return {*self.in_file(), *self.decided()["added"]}

    def removed_here(self) -> list[str]:
        """The sources that the settings file names and the desk has removed."""
        changed = self.decided()["changed"]
        names = (source_name(source) for source in self._settings.source)
        return [name for name in names if changed.get(name, {}).get("removed")]

    def changed_here(self, name: str) -> dict[str, str]:
        """The fields of a source that the desk has changed, and what the settings file says there."""
        kept = self.decided()
        written = sources_in_file(self._settings, kept).get(name)
        if written is None:
            return {}
        in_file = replace(written, name=desk_sources.name_in_file(kept, name))
        return {field: str(getattr(in_file, field)) for field in changes_of(kept, name)}

    def records(self, name: str) -> int:
        """How many live records a source has brought."""
        with self._store.read() as view:
            origin = view.origin("source", name)
            return view.totals().get(origin.id, (0, 0))[0] if origin is not None else 0

    def take_back(self, name: str) -> None:
        """A source that was removed is one again."""
        job_entries.withdraw(self._store, f"remove {name}")
        with self._store.read() as view:
            origin = view.origin("source", name)
        if origin is not None and origin.state.get("removed"):
            state = {key: value for key, value in origin.state.items() if key != "removed"}
            with self._store.write() as tx:
                tx.state(origin.id, state)

    def is_busy(self, name: str) -> bool:
        """Whether some process reads a source."""
        with self._store.read() as view:
            origin = view.origin("source", name)
        return origin is not None and self._store.busy(f"harvest-{origin.id}")

    def check_idle(self, name: str) -> None:
        """SettingsError if some process reads a source."""
        if self.is_busy(name):
            raise SettingsError(f"{name!r} is being harvested; wait for it, or pause it")

    def check_new_name(self, name: str, wanted: str) -> None:
        """SettingsError if a source cannot be renamed so."""
        if wanted in self.sources():
            raise SettingsError(f"there is a source called {wanted!r} already; give it another name")
        if places := references(self._settings, name):
            raise SettingsError(
                f"{name!r} is named in {' and '.join(places)} of the settings file; "
                "rename it there, in all places: its records stay"
            )

    def rename_records(self, name: str, wanted: str) -> None:
        """Give the records and the state of a source to another name."""
        with permit_to_decide(self._store), self._store.read() as view, self._store.write() as tx:
            origin = view.origin("source", name)
            if origin is not None and not rename_source(view, tx, origin, wanted):
                raise SettingsError(f"a source is or was called {wanted!r} already; give it another name")

    def known(self, name: str) -> Source:
        """The source of a name; SettingsError if there is none."""
        source = self.sources().get(name)
        if source is None:
            raise SettingsError(f"there is no source called {name!r}")
        return source

    def decided(self) -> JsonObject:
        """What was decided at the desk (`desk_sources.read`)."""
        with self._store.read() as view:
            return desk_sources.read(view)

    def keeping(self) -> Decisions:
        """The same, to be changed."""
        return Decisions(self._store)


def clean_name(text: str) -> str:
    """A name of a source in one line, without control characters."""
    return _BLANKS.sub(" ", text).strip()[:NAME]


def changes_of(desk: JsonObject, name: str) -> JsonObject:
    """What the desk has changed of a source of the settings file, by its name here."""
    changes: JsonObject = desk["changed"].get(desk_sources.name_in_file(desk, name), {})
    return changes


def references(settings: Settings, name: str) -> list[str]:
    """The parts of the settings that choose records by the name of a source."""
    chosen = {
        "[[write]]": [choice for write in settings.write for choice in write.from_],
        "[[repository]]": [choice for repository in settings.repository for choice in repository.from_],
        "[source.access]": [source.name for source in settings.source if source.access.is_restricted],
    }
    return [part for part, choices in chosen.items() if name in {c.partition(":")[0] for c in choices}]


class Decisions:
    """The desk's entry, open for changes; one transaction."""

    def __init__(self, store: Store) -> None:
        self._writing = store.write()

    def __enter__(self) -> JsonObject:
        self.tx = self._writing.__enter__()
        self._kept = desk_sources.read(self.tx)
        return self._kept

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            desk_sources.keep(self.tx, self._kept)
        self._writing.__exit__(*error)
