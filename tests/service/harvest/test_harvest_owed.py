"""Nothing is forgotten: a record that failed is asked for again until it has come, is gone or is deleted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import tests.hostile.misbehaving as m
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.misbehaving import Provider, Rec, collection
from tests.service.harvest.test_harvest_hostile import QUICK, harvest, held
from tests.stores import store_in, store_url

from indlet.cli.harvest import harvest as harvest_command
from indlet.cli.provider import failures as failures_command
from indlet.service.harvest import owed
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import Run, RunOptions
from indlet.settings import Source
from indlet.store import OpenFailure, Store, StoredFailure
from indlet.text import Analyzer, Policy

BAD = "oai:x.org:0003"
DAY = timedelta(days=1)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2024, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> float:
        return self.now.timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterable[Store]:
    with store_in(tmp_path / "data", clock=clock) as opened:
        yield opened


def at(clock: Clock, store: Store, url: str, options: RunOptions | None = None) -> Progress:
    """A run at the time that the clock shows."""
    progress = Progress("repo")
    source = Source(url, name="repo")
    run = Run(
        store, source, "repo", Analyzer(Policy()), QUICK, progress, options=options, now=lambda: clock.now
    )
    return run.go()


def failed(store: Store) -> dict[str, StoredFailure]:
    with store.read() as view:
        return {f.where: f for f in view.failures()}


def asked(provider: Provider, identifier: str = BAD) -> int:
    return sum(q.verb == "GetRecord" and q.arguments["identifier"] == identifier for q in provider.requests)


FAULTS: dict[str, Callable[[Provider], m.Fault]] = {
    "bomb": lambda provider: m.xml_bomb(),
    "external entity": lambda provider: m.external_entity(lambda: provider.root),
    "not well-formed": lambda provider: m.malformed_record(BAD, single=True),
    "server error": lambda provider: m.poison(BAD),
    "no metadata": lambda provider: (
        lambda q, r: replace(r, body=re.sub(rb"(0003</identifier>.*?</header>)<metadata>.*?</metadata>",
                                                rb"\1", r.body))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_healed_without_a_new_datestamp_comes_in_the_next_run(
    name: str, store: Store, clock: Clock
) -> None:
    with Provider(None) as provider:
        provider.faults = (FAULTS[name](provider),)
        first = at(clock, store, provider.url)
        assert (first.outcome, first.failed, first.owed, first.ok) == ("complete", 1, 1, False)
        assert set(held(store)) == provider.live() - {BAD}
        provider.faults = ()
        clock.now += DAY
        healed = at(clock, store, provider.url)
    assert (healed.outcome, healed.failed, healed.owed, healed.ok) == ("complete", 0, 0, True)
    assert set(held(store)) == provider.live()
    assert failed(store) == {}


def test_one_record_is_asked_for_alone_when_somebody_wants_it(store: Store, clock: Clock) -> None:
    with Provider(None, m.malformed_record(BAD, single=True)) as provider:
        at(clock, store, provider.url)
        with store.read() as view:
            runs, state = view.runs(), view.state(view.runs()[0].origin)
        only, before = RunOptions(only=(BAD,)), len(provider.requests)
        again = at(clock, store, provider.url, only)
        assert (again.outcome, again.owed) == ("incomplete", 1) and BAD in again.reason
        assert failed(store)[BAD].attempts == 2
        provider.faults = ()
        healed = at(clock, store, provider.url, only)
        lists = [q.verb for q in provider.requests[before:] if q.verb in ("ListRecords", "ListIdentifiers")]
        assert (healed.outcome, healed.owed, healed.records) == ("complete", 0, 1) and not lists
    assert set(held(store)) == provider.live() and failed(store) == {}
    with store.read() as view:
        assert view.runs() == runs, "the journal tells of lists"
        after = view.state(runs[0].origin)
    assert {k: after[k] for k in ("marks", "last")} == {k: state[k] for k in ("marks", "last")}


def test_pauses_grow_and_a_run_that_only_waits_is_no_success(store: Store, clock: Clock) -> None:
    with Provider(None, m.malformed_record(BAD, single=True)) as provider:
        days, requests = list[int](), asked(provider)
        for day in range(40):
            progress = at(clock, store, provider.url)
            assert (progress.outcome, progress.owed, progress.ok) == ("complete", 1, False)
            if asked(provider) > requests:
                days.append(day)
            requests = asked(provider)
            clock.now += DAY
        assert days == [0, 1, 2, 3, 5, 8, 12, 18, 27]
    told = failed(store)[BAD]
    assert told.attempts == len(days)
    assert (told.at - told.first, told.due) == (27 * 86400, told.at + 27 * 86400 // 2)
    assert b"word3</dc:titel>" in told.raw


@given(st.integers(0, 10**10), st.integers(0, 10**10))
def test_no_pause_is_negative_or_endless(first: int, now: int) -> None:
    due = owed.next_try(first, now)
    assert now <= due <= now + owed.LONGEST_PAUSE
    assert owed.due_now([OpenFailure("a", "harvest", first, due)], due) == ["a"]
    ahead = OpenFailure("a", "harvest", first, now + owed.LONGEST_PAUSE + 1)
    assert owed.due_now([ahead], now) == ["a"], "set by a clock that was wrong"
    assert owed.due_now([ahead._replace(due=None)], now) == []


@pytest.mark.parametrize("how", ["gone", "deleted"])
def test_what_is_gone_or_deleted_is_no_longer_owed(how: str, store: Store, clock: Clock) -> None:
    with Provider(None, m.malformed_record(BAD, single=True)) as provider:
        at(clock, store, provider.url)
        provider.faults = ()
        if how == "gone":
            provider.records = [r for r in provider.records if r.identifier != BAD]
        else:
            next(r for r in provider.records if r.identifier == BAD).deleted = True
        clock.now += DAY
        assert at(clock, store, provider.url).ok
    assert failed(store) == {}
    assert BAD not in held(store)


def test_work_is_bounded_and_everything_gets_its_turn(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owed, "IN_VAIN", 10)
    records = [Rec(f"oai:x.org:{i}", "2024-05-01T00:00:00Z", f"wing word{i}") for i in range(35)]
    with Provider(records, *(m.malformed_record(r.identifier, single=True) for r in records)) as provider:
        at(clock, store, provider.url)
        assert len(failed(store)) == 35
        tried = set[str]()
        for _ in range(4):
            clock.now += 40 * DAY
            begun = len(provider.requests)
            progress = at(clock, store, provider.url)
            assert (progress.outcome, progress.owed) == ("complete", 35)
            now = [q.arguments["identifier"] for q in provider.requests[begun:] if q.verb == "GetRecord"]
            assert len(now) == 10
            tried.update(now)
        assert len(tried) == 35
        provider.faults = ()
        clock.now += 40 * DAY
        assert at(clock, store, provider.url).ok, "what comes is not bounded by what does not"
    assert set(held(store)) == provider.live()


def test_a_source_that_is_silent_is_not_asked_for_each(store: Store, clock: Clock) -> None:
    faults = [m.malformed_record(f"oai:x.org:000{i}", single=True) for i in range(8)]
    with Provider(None, *faults) as provider:
        at(clock, store, provider.url)
        provider.faults = (lambda q, r: m.Reply(b"", 503, {}) if q.verb == "GetRecord" else r,)
        clock.now += DAY
        begun = len(provider.requests)
        assert at(clock, store, provider.url).owed == 8
        assert sum(q.verb == "GetRecord" for q in provider.requests[begun:]) <= 2


def test_listed_and_denied_is_owed_until_a_full_list_leaves_it_out(store: Store, clock: Clock) -> None:
    odd = {r.identifier for r in collection() if r.identifier[-1] == "1"}

    def denied(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.arguments.get("identifier") in odd:
            return request.provider.error(request, "idDoesNotExist")
        return reply

    with Provider(None, m.dead(), denied) as provider:
        assert at(clock, store, provider.url).owed == len(odd)
        clock.now += DAY
        assert at(clock, store, provider.url).owed == len(odd), "denied, but not known to be gone"
        assert {f.attempts for f in failed(store).values()} == {2}
        provider.faults = ()
        provider.records = [r for r in provider.records if r.identifier not in odd]
        clock.now += timedelta(hours=1)  # before they are due
        assert at(clock, store, provider.url).owed == len(odd)
        assert at(clock, store, provider.url, RunOptions(full=True)).ok
    assert failed(store) == {}


def test_a_list_of_a_part_forgets_nothing(store: Store, clock: Clock) -> None:
    with Provider(None, m.malformed_record(BAD, single=True)) as provider:
        at(clock, store, provider.url)
        clock.now += timedelta(seconds=10)
        at(clock, store, provider.url, RunOptions(since="2024-05-10"))
        at(clock, store, provider.url, RunOptions(full=True, until="2024-05-01"))
    assert list(failed(store)) == [BAD]


def test_a_full_list_that_was_interrupted_forgets_nothing_that_failed_in_its_first_part(
    store: Store, clock: Clock
) -> None:
    def later(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.arguments.get("resumptionToken", "").endswith("|40"):
            return replace(reply, status=503, headers={"Retry-After": "86400"})
        return reply

    bad = m.malformed_record(BAD, single=True)
    with Provider(None, bad, later) as provider:
        assert at(clock, store, provider.url).outcome == "incomplete"
        provider.faults = (bad,)
        clock.now += timedelta(seconds=10)
        assert at(clock, store, provider.url).outcome == "complete"
    assert list(failed(store)) == [BAD]


CHILD = """
import sys
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.store import open_store
with open_store(sys.argv[1]) as store:
    harvest_all(store, Settings(harvest=Harvest(retries=1, backoff_seconds=0.01)),
                [Source(sys.argv[2], name="repo")], index=False)
