"""A real OAI-PMH provider on loopback that misbehaves on command.

`Provider` answers honestly from a list of `Rec`. Each fault is a function from a request and the honest reply
to what is really sent. Also for `bench/`, where other harvesters meet the same faults.
"""

from __future__ import annotations

import gzip
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit
from xml.sax.saxutils import escape

OAI = "http://www.openarchives.org/OAI/2.0/"
NOW = "2024-06-01T12:00:00Z"


@dataclass
class Rec:
    identifier: str
    datestamp: str
    title: str = "wing"
    deleted: bool = False
    sets: tuple[str, ...] = ()
    metadata: str | None = None  # in the place of what the title gives; "" for none at all


@dataclass
class Request:
    path: str
    arguments: dict[str, str]
    raw_query: str
    number: int  # of this request, from 1
    same: int  # how often this very request came, from 1
    provider: Provider

    @property
    def verb(self) -> str:
        return self.arguments.get("verb", "")

    @property
    def listing(self) -> bool:
        return self.verb in ("ListRecords", "ListIdentifiers")


@dataclass
class Reply:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/xml; charset=utf-8"})
    records: tuple[Rec, ...] = ()
    token: str | None = None
    act: Callable[[BaseHTTPRequestHandler], None] | None = None  # in the place of an HTTP answer


Fault = Callable[[Request, Reply], Reply]


def collection(count: int = 47, days: int = 20) -> list[Rec]:
    """Records spread over some days, each with a word of its own; every tenth deleted."""
    found = []
    for i in range(count):
        stamp = f"2024-05-{1 + i * days // count:02d}T{i % 24:02d}:00:{i % 60:02d}Z"
        found.append(Rec(f"oai:x.org:{i:04d}", stamp, f"flutter of wing {i} word{i}", deleted=i % 10 == 9))
    return sorted(found, key=lambda r: r.datestamp)


