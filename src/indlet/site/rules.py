"""Files with a web server's rules: whether what a crawl got as a stranger may be refused to somebody else.

That is so where a rule is not as the crawl met it, and where a rule takes from some what everybody else may
have (`Require not ip 203.0.113.0/24`): the crawl is a stranger, and not one of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from indlet.settings import Site
from indlet.site.ignore import RULE_FILE

_LARGEST: Final = 1 << 20
# Of Apache and nginx: what may refuse one requester and not another, whoever they are.
_SELECTIVE: Final = re.compile(
    rb"""(?imx) (?:^|[;{}]) \s* (?:
        <RequireNone\b | <If\b | Require \s+ (?:not|expr|env|host|forward-dns)\b
        | Deny \s+ from \s+ (?!all\s*$) | deny \s+ (?!all\s*;|from\b) [^\s;]+ \s* ;
        | RewriteRule \s .* \[ [^\]]* (?:\bF\b|\bforbidden\b|\bG\b|\bgone\b|\bR=4\d\d\b)
        | RewriteCond \s+ "? %\{ (?:REMOTE_|HTTP:|HTTP_(?!HOST\b)|SSL:|SSL_|ENV:|TIME|LA-U:)
        | if \s* \( \s* !? \$ (?:remote_|http_(?!host\b)|cookie_|geoip|ssl_client|invalid_referer)
        | return \s+ 40[134]\b
    )"""
)


# What lets some addresses in. A server that takes the crawl for one of them answers it as it answers nobody
# else. The addresses are named, so that it can be tried whether the server tells them from others.
_BY_ADDRESS: Final = re.compile(
    rb"""(?imx) (?:^|[;{}]) \s* (?:
        Require \s+ (?P<local>local)\b | Require \s+ (?:ip|host|forward-dns) \s+ (?P<ip>[^\s]+)
        | Require \s+ expr \b .* REMOTE_(?:ADDR|HOST) | SetEnvIf(?:NoCase)? \s+ Remote_
        | Allow \s+ from \s+ (?!all\b) (?P<allow>[^\s]+)
        | allow \s+ (?!all\s*;|from\b) (?P<nginx>[^\s;]+) \s* ;
        | RewriteCond \s+ "? %\{ REMOTE_(?:ADDR|HOST) \} "? \s+ "? ! (?P<rewrite>[^\s"]+)
    )"""
)


class AccessRules:
    """The rules of a site as they are now, beside those that its last crawl `met` (see `RulesMet`)."""

    def __init__(self, site: Site, met: Mapping[str, str]) -> None:
        self._root, self._met = Path(site.root), met
        self._known: dict[str, bool] = {}
        self._for_all = rules_for_all(site)
        # Whether the server is to be asked for every file.
        self.everywhere = site.always_ask or any(self._doubtful(f, str(f)) for f in self._for_all)

    def doubtful(self, path: str) -> bool:
        """Whether a rule on the way to a path, or one for all of the site, may refuse it to somebody."""
        return self.everywhere or any(self._folder(folder) for folder in _folders(path))

    def has_address_rules(self, path: str) -> bool:
        """Whether a rule that can be read lets some addresses in to a path."""
        files = [*self._for_all, *(self._root / folder / RULE_FILE for folder in _folders(path))]
        return any((state := _state(file)) and _addresses(str(file), state) is not None for file in files)

    def _folder(self, folder: str) -> bool:
        if folder not in self._known:
            self._known[folder] = self._doubtful(self._root / folder / RULE_FILE, _inside(folder))
        return self._known[folder]

    def _doubtful(self, file: Path, name: str) -> bool:
        now = _state(file)
        return bool(now) and (now != self._met.get(name) or _is_selective(str(file), now))

    def anywhere(self) -> bool:
        """Whether that holds for any path at all, as far as the files with rules go that the crawl met."""
        if self.everywhere:
            return True
        folders = [name[2:].removesuffix(RULE_FILE).rstrip("/") for name in self._met if name[:2] == "./"]
        return any(self._folder(one) or not _state(self._root / one / RULE_FILE) for one in folders)


class RulesMet:
    """Collects the state of each file with rules, before the server is asked for what lies below it."""

    def __init__(self, site: Site) -> None:
        self._root = Path(site.root)
        self.states: dict[str, str] = {}
        self.selective = site.always_ask  # whether a rule may refuse one client what others get
        self._by_address: dict[str, set[str]] = {}
        for file in rules_for_all(site):
            self._note(file, str(file))

    def enter(self, folder: str) -> None:
        self._note(self._root / folder / RULE_FILE, _inside(folder))

    def _note(self, file: Path, name: str) -> None:
        if state := _state(file):
            self.states[name] = state
            self.selective = self.selective or _is_selective(str(file), state)
            if (found := _addresses(str(file), state)) is not None:
                self._by_address[name] = found

    def addresses(self, path: str) -> set[str] | None:
        """Addresses that rules for a path name as let in; None if no rule for it goes by addresses."""
        names = [name for name in self._by_address if name[:2] != "./"]
        names += [name for name in map(_inside, _folders(path)) if name in self._by_address]
        return {one for name in names for one in self._by_address[name]} if names else None


def rules_for_all(site: Site) -> list[Path]:
    """The files whose rules hold for all of a site: the named ones, and those above its folder."""
    root = Path(site.root)
    above = dict.fromkeys((*root.absolute().parents, *root.resolve().parents))
    return [*(Path(path).absolute() for path in site.config), *(folder / RULE_FILE for folder in above)]


def _inside(folder: str) -> str:
    """The name under which the rules of a folder of the site are kept."""
    return f"./{folder}/{RULE_FILE}" if folder else f"./{RULE_FILE}"


def _folders(path: str) -> Iterator[str]:
    yield ""
    parts = path.split("/")[:-1]
    for depth in range(len(parts)):
        yield "/".join(parts[: depth + 1])


def _state(path: Path) -> str:
    """What changes whenever another file, or other bytes, come to stand there; empty if nothing does."""
    try:
        found = path.stat()
    except OSError:
        return ""
    # The change time is set by the system alone; the inode tells a folder that was moved into place.
    return f"{found.st_dev:x}:{found.st_ino:x}:{found.st_ctime_ns:x}:{found.st_size:x}"


@lru_cache(4096)
def _is_selective(path: str, state: str) -> bool:
    """Whether a file holds a rule that may refuse one requester and not another; the server is asked then."""
    try:
        with Path(path).open("rb") as file:
            return _SELECTIVE.search(file.read(_LARGEST)) is not None
    except OSError:
        return True


@lru_cache(4096)
def _addresses(path: str, state: str) -> set[str] | None:
    """Addresses that a file's rules let in; None if none of its rules goes by addresses."""
    try:
        with Path(path).open("rb") as file:
            found = list(_BY_ADDRESS.finditer(file.read(_LARGEST)))
    except OSError:
        return None
    if not found:
        return None
    named = {
        re.sub(r"[\\^$=]", "", one.decode("latin-1")) for match in found for one in match.groups() if one
    }
    return {"127.0.0.1" if one.lower() == "local" else one.partition("/")[0] for one in named}
