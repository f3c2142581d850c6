"""A web server's files as a record source: URLs are identifiers, media types and folders are sets, and the
time of modification is the datestamp."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from indlet.errors import SettingsError
from indlet.formats.metadata import oai_dc
from indlet.model import JsonObject, Record, TermVector, merge_metadata
from indlet.oai.identifier import repository_identifier, set_spec
from indlet.provider.hierarchy import Entry, Listing, Tree, no_etag, shown
from indlet.provider.resources import Place, Resource, clean_metadata, moment
from indlet.provider.source import CrawlTarget, guarded_name
from indlet.provider.workers import Analysed
from indlet.settings import Settings, Site
from indlet.site.tree import Served, SiteTree
from indlet.store import Audience, Store

# Counts up when the same files should give different records.
LAYOUT = 1
MIME_SET = "mime"


def site_name(site: Site) -> str:
    """What a site is called in sets and reports."""
    parts = urlsplit(site.url)
    return site.name or f"{parts.netloc}{parts.path}".strip("/")


def local_path(site: Site, url: str) -> str:
    """The path below a site's root that a URL stands for."""
    return os.fsdecode(unquote_to_bytes(url.removeprefix(f"{site.url.rstrip('/')}/")))


def crawl_targets(settings: Settings) -> list[CrawlTarget]:
    return [
        CrawlTarget(
            site_name(site),
            site.root,
            site.every,
            partial(SiteSource.of, settings, site),
            {"root": site.root, "url": site.url},
            guarded=guarded_name(site_name(site)),
        )
        for site in settings.site
    ]


def adopt_renamed(store: Store, settings: Settings) -> None:
    """Let a site that is new in the settings have the records of one with the same address, or else the same
    folder, that is no longer there: it was given another name or address."""
    names = {site_name(site) for site in settings.site}
    with store.read() as view:
        audiences = Audience.FILTERED, Audience.SELECTIVE
        known = {one.name: one for one in view.origins("hierarchy") if one.audience in audiences}
    dropped = {name: one for name, one in known.items() if name not in names}
    for site in settings.site:
        name = site_name(site)
        if name in known:
            continue
        same = [n for n, one in dropped.items() if one.settings["url"].rstrip("/") == site.url.rstrip("/")]
        same += [n for n, one in dropped.items() if one.settings.get("root") == site.root]
        if same:
            del dropped[same[0]]
            with store.write() as tx:
                if tx.rename_origin("hierarchy", same[0], name):
                    tx.rename_origin("hierarchy", guarded_name(same[0]), guarded_name(name))


@dataclass(frozen=True)
class SiteSource:
    """Each file is a resource of its own: what a URL gives is one thing."""

    site: Site
    place: Place
    inner: tuple[str, ...] = ()  # paths below its own that are the URLs of other sites

    touch_matters = True  # the time of a file is its datestamp, and stands in its header
    reader = None  # each file is read as what it is

    @classmethod
    def of(cls, settings: Settings, site: Site, policy: str) -> SiteSource:
        parts = urlsplit(site.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise SettingsError(
                f"site {site.root}: the url {site.url!r} is not where files can be; "
                "use one like 'https://www.example.org/docs'"
            )
        name = site_name(site)
        if name == MIME_SET:
            raise SettingsError(f"a site cannot be called {name!r}: media types are sets of that name")
        place = Place(
            name=name,
            repository=repository_identifier(settings),
            url=f"{site.url.rstrip('/')}/",
            rights=site.rights or settings.node.rights,
            restricted=False,
            title=site.title or name,
            policy=policy,
        )
        base = f"{site.url.rstrip('/')}/"
        urls = [f"{one.url.rstrip('/')}/" for one in settings.site]
        if urls.count(base) > 1:
            raise SettingsError(
                f"two sites have the url {site.url!r}: a file would be listed twice; give each its own"
            )
        return cls(
            site,
            place,
            tuple(url.removeprefix(base) for url in urls if url[len(base) :] and url.startswith(base)),
        )

    @cached_property
    def made(self) -> str:
        parts = (LAYOUT, self.place.made, self.site.extract, self.site.dynamic)
        return blake2b(repr(parts).encode(), digest_size=12).hexdigest()

    def open(self, exclude: tuple[Path, ...], known_etag: Callable[[str], str] = no_etag) -> Tree:
        return SiteTree(self.site, exclude, known_etag, self.inner)

    def resources(self, listing: Listing) -> Iterator[Resource]:
        return (Resource(listing.folder, entry.name, (entry,)) for entry in listing.files)

    def identifier(self, resource: Resource) -> str:
        return self.place.address(resource.files[0].path)

    def sets(self, resource: Resource) -> tuple[tuple[str, str], ...]:
        kind, _, subtype = _served(resource).media_type.partition("/")
        return (
            (MIME_SET, "Media types"),
            (set_spec([MIME_SET, kind]), kind),
            (set_spec([MIME_SET, kind, subtype]), f"{kind}/{subtype}"),
            *self.place.sets(resource.folder),
        )

    def datestamp(self, resource: Resource) -> int:
        return max(0, resource.files[0].modified // 10**9)

    def records(
        self, resource: Resource, primary: Entry | None, documents: Sequence[Analysed]
    ) -> Iterator[Record]:
        """One record, with or without what was read from the file."""
        (entry,) = resource.files
        served = _served(resource)
        url = self.place.address(entry.path)
        sets = self.sets(resource)
        found = clean_metadata(documents[0].metadata) if len(documents) == 1 else {}
        technical = {
            "identifier": [url],
            "format": [served.media_type, f"{entry.size} bytes"],
            "date": [moment(entry.modified)],
            "rights": [self.place.rights] * bool(self.place.rights),
        }
        named = {"title": [re.sub(r"[\s_]+", " ", shown(entry.name)).strip() or url]}
        language = next((d.language or d.vector.language for d in documents), "")
        if language and "language" not in found:
            named["language"] = [language]
        metadata = merge_metadata(
            technical, {k: v for k, v in found.items() if k not in ("format", "date")},
            {k: v for k, v in named.items() if k not in found},
        )  # fmt: skip
        properties: JsonObject = {
            "path": shown(entry.path),
            "url": url,
            "media_type": served.media_type,
            "size": entry.size,
            "modified": moment(entry.modified),
            "modified_ns": entry.modified,
            "policy": self.place.policy,
            "headers": served.headers,
            "site": self.place.name,
        }
        if served.rendered:
            properties |= {"rendered": True, "sha256": served.digest}
        else:
            properties["sha256"] = _digest(Path(self.site.root) / entry.path)
        yield Record(
            url,
            metadata,
            _joined(documents),
            (sets[2][0], sets[-1][0]),
            raw=oai_dc.write(metadata),
            resource=url,
            properties=properties,
        )


def _served(resource: Resource) -> Served:
    served = resource.files[0].facts
    assert isinstance(served, Served), "a file of a site has its server's answer"
    return served


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _joined(documents: Sequence[Analysed]) -> TermVector | None:
    """The statistics of all documents in a file: a URL gives them together."""
    if len(documents) <= 1:
        return documents[0].vector if documents else None
    frequencies: Counter[str] = Counter()
    for document in documents:
        frequencies.update(document.vector.frequencies())
    length = sum(document.vector.length for document in documents)
    return TermVector.of(frequencies, length, documents[0].vector.language)
