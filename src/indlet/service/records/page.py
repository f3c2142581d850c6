"""An answer becomes a page, by the kernel or by the tolerant reader: chosen here, and nowhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence, Set
from typing import Final

from indlet.kernels import state
from indlet.oai.read import Item, Page, read

_TOKEN = re.compile(
    rb"<resumptionToken[^<>]*>([^<]+)</resumptionToken>\s*</ListRecords>\s*</OAI-PMH>\s*\Z", re.ASCII
)
_SIZE = re.compile(rb"""<resumptionToken\b[^<>]*\bcompleteListSize\s*=\s*["'](\d{1,12})["']""")
_TAIL: Final = 4096
# As our own nodes write it, which is found at the speed of memory; then in any form.
_POLICY = re.compile(rb'<(?:index|ft:bundle) policy="([^"<]{1,64})"')
_ANY_POLICY = re.compile(
    rb"""<(?:[\w.-]{1,40}:)?(?:index|bundle)\s(?:[^<>]{0,2000}?\s)?policy\s*=\s*["']([^"'<]{1,64})["']"""
)
_scanner: Callable[[bytes, str], Page | None] | None = None


def last_token(body: bytes) -> str:
    """The resumption token at the end of a page, before the page is read; empty if there is none."""
    found = _TOKEN.search(body, max(len(body) - _TAIL, 0))
    return "" if found is None else html.unescape(found[1].decode("utf-8", "replace")).strip()


def announced(body: bytes) -> int:
    """How many records a list has, as the end of a page tells before the page is read; 0 if it does not."""
    found = _SIZE.search(body, max(len(body) - _TAIL, 0))
    return 0 if found is None else int(found[1])


def index_policies(body: bytes) -> set[str]:
    """The digests of the policies that the index parts of a page name."""
    found = set(_POLICY.findall(body))
    if not found and b"policy" in body:
        found = set(_ANY_POLICY.findall(body))
    return {digest.decode("utf-8", "replace") for digest in found}


def with_policies(items: Sequence[Item], others: Set[str]) -> list[Item]:
    """Items with the digests that their index parts name, where these are among some."""
    return [item._replace(policy=p) if (p := _policy(item)) in others else item for item in items]


def _policy(item: Item) -> str:
    if item.source is not None:
        page, begin, end = item.source
        return next(iter(index_policies(page[begin:end])), "")
    part = item.metadata if item.index_part is None else item.index_part.getparent()
    return "" if part is None else part.get("policy", "")


def read_page(body: bytes, charset: str = "", *, kernels: bool) -> Page:
    """The page that a body holds: read by the kernel where kernels are worth it and compiled and the page
    needs no repair, by the tolerant reader otherwise. Both give the same records, to the byte.
    """
    scan = _scan() if kernels else None
    return (scan and scan(body, charset)) or read(body, charset)


def _scan() -> Callable[[bytes, str], Page | None] | None:
    """The kernel's reader, once it is compiled."""
    global _scanner
    if _scanner is None and state.ready():
        from indlet.service.records.scan import scan  # and a compiler, which small sources do not need

        _scanner = scan
    elif _scanner is None:
        state.compile_aside()
    return _scanner
