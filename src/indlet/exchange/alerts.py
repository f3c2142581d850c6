"""Open alerts: each alert with its record, its source, the time, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlencode

import orjson

from indlet.errors import StoreError
from indlet.model import JsonObject
from indlet.oai.dates import written
from indlet.store import Store, StoredAlert, View

# What there are alerts about, and how people call it.
KINDS: Final = {
    "deleted": "a record that was written out was deleted at its origin",
    "changed": "a record that was written out was changed at its origin",
    "returned": "a record that was deleted is there again",
    "rewritten": "files that were written again because [[write]] changed",
    "translation": "a record that cannot be translated, or lost a required field",
    "duplicates": "records that may be of one work",
    "silent": "a source that was not harvested for longer than its interval",
    "failed": "a source whose last runs failed",
    "fewer": "a source that lists nothing, or far fewer records than before",
    "twice": "an origin that is held under two names",
    "folder": "a folder that cannot be read or written",
    "deletions": "deletions that wait for an operator",
}


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that people have to do. `acknowledged_by`: who has seen to it, and when."""

    id: int
    kind: str
    source: str
    record: str
    at: str
    reason: str
    remedy: str
    acknowledged_by: str = ""
    acknowledged: str = ""
    title: str = ""  # of the record

    def to_json(self, base_url: str) -> JsonObject:
        """All of it, with the address of what it is about."""
        return {**asdict(self), "link": base_url + (link(self) or "/admin/alerts")}


def link(alert: Alert) -> str:
    """Where the desk or the portal shows what an alert is about; empty where nothing does."""
    if alert.kind == "duplicates":
        return "/admin/duplicates"
    if alert.kind in ("silent", "failed", "fewer", "twice"):
        return f"/admin/source?{urlencode({'name': alert.source})}"
    return f"/record?{urlencode({'id': alert.record})}" if alert.title and alert.kind != "deleted" else ""


def alerts(store: Store, *, acknowledged: bool = False, kind: str = "", source: str = "") -> Iterator[Alert]:
    """What waits, oldest first; with `acknowledged` also what somebody has seen to.

    `kind` and `source`: those alone.
    """
    with store.read() as view:
        found = [
            alert
            for alert in view.alerts(acknowledged=acknowledged)
            if kind in ("", alert.kind) and source in ("", alert.source)
        ]
        return iter(described(view, found))


def described(view: View, found: Iterable[StoredAlert]) -> list[Alert]:
    """Alerts as people see them, with the titles of their records."""
    titles = _Titles(view)
    return [_shown(alert, titles.of(alert)) for alert in found]


class _Titles:
    """Titles of records. A deleted record has none: then the one that its file was written with."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._written: dict[str, dict[str, str]] = {}  # by task and record

    def of(self, alert: StoredAlert) -> str:
        if not alert.record:
            return ""
        stored = self._view.get(alert.record, metadata_only=True)
        described = orjson.loads(stored.metadata or b"{}") if stored is not None else {}
        return next(iter(described.get("title", ())), "") or self._of_file(alert)

    def _of_file(self, alert: StoredAlert) -> str:
        if alert.source not in self._written:
            task = self._view.origin("write", alert.source)
            files = self._view.files(task.id) if task is not None else ()
            self._written[alert.source] = {file.resource: file.policy for file in files}
        return self._written[alert.source].get(alert.record, "")


def acknowledge(store: Store, which: str, by: str) -> int:
    """Somebody has seen to the alerts of a number, or about a record or source; how many there were."""
    _need_name(by)
    with store.write() as tx:
        with store.read() as view:
            mine = [
                a.id
                for a in view.alerts()
                if which in (str(a.id), a.record, a.source if not a.record else "")
            ]
        count = sum(tx.acknowledge(alert, by.strip()) for alert in mine)
    if not count:
        raise StoreError(f"no alert about {which!r} is open; see  indlet alerts")
    return count


def acknowledge_all(store: Store, by: str, *, kind: str = "", source: str = "", until: str = "") -> int:
    """Somebody has seen to all open alerts of a kind and source (empty: of all); how many there were.

    `until`: not to those that were raised, or raised again, after that second.
    """
    _need_name(by)
    with store.write() as tx:
        with store.read() as view:
            mine = [
                alert.id
                for alert in view.alerts()
                if kind in ("", alert.kind)
                and source in ("", alert.source)
                and (not until or written(alert.at) <= until)
            ]
        return sum(tx.acknowledge(alert, by.strip()) for alert in mine)


def _need_name(by: str) -> None:
    if not by.strip():
        raise StoreError("an alert is acknowledged by somebody: give a name")


def _shown(alert: StoredAlert, title: str) -> Alert:
    seen = written(alert.acknowledged) if alert.acknowledged is not None else ""
    return Alert(
        alert.id, alert.kind, alert.source, alert.record or alert.source, written(alert.at), alert.reason,
        alert.remedy, alert.acknowledged_by, seen, title,
    )  # fmt: skip
