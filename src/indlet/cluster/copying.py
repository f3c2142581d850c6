"""A store copied into another, of the same or another kind: each record with its number, seq and datestamp.

Records are taken in the order of changes, in batches; each batch commits with the seq that it came to, so
that a copy that was broken off goes on from there. The end is one snapshot of the source: its last changes,
all other tables, and then each row of both compared. If the source has not changed since that snapshot, the
copy is complete and the new store can be opened; otherwise the same command goes on. The old store is only
read.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, zip_longest
from typing import Final, NamedTuple

from indlet.errors import StoreError
from indlet.store.contract import COPYING, Store, View
from indlet.store.kept_tables import KEPT_TABLES
from indlet.store.sql_store import TABLES_KEY
from indlet.store.sql_transaction import SqlTransaction
from indlet.store.sql_view import Row, SqlView
from indlet.store.tables import RENEWED, TABLES

_POSITION: Final = "copied"
_BATCH: Final = 1000
_OURS: Final = (COPYING, _POSITION, TABLES_KEY)


class Copied(NamedTuple):
    records: int  # all of them, each found equal
    complete: bool  # otherwise the source has changed meanwhile


def copy_store(source: Store, target: Store, report: Callable[[int], None] = lambda seq: None) -> Copied:
    """Copy, or go on with a copy. `report` hears up to which seq it has come."""
    with target.job("copy"):
        _begin(source, target)
        with source.read() as view:
            _records(_sql(view), target, report)
            _rest(_sql(view), target)
            with target.read() as copied:
                count = _verify(_sql(view), _sql(copied), target.location)
            with source.read() as now:
                complete = _is_unchanged(_sql(view), _sql(now))
        if complete:
            target.note_answer(source.last_answer())
            with target.write() as tx:
                tx.meta(COPYING, "")
        return Copied(count, complete)


def _begin(source: Store, target: Store) -> None:
    """Go on with a copy of this source, or begin one into an empty store."""
    identity = source.secret("index").hex()
    with target.read() as view:
        mark, used = view.meta(COPYING), bool(view.origins())
    if used and mark != identity:
        raise StoreError(
            f"{target.location}: holds records of its own; copy into an empty database or folder instead"
        )
    with target.write() as tx:
        tx.meta(COPYING, identity)


def _records(view: SqlView, target: Store, report: Callable[[int], None]) -> None:
    with target.write() as tx:
        _sql_tx(tx).load("origins", list(view.rows("origins")))
        position = int(tx.meta_value(_POSITION, 0))
    rows = view.rows("records", after=position)
    seq = TABLES["records"].columns.index("seq")
    while batch := list(islice(rows, _BATCH)):
        with target.write() as tx:
            _sql_tx(tx).load("records", batch)
            tx.meta(_POSITION, batch[-1][seq])
        report(batch[-1][seq])


def _rest(view: SqlView, target: Store) -> None:
    with target.write() as tx:
        for name in RENEWED:
            _sql_tx(tx).clear(name)
        for name in TABLES:
            if name in RENEWED:
                rows = view.rows(name)
                while batch := list(islice(rows, _BATCH)):
                    _sql_tx(tx).load(name, batch)
        for key, value in view.metas().items():
            if key not in _OURS:
                tx.meta(key, value)
        _sql_tx(tx).loaded()


def _verify(view: SqlView, copied: SqlView, place: str) -> int:
    """Compare each row of both; how many records there are."""
    count = 0
    for name in TABLES:
        for one, other in zip_longest(view.rows(name), copied.rows(name)):
            if one is None or other is None or _plain(one) != _plain(other):
                raise StoreError(
                    f"{place}: {name} {_describe_row(one)} was copied as {_describe_row(other)}"
                    f"{_different(name, one, other)}; "
                    "go on using the old store, and copy again into an empty one"
                )
            count += name == "records"
    metas = [{k: v for k, v in of.metas().items() if k not in _OURS} for of in (view, copied)]
    if metas[0] != metas[1]:
        raise StoreError(f"{place}: single values differ from the old store's; copy again into an empty one")
    return count


def _is_unchanged(view: SqlView, now: SqlView) -> bool:
    """Whether nothing was committed between two snapshots: each run leaves a trace in one of these."""
    if now.last_seq() != view.last_seq() or now.metas() != view.metas():
        return False
    names = ("origins", "runs", "failures", *(table.name for table in KEPT_TABLES))
    return all(list(now.rows(name)) == list(view.rows(name)) for name in names)


def _plain(row: Row) -> Row:
    """Not every database keeps a NUL in text."""
    return tuple(v.replace("\0", "\ufffd") if isinstance(v, str) and "\0" in v else v for v in row)


def _different(table: str, one: Row | None, other: Row | None) -> str:
    """The columns that differ, where both rows are there."""
    if one is None or other is None:
        return ""
    pairs = zip(TABLES[table].columns, _plain(one), _plain(other), strict=True)
    return f" (other {', '.join(column for column, a, b in pairs if a != b)})"


def _describe_row(row: Row | None) -> str:
    return "nothing" if row is None else repr(row[:5])[:200]


def _sql(view: View) -> SqlView:
    assert isinstance(view, SqlView)
    return view


def _sql_tx(tx: object) -> SqlTransaction:
    assert isinstance(tx, SqlTransaction)
    return tx
