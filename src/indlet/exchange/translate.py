"""Records of one format translated to another, through the common record, and what that loses.

MARC that becomes MARC stays whole (`marc_originals.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from indlet.errors import SettingsError
from indlet.exchange.marc_originals import MarcOriginals
from indlet.exchange.subject_translation import SubjectTranslation
from indlet.formats import METADATA, crosswalk
from indlet.formats.crosswalk import Crosswalk, Lost
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken, CommonRecord, Fields, MetadataFormat
from indlet.formats.tagged import named_format

_MARC: Final = ("marc21", "oai_marc")
_MARC_FILES: Final = {"marcxml": marc21.XML_FILES, "marc8": marc21.MARC8_FILES}


@dataclass(frozen=True, slots=True)
class Translation:
    """One record: what it says, its bytes in the other format, and what of it got lost."""

    number: int
    record: CommonRecord
    data: bytes
    lost: tuple[Lost, ...]
    warning: str = ""  # why it was translated where it should have stayed whole


@dataclass(frozen=True, slots=True)
class Translator:
    """From one format to another; `own` and `own_out` are a site's tables on top of the standard ones."""

    source: MetadataFormat
    target: MetadataFormat
    own: str = ""
    own_out: str = ""
    subjects: SubjectTranslation | None = None

    def records(self, data: bytes) -> Iterator[Translation | Broken]:
        """Each record of a file. What cannot be read, mapped or written is broken; the others go on."""
        tables: dict[str, Crosswalk] = {}
        out = on_top(self.own_out, self.target.crosswalk(()), self.target)
        own_out = own_table(self.own_out, self.target) if self.own_out else None
        originals = MarcOriginals(self.target, own_out, out) if self.source.prefix in _MARC else None
        number = 0
        for fields in self.source.load(data):
            number += not (isinstance(fields, Broken) and fields.is_warning)
            if isinstance(fields, Broken):
                yield fields
                continue
            base = self.source.crosswalk(fields)
            if base.name not in tables:
                tables[base.name] = on_top(self.own, base, self.source)
            yield self._one(number, fields, tables[base.name], out, originals)

    def _one(
        self, number: int, fields: Fields, table: Crosswalk, out: Crosswalk, originals: MarcOriginals | None
    ) -> Translation | Broken:
        lost: list[Lost] = []
        said = record = table.read(fields, lost)
        if self.subjects is not None:
            record = self.subjects.translated(record)
        warning = ""
        whole = originals.over(fields, said, record) if originals is not None else None
        if whole is not None:
            try:
                return Translation(number, record, self.target.pack(whole), tuple(_replaced(fields, whole)))
            except ValueError as error:
                warning = f"record {number} is translated, not written whole: {error}; use marcxml"
        if not record.statements:
            return Broken(number, f"record {number}: nothing of it could be mapped")
        try:
            packed = self.target.pack(out.write(record, lost))
        except ValueError as error:
            return Broken(number, f"record {number}: {error}")
        return Translation(number, record, packed, tuple(lost), warning)


def _replaced(original: Fields, whole: Fields) -> Iterator[Lost]:
    """The fields of an original in whose place a site's own table writes others."""
    for field in original:
        if field not in whole:
            text = field.value or " ".join(value for _, value in field.subfields)
            yield Lost(field.tag, text, "the own table writes another")


def format_named(name: str) -> MetadataFormat:
    """A format by its prefix, `table:NAME`, or one of the other forms of MARC. SettingsError if none."""
    if name in _MARC_FILES:
        return _MARC_FILES[name]
    if name.startswith("table:"):
        return named_format(name.removeprefix("table:"))
    if name not in METADATA:
        raise SettingsError(f"no format {name!r}; one of {', '.join((*METADATA, *_MARC_FILES))}, table:NAME")
    return METADATA[name]


@lru_cache(maxsize=64)
def on_top(own: str, base: Crosswalk, metadata: MetadataFormat) -> Crosswalk:
    """The standard table with a site's own on top: a file, or a table that comes with indlet."""
    return crosswalk.over(own_table(own, metadata), base) if own else base


def own_table(own: str, metadata: MetadataFormat) -> Crosswalk:
    """A site's own table alone. SettingsError if there is none, or it is not for this format."""
    marc = metadata.prefix in _MARC
    if not re.fullmatch(r"\w+", own) or Path(own).exists():
        table = crosswalk.load(Path(own), single=marc)
    else:
        try:
            table = crosswalk.standard(own, marc)
        except FileNotFoundError:
            raise SettingsError(f"no table {own!r}; give a file, or a table that comes with indlet") from None
    wrong = next((tag for rule in table.rules for tag in rule.tags if len(tag) != 3), "") if marc else ""
    if wrong:
        raise SettingsError(
            f'{own}: {wrong} is no field of MARC; for a table of another format, give format = "table:{own}"'
        )
    return table
