"""MARC records, from ISO 2709 or MARCXML, and what they say in Dublin Core.

Reading forgives what library systems really write: wrong lengths, wrong directories, MARC-8 in records that
claim UTF-8 and the reverse. The crosswalks are tables: `marc21.tsv` and `unimarc.tsv`.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from lxml import etree

from indlet.formats.dublin import described, language_code

MARC_NAMESPACES: Final = ("http://www.loc.gov/MARC21/slim", "info:lc/xmlns/marcxchange-v1", "")

_RECORD_END: Final = b"\x1d"
_FIELD_END: Final = b"\x1e"
_DELIMITER: Final = b"\x1f"


@dataclass(frozen=True, slots=True)
class Field:
    """A control field (`value`) or a data field (`indicators` and `subfields`)."""

    tag: str
    value: str = ""
    indicators: str = ""
    subfields: tuple[tuple[str, str], ...] = ()

    def select(self, codes: str) -> list[str]:
        return [value for code, value in self.subfields if code in codes and value]


@dataclass(frozen=True, slots=True)
class Marc:
    leader: str
    fields: tuple[Field, ...]

    def control(self, tag: str) -> str:
        return next((field.value for field in self.fields if field.tag == tag), "")

    def has(self, *tags: str) -> bool:
        return any(field.tag in tags for field in self.fields)


# Reading


def split_iso2709(data: bytes) -> Iterator[bytes]:
    """Each record's bytes. The record terminator decides, because stated lengths are often wrong."""
    for chunk in data.split(_RECORD_END):
        record = chunk.lstrip(b"\r\n\t \x00\xef\xbb\xbf\x1a")
        if record.strip():
            yield record


def read_iso2709(record: bytes) -> Marc:
    """The record in these bytes. Raises ValueError with the reason where there is none."""
    if len(record) < 26:
        raise ValueError(f"truncated MARC record of {len(record)} bytes")
    leader = record[:24].decode("latin-1")
    directory, mark, body = record[24:].partition(_FIELD_END)
    if not mark:
        raise ValueError("MARC record without a directory end")
    entry = 3 + _digit(leader[20], 4) + _digit(leader[21], 5) + _digit(leader[22], 0)
    if len(directory) < entry:
        raise ValueError("MARC record with an empty directory")
    entries = [directory[at : at + entry] for at in range(0, len(directory) - entry + 1, entry)]
    pieces = _by_directory(entries, body, _digit(leader[20], 4))
    if pieces is None:
        # The directory does not fit the fields, as after a conversion of the encoding: the fields stand in
        # its order, so count them instead.
        pieces = [(item[:3], raw) for item, raw in zip(entries, body.split(_FIELD_END), strict=False)]
    decode = _decoder(leader, body)
    fields = tuple(_field(tag.decode("latin-1"), raw, decode) for tag, raw in pieces if raw)
    if not fields:
        raise ValueError("MARC record without fields")
    return Marc(leader, fields)


def _digit(character: str, default: int) -> int:
    return int(character) if character in "123456789" else default


def _by_directory(entries: list[bytes], body: bytes, width: int) -> list[tuple[bytes, bytes]] | None:
    found = []
    for item in entries:
        length, start = item[3 : 3 + width], item[3 + width :]
        if not (length.isdigit() and start.isdigit()):
            return None
        begin, end = int(start), int(start) + int(length) - 1
        if body[end : end + 1] != _FIELD_END or (begin and body[begin - 1 : begin] != _FIELD_END):
            return None
        raw = body[begin:end]
        if _FIELD_END in raw:
            return None
        found.append((item[:3], raw))
    return found


def _decoder(leader: str, body: bytes) -> Callable[[bytes], str]:
    if body.isascii() and b"\x1b" not in body:
        return lambda raw: raw.decode("ascii")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        if leader[9] == "a" and _mostly_utf8(body):
            return lambda raw: raw.decode("utf-8", "replace")
        return _marc8
    if b"\x1b" in body and leader[9] != "a":
        return _marc8
    # Bytes that happen to be UTF-8 are UTF-8, whatever the leader claims: MARC-8 puts a combining mark before
    # an ASCII letter, which UTF-8 never does.
    return lambda raw: raw.decode("utf-8", "replace")


def _mostly_utf8(body: bytes) -> bool:
    text = body.decode("utf-8", "replace")
    high = sum(1 for character in text if character > "\x7f")
    return text.count("\ufffd") * 4 <= high


def _marc8(raw: bytes) -> str:
    if raw.isascii() and b"\x1b" not in raw:
        return raw.decode("ascii")
    from pymarc.marc8 import marc8_to_unicode

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it writes there of each truncated character
            text: str = marc8_to_unicode(raw, hide_utf8_warnings=True)
    except (UnicodeError, ValueError, IndexError, KeyError, TypeError):
        text = raw.decode("latin-1")
    return text


def _field(tag: str, raw: bytes, decode: Callable[[bytes], str]) -> Field:
    if _DELIMITER not in raw or tag < "010":
        return Field(tag, value=decode(raw))
    if decode is _marc8:
        # One by one: a subfield begins anew in the default character sets.
        indicators, *parts = map(decode, raw.split(_DELIMITER))
    else:
        indicators, *parts = decode(raw).split("\x1f")
    return Field(
        tag, "", indicators[:2].ljust(2), tuple((part[:1], part[1:].strip()) for part in parts if part)
    )


