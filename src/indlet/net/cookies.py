"""Cookies: some servers turn away whoever has none, or know by them how far a list was read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Servers that are remembered, and cookies of each.
SERVERS: Final = 16
COOKIES: Final = 16
_COOKIE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100})=([\x21-\x3a\x3c-\x7e]{0,2000})\s*(?:;|$)")
_OVER = re.compile(r";\s*(?:max-age\s*=\s*[0-]|expires\s*=[^;]{0,20}1970)", re.IGNORECASE)


class Cookies:
    """Those that came in one run. Each goes back to the scheme, host and port that set it, and nowhere else;
    for whom or how long it was meant does not matter within one run."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, str]] = {}

    def keep(self, origin: str, fields: Iterable[tuple[str, str]]) -> None:
        """Take what the header fields of an answer set."""
        for field, value in fields:
            found = _COOKIE.match(value) if field.lower() == "set-cookie" else None
            if found is None:
                continue
            kept = self._kept.setdefault(origin, {})
            kept.pop(found[1], None)
            if not _OVER.search(value):
                kept[found[1]] = found[2]
            if len(kept) > COOKIES:
                del kept[next(iter(kept))]
            if len(self._kept) > SERVERS:
                del self._kept[next(iter(self._kept))]

    def told(self, origin: str) -> str:
        """The Cookie field for a request; empty if there is nothing to tell."""
        return "; ".join(f"{name}={value}" for name, value in self._kept.get(origin, {}).items())
