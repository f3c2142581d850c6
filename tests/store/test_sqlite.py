"""SQLite's store: stores of earlier releases, foreign files, folders that cannot be used."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from tests.store.contract.given import listed
from tests.store.old_values import VALUES, assert_moved

from indlet.errors import SettingsError, StoreError
from indlet.model import Record, TermVector
from indlet.oai.read import canonical
from indlet.settings import Settings
from indlet.store import Store, configured_for, open_configured, open_store, packed
from indlet.store.sqlite.migrations import STEPS, first_schema, migrate, without_fields
from indlet.store.sqlite.store import IDLE_CONNECTIONS, IDLE_SECONDS


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path)


def test_a_store_is_opened_by_its_url(store: Store, tmp_path: Path) -> None:
    with store.write() as tx:
        tx.origin("source", "s")
    for url in (store.url, f"sqlite://{tmp_path}", f"sqlite:///{tmp_path}"):
        with open_store(url, create=False, local_folder=tmp_path / "here") as again, again.read() as view:
            assert [origin.name for origin in view.origins()] == ["s"]
            assert (again.local_folder, again.location) == (tmp_path / "here", store.location)
    settings = configured_for(store, Settings())
    with open_configured(settings) as again:
        assert (again.location, again.local_folder) == (store.location, store.local_folder)
    with pytest.raises(SettingsError, match="no store can be opened"):
        open_store("mysql://root@localhost/x")


def connections(store: Store) -> int:
    # By the journal: SQLite keeps descriptors of the store itself for later, while it is locked.
    files = [file.readlink() for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return files.count(Path(f"{store.location}-wal"))


def test_a_burst_of_readers_leaves_few_connections(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as readers:
        for _ in range(30):
            readers.enter_context(store.read())
        assert connections(store) == 30
    assert connections(store) == IDLE_CONNECTIONS
    later = time.monotonic() + IDLE_SECONDS + 1
    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", lambda: later)
        with store.read() as view:
            assert view.last_seq() == 0
    assert connections(store) == 1, "those that nobody has needed since are closed"
    with store.read() as view:
        assert view.last_seq() == 0


def test_who_only_looks_keeps_no_job_from_beginning(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.job("crawl"):
        pass
    with (tmp_path / "crawl.lock").open("rb") as looking, monkeypatch.context() as patched:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not store.busy("crawl"), "nor does another look see one"
        patched.setattr(time, "sleep", lambda seconds: fcntl.flock(looking, fcntl.LOCK_UN))
        with store.job("crawl"):
            assert store.busy("crawl")
    assert not store.busy("crawl")


def test_values_of_an_older_store_become_rows_of_tables(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as connection:
        for step in STEPS[:-1]:
            step(connection)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", VALUES.items())
        connection.execute(f"PRAGMA user_version = {len(STEPS) - 1}")
    with Store.open(tmp_path) as store, store.read() as view:
        assert_moved(view)


def test_a_store_of_the_first_release_is_brought_up_to_date(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        first_schema(connection)
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's')")
        connection.execute(
            "INSERT INTO records VALUES (7, 1, 1, 'oai:x:1', 1000, 0, 'a', 'en', 1, 0, x'00', "
            "?, ?, ?, ?, NULL, ?)",
            (b'{"title":["Wings"]}', b"{}", b"<x/>", b"1 wing", b"1 old"),
        )
        connection.execute("INSERT INTO meta VALUES ('seq', 1)")
        connection.execute("INSERT INTO ticks VALUES (1000, 1)")
        connection.execute("PRAGMA user_version = 1")
    with Store.open(tmp_path) as store:
        with store.read() as view:
            (stored,) = view.changes()
        assert (stored.id, stored.vector, stored.fields) == (7, b"1 wing", b"")
        with store.write() as tx:
            assert tx.put(1, [Record("oai:x:1", {"title": ["Wings"]}), Record("oai:x:2")]) == 2


def test_metadata_that_a_kernel_had_kept_as_it_came_is_brought_into_canonical_form(tmp_path: Path) -> None:
    """A record that comes again unchanged after an upgrade keeps its datestamp."""
    came = (
        b'<oai_dc:dc xmlns:oai_dc="urn:oai_dc" xmlns:xsi="urn:xsi" xmlns:dc="urn:dc">'
        b"<dc:title>Wings</dc:title></oai_dc:dc>"
    )
    form = canonical(etree.fromstring(came))
    again = Record("oai:x:1", {"title": ["Wings"]}, TermVector.of({"wing": 1}), raw=form, resource="r")
    before = packed(dataclasses.replace(again, raw=came))
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        first_schema(connection)
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's'), ('hierarchy', 'h')")
        for origin in (1, 2):
            connection.execute(
                "INSERT INTO records VALUES (?, ?, ?, ?, 1000, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'')",
                (origin, origin, origin, *before[:1], *before[2:]),
            )
        connection.execute("INSERT INTO meta VALUES ('seq', 2)")
        connection.execute("INSERT INTO ticks VALUES (1000, 1)")
        connection.execute("PRAGMA user_version = 1")
    with Store.open(tmp_path) as store, store.write() as tx:
        assert tx.put(1, [again]) == 0
        # What a hierarchy of our own provides is served as it is.
        assert tx.put(2, [dataclasses.replace(again, raw=came)]) == 0
    (one, two) = listed(Store.open(tmp_path))
    assert (one.raw, two.raw) == (form, came)


def test_nothing_gets_another_datestamp_by_an_upgrade(tmp_path: Path) -> None:
    made = [
        Record(f"oai:x:{n}", {"title": [str(n)]}, TermVector.of({"wing": 1}), ("a",), raw=b"<x/>")
        for n in (1, 2)
    ]
    with contextlib.closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as connection:
        for step in STEPS[:6]:
            step(connection)
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's')")
        for n, one in enumerate(map(packed, made), 1):
            connection.execute(
                "INSERT INTO records VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (n, 10 - n, one.identifier, 3000 - n, *one[1:]),
            )
        connection.execute("INSERT INTO meta VALUES ('seq', 9)")
        connection.execute("INSERT INTO ticks VALUES (2998, 8), (2999, 9)")
        connection.execute("INSERT INTO sets VALUES (1, 1, 'a', '')")
        connection.execute("INSERT INTO membership VALUES (1, 8), (1, 9)")
        connection.execute("PRAGMA user_version = 6")
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            assert tx.put(1, made) == 0
        for only in (False, True):
            with store.read() as view:
                found = view.headers(9, set_spec="a", since=2998, metadata_only=only)
                assert [row[:3] for row in found] == [(8, "oai:x:2", 2998), (9, "oai:x:1", 2999)]
        with store.write() as tx:
            tx.put(1, [dataclasses.replace(made[0], vector=TermVector.of({"wing": 2}))])
        with store.read() as view:
            assert [row[:3] for row in view.headers(9, metadata_only=True)] == [row[:3] for row in found]
            assert view.headers(9)[-1][:2] > (9, "oai:x:1")
        assert store.check() == []
    with contextlib.closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection:
        indexes = {row[1] for row in connection.execute("PRAGMA index_list(records)")}
    assert indexes == {"records_identifier", "records_seq", "records_resource", "records_metadata_seq"}


def test_a_newer_or_foreign_file_is_refused(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer indlet"):
        Store.open(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(tmp_path / "other")
    with pytest.raises(StoreError, match="no indlet store"):
        Store.open(tmp_path / "none", create=False)


def test_a_folder_that_cannot_be_written_is_told_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").mkdir()  # even root cannot open this as a file
    with pytest.raises(StoreError, match="give the right to read and write it"):
        Store.open(tmp_path)


def test_a_disk_that_is_full_while_a_store_is_made_is_called_that(tmp_path: Path) -> None:
    class Small(sqlite3.Connection):
        """A disk with room for three pages."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.execute("PRAGMA max_page_count = 3")

    connection = sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None, factory=Small)
    with contextlib.closing(connection), pytest.raises(sqlite3.OperationalError, match="full"):
        migrate(connection, "here")


def test_failures_of_an_older_store_are_owed_once_it_is_brought_up_to_date(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        first_schema(connection)
        without_fields(connection)
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's'), ('hierarchy', 'h')")
        for row in (
            (1, "oai:x:1", "get", "500"),
            (1, "oai:x:1", "harvest", "no title"),
            (1, "oai:x:2", "harvest", "no title"),
            (1, "a record of http://x (00)", "harvest", "a record without identifier"),
            (2, "a.pdf", "extract", "encrypted"),
        ):
            connection.execute("INSERT INTO failures VALUES (?, ?, ?, ?, x'', 1000)", row)
        connection.execute("PRAGMA user_version = 2")
    with Store.open(tmp_path) as store, store.read() as view:
        assert [(f.where, f.stage, f.first, f.attempts, f.due) for f in view.failures()] == [
            ("a record of http://x (00)", "harvest", 1000, 1, None),
            ("oai:x:1", "harvest", 1000, 1, 1000),
            ("oai:x:2", "harvest", 1000, 1, 1000),
            ("a.pdf", "extract", 1000, 1, None),
        ]
        assert [f.where for f in view.open_failures(1) if f.due] == ["oai:x:1", "oai:x:2"]
