"""The preloaded library from Python: compiled when it is first needed, and steered by a few calls."""

from __future__ import annotations

import ctypes
import os
import subprocess
from functools import cache
from pathlib import Path

KILL, TORN, FULL, CLOCK = 1, 2, 3, 4
VARIABLE = "INDLET_FAULT_SHIM"


class NoCompiler(Exception):
    """The library cannot be made here."""


def compiled(folder: Path) -> Path:
    """The library, made of shim.c by the machine's compiler."""
    made = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise NoCompiler(f"no C compiler that can make {made.name}: {e}") from e
    return made


def environment(library: Path) -> dict[str, str]:
    """For a process that is to have it."""
    return {**os.environ, "LD_PRELOAD": str(library), VARIABLE: str(library)}


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ[VARIABLE])


def watch(folder: Path, shadow: Path | None = None) -> None:
    """Changes of files below the folder count from now on."""
    _library().fault_root(str(folder.resolve()).encode())
    _library().fault_shadow(str(shadow or "").encode())


def plan(mode: int, after: int, part: int = 0) -> None:
    """What happens at the change of that number; 0 as mode: nothing, changes are counted."""
    _library().fault_plan(mode, ctypes.c_long(after), ctypes.c_long(part))


def changes() -> int:
    """How many changes there were since the plan was made."""
    return int(_library().fault_changes())
