"""A data folder is its owner's alone: it holds bearer tokens and the keys that sessions are signed with."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

# What we keep in a data folder. Its user may keep other things there.
_OURS = ("store.sqlite*", "*.lock", "answered", "usage.json", "index", "index/*")


def keep_private(folder: Path) -> None:
    """Takes the rights of group and others from the folder and what we keep in it, as far as it is ours."""
    for path in (folder, *(found for pattern in _OURS for found in folder.glob(pattern))):
        with contextlib.suppress(OSError):
            about = path.lstat()
            wide, sticky = about.st_mode & 0o077, about.st_mode & stat.S_ISVTX  # /tmp is nobody's own
            if wide and not sticky and not stat.S_ISLNK(about.st_mode) and about.st_uid == os.geteuid():
                path.chmod(stat.S_IMODE(about.st_mode) & 0o700)
