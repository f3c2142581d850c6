"""PostgreSQL's own faults: a server that is down, restarted or full, a lost permit, a reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from hashlib import sha256

import pytest
from tests.store.contract.given import record
from tests.stores import KIND, PostgresServer, on_postgresql

from indlet.errors import StoreError, StoreFull, StoreUnavailable
from indlet.limits import FREE_DISK
from indlet.store import Store, open_store, packed
from indlet.store.tables import COLUMNS

pytestmark = pytest.mark.skipif(not on_postgresql(), reason=f"needs PostgreSQL: {KIND}=postgresql")
psycopg = pytest.importorskip("psycopg")
from tests.store.old_values import VALUES, assert_moved  # noqa: E402

from indlet.cluster.postgresql.migrations import first_schema  # noqa: E402
from indlet.cluster.postgresql.store import PostgresStore  # noqa: E402


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of this test's own, which it may stop."""
    started = PostgresServer()
    yield started
    started.remove()


@pytest.fixture
def store(server: PostgresServer) -> Iterator[Store]:
    with open_store(server.url) as opened:
        yield opened


def put(store: Store, *names: str) -> None:
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), [record(name) for name in names])


def held(store: Store) -> list[str]:
    with store.read() as view:
        return [s.identifier.rpartition(":")[2] for s in view.changes()]


