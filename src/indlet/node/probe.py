"""What a source says of itself, before it is added: Identify, its formats, whether its index can be had.

Asked in a process of its own, within limits: whatever a stranger answers, the serving process goes on.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import orjson

from indlet import process
from indlet.errors import BadResponse, IndletError
from indlet.formats import METADATA
from indlet.formats.registry import ROOTS
from indlet.model import JsonObject
from indlet.net.client import Client, NoAnswer
from indlet.net.reach import KnownPublic
from indlet.node import children
from indlet.oai import answers
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.negotiate import Agreement, negotiate
from indlet.service.harvest.run_state import Rules
from indlet.service.records.normalise import Normaliser
from indlet.settings import Harvest, Source
from indlet.text import Analyzer, Policy, loss

SECONDS: Final = 60.0  # that a probe may take
MEMORY_MB: Final = 1536
STRANGERS: Final = KnownPublic()  # nothing is known of any host
SET_SECONDS: Final = 15.0  # for the number of records in each set
SETS: Final = 100
SAMPLES: Final = 3
TEXT: Final = 300  # characters of a title or a name
_LEAN: Final = ("oai_dc", "rfc1807")


@dataclass(frozen=True, slots=True)
class SetOffer:
    spec: str
    name: str
    records: int | None  # None where the source does not say


@dataclass(frozen=True, slots=True)
class Sample:
    """A record, in short."""

    title: str
    creators: Sequence[str]
    date: str


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer, or in `problem` why there is none."""

    url: str
    problem: str = ""
    name: str = ""
    earliest: str = ""
    deleted: str = ""
    granularity: str = ""
    form: str = ""
    formats: tuple[str, ...] = ()
    index_formats: tuple[str, ...] = ()
    indexed: bool = False
    policy: str = ""
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    public_hosts: tuple[str, ...] = ()  # names that have a public address now
    readable: tuple[str, ...] = ()  # of `formats`: those whose records we can read
    records: int | None = None  # how many the source has of what was asked for, where it says so
    sets: tuple[SetOffer, ...] = ()
    more_sets: int = 0  # that are not among `sets`
    samples: tuple[Sample, ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """The formats whose records we cannot read."""
        return tuple(prefix for prefix in self.formats if prefix not in self.readable)

    @property
    def richer(self) -> tuple[str, ...]:
        """The formats that hold more than Dublin Core."""
        return tuple(prefix for prefix in self.readable if prefix not in _LEAN)


def probe_in_child(
    source: Source,
    harvest: Harvest,
    ours: Policy,
    seconds: float = SECONDS,
    known_public: KnownPublic = STRANGERS,
) -> Probe:
    """Ask a source a handful of quick questions; what it answers is read in a child process.

    A host that has a public address is remembered, as by a harvest.
    """
    said: list[bytes] = []
    task = (source, harvest, ours, tuple(known_public.hosts))
    try:
        status = children.run(__name__, task, said.append, seconds=seconds, patience=1.0)
    except children.TookTooLong:
        return Probe(source.url, problem=f"{source.url}: took longer than {seconds:g} seconds to answer")
    if status or not said:
        return Probe(source.url, problem=f"{source.url}: its answer ended the process that read it")
    answer: JsonObject = orjson.loads(b"".join(said))
    found: JsonObject = {
        name: tuple(value) if isinstance(value, list) else value for name, value in answer.items()
    }
    found["sets"] = tuple(SetOffer(**one) for one in found["sets"])
    found["samples"] = tuple(Sample(**one) for one in found["samples"])
    answered = Probe(**found)
    for host in answered.public_hosts:
        known_public.remember(host)
    return answered


def main() -> None:
    """The child."""
    source, harvest, ours, hosts = process.receive_task()
    met: list[str] = []
    process.stop_event()
    process.limit_memory(MEMORY_MB)
    process.limit_processor_time(SECONDS)
    try:
        found = probe(source, harvest, ours, KnownPublic(hosts, met.append))
    except MemoryError:
        found = Probe(source.url, problem=f"{source.url}: its answer takes more than {MEMORY_MB} MB to read")
    sys.stdout.buffer.write(orjson.dumps(asdict(replace(found, public_hosts=tuple(met)))) + b"\n")


def probe(source: Source, harvest: Harvest, ours: Policy, known_public: KnownPublic = STRANGERS) -> Probe:
    """Ask a source a handful of quick questions."""
    quick = replace(harvest, timeout_seconds=10.0, stall_seconds=10.0, retries=0)
    rules = Rules(0, quick.backoff_seconds, quick.backoff_limit_seconds, 0.0, quick.pages)
    client = Client(
        quick, token=source.token, user=source.user, password=source.password, known_public=known_public
    )
    fetcher = PageFetcher(client, rules, lambda _: None)
    try:
        agreed = negotiate(fetcher, source, ours.positions)
        formats = _formats(fetcher, agreed.url)
        indexes = _index_formats(fetcher, agreed.url) if agreed.index_prefix else ()
        records, samples = _first_records(fetcher, agreed, source, ours)
        sets, more = _sets(fetcher, agreed, time.monotonic() + SET_SECONDS)
    except (NoAnswer, IndletError) as e:
        return Probe(source.url, problem=str(e))
    finally:
        fetcher.close()
    indexed = bool(agreed.index_prefix or agreed.bundle_prefix)
    stand = loss(agreed.policy, ours) if indexed else None
    identity = agreed.identity
    return Probe(
        agreed.url,
        name=identity.name,
        earliest=identity.earliest,
        deleted=identity.deleted,
        granularity=identity.granularity,
        form=agreed.form,
        formats=tuple(formats),
        readable=_readable(formats),
        index_formats=indexes,
        indexed=indexed,
        policy=stand.kind if stand else "",
        losses=(*stand.losses, *agreed.losses) if stand else (),
        notes=agreed.notes,
        records=records,
        sets=sets,
        more_sets=more,
        samples=samples,
    )


def _formats(fetcher: PageFetcher, url: str) -> dict[str, str]:
    """The metadata formats that a source names, with their namespaces."""
    try:
        return answers.format_namespaces(
            fetcher.page_retried(url, {"verb": "ListMetadataFormats"}, attempts=1)
        )
    except NoAnswer:
        return {}


def _readable(formats: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the formats that we read, by prefix or namespace; Dublin Core first, which all must have."""
    namespaces = {root[1:].partition("}")[0] for root in ROOTS if root.startswith("{")}
    known = [p for p, namespace in formats.items() if p in METADATA or namespace in namespaces]
    return tuple(dict.fromkeys(["oai_dc", *known]))


def _first_records(
    fetcher: PageFetcher, agreed: Agreement, source: Source, ours: Policy
) -> tuple[int | None, tuple[Sample, ...]]:
    """How many records a harvest would list, where the source says so, and what the first ones look like."""
    try:
        page = fetcher.page(agreed.url, {"verb": "ListRecords", **agreed.selection(source.set)})
    except NoAnswer:
        return None, ()
    normaliser = Normaliser(Analyzer(ours), agreed.index_prefix, agreed.bundle_prefix, agreed.policy)
    samples = list[Sample]()
    for item in page.items:
        if not item.deleted and len(samples) < SAMPLES:
            with contextlib.suppress(BadResponse):
                metadata = normaliser.record(item).metadata
                title, date = (next(iter(metadata.get(part, ())), "") for part in ("title", "date"))
                creators = tuple(one[:TEXT] for one in metadata.get("creator", ())[:3])
                samples.append(Sample(title[:TEXT], creators, date[:TEXT]))
    return page.size if page.token else len(page.items), tuple(samples)


def _sets(fetcher: PageFetcher, agreed: Agreement, deadline: float) -> tuple[tuple[SetOffer, ...], int]:
    """The first sets of a source, with the number of their records as long as there is time to ask."""
    try:
        page = fetcher.page(agreed.url, {"verb": "ListSets"})
    except NoAnswer:
        return (), 0
    named = list(dict(answers.set_names(page)).items())
    found = list[SetOffer]()
    for spec, name in named[:SETS]:
        records = _set_size(fetcher, agreed, spec) if time.monotonic() < deadline else None
        found.append(SetOffer(spec[:500], name[:TEXT], records))
    told = page.size if page.token and page.size else len(named)
    return tuple(found), max(told, len(named)) - len(found)


def _set_size(fetcher: PageFetcher, agreed: Agreement, spec: str) -> int | None:
    wanted = {"verb": "ListIdentifiers", "metadataPrefix": agreed.metadata_prefix, "set": spec}
    try:
        page = fetcher.page(agreed.url, wanted)
    except NoAnswer as e:
        return 0 if e.failed.trouble == "nothing" else None
    return page.size if page.token else len(page.items)


def _index_formats(fetcher: PageFetcher, url: str) -> tuple[str, ...]:
    try:
        return tuple(
            answers.index_formats(fetcher.page_retried(url, {"verb": "ListIndexFormats"}, attempts=1))
        )
    except NoAnswer:
        return ()


if __name__ == "__main__":
    main()
