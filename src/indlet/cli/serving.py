"""A running node: a bound socket, the application behind it, and the jobs that come again."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from indlet import logs, process
from indlet.cli.show import progress, say, summary_lines
from indlet.errors import MissingExtra, SettingsError
from indlet.node.crawl_child import crawl_in_child
from indlet.node.schedule import NotDone, Schedule, Step
from indlet.provider.hierarchy import named
from indlet.provider.pipeline import crawl_groups
from indlet.service.harvest.progress import Progress, RunOutcome
from indlet.settings import Log, Settings
from indlet.store import Store, open_configured


def bind(settings: Settings) -> tuple[socket.socket, Settings]:
    """A listening socket, and the settings with the port that it got (0 asks for any free one)."""
    node = settings.node
    family = socket.AF_INET6 if ":" in node.host else socket.AF_INET
    # Named as TCP, or asyncio would leave Nagle's delay on: 40 ms for every small answer.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((node.host, node.port))
        bound.listen(512)
    except (OSError, OverflowError) as e:
        bound.close()
        reason = getattr(e, "strerror", None) or str(e)
        raise SettingsError(
            f"cannot listen on {node.host} port {node.port}: {reason}; choose another --port (0: any)"
        ) from e
    return bound, replace(settings, node=replace(node, port=bound.getsockname()[1]))


def application(
    store: Store, settings: Settings, portal: bool, jobs: Any = None, portal_asked: bool = False
) -> Any:
    """Provider and portal where the service part is installed and wanted; otherwise the provider alone."""
    if portal:
        try:
            from indlet.web.app import application as whole
        except ModuleNotFoundError as e:
            if (e.name or "").startswith("indlet"):
                raise
            # A node that holds nothing of its own is there to be searched.
            if portal_asked or settings.source or not settings.crawls():
                raise MissingExtra(f"the portal (it imports {e.name})", "service") from e
        else:
            return whole(store, settings, jobs=jobs)
    from indlet.provider.serve import application as provider

    return provider(store, settings)


def run(
    settings: Settings, *, crawl_at_once: bool, portal: bool | None = None, paths: Sequence[str] = ()
) -> None:
    """Serve until stopped, crawling (and harvesting, where sources are set) on schedule.

    `portal`: with it, without it, or (None) with it where its part is installed. `paths`: serve only what
    begins with one of these.
    """
    logs.configure(settings.log)
    bound, settings = bind(replace(settings, hierarchy=named(settings.hierarchy)))
    with contextlib.closing(bound), open_configured(settings) as store, Schedule() as schedule:
        jobs = _jobs(store, settings, schedule, wanted=portal is not False)
        app = application(store, settings, portal is not False, jobs, portal_asked=bool(portal))
        if paths:
            shown = tuple(paths)
            app.router.routes = [r for r in app.router.routes if getattr(r, "path", "").startswith(shown)]
        if settings.node.jobs:
            _plan_crawls(settings, schedule, crawl_at_once)
        if jobs is not None:
            jobs.begin(harvest_at_once=True)
        _announce(settings, searched=hasattr(app.state, "library"), plain=not paths)
        listen(app, settings, bound)
        if _for_people(settings):
            say("stopping …", err=True)


def listen(app: Any, settings: Settings, bound: socket.socket) -> None:
    """Serve an application on a bound socket until SIGINT or SIGTERM."""
    from indlet.provider.serve import server as made

    process.switch_quickly()
    server = made(app, settings)
    # Ours instead of uvicorn's: those raise the signal again when all is done, and that would end the process
    # before a running crawl has put its batch away.
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    with _on_signal(server):
        server.run(sockets=[bound])


@contextlib.contextmanager
def _on_signal(server: Any) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _plan_crawls(settings: Settings, schedule: Schedule, at_once: bool) -> None:
    """A job for each group of hierarchies. The first shows its progress; a terminal has room for one."""
    lanes: dict[str, threading.Lock] = {}
    groups = crawl_groups(settings)
    for group in groups:
        name = f"crawl {', '.join(group.names)}" if len(groups) > 1 else "crawl"
        shown = not lanes
        lane = lanes.setdefault(group.lane, threading.Lock())
        step = Step.READ if group.library else Step.NONE
        work = _Crawl(settings, group.names, lane, shown)
        schedule.add(name, group.every, work, at_once=at_once, step=step)


class _Crawl:
    """A crawl as a job: the first one shows its progress, later ones speak up when there is news."""

    def __init__(
        self,
        settings: Settings,
        names: tuple[str, ...],
        lane: threading.Lock,
        shown: bool = True,
    ) -> None:
        self._settings, self._names, self._lane = settings, names, lane
        self._shown, self._first = shown, True

    def __call__(self, stop: threading.Event) -> None:
        while not self._lane.acquire(timeout=0.5):  # others of this lane are being read
            if stop.is_set():
                return
        try:
            self._crawl(stop)
        finally:
            self._lane.release()

    def _crawl(self, stop: threading.Event) -> None:
        shown = self._first and self._shown and _for_people(self._settings)
        with progress(quiet=not shown) as report:
            summaries = crawl_in_child(self._settings, report, stop, self._names)
        for summary in summaries:
            logs.event(
                "crawl", logging.INFO, hierarchy=summary.hierarchy, outcome=summary.outcome,
                records=summary.records, deleted=summary.deleted, failed=summary.failed,
                reason=summary.reason,
            )  # fmt: skip
            if not _for_people(self._settings):
                continue
            if self._first or summary.records or summary.deleted or summary.failed or summary.reason:
                for line in summary_lines(summary, self._settings.data):
                    say(line, err=True)
        self._first = False
        if reasons := [f"{summary.hierarchy}: {summary.reason}" for summary in summaries if summary.reason]:
            raise NotDone("; ".join(reasons))


def _jobs(store: Store, settings: Settings, schedule: Schedule, wanted: bool) -> Any:
    """The jobs of a node that harvests or is searched; None where it does neither, or cannot."""
    if not settings.source and not wanted:
        return None
    try:
        from indlet.cli.harvest import line
        from indlet.node.jobs import Jobs
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        if settings.source:
            raise MissingExtra(f"harvesting (it imports {e.name})", "service") from e
        return None

    def report(done: Progress) -> None:
        logs.event(
            "harvest", logging.INFO, source=done.source, outcome=done.outcome, records=done.records,
            deleted=done.deleted, changed=done.changed, failed=done.failed, owed=done.owed,
            requests=done.requests, bytes=done.bytes,
        )  # fmt: skip
        # What failed is told by the log, as every job that fails is.
        if done.changed and done.outcome is RunOutcome.COMPLETE and _for_people(settings):
            say(line(done, settings.data), err=True)

    return Jobs(store, settings, schedule, report)


def _for_people(settings: Settings) -> bool:
    """Whether somebody reads along: as long as the log is neither for programs nor tells of all."""
    return settings.log == Log()


def _announce(settings: Settings, *, searched: bool, plain: bool = True) -> None:
    """What there is at which address: only what answers."""
    root = settings.base_url()
    listening = replace(settings, node=replace(settings.node, base_url="")).base_url()
    lines = [
        f"{settings.node.name} at {root}/",
        *([f"  listens   {listening}/"] if root != listening else []),
        *([f"  search    {root}/", *_desk(settings, root)] if searched else []),
        *(
            [
                *([f"  harvest   {root}/oai?verb=Identify"] if plain else []),
                f"  {'       ' if plain else 'harvest'}   {root}/ft-oai?verb=ListIndexFormats",
                f"  or say    indlet harvest {root}/ft-oai",
            ]
            if settings.provides()
            else []
        ),
        f"  data in   {settings.data}",
        "  stop with Ctrl-C",
    ]
    say("\n".join(lines))
    sys.stdout.flush()


def _desk(settings: Settings, root: str) -> list[str]:
    if settings.has_desk():
        return [f"  desk      {root}/admin"]
    return ["  desk      shut: set its password with  indlet password"]
