"""The tables of a store and their columns, as every implementation has them: what a copy takes along."""

from __future__ import annotations

from typing import Final, NamedTuple

from indlet.store.contract import DocumentState, FileState
from indlet.store.kept_tables import KEPT_TABLES

# What a transaction writes of a record.
COLUMNS: Final = (
    "seq", "metadata_seq", "origin", "identifier", "datestamp", "metadata_datestamp", "deleted",
    "sets", "language", "length", "resource", "digest", "metadata", "properties", "raw", "vector",
    "positions",
)  # fmt: skip


class Table(NamedTuple):
    key: tuple[str, ...]
    columns: tuple[str, ...]
    order: tuple[str, ...]


def _table(key: str, columns: str, order: str = "") -> Table:
    return Table(tuple(key.split()), tuple(columns.split()), tuple((order or key).split()))


# In the order in which they can be filled: origins come before what refers to them.
TABLES: Final = {
    "origins": _table("id", "id kind name settings state"),
    "records": _table("id", f"id {' '.join(COLUMNS)}", "seq"),
    "ticks": _table("datestamp", "datestamp seq"),
    "sets": _table("id", "id origin spec name"),
    "membership": _table("set_id seq", "set_id seq"),
    "departures": _table("set_id record", "set_id record seq"),
    "files": _table("origin path", f"origin {' '.join(FileState._fields)}"),
    "documents": _table("origin identifier", " ".join(DocumentState._fields)),
    "failures": _table(
        "origin place stage", "origin place stage reason raw at first attempts due"
    ),
    "withheld": _table("origin identifier", "origin identifier at detail kept_by"),
    "alerts": _table("id", "id kind source record reason remedy first at acknowledged acknowledged_by"),
    "grants": _table("id", "id path origin key shows base followed"),
    "grant_records": _table("grant_id record", "grant_id record seq state sets"),
    "runs": _table("id", "id origin kind started finished outcome detail"),
    **{kept.name: Table(kept.key, kept.columns, kept.key) for kept in KEPT_TABLES},
}  # fmt: skip
# Small beside the records, and taken anew at the end of each copy.
RENEWED: Final = (
    "runs", "withheld", "alerts", "failures", "files", "documents", "membership", "departures", "sets",
    "ticks", "grant_records", "grants", *(kept.name for kept in KEPT_TABLES),
)  # fmt: skip