class Provider:
    """A context manager: the server runs while it is open. `url` is its base URL."""

    def __init__(
        self,
        records: Iterable[Rec] | None = None,
        *faults: Fault,
        page: int = 10,
        deleted: str = "persistent",
        granularity: str = "YYYY-MM-DDThh:mm:ssZ",
        sizes: bool = True,
        plus: bool = False,
    ) -> None:
        self.records = collection() if records is None else list(records)
        self.faults = faults
        self.page = page
        self.deleted = deleted
        self.granularity = granularity
        self.sizes = sizes  # completeListSize told?
        self.plus = plus  # tokens with + in them
        self.set_names: dict[str, str] = {}
        self.now = NOW
        self.requests: list[Request] = []
        self.counts: dict[str, int] = {}
        self.together = 0  # most requests in hand at one time
        self._in_hand = 0
        self._guard = threading.Lock()
        self.memory: dict[str, Any] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                provider._handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass  # a client that hangs up is what we are here for

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return self.root + "/repo"

    def __enter__(self) -> Provider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def live(self) -> set[str]:
        return {r.identifier for r in self.records if not r.deleted}

    # The server

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        arguments = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        with self._guard:
            self.counts[handler.path] = same = self.counts.get(handler.path, 0) + 1
            request = Request(parts.path, arguments, parts.query, len(self.requests) + 1, same, self)
            self.requests.append(request)
            self._in_hand += 1
            self.together = max(self.together, self._in_hand)
        try:
            reply = self.answer(request)
            for fault in self.faults:
                reply = fault(request, reply)
            if reply.act is not None:
                with self._guard:
                    self._in_hand -= 1  # a client that has hung up may well have asked again
                reply.act(handler)
                with self._guard:
                    self._in_hand += 1
                return
            handler.send_response(reply.status)
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            if "Content-Length" not in reply.headers and "Transfer-Encoding" not in reply.headers:
                handler.send_header("Content-Length", str(len(reply.body)))
            handler.end_headers()
            handler.wfile.write(reply.body)
        finally:
            with self._guard:
                self._in_hand -= 1

    def answer(self, request: Request) -> Reply:
        """The honest reply."""
        if request.path != "/repo":
            return Reply(b"not here", 404, {"Content-Type": "text/plain"})
        verb = request.verb
        if verb == "Identify":
            return self._frame(request, self._identify())
        if verb == "ListMetadataFormats":
            return self._frame(
                request,
                "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>"
                "<schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>"
                "<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>"
                "</metadataFormat></ListMetadataFormats>",
            )
        if verb == "GetRecord":
            found = [r for r in self.records if r.identifier == request.arguments.get("identifier")]
            if not found:
                return self.error(request, "idDoesNotExist")
            return self._frame(request, f"<GetRecord>{record(found[0])}</GetRecord>", tuple(found))
        if request.listing:
            return self._list(request)
        if verb == "ListSets" and self.set_names:
            return self._list_sets(request)
        return self.error(request, "badVerb")

    def error(self, request: Request, code: str, text: str = "no") -> Reply:
        return self._frame(request, f'<error code="{code}">{text}</error>')

    def _identify(self) -> str:
        return (
            "<Identify><repositoryName>Hostile</repositoryName>"
            f"<baseURL>{self.url}</baseURL><protocolVersion>2.0</protocolVersion>"
            "<adminEmail>a@x.org</adminEmail><earliestDatestamp>2024-01-01T00:00:00Z</earliestDatestamp>"
            f"<deletedRecord>{self.deleted}</deletedRecord><granularity>{self.granularity}</granularity>"
            "</Identify>"
        )

    def _list_sets(self, request: Request) -> Reply:
        """Two sets a page."""
        entries = list(self.set_names.items())
        offset = int(request.arguments.get("resumptionToken", "0"))
        made = [
            f"<set><setSpec>{spec}</setSpec><setName>{escape(name)}</setName></set>"
            for spec, name in entries[offset : offset + 2]
        ]
        more = str(offset + 2) if offset + 2 < len(entries) else ""
        token = f"<resumptionToken>{more}</resumptionToken>" if offset or more else ""
        return self._frame(request, f"<ListSets>{''.join(made)}{token}</ListSets>")

    def _list(self, request: Request) -> Reply:
        arguments = request.arguments
        offset = 0
        if token := arguments.get("resumptionToken"):
            parts = token.replace("+", "|").split("|")
            if len(parts) != 6 or parts[0] != "t":
                return self.error(request, "badResumptionToken")
            arguments = {"from": parts[2], "until": parts[3], "set": parts[4]}
            offset = int(parts[5])
        matching = self.select(arguments)
        chosen = matching[offset : offset + self.page]
        if not chosen:
            return self.error(request, "noRecordsMatch")
        return self.page_of(request, chosen, matching, offset, arguments)

    def select(self, arguments: dict[str, str]) -> list[Rec]:
        since, until = arguments.get("from") or "0", arguments.get("until") or "9"
        if len(until) == 10:
            until += "T23:59:59Z"
        named = arguments.get("set") or ""
        return [
            r
            for r in self.records
            if since <= r.datestamp <= until
            and (not named or any(s == named or s.startswith(named + ":") for s in r.sets))
            and not (r.deleted and self.deleted == "no")
        ]

    def page_of(
        self, request: Request, chosen: list[Rec], matching: list[Rec], offset: int, arguments: dict[str, str]
    ) -> Reply:
        end = offset + len(chosen)
        token = ""
        joint = "+" if self.plus else "|"
        if end < len(matching):
            values = ("t", request.verb, arguments.get("from", ""), arguments.get("until", ""),
                      arguments.get("set", ""), str(end))  # fmt: skip
            token = joint.join(values)
        size = f' completeListSize="{len(matching)}"' if self.sizes else ""
        ending = ""
        if offset or token:
            ending = f'<resumptionToken{size} cursor="{offset}">{escape(token)}</resumptionToken>'
        make = record if request.verb == "ListRecords" else header
        body = "".join(map(make, chosen))
        reply = self._frame(request, f"<{request.verb}>{body}{ending}</{request.verb}>", tuple(chosen))
        reply.token = token
        return reply

    def _frame(self, request: Request, inner: str, records: tuple[Rec, ...] = ()) -> Reply:
        body = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="{OAI}">'
            f"<responseDate>{self.now}</responseDate><request>{self.url}</request>{inner}</OAI-PMH>"
        )
        return Reply(body.encode(), records=records)


