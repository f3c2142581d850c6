"""Values of `meta` that earlier versions wrote whole, as rows of the tables that replace them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from indlet.store import kept_tables as kept
from indlet.store.kept_tables import KeptTable

Json = Any
Row = tuple[Json, ...]
Rows = Iterator[tuple[KeptTable[Json], Row]]


def moved_values(values: Mapping[str, Json]) -> tuple[list[str], dict[str, list[Row]]]:
    """The keys that leave `meta`, and by table the rows that they become."""
    keys, tables = [], dict[str, list[Row]]()
    for key, value in values.items():
        if (rows := _rows(key, value)) is not None:
            keys.append(key)
            for table, row in rows:
                tables.setdefault(table.name, []).append(row)
    return keys, tables


def _rows(key: str, value: Json) -> Rows | None:
    """None if a value stays where it is."""
    name, colon, rest = key.partition(":")
    if key in ("seq", "set_names"):
        return iter([(kept.COUNTERS, (key, int(value)))])
    if key == "answered":
        return iter([(kept.ANSWERED, (key, int(value)))])
    if colon and name == "written":
        return iter([(kept.WRITTEN_ECHOES, (rest, str(value)))])
    if colon and name in _OF_ORIGIN and rest.isdigit():
        return _OF_ORIGIN[name](int(rest), _json(value))
    return _WHOLE[key](_json(value)) if key in _WHOLE else None


def _json(value: Json) -> Json:
    return json.loads(value) if value else []


def _items(value: Json) -> Iterator[tuple[str, Json]]:
    return iter(dict(value).items())


def _left_out(origin: int, value: Json) -> Rows:
    for number, (path, reason) in enumerate(value):
        yield kept.LEFT_OUT, (origin, number, path, reason)


def _withdrawn(origin: int, value: Json) -> Rows:
    for identifier, mark in _items(value):
        detail = (str(mark.get(name, "")) for name in ("by", "at", "path"))
        yield kept.WITHDRAWN, (origin, identifier, *detail)


def _claims(origin: int, value: Json) -> Rows:
    for identifier, claim in _items(value):
        if len(identifier.encode()) <= kept.LONGEST_KEY:
            yield kept.ECHO_CLAIMS, (origin, identifier, claim)


def _credentials(origin: int, value: Json) -> Rows:
    user, password, server, *_ = [*map(str, value), "", "", ""]
    yield kept.CREDENTIALS, (origin, user, password, server)


def _decisions(value: Json) -> Rows:
    for kind, sources in _items(value):
        for name, detail in _items(sources):
            yield kept.SOURCE_DECISIONS, (kind, name, json.dumps(detail))


def _searches(value: Json) -> Rows:
    for one in value:
        filters = json.dumps(one.get("filters", {}))
        row = kept.StoredSearch(
            one["id"], one["email"], one["query"], filters, one.get("page", "/"), one.get("every", "weekly"),
            one.get("language", "en"), one.get("created", 0.0), int(one.get("confirmed", False)),
            one.get("sent", 0.0), one.get("seq", 0),
        )  # fmt: skip
        yield kept.SAVED_SEARCHES, row


def _acts(value: Json) -> Rows:
    for number, entry in enumerate(value, 1):
        yield kept.DESK_LOG, (number, *entry)


def _sessions(value: Json) -> Rows:
    for session, until in _items(value):
        yield kept.ENDED_SESSIONS, (session, float(until))


def _hosts(value: Json) -> Rows:
    for host in value:
        yield kept.PUBLIC_HOSTS, (host,)


def _ends(value: Json) -> Rows:
    for job, (ended, error, worker, *said) in _items(value):
        yield kept.JOB_ENDS, (job, ended, error, worker, said[0] if said else "")


def _requests(value: Json) -> Rows:
    for job, request in _items(value):
        records = json.dumps(request["only"])
        yield kept.JOB_REQUESTS, (job, request["asked"], int(request["full"]), records)


_OF_ORIGIN = {"left-out": _left_out, "withdrawn": _withdrawn, "echoes": _claims, "credentials": _credentials}
_WHOLE = {
    "desk": _decisions,
    "saved-searches": _searches,
    "desk log": _acts,
    "ended sessions": _sessions,
    "public hosts": _hosts,
    "worker jobs": _ends,
    "jobs asked for": _requests,
}
