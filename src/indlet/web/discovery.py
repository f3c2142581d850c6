"""What a record's page says to machines: Highwire tags, schema.org JSON-LD, Signposting, COinS, unAPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, urlencode

import orjson

from indlet.formats import people
from indlet.formats.identifiers import address
from indlet.model import JsonObject
from indlet.oai.xml import attribute, text
from indlet.web.citation import Citation
from indlet.web.export import EXPORTS
from indlet.web.reference import person

_SCHEMA_TYPES: Final = {
    "article": "ScholarlyArticle", "report": "Report", "thesis": "Thesis", "book": "Book",
    "chapter": "Chapter", "conference": "ScholarlyArticle", "dataset": "Dataset",
    "software": "SoftwareSourceCode",
    "image": "ImageObject", "sound": "AudioObject", "video": "VideoObject",
}  # fmt: skip


def highwire(cited: Citation, page: str) -> list[tuple[str, str]]:
    """The `citation_…` tags that scholarly search engines and reference managers read."""
    tags = [("citation_title", cited.title)]
    tags += [("citation_author", name) for name in cited.creators]
    tags += [
        ("citation_publication_date", cited.date.replace("-", "/") or str(cited.year or "")),
        ("citation_publisher", cited.publisher),
        ("citation_language", cited.language),
        ("citation_doi", cited.doi),
        ("citation_isbn", cited.isbn),
        ("citation_issn", cited.issn),
        ("citation_abstract_html_url", page),
    ]
    tags += [("citation_keywords", subject) for subject in cited.subjects]
    if cited.kind == "report":
        tags.append(("citation_technical_report_institution", cited.publisher))
    if cited.kind == "thesis":
        tags.append(("citation_dissertation_institution", cited.publisher))
    if not cited.restricted:
        tags.append(("citation_pdf_url", cited.pdf))
    return [(name, value) for name, value in tags if value]


def json_ld(cited: Citation, page: str) -> str:
    """schema.org, safe inside a script element: no `<`, `>` or `&` is left in it."""
    value: JsonObject = {
        "@context": "https://schema.org",
        "@type": _SCHEMA_TYPES.get(cited.kind, "CreativeWork"),
        "@id": page,
        "name": cited.title or cited.identifier,
        "identifier": cited.identifier,
        "author": _agents(cited.creators),
        "contributor": _agents(cited.contributors),
        "publisher": {"@type": "Organization", "name": cited.publisher} if cited.publisher else None,
        "datePublished": cited.date or None,
        "inLanguage": cited.language or None,
        "about": list(cited.subjects),
        "description": cited.description or None,
        "isAccessibleForFree": not cited.restricted,
        "url": cited.url or None,
        "sameAs": f"https://doi.org/{quote(cited.doi, safe='/:;()._-')}" if cited.doi else None,
        "encoding": [
            {
                "@type": "MediaObject",
                "contentUrl": c.url,
                "encodingFormat": c.media_type or None,
                "contentSize": f"{c.size} B" if c.size else None,
            }
            for c in cited.copies
            if c.url
        ],
    }
    text = orjson.dumps({k: v for k, v in value.items() if v not in (None, [], "")}).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _agents(values: Sequence[str]) -> list[JsonObject]:
    """Each name with its type; a single word (Plato, UNESCO) does not tell which it is."""
    found: list[JsonObject] = []
    for name in (name for value in values for name in people.names(value)):
        kind = "Organization" if people.is_body(name) else "Person" if "given" in person(name) else ""
        found.append({"@type": kind, "name": name} if kind else {"name": name})
    return found


def website_json_ld(name: str, root: str) -> str:
    value = {
        "@context": "https://schema.org",
        "@type": "WebSite",
        "name": name,
        "url": f"{root}/",
        "potentialAction": {
            "@type": "SearchAction",
            "target": {"@type": "EntryPoint", "urlTemplate": f"{root}/?q={{search_term_string}}"},
            "query-input": "required name=search_term_string",
        },
    }
    text = orjson.dumps(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def export_path(cited: Citation, name: str) -> str:
    of = f"&source={quote(cited.source, safe='')}" if cited.source else ""
    return f"/export/{name}?id={quote(cited.identifier, safe='')}{of}"


def signposting(cited: Citation, root: str) -> str:
    """The Link header of a record's page (FAIR Signposting, level 1)."""
    schema = _SCHEMA_TYPES.get(cited.kind, "CreativeWork")
    links = [
        ("https://schema.org/AboutPage", "type", ""),
        (f"https://schema.org/{schema}", "type", ""),
        (address(f"doi:{cited.doi}") if cited.doi else root + cited.page, "cite-as", ""),
    ]
    for name, export in EXPORTS.items():
        kind = export.media_type.partition(";")[0]
        links.append((root + export_path(cited, name), "describedby", kind))
    links += [(c.url, "item", c.media_type) for c in cited.copies[:20] if c.url]
    parts = []
    for target, relation, kind in links:
        # A header is one line of ASCII; whatever the metadata brought must not end it.
        safe = quote(target, safe="%/:=&?~#+!$,;'@()*[]")
        plain = "".join(c for c in kind if c.isascii() and (c.isalnum() or c in "/.+-"))
        parts.append(f'<{safe}>; rel="{relation}"' + (f'; type="{plain}"' if plain else ""))
    return ", ".join(parts)


