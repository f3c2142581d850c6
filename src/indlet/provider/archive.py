"""Zip and tar archives as trees, wherever they lie."""

from __future__ import annotations

import contextlib
import posixpath
import tarfile
import time
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from indlet.errors import ExtractionError, HierarchyError, IndletError
from indlet.provider.hierarchy import explain
from indlet.provider.storage import FRESH, LISTING_SECONDS, ByteSink, Child, Storage

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "bz": "bz2", "xz": "xz"}


class ArchiveTree(Storage):
    """A zip or tar file, wherever it lies. What it cannot give is broken, not out of reach."""

    exact = False

    def __init__(
        self, kind: str, name: str, inside: str, opened: Callable[[], tuple[IO[bytes], Callable[[], None]]]
    ) -> None:
        from fsspec.implementations.tar import TarFileSystem
        from fsspec.implementations.zip import ZipFileSystem

        compression = next((c for ending, c in _COMPRESSIONS.items() if name.lower().endswith(ending)), None)
        self._closers: list[Callable[[], None]] = []
        self._folders: dict[str, dict[str, Child]] | None = None

        def make() -> tuple[AbstractFileSystem, str]:
            file, close = opened()
            self._closers = [file.close, close]
            try:
                if kind == "zip":
                    return ZipFileSystem(fo=file, **FRESH), inside
                watched = _Watched(file) if compression else file
                return TarFileSystem(fo=watched, compression=compression, **FRESH), inside
            except Exception as e:
                self.close()
                raise HierarchyError(f"not a {kind} archive that can be read: {explain(e)}") from e

        super().__init__(make)

    def _single(self) -> str:
        wanted = _plain(self.root)
        folder, _, name = wanted.rpartition("/")
        for child in self.children(folder):
            if wanted and child.name == name and child.kind == "file":
                self.root = child.key
                return child.name
        if wanted and wanted not in self._listed():
            raise FileNotFoundError(self.root)
        return ""

    def children(self, key: str) -> Iterator[Child]:
        yield from self._listed().get(_plain(key), {}).values()

    def _listed(self) -> dict[str, dict[str, Child]]:
        """What each folder holds, by name. fsspec looks at every member of the archive for each folder, and
        takes the "." that most tars begin with for a folder of that name."""
        if self._folders is None:
            try:
                self._fs.ls("")  # fills the cache
            except (OSError, IndletError):
                raise
            except Exception as e:
                raise HierarchyError(f"an archive that cannot be listed: {explain(e)}") from e
            odd = _odd_members(self._fs.tar) if hasattr(self._fs, "tar") else {}
            self._folders = {"": {}}
            for path, info in self._fs.dir_cache.items():
                folder, _, name = _plain(path).rpartition("/")
                if name:
                    kind = odd.get(_plain(path), str(info.get("type")))
                    child = Child(name, path.rstrip("/"), kind, info)
                    self._folders.setdefault(folder, {})[name] = child
                    if kind == "directory":
                        self._folders.setdefault(_plain(path), {})
        return self._folders

    def reconnect(self) -> None:
        self._folders = None
        super().reconnect()

    def copy(self, key: str, sink: ByteSink) -> None:
        try:
            super().copy(key, sink)
        except ExtractionError:
            raise
        except Exception as e:
            raise ExtractionError(f"cannot be read from its archive: {explain(e)}") from e

    def close(self) -> None:
        fs = getattr(self, "_fs", None)
        for part in (getattr(fs, "zip", None), getattr(fs, "tar", None), getattr(fs, "fo", None)):
            if part is not None:
                with contextlib.suppress(Exception):
                    part.close()
        for close in self._closers:
            with contextlib.suppress(Exception):
                close()
        self._closers = []


def _plain(path: str) -> str:
    """A member's path without what does not lead anywhere."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _odd_members(tar: tarfile.TarFile) -> dict[str, str]:
    """Members of a tar that are neither files nor folders: fsspec takes all of these for files."""
    members = {_plain(m.name): m for m in tar.getmembers()}
    odd = {}
    for name, member in members.items():
        if member.issym():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
            found = members.get(target)
            if found is None or not found.isreg():
                odd[name] = "a link that leads to no file of the archive"
        elif not (member.isreg() or member.isdir() or member.islnk()):
            odd[name] = "a device or pipe"
    return odd


class _Watched:
    """A compressed tar. To list it is to inflate all of it, which a few bytes can make take for ever."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._until = time.monotonic() + LISTING_SECONDS
        self._listed = False

    def read(self, size: int = -1) -> bytes:
        if not self._listed and time.monotonic() > self._until:
            raise OSError(f"its list took longer than {LISTING_SECONDS:.0f} seconds")
        data: bytes = self._file.read(size)
        # The first pass ends where the file ends.
        self._listed = self._listed or not data
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
