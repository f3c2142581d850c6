"""Steps from one schema version to the next; `PRAGMA user_version` says which have been taken."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path

from indlet import _core
from indlet.errors import StoreError
from indlet.settings import without_credentials
from indlet.store.content import encode_content
from indlet.store.kept_tables import ANSWERED, KEPT_TABLES
from indlet.store.old_values import moved_values
from indlet.store.sql_departures import SCHEMA as DEPARTURES
from indlet.store.sql_documents import SCHEMA as DOCUMENTS
from indlet.store.sql_grants import SCHEMA as GRANTS
from indlet.store.sql_store import EPOCH, IDENTITY
from indlet.store.sql_waiting import SCHEMA


def first_schema(connection: sqlite3.Connection) -> None:
    script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    for statement in _statements(script):
        connection.execute(statement)


def without_fields(connection: sqlite3.Connection) -> None:
    """The terms of fields follow from the metadata; the index makes them for itself."""
    connection.execute("ALTER TABLE records DROP COLUMN fields")


def failures_with_retries(connection: sqlite3.Connection) -> None:
    """A failure tells since when and how often; a source's record also when to ask for it again."""
    connection.execute("ALTER TABLE failures ADD COLUMN first INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE failures ADD COLUMN attempts INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE failures ADD COLUMN due INTEGER")
    connection.execute("UPDATE failures SET first = at")
    sources = "origin IN (SELECT id FROM origins WHERE kind = 'source')"
    # Versions before this one asked again only for failures of the stage "get".
    connection.execute(f"UPDATE OR REPLACE failures SET stage = 'harvest' WHERE stage = 'get' AND {sources}")
    # A record without an identifier cannot be asked for.
    connection.execute(f"UPDATE failures SET due = at WHERE {sources} AND place NOT LIKE 'a record of %'")
    connection.execute("CREATE INDEX failures_due ON failures (origin, due) WHERE due IS NOT NULL")


def canonical_metadata(connection: sqlite3.Connection) -> None:
    """Harvested metadata is kept in canonical form; where a kernel had read it, it was kept as it came.

    So what comes again unchanged is unchanged, whatever way it is read.
    """
    from indlet.oai.read import canonical, parsed  # lxml: only where there is something to bring up to date

    rows = connection.execute(
        "SELECT r.id, sets, language, length, resource, metadata, properties, raw, vector, positions "
        "FROM records r JOIN origins o ON o.id = r.origin WHERE o.kind = 'source' AND NOT deleted "
        # The canonical form declares the prefix dc where it is used, and that is never in the root's tag.
        "AND instr(substr(raw, 1, instr(raw, x'3e')), x'786d6c6e733a64633d') > 0"
    )
    while batch := rows.fetchmany(1000):
        changed = []
        for id, sets, language, length, resource, metadata, properties, raw, vector, positions in batch:
            node = parsed(raw)
            if node is not None and (form := canonical(node)) != raw:
                parts = metadata, properties, form, vector, positions
                digest = _core.record_digest((sets, language, length, resource), parts)
                changed.append((form, digest, id))
        connection.executemany("UPDATE records SET raw = ?, digest = ? WHERE id = ?", changed)


def credentials_out_of_urls(connection: sqlite3.Connection) -> None:
    """User and password of a source stand apart from its URL, which is shown; also in what was said of it."""
    rows = connection.execute("SELECT id, settings FROM origins WHERE kind = 'source'").fetchall()
    for origin, settings in rows:
        _, user, password = without_credentials(str(json.loads(settings).get("url", "")))
        if user or password:
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                (f"credentials:{origin}", json.dumps([user, password])),
            )
    for table, columns in (
        ("origins", ("settings", "state")),
        ("runs", ("detail",)),
        ("failures", ("reason",)),
    ):
        for column in columns:
            found = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} LIKE '%://%@%'")
            cleaned = [(_IN_URL.sub(r"\1", text), row) for row, text in found.fetchall()]
            connection.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", cleaned)


def origins_of_any_kind(connection: sqlite3.Connection) -> None:
    """Tasks of local write keep their files and state as sources and hierarchies do.

    A CHECK is taken out of a table by editing its definition, as SQLite's documentation of ALTER TABLE says.
    """
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, ?, '') WHERE type = 'table' AND name = 'origins'",
        (" CHECK (kind IN ('hierarchy', 'source'))",),
    )
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.execute("PRAGMA writable_schema = OFF")


