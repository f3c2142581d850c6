"""The files below a folder that a web server gives out: found on disk, judged by the server's own answers."""

from __future__ import annotations

import contextlib
import hashlib
import mimetypes
import os
import stat
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from indlet.errors import ExtractionError
from indlet.model import JsonObject
from indlet.provider.hierarchy import Entry, Listing, Local, Served, Skip, TreeRules, explain
from indlet.provider.site.ask import HeadAnswer, WebServer
from indlet.provider.site.ignore import IndexIgnore
from indlet.provider.site.judge import Finding, Verdict, judge
from indlet.provider.site.rules import RulesMet
from indlet.settings import Site

ASKED: Final = 2000  # files that are asked for together
# An address of documentation (RFC 5737) that nobody has: rules for addresses treat the crawl as a stranger.
STRANGER: Final = "192.0.2.1"
# Header fields that differ from answer to answer while nothing has changed.
VOLATILE: Final = frozenset(
    ("date", "age", "expires", "connection", "keep-alive", "set-cookie", "x-request-id", "server-timing",
     "strict-transport-security", "alt-svc")
)  # fmt: skip
_TEXTS: Final = frozenset(
    ("application/pdf", "application/xml", "application/xhtml+xml", "application/rtf", "application/msword",
     "application/epub+zip", "application/marc", "application/mbox", "application/sgml", "message/rfc822")
)  # fmt: skip
_OFFICE: Final = ("application/vnd.openxmlformats", "application/vnd.oasis.opendocument")
_NO_TEXTS: Final = frozenset(("text/css", "text/javascript"))
# Python's own table, not the machine's: records must not differ between machines.
_TYPES = mimetypes.MimeTypes()


