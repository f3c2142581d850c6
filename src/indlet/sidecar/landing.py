"""A landing page: the documents that it links to, or what bars the way to them.

Links are taken from Signposting (RFC 8288 `Link` fields, https://signposting.org/FAIR/), Highwire tags,
`<link rel="alternate">`, schema.org and the marks of platforms. Any other link of a page may lead to its
menu or to a deposit guide, and is never taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree

from indlet.sidecar.formats import access_of
from indlet.sidecar.links import (
    HTML,
    PDF,
    AccessRight,
    FileLink,
    Reason,
    guess_type,
    is_document_type,
    is_web_address,
)
from indlet.sidecar.locate import document_link

PAGE_BYTES: Final = 4 << 20  # of a page, that are read
TEXT_CHARACTERS: Final = 200_000
SHORT_PAGE: Final = 3000  # characters of text: a page that only bars the way is short
ARTICLE_CHARACTERS: Final = 2000  # of text in paragraphs: less is no full text
LINKSET: Final = "application/linkset+json"
_LINKS: Final = 200  # that are taken of one page
_JSON_BYTES: Final = 1 << 20
_JSON_DEPTH: Final = 12

_LINK_VALUE = re.compile(
    r"<([^>]{1,2000})>((?:\s*;\s*[\w*!-]{1,30}\s*=\s*(?:\"[^\"]{0,500}\"|[^\s;,]{0,200}))*)"
)
_LINK_PARAMETER = re.compile(r";\s*([\w*!-]{1,30})\s*=\s*(?:\"([^\"]{0,500})\"|([^\s;,]{0,200}))")
# Highwire tags and their relatives, best first, with the type that they imply.
_TAGS: Final = {
    "citation_pdf_url": PDF,
    "bepress_citation_pdf_url": PDF,
    "eprints.document_url": "",
    "wkhealth_pdf_url": PDF,
    "citation_xml_url": "application/xml",
    "citation_fulltext_html_url": "text/html",
}
# Links that platforms mark: XPath of the anchors.
_MARKED: Final = (
    ("OJS galley", "//a[contains(concat(' ', @class, ' '), ' obj_galley_link ')]"),
    ("EPrints document", "//a[contains(concat(' ', @class, ' '), ' ep_document_link ')]"),
    ("DSpace bitstream", "//a[contains(@href, '/bitstream/') or contains(@href, '/bitstreams/')]"),
    ("Digital Commons download", "//a[@id='pdf' or @id='alpha-pdf'][contains(@href, 'viewcontent.cgi')]"),
)
_LOGIN_ADDRESS = re.compile(
    r"/(?:log-?in|sign-?in|password-login|shibboleth[\w.-]*|Shibboleth\.sso|saml\d?|idp|cas|oauth\d?|wayf|auth)(?:[/?.]|$)|"
    r"openathens|ezproxy",
    re.IGNORECASE,
)
_CAPTCHA = re.compile(
    r"g-recaptcha|h-captcha|hcaptcha|cf-challenge|cf-turnstile|challenge-platform|captcha-container|"
    r"are you a (?:human|robot)|verify (?:that )?you are (?:a )?human|unusual traffic|"
    r"checking your browser|making sure you(?:&#39;|'|’)re not a bot",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"request[- ]?a[- ]?copy|request_doc|request (?:a )?(?:copy|document|this item)|requestcopy|"
    r"kopie anfordern|solicitar (?:una )?c[oó]pia|demander une copie|richiedi una copia",
    re.IGNORECASE,
)
_EMBARGO = re.compile(
    r"(?:under|until|during|an) (?:an? )?embargo|embargo(?:ed)? (?:until|ends?|expires?|period|date|lift)|"
    r"embargoed (?:access|file|item|document)|gesperrt bis|"
    r"available (?:from|after|on):?\s*\d{4}-\d\d-\d\d",
    re.IGNORECASE,
)
_RESTRICTED = re.compile(
    r"restricted (?:to|access)|access (?:is )?restricted|closed access|full text (?:is )?not available|"
    r"no full text|not available (?:from|in) this repository|campus[- ]only|on[- ]campus|"
    r"subscription required|subscribers only|purchase (?:this )?(?:article|access|pdf)|"
    r"you do not have (?:permission|access)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)")


class PageLink(NamedTuple):
    """A link to a document, and by what on the page it was found."""

    way: str
    link: FileLink


@dataclass(frozen=True)
class LandingPage:
    """A page as it came: its address after redirects, its bytes, its `Link` field."""

    url: str
    body: bytes
    link_field: str = ""
    charset: str = ""

    @cached_property
    def tree(self) -> etree._Element | None:
        parser = etree.HTMLParser(
            recover=True, no_network=True, huge_tree=False, encoding=_known(self.charset)
        )
        try:
            return etree.fromstring(self.body[:PAGE_BYTES] or b"<html/>", parser)
        except (etree.XMLSyntaxError, ValueError):
            return None

    @cached_property
    def text(self) -> str:
        """What a reader sees of the page, in one line."""
        if self.tree is None:
            return ""
        pieces = self.tree.xpath("//body//text()[not(parent::script or parent::style or parent::noscript)]")
        assert isinstance(pieces, list)
        return " ".join(" ".join(map(str, pieces))[:TEXT_CHARACTERS].split())

    def links(self) -> list[PageLink]:
        """The documents that the page names, best first. Each address comes once."""
        found: dict[str, PageLink] = {}
        for link in self._every_link():
            address = urljoin(self.url, link.link.url.strip())
            if is_web_address(address) and address != self.url and len(found) < _LINKS:
                found.setdefault(address, PageLink(link.way, link.link._replace(url=address)))
        return list(found.values())

    def linksets(self) -> list[str]:
        """Addresses of documents that hold the page's links (RFC 9264)."""
        fields = [(url, kind) for url, rel, kind in _link_values(self.link_field) if "linkset" in rel]
        fields += [(n.get("href", ""), n.get("type", "")) for n in self._nodes("//link[@rel='linkset']")]
        return [urljoin(self.url, url) for url, kind in fields if kind in ("", LINKSET)][:2]

    def barrier(self) -> tuple[Reason, str]:
        """Why the page gives no document, and the end of an embargo if it names one."""
        source = self.body[:PAGE_BYTES].decode("utf-8", "replace")
        if _CAPTCHA.search(source) and len(self.text) < SHORT_PAGE:
            return Reason.CAPTCHA, ""
        if self.is_login:
            return Reason.LOGIN, ""
        if embargo := _EMBARGO.search(self.text):
            date = _DATE.search(self.text, embargo.start(), embargo.end() + 100)
            return Reason.EMBARGO, date[1] if date else ""
        if _REQUEST.search(self.text) or self._nodes("//a[contains(@href, 'request-a-copy')]"):
            return Reason.REQUEST, ""
        if _RESTRICTED.search(self.text):
            return Reason.RESTRICTED, ""
        return Reason.LANDING_PAGE, ""

    @property
    def is_login(self) -> bool:
        """Whether the page asks who one is: by its address, or as a short page with a password field."""
        if is_login_address(self.url):
            return True
        return len(self.text) < SHORT_PAGE and bool(self._nodes("//input[@type='password']"))

    @property
    def is_article(self) -> bool:
        """Whether the page may be a full text: enough running text, and no marks of a landing page."""
        if self.is_login or any(one.way != "alternate" for one in self._every_link()):
            return False
        paragraphs = self._nodes("//p | //section | //article")
        return sum(len("".join(map(str, node.itertext()))) for node in paragraphs) >= ARTICLE_CHARACTERS

    def _every_link(self) -> Iterator[PageLink]:
        yield from self._signposts()
        yield from self._tags()
        yield from self._alternates()
        yield from self._structured()
        yield from self._marked()

    def _signposts(self) -> Iterator[PageLink]:
        for url, rel, kind in _link_values(self.link_field):
            if "item" in rel and _is_fit(FileLink(url, kind)):
                yield PageLink("signposting", FileLink(url, kind))
        for node in self._nodes("//link[@rel='item']"):
            link = FileLink(node.get("href", ""), (node.get("type") or "").lower())
            if _is_fit(link):
                yield PageLink("signposting", link)

    def _tags(self) -> Iterator[PageLink]:
        tags = [
            (n.get("name", "").lower(), n.get("content", "")) for n in self._nodes("//meta[@name][@content]")
        ]
        for name, media_type in _TAGS.items():
            for found, url in tags:
                if found == name and url:
                    yield PageLink("highwire", FileLink(_download(urljoin(self.url, url)), media_type))

    def _alternates(self) -> Iterator[PageLink]:
        for node in self._nodes("//link[@rel='alternate'][@href][@type]"):
            link = FileLink(node.get("href", ""), (node.get("type") or "").lower())
            if (
                is_document_type(link.media_type)
                and link.media_type not in HTML
                and "xml" not in link.media_type
            ):
                yield PageLink("alternate", link)

    def _structured(self) -> Iterator[PageLink]:
        """schema.org in JSON-LD: `encoding`, `associatedMedia` and `distribution` with `contentUrl`."""
        for node in self._nodes("//script[@type='application/ld+json']"):
            content = "".join(map(str, node.itertext()))
            if len(content) > _JSON_BYTES:
                continue
            try:
                data = json.loads(content)
            except (ValueError, RecursionError):
                continue
            for link in _media_objects(data):
                if _is_fit(link):
                    yield PageLink("schema.org", link)

    def _marked(self) -> Iterator[PageLink]:
        for name, path in _MARKED:
            for node in self._nodes(path):
                classes = (node.get("class") or "").split()
                if "restricted" in classes:
                    continue
                url = urljoin(self.url, node.get("href", ""))
                kind = PDF if "pdf" in classes else ""
                label = " ".join("".join(map(str, node.itertext())).split())
                link = document_link(url) or FileLink(url)
                link = link._replace(media_type=link.media_type or kind, name=label if "." in label else "")
                if document_link(url) and _is_fit(link):
                    yield PageLink(name, link)

    def _nodes(self, path: str) -> list[etree._Element]:
        if self.tree is None:
            return []
        found = self.tree.xpath(path)
        return [node for node in found if isinstance(node, etree._Element)] if isinstance(found, list) else []


