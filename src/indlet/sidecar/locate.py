"""Where the documents of a record may be: what its metadata names, by rules for addresses of each platform.

A record gives candidates in order: files that a metadata format names, addresses that are recognisably
documents, landing pages. Which of these ways leads to documents is learned for each source (`Ways`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from indlet.model import Metadata
from indlet.sidecar.formats import PREFIXES, access_of, embargo_end
from indlet.sidecar.links import (
    ENDINGS,
    PAGE_ENDINGS,
    PDF,
    FileLink,
    RecordFiles,
    ending,
    is_web_address,
    strictest,
    unique,
)

PAGES: Final = 3  # landing pages that are tried for one record
RECORD: Final = "record"  # the way by what the harvested record names
LINK: Final = "link"  # by addresses that are recognisably documents
LANDING: Final = "landing"  # by a landing page; after a colon: by what on it
# A way that was tried this often for a source and never led anywhere is left out …
FRUITLESS: Final = 10
# … except for one record in so many, for repositories change.
RETRY_EVERY: Final = 50

_URL = re.compile(r"https?://[^\s<>\"']{4,2000}", re.IGNORECASE)
_DOI = re.compile(r"(?:doi:\s{0,3}|^)(10\.\d{4,9}/\S{1,300})", re.IGNORECASE)
_HANDLE = re.compile(r"(?:hdl:\s{0,3})(\d[\w.]{0,30}/\S{1,200})", re.IGNORECASE)
_RESOLVERS: Final = ("doi.org", "dx.doi.org", "hdl.handle.net", "nbn-resolving.org", "nbn-resolving.de")


class UrlRule(NamedTuple):
    """Addresses that are documents on one platform; `document` is the document's path, by the match."""

    platform: str
    path: re.Pattern[str]  # of path and query
    document: Callable[[re.Match[str]], str] | None = None
    media_type: str = ""


# The first that matches counts. A rule is about paths: hosts are as many as repositories.
RULES: Final = (
    UrlRule(
        "arXiv",
        re.compile(r"^/(?:abs|pdf)/(?P<id>(?:\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?)(?:\.pdf)?$"),
        lambda found: f"/pdf/{found['id']}",
        PDF,
    ),
    UrlRule("Digital Commons", re.compile(r"/viewcontent\.cgi\?(?=.*\barticle=)(?=.*\bcontext=)")),
    UrlRule("DSpace 6", re.compile(r"/bitstream(?:/handle)?/[\w.]+/[\w.-]+/(?:\d+/)?[^/?]+(?:\?.*)?$")),
    UrlRule("DSpace 7", re.compile(r"/bitstreams/[0-9a-f-]{36}/(?:download|content)$")),
    UrlRule("Invenio", re.compile(r"/records?/[\w-]+/files/[^/?]+(?:/content|\?download=1)?$")),
    UrlRule(
        "OJS 3",
        re.compile(r"^(?P<before>.*/article)/(?:view|viewFile|download)/(?P<rest>[\w.-]+/[\w.-]+)(?:/\d+)?$"),
        lambda found: f"{found['before']}/download/{found['rest']}",
    ),
    UrlRule("Dataverse", re.compile(r"/api/access/datafile/(?!bundle)(?::persistentId\?.+|\d+)")),
    UrlRule("EPrints", re.compile(r"^(?:/id/eprint)?/\d+/\d+/[^/?]+\.\w{2,5}$")),
    UrlRule("", re.compile(rf"\.(?:{'|'.join(sorted(ENDINGS.keys() - PAGE_ENDINGS))})$", re.IGNORECASE)),
)  # fmt: skip


def document_link(url: str) -> FileLink | None:
    """The document at an address that is recognisably one, by its rule; None for any other address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    for rule in RULES:
        if found := rule.path.search(target):
            address = f"{parts.scheme}://{parts.netloc}{rule.document(found)}" if rule.document else url
            return FileLink(address, rule.media_type or ENDINGS.get(ending(parts.path), ""))
    return None


def platform_of(url: str) -> str:
    """The platform whose documents have such addresses; empty if it cannot be told."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return next((rule.platform for rule in RULES if rule.platform and rule.path.search(target)), "")


