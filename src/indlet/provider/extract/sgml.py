"""SGML collections: a document for each TREC <DOC> and for each story of Reuters-21578."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

from indlet.formats.dublin import build_metadata
from indlet.model import Document, Failure
from indlet.provider.extract.decode import decode
from indlet.provider.extract.file import File, Part
from indlet.text.markup import html_text

_OPEN = re.compile(r"<(DOC|REUTERS)(?:\s([^>]{0,1000}))?>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w-]{1,40})\s*=\s*(?:"([^"]{0,300})"|'([^']{0,300})'|([^\s"'>]{1,300}))""")
_TAG = re.compile(r"<[/!?A-Za-z][^<>]{0,1000}>")

# Tag names of the TREC disks, AQUAINT, CLEF and the like.
_TREC: Final = {
    "title": "title", "headline": "title", "hl": "title", "ttl": "title", "head": "title", "h3": "title",
    "date": "date", "date1": "date", "date_time": "date", "pubdate": "date", "dd": "date", "datetime": "date",
    "author": "creator", "byline": "creator", "by": "creator", "au": "creator",
    "subject": "subject", "keyword": "subject", "keywords": "subject", "in": "subject", "descript": "subject",
    "pub": "publisher", "publisher": "publisher", "so": "source", "source": "source",
    "language": "language", "abstract": "description", "country": "coverage",
}  # fmt: skip
_REUTERS_LISTS: Final = {
    "topics": "subject", "people": "subject", "orgs": "subject", "companies": "subject",
    "exchanges": "subject", "places": "coverage",
}  # fmt: skip
_NOT_TEXT: Final = ("docno", "docid", "dochdr", "doctype", "fileid", "dateline1")


def extract(file: File) -> Iterator[Part]:
    text = decode(file.data)
    matches = _OPEN.finditer(text)
    match = next(matches, None)
    number = 0
    while match:
        name = match[1]
        following = next(matches, None)
        limit = following.start() if following else len(text)
        end = _close(text, name, match.end(), limit)
        number += 1
        if number > 1 and not following and end is None:
            yield Failure(f"{file.name}#{number}", "extract", "the file ends within this document")
            return
        inner = text[match.end() : limit if end is None else end]
        story = _reuters if name.lower() == "reuters" else _trec
        document = story(inner, match[2] or "", file.media_type, number)
        if document.text.strip() or document.metadata:
            yield document
        else:
            yield Failure(f"{file.name}#{document.key}", "extract", "empty SGML document")
        match = following


def _close(text: str, name: str, start: int, limit: int) -> int | None:
    for form in (f"</{name}>", f"</{name.upper()}>", f"</{name.lower()}>"):
        end = text.find(form, start, limit)
        if end >= 0:
            return end
    return None


def _inner(text: str, tag: str) -> str | None:
    """What stands between the first <TAG …> and its end, or the next tag where the end was left out."""
    match = re.search(rf"<{tag}(?:\s[^>]{{0,300}})?>", text, re.IGNORECASE)
    if not match:
        return None
    end = re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(text, match.end())
    return text[match.end() : end.start()] if end else text[match.end() :].partition("<")[0]


def _plain(markup: str) -> str:
    return unescape(_TAG.sub(" ", markup))


def _reuters(inner: str, attributes: str, media_type: str, number: int) -> Document:
    said = {m[1].lower(): m[2] or m[3] or m[4] or "" for m in _ATTRIBUTE.finditer(attributes)}
    head, _, rest = inner.partition("<TEXT")
    if not rest:
        head, rest = inner, inner
    story = rest.partition(">")[2].rpartition("</TEXT>")[0] or rest.partition(">")[2]
    pairs = [(element, _plain(value)) for element, value in (
        ("title", _inner(story, "title") or ""),
        ("creator", _author(_inner(story, "author") or "")),
        ("date", _inner(head, "date") or ""),
        ("coverage", (_inner(story, "dateline") or "").partition(",")[0].strip(" -")),
    )]  # fmt: skip
    for tag, element in _REUTERS_LISTS.items():
        listed = _inner(head, tag)
        if listed:
            pairs.extend((element, _plain(value)) for value in re.findall(r"<D>([^<]{0,200})</D>", listed))
    key = said.get("newid") or str(number)
    pairs += [("identifier", key), ("publisher", "Reuters"), ("language", "en")]
    # The story's own words; an author's line and the dateline are part of what was printed.
    return Document(_plain(story), build_metadata(pairs), media_type, key, "en")


def _author(value: str) -> str:
    value = re.sub(r"^\s*by\s+", "", value.strip(), flags=re.IGNORECASE)
    return value.partition(", Reuters")[0].strip(" ,")


def _trec(inner: str, attributes: str, media_type: str, number: int) -> Document:
    said = {m[1].lower(): m[2] or m[3] or m[4] or "" for m in _ATTRIBUTE.finditer(attributes)}
    key = _plain(_inner(inner, "docno") or _inner(inner, "docid") or said.get("id", "")).strip() or str(
        number
    )
    pairs = [("identifier", key)]
    seen = set()
    for tag in dict.fromkeys(
        name.lower() for name in re.findall(r"<([A-Za-z][\w-]{0,20})[\s>]", inner[:20_000])
    ):
        element = _TREC.get(tag)
        if element and not (element in ("title", "date") and element in seen):
            value = _plain(_inner(inner, tag) or "")
            if value.strip():
                pairs.append((element, value))
                seen.add(element)
    body = inner
    for tag in _NOT_TEXT:
        body = re.sub(rf"<{tag}>[^<]{{0,20000}}</{tag}\s*>", " ", body, flags=re.IGNORECASE)
    is_page = re.search(r"<(?:html|body|table|script)\b", body[:5000], re.IGNORECASE)
    text = html_text(body) if is_page else _plain(body)
    return Document(text, build_metadata(pairs), media_type, key)