def datestamps_of_metadata(connection: sqlite3.Connection) -> None:
    """Metadata has a place and a datestamp of its own; until now both parts of a record had one.

    Nothing gets another datestamp by this. The table is made anew, so that the new columns stand before the
    blobs: a scan over narrow columns does not touch these.
    """
    (definition,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'records'").fetchone()
    for name in ("seq", "datestamp"):
        definition = definition.replace(
            f"  {name} INTEGER NOT NULL,\n",
            f"  {name} INTEGER NOT NULL,\n  metadata_{name} INTEGER NOT NULL,\n",
        )
    columns = [row[1] for row in connection.execute("PRAGMA table_info(records)")]
    names = ", ".join(columns)
    indexes = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE tbl_name = 'records' AND type = 'index' ORDER BY rowid"
    ).fetchall()
    connection.execute("ALTER TABLE records RENAME TO old_records")
    connection.execute(definition)
    connection.execute(
        f"INSERT INTO records ({names}, metadata_seq, metadata_datestamp) "
        f"SELECT {names}, seq, datestamp FROM old_records ORDER BY id"
    )
    connection.execute("DROP TABLE old_records")
    for (index,) in indexes:
        connection.execute(index)
    connection.execute("CREATE UNIQUE INDEX records_metadata_seq ON records (metadata_seq)")


def waiting_list(connection: sqlite3.Connection) -> None:
    """Deletions that wait for an operator, and alerts in a table of their own."""
    for statement in SCHEMA:
        connection.execute(statement.format(number="INTEGER", text="TEXT", key="INTEGER PRIMARY KEY"))


def identity_and_epoch(connection: sqlite3.Connection) -> None:
    """What names the store and its history, here already so that who may only read it can serve it."""
    for name in (IDENTITY, EPOCH):
        connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, secrets.token_bytes(32)))


def grants(connection: sqlite3.Connection) -> None:
    """Who is shown which origin since when."""
    for statement in GRANTS:
        connection.execute(statement.format(number="INTEGER", text="TEXT", key="INTEGER PRIMARY KEY"))


def departures(connection: sqlite3.Connection) -> None:
    """Which records have left which sets."""
    for statement in DEPARTURES:
        connection.execute(statement.format(number="INTEGER"))


def documents(connection: sqlite3.Connection) -> None:
    """What is known of the documents of records that came without an index part."""
    for statement in DOCUMENTS:
        connection.execute(statement.format(number="INTEGER", text="TEXT"))


def compressed_content(connection: sqlite3.Connection) -> None:
    """Metadata and original of a harvested record are one compressed value."""
    connection.create_function("encode_content", 2, encode_content, deterministic=True)
    connection.execute(
        "UPDATE records SET metadata = encode_content(metadata, raw), raw = x'' "
        "WHERE deleted = 0 AND origin IN (SELECT id FROM origins WHERE kind = 'source')"
    )


def tables_of_values(connection: sqlite3.Connection) -> None:
    """What was rewritten whole as values of `meta` has tables."""
    types = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}
    for table in (ANSWERED, *KEPT_TABLES):
        connection.execute(table.definition(types))
    keys, tables = moved_values(dict(connection.execute("SELECT key, value FROM meta").fetchall()))
    for name, rows in tables.items():
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    connection.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in keys])


def _release_room(connection: sqlite3.Connection) -> None:
    """Give the room that compression saved back to the disk."""
    connection.execute("PRAGMA temp_store = FILE")
    with contextlib.suppress(sqlite3.OperationalError):  # busy, or no room for the copy: new records use it
        connection.execute("VACUUM")
    connection.execute("PRAGMA temp_store = MEMORY")


# The user and the password of a URL within a text.
_IN_URL = re.compile(r"(https?://)[^\s/?#@\"'<>\\]{1,500}@", re.IGNORECASE)


# One function a version. Append only.
STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    first_schema,
    without_fields,
    failures_with_retries,
    canonical_metadata,
    credentials_out_of_urls,
    origins_of_any_kind,
    datestamps_of_metadata,
    waiting_list,
    identity_and_epoch,
    grants,
    departures,
    documents,
    compressed_content,
    tables_of_values,
)


def migrate(connection: sqlite3.Connection, place: str, writable: bool = True) -> None:
    """Bring a store to the newest version, each step in its own transaction."""
    before = _version(connection)
    while (version := _version(connection)) < len(STEPS):
        if not writable:
            raise StoreError(
                f"{place}: made by an older indlet, and may not be written; run  indlet stats  once with the "
                "right to write there, or work on a copy"
            )
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # another process may have been first
                STEPS[version](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has ended it
                connection.execute("ROLLBACK")
            raise
    if 0 < before <= STEPS.index(compressed_content):
        _release_room(connection)
    if version > len(STEPS):
        raise StoreError(
            f"{place}: made by a newer indlet (store version {version}, this one knows {len(STEPS)}); "
            "install that version, or point --data at another folder"
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    """The script's statements; executescript would commit behind our back."""
    found, buffer = [], ""
    for line in script.splitlines(keepends=True):
        buffer += line
        if sqlite3.complete_statement(buffer):
            found.append(buffer)
            buffer = ""
    return found