"""


def test_killed_while_it_asks_again_nothing_is_forgotten(tmp_path: Path) -> None:
    bad = [f"oai:x.org:000{i}" for i in range(6)]
    with Provider(None, *(m.malformed_record(i, single=True) for i in bad)) as provider:
        with store_in(tmp_path) as store:
            assert harvest(store, provider.url).owed == 6
        child: list[subprocess.Popen[bytes]] = []

        def kill(request: m.Request, reply: m.Reply) -> m.Reply:
            """The run dies when it asks for the fourth."""
            if request.verb == "GetRecord" and request.arguments["identifier"] == bad[3]:
                os.kill(child[0].pid, signal.SIGKILL)
            return reply

        provider.faults = (kill,)
        child.append(subprocess.Popen([sys.executable, "-c", CHILD, store_url(tmp_path), provider.url]))
        assert child[0].wait(60) == -signal.SIGKILL
        with store_in(tmp_path) as store:
            assert set(failed(store)) | set(held(store)) >= set(bad), "each is had or owed"
            assert set(failed(store)) >= set(bad[3:])
            provider.faults = ()
            assert harvest(store, provider.url).ok
            assert set(held(store)) == provider.live()
            assert failed(store) == {}


def test_the_commands_tell_what_is_owed(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path)]
    with Provider(None, m.malformed_record(BAD, single=True)) as provider:
        for _ in range(2):
            done = CliRunner().invoke(harvest_command, [provider.url, *data, "--name", "repo", "--json"])
            assert (done.exit_code, json.loads(done.stdout)[0]["owed"]) == (3, 1)
        done = CliRunner().invoke(harvest_command, [provider.url, *data, "--name", "repo", "--quiet"])
        assert "1 owed, to be asked for again" in done.output
    shown = CliRunner().invoke(failures_command, data).output
    assert "attempts: 3" in shown and "since 20" in shown and "next attempt from 20" in shown
    told = json.loads(CliRunner().invoke(failures_command, [*data, "--jsonl"]).output)
    assert (told["attempts"], told["since"] <= told["at"] <= told["next"]) == (3, True)
