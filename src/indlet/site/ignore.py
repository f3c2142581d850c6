"""What Apache leaves out of its listings (IndexIgnore), by configuration files and .htaccess."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

RULE_FILE: Final = ".htaccess"
_LARGEST: Final = 1 << 20
# Patterns that hold in one folder: whoever may write into it writes them; thousands take minutes to compile.
# Where there are more, everything is left out, for what they would hide must not be shown.
_MOST: Final = 1000
_DIRECTORY = re.compile(r"""<Directory\s+"?([^">~*?\[]+)"?\s*>""", re.IGNORECASE)
_END = re.compile(r"</Directory\s*>", re.IGNORECASE)


class IndexIgnore:
    """Patterns by the folder that they hold below; those of deeper folders add to those above."""

    def __init__(
        self, root: Path, patterns: Iterable[str], config: Iterable[Path], named: Path | None = None
    ) -> None:
        """`named`: the root as configuration files call it, if that is a link."""
        self._root, self._named = root, named or root
        self._global = list(patterns)
        self._below: dict[Path, list[str]] = {}
        for path in config:
            self._read(path)
        self._known: dict[str, tuple[str, ...]] = {}
        self._compiled: dict[tuple[str, ...], re.Pattern[str]] = {}

    def _read(self, path: Path) -> None:
        """IndexIgnore of a configuration file: for a <Directory> if it stands in one, else for all."""
        here: Path | None = None
        for line in _lines(path):
            if match := _DIRECTORY.match(line):
                here = Path(match[1].strip())
            elif _END.match(line):
                here = None
            elif patterns := _patterns(line):
                target = self._global if here is None else self._below.setdefault(here, [])
                target += patterns

    def refuses(self, path: str) -> bool:
        """Whether a path below the root, or a folder on the way to it, is one that Apache would not list."""
        folder = ""
        for part in path.split("/"):
            if self._pattern(folder).fullmatch(part):
                return True
            folder = f"{folder}/{part}" if folder else part
        return False

    def _pattern(self, folder: str) -> re.Pattern[str]:
        patterns = self._patterns(folder)
        if patterns not in self._compiled:
            joined = "|".join(fnmatch.translate(pattern) for pattern in patterns)
            self._compiled[patterns] = re.compile(joined or r"(?!)")
        return self._compiled[patterns]

    def _patterns(self, folder: str) -> tuple[str, ...]:
        """All that hold in a folder."""
        known = self._known.get(folder)
        if known is None:
            above = self._patterns(folder.rpartition("/")[0]) if folder else tuple(self._global)
            place = self._root / folder
            own = [pattern for line in _lines(place / RULE_FILE) for pattern in _patterns(line)]
            places = dict.fromkeys((place, self._named / folder))
            known = (*above, *(one for name in places for one in self._below.get(name, ())), *own)
            known = self._known[folder] = known if len(known) <= _MOST else ("*",)
        return known


def _lines(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_LARGEST)
    except OSError:
        return []
    return [stripped for line in text.replace("\\\n", " ").splitlines() if (stripped := line.strip())]


def _patterns(line: str) -> list[str]:
    name, *given = line.split(None, 1)
    if name.lower() != "indexignore" or not given:
        return []
    rest = given[0]
    try:
        return shlex.split(rest, comments=False)
    except ValueError:
        return rest.split()
