"""The page that `read.read` gives, at a fraction of the cost, where it is written as our own nodes do.

Bytes are taken apart by a few patterns, and every byte must be accounted for: whatever is not of the expected
shape, down to a term out of order, makes `fast` return None, and the tolerant reader takes over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from indlet.model import TermVector
from indlet.oai.names import FT_NAMESPACE, OAI_NAMESPACE, TF_NAMESPACE
from indlet.oai.read import Item, Page

# Packed vectors -> for each the sum of its frequencies, or -1 where it is not canonical.
Check = Callable[[Sequence[bytes]], Sequence[int]]

_HEAD = re.compile(
    rb'<\?xml version="1\.0" encoding="UTF-8"\?>\s*'
    rb'(?:<\?xml-stylesheet type="text/xsl" href="[^"<>?]*"\?>\s*)?'
    rb'<OAI-PMH xmlns="([^"<>&]*)" xmlns:xsi="http://www\.w3\.org/2001/XMLSchema-instance" '
    rb'xsi:schemaLocation="[^"<>]*">\s*<responseDate>([^<&]*)</responseDate>\s*'
    rb'<request(?: (?:verb|metadataPrefix|indexPrefix|from|until|set|resumptionToken)="[^"<>]*")*>'
    rb"[^<]*</request>\s*<ListRecords>\s*"
)
_HEADER = re.compile(
    rb'<record><header(?: status="(deleted)")?><identifier>([^<]+)</identifier>'
    rb"<datestamp>([^<&]*)</datestamp>"
    rb"((?:<setSpec>[^<&\s]+</setSpec>)*)</header>"
)
_TAIL = re.compile(
    rb'(?:<resumptionToken(?: expirationDate="[^"<>]*")?(?: completeListSize="([0-9]{1,14})")?'
    rb'(?: cursor="([0-9]{1,14})")?>([^<]*)</resumptionToken>\s*)?</ListRecords>\s*</OAI-PMH>\s*'
)
_DC_OPEN = re.compile(
    rb'<oai_dc:dc xmlns:oai_dc="http://www\.openarchives\.org/OAI/2\.0/oai_dc/" '
    rb'xmlns:dc="http://purl\.org/dc/elements/1\.1/"'
    rb'(?: xmlns:xsi="http://www\.w3\.org/2001/XMLSchema-instance" xsi:schemaLocation="[^"<>&]*")?>'
)
_DC = re.compile(r"<dc:([a-z]+)>([^<]*)</dc:\1>")
_TERMS_OPEN = re.compile(
    rb'<terms xmlns="' + TF_NAMESPACE.encode() + rb'" length="([0-9]{1,9})"(?: lang="([a-z-]*)")?>'
)
_TERM = re.compile(rb'<term name="([^"<>&\s]+)" freq="([1-9][0-9]{0,8})"/>')
_BAD_REFERENCE = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#13|#10|#9);)")
# What XML does not have, and the carriage return, which a parser would change.
_CONTROLS: Final = bytes(b for b in range(32) if b not in (9, 10))


def fast(body: bytes, check: Check | None = None) -> Page | None:
    """The page, or None for one that the tolerant reader must look at.

    `check` tells canonical vectors from others, in the place of `canonical`.
    """
    head = _HEAD.match(body)
    if head is None or not _plain(body):
        return None
    namespace = head[1].decode()
    if namespace not in (OAI_NAMESPACE, FT_NAMESPACE):
        return None
    page = Page(head[2].decode().strip(), "ListRecords", extended=namespace == FT_NAMESPACE)
    at = head.end()
    references = b"&" in body
    while match := _HEADER.match(body, at):
        item = _item(match, references)
        at = match.end()
        if not match[1]:
            at = _parts(body, at, item)
            if at < 0:
                return None
        if body[at : at + 9] != b"</record>":
            return None
        at += 9
        if body[at : at + 1] == b"\n":
            at += 1
        page.items.append(item)
    vectors = [item.vector for item in page.items if item.vector is not None]
    for vector, total in zip(vectors, (check or canonical)([v.packed for v in vectors]), strict=True):
        if total < 0 or total > vector.length:
            return None
    tail = _TAIL.fullmatch(body, at)
    if tail is None:
        return None
    if tail[3] is not None:
        page.token = _unescaped(tail[3].decode()).strip()
        page.size = None if tail[1] is None else int(tail[1])
        page.cursor = None if tail[2] is None else int(tail[2])
    return page


def _plain(body: bytes) -> bool:
    if len(body.translate(None, _CONTROLS)) != len(body) or b"<!" in body or b"]]>" in body:
        return False
    if b"&" in body and _BAD_REFERENCE.search(body):
        return False
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\xef\xbf" not in body and b"\xc2\x85" not in body and b"\xe2\x80\xa8" not in body


def _item(match: re.Match[bytes], references: bool) -> Item:
    identifier = match[2].decode()
    if references and "&" in identifier:
        identifier = _unescaped(identifier)
    sets = match[4]
    return Item(
        identifier.strip(),
        match[3].decode().strip(),
        tuple(dict.fromkeys(sets[9:-10].decode().split("</setSpec><setSpec>"))) if sets else (),
        bool(match[1]),
    )


def _parts(body: bytes, at: int, item: Item) -> int:
    """Where the parts of a record end; -1 if one of them is not as we write it."""
    if body[at : at + 10] != b"<metadata>":
        return -1
    end = body.find(b"</metadata>", at)
    raw = body[at + 10 : end]
    pairs = _dublin_core(raw) if end >= 0 else None
    if pairs is None:
        return -1
    item.metadata, item.pairs = raw, pairs
    at = end + 11
    if body[at : at + 7] == b"<index>":
        end = body.find(b"</index>", at)
        item.vector = terms(body[at + 7 : end]) if end >= 0 else None
        if item.vector is None:
            return -1
        at = end + 8
    return at


def _dublin_core(raw: bytes) -> Sequence[tuple[str, str]] | None:
    opening = _DC_OPEN.match(raw)
    if opening is None or not raw.endswith(b"</oai_dc:dc>"):
        return None
    inner = raw[opening.end() : -12].decode()
    found: list[tuple[str, str]] = _DC.findall(inner)
    # Every tag belongs to an element that was found, and no text stands between two of them.
    if inner.count("<") != 2 * len(found) or inner.count("><") != max(len(found) - 1, 0):
        return None
    if inner[-1:] not in (">", "") or inner[:1] not in ("<", ""):
        return None
    return [(name, _unescaped(value)) for name, value in found] if "&" in inner else found


def terms(part: bytes) -> TermVector | None:
    """The vector of a `terms` element in the form of tf_compact or tf_basic, not yet checked."""
    opening = _TERMS_OPEN.match(part)
    if opening is None or not part.endswith(b"</terms>"):
        return None
    inner = part[opening.end() : -8]
    packed = _compact(inner) if inner.startswith(b'<t f="') else _basic(inner)
    if packed is None:
        return None
    return TermVector(packed, int(opening[1]), None, (opening[2] or b"").decode())


def _compact(inner: bytes) -> bytes | None:
    if not inner.endswith(b"</t>"):
        return None
    packed = inner[6:-4].replace(b'</t><t f="', b"\n").replace(b'">', b" ")
    if b"<" in packed or b'"' in packed or b"\t" in packed or packed.count(b"\n") != inner.count(b"<t ") - 1:
        return None
    if b"&" in packed:
        packed = packed.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&quot;", b'"')
        packed = packed.replace(b"&apos;", b"'").replace(b"&amp;", b"&")
    return packed


def _basic(inner: bytes) -> bytes | None:
    found = _TERM.findall(inner)
    groups: dict[bytes, list[bytes]] = {}
    for name, frequency in found:
        groups.setdefault(frequency, []).append(name)
    size = sum(len(f) * len(names) + sum(map(len, names)) for f, names in groups.items())
    if size + 23 * len(found) != len(inner):
        return None
    return b"\n".join(b"%b %b" % (f, b" ".join(names)) for f, names in groups.items())


def canonical(packed: Sequence[bytes]) -> list[int]:
    """For each vector the sum of its frequencies, or -1 where it is not in canonical form."""
    return list(map(_total, packed))


def _total(packed: bytes) -> int:
    if not packed:
        return 0
    last = total = count = 0
    seen: set[bytes] = set()
    for line in packed.split(b"\n"):
        number, *words = line.split(b" ")
        if not number.isdigit() or number[:1] == b"0" or len(number) > 9 or not all(words or [b""]):
            return -1
        frequency = int(number)
        if frequency <= last or (len(words) > 1 and words != sorted(words)):
            return -1
        last = frequency
        count += len(words)
        total += frequency * len(words)
        seen.update(words)
    return total if len(seen) == count else -1


def _unescaped(value: str) -> str:
    if "&" not in value:
        return value
    for reference, meant in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&#13;", "\r"),
                             ("&#10;", "\n"), ("&#9;", "\t"), ("&amp;", "&")):  # fmt: skip
        value = value.replace(reference, meant)
    return value
