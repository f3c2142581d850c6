"""The nouns of the field, as frozen values. Imports nothing of ours.

A record travels as a descriptive part (unqualified Dublin Core) and a statistical part (a term vector).
The vector is kept *packed*: the very bytes that `tf_compact` carries, less the mark-up. Serving it, storing
it and indexing it are then copies of bytes; only a question about one document unpacks it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

# Element order is the one in which oai_dc lists them and in which we write them.
DUBLIN_CORE: Final = (
    "title", "creator", "subject", "description", "publisher", "contributor", "date", "type",
    "format", "identifier", "source", "language", "relation", "coverage", "rights",
)  # fmt: skip

# Dublin Core element -> its values, in order. Elements without a value are absent.
Metadata = Mapping[str, Sequence[str]]

# An object of JSON, to be written or as it was read: whoever reads a value looks at what it is.
JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]

# Begins a term of a field ("\x1ftwing" is `title:wing`). Not a character of XML 1.0, so no term
# that crossed the wire can hold it.
FIELD_MARK: Final = "\x1f"
# A field's name -> what stands before its terms: short, for each is a name in the index.
FIELD_MARKS: Final = {
    "contributor": "\x1fb", "creator": "\x1fc", "description": "\x1fd", "publisher": "\x1fp",
    "subject": "\x1fs", "title": "\x1ft",
}  # fmt: skip
# Begins a key, which is a value as a whole: an identifier, a person, a title (`service/index/keys.py`).
KEY_MARKS: Final = {
    "identifier": "\x1fi", "contributor": "\x1fm", "creator": "\x1fn", "title": "\x1fw",
}  # fmt: skip
# Begins a value that facets and lists show, or what records are sorted by (`service/index/values.py`).
VALUE_MARKS: Final = {
    "creator": "\x1fC", "format": "\x1fF", "subject": "\x1fS", "inferred_subject": "\x1fU",
    "inferred_type": "\x1fY",
}  # fmt: skip
SORT_MARKS: Final = {"author": "\x1fA", "title": "\x1fT"}
_FIELDS: Final = {mark: name for table in (FIELD_MARKS, KEY_MARKS) for name, mark in table.items()}


@dataclass(frozen=True, slots=True)
class TermVector:
    """A document's terms and their frequencies.

    `packed` holds a line for each frequency, lowest first: the frequency, then the terms that have it in the
    order of their UTF-8 bytes, separated by single spaces: ``b"1 acid air\\n3 wing"``. A term holds no white
    space and no control character. The form is canonical: equal vectors are equal bytes.

    `length` counts the tokens that were analysed into terms. It is the sum of the frequencies unless pruning
    dropped terms: a pruned document keeps its true length.

    `positions`, where kept, holds for each term in the order of `packed` its token positions (from 0),
    each as the difference to the one before, LEB128.

    `language` is the ISO 639-1 code by whose rules the terms were made; empty if none.
    """

    packed: bytes = b""
    length: int = 0
    positions: bytes | None = None
    language: str = ""

    @classmethod
    def of(cls, frequencies: Mapping[str, int], length: int | None = None, language: str = "") -> TermVector:
        return cls(
            pack(frequencies),
            sum(frequencies.values()) if length is None else length,
            None,
            language,
        )

    @classmethod
    def of_positions(
        cls, positions: Mapping[str, Sequence[int]], length: int | None = None, language: str = ""
    ) -> TermVector:
        packed = pack({term: len(places) for term, places in positions.items()})
        encoded = bytearray()
        for _, terms in groups(packed):
            for term in terms:
                last = 0
                for place in positions[term]:
                    # Nearly all differences are one byte: no call for those.
                    if place - last <= 0x7F:
                        encoded.append(place - last)
                    else:
                        _leb128(encoded, place - last)
                    last = place
        total = sum(map(len, positions.values())) if length is None else length
        return cls(packed, total, bytes(encoded), language)

    def frequencies(self) -> dict[str, int]:
        return {term: frequency for frequency, terms in groups(self.packed) for term in terms}

    def places(self) -> dict[str, list[int]]:
        """Token positions of each term; empty where positions were not kept."""
        if self.positions is None:
            return {}
        numbers = _read_leb128(self.positions)
        found: dict[str, list[int]] = {}
        for frequency, terms in groups(self.packed):
            for term in terms:
                last, where = 0, []
                for _ in range(frequency):
                    last += next(numbers)
                    where.append(last)
                found[term] = where
        return found


def split_field(term: str) -> tuple[str, str]:
    """A term of the index without its field, and the field; empty for the text."""
    return (term[2:], _FIELDS.get(term[:2], "")) if term.startswith(FIELD_MARK) else (term, "")


def pack(frequencies: Mapping[str, int]) -> bytes:
    """The canonical packed form of term frequencies; terms of frequency zero vanish."""
    by_frequency: defaultdict[int, list[str]] = defaultdict(list)
    for term, frequency in frequencies.items():
        by_frequency[frequency].append(term)
    # Strings sort by code point, which is the order of their UTF-8 bytes.
    lines = [f"{f} {' '.join(sorted(by_frequency[f]))}" for f in sorted(by_frequency) if f > 0]
    return "\n".join(lines).encode()


def groups(packed: bytes) -> Iterator[tuple[int, list[str]]]:
    """Each frequency of a packed vector with its terms, as they stand."""
    if packed:
        for line in packed.decode().split("\n"):
            frequency, *terms = line.split(" ")
            yield int(frequency), terms


def _leb128(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _read_leb128(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
        else:
            yield number
            number = shift = 0


@dataclass(frozen=True, slots=True)
class Document:
    """What an extractor makes of one document in a file.

    `key` tells the documents of one file apart (a Reuters NEWID, a TREC DOCNO, a MARC 001); empty where
    a file is one document. `text` is what gets analysed, and is then dropped. `no_text` says what the
    document is where it has no text of its own: an image, a video, scanned pages (also if OCR read them).
    """

    text: str
    metadata: Metadata
    media_type: str
    key: str = ""
    language: str = ""
    no_text: str = ""
    raw: bytes = b""  # the record that the document is, in the XML of its own format
    # What it says by a table of its library: element, value, refinement, scheme, whether it is unqualified.
    statements: tuple[tuple[str, str, str, str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """The unit of exchange: header, metadata part, index part.

    `raw` is the metadata part as XML: as we disseminate it (provider) or as it came (harvest).
    `metadata` is what that says, normalised. `properties` is JSON-ready: url, media_type, size,
    modified, manifestations, restricted, policy, source_datestamp, about …
    """

    identifier: str
    metadata: Metadata = field(default_factory=dict)
    vector: TermVector | None = None
    sets: tuple[str, ...] = ()
    deleted: bool = False
    raw: bytes = b""
    resource: str = ""
    properties: JsonMapping = field(default_factory=dict)


class Packed(NamedTuple):
    """A record on its way into the store: flat, and in the bytes that will stand there.

    Where a record is read by a kernel, no tree is made of it first; `store.packed` makes this of a `Record`.
    """

    identifier: str
    deleted: int
    sets: str  # setSpecs, separated by spaces
    language: str
    length: int
    resource: int  # 64-bit hash of Record.resource; 0 if that is empty
    digest: bytes  # of all the rest
    metadata: bytes  # JSON
    properties: bytes  # JSON
    raw: bytes
    vector: bytes | None
    positions: bytes | None


class Stored(NamedTuple):
    """A record as the store holds it, flat: with its number, its place in the change feed, its datestamp.

    A tuple and not a tree, because whole collections pass through it: `metadata` and `properties` stay JSON
    and `vector` stays packed until somebody asks for `record`.
    """

    id: int
    seq: int
    origin: int
    identifier: str
    datestamp: int  # seconds since 1970, UTC
    deleted: int
    sets: str  # setSpecs, separated by spaces
    language: str
    length: int
    resource: int  # 64-bit hash of Record.resource; 0 if that is empty
    metadata: bytes  # JSON
    properties: bytes  # JSON
    raw: bytes
    vector: bytes | None  # TermVector.packed; None if the record has no index part
    positions: bytes | None
    # Packed vector of the terms of fields, which serve `title:word`: made from the metadata on the way into
    # the index, empty before.
    fields: bytes

    @property
    def record(self) -> Record:
        vector = None
        if self.vector is not None:
            vector = TermVector(self.vector, self.length, self.positions, self.language)
        return Record(
            self.identifier,
            json.loads(self.metadata or b"{}"),
            vector,
            tuple(self.sets.split()),
            bool(self.deleted),
            self.raw,
            "",
            json.loads(self.properties or b"{}"),
        )


WARNING: Final = "warning"  # the stage of a failure that cost no record


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one thing: it is stored, counted and shown, and the run goes on."""

    where: str
    stage: str
    reason: str
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of one facet with their exact counts, most frequent first."""

    name: str
    values: tuple[tuple[str, int], ...]
    labels: Mapping[str, str] = field(default_factory=dict)  # what people call a value, where that is known


def merge_metadata(*parts: Metadata) -> dict[str, list[str]]:
    """Metadata with the values of all parts, each value once, in Dublin Core order."""
    out: dict[str, list[str]] = {}
    for element in DUBLIN_CORE:
        values: Iterable[str] = (value for part in parts for value in part.get(element, ()))
        unique = list(dict.fromkeys(values))
        if unique:
            out[element] = unique
    return out
