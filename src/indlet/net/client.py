"""One source over HTTP: one request at a time, bounded in bytes, time and reach. Whatever fails says how."""

from __future__ import annotations

import base64
import html
import ipaddress
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit

from indlet import __version__
from indlet import datestamps as dates
from indlet.errors import SettingsError
from indlet.net import decompress
from indlet.net.connection import (
    AnswerBounds,
    AnswerTooLong,
    ConnectingTooLong,
    Connections,
    NotConnected,
    Reply,
    Transport,
    request_to,
)
from indlet.net.cookies import Cookies
from indlet.net.reach import KnownPublic, OutOfReach, Reach, Resolve, addresses, origin_of
from indlet.net.settings import Harvest, without_credentials

if TYPE_CHECKING:
    from indlet.net.trouble import Trouble

USER_AGENT: Final = f"indlet/{__version__}"
REDIRECTS: Final = 8
# A list must name identity (OAI-PMH 2.0, section 3.1.3). Within one machine compression only costs.
ACCEPT: Final = "zstd, gzip;q=0.8, identity;q=0.5"
ACCEPT_LOOPBACK: Final = "identity, zstd;q=0.5, gzip;q=0.4"
# A request may take this many times the timeout in all, however busily its bytes drip.
PATIENCE: Final = 30.0
# Its headers may take this many times the limit of silence.
HEAD_PATIENCE: Final = 4.0
# Past this length it is the length that is wrong with a URL.
LONG_URL: Final = 8000
# Fewer bytes a second than this are not an answer under way.
DRIP: Final = 100
SMALL: Final = 1 << 14  # smaller pieces of a body are joined
NEAR: Final = 1 << 12  # bytes at the ends of a body where its root begins and ends
# How long more is waited for, where a document stops before its end though its body is as long as announced.
REST_SECONDS: Final = 1.0

_LATER: Final = (429, 503)
_WHOLE = re.compile(rb"</(?:[\w.-]{1,50}:)?OAI-PMH\s{0,50}>\s{0,50}$", re.IGNORECASE)
_BEGUN = re.compile(rb"<(?:[\w.-]{1,50}:)?OAI-PMH[\s>]", re.IGNORECASE)
_ENDED = re.compile(rb"</(?:[\w.-]{1,50}:)?OAI-PMH\s{0,50}>", re.IGNORECASE)
_CHARSET = re.compile(r";\s{0,20}charset\s{0,20}=\s{0,20}[\"']?([\w.:+-]{1,100})", re.IGNORECASE)
# Nothing of the kind here, which need not hold for other verbs.
_ABSENT: Final = (404, 410)
_UNSUITABLE: Final = (400, 405, 413, 414, 416, 422)


class NoAnswer(Exception):
    """A request brought nothing that can be used."""

    def __init__(
        self,
        trouble: Trouble,
        reason: str,
        retry_after: float | None = None,
        response_date: str = "",
        *,
        connecting: bool = False,
    ) -> None:
        from indlet.net.trouble import Failed  # a mirror without trouble need not load it

        super().__init__(reason)
        self.connecting = connecting  # another address of the same host may do
        self.failed = Failed(trouble, reason, retry_after, response_date=response_date)


def released(error: NoAnswer) -> NoAnswer:
    """The same error without what led to it: the frames of its traceback hold the bodies of answers.

    They would stay until the next collection of cycles, which a harvest puts off.
    """
    found: BaseException | None = error
    while found is not None:
        traceback.clear_frames(found.__traceback__)
        found = found.__cause__ or found.__context__
    failed = error.failed
    return NoAnswer(failed.trouble, str(error), failed.retry_after, failed.response_date)


@dataclass(slots=True)
class HttpAnswer:
    body: bytes
    charset: str = ""
    content_type: str = ""
    date: str = ""  # the Date header, as a datestamp
    url: str = ""
    status: int = 200
    wire: int = 0  # bytes received, compressed as they came
    repairs: Counter[str] = field(default_factory=Counter)
    trouble: NoAnswer | None = None  # what the status means, should the body not tell more
    etag: str = ""
    modified: str = ""  # the Last-Modified header
    link: str = ""  # the Link headers, joined


_UNCONDITIONAL: Final[Mapping[str, str]] = {}


