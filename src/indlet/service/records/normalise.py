"""What a source lists becomes our records: metadata cleaned, terms under our policy, the original kept.

item of a page -> Record, or BadResponse that says what is wrong with it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import orjson
from lxml import etree

from indlet._core import doi
from indlet.errors import BadResponse
from indlet.formats import INDEX, bundle, by_name, pairs
from indlet.formats.dublin import PDF_MARKS, folded, iso_date, pdf_text
from indlet.formats.index.terms import IndexFormat
from indlet.formats.metadata.oai_dc import START
from indlet.formats.registry import ROOTS, Roots
from indlet.limits import LENGTH_SLACK, OCCURRENCES, Budget
from indlet.memo import remembered
from indlet.model import DUBLIN_CORE, JsonObject, Metadata, Packed, Record, TermVector
from indlet.oai.provenance import is_translation
from indlet.oai.read import Item, MetadataPart, canonical, parsed
from indlet.store import packed_parts, resource_hash
from indlet.text import Analyzer, Policy, Reconciliation, loss, renormalise, searched
from indlet.text.language import language_code

# The text of the document that a record (first argument) links to (second); empty where it is not to be had.
FullText = Callable[[str, str], str]

_DCMI_TYPES: Final = {
    name.lower(): name
    for name in (
        "Collection", "Dataset", "Event", "Image", "InteractiveResource", "MovingImage", "PhysicalObject",
        "Service", "Software", "Sound", "StillImage", "Text",
    )
}  # fmt: skip
_MEDIA: Final = {
    "pdf": "application/pdf", "html": "text/html", "txt": "text/plain", "xml": "application/xml",
    "text/pdf": "application/pdf", "application/x-pdf": "application/pdf", "adobe pdf": "application/pdf",
    "doc": "application/msword", "ps": "application/postscript", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "image/jpg": "image/jpeg", "mp3": "audio/mpeg", "epub": "application/epub+zip",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}  # fmt: skip
_CONTROLS: Final = bytes([*range(32), 127])
_MEDIA_TYPE = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[\w.+-]+", re.A
)
# The usual form, which needs no taking apart.
_PLAIN_URL = re.compile(r"https?://(?:www\.)?([a-z0-9.-]+)(/[^?#]*)")
_SITE = re.compile(r"http://[^/?#]*/")


@dataclass(slots=True)
class Normaliser:
    """Makes records of one source's items, under one analysis policy of ours."""

    analyzer: Analyzer
    index_prefix: str = ""
    bundle_prefix: str = ""
    policy: Policy | None = None
    full_text: FullText | None = None
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
        vector = self._vector(item, index, metadata)
        properties, resource = self._about(item, metadata)
        return Record(item.identifier, metadata, vector, item.sets, False, raw, resource, properties)

    def records(self, items: Sequence[Item]) -> list[Record | Packed | BadResponse]:
        """What each item of a list is to us: a record (packed, where it was read so), or what is wrong."""
        out: list[Record | Packed | BadResponse] = []
        # Where no text is to be made of the metadata, and no policy to be told, all may be known already.
        known = self.full_text is None and (not self.has_index or self.reconciliation.exact)
        for item in items:
            part = item.part
            try:
                if part is None or item.deleted or item.about or not self._as_stored(part):
                    out.append(self.record(item))
                    continue
                if known and part.properties and not item.policy:
                    vector = self._vector(item, None, {}) if self.has_index else None
                    properties, resource = part.properties, part.resource
                else:
                    metadata = orjson.loads(part.described)
                    vector = self._vector(item, None, metadata)
                    about, key = self._about(item, metadata)
                    properties, resource = orjson.dumps(about), resource_hash(key)
            except BadResponse as e:
                out.append(e)
            else:
                out.append(
                    packed_parts(
                        item.identifier, item.sets, vector, resource, part.described, properties, part.raw
                    )
                )
        return out

    def _as_stored(self, part: MetadataPart) -> bool:
        """Whether a part says in the words of Dublin Core what there is to say."""
        if part.described == b"{}" or self.bundle_prefix:
            return False
        return part.raw.startswith(START) or by_name(part.raw, self.roots)

    def _read(self, item: Item) -> tuple[bytes, Metadata, etree._Element | None]:
        part, index = item.metadata, item.index_part
        if item.part is not None and self._as_stored(item.part):
            return item.part.raw, orjson.loads(item.part.described), None
        if item.part is not None:
            part = parsed(item.part.raw)
        if self.bundle_prefix and part is not None and part.tag == bundle.ROOT:
            part, index = bundle.read(part)
        if part is None:
            raise BadResponse("a record without metadata that is not marked as deleted")
        raw = canonical(part, item.budget)
        return raw, cleaned(pairs(part, self.roots, Budget(len(raw)))), index

    def _about(self, item: Item, metadata: Metadata) -> tuple[JsonObject, str]:
        """The properties of a record, and the key of its resource."""
        properties: JsonObject = {"source_datestamp": item.datestamp}
        url = _first_url(metadata)
        if url:
            properties["url"] = url
        for form in metadata.get("format", ()):
            if "/" in form and is_media_type(form):
                properties["media_type"] = form
                break
        if self.has_index:
            policy, reconciliation = self._made_by(item)
            if not reconciliation.exact:
                properties["policy"] = policy.digest if policy else "unknown"
        if about := [a.decode("utf-8", "replace") for a in item.about if not is_translation(a)]:
            properties["about"] = about
        return properties, resource_key(item.identifier, metadata, url)

    def _vector(self, item: Item, index: etree._Element | None, metadata: Metadata) -> TermVector | None:
        """The vector that came with an item or is made from its full text.

        Where there is none, that of the metadata stands for it, which is made when it is asked for
        (`Analyzer.completed`).
        """
        if not self.has_index:
            if self.full_text is None:
                return None
            text = searched(metadata)
            if url := _first_url(metadata):
                text = f"{text}\n{self.full_text(item.identifier, url)}"
            return self.analyzer.vector(text, next(iter(metadata.get("language", ())), ""))
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
        """BadResponse if a document would be longer than its terms allow: its length counts in the average
        of all documents.
        """
        total = terms = 0
        for line in filter(None, vector.packed.split(b"\n")):
            count = line.count(b" ")
            terms += count
            total += count * int(line[: line.index(b" ")])
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


