"""The last second in which a list was answered, in a small file next to the store.

Not in the store itself: an answer must not wait for a writer. A transaction reads the file just before its
commit and once more after it (`SqlTransaction.late`). An answer that does not show the commit has written its
note before it took its snapshot, so one of the two readings finds it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

FILE_NAME: Final = "answered"
_BYTES: Final = 20


class AnsweredFile:
    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def note(self, second: int) -> None:
        """Keep this second, unless a later one is kept; durable when it returns."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if second > _second(os.pread(file, _BYTES, 0)):
                os.pwrite(file, b"%0*d" % (_BYTES, second), 0)
                os.fdatasync(file)
        finally:
            os.close(file)

    def second(self) -> int:
        """The second that is kept; 0 if none is."""
        try:
            return _second(self._path.read_bytes())
        except FileNotFoundError:
            return 0


def _second(content: bytes) -> int:
    return int(content) if len(content) == _BYTES and content.isdigit() else 0
