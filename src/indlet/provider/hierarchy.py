"""A storage tree, seen folder by folder: what lies there, what is left alone and why, what cannot be read.

A path is relative to the tree's root, its parts joined by "/". Bytes of a file name that are not UTF-8 are
surrogates in it, as `os.fsdecode` makes them; `shown` gives the form that can be stored and printed.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from indlet.errors import HierarchyError
from indlet.model import JsonObject
from indlet.settings import FILE, Crawl, Hierarchy

# Folders nested deeper than this are not listed: no real collection is, a looping server is.
DEEPEST = 128
FARTHEST = 2**62

ARCHIVES = {
    ".zip": "zip", ".tar": "tar", ".tar.gz": "tar", ".tgz": "tar", ".tar.bz2": "tar", ".tbz2": "tar",
    ".tar.xz": "tar", ".txz": "tar",
}  # fmt: skip


class Entry(NamedTuple):
    """A file as its storage describes it. `key` is what the storage calls it."""

    path: str
    size: int  # -1 if the storage does not tell
    modified: int  # nanoseconds since 1970; -1 if the storage does not tell
    etag: str = ""
    key: str = ""
    guarded: bool = False  # not for everybody
    extract: bool = True  # whether its text is wanted
    facts: object = None  # more that a storage says of it, for its record source alone

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Skip(NamedTuple):
    """A path that was left alone. `held`: it is there but cannot be read now; what is known of it stays."""

    path: str
    reason: str
    held: bool = False


class Listing(NamedTuple):
    """What one folder holds; `error` says why it could not be read, or not to its end."""

    folder: str
    files: list[Entry]
    skipped: list[Skip]
    error: str = ""


class Tree(Protocol):
    local: bool  # whether `fetch` gives the file itself, which must not be removed
    ahead: int  # how many files may be fetched at once; 0 where there is nothing to gain

    def walk(self) -> Iterator[Listing]: ...
    def look(self, entry: Entry) -> Entry | None: ...  # the same file now; None if it is gone
    def fetch(self, entry: Entry, folder: Path, limit: int) -> Path: ...
    def identity(self) -> str: ...  # changes when another file system is mounted at the root
    def facts(self) -> JsonObject: ...  # what is kept of the storage with the state of its crawl
    def close(self) -> None: ...


@dataclass(frozen=True)
class TreeRules:
    """Which names are left alone."""

    hidden: bool = False
    ignore: tuple[str, ...] = ()
    exclude: tuple[Path, ...] = ()  # local folders that hold our own data
    _pattern: re.Pattern[str] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if self.ignore:
            joined = "|".join(fnmatch.translate(pattern) for pattern in self.ignore)
            object.__setattr__(self, "_pattern", re.compile(joined))

    def refuse(self, name: str, path: str) -> str:
        """Why an entry of that name is left alone; empty if it is not."""
        if name == FILE:  # with tokens and passwords, perhaps, in the folder that is crawled
            return "indlet's own settings"
        if name.startswith(".") and not self.hidden:
            return "hidden"
        if self._pattern is not None and (self._pattern.match(name) or self._pattern.match(path)):
            return "matches an ignore pattern"
        return ""


def no_etag(path: str) -> str:
    """For a storage of which nothing is known yet."""
    return ""


def open_tree(hierarchy: Hierarchy, crawl: Crawl, exclude: tuple[Path, ...] = ()) -> Tree:
    """The tree that a hierarchy's root names; raises HierarchyError if it cannot be reached."""
    rules = TreeRules(crawl.hidden, crawl.ignore, tuple(p.resolve() for p in exclude))
    root = local_root(hierarchy.root)
    if root is not None and any(root.resolve() == own for own in rules.exclude):
        raise HierarchyError(f"{root}: holds indlet's own data; choose another folder with --data")
    if root is not None and not (root.is_file() and archive_kind(root.name)):
        return Local(root, rules)
    from indlet.provider.remote import open_remote  # fsspec takes 0.1 s that a local crawl need not spend

    return open_remote(hierarchy, rules)


