"""marc21: MARC 21 as MARCXML on the wire, and as ISO 2709 (UTF-8, MARC-8) or MARCXML in files.

UNIMARC is read as well.

The crosswalks are the tables `marc21.tsv` and `unimarc.tsv`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from lxml import etree

from indlet.formats.crosswalk import Crosswalk, standard
from indlet.formats.files import xml_records
from indlet.formats.iso2709 import Marc, iso2709_records, write_iso2709
from indlet.formats.marc8 import alternate_sets
from indlet.formats.record import Broken, Field, Fields, MetadataFormat
from indlet.oai.xml import attribute, text

NAMESPACE: Final = "http://www.loc.gov/MARC21/slim"
SCHEMA: Final = "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd"
# As ISO 25577 (MarcXchange) and as systems that forget the namespace write it.
_NAMESPACES: Final = (NAMESPACE, "info:lc/xmlns/marcxchange-v1", "info:lc/xmlns/marcxchange-v2")
LEADER: Final = "LDR"
_BLANK: Final = "00000nam a2200000 u 4500"
# 008 of a record made from Dublin Core before anything is set in it: no attempt to code.
_FIXED: Final = "||||||n||||    xx |||||||||||||||||   |d"


def read_xml(element: etree._Element) -> Marc:
    """The record of a MARCXML `record` element, whatever its namespace."""
    leader, fields = "", []
    for child in element:
        kind = str(child.tag).rpartition("}")[2]
        if kind == "leader":
            leader = child.text or ""
        elif len(child.get("tag") or "") != 3:
            continue
        elif kind == "controlfield":
            fields.append(Field(child.get("tag", ""), child.text or ""))
        elif kind == "datafield":
            subfields = tuple(
                (sub.get("code", ""), on_one_line("".join(map(str, sub.itertext()))))
                for sub in child
                if isinstance(sub.tag, str)
            )
            indicators = (child.get("ind1") or " ")[:1] + (child.get("ind2") or " ")[:1]
            fields.append(Field(child.get("tag", ""), "", indicators, subfields))
    if not fields:
        raise ValueError("MARCXML record without fields")
    return Marc(leader.ljust(24), tuple(fields))


def on_one_line(value: str) -> str:
    """The value with its blanks, which may count (in 010, say); folded where XML was laid out in lines."""
    return " ".join(value.split()) if "\n" in value or "\t" in value else value


def is_unimarc(record: Marc) -> bool:
    """MARC 21 has no field 200, UNIMARC has no book without it."""
    return record.has("200") and not record.has("245")


def dublin_core(record: Marc) -> dict[str, list[str]]:
    """What the record says, in unqualified Dublin Core."""
    fields = marc_fields(record)
    return crosswalk(fields).read(fields).simple()


# Fields of the crosswalk


def marc_fields(record: Marc) -> list[Field]:
    """The leader and the fields; one in its own script (880) under the tag that it repeats."""
    return [Field(LEADER, record.leader), *map(_with_linked_tag, record.fields)]


def _with_linked_tag(field: Field) -> Field:
    if field.tag != "880":
        return field
    tag = next(iter(field.select("6")), "").strip()[:3]
    return replace(field, tag=tag, stands_as="880") if len(tag) == 3 else field


def crosswalk(fields: Fields) -> Crosswalk:
    tags = {field.tag for field in fields}
    return standard("unimarc" if "200" in tags and "245" not in tags else "marc21", single=True)


_START: Final = {"008": _FIXED}
_FROM_DUBLIN_CORE: Final = Field("042", "", "  ", (("a", "dc"),))


def marc(fields: Fields) -> Marc:
    """The record that these fields make. One that was read, and so has a leader, keeps its order.

    Any other gets the order of catalogues: by tag, added entries as they come.
    """
    leader, was_read, data = _BLANK, False, list[Field]()
    for field in fields:
        if field.tag == LEADER:
            leader = _overlaid(leader, field) if field.parts else field.value.ljust(24)
            was_read = was_read or not field.parts
        elif field.parts:
            place = next((n for n, known in enumerate(data) if known.tag == field.tag), len(data))
            known = data[place].value if place < len(data) else "" if was_read else _START.get(field.tag, "")
            data[place : place + 1] = [Field(field.tag, _overlaid(known, field))]
        else:
            data.append(replace(field, tag=field.stands_as, stands_as="") if field.stands_as else field)
    if not was_read:
        if _FROM_DUBLIN_CORE in data and not any(field.tag == "008" for field in data):
            data.append(Field("008", _FIXED))
        data.sort(key=lambda field: field.tag if field.tag < "700" else field.tag[:1])
    return Marc(leader[:24], tuple(data))


def laid_over(original: Fields, own: Fields, replacing: Collection[str]) -> list[Field]:
    """A record's fields with others among them, by tag; a tag of `replacing` is then theirs alone."""
    gone = {field.tag for field in own if field.tag in replacing and not field.parts}
    found = [field for field in original if field.stands_as or field.tag not in gone]
    for field in own:
        after = (n for n, f in enumerate(found) if f.tag != LEADER and (f.stands_as or f.tag) > field.tag)
        found.insert(next(after, len(found)), field)
    return found


def _overlaid(text: str, field: Field) -> str:
    """A fixed field with the positions set that a row writes."""
    first, last = field.parts
    value = field.value[first:].ljust(last + 1 - first)[: last + 1 - first]
    text = text.ljust(last + 1)
    return text[:first] + value + text[last + 1 :]


# XML and files


def _fields(element: etree._Element) -> Fields:
    return marc_fields(read_xml(element))


def _xml(fields: Fields) -> bytes:
    record = marc(fields)
    return write_xml(record.leader, record.fields)


