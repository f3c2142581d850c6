"""Files with a web server's rules: whether what a crawl got as a stranger may be refused to somebody else.

That is so where a rule is newer than the crawl, and where a rule takes from some what everybody else may have
(`Require not ip 203.0.113.0/24`): the crawl is a stranger, and not one of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from indlet.provider.site.ignore import RULE_FILE
from indlet.provider.summary import left_out_of
from indlet.settings import Site
from indlet.store import View

_NEVER: Final = float("-inf")
_LARGEST: Final = 1 << 20
# Of Apache and nginx: what may refuse one requester and not another, whoever they are.
_SELECTIVE: Final = re.compile(
    rb"""(?imx) (?:^|[;{]) \s* (?:
        <RequireNone\b | <If\b | Require \s+ (?:not|expr|env|host|forward-dns)\b
        | Deny \s+ from \s+ (?!all\s*$) | deny \s+ (?!all\s*;|from\b) [^\s;]+ \s* ;
        | RewriteRule \s .* \[ [^\]]* (?:\bF\b|\bforbidden\b|\bR=40[13]\b)
        | return \s+ 40[13]\b
    )"""
)


class AccessRules:
    """The rules of a site, as they stand beside a crawl that began then."""

    def __init__(self, site: Site, crawled: float) -> None:
        self._root, self._crawled = Path(site.root), crawled
        self._known: dict[str, bool] = {}
        # Whether the server is to be asked for every file.
        self.everywhere = site.always_ask or any(self._doubtful(Path(path)) for path in site.config)

    def doubtful(self, path: str) -> bool:
        """Whether a rule on the way to a path, or one for all of the site, may refuse it to somebody."""
        return self.everywhere or any(self._folder(folder) for folder in _folders(path))

    def _folder(self, folder: str) -> bool:
        if folder not in self._known:
            self._known[folder] = self._doubtful(self._root / folder / RULE_FILE)
        return self._known[folder]

    def _doubtful(self, file: Path) -> bool:
        changed = _changed_at(file)
        return changed >= self._crawled or (changed > _NEVER and _is_selective(str(file), changed))

    def anywhere(self, files: Iterable[str]) -> bool:
        """Whether that holds for any path at all; `files` are those with rules that the crawl met."""
        return self.everywhere or any(
            self.doubtful(path) or _changed_at(self._root / path) == _NEVER for path in files
        )


def rule_files(view: View, origin: int) -> list[str]:
    """The files with rules that a crawl met: it has left them out, and said so."""
    return [path for path, _ in left_out_of(view, origin) if path.rpartition("/")[2] == RULE_FILE]


def _folders(path: str) -> Iterator[str]:
    yield ""
    parts = path.split("/")[:-1]
    for depth in range(len(parts)):
        yield "/".join(parts[: depth + 1])


def _changed_at(path: Path) -> float:
    """When a file's inode last changed, which nobody can set back; never, if it is not there."""
    try:
        return path.stat().st_ctime
    except OSError:
        return _NEVER


@lru_cache(4096)
def _is_selective(path: str, changed: float) -> bool:
    """Whether a file holds a rule that may refuse one requester and not another; the server is asked then."""
    try:
        with Path(path).open("rb") as file:
            return _SELECTIVE.search(file.read(_LARGEST)) is not None
    except OSError:
        return True
