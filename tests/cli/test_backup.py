"""A backup taken while a store is written, restored: every record, a search, and what must not come back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from indlet.cli import cli
from indlet.errors import IndletError, StoreError
from indlet.model import Record, TermVector
from indlet.service.index import follow
from indlet.service.search.library import Library
from indlet.settings import Settings
from indlet.store import Store, back_up, open_store
from indlet.store import restore as restored
from indlet.store.backup import contents
from indlet.store.tables import TABLES


def put(store: Store, numbers: range) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "s", {"url": "http://s.example/oai"})
        records = [
            Record(f"oai:s:{n}", {"title": [f"Wing {n % 7}"]}, TermVector.of({"wing": n % 5 + 1}), ("a:b",))
            for n in numbers
        ]
        tx.put(origin, records)


def rows(store: Store) -> dict[str, list[object]]:
    with store.read() as view:
        return {name: list(view.rows(name)) for name in TABLES}  # type: ignore[attr-defined]


def run(*arguments: object) -> str:
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data") as opened:
        put(opened, range(300))
        with opened.write() as tx:
            tx.delete(tx.origin("source", "s"), ["oai:s:3", "oai:s:4"])
        follow.catch_up(opened)
        yield opened


def test_every_record_and_a_search_come_back(store: Store, tmp_path: Path) -> None:
    settings = tmp_path / "indlet.toml"
    settings.write_text('data = "data"\n')
    said = run("backup", tmp_path / "b", "--config", settings)
    assert "298 records, 2 deleted ones" in said
    before = rows(store)
    put(store, range(300, 310))  # later than the backup
    said = run("restore", tmp_path / "b", "--data", tmp_path / "new")
    assert "298 records" in said and "the index was made anew" in said
    with open_store(tmp_path / "new") as again:
        assert rows(again) == before
        with Library(store, Settings(), follow=False) as old, Library(again, Settings(), follow=False) as new:
            hits = [[(h.identifier, h.score) for h in x.search("wing", limit=400).hits] for x in (old, new)]
        assert len(hits[1]) == 298 and hits[0] == hits[1], "the old index knows nothing of what came later"
        # What was given out after the backup is worth nothing now.
        assert all(again.secret(name) != store.secret(name) for name in ("tokens", "sessions", "index"))
    for place in (tmp_path / "b", tmp_path / "new"):
        modes = {path.stat().st_mode & 0o077 for path in (place, *place.iterdir())}
        assert modes == {0}
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [
        "backup.json",
        "indlet.toml",
        "store.sqlite",
    ]


def test_a_backup_is_one_moment_of_a_store_that_is_written(store: Store, tmp_path: Path) -> None:
    """Each transaction adds ten records: whatever the moment, a backup holds whole ones only."""
    stop, written = threading.Event(), [300]

    def write() -> None:
        while not stop.is_set() and written[0] < 20_000:
            put(store, range(written[0], written[0] + 10))
            written[0] += 10

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            back_up(store, tmp_path / f"b{number}")
    finally:
        stop.set()
        writer.join()
    counts = []
    for number in range(5):
        found = restored(tmp_path / f"b{number}", tmp_path / f"new{number}")
        with closing(open_store(tmp_path / f"new{number}")) as again, again.read() as view:
            (origin,) = view.origins()
            held = set(view.identifiers(origin.id)) | {name for name, _ in view.withdrawn(origin.id, 9)}
        assert found.records + 2 == len(held) and len(held) % 10 == 0
        assert held == {f"oai:s:{n}" for n in range(len(held))}
        counts.append(len(held))
    assert counts == sorted(counts) and 300 < counts[-1] <= written[0]


@pytest.mark.parametrize("how", ["a byte", "cut", "list", "deep", "names", "none"])
def test_a_backup_that_is_not_whole_is_refused(store: Store, tmp_path: Path, how: str) -> None:
    place, listed = tmp_path / "b", tmp_path / "b" / "backup.json"
    back_up(store, place)
    file = place / "store.sqlite"
    raw = bytearray(file.read_bytes())
    if how == "a byte":
        raw[len(raw) // 2] ^= 1
        file.write_bytes(raw)
    elif how == "cut":
        file.write_bytes(raw[:-4096])
    elif how == "list":
        listed.write_text("{")
    elif how == "deep":
        listed.write_text("[" * 500_000)
    elif how == "names":
        told = json.loads(listed.read_text())
        told["files"] |= {"../../escape": "0"}
        listed.write_text(json.dumps(told))
    else:
        listed.unlink()
    with pytest.raises(StoreError, match=r"digest|does not list|no backup"):
        restored(place, tmp_path / "new")
    assert not (tmp_path / "new" / "store.sqlite").exists()


def test_nothing_is_overwritten_and_nothing_half_stays(store: Store, tmp_path: Path) -> None:
    back_up(store, tmp_path / "b")
    with pytest.raises(StoreError, match="is there already"):
        back_up(store, tmp_path / "b")
    with pytest.raises(StoreError, match="is not empty"):
        restored(tmp_path / "b", tmp_path / "data")
    with pytest.raises(StoreError, match="name a folder that is there"):
        back_up(store, tmp_path / "no" / "such")
    (tmp_path / "c.partial").mkdir()
    with pytest.raises(StoreError, match="broken off"):
        back_up(store, tmp_path / "c")
    assert (tmp_path / "c.partial").exists() and not (tmp_path / "c").exists()


def test_a_damaged_store_is_not_backed_up(store: Store, tmp_path: Path) -> None:
    store.close()
    file = tmp_path / "data" / "store.sqlite"
    raw = bytearray(file.read_bytes())
    raw[32768 * 2 : 32768 * 3] = b"\xff" * 32768
    file.write_bytes(raw)
    with (
        closing(Store.open(tmp_path / "data")) as damaged,
        pytest.raises(IndletError, match=r"damaged|malformed"),
    ):
        back_up(damaged, tmp_path / "b")
    assert not (tmp_path / "b").exists() and not (tmp_path / "b.partial").exists()


def test_the_disk_must_have_room(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indlet.store.backup._ROOM", 2**60)
    with pytest.raises(StoreError, match="make room"):
        back_up(store, tmp_path / "b")
    assert not list(tmp_path.glob("b*"))


def test_what_a_backup_holds_is_listed(store: Store, tmp_path: Path) -> None:
    told = json.loads(run("backup", tmp_path / "b", "--data", tmp_path / "data", "--json"))
    assert (told["records"], told["deleted"], told["position"]) == (298, 2, 302)
    assert contents(tmp_path / "b").files.keys() == {"store.sqlite"}


def test_the_names_of_what_was_restored_are_on_the_disk(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(store, tmp_path / "b")
    synced: list[Path] = []
    monkeypatch.setattr("indlet.store.backup.sync", synced.append)
    data = tmp_path / "new"
    restored(tmp_path / "b", data)
    assert synced == [data / "store.sqlite.new", data, tmp_path]
