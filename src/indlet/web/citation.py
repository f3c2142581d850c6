"""What a page, a feed or a reference manager needs to know of a record, taken from hostile metadata.

Values stay plain text: whoever writes HTML, XML or BibTeX escapes them there. An address becomes a link only
if it leads to http, https or ftp; anything else stays text.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from indlet.formats.file_formats import file_format
from indlet.formats.identifiers import first
from indlet.model import JsonMapping, Metadata
from indlet.service.index.dates import date_number
from indlet.web.markup import without_markup

_NOT_OPEN: Final = frozenset(
    (
        "info:eu-repo/semantics/restrictedaccess", "info:eu-repo/semantics/closedaccess",
        "info:eu-repo/semantics/embargoedaccess", "://purl.org/coar/access_right/c_16ec",
        "://purl.org/coar/access_right/c_14cb", "://purl.org/coar/access_right/c_f1cf",
    )
)  # fmt: skip
_OPEN: Final = frozenset(("info:eu-repo/semantics/openaccess", "://purl.org/coar/access_right/c_abf2"))
_LICENCE: Final = re.compile(
    r"creativecommons\.org/(?:licenses|publicdomain)/(by(?:-nc)?(?:-nd|-sa)?|zero|mark)(?:/(\d\.\d))?", re.I
)
_LICENCE_NAMES: Final = {"zero": "CC0", "mark": "Public Domain Mark"}
_UNSAFE: Final = re.compile(r"[\x00- \"'<>\\^`{|}\x7f]")
_SCHEMES: Final = ("http", "https", "ftp")
_ISBN = re.compile(r"\b(?:ISBN[-: ]*)?((?:97[89][- ]?)?(?:\d[- ]?){9}[\dXx])\b")
_ISSN = re.compile(r"\bISSN[-: ]*(\d{4}-\d{3}[\dXx])\b", re.IGNORECASE)
# A name of a document type, as metadata says it -> ours. First match wins.
_KINDS: Final = (
    ("thesis", "thesis|theses|dissertation|habilitation|thèse|tesis|tesi|tese|doktora|yüksek lisans"),
    ("dataset", "data ?set"),
    ("report", "report|memorandum|working paper|technical|[a-zäöüß]*bericht"),
    ("chapter", "book ?part|book ?section|chapter|inbook|incollection"),
    ("conference", "conference|proceedings|inproceedings"),
    ("article", "article|journal|preprint|[a-zäöüß]*aufsatz"),
    ("book", "(?:e|hand|text|year|audio)?book|monograph|[a-zäöüß]*buch"),
    ("software", "software|interactive"),
    ("image", "(?<!moving )image|photograph|still"),
    ("sound", "sound|audio"),
    ("video", "video|moving image|film"),
)
# Whole words, in the singular or with an s; letters of other scripts and accents are letters too.
_KIND_OF: Final = tuple(
    (kind, re.compile(rf"(?<![^\W\d_])(?:{words})s?(?![^\W\d_])")) for kind, words in _KINDS
)
_JOINED: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")  # journalArticle


def safe_url(value: object) -> str:
    """The address if it may become a link, else nothing. Digital Commons states `&` as HTML has it."""
    if not isinstance(value, str):
        return ""
    value = value.strip().replace("&amp;", "&")
    if len(value) > 4000 or _UNSAFE.search(value):
        return ""
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    return value if parts.scheme.lower() in _SCHEMES and parts.hostname else ""


def record_path(identifier: str, source: str = "") -> str:
    """The portal's page of a record of a source, as a path; odd identifiers travel in the query."""
    of = f"source={quote(source, safe='')}" if source else ""
    plain = re.fullmatch(r"[A-Za-z0-9:._~@,;/-]+", identifier)
    if plain and not re.search(r"//|(?:^|/)\.{1,2}(?:/|$)|/$", identifier):
        return f"/record/{identifier}" + (f"?{of}" if of else "")
    return f"/record?id={quote(identifier, safe='')}" + (f"&{of}" if of else "")


