"""What a source says of itself, before it is added: Identify, its formats, whether its index can be had.

Asked in a process of its own, within limits: whatever a stranger answers, the serving process goes on.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from typing import Final

import orjson

from indlet import process
from indlet.errors import IndletError
from indlet.model import JsonObject
from indlet.net.client import Client, NoAnswer
from indlet.net.reach import KnownPublic
from indlet.node import children
from indlet.oai import answers
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.negotiate import negotiate
from indlet.service.harvest.run_state import Rules
from indlet.settings import Harvest, Source
from indlet.text import Policy, loss

SECONDS: Final = 60.0  # that a probe may take
MEMORY_MB: Final = 1536
STRANGERS: Final = KnownPublic()  # nothing is known of any host


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
        formats=formats,
        index_formats=indexes,
        indexed=indexed,
        policy=stand.kind if stand else "",
        losses=(*stand.losses, *agreed.losses) if stand else (),
        notes=agreed.notes,
    )


def _formats(fetcher: PageFetcher, url: str) -> tuple[str, ...]:
    try:
        return tuple(
            answers.metadata_formats(fetcher.page_retried(url, {"verb": "ListMetadataFormats"}, attempts=1))
        )
    except NoAnswer:
        return ()


def _index_formats(fetcher: PageFetcher, url: str) -> tuple[str, ...]:
    try:
        return tuple(
            answers.index_formats(fetcher.page_retried(url, {"verb": "ListIndexFormats"}, attempts=1))
        )
    except NoAnswer:
        return ()


if __name__ == "__main__":
    main()