def read_xml(element: etree._Element) -> Marc:
    """The record of a MARCXML `record` element, whatever its namespace."""
    leader, fields = "", []
    for child in element:
        kind = etree.QName(child).localname  # a record was parsed without comments
        if kind == "leader":
            leader = child.text or ""
        elif len(child.get("tag") or "") != 3:
            continue
        elif kind == "controlfield":
            fields.append(Field(child.get("tag", ""), child.text or ""))
        elif kind == "datafield":
            subfields = tuple(
                (sub.get("code", ""), " ".join(str(sub.xpath("string()")).split()))
                for sub in child
                if isinstance(sub.tag, str)
            )
            indicators = (child.get("ind1") or " ")[:1] + (child.get("ind2") or " ")[:1]
            fields.append(Field(child.get("tag", ""), "", indicators, subfields))
    if not fields:
        raise ValueError("MARCXML record without fields")
    return Marc(leader.ljust(24), tuple(fields))


# Crosswalk


@dataclass(frozen=True, slots=True)
class _Rule:
    element: str
    codes: str
    options: frozenset[str]


@cache
def _crosswalk(table: str) -> dict[str, list[_Rule]]:
    rules: dict[str, list[_Rule]] = {}
    for line in resources.files("indlet.formats").joinpath("tables", table).read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        element, tags, codes, options = line.split("\t")
        rule = _Rule(element, codes, frozenset(options.split()))
        for part in tags.split(","):
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                rules.setdefault(f"{number:03d}", []).append(rule)
    return rules


# Relator terms and codes that make an added entry a creator.
_CREATING: Final = frozenset(
    {"aut", "cre", "author", "creator", "joint author", "070", "verfasser", "auteur"}
)

_TYPES: Final = dict.fromkeys("acdt", "text") | dict.fromkeys("efgkr", "image") | dict.fromkeys("ij", "sound")
_ISBD_END = re.compile(r"[\s,;:/=]+$")
_YEAR = re.compile(r"(?<!\d)(1[0-9]{3}|20[0-9]{2})(?!\d)")


def _chopped(value: str) -> str:
    """The value less the ISBD punctuation that led to the next area; a full stop stays after an initial."""
    value = _ISBD_END.sub("", value)
    if value.endswith(".") and not re.search(r"(?:\b[^\W\d]|\b(?:etc|Inc|Ltd|Co|Jr|Sr|ed|vol))\.$", value):
        value = value[:-1]
    if value.startswith("[") and value.endswith("]") and value.count("[") == 1:
        value = value[1:-1]
    return value


def is_unimarc(record: Marc) -> bool:
    """MARC 21 has no field 200, UNIMARC has no book without it."""
    return record.has("200") and not record.has("245")


def dublin_core(record: Marc) -> dict[str, list[str]]:
    """What the record says, in Dublin Core."""
    unimarc = is_unimarc(record)
    rules = _crosswalk("unimarc.tsv" if unimarc else "marc21.tsv")
    pairs: list[tuple[str, str]] = []
    for field in record.fields:
        tag = field.tag
        if tag == "880":  # the same in its own script; $6 names the field it repeats
            tag = next(iter(field.select("6")), "")[:3]
        for rule in rules.get(tag, ()):
            pairs.extend(_values(field, rule))
    fixed = record.control("008")
    if not unimarc and record.leader[6:7] != "z":
        if not any(element == "date" for element, _ in pairs) and re.fullmatch(r"[12]\d{3}", fixed[7:11]):
            pairs.append(("date", fixed[7:11]))
        pairs.append(("language", language_code(fixed[35:38])))
        pairs.append(("type", _TYPES.get(record.leader[6:7], "")))
        if record.leader[7:8] in ("c", "s") or record.leader[6:7] == "p":
            pairs.append(("type", "collection"))
    if not any(element == "title" for element, _ in pairs):
        # An authority record is known by its heading.
        pairs.extend(
            ("title", _chopped(" ".join(field.select("abcdnpqtvxyz"))))
            for field in record.fields
            if field.tag[:1] == "1" and field.subfields
        )
    return described(pairs)


def _values(field: Field, rule: _Rule) -> Iterator[tuple[str, str]]:
    if "2=1" in rule.options and field.indicators[1:2] != "1":
        return
    element = rule.element
    if "role" in rule.options:
        roles = {role.rstrip(".,").lower() for role in field.select("e4")}
        if roles & _CREATING:
            element = "creator"
    values = field.select(rule.codes)
    if not values:
        return
    for value in values if "each" in rule.options else [_joined(field, rule, values)]:
        if element == "date":
            years = _YEAR.findall(value)
            yield element, years[0] if years else _chopped(value)
        elif element == "language":
            # Older records run several codes together: "engfre".
            for at in range(0, min(len(value), 60), 3):
                yield element, language_code(value[at : at + 3])
        elif element != "description" or any(map(str.isalpha, value)):  # local notes often hold mere codes
            yield element, value if "keep" in rule.options else _chopped(value)


def _joined(field: Field, rule: _Rule, values: list[str]) -> str:
    if rule.element not in ("subject", "coverage") or not set(rule.codes) & set("vxyz"):
        return " ".join(values)
    # Subdivisions follow the heading after a double dash, as catalogues print them.
    main = [value for code, value in field.subfields if code in rule.codes and code not in "vxyz"]
    parts = [_chopped(value) for code, value in field.subfields if code in "vxyz" and value]
    return "--".join([_chopped(" ".join(main)), *parts]) if main else "--".join(parts)


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
