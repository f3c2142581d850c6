"""A power cut, played upon files: of what was written and not synced, all, a part or nothing remains.

Names of files are taken to survive (as on file systems that write their journal in order); contents are not.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path


def remember(data: Path, shadow: Path) -> None:
    """Whatever is there now has been synced."""
    shutil.rmtree(shadow, ignore_errors=True)
    shadow.mkdir()
    for place in data.rglob("*"):
        if place.is_file():
            shutil.copyfile(place, shadow / str(place.stat().st_ino))


def cut(data: Path, shadow: Path, chance: random.Random) -> int:
    """Take away what was not synced; how many files lost something."""
    lost = 0
    for place in sorted(data.rglob("*")):
        if not place.is_file() or not (shadow / f"{place.stat().st_ino}.dirty").exists():
            continue
        if place.name.endswith("-shm"):
            continue  # shared memory of SQLite, which is made anew
        synced = shadow / str(place.stat().st_ino)
        old, new = synced.read_bytes() if synced.exists() else b"", place.read_bytes()
        at = chance.choice((0, len(new), chance.randint(0, max(len(new), 1))))
        kept = new[:at] + old[at:]
        if kept != new:
            lost += 1
            place.write_bytes(kept)
    return lost
