"""Local servers that behave like eight repository platforms: OAI-PMH, landing pages, documents, robots.txt.

Shapes of oai_dc follow captured responses of 2014 to 2016 (MIT: DSpace, Caltech: EPrints, UNL and New Prairie
Press: Digital Commons, Zenodo, arXiv, Scholars Portal: Dataverse). The other formats, pages and addresses
follow what the platforms document: DSpace's crosswalks (xoai.xsl, ore.xsl), Angular pages and Signposting of
DSpace 7.6 and 8, OJS 3 templates (obj_galley_link) and its marcxml plugin, the OpenAIRE Guidelines for
Literature Repositories 4, DDI Codebook as exported by Dataverse, FAIR Signposting in InvenioRDM.

Every document has a word that is in no other; every page has the word `landingpageword`.
"""

from __future__ import annotations

import html
import io
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

from reportlab.pdfgen.canvas import Canvas

MENU = (
    "<nav>landingpageword <a href='/guide/deposit.pdf'>How to deposit</a> <a href='/login'>Login</a></nav>"
    "<form action='/login'><input name='user'><input type='password' name='p'></form>"
)
FOOTER = "<footer>landingpageword cookies privacy imprint" + " statement of the library" * 150 + "</footer>"


class Kind(Enum):
    OPEN = "open"
    TWO_FILES = "two files"
    LOGIN = "login"
    EMBARGO = "embargo"
    REQUEST = "request"
    NO_FILE = "no file"
    DISGUISED = "disguised"

    @property
    def has_document(self) -> bool:
        return self in (Kind.OPEN, Kind.TWO_FILES)


@dataclass(frozen=True)
class PlatformItem:
    number: int
    kind: Kind
    body: bytes
    media_type: str = "application/pdf"
    extra: bytes = b""

    @property
    def word(self) -> str:
        return f"zebra{self.number:05d}x"

    @property
    def title(self) -> str:
        return f"On the {self.number}th matter"


@dataclass
class Response:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SeenRequest:
    path: str
    at: float
    ended: float
    headers: Mapping[str, str]
    status: int


def pdf(*lines: str) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    for number, line in enumerate(lines):
        canvas.drawString(50, 780 - 14 * (number % 50), line)
    canvas.save()
    return out.getvalue()


def items(count: int, kinds: Sequence[Kind] = tuple(Kind), open_share: int = 3) -> list[PlatformItem]:
    """Items of all kinds, most of them with a document."""
    found = []
    for number in range(1, count + 1):
        turn = number % (open_share * len(kinds))
        kind = kinds[turn] if turn < len(kinds) else Kind.OPEN
        word = f"zebra{number:05d}x"
        lines = [f"Matter {number} of {word} and of wings in air", f"The wing {word} carries, line by line."]
        extra = pdf(f"Appendix with gnu{number:05d}z tables") if kind is Kind.TWO_FILES else b""
        found.append(PlatformItem(number, kind, pdf(*lines), extra=extra))
    return found


def dublin_core(*elements: tuple[str, str]) -> str:
    inner = "".join(f"<dc:{name}>{escape(value)}</dc:{name}>" for name, value in elements)
    return (
        '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/">{inner}</oai_dc:dc>'
    )


def page(title: str, head: str = "", body: str = "") -> bytes:
    text = f"<h1>{title}</h1><p>landingpageword abstract of the item</p>{body}"
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head>"
        f"<body>{MENU}{text}{FOOTER}</body></html>"
    ).encode()


LOGIN_PAGE = page("Login", body="<p>Please log in to see this item.</p>").replace(FOOTER.encode(), b"")


