"""RSS 2.0 and Atom 1.0 (RFC 4287, tombstones by RFC 6721) of new and changed records.

Pure functions from a `Feed` to bytes; `web/feed_routes.py` fills the `Feed` from the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import Final

from indlet.model import Metadata
from indlet.oai.xml import attribute, text
from indlet.web.citation import Citation, Copy

DC_NAMESPACE: Final = "http://purl.org/dc/elements/1.1/"
PRISM_NAMESPACE: Final = "http://prismstandard.org/namespaces/basic/2.0/"
_SUMMARY: Final = 2000  # characters of a description


@dataclass(frozen=True, slots=True)
class FeedEntry:
    cited: Citation
    metadata: Metadata
    datestamp: int
    deleted: bool
    source: str


@dataclass(frozen=True, slots=True)
class Feed:
    title: str
    description: str
    root: str  # the portal's address, without a trailing slash
    address: str  # of the feed itself
    page: str  # of the page that shows the same
    author: str
    email: str
    rights: str
    language: str
    updated: int
    entries: Sequence[FeedEntry]
    total: int | None = None  # matches of a query's feed


def atom(feed: Feed) -> bytes:
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
        f'xmlns:dc="{DC_NAMESPACE}" xmlns:prism="{PRISM_NAMESPACE}" '
        'xmlns:at="http://purl.org/atompub/tombstones/1.0" '
        'xmlns:os="http://a9.com/-/spec/opensearch/1.1/" '
        f'xml:lang="{attribute(feed.language)}" xml:base="{attribute(feed.root)}/">\n',
        f"<id>{text(feed.address)}</id><title>{text(feed.title)}</title>"
        f"<subtitle>{text(feed.description)}</subtitle><updated>{rfc3339(feed.updated)}</updated>",
        f'<link rel="self" type="application/atom+xml" href="{attribute(feed.address)}"/>'
        f'<link rel="alternate" type="text/html" href="{attribute(feed.page)}"/>',
        f"<author><name>{text(feed.author)}</name>"
        + (f"<email>{text(feed.email)}</email>" if feed.email else "")
        + "</author>",
        f"<logo>{text(feed.root)}/static/mark.svg</logo>",
    ]
    if feed.rights:
        parts.append(f"<rights>{text(feed.rights)}</rights>")
    if feed.total is not None:
        parts.append(f"<os:totalResults>{feed.total}</os:totalResults>")
    parts += [_atom_entry(feed, entry) for entry in feed.entries]
    return ("".join(parts) + "</feed>\n").encode()


def _atom_entry(feed: Feed, entry: FeedEntry) -> str:
    cited, when = entry.cited, rfc3339(entry.datestamp)
    page = feed.root + cited.page
    if entry.deleted:
        return f'<at:deleted-entry ref="{attribute(page)}" when="{when}"/>\n'
    # The page is the entry's id: an IRI by construction, which a source's identifier need not be.
    parts = [
        f"<entry><id>{text(page)}</id><title>{text(cited.title)}</title><updated>{when}</updated>"
        f'<link rel="alternate" type="text/html" href="{attribute(page)}"/>'
    ]
    parts += [f"<author><name>{text(name)}</name></author>" for name in cited.creators]
    parts += [f"<contributor><name>{text(name)}</name></contributor>" for name in cited.contributors]
    parts += [f'<category term="{attribute(subject)}"/>' for subject in cited.subjects]
    if cited.url:
        parts.append(f'<link rel="related" href="{attribute(cited.url)}"/>')
    parts += [
        f'<link rel="enclosure" href="{attribute(copy.url)}"'
        + (f' type="{attribute(copy.media_type)}"' if _is_media_type(copy.media_type) else "")
        + (f' length="{copy.size}"' if copy.size else "")
        + "/>"
        for copy in _enclosures(cited)
    ]
    parts.append(f'<summary type="text">{text(cited.description[:_SUMMARY])}</summary>')
    if cited.rights:
        parts.append(f"<rights>{text(cited.rights)}</rights>")
    parts.append(_dublin(entry))
    return "".join(parts) + "</entry>\n"


def rss(feed: Feed) -> bytes:
    built = rfc822(feed.updated)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" '
        f'xmlns:dc="{DC_NAMESPACE}" xmlns:prism="{PRISM_NAMESPACE}" '
        'xmlns:atom="http://www.w3.org/2005/Atom" '
        'xmlns:os="http://a9.com/-/spec/opensearch/1.1/"><channel>\n',
        f"<title>{text(feed.title)}</title><link>{text(feed.page)}</link>"
        f"<description>{text(feed.description)}</description><language>{text(feed.language)}</language>",
        f"<copyright>{text(feed.rights)}</copyright>" if feed.rights else "",
        f"<lastBuildDate>{built}</lastBuildDate><generator>indlet</generator>",
        f'<atom:link rel="self" type="application/rss+xml" href="{attribute(feed.address)}"/>',
        f"<image><url>{text(feed.root)}/static/mark.png</url><title>{text(feed.title)}</title>"
        f"<link>{text(feed.page)}</link></image>",
        f"<os:totalResults>{feed.total}</os:totalResults>" if feed.total is not None else "",
    ]
    parts += [_rss_item(feed, entry) for entry in feed.entries if not entry.deleted]
    return ("".join(parts) + "</channel></rss>\n").encode()


def _rss_item(feed: Feed, entry: FeedEntry) -> str:
    cited = entry.cited
    page = feed.root + cited.page
    parts = [
        f"<item><title>{text(cited.title or cited.identifier)}</title><link>{text(page)}</link>"
        # HTML by the rules of RSS, so text is escaped for HTML and then for XML.
        f"<description>{text(escape(cited.description[:_SUMMARY], quote=False))}</description>"
        f'<guid isPermaLink="true">{text(page)}</guid>'
        f"<pubDate>{rfc822(entry.datestamp)}</pubDate>"
    ]
    parts += [f"<category>{text(subject)}</category>" for subject in cited.subjects]
    # RSS allows one enclosure an item, and asks for its length and type.
    parts += [
        f'<enclosure url="{attribute(copy.url)}" length="{copy.size}" '
        f'type="{attribute(copy.media_type or "application/octet-stream")}"/>'
        for copy in _enclosures(cited)[:1]
    ]
    parts.append(_dublin(entry))
    return "".join(parts) + "</item>\n"


# Not dc:date: readers would take a document's date for the entry's. PRISM has a word for it that they do not.
_SHOWN: Final = ("creator", "subject", "publisher", "type", "format", "language", "coverage", "rights")


def _dublin(entry: FeedEntry) -> str:
    parts = [
        f"<dc:{element}>{text(value)}</dc:{element}>"
        for element in _SHOWN
        for value in entry.metadata.get(element, ())
    ]
    parts.append(f"<dc:identifier>{text(entry.cited.identifier)}</dc:identifier>")
    if entry.cited.date:
        parts.append(f"<prism:publicationDate>{text(entry.cited.date)}</prism:publicationDate>")
    if entry.source:
        parts.append(f"<dc:source>{text(entry.source)}</dc:source>")
    return "".join(parts)


def _enclosures(cited: Citation) -> list[Copy]:
    return [] if cited.restricted else [copy for copy in cited.copies[:20] if copy.url]


def _is_media_type(value: str) -> bool:
    kind, slash, rest = value.partition("/")
    return bool(kind and slash and rest)


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc822(seconds: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC), usegmt=True)
