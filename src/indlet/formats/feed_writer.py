"""New and changed records as feeds: Atom 1.0, RSS 2.0, RSS 1.0 (RDF) and JSON Feed 1.1.

Pure functions from a `Feed` to bytes. Atom is RFC 4287 with tombstones (RFC 6721) and threading of pages and
archives (RFC 5005); images, sound and video are also told by Media RSS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import Final, NamedTuple

import orjson

from indlet.model import JsonObject, Metadata
from indlet.oai.xml import attribute, text

_SUMMARY: Final = 2000  # characters of a description
_CONTENT: Final = 20_000
_NAMESPACES: Final = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "prism": "http://prismstandard.org/namespaces/basic/2.0/",
    "media": "http://search.yahoo.com/mrss/",
    "fh": "http://purl.org/syndication/history/1.0",
    "os": "http://a9.com/-/spec/opensearch/1.1/",
}
_ATOM: Final = "http://www.w3.org/2005/Atom"
_XHTML: Final = "http://www.w3.org/1999/xhtml"
_EMAIL = re.compile(r"[^\s<>()\"',;:@]{1,64}@[A-Za-z0-9.-]{1,200}\.[A-Za-z]{2,24}")
# Not dc:date: readers would take a document's date for the entry's. PRISM has a word for it that they do not.
_SHOWN: Final = ("creator", "subject", "publisher", "type", "format", "language", "coverage", "rights")


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file that an entry brings."""

    url: str
    media_type: str
    size: int  # bytes; 0 if unknown
    title: str = ""

    @property
    def medium(self) -> str:
        """As Media RSS calls it; empty for what is no picture, sound or film."""
        kind = self.media_type.partition("/")[0].lower()
        return kind if kind in ("image", "audio", "video") else ""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    identifier: str
    page: str  # the address of the page that shows the record: an IRI by construction, so the entry's id too
    title: str
    updated: int
    deleted: bool = False
    metadata: Metadata = field(default_factory=dict)
    url: str = ""  # where the owner's copy is
    date: str = ""
    source: str = ""
    enclosures: Sequence[Enclosure] = ()
    restricted: bool = False

    def first(self, element: str) -> str:
        return next(iter(self.metadata.get(element, ())), "")


@dataclass(frozen=True, slots=True)
class Feed:
    title: str
    description: str
    address: str  # of the feed itself
    page: str  # of the page that shows the same
    author: str
    email: str
    rights: str
    language: str
    updated: int
    entries: Sequence[FeedEntry]
    icon: str = ""  # the address of a square picture without its ending: there is a .svg and a .png
    total: int | None = None  # matches of a query's feed
    links: Mapping[str, str] = field(default_factory=dict)  # relations of RFC 5005 and their addresses
    archive: bool = False  # will not change, but for entries that move to newer documents
    content: str = ""  # how Atom carries descriptions in full: "text", "html" or "xhtml"; empty: not at all


class FeedFormat(NamedTuple):
    label: str
    media_type: str
    write: Callable[[Feed], bytes]


# Atom


def atom(feed: Feed) -> bytes:
    parts = [
        f'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="{_ATOM}" {_namespaces()} '
        'xmlns:at="http://purl.org/atompub/tombstones/1.0" '
        f'xml:lang="{attribute(feed.language)}" xml:base="{attribute(feed.page)}">\n',
        f"<id>{text(feed.address)}</id><title>{text(feed.title)}</title>"
        f"<subtitle>{text(feed.description)}</subtitle><updated>{rfc3339(feed.updated)}</updated>",
        f'<link rel="self" type="application/atom+xml" href="{attribute(feed.address)}"/>'
        f'<link rel="alternate" type="text/html" href="{attribute(feed.page)}"/>',
        _related_links(feed, "link"),
        f"<author><name>{text(feed.author)}</name>"
        + (f"<email>{text(feed.email)}</email>" if feed.email else "")
        + "</author>",
        f"<logo>{text(feed.icon)}.svg</logo>" if feed.icon else "",
        f"<rights>{text(feed.rights)}</rights>" if feed.rights else "",
        _total_results(feed),
    ]
    parts += [_atom_entry(feed, entry) for entry in feed.entries]
    return ("".join(parts) + "</feed>\n").encode()