class PlatformServer:
    """A repository: subclasses say what its records, pages and files are. A context manager."""

    name = ""
    oai_path = "/oai"
    prefixes: tuple[str, ...] = ("oai_dc",)
    robots = "User-agent: *\nDisallow: /search\n"

    def __init__(self, items: Sequence[PlatformItem]) -> None:
        self.items = {item.number: item for item in items}
        self.stamps = dict.fromkeys(self.items, "2024-05-01T00:00:00Z")
        self.requests: list[SeenRequest] = []
        self.together = self._in_hand = 0
        self._guard = threading.Lock()
        self.routes: dict[str, Callable[[], Response]] = {}
        self.before: Callable[[str], Response | None] = lambda path: None
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server._handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.routes["/robots.txt"] = lambda: Response(
            self.robots.encode(), headers={"Content-Type": "text/plain"}
        )
        for item in items:
            self.add(item)

    # What a platform says

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        raise NotImplementedError

    def add(self, item: PlatformItem) -> None:
        """Enter the routes of an item."""
        raise NotImplementedError

    # The server

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return self.root + self.oai_path

    def __enter__(self) -> PlatformServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def file(self, path: str, body: bytes, media_type: str = "application/pdf") -> None:
        etag = f'"{hash(body) & 0xFFFFFFFF:x}"'
        headers = {"Content-Type": media_type, "ETag": etag, "Last-Modified": "Wed, 01 May 2024 00:00:00 GMT"}
        self.routes[path] = lambda: Response(body, headers=headers)

    def html(self, path: str, body: bytes, link: str = "", status: int = 200) -> None:
        headers = {"Content-Type": "text/html; charset=utf-8"} | ({"Link": link} if link else {})
        self.routes[path] = lambda: Response(body, status, headers)

    def redirect(self, path: str, target: str) -> None:
        self.routes[path] = lambda: Response(b"", 302, {"Location": target})

    def guarded_file(self, path: str, item: PlatformItem) -> None:
        """The address of a document, by what its item is."""
        if item.kind is Kind.DISGUISED:
            self.routes[path] = lambda: Response(
                page(item.title), headers={"Content-Type": "application/pdf"}
            )
        elif item.kind is Kind.LOGIN:
            self.redirect(path, f"{self.root}/password-login")
            self.html("/password-login", LOGIN_PAGE)
        elif item.kind.has_document:
            self.file(path, item.body, item.media_type)
        else:
            self.html(path, page("Forbidden"), status=403)

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        begun = time.monotonic()
        with self._guard:
            self._in_hand += 1
            self.together = max(self.together, self._in_hand)
        try:
            response = self._answer(handler.path, dict(handler.headers))
            handler.send_response(response.status)
            for name, value in response.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(response.body)))
            handler.end_headers()
            handler.wfile.write(response.body)
        finally:
            with self._guard:
                self._in_hand -= 1
                seen = SeenRequest(
                    handler.path, begun, time.monotonic(), dict(handler.headers), response.status
                )
                self.requests.append(seen)

    def _answer(self, path: str, headers: Mapping[str, str]) -> Response:
        if (other := self.before(path)) is not None:
            return other
        parts = urlsplit(path)
        if parts.path == self.oai_path:
            arguments = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self._oai(arguments).encode()
            return Response(body, headers={"Content-Type": "text/xml; charset=utf-8"})
        route = self.routes.get(path)
        if route is None:
            return Response(page("Not found"), 404, {"Content-Type": "text/html"})
        response = route()
        if response.headers.get("ETag") and headers.get("If-None-Match") == response.headers["ETag"]:
            return Response(b"", 304, response.headers)
        return response

    def identifier(self, item: PlatformItem) -> str:
        return f"oai:{self.name}:{item.number}"

    def _oai(self, arguments: Mapping[str, str]) -> str:
        verb, prefix = arguments.get("verb", ""), arguments.get("metadataPrefix", "oai_dc")
        return (
            '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
            f"<responseDate>2024-06-01T12:00:00Z</responseDate><request>{self.url}</request>"
            f"{self._verb(verb, prefix, arguments)}</OAI-PMH>"
        )

    def _verb(self, verb: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if verb == "Identify":
            return (
                f"<Identify><repositoryName>{self.name}</repositoryName><baseURL>{self.url}</baseURL>"
                "<protocolVersion>2.0</protocolVersion><adminEmail>a@example.org</adminEmail>"
                "<earliestDatestamp>2000-01-01T00:00:00Z</earliestDatestamp><deletedRecord>persistent"
                "</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
            )
        if verb == "ListMetadataFormats":
            return "<ListMetadataFormats>" + "".join(
                f"<metadataFormat><metadataPrefix>{p}</metadataPrefix><schema>http://x/{p}.xsd</schema>"
                f"<metadataNamespace>http://x/{p}</metadataNamespace></metadataFormat>" for p in self.prefixes
            ) + "</ListMetadataFormats>"  # fmt: skip
        if verb in ("ListRecords", "ListIdentifiers", "GetRecord"):
            return self._records(verb, prefix, arguments)
        return f"<error code='noSetHierarchy'>{html.escape(verb)}</error>"

    def _records(self, verb: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if prefix not in self.prefixes:
            return "<error code='cannotDisseminateFormat'>no</error>"
        since = arguments.get("from", "")
        found = ""
        for item in list(self.items.values()):
            stamp, name = self.stamps[item.number], self.identifier(item)
            if stamp < since or arguments.get("identifier", name) != name:
                continue
            header = f"<header><identifier>{name}</identifier><datestamp>{stamp}</datestamp></header>"
            content = f"<metadata>{self.metadata(item, prefix)}</metadata>"
            found += header if verb == "ListIdentifiers" else f"<record>{header}{content}</record>"
        return f"<{verb}>{found}</{verb}>" if found else "<error code='noRecordsMatch'>none</error>"


class DSpace6(PlatformServer):
    """Handles lead to pages; `xoai` names the bitstreams of each bundle."""

    name, oai_path = "dspace6", "/oai/request"
    prefixes: tuple[str, ...] = ("oai_dc", "qdc", "xoai", "mets", "ore")
    robots = "User-agent: *\nDisallow: /discover\nDisallow: /search-filter\n"

    def bitstream(self, item: PlatformItem, name: str, sequence: int = 1) -> str:
        return f"/bitstream/1721.1/{item.number}/{sequence}/{name}"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        if prefix == "xoai":
            return self._xoai(item)
        rights = ["info:eu-repo/semantics/openAccess"] if item.kind.has_document else []
        if item.kind is Kind.EMBARGO:
            rights = ["info:eu-repo/semantics/embargoedAccess", "info:eu-repo/date/embargoEnd/2099-01-01"]
        return dublin_core(
            ("title", item.title), ("identifier", "2049-3002"),
            ("identifier", f"{self.root}/hdl/1721.1/{item.number}"),
            ("relation", f"{self.root}/doi/10.1186/{item.number}"), *(("rights", r) for r in rights),
        )  # fmt: skip

    def _xoai(self, item: PlatformItem) -> str:
        def stream(name: str, kind: str, size: int, sequence: int) -> str:
            fields = {"name": name, "format": kind, "size": str(size),
                      "url": self.root + self.bitstream(item, name, sequence)}  # fmt: skip
            inner = "".join(f'<field name="{k}">{escape(v)}</field>' for k, v in fields.items())
            return f'<element name="bitstream">{inner}</element>'

        originals = ""
        if item.kind not in (Kind.NO_FILE, Kind.REQUEST):
            originals = stream("thesis.pdf", "application/pdf", len(item.body), 1)
        if item.kind is Kind.TWO_FILES:
            originals = stream("appendix.pdf", "application/pdf", len(item.extra) * 9, 2) + originals
        bundles = {
            "ORIGINAL": originals, "LICENSE": stream("license.txt", "text/plain", 9, 4),
            "TEXT": stream("thesis.pdf.txt", "text/plain", 70, 3) if originals else "",
        }  # fmt: skip
        inner = "".join(
            f'<element name="bundle"><field name="name">{name}</field><element name="bitstreams">{content}'
            "</element></element>"
            for name, content in bundles.items()
        )
        start = '<metadata xmlns="http://www.lyncode.com/xoai"><element name="bundles">'
        return f"{start}{inner}</element></metadata>"

    def add(self, item: PlatformItem) -> None:
        self.redirect(f"/hdl/1721.1/{item.number}", f"{self.root}/handle/1721.1/{item.number}")
        path = self.bitstream(item, "thesis.pdf")
        self.guarded_file(path, item)
        if item.extra:
            self.file(self.bitstream(item, "appendix.pdf", 2), item.extra)
        body = f"<a href='{path}'>View/Open</a>"
        if item.kind in (Kind.NO_FILE, Kind.REQUEST):
            body = "<a href='/request-item'>Request a copy</a>" if item.kind is Kind.REQUEST else ""
        self.html(f"/handle/1721.1/{item.number}", page(item.title, body=body))


class DSpace7(DSpace6):
    """The OAI endpoint beside a single-page application; downloads redirect to the REST API."""

    name, oai_path = "dspace7", "/server/oai/request"
    prefixes: tuple[str, ...] = ("oai_dc", "oai_openaire")
    robots = "User-agent: *\nDisallow: /search\nDisallow: /*/browse\nCrawl-delay: 0.01\n"

    def uuid(self, item: PlatformItem) -> str:
        return str(uuid.UUID(int=item.number))

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        if prefix != "oai_openaire":
            return super().metadata(item, prefix).replace("/hdl/", "/handle/")
        right = "c_f1cf" if item.kind is Kind.EMBARGO else "c_abf2"
        access = f"http://purl.org/coar/access_right/{right}"
        file = (
            f'<oaire:file accessRightsURI="{access}" mimeType="application/pdf" objectType="fulltext">'
            f"{self.root}/bitstreams/{self.uuid(item)}/download</oaire:file>"
            if item.kind not in (Kind.NO_FILE, Kind.REQUEST) and item.number % 2 else ""
        )  # fmt: skip
        return (
            '<oaire:resource xmlns:oaire="http://namespace.openaire.eu/schema/oaire/" '
            'xmlns:datacite="http://datacite.org/schema/kernel-4">'
            f'<datacite:rights rightsURI="{access}">access</datacite:rights>{file}</oaire:resource>'
        )

    def add(self, item: PlatformItem) -> None:
        download = f"/bitstreams/{self.uuid(item)}/download"
        content = f"/server/api/core/bitstreams/{self.uuid(item)}/content"
        self.redirect(download, self.root + content)
        self.guarded_file(content, item)
        head = link = body = ""
        if item.kind is Kind.REQUEST:
            body = f"<a href='/items/{self.uuid(item)}/request-a-copy'>thesis.pdf</a>"
        elif item.kind is not Kind.NO_FILE:
            link = f'<{self.root}{download}>; rel="item"; type="application/pdf"'
            head = f"<meta name='citation_pdf_url' content='{self.root}{download}'>"
        self.html(f"/handle/1721.1/{item.number}", page(item.title, head, body), link)


class EPrints(PlatformServer):
    """Documents are identifiers in oai_dc; the page is a relation."""

    name, oai_path, prefixes = "eprints", "/cgi/oai2", ("oai_dc", "oai_bibl", "rem_rdf", "uketd_dc")
    robots = "User-agent: *\nDisallow: /cgi/\n"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        document = f"{self.root}/{item.number}/1/Paper%20{item.number}.pdf"
        files = []
        if item.kind not in (Kind.NO_FILE, Kind.REQUEST, Kind.EMBARGO):
            files = [("format", "application/pdf"), ("identifier", document)]
        if item.extra:
            files += [
                ("format", "application/pdf"),
                ("identifier", f"{self.root}/{item.number}/2/Supplement.pdf"),
            ]
        citation = f"  Author, A. (2015) {item.title}. Science, 209 (4552). pp. 27-31."
        return dublin_core(
            ("title", item.title),
            *files,
            ("identifier", citation),
            ("relation", f"{self.root}/{item.number}/"),
        )

    def add(self, item: PlatformItem) -> None:
        path = f"/{item.number}/1/Paper%20{item.number}.pdf"
        self.guarded_file(path, item)
        if item.extra:
            self.file(f"/{item.number}/2/Supplement.pdf", item.extra)
        notes = {
            Kind.REQUEST: "<p>Restricted to staff only</p><a href='/cgi/request_doc'>Request a copy</a>",
            Kind.EMBARGO: "<p>PDF: Restricted to Registered users only until embargo ends 2099-01-01. "
            "Under embargo until 2099-01-01</p>",
            Kind.NO_FILE: "<p>Full text not available from this repository.</p>",
        }
        head, body = "", notes.get(item.kind, "")
        if not body:
            head = f"<meta name='eprints.document_url' content='{self.root}{path}'>"
            body = f"<a class='ep_document_link' href='{self.root}{path}'>Download</a>"
        self.html(f"/{item.number}/", page(item.title, head, body))


class OJS3(PlatformServer):
    """Galleys: relations in oai_dc, links on the page; `view` is a page around what `download` gives."""

    name, oai_path, prefixes = "ojs3", "/index.php/j/oai", ("oai_dc", "marcxml", "rfc1807")
    robots = "User-agent: *\nDisallow: /cache/\n"

    def article(self, item: PlatformItem) -> str:
        return f"/index.php/j/article/view/{item.number}"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        url = self.root + self.article(item)
        if prefix == "marcxml":
            return (
                '<record xmlns="http://www.loc.gov/MARC21/slim"><datafield tag="856" ind1="4" ind2="0">'
                f'<subfield code="q">text/html</subfield><subfield code="u">{url}</subfield>'
                "</datafield></record>"
            )
        galley = (
            [("relation", f"{url}/9{item.number}")]
            if item.kind is not Kind.NO_FILE and item.number % 2
            else []
        )
        return dublin_core(("title", item.title), ("identifier", url), ("source", "The Journal"), *galley)

    def add(self, item: PlatformItem) -> None:
        view = f"{self.article(item)}/9{item.number}"
        download = f"/index.php/j/article/download/{item.number}/9{item.number}"
        frame = f"<iframe src='{self.root}{download}'></iframe>"
        self.html(view, page(item.title, body=frame))
        self.guarded_file(download, item)
        classes = "obj_galley_link pdf"
        if item.kind in (Kind.LOGIN, Kind.EMBARGO, Kind.REQUEST):
            classes += " restricted"
        notes = {
            Kind.LOGIN: "<p>Subscription required to see the full text</p>",
            Kind.EMBARGO: "<p>This issue is under embargo until 2099-01-01.</p>",
            Kind.REQUEST: "<a>Request a copy</a>",
        }
        body = (
            f"<a class='{classes}' href='{self.root}{view}'>PDF</a>" if item.kind is not Kind.NO_FILE else ""
        )
        self.html(self.article(item), page(item.title, body=body + notes.get(item.kind, "")))


class DigitalCommons(PlatformServer):
    """`viewcontent.cgi` in oai_dc, its ampersand escaped twice; a crawl delay in robots.txt."""

    name, oai_path, prefixes = "digitalcommons", "/do/oai/", ("oai_dc", "qdc", "dcs")
    robots = "User-agent: *\nCrawl-delay: 0.02\nDisallow: /cgi/sw_config.cgi\nDisallow: /do/search\n"

    def content(self, item: PlatformItem) -> str:
        return f"/cgi/viewcontent.cgi?article={1000 + item.number}&context=phys"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        files = []
        if item.kind not in (Kind.NO_FILE, Kind.REQUEST):
            url = f"{self.root}{self.content(item)}"
            files = [("format", "application/pdf"), ("identifier", url.replace("&", "&amp;"))]
        return dublin_core(
            ("title", item.title), ("identifier", f"{self.root}/phys/{item.number}"), *files,
            ("source", "Physics Papers"),
        )  # fmt: skip

    def add(self, item: PlatformItem) -> None:
        self.guarded_file(self.content(item), item)
        body = head = ""
        if item.kind is Kind.REQUEST:
            body = "<p>Campus-only access.</p><a>Request a copy</a>"
        elif item.kind is not Kind.NO_FILE:
            link = html.escape(self.content(item))
            body = f"<a id='pdf' href='{link}'>Download</a>"
            head = f"<meta name='bepress_citation_pdf_url' content='{self.root}{link}'>"
        self.html(f"/phys/{item.number}", page(item.title, head, body))


class Invenio(PlatformServer):
    """Zenodo and InvenioRDM: FAIR Signposting on record pages; rights in oai_datacite."""

    name, oai_path, prefixes = "zenodo", "/oai2d", ("oai_dc", "oai_datacite", "datacite", "dcat")
    robots = "User-agent: *\nDisallow: /search\n"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        right = "openAccess" if item.kind is not Kind.EMBARGO else "embargoedAccess"
        if prefix in ("oai_datacite", "datacite"):
            return (
                '<oai_datacite xmlns="http://schema.datacite.org/oai/oai-1.0/"><payload>'
                '<resource xmlns="http://datacite.org/schema/kernel-3"><alternateIdentifiers>'
                f'<alternateIdentifier alternateIdentifierType="url">{self.root}/records/{item.number}'
                "</alternateIdentifier></alternateIdentifiers><rightsList>"
                f'<rights rightsURI="info:eu-repo/semantics/{right}">{right}</rights></rightsList></resource>'
                "</payload></oai_datacite>"
            )
        return dublin_core(
            ("title", item.title), ("identifier", f"{self.root}/records/{item.number}"),
            ("identifier", f"{self.root}/doi/10.5281/{item.number}"),
            ("rights", f"info:eu-repo/semantics/{right}"),
        )  # fmt: skip

    def add(self, item: PlatformItem) -> None:
        path = f"/records/{item.number}/files/paper {item.number}.pdf".replace(" ", "%20")
        self.guarded_file(path, item)
        link = head = body = ""
        if item.kind is Kind.REQUEST:
            body = "<h2>Request access</h2><p>Request a copy of the files</p>"
        elif item.kind is not Kind.NO_FILE:
            link = (
                f'<https://doi.org/10.5281/zenodo.{item.number}>; rel="cite-as", '
                f'<{self.root}/data/{item.number}.zip>; rel="item"; type="application/zip", '
                f'<{self.root}{path}>; rel="item"; type="application/pdf"'
            )
        self.html(f"/records/{item.number}", page(item.title, head, body), link)


class ArXiv(PlatformServer):
    """The abstract's address gives the document's. It asks for time when it has had enough."""

    name, oai_path, prefixes = "arxiv", "/oai2", ("oai_dc", "arXiv", "arXivRaw")
    robots = "User-agent: *\nDisallow: /find\nDisallow: /search\nAllow: /abs\nAllow: /pdf\n"

    def number(self, item: PlatformItem) -> str:
        return f"0907.{item.number:04d}"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        return dublin_core(
            ("title", item.title), ("identifier", f"{self.root}/abs/{self.number(item)}"),
            ("identifier", "IEEE Transactions on Nuclear Science 56 (2009) 2989"),
            ("type", "text"),
        )  # fmt: skip

    def add(self, item: PlatformItem) -> None:
        path = f"/pdf/{self.number(item)}"
        if item.kind is not Kind.NO_FILE:
            self.guarded_file(path, item)
        withdrawn = "<p>This paper has been withdrawn by the author.</p>" if item.kind is Kind.NO_FILE else ""
        self.html(f"/abs/{self.number(item)}", page(item.title, body=withdrawn))


class Dataverse(PlatformServer):
    """Datasets: documents are files among others, named in oai_ddi and in schema.org."""

    name, oai_path, prefixes = "dataverse", "/oai", ("oai_dc", "oai_ddi", "oai_datacite", "dataverse_json")
    robots = "User-agent: *\nAllow: /$\nAllow: /dataset.xhtml\nAllow: /api/access/datafile/\nDisallow: /\n"

    def landing(self, item: PlatformItem) -> str:
        return f"/dataset.xhtml?persistentId=doi:10.7910/DVN/{item.number:06d}"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        if prefix != "oai_ddi":
            return dublin_core(("title", item.title), ("identifier", self.root + self.landing(item)))
        files = ""
        if item.kind not in (Kind.NO_FILE, Kind.REQUEST) and item.number % 2:
            files = "".join(
                f'<otherMat ID="f{n}" URI="{self.root}/api/access/datafile/{n}" level="datafile">'
                f'<labl>{name}</labl><notes type="DATAVERSE:CONTENTTYPE">{kind}</notes></otherMat>'
                for n, name, kind in (
                    (item.number * 10, "data.tab", "text/tab-separated-values"),
                    (item.number * 10 + 1, "report.pdf", "application/pdf"),
                )
            )
        return f'<codeBook xmlns="http://www.icpsr.umich.edu/DDI">{files}</codeBook>'

    def add(self, item: PlatformItem) -> None:
        path = f"/api/access/datafile/{item.number * 10 + 1}"
        self.guarded_file(path, item)
        self.file(f"/api/access/datafile/{item.number * 10}", b"a\tb\n1\t2\n", "text/tab-separated-values")
        head = body = ""
        if item.kind is Kind.REQUEST:
            body = "<p>Files are restricted. Request a copy from the contact.</p>"
        elif item.kind is not Kind.NO_FILE:
            head = (
                '<script type="application/ld+json">{"@context": "http://schema.org", "@type": "Dataset", '
                '"distribution": [{"@type": "DataDownload", "name": "data.tab", "encodingFormat": '
                f'"text/csv", "contentUrl": "{self.root}/api/access/datafile/{item.number * 10}"}}, '
                '{"@type": "DataDownload", "name": "report.pdf", "encodingFormat": "application/pdf", '
                f'"contentUrl": "{self.root}{path}"}}]}}</script>'
            )
        self.html(self.landing(item), page(item.title, head, body))


PLATFORMS: tuple[type[PlatformServer], ...] = (
    DSpace6, DSpace7, EPrints, OJS3, DigitalCommons, Invenio, ArXiv, Dataverse,
)  # fmt: skip


@contextmanager
def repository(platform: type[PlatformServer], count: int = 21) -> Iterator[PlatformServer]:
    with platform(items(count)) as server:
        yield server
