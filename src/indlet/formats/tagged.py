"""Records in tagged or delimited text, of any format that a table describes.

The table's own lines say how the text looks:

!form        "tagged" (a line for each field) or "delimited" (a line for each record)
!separator   tagged: the separator between tag and value; by default ": "
!end         tagged: the tag of the line that ends a record; else an empty line does
!closing     tagged: the field whose value that line tells again
!unmarked    tagged: tags may be indented, and lines without one go on with the field before, indented or not
!width       tagged: longer lines are folded
!upper       tagged: tags are written in capitals
!delimiter   delimited: "," unless told; "tab" for a tab. The first line names the columns
!namespace   that of its records in XML; "urn:indlet:fields:table-NAME" unless told
!repeat      delimited: the separator between several values of a column; by default ";"
!several     delimited: the columns that may hold several values, separated by "|"; unless told, those of
             creators, contributors, subjects, types and languages. In any other column the mark is text
!ignore      delimited: columns that no row needs to know, separated by "|"
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from indlet.errors import SettingsError
from indlet.formats import crosswalk, delimited
from indlet.formats.crosswalk import Crosswalk
from indlet.formats.delimited import decode_text
from indlet.formats.record import Broken, Field, Fields, MetadataFormat
from indlet.oai.xml import attribute, text

LINE_LENGTH: Final = 1 << 20
_TAG = re.compile(r"[\w./#%*-]{1,64}")


def text_format(
    table: Crosswalk, prefix: str, title: str, schema: str = "", suffix: str = ".txt"
) -> MetadataFormat:
    """The format that a table describes. In XML, a record is a list of `field` elements with their tags."""
    form = table.about.get("form", "tagged").strip()
    if form not in ("tagged", "delimited"):
        raise SettingsError(f"{table.name}: !form is {form!r}; give tagged or delimited")
    if not table.about.get("width", "79").strip().isdecimal():
        raise SettingsError(f"{table.name}: !width is no number; give one such as 79")
    named = re.sub(r"[^\w.-]", "-", prefix)
    namespace = table.about.get("namespace", "").strip() or f"urn:indlet:fields:{named}"
    tagged = form == "tagged"
    return MetadataFormat(
        prefix=prefix,
        title=title,
        namespace=namespace,
        schema=schema,
        roots=frozenset({f"{{{namespace}}}record"}),
        fields=_read_xml,
        xml=lambda fields: _write_xml(namespace, fields),
        crosswalk=lambda _: table,
        load=lambda data: _load(data, table) if tagged else delimited.load(data, table),
        pack=lambda fields: _pack(fields, table) if tagged else delimited.pack(fields, table),
        around=(b"", b"") if tagged else (delimited.header(table), b""),
        suffix=suffix,
        served=bool(schema),
    )


def named_format(name: str) -> MetadataFormat:
    """`table:NAME` for a table of ours, or for the file of that name. SettingsError if there is neither."""
    try:
        table = crosswalk.standard(name) if re.fullmatch(r"\w+", name) else crosswalk.load(Path(name))
    except FileNotFoundError:
        table = crosswalk.load(Path(name))
    if "form" not in table.about:
        raise SettingsError(f"{name}: the table does not say how the text looks; add a line !form")
    return text_format(table, f"table:{Path(name).stem}", Path(name).stem)


# Tagged


def _load(data: bytes, table: Crosswalk) -> Iterator[Fields | Broken]:
    separator = table.about.get("separator", ": ").replace("␣", " ")
    end, unmarked = table.about.get("end", "").strip().lower(), "unmarked" in table.about
    found: list[Field] = []
    number, problem, started = 1, "", 1
    for place, line in enumerate(decode_text(data).splitlines(), 1):
        tag, mark, value = line.partition(separator.rstrip() or separator)
        tag = tag.strip()
        ends = tag.lower() == end and bool(mark or not unmarked) if end else not line.strip()
        indented = line[:1] in " \t" and bool(found)
        if ends:
            found = [field for field in found if field.value]
            yield from _finish_record(found, number, problem, started)
            number += bool(found or problem)
            found, problem, started = [], "", place + 1
        elif not line.strip():
            continue
        elif mark and _TAG.fullmatch(tag) and (unmarked or not indented):
            # It may be empty: its text then begins on the next line.
            found.append(Field(tag.lower() if "upper" in table.about else tag, value.strip()[:LINE_LENGTH]))
        elif indented or (unmarked and found):
            found[-1] = Field(found[-1].tag, f"{found[-1].value} {line.strip()}".strip()[:LINE_LENGTH])
        else:
            problem = problem or f"line {place} is neither a field nor the continuation of one: {line[:60]!r}"
    found = [field for field in found if field.value]
    if end and found:
        problem = problem or f"the file ends before {end.upper()}"
    yield from _finish_record(found, number, problem, started)


def _finish_record(found: list[Field], number: int, problem: str, started: int) -> Iterator[Fields | Broken]:
    if problem:
        yield Broken(number, f"record {number}, from line {started}: {problem}")
    elif found:
        yield found


def _pack(fields: Fields, table: Crosswalk) -> bytes:
    separator = table.about.get("separator", ": ").replace("␣", " ")
    capitals, end = "upper" in table.about, table.about.get("end", "").strip()
    lines: list[str] = []
    for field in fields:
        line = f"{field.tag.upper() if capitals else field.tag}{separator}{' '.join(field.value.split())}"
        lines += _lines(line, separator, int(table.about.get("width", "0")))
    if end:
        named = table.about.get("closing", "").strip()
        closing = next((" ".join(field.value.split()) for field in fields if field.tag == named), "")
        lines.append(f"{end}{separator}{closing}".rstrip())
    return ("\n".join(lines) + ("\n" if end else "\n\n")).encode("utf-8", "replace")


def _lines(line: str, separator: str, width: int) -> Iterator[str]:
    """A line over as many as it needs; none of them but the first can be taken for a field."""
    if not width or len(line) <= width:
        yield line
        return
    whole = ""
    for part in textwrap.wrap(
        line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    ):
        tag, mark, _ = part.partition(separator.rstrip() or separator)
        if whole and mark and _TAG.fullmatch(tag.strip()):
            whole += f" {part.strip()}"
            continue
        if whole:
            yield whole
        whole = part
    yield whole


# XML


def _read_xml(root: etree._Element) -> Fields:
    found = []
    for node in root:
        value = " ".join("".join(map(str, node.itertext())).split())
        if value and str(node.tag).endswith("}field"):
            found.append(Field(node.get("tag") or "", value))
    return found


def _write_xml(namespace: str, fields: Fields) -> bytes:
    inside = "".join(f'<field tag="{attribute(f.tag)}">{text(f.value)}</field>' for f in fields)
    return f'<record xmlns="{namespace}">{inside}</record>'.encode()
