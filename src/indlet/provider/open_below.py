"""Files below a folder, opened first, then judged: a name that comes to mean another file is no way out."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple


class OpenedFile(NamedTuple):
    """A regular file that is open for reading; whoever asked for it closes it."""

    descriptor: int
    path: str  # links followed
    root: str  # of the folder that it lies below, links followed too
    status: os.stat_result


def open_below(root: str, path: str) -> OpenedFile | None:
    """A file by its path below a folder; None if there is none, or if links lead out of the folder."""
    place = f"{root}/{path}"
    try:
        # A pipe is not waited for, and no terminal becomes ours.
        file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode):
            real_root, real = _real_root(root), _real_path(file, place)
            if real_root and real.startswith(f"{real_root.rstrip('/')}/"):
                return OpenedFile(file, real, real_root, status)
    except OSError:
        pass
    os.close(file)
    return None


def _real_path(file: int, place: str) -> str:
    """Where an open file or folder lies, links followed; empty if that cannot be told for certain."""
    try:
        # What the system says cannot change between two looks.
        return os.readlink(f"/proc/self/fd/{file}")  # noqa: PTH115  # once for each file of a page
    except OSError:  # no such folder on this system
        found = os.path.realpath(place)
        # By now another file may have the name.
        return found if os.path.samestat(os.lstat(found), os.fstat(file)) else ""


def _real_root(root: str) -> str:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _real_path(folder, root)
    finally:
        os.close(folder)
