"""http_header: the header fields that a web server sends with a file. The namespace and schema are ours."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from lxml import etree

from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import attribute, text

PREFIX: Final = "http_header"
NAMESPACE: Final = "urn:indlet:http-header:1.0"
SCHEMA_FILE: Final = "http_header.xsd"
OPEN: Final = f'<http:headers xmlns:http="{NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" xsi:schemaLocation='


def write(headers: Iterable[tuple[str, str]], sha256: str, schema: str) -> bytes:
    """The element: each field in the order of the answer, and the SHA-256 of the bytes where it is known."""
    where = attribute(f"{NAMESPACE} {schema}")
    fields = "".join([_field(str(name), str(value)) for name, value in headers])
    digest = f'<http:digest algorithm="sha-256">{text(sha256)}</http:digest>' if sha256 else ""
    return f'{OPEN}"{where}">{fields}{digest}</http:headers>'.encode()


@lru_cache(4096)  # most fields are those of many files
def _field(name: str, value: str) -> str:
    return f'<http:header name="{attribute(name)}">{text(value)}</http:header>'


def read(root: etree._Element) -> tuple[tuple[tuple[str, str], ...], str]:
    """The fields, and the SHA-256 where it is told. Elements are known by their local names."""
    fields, digest = list[tuple[str, str]](), ""
    for node in root:
        name = str(node.tag).rpartition("}")[2]
        if name == "header":
            fields.append((node.get("name", ""), node.text or ""))
        elif name == "digest":
            digest = digest or (node.text or "").strip().lower()
    return tuple(fields), digest