def sessions(server: PostgresServer, statement: str) -> None:
    """End sessions of others, chosen by what they did last, as a cut network or a restart would."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid != pg_backend_pid() AND application_name = 'indlet' AND query LIKE %s",
            (statement,),
        )


def test_values_of_an_older_store_become_rows_of_tables(server: PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        first_schema(connection)
        connection.execute("CREATE TABLE indlet_schema (version integer NOT NULL)")
        connection.execute("INSERT INTO indlet_schema VALUES (1)")
        for key, value in VALUES.items():
            form = value if isinstance(value, bytes) else str(value).encode()
            connection.execute("INSERT INTO meta VALUES (%s, %s, %s)", (key, type(value).__name__, form))
    with open_store(server.url) as store, store.read() as view:
        assert_moved(view)


def test_nothing_gets_another_datestamp_by_an_upgrade(server: PostgresServer) -> None:
    made = [record("one"), record("two")]
    with psycopg.connect(server.url, autocommit=True) as connection:
        first_schema(connection)
        connection.execute("CREATE TABLE indlet_schema (version integer NOT NULL)")
        connection.execute("INSERT INTO indlet_schema VALUES (1)")
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's')")
        columns = [name for name in COLUMNS if not name.startswith("metadata_")]
        for n, one in enumerate(map(packed, made), 1):
            marks = ", ".join(["%s"] * (len(columns) + 1))
            connection.execute(
                f"INSERT INTO records (id, {', '.join(columns)}) VALUES ({marks})",
                (n, 7 + n, 1, one.identifier, 2990 + n, *one[1:]),
            )
        connection.execute("INSERT INTO meta VALUES ('seq', 'int', '9')")
        connection.execute("INSERT INTO ticks VALUES (2991, 8), (2992, 9)")
    with open_store(server.url) as store:
        with store.write() as tx:
            assert tx.put(1, made) == 0
        for only in (False, True):
            with store.read() as view:
                found = [row[:3] for row in view.headers(9, since=2992, metadata_only=only)]
            assert found == [(9, "oai:x.org:two", 2992)]


def test_a_restarted_server_is_connected_to_again(server: PostgresServer, store: Store) -> None:
    put(store, "one")
    assert held(store) == ["one"]
    server.stop()
    server.start()
    assert held(store) == ["one"]
    put(store, "two")
    assert held(store) == ["one", "two"]


def test_a_server_that_comes_back_is_waited_for(server: PostgresServer, store: Store) -> None:
    put(store, "one")
    server.stop()
    back = threading.Timer(1.0, server.start)
    back.start()
    put(store, "two")
    back.join()
    assert held(store) == ["one", "two"]


def test_a_server_that_is_down_is_told_as_that(server: PostgresServer, store: Store) -> None:
    server.stop()
    try:
        with pytest.raises(StoreUnavailable, match=r"cannot be reached.*correct \[store\] url"):
            held(store)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            open_store(server.url)
    finally:
        server.start()
    assert held(store) == []


def test_a_transaction_that_is_cut_leaves_nothing(server: PostgresServer, store: Store) -> None:
    put(store, "one")
    with pytest.raises(StoreUnavailable, match="run again"), store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [record("two")])
        sessions(server, "%")
        tx.put(origin, [record("three")])
    assert held(store) == ["one"]
    put(store, "two")
    assert held(store) == ["one", "two"]


def test_a_commit_whose_answer_was_lost_is_looked_up(server: PostgresServer, store: Store) -> None:
    """The server ends the session while it waits for a standby that never answers: the commit stands."""
    put(store, "one")
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        time.sleep(0.3)

    def cut() -> None:
        sessions(server, "COMMIT%")
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("SET synchronous_commit = local")
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")

    later = threading.Timer(1.0, cut)
    later.start()
    put(store, "two")
    later.join()
    assert held(store) == ["one", "two"]


def test_who_has_lost_its_permit_commits_nothing_more(server: PostgresServer, store: Store) -> None:
    put(store, "one")
    with open_store(server.url) as other, store.job("harvest-1"):
        put(store, "two")
        sessions(server, "SELECT pg_try_advisory_lock%")
        with other.job("harvest-1"):
            put(other, "three")
            with pytest.raises(StoreUnavailable, match="permit for 'harvest-1' was lost"):
                put(store, "four")
    with store.job("harvest-1"):
        put(store, "five")
    assert held(store) == ["one", "two", "three", "five"]


def test_a_full_disk_is_called_that(store: Store) -> None:
    from indlet.cluster.postgresql.driver_errors import ours

    told = ours(psycopg.errors.DiskFull("could not extend file: No space left on device"), store.location)
    assert isinstance(told, StoreError)
    assert "disk is full; nothing was lost" in str(told)


def test_a_commit_leaves_room_on_the_disk_of_a_server_on_this_machine(
    server: PostgresServer, store: Store
) -> None:
    assert isinstance(store, PostgresStore)
    assert store.disk_folder == server.folder / "data"
    put(store, "one")
    store.free_disk = 1 << 60
    with pytest.raises(StoreFull, match="bytes are free on the disk"):
        put(store, "two")
    with store.write() as tx:
        assert tx.delete(1, ["oai:x.org:one"]) == 1  # deletions make room
    store.free_disk = FREE_DISK
    put(store, "two")
    assert held(store) == ["one", "two"]


def test_the_disk_of_a_server_whose_data_folder_is_not_shown_is_not_guessed(
    server: PostgresServer, store: Store
) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE writer LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO writer")
    with open_store(server.url.replace("indlet@", "writer@"), create=False) as other:
        assert isinstance(other, PostgresStore)
        assert other.writable and other.disk_folder is None
        other.free_disk = 1 << 60
        put(other, "one")


def test_a_record_whose_identifier_no_index_takes_is_a_failure_of_its_own(store: Store) -> None:
    long = "".join(sha256(bytes([n])).hexdigest() for n in range(50))  # nothing to compress
    put(store, "one", long, "two")
    assert held(store) == ["one", "two"]
    with store.read() as view:
        [origin] = view.origins()
        [failed] = view.failures(origin.id)
    assert failed.where.startswith(f"oai:x.org:{long[:400]}") and "cannot index" in failed.reason
    put(store, long[:2500])
    assert held(store) == ["one", "two", long[:2500]]


def test_the_time_of_a_standby_is_that_until_which_it_is_complete(
    server: PostgresServer, store: Store
) -> None:
    put(store, "one")
    server.stop("fast")
    standby = server.standby()
    server.start()
    try:
        put(store, "two")
        with open_store(standby.url) as shown:
            while held(shown) != ["one", "two"]:
                time.sleep(0.02)
            latest = store.now()
            server.stop()  # from here on nothing new can come
            complete = shown.now()
            with shown.read() as view:
                dates = view.datestamps()
            assert dates is not None and dates[1] <= complete <= latest
            time.sleep(0.05)
            assert shown.now() == complete
    finally:
        standby.remove()
        server.start()


def test_a_role_that_may_only_read_does(server: PostgresServer, store: Store) -> None:
    put(store, "one")
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("CREATE ROLE reader LOGIN")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    with open_store(server.url.replace("indlet@", "reader@")) as reading:
        assert held(reading) == ["one"]
        assert not reading.writable
        with pytest.raises(StoreError, match="may not be written"):
            put(reading, "two")


def test_a_password_is_never_told(server: PostgresServer) -> None:
    url = "postgresql://user:secret@127.0.0.1:1/none?password=secret"
    with pytest.raises(StoreUnavailable) as told:
        open_store(url)
    assert "secret" not in str(told.value)
    assert "postgresql://user@127.0.0.1:1/none" in str(told.value)


def test_a_newer_or_foreign_schema_is_refused(server: PostgresServer, store: Store) -> None:
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("UPDATE indlet_schema SET version = 99")
        with pytest.raises(StoreError, match="newer indlet"):
            open_store(server.url)
        admin.execute("CREATE SCHEMA foreign_tables CREATE TABLE records (x integer)")
        with pytest.raises(StoreError, match="holds other tables"):
            open_store(f"{server.url}&options=-c%20search_path%3Dforeign_tables")
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
        with pytest.raises(StoreError, match="encoding is LATIN1"):
            open_store(server.url.replace("/postgres?", "/latin?"))


def test_tables_that_a_restore_has_made_begin_a_new_epoch(server: PostgresServer) -> None:
    def opened() -> tuple[str, bytes]:
        with open_store(server.url) as store:
            return store.epoch(), store.secret("tokens")

    first = opened()
    assert opened() == first
    with psycopg.connect(server.url, autocommit=True) as connection:
        # What pg_restore --clean does: tables of the same rows, and the same single values.
        connection.execute("ALTER TABLE records RENAME TO dumped")
        connection.execute("CREATE TABLE records (LIKE dumped INCLUDING ALL)")
        connection.execute("INSERT INTO records SELECT * FROM dumped")
        connection.execute("DROP TABLE dumped")
    epoch, tokens = opened()
    assert epoch.partition(":")[0] == first[0].partition(":")[0]
    assert epoch != first[0] and tokens != first[1] and opened() == (epoch, tokens)
