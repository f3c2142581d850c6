"""A copied store has every row as it was, whatever interrupts the copy; until then the old one is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.store.contract.given import Clock, record
from tests.stores import KIND, on_postgresql, store_url

from indlet.cluster.copy_command import copy as copy_command
from indlet.cluster.copying import copy_store
from indlet.errors import StoreError
from indlet.model import Failure, Record
from indlet.store import FileState, Store, open_store
from indlet.store.kept_tables import COUNTERS, LEFT_OUT, LeftOut

MANY = 2500


class Interrupted(Exception):
    pass


@pytest.fixture(params=[(False, False), (False, True), (True, False)], ids=["sqlite", "to-pg", "from-pg"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    if any(request.param) and not on_postgresql():
        pytest.skip(f"needs a PostgreSQL server: make test-cluster, or {KIND}=postgresql")
    old, new = (store_url(tmp_path / str(i), kind) for i, kind in enumerate(request.param))
    return old, new


@pytest.fixture
def source(urls: tuple[str, str]) -> Iterator[Store]:
    clock = Clock()
    with open_store(urls[0], clock=clock) as store:
        fill(store, clock)
        yield store


def fill(store: Store, clock: Clock) -> None:
    with store.write() as tx:
        origin, other = tx.origin("source", "s", {"url": "http://x"}), tx.origin("hierarchy", "h")
        tx.put(origin, [record(str(n), sets=("a:b", "ä") if n % 2 else ()) for n in range(MANY)])
        tx.name_set(origin, "a", "The set")
        tx.put_files(other, [FileState("p\u00e9", "r", 1, 2, "", "", "", "primary", "")])
        tx.note_run(tx.start_run(origin, "harvest"), {"records": MANY}, "complete")
    clock.now += 9.5
    with store.write() as tx:
        tx.delete(origin, [f"oai:x.org:{n}" for n in range(0, 99, 3)])
        tx.put(other, [Record("oai:y:1", {"title": ["T"]}, None, ("z",), raw=b"\0\xff")])
        tx.fail(origin, Failure("oai:x.org:7", "harvest", "no\0title", b"<x"), due=5)
        tx.state(origin, {"token": "t"})
        tx.meta("policy", "{}")
        tx.upsert(LEFT_OUT, [LeftOut(origin, 0, "a/b", "no\0text")])
    store.secret("tokens")


def whole(store: Store) -> list[object]:
    with store.read() as view:
        return [
            list(view.changes()), view.origins(), view.sets(), view.set_names(), view.runs(),
            view.datestamps(), [f._replace(reason=f.reason.replace("\0", "\ufffd")) for f in view.failures()],
            [list(view.files(o.id)) for o in view.origins()], view.meta("policy"), view.meta("tokens"),
            view.count(set_spec="a"), [one.path for one in view.select(LEFT_OUT)],
            sum(one.value for one in view.select(COUNTERS, name="seq")),
        ]  # fmt: skip


def test_a_copy_is_the_store(source: Store, urls: tuple[str, str]) -> None:
    with open_store(urls[1], half_copied=True) as target:
        assert copy_store(source, target) == (MANY + 1, True)
    with open_store(urls[1], create=False, clock=Clock(2_000_000.0)) as target:
        assert whole(target) == whole(source)
        assert target.secret("index") == source.secret("index")  # its index stays valid
        with target.write() as tx:  # and it goes on from there
            assert tx.origin("source", "new") == 3
            assert tx.put(1, [record("1", sets=("a:b", "ä")), record("new")]) == 1
            assert tx.start_run(1, "harvest") == 2
        with target.read() as view:
            assert view.get("oai:x.org:new", [1]) is not None
            assert view.last_seq() == whole(source)[-1] + 2  # type: ignore[operator]


def test_a_copy_that_was_broken_off_goes_on_and_is_not_opened_before(
    source: Store, urls: tuple[str, str]
) -> None:
    heard: list[int] = []

    def report(seq: int) -> None:
        heard.append(seq)
        if len(heard) == 2:
            raise Interrupted

    with open_store(urls[1], half_copied=True) as target:
        with pytest.raises(Interrupted):
            copy_store(source, target, report)
        with pytest.raises(StoreError, match="was not completed"):
            open_store(urls[1])
        assert copy_store(source, target, report).complete
    assert heard == sorted(set(heard))  # nothing was copied twice
    with open_store(urls[1]) as target:
        assert whole(target) == whole(source)


def test_a_source_that_changes_meanwhile_is_copied_by_the_next_run(
    source: Store, urls: tuple[str, str]
) -> None:
    def report(seq: int) -> None:
        with source.write() as tx:
            tx.put(1, [record("0", f"changed at {seq}")])

    with open_store(urls[1], half_copied=True) as target:
        assert not copy_store(source, target, report).complete
        with pytest.raises(StoreError, match="was not completed"):
            open_store(urls[1])
        assert copy_store(source, target).complete
        assert whole(target) == whole(source)
        with pytest.raises(StoreError, match="records of its own"):  # what is in use is not written over
            copy_store(source, target)


def test_a_row_that_differs_ends_the_copy_and_the_old_store_stays(
    source: Store, urls: tuple[str, str]
) -> None:
    before = whole(source)

    def report(seq: int) -> None:
        with open_store(urls[1], half_copied=True) as other, other.write() as tx:
            tx.delete(1, ["oai:x.org:1"])

    with (
        open_store(urls[1], half_copied=True) as target,
        pytest.raises(StoreError, match="go on using the old store"),
    ):
        copy_store(source, target, report)
    with pytest.raises(StoreError, match="was not completed"):
        open_store(urls[1])
    assert whole(source) == before


def test_the_command_says_what_it_did(source: Store, urls: tuple[str, str]) -> None:
    result = CliRunner().invoke(copy_command, ["--from", urls[0], "--to", urls[1]])
    assert result.exit_code == 0, result.output
    assert f"{MANY + 1:,} records, each equal" in result.output
    assert "[store] url" in result.output
