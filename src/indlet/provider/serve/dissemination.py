"""What a record can be given out as, and the bytes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from indlet.errors import CannotDisseminateFormat, ProtocolError, SettingsError
from indlet.formats import (
    INDEX,
    METADATA,
    IndexFormat,
    MetadataFormat,
    bundle,
    in_format,
)
from indlet.formats.metadata import oai_dc
from indlet.formats.registry import is_original
from indlet.model import Stored, TermVector
from indlet.oai import frames
from indlet.oai.names import BUNDLE_NAMESPACE
from indlet.provider.serve.provenance import Provenance
from indlet.provider.serve.record_filter import RecordFilter, VisibleRecords
from indlet.text import Analyzer, Policy

_POLICY: Final = re.compile(rb'"policy":"([0-9a-f]{1,64})"')
_HARVESTED: Final = b'"source_datestamp":'
NO_TABLES: Final[Mapping[str, MetadataFormat]] = {}


class Dissemination:
    """The formats that a node offers under its policy: those with positions only if it keeps them."""

    def __init__(
        self,
        schemas: str,
        policy: Policy,
        filtering: RecordFilter | None = None,
        only: Sequence[str] = (),
        tables: Mapping[str, MetadataFormat] = NO_TABLES,
    ) -> None:
        """`only`: the metadata formats on offer, where these are not all. `tables`: those of the settings."""
        self._schemas = schemas
        self.policy = json.dumps(policy.to_json(), ensure_ascii=False, sort_keys=True)
        self.digest = policy.digest
        self._analyzer = Analyzer(policy)
        self._indexes = {p: f for p, f in INDEX.items() if policy.positions or not f.positions}
        self._bundles = {p: f for p, f in bundle.INSIDE.items() if f.prefix in self._indexes}
        schema = f"{schemas}/bundle.xsd"
        self._bundle_schema = schema
        self._filter = filtering
        self.filtered = filtering.formats if filtering is not None else {}  # those of the filter's records
        self._metadata = {prefix: f for prefix, f in METADATA.items() if f.served} | dict(tables)
        self._roots = {root: f for f in (*METADATA.values(), *tables.values()) for root in f.roots}
        self._formats = {p: (self._schema(f), f.namespace) for p, f in self._metadata.items()}
        self._formats |= dict.fromkeys(self._bundles, (schema, BUNDLE_NAMESPACE))
        self._formats |= self.filtered
        if only:
            for prefix in only:
                if prefix not in self._formats:
                    known = ", ".join(self._formats)
                    raise SettingsError(f"[[repository]]: no format {prefix!r}; known: {known}")
            self._formats = {p: f for p, f in self._formats.items() if p in (*only, oai_dc.FORMAT.prefix)}

    def _schema(self, metadata: MetadataFormat) -> str:
        return metadata.schema if "://" in metadata.schema else f"{self._schemas}/{metadata.schema}"

    def metadata_formats(self, stored: Stored | None) -> list[bytes]:
        """The metadata formats on offer, or those of one record."""
        return [
            frames.metadata_format(prefix, *about)
            for prefix, about in self._formats.items()
            if stored is None or self.has(stored, prefix)
        ]

    def has(self, stored: Stored, prefix: str) -> bool:
        """Whether a record can be had in a format: some are for the records of a filter only."""
        if self._filter is None or prefix not in self.filtered:
            return True
        return bool(stored.deleted) or self._filter.has_formats(stored)

    def index_formats(self, stored: Stored | None) -> list[bytes]:
        """The index formats on offer, or those of one record."""
        indexes = list(self._indexes.values())
        if stored is not None and not stored.deleted:
            stored = self._analyzer.completed(stored)
            indexes = [f for f in indexes if _vector(stored, f) is not None]
        return [
            frames.index_format(f.prefix, f"{self._schemas}/{f.prefix}.xsd", self.policy, self.digest)
            for f in indexes
        ]

    def unknown(self, prefix: str, index_prefix: str) -> list[ProtocolError]:
        """What is wrong with a choice of formats."""
        found: list[ProtocolError] = []
        for kind, chosen, known in (
            ("metadataPrefix", prefix, list(self._formats)),
            ("indexPrefix", index_prefix, ["", *self._indexes]),
        ):
            if chosen not in known:
                offered = ", ".join(filter(None, known))
                found.append(CannotDisseminateFormat(f"{kind} {chosen!r} is not offered; one of {offered}"))
        return found

    def metadata_only(self, prefix: str, index_prefix: str) -> bool:
        """Whether records in these formats have no index part, so that a change of it is none of theirs."""
        return not index_prefix and prefix not in self._bundles

    @staticmethod
    def as_stored(prefix: str, index_prefix: str) -> bool:
        """Whether most records go out in these formats as they are stored, without anything beside it."""
        return prefix == oai_dc.PREFIX and not index_prefix

    def columns(self, prefix: str, index_prefix: str) -> tuple[str, ...]:
        """The heavy columns of the store that records in these formats are written from."""
        indexes = (self._bundles.get(prefix), self._indexes.get(index_prefix))
        used = [index for index in indexes if index is not None]
        vector = ("vector",) if used else ()
        if prefix in self.filtered:
            return ("properties", *vector, *(("positions",) if any(i.positions for i in used) else ()))
        # The policy of an index part is one of the properties, and so is what a library's own table says.
        more = ("properties",) if used or prefix != oai_dc.PREFIX else ()
        return (
            "metadata",
            "raw",
            *more,
            *vector,
            *(("positions",) if any(i.positions for i in used) else ()),
        )

    def writer(
        self,
        prefix: str,
        index_prefix: str,
        seen: VisibleRecords | None = None,
        provenance: Provenance | None = None,
    ) -> Callable[[Stored], bytes]:
        """What makes bytes of a record: pre-encoded parts side by side.

        A record that came without statistics goes with those of its metadata; one whose statistics the format
        cannot carry, without an index part. `seen`: what a filter shows the requester.
        """
        inside = self._bundles.get(prefix)
        index = self._indexes.get(index_prefix)
        own = seen if prefix in self.filtered else None
        metadata = self._metadata.get(prefix, oai_dc.FORMAT)

        namespace, stated = self._formats[prefix][1], provenance
        if stated is not None and not stated and not stated.extended:
            stated = None

        def write(stored: Stored) -> bytes:
            head = frames.header(stored.identifier, stored.datestamp, stored.deleted, stored.sets)
            translated = own is None and not stored.deleted and not is_original(stored.raw, metadata)
            about = stated.about(stored, namespace, translated) if stated is not None else b""
            if stored.deleted:
                return b"<record>%b%b</record>\n" % (head, about)
            policy = self._policy(stored) if inside is not None or index is not None else ""
            if stored.vector is None and policy:
                stored = self._analyzer.completed(stored)
            if own is not None:
                pieces = own.write(prefix, stored)
            else:
                stored = seen.as_shown(stored) if seen is not None else stored
                pieces = [in_format(stored, metadata, self._roots)]
            if inside is not None:
                opened = bundle.opening(self._bundle_schema, policy)
                pieces = [bundle.write(opened, b"".join(pieces), _terms(stored, inside))]
            part = _terms(stored, index) if index is not None else b""
            if part:
                part = b'<index policy="%b">%b</index>' % (policy.encode(), part)
            return b"".join(
                (b"<record>", head, b"<metadata>", *pieces, b"</metadata>", part, about, b"</record>\n")
            )

        return write

    def _policy(self, stored: Stored) -> str:
        """The digest of the policy by which a record's terms were made.

        While a crawl follows a change of the settings, some of our own records still have the terms of the
        policy before. Harvested terms are brought to the policy of this node when they come.
        """
        if stored.vector is None or _HARVESTED in stored.properties:
            return self.digest
        found = _POLICY.search(stored.properties)
        return found[1].decode() if found else self.digest


def _vector(stored: Stored, index: IndexFormat) -> TermVector | None:
    """The record's vector, if it has one that this format can carry."""
    if stored.vector is None or (index.positions and stored.positions is None):
        return None
    return TermVector(stored.vector, stored.length, stored.positions, stored.language)


def _terms(stored: Stored, index: IndexFormat) -> bytes:
    vector = _vector(stored, index)
    return b"" if vector is None else index.write(vector)
