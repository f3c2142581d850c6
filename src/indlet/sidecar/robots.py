"""robots.txt (RFC 9309): which paths of a host may be fetched, and the pause that it asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

ROBOTS_BYTES: Final = 500 * 1024  # RFC 9309, section 2.5, asks for at least as much
LONGEST_DELAY: Final = 3600.0
_RULES: Final = 5000


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules of the group that is about us: (allowed, pattern), and the delay in seconds."""

    rules: tuple[tuple[bool, str], ...] = ()
    delay: float = 0.0

    def allows(self, url: str) -> bool:
        """By the longest pattern that matches; of equal ones, the one that allows (section 2.2.2)."""
        parts = urlsplit(url)
        target = _normal(parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        matching = [(len(pattern), allowed) for allowed, pattern in self.rules if _matches(pattern, target)]
        return max(matching)[1] if matching else True


ALLOW_ALL: Final = RobotRules()


def parse_robots(body: bytes, agent: str) -> RobotRules:
    """The rules of the group for `agent`, or for all agents if there is none."""
    groups: dict[str, list[tuple[bool, str]]] = {}
    delays: dict[str, float] = {}
    names: list[str] = []
    in_rules = False
    for line in body[:ROBOTS_BYTES].decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            names = [] if in_rules else names
            in_rules = False
            names.append(value.lower())
            groups.setdefault(value.lower(), [])
        elif key in ("allow", "disallow"):
            in_rules = True
            for name in names:
                if value and len(groups[name]) < _RULES:
                    groups[name].append((key == "allow", _normal(value)))
        elif key == "crawl-delay":
            in_rules = True
            if re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?", value):
                delays |= dict.fromkeys(names, min(float(value), LONGEST_DELAY))
    product = agent.lower().partition("/")[0].strip()
    name = next((name for name in groups if name != "*" and name and name in product), "*")
    return RobotRules(tuple(groups.get(name, ())), delays.get(name, 0.0))


def _normal(path: str) -> str:
    """One spelling for equal paths: percent-encoded as RFC 9309, section 2.2.2, compares them."""
    return quote(unquote(path), safe="/%?=&*$:;,@+!~'()-._")


def _matches(pattern: str, target: str) -> bool:
    """Whether a pattern with `*` and a final `$` matches the beginning of a target. Linear in both."""
    anchored = pattern.endswith("$")
    pieces = pattern.removesuffix("$").split("*")
    if not target.startswith(pieces[0]):
        return False
    place = len(pieces[0])
    for piece in pieces[1:]:
        found = target.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    if not anchored:
        return True
    return target.endswith(pieces[-1]) if len(pieces) > 1 else place == len(target)
