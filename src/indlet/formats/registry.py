"""Every format that is known: a format that stands in a registry here is known everywhere.

`METADATA` holds the metadata formats by prefix: the provider serves them, the harvester and the translator
read them, the record page offers them. `INDEX` holds the index formats, most preferred first; `bundle.INSIDE`
the metadata formats that bind oai_dc and an index part. What a reader cannot use raises `BadResponse`.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Final

from lxml import etree

from indlet import _core
from indlet.errors import BadResponse
from indlet.extension import extensions
from indlet.formats.index import tf_basic, tf_boolean, tf_compact, tf_positions
from indlet.formats.index.terms import IndexFormat
from indlet.formats.metadata import cosati, dcterms, marc21, mods, oai_dc, oai_marc, rfc1807
from indlet.formats.record import CommonRecord, MetadataFormat
from indlet.limits import Budget
from indlet.model import Stored
from indlet.oai.dates import written
from indlet.oai.xml import element
from indlet.settings import Settings

METADATA: Final[dict[str, MetadataFormat]] = {
    f.prefix: f
    for f in (
        oai_dc.FORMAT,
        dcterms.FORMAT,
        marc21.FORMAT,
        mods.FORMAT,
        rfc1807.FORMAT,
        cosati.FORMAT,
        oai_marc.FORMAT,
    )
}

INDEX: Final[dict[str, IndexFormat]] = {
    f.prefix: f for f in (tf_positions.FORMAT, tf_compact.FORMAT, tf_basic.FORMAT, tf_boolean.FORMAT)
}

Roots = Mapping[str, MetadataFormat]  # by the elements that hold a record
ROOTS: Final[Roots] = {root: f for f in METADATA.values() for root in f.roots}


def configured_formats(settings: Settings) -> dict[str, MetadataFormat]:
    """The formats that the settings describe, by metadataPrefix."""
    return {prefix: one for extension in extensions() for prefix, one in extension.formats(settings).items()}


def known_roots(settings: Settings) -> Roots:
    """Every format by the elements that hold its records, those of the settings among them."""
    configured = configured_formats(settings).values()
    return ROOTS if not configured else {**ROOTS, **{root: f for f in configured for root in f.roots}}


_START_TAG = re.compile(rb"\s*<(?:([\w.-]+):)?([\w.-]+)((?:\s[^<>]*)?)/?>")


def format_of(root: etree._Element) -> MetadataFormat | None:
    """The format that an element is a record of."""
    return ROOTS.get(str(root.tag))


def pairs(root: etree._Element, roots: Roots = ROOTS, budget: Budget | None = None) -> list[tuple[str, str]]:
    """(element, value) for what a harvested metadata part says, by the crosswalk of its format.

    A part of no known format is read for whatever is Dublin Core by its local name. BadResponse if it has
    text of which nothing could be mapped, or if the values exceed the budget.
    """
    known = roots.get(str(root.tag))
    try:
        if known in (None, oai_dc.FORMAT):
            raw = etree.tostring(root, encoding="utf-8", xml_declaration=False, with_tail=False)
            found = _core.element_values(raw, (budget or Budget(len(raw))).left)
        else:
            found = known.read(root).pairs()
    except ValueError as e:
        raise BadResponse(f"not readable as {known.title if known else root.tag}: {e}") from e
    if not found and "".join(map(str, root.itertext())).strip():
        if known is not None:
            raise BadResponse(f"a record of {known.title} with text, but without any element of that format")
        raise BadResponse(
            f"nothing of it could be mapped to Dublin Core: element {root.tag}; "
            f"known formats are {', '.join(dict.fromkeys(f.prefix for f in roots.values()))}"
        )
    return found


def root_name(raw: bytes) -> str:
    """The name of the root element of a metadata part, as lxml gives it; empty if the start is no tag."""
    start = _START_TAG.match(raw)
    if start is None:
        return ""
    prefix, name, rest = start.groups()
    declared = rb"\sxmlns%b\s*=\s*[\"']([^\"']*)[\"']" % (b":" + re.escape(prefix) if prefix else b"")
    space = re.search(declared, rest)
    local = name.decode("utf-8", "replace")
    return f"{{{space[1].decode('utf-8', 'replace')}}}{local}" if space else local


def is_original(raw: bytes, metadata: MetadataFormat) -> bool:
    """Whether a record's stored metadata part is in a format, so that it is given out untranslated."""
    if metadata is oai_dc.FORMAT and (not raw or raw.startswith(oai_dc.START)):
        return True
    return root_name(raw) in metadata.roots