def local_root(root: str) -> Path | None:
    """The path of a root on this machine; None for anything that fsspec has to open."""
    if "::" in root and not Path(root).exists():
        return None
    if root.startswith("file://"):
        return Path(unquote(root.removeprefix("file://")))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", root):
        return None
    return Path(root).expanduser()


def content_root(root: str) -> Path | None:
    """The local folder that paths of a hierarchy lie below; None for archives and anything remote."""
    local = local_root(root)
    if local is None or not local.is_file():
        return local
    return None if archive_kind(local.name) else local.parent


def web_address(root: str) -> str:
    """Where a hierarchy's files are on the web by themselves: an HTTP or FTP root without a password."""
    parts = urlsplit(root)
    if "::" in root or parts.scheme not in ("http", "https", "ftp") or parts.username:
        return ""
    return "" if archive_kind(parts.path) else root.rstrip("/")


def without_password(root: str) -> str:
    """A root that can be shown."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:…@", root)


def named(hierarchies: Iterable[Hierarchy]) -> tuple[Hierarchy, ...]:
    """The hierarchies, each with a name of its own: the stated one, else the last part of its root."""
    hierarchies = tuple(hierarchies)
    taken = {h.name for h in hierarchies if h.name}
    found = []
    for hierarchy in hierarchies:
        name = hierarchy.name
        if not name:
            wanted = _last_part(hierarchy.root)
            name, count = wanted, 1
            while name in taken:
                count += 1
                name = f"{wanted}-{count}"
            taken.add(name)
        found.append(replace(hierarchy, name=name))
    return tuple(found)


def _last_part(root: str) -> str:
    local = local_root(root)
    if local is not None:
        name = Path.cwd().joinpath(local).resolve().name if local.name in ("", ".", "..") else local.name
    else:
        parts = urlsplit(root.rpartition("::")[2])
        name = unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.hostname or ""
    ending = next((e for e in sorted(ARCHIVES, key=len, reverse=True) if name.lower().endswith(e)), "")
    name = name[: len(name) - len(ending)].encode("utf-8", "replace").decode()
    return name.strip() or "root"


def archive_kind(name: str) -> str:
    """The fsspec protocol that reads an archive of that name; empty if it is not one."""
    lower = name.lower()
    return next((kind for ending, kind in ARCHIVES.items() if lower.endswith(ending)), "")


def shown(path: str) -> str:
    """A path as text: injective, and itself unless it holds a backslash or bytes that are not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        pass
    else:
        return path.replace("\\", "\\\\") if "\\" in path else path
    return "".join(
        "\\\\" if c == "\\" else f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in path
    ).encode("utf-8", "backslashreplace").decode()  # fmt: skip


def join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def explain(error: BaseException) -> str:
    """An exception as a reason for people."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return printable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def printable(text: str) -> str:
    """Text that can be stored and shown, though a file name that is not Unicode may stand in it."""
    return text.encode("utf-8", "backslashreplace").decode()


def _time(nanoseconds: int) -> int:
    """A file's time; one beyond the range of the store (some centuries from now) is its last."""
    return max(-FARTHEST, min(nanoseconds, FARTHEST))


def _entry(path: str, found: os.stat_result) -> Entry:
    """A local file. The time at which its inode changed serves as etag: nobody can set that one, so content
    that was replaced under the old time is noticed."""
    return Entry(path, found.st_size, _time(found.st_mtime_ns), f"{found.st_ctime_ns:x}")


