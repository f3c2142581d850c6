"""The optional cache of fetched documents: private files in a folder, of a limited size in all.

It is there so that a change of the analysis policy does not download everything again. Each file is named by
the digest of its URL, and holds a line of JSON (what the server said about it) and the content. The time of
modification says when it was fetched, the time of access when it was used; the least recently used files are
deleted first. Nothing is served from it.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import tempfile
import threading
import time
from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path
from typing import Final

import orjson

from indlet.limits import require_room
from indlet.sidecar.visit import FetchedFile

log = logging.getLogger("indlet.sidecar")

FOLDER: Final = "document-cache"  # in the data folder, or in sidecar.cache_folder
_NAME = re.compile(r"[0-9a-f]{40}")
_UNFINISHED: Final = "unfinished-"


class DocumentCache:
    """At most `limit` bytes of documents in a folder. Threads share it; processes take turns."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._guard = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()  # by name; the least recently used first
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = folder.lstat()
        if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.geteuid():
            raise OSError("it is not a folder that belongs to the account of this process")
        folder.chmod(0o700)
        found = []
        for path in folder.iterdir():
            if path.name.startswith(_UNFINISHED):  # of a process that was killed
                path.unlink()
            elif _NAME.fullmatch(path.name) and stat.S_ISREG((state := path.lstat()).st_mode):
                found.append((state.st_atime_ns, path.name, state.st_size))
        self._sizes.update((name, size) for _, name, size in sorted(found))
        self._total = sum(self._sizes.values())
        self._evict(0)

    def get(self, url: str, digest: str = "", max_age: float | None = None) -> FetchedFile | None:
        """The document that was fetched from a URL.

        With `digest`, only the one that has it; with `max_age`, only if it was fetched within these seconds.
        """
        name = _name_of(url)
        with self._guard:
            if name not in self._sizes:
                return None
            path = self._folder / name
            try:
                line, _, body = path.read_bytes().partition(b"\n")
                stated = orjson.loads(line)
                file = FetchedFile(
                    stated["url"], body, stated["type"], stated["etag"], stated["modified"], is_cached=True
                )
                is_intact = file.url == url and file.digest == stated["digest"]
            except (OSError, ValueError, KeyError, TypeError):
                is_intact = False
            if not is_intact:
                self._drop(name)
                return None
            if digest and file.digest != digest:
                return None
            try:
                fetched = path.stat().st_mtime_ns
                os.utime(path, ns=(time.time_ns(), fetched))
            except OSError:  # deleted or read-only: what was read is intact
                return None if max_age is not None else file
            self._sizes.move_to_end(name)
            is_recent = max_age is None or 0 <= time.time_ns() - fetched <= max_age * 1e9
            return file if is_recent else None

    def put(self, file: FetchedFile) -> None:
        """Keep a document, unless it is larger than the cache or the disk is nearly full."""
        if not file.url or file.is_cached:
            return
        content = orjson.dumps(file.to_json()) + b"\n" + file.body
        if len(content) > self._limit:
            return
        name = _name_of(file.url)
        with self._guard:
            self._drop(name)
            self._evict(len(content))
            try:
                require_room(self._folder, len(content))
                _write_private(self._folder / name, content)
            except OSError as e:
                log.warning("%s: the document is not cached: %s", file.url, e)
                return
            self._sizes[name] = len(content)
            self._total += len(content)

    def drop(self, url: str) -> None:
        """Forget a document: its owner does not give it out any more."""
        with self._guard:
            self._drop(_name_of(url))

    def _drop(self, name: str) -> None:
        if name in self._sizes:
            self._total -= self._sizes.pop(name)
            try:
                (self._folder / name).unlink(missing_ok=True)
            except OSError as e:
                log.warning("%s: the cached document cannot be deleted: %s", self._folder / name, e)

    def _evict(self, size: int) -> None:
        """Make room for `size` bytes within the limit."""
        while self._sizes and self._total + size > self._limit:
            self._drop(next(iter(self._sizes)))


def _name_of(url: str) -> str:
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _write_private(path: Path, content: bytes) -> None:
    """A whole file that only its owner can read, or none."""
    with tempfile.NamedTemporaryFile(prefix=_UNFINISHED, dir=path.parent, delete=False) as out:  # mode 0600
        try:
            out.write(content)
            out.flush()
            Path(out.name).replace(path)
        except BaseException:
            Path(out.name).unlink(missing_ok=True)
            raise
