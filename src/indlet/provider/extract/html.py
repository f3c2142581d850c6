"""Web pages: their words as a reader sees them, and what their heads declare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from indlet.formats.dublin import build_metadata, clean, element_of
from indlet.model import Document
from indlet.provider.extract.decode import declared_encoding, decode
from indlet.provider.extract.file import File, Text
from indlet.text.language import language_code
from indlet.text.markup import page_text

# Highwire Press tags, as Google Scholar asks for them, and the plain names of old.
_NAMED: Final = {
    "citation_title": "title", "citation_author": "creator", "citation_authors": "creator",
    "citation_publication_date": "date", "citation_date": "date", "citation_online_date": "date",
    "citation_year": "date", "citation_publisher": "publisher", "citation_journal_title": "source",
    "citation_conference_title": "source", "citation_dissertation_institution": "publisher",
    "citation_technical_report_institution": "publisher", "citation_doi": "identifier",
    "citation_isbn": "identifier", "citation_issn": "source",
    "citation_technical_report_number": "identifier",
    "citation_language": "language", "citation_keywords": "subject", "citation_abstract": "description",
    "author": "creator", "description": "description", "keywords": "subject", "date": "date",
    "publisher": "publisher", "copyright": "rights", "language": "language", "content-language": "language",
    "og:title": "title", "og:description": "description", "article:published_time": "date",
    "article:author": "creator", "dc.submitted": "date", "dcterms.submitted": "date",
}  # fmt: skip


def extract(file: File) -> Iterator[Document]:
    page = LexborHTMLParser(decode(file.data, declared_encoding(file.data)))
    pairs, language = _head(page)
    text = Text(file.limits)
    title = page.css_first("head > title")
    if title is not None:  # its words stand above the page, and often nowhere else
        text.add(title.text() + "\n")
    text.add(page_text(page))
    yield Document(str(text), build_metadata(pairs), file.media_type, language=language)


def _head(page: LexborHTMLParser) -> tuple[list[tuple[str, str]], str]:
    pairs: list[tuple[str, str]] = []
    plain: list[tuple[str, str]] = []
    for node in page.css("meta"):
        attributes = node.attributes
        name = attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or ""
        content = clean(attributes.get("content") or "")
        if name and content:
            name = name.strip().lower()
            element = _element(name)
            target = pairs if name.startswith(("citation_", "dc.", "dcterms.", "dc:", "dcterms:")) else plain
            target.extend((element, value) for value in _split(name, element, content))
    language = ""
    root = page.css_first("html")
    if root is not None:
        declared = root.attributes.get("lang") or root.attributes.get("xml:lang") or ""
        language = language_code(declared)
    said = {element for element, _ in pairs}
    # What a page says in the richer vocabulary is not said again in the plainer one.
    pairs += [(element, value) for element, value in plain if element not in said]
    if not any(element == "title" for element, _ in pairs if element):
        for selector in ("title", "h1", "h2"):
            first = page.css_first(selector)
            if first is not None and (title := clean(first.text(separator=" "))):
                pairs.insert(0, ("title", title))
                break
    else:
        pairs = _one_title(pairs)
    if language and not any(element == "language" for element, _ in pairs):
        pairs.append(("language", language))
    return [(element, value) for element, value in pairs if element], language


def _one_title(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """og:title and the like repeat the title in other words; the first one stands."""
    out, seen = [], False
    for element, value in pairs:
        if element == "title":
            if seen:
                continue
            seen = True
        out.append((element, value))
    return out


def _element(name: str) -> str:
    if name in _NAMED:
        return _NAMED[name]
    match = re.fullmatch(r"(?:dc|dcterms)[.:]([a-z]{1,40})(?:[.:]([a-z]{1,40}).{0,40})?", name)
    return element_of(match[1]) if match else ""


def _split(name: str, element: str, content: str) -> list[str]:
    if name == "citation_authors" or (element == "subject" and ";" in content):
        return content.split(";")
    if name in ("keywords", "citation_keywords"):
        return content.split(",")
    if element == "identifier" and name == "citation_doi" and content.startswith("10."):
        return ["doi:" + content]
    return [content]