# What MARC21slim.xsd allows.
_LEADER = re.compile(
    r"[\d ]{5}[\dA-Za-z ][\dA-Za-z][\dA-Za-z ]{3}[2 ][2 ][\d ]{5}[\dA-Za-z ]{3}(?:4500|    )", re.ASCII
)
_CONTROL_TAG = re.compile(r"00[1-9A-Za-z]")
_DATA_TAG = re.compile(r"0[1-9A-Z][0-9A-Z]|0[1-9a-z][0-9a-z]|[1-9A-Z][0-9A-Z]{2}|[1-9a-z][0-9a-z]{2}")
_INDICATOR = re.compile(r"[\da-z ]", re.ASCII)
_CODE = re.compile(r"[\dA-Za-z!\"#$%&'()*+,\-./:;<=>?{}_^`~\[\]\\]", re.ASCII)


def write_xml(leader: str, fields: Iterable[Field]) -> bytes:
    """The MARCXML `record` element of these fields, in their order but for control fields, which are first.

    Always valid (`_valid`).
    """
    parts = [
        f'<record xmlns="{NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{NAMESPACE} {SCHEMA}"><leader>{_valid_leader(leader)}</leader>'
    ]
    for field in sorted(_valid(fields), key=lambda field: bool(field.subfields)):
        if not field.subfields:
            parts.append(f'<controlfield tag="{field.tag}">{text(field.value)}</controlfield>')
            continue
        one, two = field.indicators[0], field.indicators[1]
        parts.append(f'<datafield tag="{field.tag}" ind1="{one}" ind2="{two}">')
        for code, value in field.subfields:
            parts.append(f'<subfield code="{attribute(code)}">{text(value)}</subfield>')
        parts.append("</datafield>")
    parts.append("</record>")
    return "".join(parts).encode()


def valid(record: Marc) -> Marc:
    """The record with what can stand in one."""
    return Marc(_valid_leader(record.leader), tuple(_valid(record.fields)))


def _valid(fields: Iterable[Field]) -> Iterator[Field]:
    """What can stand in a record: of a broken one, an indicator that is none becomes blank, a code that is
    none "?", and a field without a tag is left out."""
    for field in fields:
        if not field.subfields and _CONTROL_TAG.fullmatch(field.tag):
            yield field
        elif _DATA_TAG.fullmatch(field.tag):
            indicators = (c if _INDICATOR.fullmatch(c) else " " for c in (*field.indicators, " ", " ")[:2])
            subfields = field.subfields or (("a", field.value),)
            held = tuple((code if _CODE.fullmatch(code) else "?", value) for code, value in subfields)
            yield Field(field.tag, "", "".join(indicators), held)


def _valid_leader(leader: str) -> str:
    if _LEADER.fullmatch(leader):
        return leader
    told = "".join(c if c.isascii() and c.isalnum() else " " for c in leader.ljust(24)[5:20])
    status, kind = told[0], told[1] if told[1] != " " else "a"
    return f"00000{status}{kind}{told[2:5]}2200000{told[12:15]}4500"


def load(data: bytes) -> Iterator[Fields | Broken]:
    """The records of a file, in ISO 2709 or MARCXML as its first bytes tell."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
        yield from xml_records(data, ("record",), _fields)
        return
    for record in iso2709_records(data):
        yield record if isinstance(record, Broken) else marc_fields(_in_unicode(record))


def _in_unicode(record: Marc) -> Marc:
    """The record with a leader that says how it is coded now; UNIMARC says that elsewhere."""
    if is_unimarc(record):
        return record
    return replace(record, leader=f"{record.leader[:9]}a{record.leader[10:]}")


def pack(fields: Fields, marc8: bool = False) -> bytes:
    """The record in ISO 2709, in UTF-8 or MARC-8."""
    record = valid(marc(fields))
    if marc8:
        record = replace(record, fields=tuple(_with_sets(list(record.fields))))
    return write_iso2709(record, marc8)


def _with_sets(fields: list[Field]) -> list[Field]:
    """The fields with a 066 that names the sets of MARC-8 which they need."""
    used = dict.fromkeys(
        name for field in fields for _, value in field.subfields for name in alternate_sets(value)
    )
    named = [Field("066", "", "  ", tuple(("c", name) for name in used))] if used else []
    return laid_over([field for field in fields if field.tag != "066"], named, ())


FORMAT: Final = MetadataFormat(
    prefix="marc21",
    title="MARC 21",
    namespace=NAMESPACE,
    schema=SCHEMA,
    roots=frozenset(f"{{{name}}}record" for name in _NAMESPACES),
    fields=_fields,
    xml=_xml,
    crosswalk=crosswalk,
    load=load,
    pack=pack,
    suffix=".mrc",
    media_type="application/marcxml+xml",
)
# The same, written to files as MARCXML, which has no limits of length.
XML_FILES: Final = replace(
    FORMAT,
    pack=lambda fields: _xml(fields) + b"\n",
    around=(b'<collection xmlns="%b">\n' % NAMESPACE.encode(), b"</collection>\n"),
    suffix=".xml",
)
# The same for systems that know no Unicode.
MARC8_FILES: Final = replace(FORMAT, pack=lambda fields: pack(fields, marc8=True))


# Identifiers, codes, links and control data are not words that describe the work.
_NOT_WORDS: Final = frozenset("012345689uw")


def searchable(record: Marc) -> str:
    """The words of the record: every textual subfield of the fields 1XX to 8XX, a line for each field."""
    lines = []
    first = "200" if is_unimarc(record) else "100"  # UNIMARC keeps coded data in 1XX
    for field in record.fields:
        if first <= field.tag <= "899" and field.subfields:
            words = [value for code, value in field.subfields if code not in _NOT_WORDS]
            if words:
                lines.append(" ".join(words))
    return "\n".join(lines)
