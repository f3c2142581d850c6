"""The files below a folder that a web server gives out: found on disk, judged by the server's own answers."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import mimetypes
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from indlet.errors import ExtractionError
from indlet.model import JsonObject
from indlet.provider.hierarchy import Entry, Listing, Local, Skip, TreeRules, explain, no_etag
from indlet.provider.serve.record_filter import STRANGER
from indlet.settings import Site
from indlet.site.ask import HeadAnswer, Pace, WebServer, is_this_machine, outward_address
from indlet.site.ignore import IndexIgnore
from indlet.site.judge import BUSY, REFUSED, Finding, Verdict, is_stated, is_text, judge, lasting, media_type
from indlet.site.rules import RulesMet

_log = logging.getLogger("indlet.crawl")
ASKED: Final = 2000  # files that are asked for together
_SAMPLES: Final = 3  # refused files that are asked for again, at either end
_REST: Final = 0.1  # seconds before these are asked for
_TRIED: Final = 100  # requests that see whether the server tells addresses apart
_LIMITED: Final = 429  # what stands for the answer of a server that limits requests all the time
# Python's own table, not the machine's: records must not differ between machines.
_TYPES = mimetypes.MimeTypes()
# In the state of a site: whether the server was seen to believe the address that it is told.
BELIEVED: Final = "believes_addresses"
COMPARE_DAYS: Final = 10  # within which each file of a site is compared with what the server gives


class Served(NamedTuple):
    """What a web server says of a file."""

    headers: tuple[tuple[str, str], ...]
    media_type: str
    rendered: bool = False  # a handler makes what the server gives
    digest: str = ""  # SHA-256 of what a handler made


def _is_due(path: str) -> bool:
    """Whether a file that was compared with what the server gives is compared again today.

    An alias may come to give another file of the same length and time, which no answer to HEAD tells.
    """
    return (zlib.crc32(os.fsencode(path)) + int(time.time() // 86400)) % COMPARE_DAYS == 0


class SiteTree:
    """A `Tree` of what the server gives. A file that it refuses to strangers is there, but guarded."""

    local = True
    ahead = 0

    def __init__(
        self,
        site: Site,
        exclude: tuple[Path, ...],
        known_etag: Callable[[str], str] = no_etag,
        inner: tuple[str, ...] = (),
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        """`inner`: quoted paths of folders that other sites serve. `wait`: how to pause for a busy server."""
        self._site, self._known_etag, self._inner = site, known_etag, inner
        root = Path(site.root)
        self._files = Local(root, TreeRules(exclude=tuple(path.resolve() for path in exclude)))
        self._root = Path(os.path.realpath(root))
        self._met = RulesMet(site)
        self._ignore = IndexIgnore(self._root, site.ignore, map(Path, site.config), root.absolute())
        self._wait, pace = wait, Pace(site.requests_per_second, wait)
        self._server = WebServer(site.url, site.server, site.connections, pace)
        asked = site.server or site.url
        self._outward = outward_address(asked)
        # The same server, to which this machine is not "local".
        self._from_outside = (
            WebServer(site.url, site.server, site.connections, pace, self._outward) if self._outward else None
        )
        self._seen_as_local = not self._outward and is_this_machine(asked)
        self._given = ""  # a path that the server has given to the crawl
        self._believed = False  # whether the server is known to believe the address that it is told
        self._doubted = 0
        self._base = urlsplit(site.url).path.rstrip("/")
        self._headers = {"X-Forwarded-For": STRANGER}
        own = {"Authorization": site.authorization}
        self._own = {**self._headers, **own} if site.authorization else {}

    def identity(self) -> str:
        return self._files.identity()

    def facts(self) -> JsonObject:
        return {"rules": self._met.states, "selective": self._met.selective, BELIEVED: self._believed}

    def close(self) -> None:
        self._files.close()
        self._server.close()
        if self._from_outside is not None:
            self._from_outside.close()

    def walk(self) -> Iterator[Listing]:
        waiting: list[Listing] = []
        for listing in self._files.walk():
            self._met.enter(listing.folder)
            waiting.append(self._allowed(listing))
            if sum(len(one.files) for one in waiting) >= ASKED:
                yield from self._judged(waiting)
                waiting = []
        yield from self._judged(waiting)
        if self._doubted:
            _log.warning(
                "%s: %d files are below rules for addresses, and nothing shows that the server believes "
                "X-Forwarded-For from here: they are not public. See  indlet site --print apache",
                self._site.url, self._doubted,
            )  # fmt: skip
        if self._seen_as_local and not self._believed:
            _log.warning(
                "%s: the server may take the crawl for this machine itself: rules such as Require local "
                "count only in .htaccess and in files named in config; name those, or ask the server at "
                "127.0.0.1 on a machine that has another address too",
                self._site.url,
            )

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
        if self._inner and f"{quote(os.fsencode(entry.path))}/".startswith(self._inner):
            return "another site serves this address"
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
        answers = self._answers(files)
        self._try_addresses(files, answers)
        with ThreadPoolExecutor(max(1, self._site.connections)) as pool:
            found = pool.map(self._settled, files, answers)
            for listing in listings:
                taken = []
                for _ in listing.files:
                    one = next(found)
                    if isinstance(one, Entry):
                        taken.append(one)
                    else:
                        listing.skipped.append(one)
                yield listing._replace(files=taken)

    def path(self, entry: Entry) -> str:
        return f"{self._base}/{quote(os.fsencode(entry.path))}"

    # Whether the server answers as it answers a stranger

    def _answers(self, files: Sequence[Entry]) -> list[HeadAnswer]:
        """The server's answers to a stranger. One that limits bursts of requests is asked again, slower; what
        it then still holds back counts as unknown."""
        paths = [self.path(entry) for entry in files]
        found = self._stranger_heads(paths)
        self._given = next((p for p, one in zip(paths, found, strict=True) if one.status == 200), self._given)
        while refused := [n for n, one in enumerate(found) if self._is_news(files[n], one)]:
            if not self._is_limited([paths[n] for n in refused]):
                break
            if not self._server.pace.slow_down():
                for n in refused:
                    found[n] = HeadAnswer(_LIMITED)
                break
            again = self._stranger_heads([paths[n] for n in refused])
            for n, answer in zip(refused, again, strict=True):
                found[n] = answer
        return found

    def _is_news(self, entry: Entry, answer: HeadAnswer) -> bool:
        """Whether an answer refuses a file that was not refused before."""
        if answer.status in BUSY:
            return True
        return answer.status in REFUSED and not self._known_etag(entry.path).rpartition("-")[2].startswith(
            "g"
        )

    def _is_limited(self, refused: Sequence[str]) -> bool:
        """Whether refusals come from the number of requests: asked again, some of them are given, or a file
        that was given before is not."""
        held_back = (*REFUSED, *BUSY)
        self._wait(_REST)  # a limit that is just used up would refuse one of the two requests for a file
        samples = dict.fromkeys((*refused[:_SAMPLES], *refused[-_SAMPLES:]))
        if any(self._status(path) not in held_back for path in samples):
            return True
        return bool(self._given) and self._status(self._given) != 200

    def _status(self, path: str) -> int:
        (answer,) = self._stranger_heads([path])
        return answer.status

    def _stranger_heads(self, paths: Sequence[str]) -> list[HeadAnswer]:
        """The answers to a stranger. Unless the server is known to believe the stranger's address, a file
        that it gives to this machine counts only if it is also given to a connection from outside."""
        found = self._server.heads(paths, self._headers)
        if self._from_outside is None or self._believed:
            return found
        given = [n for n, answer in enumerate(found) if answer.status == 200]
        outside = self._from_outside.heads([paths[n] for n in given], self._headers)
        for n, answer in zip(given, outside, strict=True):
            if answer.status != 200:
                found[n] = HeadAnswer(_as_refusal(answer.status))
        return found

    @property
    def _getting(self) -> WebServer:
        """The server as it is asked for bytes: as a stranger, from where nothing is local unless it is known
        to believe the address that it is told."""
        return self._server if self._believed or self._from_outside is None else self._from_outside

    def _try_addresses(self, files: Sequence[Entry], answers: Sequence[HeadAnswer]) -> None:
        """See whether the server tells addresses apart: whether one that a rule names and a stranger get
        different answers."""
        if self._believed:
            return
        tried: dict[tuple[str, str], None] = {}
        for entry, answer in zip(files, answers, strict=True):
            for address in self._addresses_to_try(entry, answer):
                given, key = answer.status == 200, (address, entry.path.rpartition("/")[0])
                # Files that are refused prove most: one of each folder and all of these, within bounds.
                if len(tried) >= _TRIED or (given and key in tried):
                    continue
                tried[address, key[1] if given else entry.path] = None
                told = {**self._headers, "X-Forwarded-For": address}
                if (self._server.heads([self.path(entry)], told)[0].status == 200) != given:
                    self._believed = True
                    return

    def _addresses_to_try(self, entry: Entry, answer: HeadAnswer) -> list[str]:
        """Addresses that rules for a file let in: those that are named, and, of a file that is refused by an
        unknown rule, this machine's own."""
        named = sorted(self._met.addresses(entry.path) or ())[:_SAMPLES]
        own = ["127.0.0.1", self._outward] if answer.status in REFUSED and self._outward else []
        return list(dict.fromkeys([*named, *own]))

    def _is_doubtful(self, entry: Entry) -> bool:
        """Whether a file may be given to this machine only: a rule goes by addresses, and nothing shows that
        the server believes the one that it is told."""
        if self._believed or self._met.addresses(entry.path) is None:
            return False
        self._doubted += 1
        return True

    def _settled(self, entry: Entry, answer: HeadAnswer) -> Entry | Skip:
        """The entry as the server gives it, or why it does not."""
        found = self._taken(entry, answer)
        if isinstance(found, Skip) and os.path.realpath(self._site.root) != str(self._root):
            # A deploy let the link lead to another folder: the server speaks of the files there.
            return Skip(entry.path, "the folder was replaced during the crawl", held=True)
        return found

    def _taken(self, entry: Entry, answer: HeadAnswer) -> Entry | Skip:
        if self._handled(entry) and answer.status == 200:
            return self._rendered(entry, answer)
        verdict = judge(entry, answer)
        if verdict.kind in (Finding.OTHER, Finding.DOUBT):
            again = self._files.look(entry)
            if again is None or again[:4] != entry[:4]:
                return Skip(entry.path, "changed while it was looked at", held=True)
        if verdict.kind in (Finding.DOUBT, Finding.TAKEN):
            taken = self._entry(entry, answer, guarded=self._is_doubtful(entry))
            compared = taken.etag == self._known_etag(entry.path) and not _is_due(entry.path)
            if verdict.kind is Finding.TAKEN and compared:
                return taken  # before, and neither the file nor the answer has changed
            verdict = self._compared(entry)
            if verdict.kind is Finding.TAKEN:
                return taken
        if verdict.kind is Finding.OTHER and self._site.dynamic:
            return self._rendered(entry, answer)
        if verdict.kind is Finding.GUARDED and self._handled(entry):
            return Skip(entry.path, f"a handler's source, and {verdict.reason}")
        if verdict.kind is Finding.GUARDED:
            return self._entry(entry, self._own_answer(entry), guarded=True)
        return Skip(entry.path, verdict.reason, held=verdict.kind is Finding.HELD)

    def _own_answer(self, entry: Entry) -> HeadAnswer:
        """What the server tells the crawl's own credentials of a guarded file; nothing without any."""
        if self._own:
            (answer,) = self._server.heads([self.path(entry)], self._own)
            if judge(entry, answer).kind is Finding.TAKEN:
                return answer
        return HeadAnswer(200)

    def _compared(self, entry: Entry) -> Verdict:
        """A GET settles what length and time do not: an alias may give another file of the same."""
        try:
            with (
                self._getting.get(self.path(entry), self._headers) as (answer, body),
                (self._root / entry.path).open("rb") as file,
            ):
                if answer.status != 200:
                    return Verdict(
                        Finding.HELD, f"the server answers {answer.status} where it had answered 200"
                    )
                if all(file.read(len(data)) == data for data in body) and not file.read(1):
                    return Verdict(Finding.TAKEN)
        except OSError as e:
            return Verdict(Finding.HELD, f"cannot be compared: {explain(e)}")
        return Verdict(Finding.OTHER, "the server gives other bytes than the file has")

    def _rendered(self, entry: Entry, answer: HeadAnswer) -> Entry | Skip:
        """What a handler makes, as the server gives it to a stranger; its digest tells whether it changed."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._getting.get(self.path(entry), self._headers) as (answer, body):
                for data in body:
                    digest.update(data)
                    size += len(data)
                    if size > self._site.extract_bytes:
                        return Skip(entry.path, "what its handler makes is too large (extract_bytes)")
        except OSError as e:
            return Skip(entry.path, f"cannot be fetched: {explain(e)}", held=True)
        if answer.status != 200:
            return Skip(entry.path, f"the server answers {answer.status}", held=True)
        if self._is_doubtful(entry):
            return Skip(entry.path, "rules for addresses, which the server may apply to this machine's own")
        made = self._entry(entry._replace(size=size), answer, digest=digest.hexdigest())
        return made._replace(etag=f"{digest.hexdigest()}-{made.etag.rpartition('-')[2]}")

    def _entry(self, entry: Entry, answer: HeadAnswer, *, guarded: bool = False, digest: str = "") -> Entry:
        """The entry with what the server said of it. `digest`: of what a handler made."""
        headers = lasting(answer.headers)
        if not is_stated(answer, entry.modified // 10**9):
            headers = tuple(one for one in headers if one[0].lower() != "last-modified")
        # Apache calls a tag weak for a second after a file was written.
        told = [(name, value.removeprefix("W/")) for name, value in headers]
        state = blake2b(repr((told, bool(digest))).encode(), digest_size=8).hexdigest()
        kind = media_type(answer) or _TYPES.guess_type(entry.name)[0] or "application/octet-stream"
        read = self._site.extract and is_text(kind) and entry.size <= self._site.extract_bytes
        etag = f"{entry.etag}-{'g' if guarded else 'p'}{state}"
        served = Served(headers, kind, bool(digest), digest)
        return entry._replace(etag=etag, guarded=guarded, extract=read, facts=served)

    def look(self, entry: Entry) -> Entry | None:
        found = self._files.look(entry)
        if found is not None and _is_rendered(entry):
            return entry
        return found

    def fetch(self, entry: Entry, folder: Path, limit: int) -> Path:
        if not _is_rendered(entry):
            return self._files.fetch(entry, folder, limit)
        target = folder / f"{blake2b(os.fsencode(entry.path), digest_size=12).hexdigest()}.html"
        with (
            self._getting.get(self.path(entry), self._headers) as (answer, body),
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


def _as_refusal(status: int) -> int:
    """What an answer to a connection from outside says of a file that this machine itself is given: anything
    but that the server is busy or broken means that the file is not for everybody."""
    return status if status in REFUSED or status in BUSY or status >= 500 else 403


def _is_rendered(entry: Entry) -> bool:
    return isinstance(entry.facts, Served) and entry.facts.rendered