def _atom_entry(feed: Feed, entry: FeedEntry) -> str:
    when = rfc3339(entry.updated)
    if entry.deleted:
        return f'<at:deleted-entry ref="{attribute(entry.page)}" when="{when}"/>\n'
    parts = [
        f"<entry><id>{text(entry.page)}</id><title>{text(entry.title)}</title><updated>{when}</updated>"
        f'<link rel="alternate" type="text/html" href="{attribute(entry.page)}"/>'
    ]
    for element, role in (("creator", "author"), ("contributor", "contributor")):
        parts += [
            f"<{role}>{_person(name)}</{role}>" for name in entry.metadata.get(element, ()) if name.strip()
        ]
    parts += [f'<category term="{attribute(subject)}"/>' for subject in entry.metadata.get("subject", ())]
    if entry.url:
        parts.append(f'<link rel="related" href="{attribute(entry.url)}"/>')
    parts += [
        f'<link rel="enclosure" href="{attribute(one.url)}"'
        + (f' type="{attribute(one.media_type)}"' if _is_media_type(one.media_type) else "")
        + (f' length="{one.size}"' if one.size else "")
        + (f' title="{attribute(one.title)}"' if one.title else "")
        + "/>"
        for one in entry.enclosures
    ]
    parts.append(f'<summary type="text">{text(entry.first("description")[:_SUMMARY])}</summary>')
    if feed.content and not entry.restricted:
        parts.append(_content(entry, feed.content))
    if rights := entry.first("rights"):
        parts.append(f"<rights>{text(rights)}</rights>")
    parts += [_media(entry), _dublin(entry)]
    return "".join(parts) + "</entry>\n"


def _person(name: str) -> str:
    address, plain = _email(name)
    return f"<name>{text(plain or name)}</name>" + (f"<email>{text(address)}</email>" if address else "")


def _content(entry: FeedEntry, kind: str) -> str:
    """The descriptions in full, as far as Atom's three ways to write text allow."""
    paragraphs = [value[:_CONTENT] for value in entry.metadata.get("description", ())]
    if kind == "text":
        return f'<content type="text">{text(chr(10).join(paragraphs))}</content>'
    if kind == "html":
        body = "".join(f"<p>{escape(one, quote=False)}</p>" for one in paragraphs)
        return f'<content type="html">{text(body)}</content>'
    body = "".join(f"<p>{text(one)}</p>" for one in paragraphs)
    return f'<content type="xhtml"><div xmlns="{_XHTML}">{body}</div></content>'


# RSS


def rss(feed: Feed) -> bytes:
    """RSS 2.0."""
    editor = f"{feed.email} ({feed.author})" if feed.email else ""
    parts = [
        f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:atom="{_ATOM}" {_namespaces()}>'
        "<channel>\n",
        f"<title>{text(feed.title)}</title><link>{text(feed.page)}</link>"
        f"<description>{text(feed.description)}</description><language>{text(feed.language)}</language>",
        f"<copyright>{text(feed.rights)}</copyright>" if feed.rights else "",
        f"<managingEditor>{text(editor)}</managingEditor>" if editor else "",
        f"<lastBuildDate>{rfc822(feed.updated)}</lastBuildDate><generator>indlet</generator>",
        f'<atom:link rel="self" type="application/rss+xml" href="{attribute(feed.address)}"/>',
        _related_links(feed, "atom:link"),
        f"<image><url>{text(feed.icon)}.png</url><title>{text(feed.title)}</title>"
        f"<link>{text(feed.page)}</link></image>"
        if feed.icon
        else "",
        _total_results(feed),
    ]
    parts += [_rss_item(entry) for entry in feed.entries if not entry.deleted]
    return ("".join(parts) + "</channel></rss>\n").encode()


