"""The system of record: records, change feed, crawl and harvest state, failures, journal.

store = open_store(url)            # a folder, sqlite:///folder, or postgresql://user@host/database
with store.write() as tx:          # one transaction: all of it, or none
    tx.put(origin, records)
    tx.state(origin, {...})
with store.read() as view:         # a consistent snapshot
    for stored in view.changes(after=0): ...

Nobody outside this room knows which database it is. `contract.py` says what each gives.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from indlet._core import resource_hash
from indlet.errors import SettingsError, StoreError
from indlet.extension import extensions
from indlet.settings import Database, Settings
from indlet.store.backup import back_up, restore, settings_in
from indlet.store.contract import (
    ALL,
    COPYING,
    Audience,
    ChangeFeed,
    Clock,
    CrawledFiles,
    DocumentCount,
    DocumentState,
    FailureWriter,
    FileState,
    FileWriter,
    Grant,
    GrantMode,
    GrantView,
    JobLocks,
    Journal,
    JournalWriter,
    Meta,
    MetaWriter,
    OpenFailure,
    OpenStore,
    Origin,
    Readable,
    RecordCounts,
    RecordLists,
    RecordLookup,
    RecordWriter,
    RunEntry,
    Secrets,
    SetList,
    Store,
    StoredAlert,
    StoredFailure,
    StoreUpkeep,
    TableReader,
    Takes,
    Transaction,
    View,
    WaitingList,
    WaitingListWriter,
    Withheld,
    Writable,
)  # fmt: skip
from indlet.store.packed import packed, packed_parts
from indlet.store.sqlite.store import SqliteStore

__all__ = [
    "ALL",
    "Audience",
    "ChangeFeed",
    "Clock",
    "CrawledFiles",
    "DocumentCount",
    "DocumentState",
    "FailureWriter",
    "FileState",
    "FileWriter",
    "Grant",
    "GrantMode",
    "GrantView",
    "JobLocks",
    "Journal",
    "JournalWriter",
    "Meta",
    "MetaWriter",
    "OpenFailure",
    "OpenStore",
    "Origin",
    "Readable",
    "RecordCounts",
    "RecordLists",
    "RecordLookup",
    "RecordWriter",
    "RunEntry",
    "Secrets",
    "SetList",
    "Store",
    "StoreUpkeep",
    "StoredAlert",
    "StoredFailure",
    "TableReader",
    "Takes",
    "Transaction",
    "View",
    "WaitingList",
    "WaitingListWriter",
    "Withheld",
    "Writable",
    "back_up",
    "configured_for",
    "open_configured",
    "open_store",
    "packed",
    "packed_parts",
    "resource_hash",
    "restore",
    "settings_in",
]  # fmt: skip


def open_store(
    url: Path | str,
    *,
    create: bool = True,
    clock: Clock | None = None,
    local_folder: Path | None = None,
    half_copied: bool = False,
) -> Store:
    """The store at a URL or in a folder, made or migrated where needed.

    `local_folder`: where this machine keeps what is derived from the store; a SQLite store's own folder if
    none is named. `clock`: what datestamps are given by; the machine's, or the server's, if none is named.
    `half_copied`: also one into which another store is being copied.
    """
    store = _opened(url, create, clock, local_folder)
    with store.read() as view:
        if not half_copied and view.meta(COPYING):
            store.close()
            raise StoreError(
                f"{store.location}: a copy into it was not completed; run that  indlet copy  again, or go on "
                "with the store that it was copied from"
            )
    return store


def _opened(url: Path | str, create: bool, clock: Clock | None, local_folder: Path | None) -> Store:
    scheme, colon, _ = str(url).partition("://")
    if not colon:
        return SqliteStore.open(url, create=create, clock=clock, local_folder=local_folder)
    if scheme == "sqlite":
        folder = Path("/" + unquote(urlsplit(str(url)).path).lstrip("/"))
        return SqliteStore.open(folder, create=create, clock=clock, local_folder=local_folder)
    for extension in extensions():
        if (kind := extension.stores.get(scheme)) is not None:
            return kind(url, create=create, clock=clock, local_folder=local_folder)
    raise SettingsError(
        f"{scheme}://…: no store can be opened by that; name a folder, sqlite:///folder or postgresql://…"
    )


def open_configured(settings: Settings, *, create: bool = True) -> Store:
    """The store of the settings; what is derived from it goes to their data folder."""
    return open_store(settings.store.url or settings.data, create=create, local_folder=settings.data)


def configured_for(store: Store, settings: Settings) -> Settings:
    """The settings by which `open_configured` opens this store, in a child process for one."""
    return replace(settings, data=store.local_folder, store=Database(store.url))