def header(r: Rec) -> str:
    status = ' status="deleted"' if r.deleted else ""
    sets = "".join(f"<setSpec>{s}</setSpec>" for s in r.sets)
    return (
        f"<header{status}><identifier>{escape(r.identifier)}</identifier>"
        f"<datestamp>{r.datestamp}</datestamp>{sets}</header>"
    )


def record(r: Rec) -> str:
    if r.deleted:
        return f"<record>{header(r)}</record>"
    metadata = r.metadata
    if metadata is None:
        metadata = (
            '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(r.title)}</dc:title>'
            f"<dc:language>eng</dc:language></oai_dc:dc>"
        )
    return f"<record>{header(r)}" + (f"<metadata>{metadata}</metadata>" if metadata else "") + "</record>"


# Faults. Each factory's arguments say when it strikes; the names are those of the table.


def _on_lists(change: Callable[[Request, Reply], Reply], times: int = 10**9, verb: str = "") -> Fault:
    """Strikes the first `times` requests for pages of lists."""

    def fault(request: Request, reply: Reply) -> Reply:
        if request.verb != verb if verb else not request.listing:
            return reply
        struck = request.provider.memory
        struck[key] = struck.get(key, 0) + 1
        return change(request, reply) if struck[key] <= times else reply

    key = f"struck {id(fault)}"
    return fault


def _body(make: Callable[[bytes], bytes]) -> Callable[[Request, Reply], Reply]:
    return lambda request, reply: replace(reply, body=make(reply.body))


def status(code: int, times: int = 2, retry_after: str | None = None) -> Fault:
    def change(request: Request, reply: Reply) -> Reply:
        headers = {"Content-Type": "text/plain"}
        if retry_after is not None:
            headers["Retry-After"] = retry_after
        return Reply(b"busy", code, headers)

    return _on_lists(change, times)


def retry_date(times: int = 1) -> Fault:
    """Retry-After as a date, a second ahead."""

    def change(request: Request, reply: Reply) -> Reply:
        return Reply(b"busy", 503, {"Retry-After": formatdate(time.time() + 1, usegmt=True)})

    return _on_lists(change, times)


def _reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def reset(times: int = 2) -> Fault:
    return _on_lists(lambda request, reply: replace(reply, act=_reset), times)