def _charge(item: Item, vector: TermVector) -> None:
    if item.budget is not None:
        item.budget.charge(len(vector.packed) + len(vector.positions or b""))


def cleaned(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Metadata of pairs as they came, `arranged` once their white space is folded.

    Nothing is cut: a paper may have three thousand authors, an abstract a million words.
    """
    # Most values are clean already, which one look at all of them tells: joined by spaces, one that begins or
    # ends with a space makes two of them.
    whole = " ".join([value for _, value in pairs])
    clean = (
        whole.isascii()
        and "  " not in whole
        and whole[:1] != " "
        and whole[-1:] != " "
        and len(whole.encode().translate(None, _CONTROLS)) == len(whole)
    )
    return arranged(pairs if clean else [(element, folded(value)) for element, value in pairs])


def arranged(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Metadata in Dublin Core order: dates, languages and types in one form, each value once."""
    found: dict[str, list[str]] = {}
    repeated = False
    for element, value in pairs:
        if element in FORMS:
            value = FORMS[element](value)
        elif element == "title" and value.startswith(PDF_MARKS):
            value = folded(pdf_text(value))
        if value:
            if element in found:
                found[element].append(value)
                repeated = True
            else:
                found[element] = [value]
    if repeated:
        for element, values in found.items():
            if len(values) > 1 and len(set(values)) != len(values):
                found[element] = list(dict.fromkeys(values))
    names = tuple(found)
    order = _ordered(names)
    return found if order == names else {element: found[element] for element in order}


@lru_cache(maxsize=1024)
def _ordered(elements: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(element for element in DUBLIN_CORE if element in elements)


@remembered(8192)
def _date(value: str) -> str:
    return iso_date(value)


@remembered(2048)
def _language(value: str) -> str:
    return language_code(value) or value


@remembered(2048)
def _type(value: str) -> str:
    name = value.rpartition("/")[2] if "purl.org/dc/dcmitype/" in value else value
    return _DCMI_TYPES.get(name.lower().replace(" ", ""), value)


@remembered(2048)
def _media(value: str) -> str:
    lower = value.lower().split(";")[0].strip()
    if lower in _MEDIA:
        return _MEDIA[lower]
    return lower if _MEDIA_TYPE.fullmatch(lower) else value


@remembered(2048)
def is_media_type(value: str) -> bool:
    return _MEDIA_TYPE.fullmatch(value) is not None


# What values of an element become, where they have a form.
FORMS: Final[dict[str, Callable[[str], str]]] = {
    "date": _date, "language": _language, "type": _type, "format": _media,
}  # fmt: skip


def _first_url(metadata: Metadata) -> str:
    for value in metadata.get("identifier", ()):
        if value.startswith(("http://", "https://")):
            return value
    return ""


def resource_key(identifier: str, metadata: Metadata, url: str = "") -> str:
    """What tells that two records stand for one resource: its DOI, else its URL, else its OAI identifier.

    The address of a whole site is that of no resource.
    """
    for value in metadata.get("identifier", ()):
        if "10." in value and (found := doi(value)):
            return f"doi:{found.lower()}"
    if url := url or _first_url(metadata):
        if match := _PLAIN_URL.fullmatch(url):
            path = match[2].rstrip("/")
            return f"http://{match[1]}{path}" if path else identifier
        key = _canonical_url(url)
        return identifier if _SITE.fullmatch(key) else key
    return identifier


def _canonical_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return url
    return urlunsplit(("http", host + port, parts.path.rstrip("/") or "/", parts.query, parts.fragment))
