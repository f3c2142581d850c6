"""Whether all kernels, as they are now, have been compiled on this machine. Imports no compiler.

Machine code is cached under a name that tells the state of all kernels. Whoever has compiled them all leaves
a mark; until then a process aside compiles, pages are read the plain way, and Python runs the other kernels
on what is small.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from indlet import process

_HERE: Final = Path(__file__).parent
_READY: Final = "complete"
# The program that compiles all kernels.
_COMPILER: Final = "indlet.service.index.embedded.warming"


@cache
def state() -> str:
    """Kernels hold parts of each other, so machine code is kept for one state of them all. All compiled
    code is in this folder and imports nothing else but the model (tests/house/test_imports.py): no
    file can be forgotten here.
    """
    files = (_HERE.parent / "model.py", *sorted(_HERE.glob("*.py")))
    return f"{zlib.crc32(b''.join(path.read_bytes() for path in files)):08x}"


@cache
def _name() -> str:
    return f"kernels-{state()}-{sys.implementation.cache_tag}"


def folders() -> tuple[Path, ...]:
    """Where the machine code of these kernels may be kept, the preferred place first."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    places = (Path(chosen),) if chosen else (_HERE / "__pycache__", Path(home) / "indlet")
    return tuple(place / _name() for place in places)


def ready() -> bool:
    """Whether the machine code of every kernel is there, or will never be."""
    return any((folder / _READY).exists() for folder in folders()) or folder() is None


def _writable(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return os.access(folder, os.W_OK)


def folder() -> Path | None:
    """Where machine code and the mark that it is complete can be written."""
    return next(filter(_writable, folders()), None)


# Whether this process is the one that compiles.
_compiles = False


def compile_here() -> None:
    """From now on this process compiles each kernel that it calls."""
    global _compiles
    _compiles = True


def compile_aside() -> bool:
    """Has the kernels compiled by a process that nobody waits for; False where none can be kept."""
    if _compiles or folder() is None:
        return False
    _compiler()
    return True


@cache
def _compiler() -> subprocess.Popen[bytes]:
    """Once for each process; it ends at once if another compiles already."""
    return process.start(_COMPILER, stderr=subprocess.DEVNULL)


def mark_ready() -> None:
    place = folder()
    if place is not None:
        with contextlib.suppress(OSError):
            (place / _READY).touch()


@contextlib.contextmanager
def alone(place: Path, *, wait: bool = True) -> Iterator[bool]:
    """The block runs while no other process is in one for that place; without waiting, it is told whether."""
    import fcntl

    with place.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