@dataclass(frozen=True, slots=True)
class Copy:
    """One manifestation that can be shown: its address is a safe link or empty."""

    url: str
    media_type: str
    size: int
    primary: bool

    @property
    def label(self) -> str:
        """A short name of the format: PDF, HTML …; where it is unknown, of the place: arxiv.org."""
        kind = self.media_type.partition(";")[0].strip().lower()
        if kind:
            return file_format(kind) or "file"
        return (urlsplit(self.url).hostname or "").removeprefix("www.")[:40] or "file"  # a safe link


@dataclass(frozen=True, slots=True)
class AccessStatement:
    """Who may read a work, as far as its metadata says: "open", "restricted", or nothing."""

    state: str = ""
    licence: str = ""  # "CC BY 4.0"
    url: str = ""  # of the licence

    def __bool__(self) -> bool:
        return bool(self.state)


UNKNOWN_ACCESS: Final = AccessStatement()


@dataclass(frozen=True, slots=True)
class Citation:
    identifier: str
    title: str
    creators: tuple[str, ...]
    contributors: tuple[str, ...]
    publisher: str
    date: str
    year: int | None
    kind: str
    language: str
    subjects: tuple[str, ...]
    description: str
    rights: str
    doi: str
    isbn: str
    issn: str
    url: str
    access: AccessStatement
    copies: tuple[Copy, ...]
    venue: str = ""  # the journal, proceedings or book that it is in
    source: str = ""  # which tells it from others of its identifier

    @property
    def restricted(self) -> bool:
        return self.access.state == "restricted"

    @property
    def page(self) -> str:
        """The path of its page in the portal."""
        return record_path(self.identifier, self.source)

    @property
    def pdf(self) -> str:
        return next((c.url for c in self.copies if c.url and c.label == "PDF"), "")


def citation(identifier: str, metadata: Metadata, properties: JsonMapping, source: str = "") -> Citation:
    identifiers = list(metadata.get("identifier", ()))
    copies = manifestations(metadata, properties)
    dates = metadata.get("date", ())
    made = year_of(dates)
    return Citation(
        identifier=identifier,
        title=without_markup(_first(metadata, "title")),
        creators=tuple(map(without_markup, metadata.get("creator", ()))),
        contributors=tuple(map(without_markup, metadata.get("contributor", ()))),
        publisher=without_markup(_first(metadata, "publisher")),
        date=next((value for value in dates if year_of([value]) == made), "") if made else "",
        year=made,
        kind=_kind(metadata),
        language=_first(metadata, "language"),
        subjects=tuple(map(without_markup, metadata.get("subject", ()))),
        description=without_markup(_first(metadata, "description")),
        rights=_first(metadata, "rights"),
        doi=first("doi", identifiers),
        isbn=_match(_ISBN, [i for i in identifiers if "isbn" in i.lower()]),
        issn=_match(_ISSN, [*identifiers, *metadata.get("source", ())]),
        url=_address(properties, identifiers, copies),
        access=_access(metadata.get("rights", ()), bool(properties.get("restricted"))),
        copies=copies,
        venue=without_markup(_venue(metadata)),
        source=source,
    )