def _rss_item(entry: FeedEntry) -> str:
    parts = [
        f"<item><title>{text(entry.title or entry.identifier)}</title><link>{text(entry.page)}</link>"
        # HTML by the rules of RSS, so text is escaped for HTML and then for XML.
        f"<description>{text(escape(entry.first('description')[:_SUMMARY], quote=False))}</description>"
        f'<guid isPermaLink="true">{text(entry.page)}</guid>'
        f"<pubDate>{rfc822(entry.updated)}</pubDate>"
    ]
    # An author is an e-mail address, and there is one at most; names alone are creators of Dublin Core.
    known = [_email(name) for name in entry.metadata.get("creator", ())]
    if found := next(((address, name) for address, name in known if address), None):
        address, name = found
        parts.append(f"<author>{text(f'{address} ({name})' if name else address)}</author>")
    parts += [f"<category>{text(subject)}</category>" for subject in entry.metadata.get("subject", ())]
    # RSS allows one enclosure an item, and asks for its length and type.
    parts += [
        f'<enclosure url="{attribute(one.url)}" length="{one.size}" '
        f'type="{attribute(one.media_type or "application/octet-stream")}"/>'
        for one in entry.enclosures[:1]
    ]
    parts += [_media(entry), _dublin(entry)]
    return "".join(parts) + "</item>\n"


def rdf(feed: Feed) -> bytes:
    """RSS 1.0: RDF, with Dublin Core for what its core has no word for."""
    entries = [entry for entry in feed.entries if not entry.deleted]
    # Two records of one page would be one resource, and RDF would mix them up.
    unique = {entry.page: entry for entry in reversed(entries)}
    entries = [entry for entry in entries if unique[entry.page] is entry]
    listed = "".join(f'<rdf:li rdf:resource="{attribute(entry.page)}"/>' for entry in entries)
    picture = f"{feed.icon}.png" if feed.icon else ""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        f'xmlns:atom="{_ATOM}" {_namespaces()}>\n',
        f'<channel rdf:about="{attribute(feed.address)}"><title>{text(feed.title)}</title>'
        f"<link>{text(feed.page)}</link><description>{text(feed.description)}</description>"
        + (f'<image rdf:resource="{attribute(picture)}"/>' if picture else "")
        + f"<items><rdf:Seq>{listed}</rdf:Seq></items>"
        f"<dc:language>{text(feed.language)}</dc:language><dc:date>{rfc3339(feed.updated)}</dc:date>"
        + (f"<dc:rights>{text(feed.rights)}</dc:rights>" if feed.rights else "")
        + f'<atom:link rel="self" type="application/rdf+xml" href="{attribute(feed.address)}"/>'
        + f"{_related_links(feed, 'atom:link')}{_total_results(feed)}</channel>\n",
        f'<image rdf:about="{attribute(picture)}"><title>{text(feed.title)}</title>'
        f"<url>{text(picture)}</url><link>{text(feed.page)}</link></image>\n"
        if picture
        else "",
    ]
    parts += [
        f'<item rdf:about="{attribute(entry.page)}"><title>{text(entry.title or entry.identifier)}</title>'
        f"<link>{text(entry.page)}</link>"
        f"<description>{text(entry.first('description')[:_SUMMARY])}</description>"
        f"<dc:date>{rfc3339(entry.updated)}</dc:date>{_media(entry)}{_dublin(entry)}</item>\n"
        for entry in entries
    ]
    return ("".join(parts) + "</rdf:RDF>\n").encode()