class Local:
    """A folder of this machine, or one file as a tree of its own."""

    local = True
    ahead = 0

    def __init__(self, root: Path, rules: TreeRules) -> None:
        try:
            self._root = Path(os.path.realpath(root, strict=True))
            found = self._root.stat()
        except OSError as e:
            raise HierarchyError(f"{root}: cannot be read: {explain(e)}; nothing was deleted") from e
        self._rules = rules
        self._single = ""
        if stat.S_ISREG(found.st_mode):
            self._root, self._single = self._root.parent, self._root.name
        elif not stat.S_ISDIR(found.st_mode):
            raise HierarchyError(f"{root}: neither a folder nor a file; give one of the two")
        self._excluded = {str(p) for p in rules.exclude}
        self._base = f"{self._root}/" if str(self._root) != "/" else "/"

    def identity(self) -> str:
        found = self._root.stat()
        return f"{found.st_dev}:{found.st_ino}"

    def facts(self) -> JsonObject:
        return {}

    def walk(self) -> Iterator[Listing]:
        if self._single:
            found = self.look(Entry(self._single, 0, 0))
            if found is None:
                raise HierarchyError(f"{self._base}{self._single}: has gone; nothing was deleted")
            yield Listing("", [found], [])
            return
        stack = [""]
        while stack:
            folder = stack.pop()
            files: list[Entry] = []
            folders: list[str] = []
            skipped: list[Skip] = []
            error = ""
            if folder.count("/") >= DEEPEST:
                yield Listing(folder, [], [], f"nested deeper than {DEEPEST} folders")
                continue
            try:
                with os.scandir(self._base + folder) as entries:
                    for entry in entries:
                        self._sort_in(entry, folder, files, folders, skipped)
            except OSError as e:
                if not folder:
                    raise HierarchyError(f"{self._root}: cannot be listed: {explain(e)}") from e
                error = explain(e)
            files.sort()
            yield Listing(folder, files, skipped, error)
            folders.sort(reverse=True)
            stack += folders

    def _sort_in(
        self,
        entry: os.DirEntry[str],
        folder: str,
        files: list[Entry],
        folders: list[str],
        skipped: list[Skip],
    ) -> None:
        path = f"{folder}/{entry.name}" if folder else entry.name
        reason = self._rules.refuse(entry.name, path)
        if reason:
            skipped.append(Skip(path, reason))
            return
        try:
            if entry.is_symlink():
                self._link(path, files, skipped)
            elif entry.is_dir(follow_symlinks=False):
                if self._base + path in self._excluded:
                    skipped.append(Skip(path, "holds indlet's own data"))
                else:
                    folders.append(path)
            elif entry.is_file(follow_symlinks=False):
                files.append(_entry(path, entry.stat(follow_symlinks=False)))
            else:
                skipped.append(Skip(path, "neither file nor folder"))
        except OSError as e:
            skipped.append(Skip(path, f"cannot be looked at: {explain(e)}", held=True))

    def _link(self, path: str, files: list[Entry], skipped: list[Skip]) -> None:
        """A link to a file within the root counts as a file. No link to a folder is followed: what lies
        within the root is crawled where it is, under one name."""
        try:
            target = os.path.realpath(self._base + path, strict=True)
        except OSError as e:
            skipped.append(Skip(path, f"a link that leads nowhere: {explain(e)}"))
            return
        if not f"{target}/".startswith(self._base):
            skipped.append(Skip(path, "a link that leads out of the root"))
        elif any(target == out or target.startswith(f"{out}/") for out in self._excluded):
            skipped.append(Skip(path, "a link to indlet's own data"))
        elif any(self._rules.refuse(part, "") for part in target[len(self._base) :].split("/")):
            skipped.append(Skip(path, "a link to something hidden or ignored"))
        else:
            found = Path(target).stat()
            if stat.S_ISREG(found.st_mode):
                files.append(_entry(path, found))
            elif stat.S_ISDIR(found.st_mode):
                skipped.append(Skip(path, "a link to a folder"))
            else:
                skipped.append(Skip(path, "neither file nor folder"))

    def look(self, entry: Entry) -> Entry | None:
        try:
            found = Path(self._base + entry.path).stat()
        except OSError:
            return None
        return _entry(entry.path, found)

    def fetch(self, entry: Entry, folder: Path, limit: int) -> Path:
        path = Path(self._base + entry.path)
        if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(13, "Permission denied", str(path))
        return path

    def close(self) -> None:
        pass