def manifestations(metadata: Metadata, properties: JsonMapping) -> tuple[Copy, ...]:
    """The files of a resource, the primary one first; at most fifty, for nobody reads more.

    A harvested record names its files by their addresses only: the primary one as its own, and as relations
    the others, which differ from it in their extensions.
    """
    raw = properties.get("manifestations")
    found = []
    for entry in raw[:50] if isinstance(raw, list) else ():
        if isinstance(entry, Mapping):
            size = entry.get("size")
            found.append(
                Copy(
                    safe_url(entry.get("url")),
                    str(entry.get("media_type") or ""),
                    size if isinstance(size, int) and size > 0 else 0,
                    bool(entry.get("primary")),
                )
            )
    if not found and safe_url(properties.get("url")):
        size, url = properties.get("size"), safe_url(properties.get("url"))
        found.append(
            Copy(
                url,
                str(properties.get("media_type") or mimetypes.guess_type(urlsplit(url).path)[0] or ""),
                size if isinstance(size, int) and size > 0 else 0,
                True,
            )
        )
        stem = _stem(found[0].url)
        for value in metadata.get("relation", ())[:200]:
            address = safe_url(value)
            if stem and address and _stem(address) == stem and len(found) < 50:
                found.append(Copy(address, mimetypes.guess_type(urlsplit(address).path)[0] or "", 0, False))
    return tuple(sorted(found, key=lambda copy: not copy.primary))


def _stem(address: str) -> str:
    """The address without its last extension; empty if it has none."""
    head, dot, suffix = address.rpartition(".")
    return head if dot and 0 < len(suffix) <= 8 and "/" not in suffix else ""


def _access(rights: Sequence[str], restricted: bool) -> AccessStatement:
    """What statements of rights say in one of the agreed forms (OpenAIRE, COAR, Creative Commons)."""
    stated = [value.strip().lower().removeprefix("https").removeprefix("http") for value in rights[:50]]
    licences = [found for value in rights[:50] if (found := _LICENCE.search(value[:500]))]
    if restricted or any(value in _NOT_OPEN for value in stated):
        return AccessStatement("restricted")
    if not licences:
        return AccessStatement("open") if any(value in _OPEN for value in stated) else AccessStatement()
    kind, version = licences[0][1].lower(), licences[0][2] or ""
    name = _LICENCE_NAMES.get(kind) or f"CC {kind.upper()} {version}".strip()
    return AccessStatement(
        "open", name, safe_url("https://" + licences[0][0].lower().removeprefix("www.") + "/")
    )


def year_of(dates: Sequence[str]) -> int | None:
    """The year that the index sorts, filters and counts the record by."""
    return date_number({"date": dates}) // 10000 or None


def kind_of(types: Sequence[str]) -> str:
    """The kind of work that types tell, by whole words of theirs: "doctoralThesis", and not "Síntesis"."""
    joined = _JOINED.sub(" ", " | ".join(types)[:10_000]).lower()
    return next((kind for kind, words in _KIND_OF if words.search(joined)), "text")


def _kind(metadata: Metadata) -> str:
    """The kind of a work; Digital Commons calls a thesis a text, of the series "Doctoral Dissertations"."""
    kind = kind_of(metadata.get("type", ()))
    return "thesis" if kind == "text" and kind_of(metadata.get("source", ())) == "thesis" else kind


def _address(properties: JsonMapping, identifiers: Sequence[str], copies: Sequence[Copy]) -> str:
    """Where the owner's copy is: as the provider says, else the first address among the identifiers."""
    candidates = [properties.get("url"), *(c.url for c in copies if c.primary), *identifiers]
    found = next((url for url in map(safe_url, candidates) if url), "")
    if not found and (doi := first("doi", identifiers)):
        return safe_url(f"https://doi.org/{doi}")
    return found


def _venue(metadata: Metadata) -> str:
    """What a document is part of, as its dc:source tells: no address, no number alone."""
    for value in metadata.get("source", ()):
        text = " ".join(value[:300].split())
        if (
            any(c.isalpha() for c in text)
            and "://" not in text
            and not re.match(r"(?i)(issn|isbn|urn:|oai:)", text)
        ):
            return text
    return ""


def _match(pattern: re.Pattern[str], values: Sequence[str]) -> str:
    for value in values:
        if match := pattern.search(value[:500]):
            return match[1]
    return ""


def _first(metadata: Metadata, element: str) -> str:
    values = metadata.get(element, ())
    return values[0] if values else ""
