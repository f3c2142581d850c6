"""Records that a catalogue imported from others and exports again: they are not this node's own.

Such a record names its origin's OAI identifier, in MARC in 001 or 035, where local write puts it. If a source
of this node has a record of that name, deleted or not, the export's copy is left out.

Some formats have no place for that identifier. What is written in one of them is remembered by what it says
when it is read again: an export's record that says the very same is the same record.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import orjson

from indlet.errors import BadResponse
from indlet.formats.crosswalk import Crosswalk
from indlet.formats.record import Broken, MetadataFormat
from indlet.model import Metadata, Record
from indlet.oai.xml import element
from indlet.store import Store, Transaction, View, kept_tables

CLAIM: Final = "origin_identifier"  # property of a record that names another repository's identifier
_IDENTIFIER = re.compile(r"oai:([^\s:]+):\S+")
_IN_MARC = re.compile(rb"""(?:tag=["']001["']>|>\(OAI\))(oai:[^<>\s]{1,1000})<""")
_LEAST: Final = 3  # elements without which a record is not told from others by what it says
_UNDECIDED: Final = 20_000  # records that are looked at again at the end of each crawl


def origin_identifier(raw: bytes, metadata: MetadataFormat, repository: str) -> str:
    """The OAI identifier of another repository that a record names as its own; empty if there is none."""
    if b"oai:" not in raw:
        return ""
    if found := _IN_MARC.search(raw):
        named = html.unescape(found[1].decode(errors="replace"))
    else:
        try:
            named = metadata.read(element(raw)).identifier
        except (BadResponse, ValueError):
            return ""
    match = _IDENTIFIER.fullmatch(named.strip())
    return match[0] if match is not None and match[1] != repository else ""


def echo_key(metadata: Metadata) -> str:
    """What tells a record without its identifier, as read from a catalogue's file; empty if it says little.

    Rights and identifiers are left out: a library adds its own.
    """
    said = {name: sorted(values) for name, values in metadata.items() if name not in ("rights", "identifier")}
    if len(said) < _LEAST or "title" not in said:
        return ""
    return blake2b(orjson.dumps(said, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def echo_key_of_file(data: bytes, metadata: MetadataFormat, table: Crosswalk) -> str:
    """The key of the record that a file holds; empty if the record names its origin."""
    fields = next(iter(metadata.load(data)), None)
    if fields is None or isinstance(fields, Broken):
        return ""
    try:
        named = origin_identifier(metadata.xml(fields), metadata, "")
    except ValueError:
        return ""
    return "" if named else echo_key(table.read(fields).simple())


class Echoes:
    """What of one library's export are records of others.

    A record whose origin nobody has harvested yet counts as the library's own, and is looked at again: the
    sources may be harvested later.
    """

    def __init__(self, store: Store, origin: int, catalogue: bool) -> None:
        """`catalogue`: the origin is the export of a catalogue, which may hold what was written for it."""
        self._catalogue = catalogue
        self._origin = origin
        with store.read() as view:
            claims = view.select(kept_tables.ECHO_CLAIMS, origin=origin)
            self._undecided = {one.identifier: one.claim for one in claims}
            self._sources = [source.id for source in view.origins("source")]
        self._kept = dict(self._undecided)
        self.count = 0

    def leave_out(self, view: View, records: list[Record]) -> list[Record]:
        """The records without those of others."""
        own = []
        for record in records:
            claim = str(record.properties.get(CLAIM, "")) or self._written_as(view, record)
            if claim and self._is_held(view, claim):
                self.count += 1
                self._undecided.pop(record.identifier, None)
                continue
            fits = len(record.identifier.encode("utf-8", "replace")) <= kept_tables.LONGEST_KEY
            if claim and fits and len(self._undecided) < _UNDECIDED:
                self._undecided[record.identifier] = claim
            own.append(record)
        return own

    def _written_as(self, view: View, record: Record) -> str:
        """The identifier of another's record that was written for a catalogue and says the very same."""
        key = echo_key(record.metadata) if self._catalogue else ""
        found = view.select(kept_tables.WRITTEN_ECHOES, digest=key) if key else []
        return found[0].identifier if found else ""

    def found_since(self, view: View) -> Iterable[str]:
        """Records that were taken for the library's own until their origin was harvested."""
        found = [own for own, claim in self._undecided.items() if self._is_held(view, claim)]
        for own in found:
            del self._undecided[own]
        return found

    def keep(self, tx: Transaction) -> None:
        changed = self._undecided.items() - self._kept.items()
        tx.upsert(
            kept_tables.ECHO_CLAIMS,
            [kept_tables.EchoClaim(self._origin, own, claim) for own, claim in changed],
        )
        for own in self._kept.keys() - self._undecided.keys():
            tx.remove(kept_tables.ECHO_CLAIMS, origin=self._origin, identifier=own)
        self._kept = dict(self._undecided)

    def _is_held(self, view: View, claim: str) -> bool:
        return bool(self._sources) and view.get(claim, self._sources) is not None
