"""What others can make us spend: the limits on what is derived from one response, one query, one process.

A response or a query is small, what comes of it need not be. Whatever is derived from one is charged to its
budget, and what would exceed that is not made.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from indlet.errors import BadResponse

MB: Final = 1024 * 1024
# Bytes of records, vectors and error reports that may come of one response: a multiple of its own size, at
# least FLOOR and at most MOST. Exclusive canonical XML repeats namespaces: three times the size is common.
EXPANSION: Final = 20
EXPANSION_FLOOR: Final = MB
EXPANSION_MOST: Final = 512 * MB
# A stated length of a document contradicts its vector if it is larger: where all terms are listed with their
# frequencies, than twice their sum; where terms were left out, than this often for each term that is there.
LENGTH_SLACK: Final = 100
OCCURRENCES: Final = 10_000
# Tokens that one document can claim, for its length counts in the average of all: OCCURRENCES for each of its
# terms, but at least the first number and at most the second (a text of some 100 MB).
LENGTH_FLOOR: Final = 100_000
LENGTH_MOST: Final = 20_000_000
# Misspelt words of one query for which the whole vocabulary is searched.
MISSPELT_WORDS: Final = 3
# Records of one query whose metadata are read, to see whether they hold its phrases.
VERIFIED_RECORDS: Final = 5_000
# Memory that a child may allocate, mapped files apart, and bytes that must be free on the disk of a commit.
CHILD_MEMORY_MB: Final = 4096
FREE_DISK: Final = 64 * MB
MEMORY_SPENT: Final = f"more than {CHILD_MEMORY_MB} MB of memory would be needed; what was committed stands"


def require_room(folder: Path, size: int, floor: int = FREE_DISK) -> None:
    """OSError (ENOSPC) if a commit of `size` bytes would leave less than the floor on the disk of a folder.

    Whoever fills a disk to its end takes the room from the journal, the logs and every other program.
    """
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < floor + size:
        raise OSError(errno.ENOSPC, f"{free:,} bytes are free on the disk, and {floor + size:,} are needed")


class Budget:
    """The bytes that may still be derived from one response."""

    __slots__ = ("left", "total")

    def __init__(self, size: int) -> None:
        """For a response of `size` bytes."""
        self.left = self.total = min(EXPANSION * size + EXPANSION_FLOOR, max(EXPANSION_MOST, size))

    def charge(self, size: int) -> None:
        """Spend bytes; BadResponse if there are not as many."""
        self.left -= size
        if self.left < 0:
            raise BadResponse(
                f"more than {self.total:,} bytes would come of one response, {EXPANSION} times its size; "
                "ask the source to declare namespaces where they are used, and each term once"
            )

    def try_charge(self, size: int) -> bool:
        """Spend bytes if there are as many."""
        if size > self.left:
            return False
        self.left -= size
        return True
