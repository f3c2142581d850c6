"""The records of a page that is written as `indlet site` writes it, without an XML parser.

A page is taken whole or not at all: one that is written otherwise is left to the tolerant reader
(oai/read.py). Files in base64 stay where they are in the page.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from indlet.errors import BadResponse
from indlet.oai.names import OAI_NAMESPACE
from indlet.oai.read import Page, read
from indlet.site import http_header, oai_didl
from indlet.site.oai_didl import Component

_TEXT: Final = r"[^<>&\x00-\x1f]"
_QUOTED: Final = r"""[^<>&"\x00-\x1f]"""
_HEAD: Final = re.compile(
    rb"""<\?xml version="1.0" encoding="UTF-8"\?>\n(?:<\?xml-stylesheet [^<>?]{0,500}\?>\n)?"""
    rb"""<OAI-PMH xmlns="%b"[^<>&]{0,1000}>\n<responseDate>[^<>&]{0,50}</responseDate>\n"""
    rb"""<request[^<>]{0,65536}>[^<&]{0,65536}</request>\n<ListRecords>\n"""
    % re.escape(OAI_NAMESPACE.encode())
)
_AROUND: Final = 1 << 17  # bytes of a page after its last record
_MANY: Final = "{0,1000}"  # elements of one kind in a record: a match of more takes memory for each
_NO_XML: Final = re.compile("[\ufffe\uffff]")  # characters that a parser refuses
_HEADER: Final = (
    r"<record><header( status=\"deleted\")?><identifier>([^<>&\s\x00-\x1f]+)</identifier>"
    rf"<datestamp>{_TEXT}*</datestamp>(?:<setSpec>{_TEXT}*</setSpec>){_MANY}</header>"
)
_FIELDS: Final = (
    re.escape(http_header.OPEN)
    + rf'"{_QUOTED}*">((?:<http:header name="{_QUOTED}*">{_TEXT}*</http:header>){_MANY})'
    + r'(?:<http:digest algorithm="sha-256">([0-9a-f]{64})</http:digest>)?</http:headers>'
)
_END: Final = "</metadata></record>\n"
_DIDL_END: Final = f"{oai_didl.CLOSE}{_END}"
_BASE64: Final = b' encoding="base64">'
_CONTENT_END: Final = f"</didl:Resource>{_DIDL_END}".encode()
_RECORD: Final = re.compile(
    (
        rf"{_HEADER}(?(1)</record>\n|<metadata>(?:{_FIELDS}{_END}|"
        + re.escape(f"{oai_didl.OPEN}{oai_didl.STATEMENT}{oai_didl.IDENTIFIER}")
        + rf"{_TEXT}*</dii:Identifier>"
        + re.escape(f"{oai_didl.STATEMENT_END}{oai_didl.STATEMENT}")
        + _FIELDS
        + re.escape(f"{oai_didl.STATEMENT_END}<didl:Component>")
        + rf'<didl:Resource mimeType="({_QUOTED}+)" ref="([^<>&"\s\x00-\x1f]+)"/>'
        + rf'(?:<didl:Resource mimeType="{_QUOTED}*"{_BASE64.decode()}|{_DIDL_END})))'
    ).encode()
)
_FIELD: Final = re.compile(r'name="([^"]*)">([^<]*)<')


class ListedRecord(NamedTuple):
    """A record of a list; None for its files if it is a header alone, or deleted.

    Of http_header there is one file, without an address.
    """

    identifier: str
    deleted: bool
    components: list[Component] | None


class ScannedPage(NamedTuple):
    response_date: str
    token: str
    records: list[ListedRecord]


def scanned(body: bytes) -> ScannedPage | None:
    """The page, or None if it is written in another way."""
    head = _HEAD.match(body)
    if head is None:
        return None
    view, at, records = memoryview(body), head.end(), list[ListedRecord]()
    try:
        while (found := _RECORD.match(body, at)) is not None:
            deleted, identifier, plain, plain_digest, fields, digest, kind, ref = found.groups()
            at, encoded = found.end(), None
            name, address = identifier.decode(), (ref or b"").decode()
            if not found[0].isascii() and _odd(found[0].decode(), name, address):
                return None
            if deleted:
                records.append(ListedRecord(name, True, None))
                continue
            if ref is None:
                one = Component(headers=_fields(plain), sha256=(plain_digest or b"").decode())
            else:
                if body.endswith(_BASE64, 0, at):
                    end = body.find(b"<", at)
                    if not body.startswith(_CONTENT_END, end) or body.find(b"&", at, end) >= 0:
                        return None  # a reference: a line break, say
                    encoded, at = view[at:end], end + len(_CONTENT_END)
                one = Component(
                    address, kind.decode(), None, _fields(fields), (digest or b"").decode(), encoded
                )
            records.append(ListedRecord(name, False, [one]))
        frame = read(body[: head.end()] + body[at:]) if len(body) - at < _AROUND else Page()
    except (UnicodeDecodeError, BadResponse):
        return None
    odd = frame.items or frame.errors or frame.problems or frame.repairs
    if odd or frame.verb != "ListRecords" or not records:
        return None
    return ScannedPage(frame.response_date, frame.token or "", records)


def _odd(record: str, *values: str) -> bool:
    """Whether a parser refuses a character, or takes white space beyond that of ASCII off a value."""
    return _NO_XML.search(record) is not None or any(value != value.strip() for value in values)


def _fields(written: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(_FIELD.findall(written.decode()))