def stall(seconds: float = 0.8, times: int = 1) -> Fault:
    """Headers and half of the body, then silence."""

    def act(reply: Reply) -> Callable[[BaseHTTPRequestHandler], None]:
        def doing(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(reply.body)))
            handler.end_headers()
            handler.wfile.write(reply.body[: len(reply.body) // 2])
            handler.wfile.flush()
            time.sleep(seconds)
            handler.close_connection = True

        return doing

    return _on_lists(lambda request, reply: replace(reply, act=act(reply)), times)


def drip(times: int = 1, pause: float = 0.05) -> Fault:
    """A byte at a time, for ever."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/xml")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for _ in range(400):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(pause)

    return _on_lists(lambda request, reply: replace(reply, act=act), times)


def short_body(times: int = 2) -> Fault:
    """Fewer bytes than Content-Length says, then the connection closes."""

    def act(reply: Reply) -> Callable[[BaseHTTPRequestHandler], None]:
        def doing(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(reply.body)))
            handler.end_headers()
            handler.wfile.write(reply.body[: len(reply.body) * 2 // 3])
            handler.close_connection = True

        return doing

    return _on_lists(lambda request, reply: replace(reply, act=act(reply)), times)


def cut_chunks(times: int = 2) -> Fault:
    """A chunked body without its last chunk."""

    def act(reply: Reply) -> Callable[[BaseHTTPRequestHandler], None]:
        def doing(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            part = reply.body[: len(reply.body) // 2]
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            handler.close_connection = True

        return doing

    return _on_lists(lambda request, reply: replace(reply, act=act(reply)), times)


def cut_xml(times: int = 2) -> Fault:
    """A body that ends in the middle of a record, by a Content-Length that agrees."""
    return _on_lists(_body(lambda body: body[: len(body) * 2 // 3]), times)


def cut_gzip(times: int = 2) -> Fault:
    def change(request: Request, reply: Reply) -> Reply:
        body = gzip.compress(reply.body)
        return replace(reply, body=body[:-20], headers=reply.headers | {"Content-Encoding": "gzip"})

    return _on_lists(change, times)


def undeclared_gzip() -> Fault:
    return _on_lists(_body(gzip.compress))


def false_gzip() -> Fault:
    """Says gzip, and is not."""
    return _on_lists(lambda q, r: replace(r, headers=r.headers | {"Content-Encoding": "gzip"}))


def gzip_bomb() -> Fault:
    bomb = gzip.compress(b" " * 80_000_000, 9)
    return _on_lists(lambda q, r: replace(r, body=bomb, headers=r.headers | {"Content-Encoding": "gzip"}))


def empty_body(times: int = 2) -> Fault:
    return _on_lists(_body(lambda body: b""), times)


def html(times: int = 2) -> Fault:
    page = b"<!DOCTYPE html><html><head><title>Maintenance</title></head><body><p>Back soon</body></html>"
    return _on_lists(lambda q, r: Reply(page, 200, {"Content-Type": "text/html"}), times)


def in_titles(what: bytes) -> Fault:
    """Some bytes in the title of every record on lists and in single records."""

    def fault(request: Request, reply: Reply) -> Reply:
        return replace(reply, body=reply.body.replace(b"flutter of", b"flutter " + what + b" of"))

    return fault


def latin1() -> Fault:
    """Bytes of ISO 8859-1 under a declaration of UTF-8."""
    return in_titles("Über".encode("latin-1"))


def encoded(name: str) -> Fault:
    """Lists in another encoding of Unicode, declared, with a byte order mark."""

    def change(body: bytes) -> bytes:
        return body.decode().replace('encoding="UTF-8"', f'encoding="{name}"').encode(name)

    return _on_lists(lambda q, r: replace(r, body=change(r.body), headers={"Content-Type": "text/xml"}))


def charset_of_the_header(name: str, word: str) -> Fault:
    """An encoding that the HTTP header alone tells; a word of its own in each title."""

    def change(body: bytes) -> bytes:
        text = body.decode().replace(' encoding="UTF-8"', "").replace("flutter of", f"flutter {word} of")
        return text.encode(name)

    headers = {"Content-Type": f"text/xml; charset={name}"}
    return _on_lists(lambda q, r: replace(r, body=change(r.body), headers=headers))


def declared_latin1() -> Fault:
    """Declared as ISO 8859-1, in the declaration and by the header; it is UTF-8."""

    def fault(request: Request, reply: Reply) -> Reply:
        body = reply.body.replace(b'encoding="UTF-8"', b'encoding="ISO-8859-1"')
        body = body.replace(b"flutter of", "flutter Über of".encode())
        return replace(reply, body=body, headers={"Content-Type": "text/xml; charset=iso-8859-1"})

    return fault


def missing_namespaces() -> Fault:
    def change(request: Request, reply: Reply) -> Reply:
        return replace(reply, body=re.sub(rb' xmlns(:\w+)?="[^"]*"', b"", reply.body))

    return change


def prologue(before: bytes) -> Fault:
    return lambda request, reply: replace(reply, body=before + reply.body)


def trailing(after: bytes = b"<!-- 0.2 s --><br/>Warning: in line 3") -> Fault:
    return lambda request, reply: replace(reply, body=reply.body + after)


def content_type(value: str) -> Fault:
    return lambda request, reply: replace(reply, headers={"Content-Type": value})


def xml_bomb() -> Fault:
    """A document type with the billion laughs, used in one record."""
    entities = '<!ENTITY a0 "lol">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    return _doctype(f"<!DOCTYPE OAI-PMH [{entities}]>", b"&a9;")


def external_entity(root: Callable[[], str]) -> Fault:
    """An entity that would be read from this machine, and one from the network."""

    def fault(request: Request, reply: Reply) -> Reply:
        declared = (
            f'<!DOCTYPE OAI-PMH [<!ENTITY f SYSTEM "file:///etc/passwd">'
            f'<!ENTITY n SYSTEM "{root()}/secret">]>'
        )
        return _doctype(declared, b"&f;&n;")(request, reply)

    return fault


def _doctype(declaration: str, use: bytes) -> Fault:
    def change(request: Request, reply: Reply) -> Reply:
        head, separator, rest = reply.body.partition(b"\n")
        body = head + separator + declaration.encode() + rest.replace(b"wing 3 ", use, 1)
        return replace(reply, body=body)

    return change


def huge_text(megabytes: int = 11) -> Fault:
    """One title of many megabytes."""
    return _on_lists(_body(lambda b: b.replace(b"wing 3 ", b"wing " + b"air " * (megabytes << 18), 1)))


def _retokened(body: bytes, token: str | None) -> bytes:
    pattern = rb"<resumptionToken([^>]*)>[^<]*</resumptionToken>"
    if token is None:
        return re.sub(pattern, b"", body)
    return re.sub(
        pattern, lambda m: b"<resumptionToken%b>%b</resumptionToken>" % (m[1], token.encode()), body
    )


def repeated_token(verb: str = "") -> Fault:
    """Each token leads to its own page again: the list never gets beyond the second page."""

    def change(request: Request, reply: Reply) -> Reply:
        sent = request.arguments.get("resumptionToken")
        return replace(reply, body=_retokened(reply.body, sent)) if sent else reply

    return _on_lists(change, verb=verb)


def circle(verb: str = "") -> Fault:
    """The last page carries the token of the second: the list goes round for ever."""

    def change(request: Request, reply: Reply) -> Reply:
        sent, known = request.arguments.get("resumptionToken"), request.provider.memory
        if sent:
            known.setdefault("first" + request.verb, sent)
        if reply.records and not reply.token and sent:
            return replace(reply, body=_retokened(reply.body, known["first" + request.verb]))
        return reply

    return _on_lists(change, verb=verb)


def session_token() -> Fault:
    """One token for the whole list; the server remembers how far it has given it."""

    def change(request: Request, reply: Reply) -> Reply:
        memory = request.provider.memory
        if request.arguments.get("resumptionToken") == "SESSION":
            honest = Request(request.path, {"verb": request.verb, "resumptionToken": memory[request.verb]},
                             "", 0, 1, request.provider)  # fmt: skip
            reply = request.provider.answer(honest)
        if reply.token:
            memory[request.verb] = reply.token
            return replace(reply, body=_retokened(reply.body, "SESSION"))
        return reply

    return change


def expiring(after: int = 2, times: int = 1) -> Fault:
    """After so many pages of a list the token is refused, so many times."""

    def change(request: Request, reply: Reply) -> Reply:
        memory = request.provider.memory
        if "resumptionToken" not in request.arguments:
            memory["pages"] = 1
            return reply
        memory["pages"] = memory.get("pages", 0) + 1
        if memory["pages"] > after and memory.get("expired", 0) < times:
            memory["expired"] = memory.get("expired", 0) + 1
            return request.provider.error(request, "badResumptionToken", "expired")
        return reply

    return _on_lists(change, verb="ListRecords")


def decodes_twice() -> Fault:
    """The server decodes its tokens once too often, and so loses their + signs."""

    def change(request: Request, reply: Reply) -> Reply:
        token = request.arguments.get("resumptionToken")
        if token is None:
            return reply
        honest = Request(request.path, request.arguments | {"resumptionToken": unquote_plus(token)}, "", 0, 1,
                         request.provider)  # fmt: skip
        return request.provider.answer(honest)

    return _on_lists(change)


def overlapping(by: int = 3) -> Fault:
    """Each page begins with the last records of the one before."""

    def change(request: Request, reply: Reply) -> Reply:
        provider = request.provider
        if not reply.records or not request.arguments.get("resumptionToken"):
            return reply
        start = provider.records.index(reply.records[0])
        more = provider.records[max(0, start - by) : start]
        make = record if request.verb == "ListRecords" else header
        first = make(reply.records[0]).encode()
        return replace(reply, body=reply.body.replace(first, "".join(map(make, more)).encode() + first, 1))

    return _on_lists(change)


def empty_pages() -> Fault:
    """Between two pages comes one without records, with a token."""

    def change(request: Request, reply: Reply) -> Reply:
        token = request.arguments.get("resumptionToken", "")
        if token.startswith("empty"):
            honest = Request(request.path, request.arguments | {"resumptionToken": token[5:]}, "", 0, 1,
                             request.provider)  # fmt: skip
            reply = request.provider.answer(honest)
        elif token:
            inner = f"<{request.verb}><resumptionToken>empty{token}</resumptionToken></{request.verb}>"
            return request.provider._frame(request, inner)
        return reply

    return _on_lists(change)


def cut_list(after: int = 2, verb: str = "ListRecords") -> Fault:
    """After so many pages the token is missing, as if the list were over."""

    def change(request: Request, reply: Reply) -> Reply:
        token = request.arguments.get("resumptionToken", "")
        page = request.provider.page
        offset = int(re.split(r"[+|]", token)[-1]) if token else 0
        if reply.token and offset >= (after - 1) * page:
            return replace(reply, body=_retokened(reply.body, None))
        return reply

    return _on_lists(change, verb=verb)


def moving(times: int = 1) -> Fault:
    """After a page of records has gone out, its first record is changed: those after it move up by one."""

    def change(request: Request, reply: Reply) -> Reply:
        provider = request.provider
        if provider.memory.setdefault("moved", 0) < times and reply.token:
            provider.memory["moved"] += 1
            moved = next(r for r in reply.records if not r.deleted)
            provider.records = [r for r in provider.records if r is not moved]
            stamp = f"2024-05-31T00:00:{provider.memory['moved']:02d}Z"
            provider.records.append(replace(moved, datestamp=stamp))
        return reply

    return _on_lists(change, verb="ListRecords")


def capped(most: int) -> Fault:
    """No list is longer than so many records: it ends in due form there, and states its true size."""

    def change(request: Request, reply: Reply) -> Reply:
        token = request.arguments.get("resumptionToken", "")
        offset = int(re.split(r"[+|]", token)[-1]) if token else 0
        if reply.token and offset + request.provider.page >= most:
            return replace(reply, body=_retokened(reply.body, ""))
        return reply

    return _on_lists(change)


def sizes(factor: float) -> Fault:
    """completeListSize lies."""

    def change(request: Request, reply: Reply) -> Reply:
        def lie(match: re.Match[bytes]) -> bytes:
            return b'completeListSize="%d"' % int(int(match[1]) * factor)

        return replace(reply, body=re.sub(rb'completeListSize="(\d+)"', lie, reply.body))

    return _on_lists(change)


def granularity_days() -> Fault:
    """Seconds are promised; datestamps are days, and seconds in arguments are refused."""

    def change(request: Request, reply: Reply) -> Reply:
        if any(len(request.arguments.get(name, "")) > 10 for name in ("from", "until")):
            return request.provider.error(request, "badArgument", "granularity")
        return replace(reply, body=re.sub(rb"<datestamp>(.{10})[^<]*<", rb"<datestamp>\1<", reply.body))

    return _on_lists(change)


def ignores(*names: str) -> Fault:
    """Arguments without effect."""

    def change(request: Request, reply: Reply) -> Reply:
        kept = {k: v for k, v in request.arguments.items() if k not in names}
        return request.provider.answer(Request(request.path, kept, "", 0, 1, request.provider))

    return _on_lists(change)


def refuses_long_lists(limit: int = 15, code: str = "badArgument", http: int = 200) -> Fault:
    """Lists of more than so many records are refused."""

    def change(request: Request, reply: Reply) -> Reply:
        if "resumptionToken" in request.arguments or len(request.provider.select(request.arguments)) <= limit:
            return reply
        refusal = request.provider.error(request, code, "too many records; narrow the dates")
        return replace(refusal, status=http)

    return _on_lists(change, verb="ListRecords")


def redirects(times: int = 1, kind: int = 302, loop: bool = False) -> Fault:
    def fault(request: Request, reply: Reply) -> Reply:
        if request.path == "/repo" and request.listing and request.same <= times:
            where = "/repo?" if not loop else "/round?"
            return Reply(b"", kind, {"Location": where + request.raw_query})
        if loop and request.path == "/round":
            return Reply(b"", kind, {"Location": "/repo?" + request.raw_query})
        return reply

    return fault


def moved() -> Fault:
    """The repository has moved, and the Location forgets the query."""

    def fault(request: Request, reply: Reply) -> Reply:
        if request.path == "/old":
            return Reply(b"", 301, {"Location": "/repo"})
        return reply

    return fault


def poison(identifier: str, single: bool = True) -> Fault:
    """A record that makes every page of ListRecords that holds it fail, and GetRecord too."""

    def fault(request: Request, reply: Reply) -> Reply:
        struck = request.verb == "ListRecords" or (single and request.verb == "GetRecord")
        if struck and any(r.identifier == identifier for r in reply.records):
            return Reply(b"Fatal error", 500, {"Content-Type": "text/html"})
        return reply

    return fault


def rewritten(pattern: bytes, instead: bytes, verb: str = "") -> Fault:
    """Something in the answers to lists (or to one verb) is written otherwise."""
    return _on_lists(_body(lambda body: re.sub(pattern, instead, body, flags=re.DOTALL)), verb=verb)


def announced_too_large(by: int = 50) -> Fault:
    """Content-Length says more than there is, and the connection closes at the end of the document."""

    def act(reply: Reply) -> Callable[[BaseHTTPRequestHandler], None]:
        def doing(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(reply.body) + by))
            handler.end_headers()
            handler.wfile.write(reply.body)
            handler.close_connection = True

        return doing

    return _on_lists(lambda request, reply: replace(reply, act=act(reply)))


def gzip_and_garbage() -> Fault:
    headers = {"Content-Type": "text/xml", "Content-Encoding": "gzip"}
    return _on_lists(
        lambda request, reply: replace(reply, body=gzip.compress(reply.body) + b"\0garbage", headers=headers)
    )


def escaped_twice() -> Fault:
    """Tokens have an & for each |, written &amp;amp; in the answers; back they must come with &."""

    def change(request: Request, reply: Reply) -> Reply:
        sent = request.arguments.get("resumptionToken")
        if sent is not None:
            if "&amp;" in sent:
                return request.provider.error(request, "badResumptionToken")
            meant = {**request.arguments, "resumptionToken": sent.replace("&", "|")}
            reply = request.provider.answer(replace(request, arguments=meant))
        token = (reply.token or "").replace("|", "&amp;amp;")
        return replace(reply, body=_retokened(reply.body, token)) if reply.token else reply

    return _on_lists(change)


def long_tokens(length: int = 100_000) -> Fault:
    """Tokens that no URL can hold."""
    return _on_lists(
        lambda request, reply: (
            replace(reply, body=_retokened(reply.body, "t" * length)) if reply.token else reply
        )
    )


def error_at(offset: int, code: str, verb: str = "ListRecords", times: int = 10**9) -> Fault:
    """An error of that code in the place of the page at that offset."""

    def change(request: Request, reply: Reply) -> Reply:
        token = request.arguments.get("resumptionToken", "|0")
        at = int(re.split(r"[+|]", token)[-1])
        if at != offset or request.provider.counts[f"{request.path}?{request.raw_query}"] > times:
            return reply
        return request.provider.error(request, code)

    return _on_lists(change, verb=verb)


def version_one() -> Fault:
    """A repository of OAI-PMH 1.1, from before 2002."""

    def fault(request: Request, reply: Reply) -> Reply:
        if any(len(request.arguments.get(name, "")) > 10 for name in ("from", "until")):
            return Reply(b"bad date", 400, {"Content-Type": "text/plain"})
        verb = request.verb
        inner = re.search(rf"<{verb}>(.*)</{verb}>".encode(), reply.body, re.DOTALL)
        if inner is None and b"noRecordsMatch" not in reply.body:
            return Reply(b"bad request", 400, {"Content-Type": "text/plain"})
        content = inner[1] if inner else b""
        content = re.sub(rb"<(granularity|earliestDatestamp|deletedRecord)>.*?</\1>", b"", content)
        content = content.replace(b"<protocolVersion>2.0<", b"<protocolVersion>1.1<")
        content = re.sub(rb"<datestamp>(.{10})[^<]*<", rb"<datestamp>\1<", content)
        content = content.replace(b'<record><header status="deleted">', b'<record status="deleted"><header>')
        content = re.sub(rb"<resumptionToken[^>]*>", b"<resumptionToken>", content)
        content = content.replace(b"<resumptionToken></resumptionToken>", b"")
        if verb == "ListIdentifiers":
            content = re.sub(rb"<header( [^>]*)?><identifier>([^<]*).*?</header>",
                             rb"<identifier\1>\2</identifier>", content)  # fmt: skip
        moment = request.provider.now.replace("Z", "+00:00")
        return Reply(
            f'<?xml version="1.0" encoding="UTF-8"?>\n<{verb} '
            f'xmlns="http://www.openarchives.org/OAI/1.1/OAI_{verb}"><responseDate>{moment}</responseDate>'
            f"<requestURL>{escape(request.provider.url)}</requestURL>{content.decode()}</{verb}>".encode()
        )

    return fault


def broken_verb(verb: str, code: int = 500) -> Fault:
    def fault(request: Request, reply: Reply) -> Reply:
        return Reply(b"oops", code, {"Content-Type": "text/plain"}) if request.verb == verb else reply

    return fault


def errors_with_status(code: int = 404) -> Fault:
    """OAI-PMH errors under an HTTP status of their own."""
    return lambda q, r: replace(r, status=code) if b"<error" in r.body else r


def barren_tokens(answer: str = "noRecordsMatch", after: int = 1) -> Fault:
    """Tokens bring nothing, from some page on: an error code, a status, or an empty list."""

    def change(request: Request, reply: Reply) -> Reply:
        offset = int(re.split(r"[+|]", request.arguments.get("resumptionToken", "0"))[-1])
        if offset < after * request.provider.page:
            return reply
        if answer.isdigit():
            return Reply(b"not for you", int(answer), {"Content-Type": "text/plain"})
        if answer == "":
            return request.provider._frame(request, f"<{request.verb}/>")
        return request.provider.error(request, answer)

    return _on_lists(change)


def token_to(request: Request, end: str) -> str:
    """The token by which a list goes on from some place."""
    given = request.arguments.get("resumptionToken", "").split("|")
    asked = (
        given[2:5] if len(given) == 6 else [request.arguments.get(n, "") for n in ("from", "until", "set")]
    )
    return f"<resumptionToken>{'|'.join(['t', request.verb, *asked, end])}</resumptionToken>"


def compressed(pack: Callable[[bytes], bytes], says: str = "") -> Fault:
    """Answers that are compressed otherwise than they say."""

    def change(request: Request, reply: Reply) -> Reply:
        headers = {**reply.headers, "Content-Encoding": says} if says else reply.headers
        return replace(reply, body=pack(reply.body), headers=headers)

    return _on_lists(change)


def malformed_record(identifier: str, single: bool = False) -> Fault:
    """One record whose mark-up is broken on lists; alone it is sound unless `single`."""

    def fault(request: Request, reply: Reply) -> Reply:
        if request.verb == "ListRecords" or (single and request.verb == "GetRecord"):
            for r in reply.records:
                if r.identifier == identifier:
                    sound = record(r)
                    bad = sound.replace("</dc:title>", "</dc:titel>")
                    return replace(reply, body=reply.body.replace(sound.encode(), bad.encode()))
        return reply

    return fault


def dead(verbs: Iterable[str] = ("ListRecords",)) -> Fault:
    """No answer but an error, for ever."""
    return lambda q, r: Reply(b"", 500, {}) if q.verb in tuple(verbs) else r


def http_one_zero() -> Fault:
    """HTTP/1.0, closed by the end of the connection."""

    def act(reply: Reply) -> Callable[[BaseHTTPRequestHandler], None]:
        def doing(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\n" + reply.body)
            handler.close_connection = True

        return doing

    return lambda request, reply: replace(reply, act=act(reply)) if reply.status == 200 else reply


def wants_its_cookie() -> Fault:
    """Whoever does not send the cookie is sent round again with it."""

    def act(reply: Reply) -> Callable[[BaseHTTPRequestHandler], None]:
        def doing(handler: BaseHTTPRequestHandler) -> None:
            known = "session=a1" in handler.headers.get("Cookie", "")
            body = reply.body if known else b""
            handler.send_response(reply.status if known else 302)
            if not known:
                handler.send_header("Set-Cookie", "session=a1; Path=/; HttpOnly")
                handler.send_header("Location", handler.path)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        return doing

    return lambda request, reply: replace(reply, act=act(reply))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
