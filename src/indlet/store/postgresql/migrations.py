"""Steps from one schema version to the next; the table `indlet_schema` says which have been taken."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import psycopg
from psycopg import errors

from indlet.errors import StoreError
from indlet.store.sql_view import Row

Connection = psycopg.Connection[Row]
OLDEST = 130000  # PostgreSQL 13


def first_schema(connection: Connection) -> None:
    connection.execute(files("indlet.store.postgresql").joinpath("schema.sql").read_bytes())


def datestamps_of_metadata(connection: Connection) -> None:
    """Metadata has a place and a datestamp of its own; until now both parts of a record had one.

    Nothing gets another datestamp by this.
    """
    connection.execute("ALTER TABLE records ADD COLUMN metadata_seq bigint NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE records ADD COLUMN metadata_datestamp bigint NOT NULL DEFAULT 0")
    connection.execute("UPDATE records SET metadata_seq = seq, metadata_datestamp = datestamp")
    connection.execute("CREATE UNIQUE INDEX records_metadata_seq ON records (metadata_seq)")


# One function a version. Append only.
STEPS: tuple[Callable[[Connection], None], ...] = (first_schema, datestamps_of_metadata)


def migrate(connection: Connection, place: str, lock: int, *, create: bool, writable: bool) -> None:
    """Make the tables, or bring them to the newest version, each step in its own transaction."""
    _suitable(connection, place)
    version = _version(connection)
    if not writable and version is not None and version < len(STEPS):
        raise StoreError(f"{place}: made by an older indlet, and may not be written; open the primary once")
    if version is None and not create:
        raise StoreError(f"{place}: no indlet store here; name the database in which it was made")
    while version is None or version < len(STEPS):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
            version = _version(connection)  # another process may have been first
            if version is None:
                connection.execute("CREATE TABLE indlet_schema (version integer NOT NULL)")
                connection.execute("INSERT INTO indlet_schema VALUES (0)")
                version = 0
            if version < len(STEPS):
                try:
                    STEPS[version](connection)
                except errors.DuplicateTable as e:
                    raise StoreError(
                        f"{place}: holds other tables ({e.diag.message_primary}); give indlet a database or "
                        "a schema of its own"
                    ) from e
                connection.execute("UPDATE indlet_schema SET version = %s", (version + 1,))
                version += 1
    if version > len(STEPS):
        raise StoreError(
            f"{place}: made by a newer indlet (store version {version}, this one knows {len(STEPS)}); "
            "install that version, or name another database"
        )


def _suitable(connection: Connection, place: str) -> None:
    if connection.info.server_version < OLDEST:
        raise StoreError(f"{place}: PostgreSQL 13 or newer is needed; upgrade the server")
    row = connection.execute("SELECT current_setting('server_encoding'), current_schema()").fetchone()
    assert row is not None
    if row[0] != "UTF8":
        raise StoreError(f"{place}: its encoding is {row[0]}; make a database with ENCODING 'UTF8'")
    if row[1] is None:
        raise StoreError(f"{place}: the schema of its search_path does not exist; create it")


def _version(connection: Connection) -> int | None:
    """None where there is no store."""
    row = connection.execute(
        "SELECT to_regclass(quote_ident(current_schema()) || '.indlet_schema')"
    ).fetchone()
    if row is None or row[0] is None:
        return None
    found = connection.execute("SELECT version FROM indlet_schema").fetchone()
    return int(found[0]) if found else 0