def coins(cited: Citation) -> str:
    """An OpenURL context object for the title of a span of class Z3988."""
    formats = {"book": "book", "chapter": "book", "report": "book", "thesis": "dissertation"}
    form = formats.get(cited.kind, "journal" if cited.kind in ("article", "conference") else "dc")
    pairs = [("ctx_ver", "Z39.88-2004"), ("rft_val_fmt", f"info:ofi/fmt:kev:mtx:{form}")]
    title = {"journal": "rft.atitle", "book": "rft.btitle"}.get(form, "rft.title")
    pairs.append((title, cited.title))
    if form in ("journal", "book"):
        genre = {"conference": "proceeding", "chapter": "bookitem"}.get(cited.kind, cited.kind)
        pairs.append(("rft.genre", genre))
    pairs += [("rft.creator" if form == "dc" else "rft.au", name) for name in cited.creators]
    pairs += [
        ("rft.date", cited.date),
        ("rft.publisher" if form == "dc" else "rft.pub", cited.publisher),
        ("rft.isbn", cited.isbn),
        ("rft.issn", cited.issn),
        ("rft_id", cited.url),
        ("rft_id", f"info:doi/{cited.doi}" if cited.doi else ""),
    ]
    if form == "dc":
        pairs += [("rft.subject", subject) for subject in cited.subjects]
    return urlencode([(name, value) for name, value in pairs if value])


def unapi_formats(identifier: str | None) -> str:
    """The unAPI answer that lists the formats, for one record or in general."""
    about = f' id="{attribute(identifier)}"' if identifier is not None else ""
    body = "".join(
        f'<format name="{e.name}" type="{e.media_type.partition(";")[0]}"/>' for e in EXPORTS.values()
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><formats{about}>{body}</formats>'


def opensearch(name: str, description: str, root: str, language: str) -> str:
    """The description by which a browser adds the portal to its search engines."""
    urls = (
        ("text/html", "results", "/?q={searchTerms}&page={startPage?}"),
        ("application/atom+xml", "results", "/feed.atom?q={searchTerms}"),
        ("application/rss+xml", "results", "/feed.rss?q={searchTerms}"),
        ("application/x-suggestions+json", "suggestions", "/suggest?q={searchTerms}"),
        ("application/opensearchdescription+xml", "self", "/opensearch.xml"),
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
        # The specification allows 16, 48 and 1024 characters.
        f"<ShortName>{text(name[:16])}</ShortName><LongName>{text(name[:48])}</LongName>"
        f"<Description>{text(description[:1024])}</Description>"
        + "".join(
            f'<Url type="{kind}" rel="{relation}" template="{attribute(root + template)}"/>'
            for kind, relation, template in urls
        )
        + f'<Image height="64" width="64" type="image/svg+xml">{text(root)}/static/mark.svg</Image>'
        f"<Language>{text(language)}</Language><InputEncoding>UTF-8</InputEncoding>"
        "<OutputEncoding>UTF-8</OutputEncoding></OpenSearchDescription>"
    )
