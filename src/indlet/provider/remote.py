"""Hierarchies that fsspec reads: archives, FTP, HTTP listings, WebDAV, SFTP, S3, archives on any of these.

Files are fetched, one at a time and within bounds, into a scratch folder. Listings are never taken from a
cache, and an error while listing is never an empty folder.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

from indlet.errors import ExtractionError, HierarchyError
from indlet.model import JsonObject
from indlet.provider.connect import connect
from indlet.provider.hierarchy import (
    DEEPEST,
    Entry,
    Listing,
    Skip,
    TreeRules,
    explain,
    join,
    without_password,
)
from indlet.provider.storage import Child, Storage, facts
from indlet.settings import Hierarchy

# A file that has not arrived after this long is given up, however steadily it trickles.
FETCH_SECONDS = 900.0
# A tree of more folders than this has no end, nor has one whose folders repeat their name.
FOLDERS = 500_000
CHILDREN = 1_000_000
REPEATS = 4
# A server that cannot list this many folders in a row is taken to be gone.
LIST_FAILURES = 5
# How many files are fetched at once, where the storage allows that.
FETCH_AT_ONCE = 4
# How many files at once are asked for size and time, where listings do not tell.
ASK_AT_ONCE = 8

T = TypeVar("T")


def open_remote(hierarchy: Hierarchy, rules: TreeRules) -> Remote:
    return Remote(without_password(hierarchy.root), connect(hierarchy.root, hierarchy.options), rules)


class Remote:
    """A tree behind fsspec. Its files are fetched into a scratch folder, and are the caller's to remove."""

    local = False

    def __init__(self, root: str, storage: Storage, rules: TreeRules) -> None:
        self._root, self._storage, self._rules = root, storage, rules
        self.ahead = FETCH_AT_ONCE if storage.parallel else 0

    def facts(self) -> JsonObject:
        return {}

    def identity(self) -> str:
        return ""

    def close(self) -> None:
        self._storage.close()

    def walk(self) -> Iterator[Listing]:
        storage = self._storage
        if storage.single:
            found = self.look(Entry(storage.single, -1, -1, key=storage.root))
            if found is None:
                raise HierarchyError(f"{self._root}: cannot be found; nothing was deleted")
            yield Listing("", [found], [])
            return
        stack = [("", storage.root)]
        unlucky = listed = 0
        while stack:
            folder, key = stack.pop()
            if endless := _endless(folder):
                yield Listing(folder, [], [], endless)
                continue
            listed += 1
            if listed > FOLDERS:
                raise HierarchyError(f"{self._root}: has more than {FOLDERS:,} folders; nothing was deleted")
            try:
                children = self._twice(lambda key=key: _bounded(storage.children(key)))  # type: ignore[misc]
            except Exception as e:
                unlucky += 1
                if not folder or unlucky >= LIST_FAILURES:
                    where = f"{self._root}: {folder or 'its root'}"
                    raise HierarchyError(
                        f"{where} cannot be listed: {explain(e)}; nothing was deleted"
                    ) from e
                yield Listing(folder, [], [], explain(e))
                continue
            unlucky = 0
            files, folders, skipped = self._sorted(folder, children)
            yield Listing(folder, files, skipped)
            stack += sorted(folders, reverse=True)

    def _sorted(
        self, folder: str, children: list[Child]
    ) -> tuple[list[Entry], list[tuple[str, str]], list[Skip]]:
        files: list[Entry] = []
        folders: list[tuple[str, str]] = []
        skipped: list[Skip] = []
        for child in children:
            path = join(folder, child.name)
            if child.name in ("", ".", "..") or "/" in child.name or "\0" in child.name:
                skipped.append(Skip(path.replace("\0", "\ufffd"), "a name that no file can have"))
            elif reason := self._rules.refuse(child.name, path):
                skipped.append(Skip(path, reason))
            elif child.kind == "directory":
                folders.append((path, child.key))
            elif child.kind == "file":
                files.append(Entry(path, *facts(child.info), child.key))
            else:
                skipped.append(Skip(path, f"neither file nor folder: {child.kind}"))
        if not self._storage.tells:
            files = self._asked(files, skipped)
        return sorted(files), folders, skipped

    def _asked(self, files: list[Entry], skipped: list[Skip]) -> list[Entry]:
        with ThreadPoolExecutor(ASK_AT_ONCE) as pool:
            found = list(pool.map(self.look, files))
        skipped += [
            Skip(entry.path, "gives no answer", held=True)
            for entry, answer in zip(files, found, strict=True)
            if answer is None
        ]
        return [answer for answer in found if answer is not None]

    def look(self, entry: Entry) -> Entry | None:
        try:
            info = self._storage.info(entry.key)
        except Exception:
            # Whatever a storage library throws, there is no answer.
            return None
        return Entry(entry.path, *facts(info), entry.key)

    def fetch(self, entry: Entry, folder: Path, limit: int) -> Path:
        if entry.size > limit:
            raise ExtractionError(f"has {entry.size:,} bytes, more than limits.file_bytes ({limit:,})")
        return self._twice(lambda: self._copy(entry, folder, limit))

    def _copy(self, entry: Entry, folder: Path, limit: int) -> Path:
        handle, name = tempfile.mkstemp(dir=folder)
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                sink = Sink(file, limit)
                self._storage.copy(entry.key, sink)
            if self._storage.exact and 0 <= entry.size != sink.size:
                raise OSError(f"{sink.size:,} bytes came, {entry.size:,} were listed")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _twice(self, attempt: Callable[[], T]) -> T:
        """What an attempt gives; where a connection failed, over a new one."""
        try:
            return attempt()
        except (FileNotFoundError, PermissionError, ExtractionError):
            raise
        except Exception:
            with contextlib.suppress(Exception):
                self._storage.reconnect()
            return attempt()


def _bounded(children: Iterator[Child]) -> list[Child]:
    found = list(itertools.islice(children, CHILDREN + 1))
    if len(found) > CHILDREN:
        raise OSError(f"a folder of more than {CHILDREN:,} entries")
    return found


def _endless(folder: str) -> str:
    """Why a folder seems to be one of infinitely many; empty if it does not."""
    parts = folder.split("/")
    if len(parts) > DEEPEST:
        return f"nested deeper than {DEEPEST} folders"
    if len(parts) >= REPEATS and len(set(parts[-REPEATS:])) == 1:
        return f"{parts[-1]} within itself {REPEATS} times: a loop"
    return ""


class Sink:
    """Takes what a transfer brings, and no more than allowed."""

    def __init__(self, file: IO[bytes], limit: int, seconds: float = FETCH_SECONDS) -> None:
        self._file, self._limit = file, limit
        self._until = time.monotonic() + seconds
        self.size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        if self.size > self._limit:
            raise ExtractionError(f"is larger than limits.file_bytes ({self._limit:,})")
        if time.monotonic() > self._until:
            raise TimeoutError("the transfer took too long")
        return self._file.write(data)

    # fsspec takes for a file what can be read and written and closed.
    def read(self, size: int = -1) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def tell(self) -> int:
        return self.size
