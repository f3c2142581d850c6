"""What a source lists becomes our records: metadata cleaned, terms under our policy, the original kept.

item of a page -> Record, or BadResponse that says what is wrong with it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from lxml import etree

from indlet import _core
from indlet.errors import BadResponse
from indlet.formats import INDEX, bundle, pairs
from indlet.formats.index.terms import IndexFormat
from indlet.formats.metadata import oai_dc
from indlet.formats.registry import ROOTS, Roots
from indlet.limits import LENGTH_FLOOR, LENGTH_MOST, LENGTH_SLACK, OCCURRENCES, Budget
from indlet.model import JsonObject, Metadata, Packed, Record, TermVector
from indlet.oai.provenance import is_translation
from indlet.oai.read import Item, canonical, parsed
from indlet.text import Analyzer, Policy, Reconciliation, loss, renormalise


@dataclass(slots=True)
class Normaliser:
    """Makes records of one source's items, under one analysis policy of ours."""

    analyzer: Analyzer
    index_prefix: str = ""
    bundle_prefix: str = ""
    policy: Policy | None = None
    roots: Roots = field(default_factory=lambda: ROOTS)  # the formats that are known
    policies: Mapping[str, Policy] = field(default_factory=dict)  # others that records may name, by digest
    reconciliation: Reconciliation = field(init=False)
    has_index: bool = field(init=False)

    def __post_init__(self) -> None:
        self.reconciliation = loss(self.policy, self.analyzer.policy)
        self.has_index = bool(self.index_prefix or self.bundle_prefix)

    def record(self, item: Item) -> Record:
        """The record that an item of a list is to us; BadResponse says what is wrong with it."""
        if item.deleted:
            told: JsonObject = {"source_datestamp": item.datestamp} if item.datestamp else {}
            return Record(item.identifier, sets=item.sets, deleted=True, properties=told)
        raw, metadata, index = self._read(item)
        vector = self._vector(item, index)
        properties, resource = self._about(item, metadata)
        return Record(item.identifier, metadata, vector, item.sets, False, raw, resource, properties)

    def records(self, items: Sequence[Item]) -> list[Record | Packed | BadResponse]:
        """What each item of a list is to us: a record (packed, where the core made it), or what is wrong."""
        out: list[Record | Packed | BadResponse] = []
        for item in items:
            try:
                made = item.packed
                out.append(made if made is not None and self._is_ready(item, made) else self.record(item))
            except BadResponse as e:
                out.append(e)
        return out

    def _is_ready(self, item: Item, made: Packed) -> bool:
        """Whether there is nothing to add to what the core made, and nothing to change."""
        if item.deleted or item.about or not self._is_dublin_core(item, made):
            return False
        if not self.has_index or item.index_part is not None:
            return made.vector is item.index_part is None
        policy, reconciliation = self._made_by(item)
        if (vector := item.vector) is None:
            return reconciliation.exact
        self._check_length(vector, policy)
        return reconciliation.kind == "identical"

    def _is_dublin_core(self, item: Item, made: Packed) -> bool:
        """Whether metadata are read by the names of their elements, and not by a crosswalk."""
        if made.metadata == b"{}" or self.bundle_prefix:
            return False
        return self.roots.get(item.root) in (None, oai_dc.FORMAT)

    def _index(self, item: Item) -> etree._Element | None:
        """The index part that only the reader of its format understands."""
        return parsed(item.index_part) if item.index_part is not None and self.has_index else None

    def _read(self, item: Item) -> tuple[bytes, Metadata, etree._Element | None]:
        if item.packed is None:
            raise BadResponse("a record without metadata that is not marked as deleted")
        raw, index = item.packed.raw, self._index(item)
        if self._is_dublin_core(item, item.packed):
            return raw, orjson.loads(item.packed.metadata), index
        part = parsed(raw)
        if self.bundle_prefix and part is not None and part.tag == bundle.ROOT:
            part, index = bundle.read(part)
            raw = canonical(part, item.budget) if part is not None else b""
        if part is None:
            raise BadResponse("a record without metadata that is not marked as deleted")
        return raw, cleaned(pairs(part, self.roots, Budget(len(raw)))), index

    def _about(self, item: Item, metadata: Metadata) -> tuple[JsonObject, str]:
        """The properties of a record, and the key of its resource."""
        properties: JsonObject = {"source_datestamp": item.datestamp}
        url = _first_url(metadata)
        if url:
            properties["url"] = url
        for form in metadata.get("format", ()):
            if _core.is_media_type(form):
                properties["media_type"] = form
                break
        if self.has_index:
            policy, reconciliation = self._made_by(item)
            if not reconciliation.exact:
                properties["policy"] = policy.digest if policy else "unknown"
        if about := [a.decode("utf-8", "replace") for a in item.about if not is_translation(a)]:
            properties["about"] = about
        return properties, resource_key(item.identifier, metadata)

    def _vector(self, item: Item, index: etree._Element | None) -> TermVector | None:
        """The vector that came with an item.

        Where there is none, that of the metadata stands for it, which is made when it is asked for
        (`Analyzer.completed`).
        """
        if not self.has_index:
            return None
        vector = item.vector
        if vector is None:
            if index is None:
                return None
            vector = self._format.read(index)
            _charge(item, vector)
        policy, reconciliation = self._made_by(item)
        self._check_length(vector, policy)
        if reconciliation.kind == "identical":
            return vector
        made = renormalise(vector, policy, self.analyzer)
        _charge(item, made)
        return made

    def _made_by(self, item: Item) -> tuple[Policy | None, Reconciliation]:
        """The policy by which an item's terms were made: the one that its index part names, if we know it,
        else the one that the source states."""
        if item.policy and (policy := self.policies.get(item.policy)):
            return policy, loss(policy, self.analyzer.policy)
        return self.policy, self.reconciliation

    @property
    def _format(self) -> IndexFormat:
        return INDEX[self.index_prefix] if self.index_prefix else bundle.INSIDE[self.bundle_prefix]

    def _check_length(self, vector: TermVector, policy: Policy | None) -> None:
        """BadResponse if a document would be longer than its terms allow, or than documents are: its length
        counts in the average of all documents.
        """
        terms, total = _core.vector_size(vector.packed)
        complete = policy is not None and policy.prune is None and policy.lead is None
        if complete and self._format.frequencies:
            most = 2 * total + LENGTH_SLACK
        else:
            most = max(total, OCCURRENCES * max(terms, 1))
        if vector.length > most:
            raise BadResponse(
                f"a length of {vector.length} contradicts its vector of {terms} terms that occur {total} "
                "times; have the source state the number of its tokens, or leave it out"
            )
        most = min(LENGTH_MOST, max(LENGTH_FLOOR, OCCURRENCES * terms))
        if vector.length > most:
            raise BadResponse(
                f"a length of {vector.length} tokens is not that of a document with {terms} different terms "
                f"(at most {most}); check the frequencies at the source"
            )


def _charge(item: Item, vector: TermVector) -> None:
    if item.budget is not None:
        item.budget.charge(len(vector.packed) + len(vector.positions or b""))


def cleaned(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Metadata of pairs as they came, in Dublin Core order: values folded, in one form, each once.

    Nothing is cut: a paper may have three thousand authors, an abstract a million words.
    """
    found: dict[str, list[str]] = orjson.loads(_core.describe_metadata(list(pairs)))
    return found


def _first_url(metadata: Metadata) -> str:
    for value in metadata.get("identifier", ()):
        if value.startswith(("http://", "https://")):
            return value
    return ""


def resource_key(identifier: str, metadata: Metadata, url: str = "") -> str:
    """What tells that two records are about one resource: its DOI, else its URL, else its OAI identifier.

    The address of a whole site is that of no resource.
    """
    named = metadata.get("identifier", ())
    return _core.resource_key(identifier, [url, *named] if url else list(named))