def is_login_address(url: str) -> bool:
    return _LOGIN_ADDRESS.search(urlsplit(url).path) is not None or "openathens" in url


def read_linkset(body: bytes) -> list[FileLink]:
    """The items of a linkset in JSON."""
    try:
        data = json.loads(body)
        sets = data["linkset"] if isinstance(data, dict) else []
        items = [item for one in sets if isinstance(one, dict) for item in one.get("item", ())]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    found = [
        FileLink(str(item.get("href", "")), str(item.get("type", "")).lower())
        for item in items[:_LINKS]
        if isinstance(item, dict)
    ]
    return [link for link in found if is_web_address(link.url) and _is_fit(link)]


def _link_values(field: str) -> Iterator[tuple[str, list[str], str]]:
    """(address, relations, media type) of each link in a `Link` field."""
    for number, found in enumerate(_LINK_VALUE.finditer(field)):
        if number >= _LINKS:
            return
        pairs = {name.lower(): quoted or bare for name, quoted, bare in _LINK_PARAMETER.findall(found[2])}
        yield found[1], pairs.get("rel", "").lower().split(), pairs.get("type", "").lower()


def _media_objects(data: object, depth: int = 0) -> Iterator[FileLink]:
    if depth > _JSON_DEPTH:
        return
    if isinstance(data, list):
        for one in data[:_LINKS]:
            yield from _media_objects(one, depth + 1)
    elif isinstance(data, dict):
        url = data.get("contentUrl")
        if isinstance(url, str):
            kind, name = data.get("encodingFormat") or data.get("fileFormat"), data.get("name")
            closed = access_of(str(data.get("conditionsOfAccess", "")))
            yield FileLink(
                url,
                str(kind).lower() if isinstance(kind, str) else "",
                name if isinstance(name, str) else "",
                access=closed if closed is not AccessRight.OPEN else AccessRight.UNKNOWN,
            )
        for key in ("encoding", "associatedMedia", "distribution", "@graph", "mainEntity", "hasPart"):
            if key in data:
                yield from _media_objects(data[key], depth + 1)


def _is_fit(link: FileLink) -> bool:
    """Whether a link that a page marks as a file may be a document."""
    media_type = guess_type(link)
    return is_document_type(media_type) if media_type else document_link(link.url) is not None


def _download(url: str) -> str:
    """The address of the file itself, where a platform has a page around it (OJS: view, download)."""
    found = document_link(url)
    return found.url if found else url


def _known(charset: str) -> str | None:
    try:
        return charset if charset and "".encode(charset) == b"" else None
    except (LookupError, UnicodeError):
        return None
