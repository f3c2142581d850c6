"""One record: its ways are tried in order until one leads to a document, which is analysed and discarded.

record -> Visit: the vector of its document, or the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from indlet.errors import BadResponse, ExtractionError
from indlet.model import JsonMapping, Record
from indlet.net.client import HttpAnswer, NoAnswer, oai_url
from indlet.oai.read import read
from indlet.settings import Sidecar
from indlet.sidecar.cache import DocumentCache
from indlet.sidecar.extraction import Extract, ExtractedText
from indlet.sidecar.formats import files_in, merge
from indlet.sidecar.landing import LandingPage, is_login_address, read_linkset
from indlet.sidecar.links import (
    HTML,
    AccessRight,
    FileLink,
    Reason,
    RecordFiles,
    choose_files,
    guess_type,
    unique,
)
from indlet.sidecar.locate import LANDING, LINK, PAGES, RECORD, Ways, files_in_dublin_core
from indlet.sidecar.pace import Disallowed, HostPaused, PacedClient
from indlet.sidecar.visit import FetchedFile, Visit, conditions_of, file_of, is_html, likeness
from indlet.store import DocumentState
from indlet.text import Analyzer

ACCEPT: Final = "application/pdf, application/*;q=0.9, text/html;q=0.8, */*;q=0.5"
METADATA_BYTES: Final = 16 << 20
PAGE_FILES: Final = 20  # files of a page that are tried before it is given up
CHANGED: Final = 1  # priority of a document whose record has changed
FRESH_SECONDS: Final = 3600.0  # a cached file of this age is used without a request
LIKENESS: Final = 0.9  # share of common term occurrences from which on two files are versions of one text
FEED: Final = "feed"  # metadata of a source whose entries link to pages that are the documents
# The most telling reason of a record comes first here.
_TELLING: Final = (
    Reason.UNREACHABLE, Reason.EMBARGO, Reason.REQUEST, Reason.LOGIN, Reason.CAPTCHA, Reason.RESTRICTED,
    Reason.LICENCE, Reason.TOO_LARGE, Reason.NO_TEXT, Reason.UNREADABLE, Reason.DISGUISED, Reason.ROBOTS,
    Reason.GONE, Reason.LANDING_PAGE, Reason.NO_LINK,
)  # fmt: skip


@dataclass(slots=True)
class _Attempt:
    """The record that is being visited: what is known of it, and what stood in the way so far."""

    record: Record
    named: RecordFiles  # by the format that the record came in
    links: RecordFiles  # by the addresses in its Dublin Core
    troubles: dict[Reason, str] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    until: str = ""
    pages: dict[str, LandingPage] = field(default_factory=dict)
    paused: HostPaused | None = None
    is_changed: bool = False  # since its document was looked for

    def fail(self, reason: Reason, note: str, until: str = "") -> None:
        self.troubles.setdefault(reason, note)
        self.until = self.until or until


class DocumentFetcher:
    """Finds and reads the documents of one source's records. `formats`: the prefixes that it offers."""

    def __init__(
        self, client: PacedClient, base_url: str, sidecar: Sidecar, analyzer: Analyzer, extract: Extract
    ) -> None:
        self._client, self._base_url, self._sidecar = client, base_url, sidecar
        self._analyzer, self._extract = analyzer, extract
        self.formats: Sequence[str] = ()
        self.ways = Ways()
        self.largest = 64 << 20
        self.cache: DocumentCache | None = None
        self.pages_are_documents = False  # of a feed, the page that an entry links to is the text

    def visit(self, record: Record, known: DocumentState | None = None) -> Visit:
        """The document of a record, fetched unless `known` says that it has not changed.

        HostPaused, BudgetSpent and Stopped go to the caller: they are not about this record.
        """
        requests, wire = self._client.requests, self._client.bytes
        found = self._visit(record, known)
        return replace(found, requests=self._client.requests - requests, bytes=self._client.bytes - wire)

    def _visit(self, record: Record, known: DocumentState | None) -> Visit:
        named = files_in(record.raw) or RecordFiles()
        links = files_in_dublin_core(record.metadata, self._base_url)
        attempt = _Attempt(record, named, links)
        attempt.is_changed = known is not None and known.priority == CHANGED
        if ruled_out := self._rule_out(merge(named, links)):
            return ruled_out
        if known is not None and known.state == "read":
            is_current = known.policy == self._analyzer.policy.digest
            again = self._revisit(attempt, known) if is_current else self._reread(attempt, known)
            if again is not None:
                return again
        for way in self.ways.order(self.formats):
            found = self._by(way, attempt)
            if found is not None:
                return found
        if attempt.paused is not None:
            raise attempt.paused
        if not attempt.troubles:
            attempt.fail(Reason.NO_LINK, "the record names no address")
        reason = next(reason for reason in _TELLING if reason in attempt.troubles)
        return Visit(reason, attempt.troubles[reason], until=attempt.until)

    def _rule_out(self, named: RecordFiles, prefix: str = "") -> Visit | None:
        """What the metadata rules out, before any file is requested."""
        if self._sidecar.open_only and named.access in (AccessRight.RESTRICTED, AccessRight.EMBARGOED):
            embargo = named.access is AccessRight.EMBARGOED
            reason = Reason.EMBARGO if embargo else Reason.RESTRICTED
            where = f"the metadata ({prefix})" if prefix else "the metadata"
            return Visit(reason, f"{where} says {named.access}", until=named.until)
        wanted = () if prefix and not named.licences else self._sidecar.licences
        if wanted and not any(licence.startswith(one) for licence in named.licences for one in wanted):
            return Visit(Reason.LICENCE, f"licences: {', '.join(named.licences) or 'none named'}")
        return None

    # The ways

    def _by(self, way: str, attempt: _Attempt) -> Visit | None:
        named, links = attempt.named, attempt.links
        if way == RECORD:
            found = self._text_itself(named, way) or self._read(attempt, named.files, way)
            tried = bool(named.files or named.text)
        elif way == LINK:
            found, tried = self._read(attempt, links.files, way), bool(links.files)
        elif way == LANDING:
            pages = unique((*named.pages, *links.pages))[:PAGES]
            found, tried = self._by_pages(attempt, pages), bool(pages or attempt.pages)
        else:
            found, tried = self._by_format(way, attempt), True
        if tried:
            self.ways.note(way, found is not None and found.reason is None)
        return found

    def _text_itself(self, named: RecordFiles, way: str) -> Visit | None:
        if not named.text:
            return None
        file = FetchedFile("", named.text, "application/xml")
        try:
            return self._finish([(file, self._extract(named.text, "article.xml"))], way)
        except ExtractionError:
            return None

    def _by_format(self, prefix: str, attempt: _Attempt) -> Visit | None:
        """The record in another metadata format, which may name files."""
        arguments = {"verb": "GetRecord", "identifier": attempt.record.identifier, "metadataPrefix": prefix}
        answer = self._ask(attempt, oai_url(self._base_url, arguments), METADATA_BYTES)
        if answer is None:
            return None
        try:
            page = read(answer.body, answer.charset)
        except BadResponse:
            return None
        record = page.items[0].packed if page.items else None
        named = files_in(record.raw) if record is not None else None
        if named is None:
            return None
        found = self._rule_out(named, prefix) or self._text_itself(named, prefix)
        return found or self._read(attempt, named.files, prefix)

    def _by_pages(self, attempt: _Attempt, pages: Sequence[str]) -> Visit | None:
        for url in pages:
            if url not in attempt.tried and (found := self._read_page(attempt, url)):
                return found
        for page in list(attempt.pages.values()):  # what was taken for a file, and was a page
            if found := self._read_links(attempt, page):
                return found
        return None

    def _read_page(self, attempt: _Attempt, url: str) -> Visit | None:
        attempt.tried.add(url)
        answer = self._ask(attempt, url, self.largest)
        if answer is None:
            return None
        if not is_html(answer):
            return self._analyse(attempt, [file_of(answer, answer.url)], LINK)
        page = LandingPage(answer.url, answer.body, answer.link, answer.charset)
        if self.pages_are_documents and not page.is_login:
            return self._analyse(attempt, [file_of(answer, answer.url)], LANDING)
        return self._read_links(attempt, page)

    def _read_links(self, attempt: _Attempt, page: LandingPage) -> Visit | None:
        links = page.links()[:PAGE_FILES]
        for way in dict.fromkeys(one.way for one in links):
            files = [one.link for one in links if one.way == way]
            if found := self._read(attempt, files, f"{LANDING}: {way}"):
                return found
        if not links:
            for url in page.linksets():
                answer = self._ask(attempt, url, METADATA_BYTES)
                items = read_linkset(answer.body) if answer is not None else []
                if found := self._read(attempt, items, f"{LANDING}: linkset"):
                    return found
        reason, until = page.barrier()
        attempt.fail(reason, f"{page.url}: {_WORDS.get(reason, 'no document found on the page')}", until)
        return None

    # Files

    def _read(self, attempt: _Attempt, links: Sequence[FileLink], way: str) -> Visit | None:
        """The first of the chosen files that can be fetched is the primary one; others are further parts."""
        open_links = [link for link in links if not self._is_closed(link)]
        if len(open_links) < len(links) and not open_links:
            closed = links[0]
            reason = Reason.EMBARGO if closed.access is AccessRight.EMBARGOED else Reason.RESTRICTED
            attempt.fail(reason, f"{closed.url}: the metadata says {closed.access}", closed.until)
        files = list[FetchedFile]()
        for link in choose_files(open_links, self._sidecar.files):
            if link.url not in attempt.tried and (file := self._fetch(attempt, link)):
                files.append(file)
        return self._analyse(attempt, files, way) if files else None

    def _is_closed(self, link: FileLink) -> bool:
        closed = link.access in (AccessRight.RESTRICTED, AccessRight.EMBARGOED)
        return closed and self._sidecar.open_only

    def _fetch(self, attempt: _Attempt, link: FileLink) -> FetchedFile | None:
        """A file; None if there is none, or a page came instead."""
        attempt.tried.add(link.url)
        cached = None
        if self.cache is not None:
            # Of a process that was killed before it committed, or of another record.
            if not attempt.is_changed and (fresh := self.cache.get(link.url, max_age=FRESH_SECONDS)):
                return fresh
            cached = self.cache.get(link.url)
        conditions = conditions_of(cached.to_json()) if cached is not None else None
        answer = self._ask(attempt, link.url, self.largest, conditions)
        if answer is None:
            return None
        if cached is not None and answer.status == 304:
            return cached
        if not is_html(answer):
            return file_of(answer, link.url)
        page = LandingPage(answer.url, answer.body, answer.link, answer.charset)
        if guess_type(link) in HTML and page.is_article:
            return file_of(answer, link.url)
        reason, until = page.barrier()
        if reason is Reason.LANDING_PAGE:
            attempt.pages[answer.url] = page
            reason = Reason.DISGUISED
        attempt.fail(reason, f"{link.url}: {_WORDS.get(reason, 'a page, not a document')}", until)
        return None

    def _ask(
        self, attempt: _Attempt, url: str, limit: int, conditions: Mapping[str, str] | None = None
    ) -> HttpAnswer | None:
        """An answer of status 200 or 304; otherwise None, and the attempt knows why."""
        try:
            answer = self._client.get(url, limit, ACCEPT, conditions)
        except Disallowed as e:
            attempt.fail(Reason.LOGIN if is_login_address(e.url) else Reason.ROBOTS, str(e))
            return None
        except HostPaused as e:  # the document may be elsewhere, too
            attempt.paused = attempt.paused or e
            attempt.fail(Reason.UNREACHABLE, str(e))
            return None
        except NoAnswer as e:
            trouble = e.failed.trouble
            passing = trouble in ("unreachable", "silent", "interrupted", "later", "broken")
            reason = (
                Reason.TOO_LARGE if trouble == "large" else Reason.UNREACHABLE if passing else Reason.GONE
            )
            attempt.fail(reason, str(e))
            return None
        if answer.status in (200, 304):
            return answer
        if self.cache is not None and answer.status in (401, 403, 404, 407, 410):
            self.cache.drop(url)
        if answer.status in (401, 403, 407):
            reason = LandingPage(answer.url, answer.body).barrier()[0]
            walls = (Reason.CAPTCHA, Reason.EMBARGO, Reason.REQUEST)
            attempt.fail(reason if reason in walls else Reason.LOGIN, f"{url}: HTTP status {answer.status}")
        elif answer.status in (404, 410):
            attempt.fail(Reason.GONE, f"{url}: HTTP status {answer.status}")
        else:
            attempt.fail(Reason.UNREACHABLE, f"{url}: HTTP status {answer.status}")
        return None

    def _revisit(self, attempt: _Attempt, known: DocumentState) -> Visit | None:
        """Request the files that were read before, unless unchanged. None: look for them again."""
        files = orjson.loads(known.files or "[]")
        if not files or not all(file.get("url") for file in files):
            return None
        came: dict[str, FetchedFile] = {}
        for file in files:
            answer = self._ask(attempt, file["url"], self.largest, conditions_of(file))
            if answer is None:
                if attempt.paused is not None:
                    raise attempt.paused
                if Reason.UNREACHABLE in attempt.troubles:  # nothing is known about the document now
                    return Visit(Reason.UNREACHABLE, attempt.troubles[Reason.UNREACHABLE])
                return None
            if answer.status == 304:
                continue
            if is_html(answer) and file.get("type") not in HTML:
                return None
            fresh = file_of(answer, file["url"])
            if fresh.digest != file.get("digest"):
                came[fresh.url] = fresh
        if not came:
            return Visit(way=known.way, files=tuple(files), unchanged=True)
        for file in files:
            if file["url"] not in came and (cached := self._cached(file)):
                came[cached.url] = cached
            elif file["url"] not in came:
                answer = self._ask(attempt, file["url"], self.largest)
                if answer is None:
                    return None
                came[file["url"]] = file_of(answer, file["url"])
        return self._analyse(attempt, [came[file["url"]] for file in files], known.way)

    def _reread(self, attempt: _Attempt, known: DocumentState) -> Visit | None:
        """Analyse the cached files under another policy, without a request. None: fetch them again.

        If the record has changed, its files may have: the server is asked.
        """
        if attempt.is_changed:
            return None
        files = [self._cached(file) for file in orjson.loads(known.files or "[]")]
        found = [file for file in files if file is not None]
        return self._analyse(attempt, found, known.way) if found and len(found) == len(files) else None

    def _cached(self, file: JsonMapping) -> FetchedFile | None:
        """A file that was read before, as it was then."""
        return self.cache.get(str(file["url"]), str(file["digest"])) if self.cache is not None else None

    def forget(self, document: DocumentState) -> None:
        """Delete the cached files of a record that has no document any more."""
        if self.cache is not None:
            for file in orjson.loads(document.files or "[]"):
                self.cache.drop(str(file["url"]))

    # Text

    def _analyse(self, attempt: _Attempt, files: Sequence[FetchedFile], way: str) -> Visit | None:
        """The vector of the files that can be read; None if none can."""
        texts = list[tuple[FetchedFile, ExtractedText]]()
        for file in files:
            try:
                found = self._extract(file.body, file.url)
            except ExtractionError as e:
                attempt.fail(Reason.UNREADABLE, str(e))
                continue
            if found.text.strip():
                texts.append((file, found))
            else:
                attempt.fail(Reason.NO_TEXT, f"{file.url}: {found.no_text or 'no text in it'}")
        return self._finish(texts, way) if texts else None

    def _finish(self, texts: Sequence[tuple[FetchedFile, ExtractedText]], way: str) -> Visit:
        kept = self._without_versions(texts)
        # A configured language is the operator's word; a document may only say what is to be found out.
        language = kept[0][1].language if self._analyzer.policy.language == "auto" else ""
        vector = self._analyzer.vector("\n".join(found.text for _, found in kept), language)
        for file, _ in kept:
            if self.cache is not None:
                self.cache.put(file)
        files = tuple({**file.to_json(), "type": found.media_type or file.media_type} for file, found in kept)
        return Visit(way=way, vector=vector, files=files)

    def _without_versions(
        self, texts: Sequence[tuple[FetchedFile, ExtractedText]]
    ) -> list[tuple[FetchedFile, ExtractedText]]:
        """The files without those that are another version of one before: a preprint would count twice."""
        if len(texts) == 1:
            return list(texts)
        kept = list[tuple[tuple[FetchedFile, ExtractedText], dict[str, int]]]()
        for one in texts:
            terms = self._analyzer.vector(one[1].text, one[1].language).frequencies()
            if not any(likeness(terms, other) >= LIKENESS for _, other in kept):
                kept.append((one, terms))
        return [one for one, _ in kept]


_WORDS: Final = {
    Reason.LOGIN: "asks for a login",
    Reason.REQUEST: "a copy has to be requested",
    Reason.EMBARGO: "under embargo",
    Reason.CAPTCHA: "asks for a proof that one is human",
    Reason.RESTRICTED: "the page says that access is restricted",
    Reason.DISGUISED: "a page came where a document was named",
}
