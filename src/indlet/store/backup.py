"""A store written to a folder as it is at one moment, while it is in use, and made a data folder again.

A backup holds the store's file, the counts of use, the settings file, and a list of them with their digests.
The index is derived: it is not in the backup, and is made anew from what was restored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from indlet.durable import sync
from indlet.errors import StoreError
from indlet.settings import FILE as SETTINGS_FILE
from indlet.store.contract import Store, View
from indlet.store.private import keep_private
from indlet.store.sql_store import RENEWED_SECRETS
from indlet.store.sqlite.store import FILE_NAME, SqliteStore

_LIST: Final = "backup.json"
_VERSION: Final = 1
_LONGEST: Final = 64 * 1024  # bytes of the list
_ROOM: Final = 64 * 1024 * 1024  # bytes that are left on the disk
_USAGE: Final = "usage.json"
_KNOWN: Final = (FILE_NAME, _USAGE, SETTINGS_FILE)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup holds."""

    at: float
    records: int  # live ones
    deleted: int
    position: int  # of the change feed
    files: dict[str, str]  # name -> SHA-256
    version: int = _VERSION


def back_up(store: Store, folder: Path, settings_file: Path | None = None) -> Contents:
    """Write a backup of a store, which may be in use, to a new folder; checked before it is there."""
    if folder.exists():
        raise StoreError(f"{folder}: is there already; name a new folder for this backup")
    _has_room(folder.absolute().parent, store.size())
    partial = folder.with_name(f"{folder.name}.partial")
    with _cleared(partial):
        try:
            partial.mkdir(mode=0o700)
        except FileExistsError as e:
            raise StoreError(f"{partial}: is left of a backup that was broken off; remove it") from e
        except OSError as e:
            raise StoreError(f"{partial}: cannot be made: {e.strerror}; name another folder") from e
        store.back_up(partial / FILE_NAME)
        for source, name in ((store.local_folder / _USAGE, _USAGE), (settings_file, SETTINGS_FILE)):
            if source is not None and source.is_file():
                shutil.copyfile(source, partial / name)
        contents = _described(partial)
        (partial / _LIST).write_text(json.dumps(asdict(contents), indent=2) + "\n", encoding="utf-8")
        for path in partial.iterdir():
            path.chmod(0o600)
            sync(path)
        sync(partial)
        partial.rename(folder)
    sync(folder.absolute().parent)
    return contents


def _described(folder: Path) -> Contents:
    """The list of a backup that is being written; its store is opened, and read as it will be."""
    with contextlib.closing(SqliteStore.open(folder, create=False)) as copy, copy.read() as view:
        live, deleted, position = _counts(view)
    files = {name: _digest(folder / name) for name in _KNOWN if (folder / name).exists()}
    return Contents(time.time(), live, deleted, position, files)


def contents(folder: Path) -> Contents:
    """What a backup says that it holds; StoreError if there is none, or it is not whole."""
    path = folder / _LIST
    try:
        with path.open("rb") as file:
            raw = json.loads(file.read(_LONGEST))
        found = Contents(**raw)
        if found.version != _VERSION or not set(found.files) <= set(_KNOWN) or FILE_NAME not in found.files:
            raise ValueError("it was written by another version of indlet")
        numbers = (found.at, found.records, found.deleted, found.position)
        if not all(isinstance(number, int | float) for number in numbers):
            raise ValueError("its numbers are none")
    except OSError as e:
        raise StoreError(f"{folder}: no backup here: {path.name}: {e.strerror}") from e
    except (ValueError, TypeError, RecursionError) as e:  # a list in a list in a list …
        raise StoreError(f"{path}: does not list a backup: {e}; use another backup") from e
    return found


def settings_in(folder: Path) -> Path | None:
    """The settings file that a backup holds, if it does."""
    return folder / SETTINGS_FILE if (folder / SETTINGS_FILE).exists() else None


def restore(folder: Path, data: Path) -> Contents:
    """Make a backup the store of a data folder that has none; each file is compared with its digest."""
    found = contents(folder)
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise StoreError(f"{data}: is not empty; move it away, or name another folder with --data")
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        _has_room(data, sum((folder / name).stat().st_size for name in found.files))
        for name, digest in found.files.items():
            if name != SETTINGS_FILE:
                _copied(folder / name, data / name, digest)
        for named in (data, data.absolute().parent):  # or a power cut could take what was said to be there
            sync(named)
    except OSError as e:
        raise StoreError(f"{folder}: cannot be restored into {data}: {e.strerror or e}") from e
    keep_private(data)
    with contextlib.closing(SqliteStore.open(data, create=False)) as store:
        if problems := store.check():
            raise StoreError(f"{store.location}: {'; '.join(problems)}; use another backup")
        with store.read() as view:
            counted = _counts(view)
        if counted != (found.records, found.deleted, found.position):
            raise StoreError(f"{store.location}: does not hold what the backup lists; use another backup")
        with store.write() as tx:
            for name in RENEWED_SECRETS:
                tx.meta(name, secrets.token_bytes(32))
    return found


def _counts(view: View) -> tuple[int, int, int]:
    totals = view.totals().values()
    return sum(live for live, _ in totals), sum(gone for _, gone in totals), view.last_seq()


def _copied(source: Path, target: Path, digest: str) -> None:
    """Copy a file; StoreError, and no file, if it is not the one that was backed up."""
    beside = target.with_name(f"{target.name}.new")
    with _cleared(beside):
        with source.open("rb") as given, beside.open("wb") as taken:
            beside.chmod(0o600)
            shutil.copyfileobj(given, taken, 1 << 20)
        if _digest(beside) != digest:
            raise StoreError(f"{source}: is not what was backed up: its digest differs; use another backup")
        sync(beside)
        beside.rename(target)


@contextlib.contextmanager
def _cleared(path: Path) -> Iterator[None]:
    """Nothing stays at a path that the block makes, unless the block has given it its place elsewhere."""
    there = path.exists()
    try:
        yield
    finally:
        if not there and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif not there:
            path.unlink(missing_ok=True)


def _has_room(folder: Path, size: int) -> None:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as e:
        raise StoreError(f"{folder}: {e.strerror}; name a folder that is there") from e
    if free < size + _ROOM:
        raise StoreError(
            f"{folder}: {size:,} bytes are needed, and {free:,} are free; make room, or use another disk"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
