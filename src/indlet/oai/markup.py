"""Where the parts of a foreign document begin and end, found in one pass over its bytes.

Nothing here is well-formed until proven: an opening may never be closed. Each byte is visited a fixed number
of times all the same: where one opening of a kind has no closing, no later one has, and none is looked for
again.
Patterns match a bounded number of bytes; whatever may be longer is found by `bytes.find`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from indlet.errors import BadResponse

COMMENT: Final = b"<!--"
CDATA: Final = b"<![CDATA["
INSTRUCTION: Final = b"<?"
DOCTYPE: Final = b"<!DOCTYPE"
ROOT: Final = b"<"
_CLOSINGS: Final = {COMMENT: b"-->", CDATA: b"]]>", INSTRUCTION: b"?>"}
_IN_DOCTYPE: Final = {
    COMMENT: b"-->", INSTRUCTION: b"?>", b'"': b'"', b"'": b"'", b"[": b"", b"]": b"", b">": b"",
}  # fmt: skip
# What the body of one response may hold: a tree of it takes some hundred bytes for each of them.
TAGS: Final = 10_000_000
# Prefixes of one response. Each costs memory, and a declaration in what is stored.
PREFIXES: Final = 1000
# A document has one type. Some have their template's beside their own.
DOCTYPES: Final = 16
DOCTYPE_BYTES: Final = 1 << 18
BEFORE_ROOT: Final = 10_000
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_NAME_START = re.compile(rb"[A-Za-z_]")
_HTML_ROOT = re.compile(rb"<html(?![\w.:-])", re.IGNORECASE)
_RECORD = re.compile(rb"<(/?)((?:[\w.-]{1,100}:)?)record(?![\w.:-])", re.IGNORECASE)
_ROOT = re.compile(rb"<(?:[\w.-]{1,100}:)?OAI-PMH(?![\w.:-])", re.IGNORECASE)
_ROOT_CLOSING = re.compile(rb"</(?:[\w.-]{1,100}:)?OAI-PMH(?![\w.:-])", re.IGNORECASE)
_IDENTIFIER = re.compile(rb"<(?:[\w.-]{1,100}:)?identifier(?![\w.:-])", re.IGNORECASE)


def sections(
    body: bytes, closings: Mapping[bytes, bytes], start: int = 0
) -> Iterator[tuple[int, int, bytes]]:
    """(begin, end, opening) of every section that is closed, in their order, none within another.

    `closings` has the closing of each opening; one that is empty makes the opening a section by itself.
    """
    ahead = {opening: body.find(opening, start) for opening in closings}
    while True:
        begin, opening = min(((at, opening) for opening, at in ahead.items() if at >= 0), default=(-1, b""))
        if begin < 0:
            return
        closing = closings[opening]
        end = body.find(closing, begin + len(opening)) + len(closing) if closing else begin + len(opening)
        if end < begin + len(opening):
            ahead[opening] = -1  # nor is any later one closed
            continue
        yield begin, end, opening
        for other, at in ahead.items():
            if 0 <= at < end:
                ahead[other] = body.find(other, end)


def without_comments(body: bytes) -> tuple[bytes, int]:
    """The body without its comments, and how many of them were malformed: they must not hold two hyphens."""
    if COMMENT not in body:
        return body, 0
    kept, last, malformed = list[bytes](), 0, 0
    for begin, end, opening in sections(body, {COMMENT: b"-->", CDATA: b"]]>"}):
        if opening == COMMENT:
            kept.append(body[last:begin])
            malformed += body.find(b"--", begin + 4, end - 3) >= 0
            last = end
    kept.append(body[last:])
    return b"".join(kept), malformed


def by_cdata(body: bytes) -> list[bytes]:
    """The body in pieces: text and mark-up, a CDATA section, text and mark-up …"""
    pieces, last = list[bytes](), 0
    for begin, end, _ in sections(body, {CDATA: b"]]>"}):
        pieces += (body[last:begin], body[begin:end])
        last = end
    return [*pieces, body[last:]]


def prolog(body: bytes, end: int | None = None) -> Iterator[tuple[int, int, bytes]]:
    """(begin, end, kind) of what stands before the root, and last the root: its end is not looked for.

    The kinds are `COMMENT`, `CDATA`, `INSTRUCTION`, `DOCTYPE` and `ROOT`. Text in between is passed over;
    what is not closed is the last, with -1 as its end.
    """
    at, doctypes = body.find(b"<", 0, end), 0
    for _ in range(BEFORE_ROOT):
        if at < 0:
            return
        opening = next((o for o in (COMMENT, CDATA, INSTRUCTION) if body.startswith(o, at)), b"")
        after = at + 1
        if opening:
            closing = _CLOSINGS[opening]
            after = body.find(closing, at + len(opening), end)
            after += len(closing) if after >= 0 else 0
            yield at, after, opening
        elif body[at : at + 9].upper() == DOCTYPE:
            doctypes += 1
            if doctypes > DOCTYPES:
                raise BadResponse(f"more than {DOCTYPES} document types")
            after = doctype_end(body, at)
            yield at, after, DOCTYPE
        elif _NAME_START.match(body, at + 1):
            yield at, -1, ROOT
            return
        at = body.find(b"<", after, end) if after >= 0 else -1
    raise BadResponse(f"more than {BEFORE_ROOT} pieces of mark-up before the root")


def doctype_end(body: bytes, begin: int) -> int:
    """Where a document type ends, its internal subset included; -1 if it does not, or is too long."""
    inside = False
    for _, end, opening in sections(body, _IN_DOCTYPE, begin + 9):
        if opening == b">" and not inside:
            return end
        if end > begin + DOCTYPE_BYTES:
            break
        inside = opening == b"[" or (inside and opening != b"]")
    return -1


def has_doctype(body: bytes) -> bool:
    return any(kind == DOCTYPE for _, _, kind in prolog(body))


def is_html(body: bytes, end: int = 4096) -> bool:
    """Whether the root, or a document type before it, is that of an HTML page."""
    for at, _, kind in prolog(body, end):
        if kind == DOCTYPE and body[at + 9 : at + 100].lstrip()[:4].lower() == b"html":
            return True
        if kind == ROOT:
            return _HTML_ROOT.match(body, at) is not None
    return False


def root_tag(body: bytes, end: int | None = None) -> bytes:
    """The opening tag of an OAI-PMH document; empty if there is none."""
    found = _ROOT.search(body, 0, len(body) if end is None else end)
    closed = body.find(b">", found.end()) if found else -1
    return body[found.start() : closed + 1] if found and closed >= 0 else b""


def root_end(body: bytes) -> int:
    """Behind the last closing tag of an OAI-PMH document; -1 if there is none."""
    last = -1
    for tag in _ROOT_CLOSING.finditer(body):
        if (end := _closed(body, tag.end())) >= 0:
            last = end
    return last


def records(body: bytes) -> list[tuple[int, int]]:
    """Where each record element begins and ends: at the first closing tag of its prefix."""
    last_closing: dict[bytes, int] = {}
    for tag in _RECORD.finditer(body):
        if tag[1] and _closed(body, tag.end()) >= 0:
            last_closing[tag[2].lower()] = tag.start()
            if len(last_closing) > PREFIXES:
                raise BadResponse(f"records under more than {PREFIXES} prefixes")
    found = list[tuple[int, int]]()
    begin, prefix, opened = -1, b"", 0  # `opened`: behind the `>` of the opening tag
    for tag in _RECORD.finditer(body):
        if begin < 0 and not tag[1]:
            if opened <= tag.end():
                opened = body.find(b">", tag.end()) + 1
                if not opened:
                    break
            if last_closing.get(tag[2].lower(), -1) >= opened:
                begin, prefix = tag.start(), tag[2].lower()
        elif begin >= 0 and tag[1] and tag[2].lower() == prefix and tag.start() >= opened:
            end = _closed(body, tag.end())
            if end >= 0:
                found.append((begin, end))
                begin = -1
    return found


def identifier(record: bytes) -> bytes:
    """The text of the first identifier in a record that cannot be parsed; empty if it cannot be told."""
    for tag, _ in zip(_IDENTIFIER.finditer(record), range(10), strict=False):
        begin = record.find(b">", tag.end()) + 1
        end = record.find(b"</", begin, begin + 2100) if begin else -1
        text = record[begin:end].strip() if end >= 0 else b""
        if 0 < len(text) <= 2000 and b"<" not in text:
            return text
    return b""


def _closed(body: bytes, at: int) -> int:
    """Behind the `>` that ends a closing tag, if there is nothing else; -1 if there is."""
    sign = _NOT_SPACE.search(body, at)
    return sign.end() if sign is not None and sign[0] == b">" else -1