# What a format has room for, the least first. One that is not known here says more than oai_dc, as a rule.
_BY_ROOM: Final = (
    oai_dc.FORMAT, None, cosati.FORMAT, rfc1807.FORMAT, dcterms.FORMAT, mods.FORMAT, oai_marc.FORMAT,
    marc21.FORMAT,
)  # fmt: skip


def richness(raw: bytes) -> int:
    """How much the format of a metadata part has room for, in comparison with others."""
    if not raw or raw.startswith(oai_dc.START):
        return 0
    known = ROOTS.get(root_name(raw))
    return _BY_ROOM.index(known) if known in _BY_ROOM else _BY_ROOM.index(None)


# The property of a stored record that holds what its library's own table says of it.
STATEMENTS: Final = "statements"
# Elements whose values a harvest brings into one form ("text" is "Text"): they say nothing new.
_IN_ONE_FORM: Final = ("type", "format")


def common_record(
    raw: bytes, record: CommonRecord, roots: Roots = ROOTS, properties: bytes = b""
) -> CommonRecord:
    """What a stored record says in full: its original in its own words, then what only the record says.

    The words are those of its library's own table where it was read by one (`properties`). The record alone
    where the original is of no known format (`roots`: these) or cannot be read.
    """
    known, original = roots.get(root_name(raw)), None
    if b'"%b"' % STATEMENTS.encode() in properties:
        original = CommonRecord.of_parts(json.loads(properties).get(STATEMENTS, ()))
    else:
        with contextlib.suppress(BadResponse, ValueError):
            original = known.read(element(raw)) if known is not None else None
    if original is None:
        return record
    said = original.simple()
    told = {(name, value) for name, values in said.items() for value in values}
    more = tuple(
        s
        for s in record.statements
        if (s.element, s.value) not in told and not (s.element in _IN_ONE_FORM and said.get(s.element))
    )
    return CommonRecord(original.statements + more, record.identifier, record.datestamp)


def _to_own_namespace(raw: bytes, metadata: MetadataFormat) -> bytes:
    """A record of a format's other namespace (MarcXchange) in its own; as it is where it cannot be read."""
    try:
        return metadata.xml(metadata.fields(element(raw)))
    except (BadResponse, ValueError):
        return raw


def in_format(stored: Stored, metadata: MetadataFormat, roots: Roots = ROOTS) -> bytes:
    """A record in a metadata format: the original unchanged where it is in that format, else translated."""
    # What we wrote ourselves, and nearly everybody writes, is known by its first bytes.
    if metadata is oai_dc.FORMAT and stored.raw.startswith(oai_dc.START):
        return stored.raw
    root = root_name(stored.raw)
    if root in metadata.roots:
        own = root.startswith(f"{{{metadata.namespace}}}")
        return stored.raw if own else _to_own_namespace(stored.raw, metadata)
    known = roots.get(root)
    if known is not None and known.crosswalk is metadata.crosswalk:  # MARC in another dress: all of it
        with contextlib.suppress(BadResponse, ValueError):
            return metadata.xml(known.fields(element(stored.raw)))
    described = json.loads(stored.metadata)
    if metadata is oai_dc.FORMAT:
        return oai_dc.write(described)
    record = CommonRecord.of(described, stored.identifier, written(stored.datestamp))
    return metadata.write(common_record(stored.raw, record, roots, stored.properties))