def files_in_dublin_core(metadata: Metadata, base_url: str = "") -> RecordFiles:
    """Addresses in identifiers, relations and sources: documents, and the pages that may lead to them.

    Identifiers come before relations, the repository's own host before others, resolvers of DOIs last: a
    relation to a publisher's DOI is another version, and taken only if there is nothing else.
    """
    home = _host(base_url)
    found = list(_addresses(metadata.get("identifier", ())))
    related = list(_addresses((*metadata.get("relation", ()), *metadata.get("source", ()))))
    own = [url for url in related if _host(url) in {home, *map(_host, found)} - {""}]
    documents = [link for url in (*found, *own) if (link := document_link(url))]
    taken = {url for url in (*found, *own) if document_link(url)}
    pages = [url for url in (*found, *own, *related) if url not in taken]
    pages.sort(key=lambda url: (_host(url) in _RESOLVERS, _host(url) != home))
    rights = metadata.get("rights", ())
    return RecordFiles(
        tuple(dict.fromkeys(documents)),
        unique(pages)[:PAGES],
        access=strictest([access_of(value) for value in rights]),
        until=embargo_end(iter((*rights, *metadata.get("date", ())))),
        licences=unique(url for value in rights for url in _URL.findall(value)),
    )


def _addresses(values: Iterable[str]) -> Iterable[str]:
    """Web addresses in values as people write them: within text, escaped twice, as a DOI or a handle."""
    for value in values:
        plain = html.unescape(value.strip())
        urls = [url.rstrip(".,;)]>") for url in _URL.findall(plain)]
        yield from (url for url in urls if is_web_address(url))
        if not urls and (doi := _DOI.search(plain)):
            yield f"https://doi.org/{doi[1].rstrip('.,;')}"
        elif not urls and (handle := _HANDLE.search(plain)):
            yield f"https://hdl.handle.net/{handle[1]}"


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


@dataclass(slots=True)
class Ways:
    """How often each way was tried for a source, and how often it led to a document."""

    tried: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    last: str = ""  # the way that led to the last document
    records: int = 0

    def order(self, offered: Sequence[str]) -> list[str]:
        """The ways to try for the next record: the one that worked last, then the others in order, without
        those that never lead anywhere. `offered`: the metadata formats of the source."""
        self.records += 1
        every = [RECORD, *(prefix for prefix in PREFIXES if prefix in offered), LINK, LANDING]
        thorough = self.records % RETRY_EVERY == 0
        useful = [way for way in every if thorough or not self._is_fruitless(way)]
        # What is at hand costs no request beside that for the document: it comes before a page.
        first = (RECORD, LINK, LANDING) if self.last == LANDING else (RECORD, self.last)
        return [way for way in first if way in useful] + [way for way in useful if way not in first]

    def _is_fruitless(self, way: str) -> bool:
        cheap = way in (RECORD, LINK, LANDING)
        return not cheap and self.tried.get(way, 0) >= FRUITLESS and not self.found.get(way)

    def note(self, way: str, success: bool) -> None:
        self.tried[way] = self.tried.get(way, 0) + 1
        if success:
            self.found[way] = self.found.get(way, 0) + 1
            self.last = way

    def to_json(self) -> dict[str, object]:
        return {"tried": self.tried, "found": self.found, "last": self.last, "records": self.records}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Ways:
        def counts(name: str) -> dict[str, int]:
            value = data.get(name)
            return {str(k): int(v) for k, v in value.items()} if isinstance(value, dict) else {}

        records = data.get("records")
        return cls(
            counts("tried"), counts("found"), str(data.get("last", "")),
            records if isinstance(records, int) else 0,
        )  # fmt: skip
