"""What the end of a page tells before the page is read."""

from __future__ import annotations

import html
import re
from typing import Final

_TOKEN = re.compile(
    rb"<resumptionToken[^<>]*>([^<]+)</resumptionToken>\s*</ListRecords>\s*</OAI-PMH>\s*\Z", re.ASCII
)
_SIZE = re.compile(rb"""<resumptionToken\b[^<>]*\bcompleteListSize\s*=\s*["'](\d{1,12})["']""")
_TAIL: Final = 4096


def last_token(body: bytes) -> str:
    """The resumption token at the end of a page; empty if there is none."""
    found = _TOKEN.search(body, max(len(body) - _TAIL, 0))
    return "" if found is None else html.unescape(found[1].decode("utf-8", "replace")).strip()


def announced(body: bytes) -> int:
    """How many records a list has, as the end of a page tells; 0 if it does not."""
    found = _SIZE.search(body, max(len(body) - _TAIL, 0))
    return 0 if found is None else int(found[1])