class Client:
    """HTTP to one source. `clock` and `sleep` are the world's, unless a test gives its own."""

    def __init__(
        self,
        harvest: Harvest,
        *,
        token: str = "",
        user: str = "",
        password: str = "",
        delay_seconds: float = 0.0,
        transport: Transport | None = None,
        certificate: str = "",
        resolve: Resolve = addresses,
        known_public: KnownPublic | None = None,
        home: str = "",
        around: Callable[[str], AbstractContextManager[None]] = lambda url: nullcontext(),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._harvest = harvest
        self._authorization = _authorization(token, user, password)
        self._certificate = certificate  # PEM file with our certificate and its key, for the source alone
        self._reach = Reach(harvest.allow_private, bool(harvest.proxy), resolve, clock, known_public)
        self._delay = delay_seconds
        self._clock = clock
        self._sleep = sleep
        self._last = float("-inf")
        self._home = origin_of(home) if home else ""  # who gets the credentials: else the first asked
        self._around = around  # each request to a URL, redirects too, runs inside of it
        self._cookies = Cookies()
        self.requests = 0
        self.wire = 0
        self._headers = {
            "User-Agent": _user_agent(harvest),
            "Accept": "text/xml, application/xml;q=0.9, */*;q=0.5",
            "Connection": "keep-alive",
        }
        if harvest.from_email:
            self._headers["From"] = harvest.from_email
        # Neither HTTP_PROXY nor .netrc of the environment counts.
        self._connections = Connections(harvest.timeout_seconds, harvest.stall_seconds, harvest.proxy)
        self._send = transport or self._connections

    def close(self) -> None:
        self._connections.close()

    def ask(self, base_url: str, arguments: Mapping[str, str], spelling: str | None = None) -> HttpAnswer:
        """The answer to an OAI-PMH request; `spelling` replaces the encoded form of the resumption token."""
        return self.get(oai_url(base_url, arguments, spelling), self._harvest.response_bytes)

    def get(
        self, url: str, limit: int, media: str = "", conditions: Mapping[str, str] = _UNCONDITIONAL
    ) -> HttpAnswer:
        """The answer to a GET, redirects followed, decompressed, no larger than `limit`.

        `conditions` are headers such as If-None-Match; where they hold, the answer's status is 304.
        """
        try:
            return self._get(url, limit, media, conditions)
        except NoAnswer as e:
            refused = released(e)
        raise refused

    def _get(self, url: str, limit: int, media: str, conditions: Mapping[str, str]) -> HttpAnswer:
        pause = self._last + self._delay - self._clock()
        if pause > 0:
            self._sleep(pause)
        url = without_credentials(url)[0]
        query = urlsplit(url).query
        for _ in range(REDIRECTS + 1):
            with self._around(url):
                answer, onward = self._from_any(url, self._addresses(url), limit, media, conditions)
            if not onward:
                return answer
            try:
                target = without_credentials(urljoin(url, onward))[0]
                # Repositories redirect to a base URL without the request; a document's address is complete.
                if "verb=" in query and not urlsplit(target).query:
                    target = f"{target.split('#')[0]}?{query}"
            except ValueError as e:
                raise NoAnswer("refused", f"{url} leads to {onward[:200]!r}, which is no URL: {e}") from None
            if urlsplit(url).scheme == "https" and urlsplit(target).scheme == "http":
                raise NoAnswer(
                    "refused", f"{url} leads from https to {target}; harvest that URL if you trust it"
                )
            url = target
        raise NoAnswer("refused", f"{url}: redirects go in circles")

    def _addresses(self, url: str) -> tuple[str, ...]:
        try:
            return self._reach.addresses(url)
        except OutOfReach as e:
            raise NoAnswer("refused", str(e)) from None
        except OSError as e:
            raise NoAnswer("unreachable", f"{url}: no such host: {_said(e)}") from e

    def _from_any(
        self, url: str, addresses: tuple[str, ...], limit: int, media: str, conditions: Mapping[str, str]
    ) -> tuple[HttpAnswer, str]:
        """From the first of a host's addresses that can be connected to."""
        if self._harvest.proxy:
            return self._once(url, "", limit, media, conditions)
        for address in addresses[:-1]:
            try:
                return self._once(url, address, limit, media, conditions)
            except NoAnswer as e:
                if not e.connecting:
                    raise
        return self._once(url, addresses[-1], limit, media, conditions)

    def _once(
        self, url: str, address: str, limit: int, media: str, conditions: Mapping[str, str]
    ) -> tuple[HttpAnswer, str]:
        """The answer of one address, or where it leads on to."""
        host = urlsplit(url).hostname or ""
        plain = _loopback(host) and not self._harvest.compress_loopback
        headers = self._headers | {"Accept-Encoding": ACCEPT_LOOPBACK if plain else ACCEPT, **conditions}
        if media:
            headers["Accept"] = media
        origin = origin_of(url)
        self._home = self._home or origin
        ours = origin == self._home
        if self._authorization and ours:
            headers["Authorization"] = self._authorization
        if cookies := self._cookies.told(origin):
            headers["Cookie"] = cookies
        self.requests += 1
        try:
            begun = self._clock()
            request = request_to(
                url, address, headers, self._bounds(limit), self._certificate if ours else ""
            )
            with closing(self._send(request)) as reply:
                self._cookies.keep(origin, reply.fields)
                if onward := reply.onward:
                    self._read(reply, limit, begun, url)  # so that the connection can be used again
                    return HttpAnswer(b"", url=url), onward
                repairs: Counter[str] = Counter()
                raw = self._read(reply, limit, begun, url, repairs)
                answer = self._answer(reply, raw, limit, url)
                answer.repairs += repairs
                return answer, ""
        except ConnectingTooLong as e:
            waited = f"{self._harvest.timeout_seconds:g} s"
            self._reach.forget()
            raise NoAnswer("silent", f"{url}: no connection within {waited}", connecting=True) from e
        except NotConnected as e:
            self._reach.forget()
            raise NoAnswer("unreachable", f"{url}: cannot connect: {_said(e)}", connecting=True) from e
        except ValueError as e:
            # A token that is too long for a URL is a trouble of the list, not of the source.
            trouble: Trouble = "unsuitable" if len(url) > LONG_URL else "refused"
            raise NoAnswer(trouble, f"{url[:200]}: not a URL that can be fetched: {e}") from e
        except TimeoutError as e:
            said = (
                _said(e) if isinstance(e, AnswerTooLong) else f"silent for {self._harvest.stall_seconds:g} s"
            )
            raise NoAnswer("silent", f"{url}: {said}") from e
        except OSError as e:
            raise NoAnswer("interrupted", f"{url}: the connection broke: {_said(e)}") from e
        finally:
            self._last = self._clock()

    def _bounds(self, limit: int) -> AnswerBounds:
        harvest = self._harvest
        return AnswerBounds(HEAD_PATIENCE * harvest.stall_seconds, PATIENCE * harvest.timeout_seconds, limit)

    def _read(
        self,
        reply: Reply,
        limit: int,
        begun: float,
        url: str,
        repairs: Counter[str] | None = None,
    ) -> bytes:
        """The body as it comes. With `repairs`, an OAI-PMH document is whole when it has its end, and not
        before, whatever length was announced: there are servers that count characters."""
        chunks = list[bytes]()
        try:
            self._gather(reply, limit, begun, url, chunks)
        except OSError:
            if repairs is None or not _whole(b"".join(chunks), reply.get("content-encoding"), limit):
                raise
            repairs["bodies shorter than announced"] += 1
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if repairs is None or not _torn(body) or not (rest := self._rest(reply, body, limit)):
            return body
        repairs["bodies longer than announced"] += 1
        return body + rest

    def _rest(self, reply: Reply, body: bytes, limit: int) -> bytes:
        """What is missing of an OAI-PMH document, if it comes behind the length that was announced."""
        rest, tail = bytearray(), body[-100:]
        for piece in reply.beyond(min(REST_SECONDS, self._harvest.stall_seconds)):
            rest += piece
            self.wire += len(piece)
            tail = (tail + piece)[-100:]
            if len(body) + len(rest) > limit:
                break
            if _WHOLE.search(tail):
                return bytes(rest)
        return b""

    def _gather(self, reply: Reply, limit: int, begun: float, url: str, chunks: list[bytes]) -> None:
        size, harvest = 0, self._harvest
        small = bytearray()  # a million chunks of two bytes would take a hundred megabytes
        try:
            for chunk in reply.pieces:
                size += len(chunk)
                self.wire += len(chunk)
                if size > limit:
                    raise NoAnswer("large", f"{url}: an answer of more than {limit} bytes")
                took = self._clock() - begun
                if took > harvest.stall_seconds and size < DRIP * took:
                    raise NoAnswer("silent", f"{url}: {size} bytes in {took:.0f} s")
                if len(chunk) >= SMALL and not small:
                    chunks.append(chunk)
                    continue
                small += chunk
                if len(small) >= SMALL:
                    chunks.append(bytes(small))
                    small.clear()
        finally:
            if small:
                chunks.append(bytes(small))

    def _answer(self, reply: Reply, raw: bytes, limit: int, url: str) -> HttpAnswer:
        status = reply.status
        trouble = _meaning(reply, url)
        try:
            text, repairs = decompress.plain(raw, reply.get("content-encoding"), limit)
        except decompress.TooLarge as e:
            raise NoAnswer("large", f"{url}: an answer that unpacks to more than {limit} bytes") from e
        except decompress.Damaged as e:
            raise trouble or NoAnswer("interrupted", f"{url}: {e}") from e
        moment = dates.http_date(reply.get("date"))
        return HttpAnswer(
            text,
            stated_charset(reply.get("content-type")),
            reply.get("content-type").split(";")[0].strip().lower(),
            dates.write(moment, True) if moment else "",
            url,
            status,
            len(raw),
            repairs,
            trouble,
            reply.get("etag"),
            reply.get("last-modified"),
            reply.get("link"),
        )


def _whole(raw: bytes, coding: str, limit: int) -> bool:
    """Whether a body, compressed or not, is an OAI-PMH document with its end."""
    try:
        text, _ = decompress.plain(raw, coding, limit)
    except (decompress.Damaged, decompress.TooLarge):
        return False
    return _WHOLE.search(text[-100:]) is not None


def _torn(body: bytes) -> bool:
    """Whether a body begins as an OAI-PMH document, and does not end as one."""
    begun = _BEGUN.search(body, 0, NEAR) is not None
    return begun and _ENDED.search(body, max(len(body) - NEAR, 0)) is None


def _user_agent(harvest: Harvest) -> str:
    named = harvest.user_agent
    if not named.isascii() or not named.isprintable() or len(named) > 500:
        raise SettingsError("harvest.user_agent: write it in at most 500 printable ASCII characters")
    return named or USER_AGENT


def _authorization(token: str, user: str, password: str) -> str:
    if token:
        return f"Bearer {token}"
    if not user and not password:
        return ""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def oai_url(base_url: str, arguments: Mapping[str, str], spelling: str | None = None) -> str:
    """A base URL, which may have a query of its own, with the arguments of a request."""
    base = base_url.split("#")[0]
    pairs = [
        f"{name}={spelling if name == 'resumptionToken' and spelling is not None else quote(value, safe='')}"
        for name, value in arguments.items()
    ]
    joint = "" if base.endswith(("?", "&")) else "&" if "?" in base else "?"
    return base + joint + "&".join(pairs)


def spellings(token: str) -> list[str]:
    """The ways in which a token may have to be written into a URL, the right one first."""
    found = [quote(token, safe="")]
    if " " in token:
        found.append(quote(token.replace(" ", "+"), safe=""))  # its + was decoded once too often
    if (meant := html.unescape(token)) != token:
        found.append(quote(meant, safe=""))  # it was escaped twice
    if "%" in token:
        found.append(quote(token, safe="%"))  # it came encoded already
    if found[0] != token:
        found.append(quote(found[0], safe=""))  # the remote decodes twice
        found.append(quote(token, safe="+/=:,;@!$*'()~"))  # the remote does not decode
    return list(dict.fromkeys(found))


def _meaning(reply: Reply, url: str) -> NoAnswer | None:
    status = reply.status
    if 200 <= status < 300:
        return None
    # A date is one of the server's clock, which may be years off.
    now = dates.http_date(reply.get("date")) or datetime.now(UTC)
    wait = dates.retry_after(reply.get("retry-after"), now)
    said = f"{url}: HTTP status {status}"
    if status in _LATER:
        return NoAnswer("later", said, wait)
    if status >= 500:
        return NoAnswer("broken", said, wait)
    if status in (408, 425):
        return NoAnswer("interrupted", said, wait)
    if status in _ABSENT:
        return NoAnswer("fatal", said)
    return NoAnswer("unsuitable" if status in _UNSUITABLE else "refused", said)


def stated_charset(content_type: str) -> str:
    """The charset parameter of a media type; empty if there is none."""
    found = _CHARSET.search(content_type)
    return found[1].lower() if found else ""


def _said(error: Exception) -> str:
    """What an error says, without the number that the system gives it."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