class SiteTree:
    """A `Tree` of what the server gives. A file that it refuses to strangers is there, but guarded."""

    local = True
    ahead = 0

    def __init__(self, site: Site, exclude: tuple[Path, ...]) -> None:
        self._site = site
        root = Path(site.root)
        self._files = Local(root, TreeRules(exclude=tuple(path.resolve() for path in exclude)))
        self._root = Path(os.path.realpath(root))
        self._met = RulesMet(site)
        self._ignore = IndexIgnore(self._root, site.ignore, map(Path, site.config))
        self._server = WebServer(site.url, site.server, site.connections)
        self._base = urlsplit(site.url).path.rstrip("/")
        self._headers = {"X-Forwarded-For": STRANGER}
        if site.authorization:
            self._own = {**self._headers, "Authorization": site.authorization}
        else:
            self._own = {}

    def identity(self) -> str:
        return self._files.identity()

    def facts(self) -> JsonObject:
        return {"rules": self._met.states}

    def close(self) -> None:
        self._files.close()
        self._server.close()

    def walk(self) -> Iterator[Listing]:
        waiting: list[Listing] = []
        for listing in self._files.walk():
            self._met.enter(listing.folder)
            waiting.append(self._allowed(listing))
            if sum(len(one.files) for one in waiting) >= ASKED:
                yield from self._judged(waiting)
                waiting = []
        yield from self._judged(waiting)

    def _allowed(self, listing: Listing) -> Listing:
        """The listing without what is left out whatever the server says."""
        files = []
        for entry in listing.files:
            reason = self._refusal(entry)
            if reason:
                listing.skipped.append(Skip(entry.path, reason))
            else:
                files.append(entry)
        return listing._replace(files=files)

    def _refusal(self, entry: Entry) -> str:
        if self._ignore.refuses(entry.path):
            return "matches an IndexIgnore pattern"
        if self._handled(entry) and not self._site.dynamic:
            return "a handler's source, which is never given out; dynamic = true takes what the handler makes"
        try:
            if not stat.S_IMODE((self._root / entry.path).stat().st_mode) & 0o444:
                return "unreadable: nobody has the right to read it"
            with (self._root / entry.path).open("rb"):
                return ""
        except OSError as e:
            return f"unreadable: {explain(e)}"

    def _handled(self, entry: Entry) -> bool:
        name = entry.name.lower()
        # Apache takes every extension of a name: x.php.bak is run as well.
        return any(f".{part}" in self._site.handlers for part in name.split(".")[1:])

    def _judged(self, listings: Sequence[Listing]) -> Iterator[Listing]:
        files = [entry for listing in listings for entry in listing.files]
        answers = iter(self._server.heads([self.path(entry) for entry in files], self._headers))
        for listing in listings:
            taken = []
            for entry in listing.files:
                found = self._settled(entry, next(answers))
                if isinstance(found, Entry):
                    taken.append(found)
                else:
                    listing.skipped.append(found)
            yield listing._replace(files=taken)

    def path(self, entry: Entry) -> str:
        return f"{self._base}/{quote(os.fsencode(entry.path))}"

    def _settled(self, entry: Entry, answer: HeadAnswer) -> Entry | Skip:
        """The entry as the server gives it, or why it does not."""
        if self._handled(entry) and answer.status == 200:
            return self._rendered(entry, answer)
        verdict = judge(entry, answer)
        if verdict.kind in (Finding.OTHER, Finding.DOUBT):
            again = self._files.look(entry)
            if again is None or again[:4] != entry[:4]:
                return Skip(entry.path, "changed while it was looked at", held=True)
        if verdict.kind is Finding.DOUBT:
            verdict = self._compared(entry)
        if verdict.kind is Finding.OTHER and self._site.dynamic:
            return self._rendered(entry, answer)
        if verdict.kind is Finding.TAKEN:
            return self._entry(entry, answer.headers)
        if verdict.kind is Finding.GUARDED and self._handled(entry):
            return Skip(entry.path, f"a handler's source, and {verdict.reason}")
        if verdict.kind is Finding.GUARDED:
            return self._entry(entry, self._own_headers(entry), guarded=True)
        return Skip(entry.path, verdict.reason, held=verdict.kind is Finding.HELD)

    def _own_headers(self, entry: Entry) -> tuple[tuple[str, str], ...]:
        """What the server tells the crawl's own credentials of a guarded file; nothing without any."""
        if self._own:
            (answer,) = self._server.heads([self.path(entry)], self._own)
            if judge(entry, answer).kind is Finding.TAKEN:
                return answer.headers
        return ()

    def _compared(self, entry: Entry) -> Verdict:
        """A GET settles what length and time do not."""
        try:
            with (
                self._server.get(self.path(entry), self._headers) as (answer, body),
                (self._root / entry.path).open("rb") as file,
            ):
                same = answer.status == 200 and all(file.read(len(data)) == data for data in body)
                if same and not file.read(1):
                    return Verdict(Finding.TAKEN)
        except OSError as e:
            return Verdict(Finding.HELD, f"cannot be compared: {explain(e)}")
        return Verdict(Finding.OTHER, "the server gives other bytes than the file has")

    def _rendered(self, entry: Entry, answer: HeadAnswer) -> Entry | Skip:
        """What a handler makes, as the server gives it to a stranger; its digest tells whether it changed."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._server.get(self.path(entry), self._headers) as (answer, body):
                for data in body:
                    digest.update(data)
                    size += len(data)
                    if size > self._site.extract_bytes:
                        return Skip(entry.path, "what its handler makes is too large (extract_bytes)")
        except OSError as e:
            return Skip(entry.path, f"cannot be fetched: {explain(e)}", held=True)
        if answer.status != 200:
            return Skip(entry.path, f"the server answers {answer.status}", held=True)
        made = self._entry(entry._replace(size=size), answer.headers, rendered=True)
        return made._replace(etag=f"{digest.hexdigest()}-{made.etag.rpartition('-')[2]}")

    def _entry(
        self,
        entry: Entry,
        headers: tuple[tuple[str, str], ...],
        *,
        guarded: bool = False,
        rendered: bool = False,
    ) -> Entry:
        headers = lasting(headers)
        told = blake2b(repr((headers, guarded, rendered)).encode(), digest_size=8).hexdigest()
        kind = HeadAnswer(200, headers).get("content-type").partition(";")[0].strip().lower()
        kind = kind or _TYPES.guess_type(entry.name)[0] or "application/octet-stream"
        read = self._site.extract and _is_text(kind) and entry.size <= self._site.extract_bytes
        served = Served(headers, kind, guarded, rendered, read)
        return entry._replace(etag=f"{entry.etag}-{told}", served=served)

    def look(self, entry: Entry) -> Entry | None:
        found = self._files.look(entry)
        if found is not None and entry.served is not None and entry.served.rendered:
            return entry
        return found

    def fetch(self, entry: Entry, folder: Path, limit: int) -> Path:
        if entry.served is None or not entry.served.rendered:
            return self._files.fetch(entry, folder, limit)
        target = folder / f"{blake2b(os.fsencode(entry.path), digest_size=12).hexdigest()}.html"
        with (
            self._server.get(self.path(entry), self._headers) as (answer, body),
            contextlib.ExitStack() as undo,
            target.open("wb") as file,
        ):
            undo.callback(target.unlink)
            if answer.status != 200:
                raise OSError(f"the server answers {answer.status}")
            for data in body:
                file.write(data)
                if file.tell() > limit:
                    raise ExtractionError(f"larger than the limit of {limit} bytes (file_bytes)")
            undo.pop_all()
        return target


def lasting(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Header fields that stay the same while nothing has changed."""
    return tuple((name, value) for name, value in headers if name.lower() not in VOLATILE)


def _is_text(kind: str) -> bool:
    if kind in _NO_TEXTS:
        return False
    return kind.startswith(("text/", *_OFFICE)) or kind in _TEXTS
