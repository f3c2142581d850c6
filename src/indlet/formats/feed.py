"""Feeds: RSS 0.9x to 2.0, RSS 1.0 (RDF), Atom and JSON Feed become entries, each a record in the making.

bytes of a feed -> Feed, or BadResponse that says why it is none

feedparser reads what is XML, also where it is broken. What it does not know is read here: JSON Feed, and the
tombstones of RFC 6721. A document type is removed first, so no entity is ever expanded.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, urljoin

import orjson

from indlet.errors import BadResponse
from indlet.formats.dublin import build_metadata
from indlet.model import JsonMapping
from indlet.oai.read_repair import without_doctype
from indlet.text.markup import html_text

# What feedparser spends on a page of markup grows with its size; no honest feed is larger.
MOST_BYTES: Final = 32 * 1024 * 1024
_VALUE: Final = 4000  # characters of a summary
_JSON_FEED = re.compile(rb'\s*\{.{0,2000}?"https?://jsonfeed\.org/version/', re.DOTALL)
_TOMBSTONE = re.compile(rb"<(?:[\w.-]{1,40}:)?deleted-entry\b([^>]{0,4000})>")
_ATTRIBUTE = re.compile(rb"""([\w:.-]{1,40})\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_URI = re.compile(r"(?:[a-z][a-z0-9+.-]*://|(?:urn|tag|oai|info|doi|hdl|ark|uuid):)\S", re.I)
_UNFIT = re.compile(r"""[\s<>"{}|\\^`\x00-\x1f\x7f]""")
_MARKUP = re.compile(r"<[a-zA-Z/!]|&[#\w]{2,10};")
_DC: Final = (
    ("dc_publisher", "publisher"), ("publisher", "publisher"), ("dc_contributor", "contributor"),
    ("dc_type", "type"), ("dc_format", "format"), ("dc_source", "source"), ("dc_relation", "relation"),
    ("dc_coverage", "coverage"), ("dc_rights", "rights"), ("rights", "rights"), ("license", "rights"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParsedEntry:
    """One entry. `identifier` is its id or guid, else its link, else made of what it says."""

    identifier: str
    metadata: Mapping[str, list[str]]
    text: str  # the words of its content or summary
    url: str
    updated: str  # ISO 8601 in UTC; empty if it tells no time


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """What a feed holds now. `gone` are the identifiers of entries that it says were deleted."""

    title: str
    language: str
    entries: tuple[ParsedEntry, ...]
    gone: tuple[str, ...] = ()


def uri_of(identifier: str, feed: str) -> str:
    """The URI of an entry: its identifier, if that is one, else one below the address of its feed.

    A guid may be any text, and that of one feed says nothing about the entries of another.
    """
    if _URI.match(identifier):
        return _UNFIT.sub(lambda found: quote(found[0], safe=""), identifier)
    return f"{feed.partition('#')[0]}#{quote(identifier, safe='')}"


def read_feed(body: bytes, url: str = "") -> ParsedFeed:
    """The feed in a body that came from `url`, against which its links are resolved."""
    if len(body) > MOST_BYTES:
        raise BadResponse(f"a feed of {len(body)} bytes, more than {MOST_BYTES}")
    if _JSON_FEED.match(body):
        return _json_feed(body)
    import feedparser

    body, _ = without_doctype(body)
    try:
        # Without the address: it would be put before ids that are no URIs, too.
        found = feedparser.parse(body, sanitize_html=False, resolve_relative_uris=False)
    except MemoryError:
        raise
    except Exception as e:  # feedparser meets some broken markup with exceptions of its own making
        raise BadResponse(f"a feed that cannot be read: {type(e).__name__}: {e}") from e
    if not found.get("version") and not found.entries:
        raise BadResponse("not a feed: neither RSS nor Atom nor JSON Feed")
    language = str(found.feed.get("language") or "")
    # RFC 4287, section 4.2.1: an entry without authors has those of its feed. RSS knows no such rule.
    authors = _authors(found.feed) if str(found.get("version", "")).startswith("atom") else []
    return ParsedFeed(
        _plain(found.feed.get("title", "")),
        language,
        tuple(_distinct(_entry(e, url, language, authors) for e in found.entries)),
        tuple(_tombstones(body)),
    )


def _entry(entry: JsonMapping, base: str, language: str, inherited: Sequence[str]) -> ParsedEntry:
    link = absolute_link(base, str(entry.get("link", "")))
    if entry.get("guidislink") and not entry.get("links") and not _URI.match(str(entry.get("id", ""))):
        link = ""  # feedparser takes the id for one
    texts = [c for c in entry.get("content", ()) if _is_text(str(c.get("type") or ""))]
    contents = [str(c.get("value", "")) for c in texts]
    # The language of a text is stated there, or inherited from the elements around it (xml:lang).
    details = (entry, *texts, *(entry.get(name) or {} for name in ("summary_detail", "title_detail")))
    language = next((str(d["language"]) for d in details if d.get("language")), language)
    summary = str(entry.get("summary", ""))
    title = _plain(entry.get("title", ""))
    text = "\n".join(filter(None, (title, *map(_plain, contents or [summary]))))
    source = entry.get("source")  # of an entry that was taken over from another feed
    authors = _authors(entry) or (_authors(source) if isinstance(source, Mapping) else []) or inherited
    pairs = [("title", title), *(("creator", author) for author in authors)]
    pairs += [("subject", str(tag.get("label") or tag.get("term") or "")) for tag in entry.get("tags", ())]
    pairs += [("description", _plain(summary or "".join(contents))[:_VALUE])]
    pairs += [("contributor", str(c.get("name", ""))) for c in entry.get("contributors", ())]
    pairs += [(element, str(entry.get(name, ""))) for name, element in _DC]
    published = _moment(entry.get("published_parsed") or entry.get("created_parsed"))
    # feedparser's own mapping warns where it gives one time for the other.
    updated = _moment(entry["updated_parsed"]) if "updated_parsed" in entry else ""
    updated = updated or published
    pairs += [("date", (published or updated)[:10]), ("identifier", link), ("language", language)]
    for enclosure in [*entry.get("enclosures", ()), *entry.get("media_content", ())]:
        pairs += [
            ("relation", absolute_link(base, str(enclosure.get("href") or enclosure.get("url") or ""))),
            ("format", str(enclosure.get("type", ""))),
        ]
    identifier = str(entry.get("id", "")).strip() or link.strip() or _made_of(title, text)
    return ParsedEntry(identifier, build_metadata(pairs), text, link, updated)


def absolute_link(base: str, link: str) -> str:
    """The link as an absolute URL, where there is a base."""
    try:
        return urljoin(base, link.strip()) if base and link else link
    except ValueError:
        return link


def _authors(said: JsonMapping) -> list[str]:
    names = (str(a.get("name") or a.get("email") or "") for a in said.get("authors", ()))
    return list(filter(None, names)) or list(filter(None, [str(said.get("author") or "")]))


def _is_text(media_type: str) -> bool:
    """Whether a content is one to be read: an image in base64 is none."""
    kind = media_type.lower().partition(";")[0].strip()
    if kind.startswith(("image/", "audio/", "video/", "font/")):
        return False
    return not kind or "/" not in kind or kind.startswith("text/") or kind.endswith(("/xml", "+xml"))


def _json_feed(body: bytes) -> ParsedFeed:
    """JSON Feed 1.0 and 1.1 (jsonfeed.org)."""
    try:
        found = orjson.loads(body)
        items, language = found["items"], str(found.get("language") or "")
        authors = found.get("authors") or [found.get("author") or {}]
        return ParsedFeed(
            str(found.get("title", "")),
            language,
            tuple(_distinct(_json_entry(item, language, authors) for item in items)),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as e:
        raise BadResponse(f"a broken JSON Feed: {e}") from e


def _json_entry(item: JsonMapping, language: str, inherited: Sequence[JsonMapping]) -> ParsedEntry:
    def text(name: str) -> str:
        return str(item.get(name) or "")

    words = text("content_text") or _plain(text("content_html")) or text("summary")
    link = text("url") or text("external_url")
    authors = item.get("authors") or ([item["author"]] if item.get("author") else inherited)
    pairs = [("title", text("title")), *(("creator", str(a.get("name") or "")) for a in authors)]
    pairs += [("subject", str(tag)) for tag in item.get("tags") or ()]
    pairs += [("description", (text("summary") or words)[:_VALUE])]
    updated = _iso(text("date_modified") or text("date_published"))
    pairs += [("date", (text("date_published") or updated)[:10]), ("identifier", link)]
    pairs += [("language", text("language") or language)]
    for attached in item.get("attachments") or ():
        pairs += [
            ("relation", str(attached.get("url") or "")),
            ("format", str(attached.get("mime_type") or "")),
        ]
    words = "\n".join(filter(None, (text("title"), words)))
    identifier = text("id") or link or _made_of(text("title"), words)
    return ParsedEntry(identifier, build_metadata(pairs), words, link, updated)


def _tombstones(body: bytes) -> Iterator[str]:
    """Deleted entries (RFC 6721), by their references."""
    for match in _TOMBSTONE.finditer(body):
        for name, double, single in _ATTRIBUTE.findall(match[1]):
            if name == b"ref":
                yield _plain((double or single).decode("utf-8", "replace"))


def _distinct(entries: Iterable[ParsedEntry]) -> Iterator[ParsedEntry]:
    """Entries that share an identifier: the newest, or the first of those that tell no time."""
    found: dict[str, ParsedEntry] = {}
    for entry in entries:
        known = found.get(entry.identifier)
        if known is None or entry.updated > known.updated:
            found[entry.identifier] = entry
    yield from found.values()


def _plain(value: object) -> str:
    """A text, or the words of the markup that stands where a text should."""
    text = str(value or "")
    return html_text(text).strip() if _MARKUP.search(text) else text.strip()


def _made_of(title: str, text: str) -> str:
    said = f"{title}\n{text}".encode("utf-8", "replace")
    return f"urn:x-entry:{blake2b(said, digest_size=16).hexdigest()}"


def _moment(parsed: time.struct_time | None) -> str:
    if parsed is None:
        return ""
    try:
        return datetime.fromtimestamp(calendar.timegm(parsed), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""


def _iso(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return ""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment.tzinfo else ""
