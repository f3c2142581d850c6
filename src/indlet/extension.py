"""What an extension adds to the core: one frozen value for each, and the list of those that are installed.

The core reads these values; it never imports an extension. Everything heavy is imported by the functions that
a value names, when they are called: to know all extensions costs a process next to nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from indlet.cli.check import CheckResult
    from indlet.formats import MetadataFormat
    from indlet.model import JsonObject
    from indlet.node.schedule import Job
    from indlet.provider.serve.application import ProviderWeb
    from indlet.provider.serve.record_filter import RecordFilter
    from indlet.provider.source import CrawlTarget
    from indlet.service.harvest.run import LessonRequest
    from indlet.service.index.protocol import Index
    from indlet.service.search.library import Library
    from indlet.settings import IndexEngine, Settings, Source
    from indlet.store import Clock, OpenStore, Store
    from indlet.web.admin.desk_part import DeskPart

# The packages whose module `extension` has an `EXTENSION`. A new extension is one more name here.
INSTALLED: Final = ("indlet.exchange", "indlet.site", "indlet.cluster", "indlet.sidecar")


class CommandEntry(NamedTuple):
    """A command of `indlet`: the module with a click command of its name, and its line in `indlet --help`."""

    module: str
    help: str


class Step(IntEnum):
    """The steps of a round, in their order. Jobs that are none of them wait for nothing."""

    NONE = 0
    READ = 1
    HARVEST = 2
    WRITE = 3

    def follows(self, earlier: Step) -> bool:
        return Step.NONE < earlier < self


class JobEntry(NamedTuple):
    """A job of a node, a row of its table: what it is called, how often it is done, and what it does."""

    name: str
    every: str
    work: Callable[[threading.Event], object]  # until the event is set; it raises where it fails
    step: Step = Step.NONE
    priority: int = 5  # of jobs that are due, lower ones come first
    after_changes: bool = False  # due as soon as a harvest has brought or deleted records
    after_failures: bool = False  # due as soon as a harvest has failed


class FollowUp(NamedTuple):
    """What an extension did with sources that a command has harvested."""

    lines: tuple[str, ...] = ()
    failed: bool = False  # something will be retried


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    name: str
    commands: Mapping[str, CommandEntry] = field(default_factory=dict)
    # Databases beside SQLite, by the scheme of a store's URL.
    stores: Mapping[str, OpenStore] = field(default_factory=dict)
    # Index engines beside the embedded one, by their name in `[index] engine`.
    index_engines: Mapping[str, Callable[[Store, IndexEngine], Index]] = field(default_factory=dict)
    # Metadata formats that the settings describe, by prefix.
    formats: Callable[[Settings], Mapping[str, MetadataFormat]] = lambda settings: {}
    jobs: Callable[[Store, Settings], Sequence[JobEntry]] = lambda store, settings: ()
    # What is asked of a source like this node after its records, by the key of its state for the answer:
    # what to ask with next time, and what went wrong.
    lessons: Mapping[str, Callable[[LessonRequest], tuple[JsonObject, str]]] = field(default_factory=dict)
    # What `indlet check` finds of the settings.
    checks: Callable[[Settings], Iterable[CheckResult]] = lambda settings: ()
    # What `indlet harvest` does once it has harvested these sources.
    after_harvest: Callable[[Store, Settings, Sequence[Source]], FollowUp] = lambda *_: FollowUp()
    # Jobs that other processes do for a node that leaves its jobs to them, as the desk shows them.
    other_jobs: Callable[[Store, Settings], Sequence[Job]] = lambda store, settings: ()
    # Pages and acts of the desk.
    desk: Callable[[Library], DeskPart] = lambda library: _no_desk_part()
    # What the desk shows of a source: a line of text; empty for nothing.
    source_status: Callable[[Store, int], str] = lambda store, origin: ""
    # What is crawled, beside hierarchies; and what is done with the store before a crawl.
    crawl_targets: Callable[[Settings], Sequence[CrawlTarget]] = lambda settings: ()
    before_crawl: Callable[[Store, Settings], None] = lambda store, settings: None
    # What decides who sees which record, where settings alone do not. The clock dates responses.
    record_filter: Callable[[Settings, Clock], RecordFilter | None] = lambda settings, clock: None
    # What a provider answers besides, given what answers and where the landing page is (empty: nowhere).
    routes: Callable[[ProviderWeb, str], Sequence[BaseRoute]] = lambda web, landing: ()


def _no_desk_part() -> DeskPart:
    from indlet.web.admin.desk_part import DeskPart

    return DeskPart()


@cache
def extensions() -> tuple[Extension, ...]:
    return tuple(import_module(f"{package}.extension").EXTENSION for package in INSTALLED)
