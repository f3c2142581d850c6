"""Passwords and tokens given to a command: from its arguments, the environment, or a file."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import TextIO

from indlet.errors import SettingsError

_LONGEST = 4096


def secret(given: str | None, file: TextIO | None) -> str | None:
    """The secret, from a file where one is named. One that stood in the arguments is taken out of `ps`."""
    if file is not None:
        found = file.readline(_LONGEST).rstrip("\r\n")
        if not found:
            raise SettingsError(f"{file.name}: its first line is empty; it should hold the secret")
        return found
    if given:
        hide(given)
    return given


def hide(value: str) -> None:
    """Overwrites an argument where other users could read it; it was there until now.

    Linux shows the memory of the arguments itself; where it cannot be found, nothing is done.
    """
    raw = value.encode()
    with contextlib.suppress(OSError, ValueError, IndexError):
        shown = Path("/proc/self/cmdline").read_bytes()
        # Fields 48 and 49 of proc(5), counted after the name, which may hold blanks: where they lie.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begin, end = int(fields[45]), int(fields[46])
        place = shown.find(raw)
        while place >= 0 and begin + place + len(raw) <= end:
            ctypes.memset(begin + place, ord("*"), len(raw))
            place = shown.find(raw, place + len(raw))
