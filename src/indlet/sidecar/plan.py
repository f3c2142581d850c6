"""What fetching the documents of a repository would take: its platform, ten sampled records, time, bytes."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from indlet.errors import BadResponse, Unreachable
from indlet.model import Record
from indlet.net.client import NoAnswer, oai_url
from indlet.oai import answers
from indlet.oai.read import Page, read
from indlet.service.harvest.negotiate import candidates
from indlet.service.records.normalise import Normaliser
from indlet.settings import Settings, Source
from indlet.sidecar.extraction import Extract
from indlet.sidecar.fetch import DocumentFetcher
from indlet.sidecar.formats import PREFIXES
from indlet.sidecar.links import Reason
from indlet.sidecar.locate import platform_of
from indlet.sidecar.pace import BudgetSpent, DayBudget, HostPaused, Hosts, PacedClient
from indlet.sidecar.status import WORDS, duration
from indlet.sidecar.visit import Visit
from indlet.sidecar.work import SAMPLE
from indlet.text import Analyzer, policy_of
from indlet.wording import amount

_PAGE_BYTES: Final = 64 << 20
# Platforms by the path of their OAI-PMH endpoint, where the addresses of files do not tell.
_ENDPOINTS: Final = (
    (re.compile(r"/server/oai/"), "DSpace 7"),
    (re.compile(r"/(?:dspace-)?oai/request$"), "DSpace 6"),
    (re.compile(r"/cgi/oai2$"), "EPrints"),
    (re.compile(r"/index\.php/[\w-]+/oai$"), "OJS 3"),
    (re.compile(r"/do/oai/?$"), "Digital Commons"),
    (re.compile(r"/oai2d$"), "Invenio"),
)


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """What was learned from a sample."""

    url: str  # of the endpoint that answered
    name: str  # of the repository
    platform: str
    records: int | None  # as the repository states; None if it does not
    formats: tuple[str, ...]
    sample: tuple[tuple[str, Visit], ...]  # identifier, and what came of it
    delay: float

    @property
    def documents(self) -> int:
        return sum(visit.reason is None for _, visit in self.sample)

    @property
    def requests(self) -> float:
        """For one record, in the mean."""
        return sum(visit.requests for _, visit in self.sample) / max(len(self.sample), 1)

    @property
    def bytes(self) -> float:
        return sum(visit.bytes for _, visit in self.sample) / max(len(self.sample), 1)

    def lines(self) -> list[str]:
        """The plan for people."""
        ways = Counter(visit.way for _, visit in self.sample if visit.reason is None)
        reasons = Counter(visit.reason for _, visit in self.sample if visit.reason is not None)
        found = [f"{way} {count}" for way, count in ways.most_common()]
        missing = [f"{count} {WORDS[Reason(reason)]}" for reason, count in reasons.most_common() if reason]
        files = [prefix for prefix in PREFIXES if prefix in self.formats]
        told = "not stated" if self.records is None else f"{self.records:,}"
        lines = [
            f"repository  {self.name or self.url}",
            f"platform    {self.platform or 'not recognised'}",
            f"records     {told}",
            f"formats     {', '.join(self.formats)}",
            f"  of these, naming files: {', '.join(files) or 'none'}",
            f"sample      {self.documents} of {amount(len(self.sample), 'record')} with a document"
            + (f" (found by: {', '.join(found)})" if found else "")
            + (f"; {'; '.join(missing)}" if missing else ""),
        ]
        for identifier, visit in self.sample:
            where = visit.files[0].get("url") or "the record itself" if visit.files else visit.note
            lines.append(f"  {identifier}  {where}")
        cost = f"{self.requests:.1f} requests and {size(self.bytes)} for each record"
        if self.records:
            seconds = self.records * self.requests * max(self.delay, 0.1)
            cost += f"; in all about {size(self.bytes * self.records)}, {duration(seconds)}"
        return [*lines, f"expected    {cost}, at one request in {self.delay:g} s"]


def make_plan(settings: Settings, source: Source, extract: Extract) -> FetchPlan:
    """Ask a repository what it is, and look for the documents of ten records. Nothing is kept."""
    hosts = Hosts(settings.sidecar)
    client = PacedClient(hosts, settings.harvest, source, DayBudget(), threading.Event())
    try:
        url, identify = _endpoint(client, source.url)
        formats = tuple(answers.metadata_formats(_ask(client, url, {"verb": "ListMetadataFormats"})))
        listed = _ask(client, url, {"verb": "ListRecords", "metadataPrefix": "oai_dc"})
        analyzer = Analyzer(policy_of(settings.analysis))
        fetcher = DocumentFetcher(client, url, settings.sidecar, analyzer, extract)
        fetcher.formats = tuple(prefix for prefix in PREFIXES if prefix in formats)
        fetcher.largest = settings.harvest.fetch_bytes
        sample = [(record.identifier, _visit(fetcher, record)) for record in _choose_sample(listed, analyzer)]
    finally:
        client.close()
    total = listed.size if listed.token else len([item for item in listed.items if not item.deleted])
    name = answers.identity(identify).name
    delay = max(settings.sidecar.delay_seconds, hosts.slowest_delay())
    return FetchPlan(url, name, _platform(url, sample), total, formats, tuple(sample), delay)


def _endpoint(client: PacedClient, url: str) -> tuple[str, Page]:
    said = ""
    for address in candidates(url):
        try:
            page = _ask(client, address, {"verb": "Identify"})
        except Unreachable as e:
            said = said or str(e)
            continue
        if answers.identity(page).base_url:
            return address, page
    raise Unreachable(said or f"{url}: no OAI-PMH repository answers there; check the address")


def _ask(client: PacedClient, url: str, arguments: Mapping[str, str]) -> Page:
    try:
        answer = client.get(oai_url(url, arguments), _PAGE_BYTES)
        if answer.trouble is not None:
            raise answer.trouble
        return read(answer.body, answer.charset)
    except (NoAnswer, HostPaused, BadResponse) as e:
        raise Unreachable(f"{url}: {e}") from e


def _choose_sample(page: Page, analyzer: Analyzer) -> list[Record]:
    items = [item for item in page.items if not item.deleted and item.packed is not None]
    normaliser = Normaliser(analyzer)
    return [normaliser.record(item) for item in items[:: max(len(items) // SAMPLE, 1)][:SAMPLE]]


def _visit(fetcher: DocumentFetcher, record: Record) -> Visit:
    try:
        return fetcher.visit(record)
    except (HostPaused, BudgetSpent) as e:
        return Visit(Reason.UNREACHABLE, str(e))


def _platform(url: str, sample: list[tuple[str, Visit]]) -> str:
    path = urlsplit(url).path
    by_endpoint = next((name for pattern, name in _ENDPOINTS if pattern.search(path)), "")
    files = [str(file.get("url", "")) for _, visit in sample for file in visit.files]
    return by_endpoint or next((name for file in files if (name := platform_of(file))), "")


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