def json_feed(feed: Feed) -> bytes:
    """JSON Feed 1.1."""
    found: JsonObject = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.page,
        "feed_url": feed.address,
        "description": feed.description,
        "language": feed.language,
        "authors": [{"name": feed.author}],
        "items": [_json_item(entry) for entry in feed.entries if not entry.deleted],
    }
    if feed.icon:
        found["icon"] = f"{feed.icon}.png"
    if following := feed.links.get("next", feed.links.get("prev-archive")):
        found["next_url"] = following
    return orjson.dumps(found, option=orjson.OPT_APPEND_NEWLINE)


def _json_item(entry: FeedEntry) -> JsonObject:
    found: JsonObject = {
        "id": entry.page,
        "url": entry.page,
        "title": entry.title,
        "content_text": entry.first("description")[:_SUMMARY],
        "date_modified": rfc3339(entry.updated),
        "authors": [{"name": name} for name in entry.metadata.get("creator", ())],
        "tags": list(entry.metadata.get("subject", ())),
        "attachments": [
            {"url": one.url, "mime_type": one.media_type or "application/octet-stream"}
            | ({"size_in_bytes": one.size} if one.size else {})
            for one in entry.enclosures
        ],
    }
    if entry.url:
        found["external_url"] = entry.url
    if language := entry.first("language"):
        found["language"] = language
    return found


# What several formats share


def _namespaces() -> str:
    return " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in _NAMESPACES.items())


def _related_links(feed: Feed, element: str) -> str:
    """The links of RFC 5005, and its mark of an archive."""
    links = "".join(
        f'<{element} rel="{attribute(relation)}" href="{attribute(address)}"/>'
        for relation, address in feed.links.items()
    )
    return links + ("<fh:archive/>" if feed.archive else "")


def _total_results(feed: Feed) -> str:
    return f"<os:totalResults>{feed.total}</os:totalResults>" if feed.total is not None else ""


def _media(entry: FeedEntry) -> str:
    """Pictures, sound and film, as Media RSS tells them."""
    return "".join(
        f'<media:content url="{attribute(one.url)}" type="{attribute(one.media_type)}" medium="{one.medium}"'
        + (f' fileSize="{one.size}"' if one.size else "")
        + f'><media:title type="plain">{text(one.title or entry.title)}</media:title></media:content>'
        for one in entry.enclosures
        if one.medium and _is_media_type(one.media_type)
    )


def _dublin(entry: FeedEntry) -> str:
    parts = [
        f"<dc:{element}>{text(value)}</dc:{element}>"
        for element in _SHOWN
        for value in entry.metadata.get(element, ())
    ]
    parts.append(f"<dc:identifier>{text(entry.identifier)}</dc:identifier>")
    if entry.date:
        parts.append(f"<prism:publicationDate>{text(entry.date)}</prism:publicationDate>")
    if entry.source:
        parts.append(f"<dc:source>{text(entry.source)}</dc:source>")
    return "".join(parts)


def _email(name: str) -> tuple[str, str]:
    """The e-mail address within a creator, and the name beside it; both empty where there is no address."""
    found = _EMAIL.search(name[:500])
    if found is None:
        return "", ""
    return found[0], " ".join((name[: found.start()] + name[found.end() :]).translate(_BRACKETS).split())


_BRACKETS: Final = str.maketrans(dict.fromkeys("<>()", " "))


def _is_media_type(value: str) -> bool:
    kind, slash, rest = value.partition("/")
    return bool(kind and slash and rest)


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc822(seconds: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC), usegmt=True)


# The ending of a feed's address -> its format. Pages announce all of them.
FEEDS: Final = {
    "atom": FeedFormat("Atom", "application/atom+xml", atom),
    "rss": FeedFormat("RSS", "application/rss+xml", rss),
    "rdf": FeedFormat("RSS 1.0", "application/rdf+xml", rdf),
    "json": FeedFormat("JSON Feed", "application/feed+json", json_feed),
}
# What `format=` may say instead of the ending.
SPELLINGS: Final = {"rss1": "rdf", "rss2": "rss", **{name: name for name in FEEDS}}
CONTENT: Final = ("text", "html", "xhtml")
