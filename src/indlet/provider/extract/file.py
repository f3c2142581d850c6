"""What an extractor gets, and the measures that keep it within bounds."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from lxml import etree

from indlet.errors import ExtractionError, LimitExceeded
from indlet.model import Document, Failure
from indlet.settings import Limits

ZIP_MEMBERS: Final = 20_000

Part = Document | Failure


@dataclass(frozen=True, slots=True)
class File:
    """One file's bytes, the name it had, its sniffed type, and how deep inside other files it lies."""

    data: bytes
    name: str
    limits: Limits
    media_type: str = ""
    depth: int = 0


Extractor = Callable[[File], Iterator[Part]]


class Text:
    """Collects text up to the limit; beyond it the file is a bomb, and an ExtractionError says so."""

    def __init__(self, limits: Limits) -> None:
        self._parts: list[str] = []
        self._left = limits.inflated_bytes
        self._limit = limits.inflated_bytes

    def add(self, part: str | None) -> None:
        if part:
            self._left -= len(part)
            if self._left < 0:
                raise LimitExceeded(
                    f"its text is longer than the limit of {self._limit} bytes (inflated_bytes)"
                )
            self._parts.append(part)

    def __str__(self) -> str:
        return "".join(self._parts)


class ZipArchive:
    """A zip file read within the limits: members counted, inflated bytes bounded over all that is read."""

    def __init__(self, file: File) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(file.data))
            self.names = self._zip.namelist()
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError, IndexError) as error:
            raise ExtractionError(f"not a readable zip archive: {error or 'truncated'}") from error
        if len(self.names) > ZIP_MEMBERS:
            raise LimitExceeded(f"its zip archive has {len(self.names)} members, more than {ZIP_MEMBERS}")
        self._folded = {name.lower().lstrip("/"): name for name in reversed(self.names)}
        self._left = self._limit = file.limits.inflated_bytes

    def __contains__(self, name: str) -> bool:
        return name.lower().lstrip("/") in self._folded

    def matching(self, pattern: str) -> list[str]:
        """Names that match, those with numbers in the order of the numbers."""
        found = [name for name in self.names if re.fullmatch(pattern, name, re.IGNORECASE)]
        return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d{1,9}", name)])

    def read(self, name: str) -> bytes:
        """The member's bytes. A missing member, a damaged one and a bomb are ExtractionErrors."""
        actual = self._folded.get(name.lower().lstrip("/"))
        if actual is None:
            raise ExtractionError(f"its zip archive lacks {name}")
        try:
            with self._zip.open(actual) as stream:
                data = stream.read(self._left + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise ExtractionError(f"damaged zip member {actual}: {error or 'truncated'}") from error
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unknown compression
            raise ExtractionError(f"unreadable zip member {actual}: {error}") from error
        self._left -= len(data)
        if self._left < 0:
            raise LimitExceeded(f"it inflates to more than the limit of {self._limit} bytes (inflated_bytes)")
        return data

    def xml(self, name: str) -> etree._Element:
        try:
            return parse_xml(self.read(name))
        except ExtractionError as error:
            raise type(error)(f"{name}: {error}") from error

    def optional_xml(self, name: str) -> etree._Element | None:
        """The member's root element; None where it is absent or damaged."""
        try:
            return parse_xml(self.read(name)) if name in self else None
        except LimitExceeded:
            raise
        except ExtractionError:
            return None


def xml_parser() -> etree.XMLParser:
    """Nothing fetched, no entity expanded, no DTD loaded, libxml2's own bounds on depth and size kept."""
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )


def parse_xml(data: bytes | str) -> etree._Element:
    """The root element, as much as can be read. No element at all, or one past the bounds, is an error."""
    parser = xml_parser()
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        _bounded(parser)
        raise ExtractionError(f"not readable as XML: {error}") from error
    _bounded(parser)
    if root is None:
        raise ExtractionError("not readable as XML: it has no element")
    return root


def _bounded(parser: etree.XMLParser) -> None:
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT or "entity reference loop" in entry.message:
            problem = re.split(", (?:use|see) ", entry.message)[0]
            raise LimitExceeded(f"XML beyond the bounds: {problem}")
        if entry.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError


class FileReader(Protocol):
    """Reads files that are not read as what they are. It is sent to worker processes."""

    def parts(self, file: File) -> Iterator[Part]:
        """The documents and failures of a file."""
