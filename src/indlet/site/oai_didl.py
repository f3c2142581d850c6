"""oai_didl: a resource as an MPEG-21 digital item (ISO/IEC 21000-2), by reference and, if small, by value.

Two descriptors give the identifier (DII) and the http_header; the component's resources are equal bit by bit:
the form of mod_oai (Nelson, Van de Sompel, Liu et al. 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lxml import etree

from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import attribute, text
from indlet.site import http_header

try:
    import pybase64 as base64  # at ten times the speed
except ModuleNotFoundError:
    import base64  # type: ignore[no-redef]

PREFIX: Final = "oai_didl"
NAMESPACE: Final = "urn:mpeg:mpeg21:2002:02-DIDL-NS"
DII_NAMESPACE: Final = "urn:mpeg:mpeg21:2002:01-DII-NS"
_SCHEMAS: Final = "http://standards.iso.org/ittf/PubliclyAvailableStandards/MPEG-21_schema_files"
SCHEMA: Final = f"{_SCHEMAS}/did/didl.xsd"

OPEN: Final = (
    f'<didl:DIDL xmlns:didl="{NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" '
    f'xsi:schemaLocation="{NAMESPACE} {SCHEMA} {DII_NAMESPACE} {_SCHEMAS}/dii/dii.xsd"><didl:Item>'
)
STATEMENT: Final = '<didl:Descriptor><didl:Statement mimeType="application/xml; charset=utf-8">'
STATEMENT_END: Final = "</didl:Statement></didl:Descriptor>"
IDENTIFIER: Final = f'<dii:Identifier xmlns:dii="{DII_NAMESPACE}">'
CLOSE: Final = "</didl:Component></didl:Item></didl:DIDL>"
_BASE64 = b' encoding="base64">'


def write(url: str, media_type: str, header: bytes, content: bytes | None) -> bytes:
    """The DIDL element; `content` is the resource itself, where it is to stand inside."""
    return b"".join(pieces(url, media_type, header, content))


def pieces(url: str, media_type: str, header: bytes, content: bytes | None) -> list[bytes]:
    """The same, not joined: whoever puts it into a page copies it anyway."""
    kind = attribute(media_type)
    parts = [
        f"{OPEN}{STATEMENT}{IDENTIFIER}{text(url)}</dii:Identifier>{STATEMENT_END}{STATEMENT}".encode(),
        header,
        f'{STATEMENT_END}<didl:Component><didl:Resource mimeType="{kind}" ref="{attribute(url)}"/>'.encode(),
    ]
    if content is not None:
        parts += [
            f'<didl:Resource mimeType="{kind}" encoding="base64">'.encode(),
            base64.b64encode(content),
            b"</didl:Resource>",
        ]
    parts.append(CLOSE.encode())
    return parts


@dataclass(frozen=True, slots=True)
class Component:
    """One file of a digital item: where it is, or what it is, or both."""

    ref: str = ""
    media_type: str = ""
    content: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()  # of http_header, where the item has one for this file alone
    sha256: str = ""
    encoded: memoryview | None = None  # the content, still in base64


def without_content(body: bytes) -> tuple[bytes, Sequence[memoryview]]:
    """An answer with `#` and a number for each text in base64, and these texts: no parser need look at them.

    The answer as it is, where a text is not plain base64 or where a `<` may be anything but a tag's.
    """
    view, done = memoryview(body), 0
    pieces, contents = list[bytes | memoryview](), list[memoryview]()
    first = body.find(_BASE64)
    while (at := body.find(_BASE64, done)) >= 0:
        begin = at + len(_BASE64)
        end = body.find(b"<", begin)
        # An apostrophe: all this stands in an attribute. An ampersand: a line break, written as a reference.
        if end < 0 or body.find(b"'", begin, end) >= 0 or body.find(b"&", begin, end) >= 0:
            return body, ()
        pieces += (view[done:begin], b"#%d" % len(contents))
        contents.append(view[begin:end])
        done = end
    rest = b"".join((*pieces, view[done:]))
    prolog = rest.rfind(b"<?", 0, first) <= rest.rfind(b"?>", 0, first)
    if not contents or not prolog or b"<!" in rest or rest.find(b"<?", first) >= 0:
        return body, ()
    return rest, contents


def read(root: etree._Element, contents: Sequence[memoryview] = ()) -> list[Component]:
    """The files of an item, whoever wrote it: known by local names, in items within items too.

    mod_oai writes one component with equal resources, DSpace a component for each bitstream, by reference or
    in base64, EPrints an item for each document, by reference. `contents` are those of `without_content`.
    """
    found = [one for node in root.iter("{*}Component") if (one := _component(node, contents)) is not None]
    headers = list(root.iter("{*}headers"))
    if len(found) == 1 and len(headers) == 1:
        fields, digest = http_header.read(headers[0])
        return [replace(found[0], headers=fields, sha256=digest)]
    return found


def _component(node: etree._Element, contents: Sequence[memoryview]) -> Component | None:
    ref = media_type = ""
    content: bytes | None = None
    for resource in node:
        if _local(resource) != "Resource":
            continue
        media_type = media_type or resource.get("mimeType", "")
        if resource.get("ref"):
            ref = ref or resource.get("ref", "").strip()
        elif "base64" in resource.get("encoding", "").split():
            content = decoded(_content(resource.text or "", contents))
    return Component(ref, media_type, content) if ref or content is not None else None


def _content(written: str, contents: Sequence[memoryview]) -> str | memoryview:
    """A text as it stands, or the one that its number stands for."""
    number = written.removeprefix("#")
    if number == written or not number.isdecimal() or len(number) > 9 or int(number) >= len(contents):
        return written
    return contents[int(number)]


def decoded(text: str | memoryview) -> bytes | None:
    """What stands in base64; None if it is not. Line breaks are taken out only where there are any."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error, and text that is not ASCII
        pass
    plain = bytes(text) if isinstance(text, memoryview) else text.encode("utf-8", "replace")
    try:
        return base64.b64decode(b"".join(plain.split()), validate=True)
    except ValueError:
        return None


def _local(node: etree._Element) -> str:
    return str(node.tag).rpartition("}")[2] if isinstance(node.tag, str) else ""
