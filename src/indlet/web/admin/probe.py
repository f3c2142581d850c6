"""What a source says of itself, before it is added: Identify, its formats, whether its index can be had."""

from __future__ import annotations

from dataclasses import dataclass, replace

from indlet.errors import IndletError
from indlet.oai import answers
from indlet.service.harvest import decide
from indlet.service.harvest.client import Client, NoAnswer
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.negotiate import negotiate
from indlet.settings import Harvest, Source
from indlet.text import Policy, loss


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


def probe(source: Source, harvest: Harvest, ours: Policy) -> Probe:
    """Ask a source a handful of quick questions."""
    quick = replace(harvest, timeout_seconds=10.0, stall_seconds=10.0, retries=0)
    rules = decide.Rules(0, quick.backoff_seconds, quick.backoff_limit_seconds, 0.0, quick.pages)
    client = Client(quick, token=source.token, user=source.user, password=source.password)
    asker = PageFetcher(client, rules, lambda _: None)
    try:
        terms = negotiate(asker, source, ours.positions)
        formats = _formats(asker, terms.url)
        indexes = _index_formats(asker, terms.url) if terms.index_prefix else ()
    except (NoAnswer, IndletError) as e:
        return Probe(source.url, problem=str(e))
    finally:
        asker.close()
    indexed = bool(terms.index_prefix or terms.bundle_prefix)
    stand = loss(terms.policy, ours) if indexed else None
    identity = terms.identity
    return Probe(
        terms.url,
        name=identity.name,
        earliest=identity.earliest,
        deleted=identity.deleted,
        granularity=identity.granularity,
        form=terms.form,
        formats=formats,
        index_formats=indexes,
        indexed=indexed,
        policy=stand.kind if stand else "",
        losses=(*stand.losses, *terms.losses) if stand else (),
        notes=terms.notes,
    )


def _formats(asker: PageFetcher, url: str) -> tuple[str, ...]:
    try:
        return tuple(
            answers.metadata_formats(asker.patiently(url, {"verb": "ListMetadataFormats"}, attempts=1))
        )
    except NoAnswer:
        return ()


def _index_formats(asker: PageFetcher, url: str) -> tuple[str, ...]:
    try:
        return tuple(answers.index_formats(asker.patiently(url, {"verb": "ListIndexFormats"}, attempts=1)))
    except NoAnswer:
        return ()
