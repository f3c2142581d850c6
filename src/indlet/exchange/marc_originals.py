"""Records whose originals are MARC, for a catalogue that takes MARC: whole, as their origin has them.

Through the common record they would lose all that the crosswalk has no rows for: holdings, local fields,
indicators.
"""

from __future__ import annotations

from indlet.errors import BadResponse
from indlet.formats.crosswalk import Crosswalk
from indlet.formats.metadata import marc21
from indlet.formats.record import CommonRecord, Field, Fields, MetadataFormat
from indlet.formats.registry import ROOTS, root_name
from indlet.oai.xml import element


class MarcOriginals:
    """Others' MARC with what a site lays over it: the fields of its own table, and subjects in its scheme."""

    def __init__(self, metadata: MetadataFormat, own: Crosswalk | None, table: Crosswalk) -> None:
        """`own`: the site's own table, which in `table` stands on top of the standard one."""
        self._marc = metadata.crosswalk is marc21.crosswalk
        self._table = table
        self._own = own
        self._of_every_record = table.write(CommonRecord()) if self._marc else []
        rules = self._own.rules if self._own is not None else ()
        self._replacing = {rule.tags[0] for rule in rules if rule.writes and not rule.added}

    def fields(self, raw: bytes, said: CommonRecord, record: CommonRecord) -> Fields | None:
        """The fields to write; None if MARC is not what is written, or not what the original is."""
        original = _marc_fields(raw) if self._marc else None
        return self.over(original, said, record) if original is not None else None

    def over(self, original: Fields, said: CommonRecord, record: CommonRecord) -> Fields | None:
        """The same of an original that was read; None if it is UNIMARC, or MARC is not what is written.

        `said`: what the original says; `record`: the same, with subjects in the site's scheme. Those are
        added, for MARC has room for both. The record's identifier stands in 035, unless it is that of 001.
        """
        if not self._marc or marc21.crosswalk(original) is not marc21.crosswalk(()):
            return None
        ours = self._own.write(record) if self._own is not None else []
        known = set(said.statements)
        new = CommonRecord(tuple(one for one in record.statements if one not in known))
        written = self._table.write(new) if new.statements else []
        ours += [one for one in written if one not in self._of_every_record and one not in ours]
        named = Field("035", "", "  ", (("a", f"(OAI){record.identifier}"),))
        numbers = [one.value.strip() for one in (*original, *ours) if one.tag == "001"]
        if record.identifier.strip() not in ("", *numbers) and named not in original:
            ours.append(named)
        return marc21.laid_over(original, ours, self._replacing)


def _marc_fields(raw: bytes) -> Fields | None:
    """The fields of an original in MARC; None if it is none."""
    known = ROOTS.get(root_name(raw))
    if known is None or known.crosswalk is not marc21.crosswalk:
        return None
    try:
        return known.fields(element(raw))
    except (BadResponse, ValueError):
        return None
