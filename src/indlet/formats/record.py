"""The common record that every format is translated to and from, and what a metadata format is.

The common record is Dublin Core: statements of one of the fifteen elements with a value, and where the source
said it, the DCMI term that refines the element and the scheme that the value is taken from. Without these two
it is the unqualified Dublin Core that the store keeps and that every repository speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lxml import etree

from indlet.formats.dublin import build_metadata
from indlet.model import DUBLIN_CORE, Metadata

if TYPE_CHECKING:
    from indlet.formats.crosswalk import Crosswalk


@dataclass(frozen=True, slots=True)
class Statement:
    """One value of a Dublin Core element."""

    element: str
    value: str
    refinement: str = ""  # a DCMI term: abstract, issued, extent …
    scheme: str = ""  # LCSH, DDC, ISBN, URI …
    # False for what the standard crosswalk has in qualified Dublin Core only.
    simple: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class CommonRecord:
    """What a record says, whatever its format. `identifier` and `datestamp` are the record's own."""

    statements: tuple[Statement, ...] = ()
    identifier: str = ""
    datestamp: str = ""

    @classmethod
    def of(cls, metadata: Metadata, identifier: str = "", datestamp: str = "") -> CommonRecord:
        """The common record of unqualified Dublin Core."""
        found = (Statement(element, value) for element in DUBLIN_CORE for value in metadata.get(element, ()))
        return cls(tuple(found), identifier, datestamp)

    @classmethod
    def of_parts(cls, parts: Iterable[tuple[str, str, str, str, bool]]) -> CommonRecord:
        """The reverse of `parts`."""
        return cls(tuple(Statement(*part) for part in parts))

    def parts(self) -> tuple[tuple[str, str, str, str, bool], ...]:
        """The statements as plain values, for JSON."""
        return tuple((s.element, s.value, s.refinement, s.scheme, s.simple) for s in self.statements)

    def simple(self) -> dict[str, list[str]]:
        """Unqualified Dublin Core: values cleaned, each once."""
        return build_metadata(self.pairs())

    def pairs(self) -> list[tuple[str, str]]:
        """(element, value) of unqualified Dublin Core, as they came."""
        return [(s.element, s.value) for s in self.statements if s.simple]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record in its own format.

    Of MARC, a control field (`value`) or a data field (`indicators` and `subfields`). Of XML formats, an
    element by its path, with the elements inside as subfields and attributes as subfields named "@type".
    """

    tag: str
    value: str = ""
    indicators: str = ""
    subfields: tuple[tuple[str, str], ...] = ()
    # Where several fields show the same part of a record, the number of that part: first that of the value,
    # then one for each subfield.
    parts: tuple[int, ...] = ()
    stands_as: str = ""  # its tag in the record, where a table knows it by another: 880 of MARC

    def select(self, codes: str | Sequence[str]) -> list[str]:
        # A subfield that lost its code may be any.
        return [value for code, value in self.subfields if value and (code in codes or not code)]


@dataclass(frozen=True, slots=True)
class Broken:
    """A record of a file that cannot be read: which one, and why."""

    number: int
    reason: str
    raw: bytes = b""
    is_warning: bool = False  # about the file: its owner should know, but no record is lost


Fields = Sequence[Field]


class FieldsOfXml(list[Field]):
    """The fields of a record, for a table to read, and its XML, which says more than these."""

    def __init__(self, fields: Iterable[Field], xml: bytes) -> None:
        super().__init__(fields)
        self.xml = xml


@dataclass(frozen=True, slots=True)
class MetadataFormat:
    """One metadata format: how its records look in XML and in files, and the table that translates them."""

    prefix: str
    title: str  # for people
    namespace: str
    schema: str  # a URL, or the name of a schema that the node itself serves
    roots: frozenset[str]  # the elements that hold a record, as lxml names them
    fields: Callable[[etree._Element], Fields]  # a record's fields; ValueError where there are none
    xml: Callable[[Fields], bytes]  # the element that holds these fields, without XML declaration
    crosswalk: Callable[[Fields], Crosswalk]  # the standard table for such a record
    load: Callable[[bytes], Iterator[Fields | Broken]]  # the records of a file as catalogues export it
    pack: Callable[[Fields], bytes]  # a record of such a file; ValueError if it does not fit
    around: tuple[bytes, bytes] = (b"", b"")  # what begins and ends such a file
    suffix: str = ".xml"
    media_type: str = "application/xml"  # of the XML
    served: bool = True  # false for what is only read

    def read(self, element: etree._Element) -> CommonRecord:
        """What an element says; ValueError if it is no record of this format."""
        fields = self.fields(element)
        return self.crosswalk(fields).read(fields)

    def write(self, record: CommonRecord) -> bytes:
        return self.xml(self.crosswalk(()).write(record))
