"""What sites add: a web server's files as a repository, and mirrors of such repositories."""

from __future__ import annotations

from typing import Final

from indlet.extension import CommandEntry, Extension

EXTENSION: Final = Extension(
    name="site",
    commands={
        "site": CommandEntry("indlet.site.command", "Make a web server's files harvestable."),
        "mirror": CommandEntry(
            "indlet.site.mirror.command", "Mirror the files of a site, or list what changed."
        ),
    },
)
