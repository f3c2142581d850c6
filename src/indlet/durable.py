"""Files that are whole on the disk or not there at all, after a power cut too."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO, Final, Literal

FEW: Final = 50  # files that are synced one by one


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Give a file these bytes: until they are on the disk, it keeps its old ones. One writer at a time.

    The draft has a fixed name, so that one left by a killed process is replaced by the next.
    """
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def open_private(path: Path, mode: Literal["wb", "ab"]) -> BinaryIO:
    """A file opened for writing which, if it is new, only its owner may read, whatever the umask is."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def draft_of(path: Path) -> Path:
    """Where the new bytes of a file are until they are complete."""
    return path.with_name(f".{path.name}.part")


def sync(path: Path) -> None:
    """What was written into a file, or the names that a folder holds, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_changes(root: str, changed: Collection[str]) -> None:
    """Files below a folder that were written, renamed or removed are on the disk as they are now, names too.

    A sync of one file waits for the journal of its file system, some milliseconds each: many are left to one
    call for the whole file system. (Not to `os.sync`, which waits for all disks of the machine, also for one
    that hangs, tells no error, and need not wait at all on systems other than Linux.)
    """
    folders = {root} if changed else set[str]()
    for place in changed:
        folder = place.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    whole = file_system_sync() if len(changed) > FEW else None
    devices = set[int]()
    for place in folders if whole else (*changed, *folders):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # what is gone by now
            if whole is None:
                sync(Path(place))
            elif (device := os.stat(place).st_dev) not in devices:  # noqa: PTH116  # thousands
                whole(place)
                devices.add(device)


def file_system_sync() -> Callable[[str], None] | None:
    """What writes all of the file system of a folder to its disk; None where there is no such call."""
    import ctypes

    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return None

    def whole(folder: str) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if syncfs(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
        finally:
            os.close(descriptor)

    return whole
