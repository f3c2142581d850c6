"""robots.txt, hours, budgets, pauses of hosts, and runs that are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.sidecar.platforms import ArXiv, DSpace6, Kind, PlatformItem, PlatformServer, Response, items, page
from tests.sidecar.test_sidecar_platforms import ORIGIN, settings_for, states, terms

from indlet.errors import SettingsError
from indlet.service.pipeline import harvest_all
from indlet.settings import Sidecar
from indlet.sidecar.pace import BudgetSpent, DayBudget, HostPaused, Hosts, opening
from indlet.sidecar.robots import parse_robots
from indlet.sidecar.run import fetch_documents
from indlet.sidecar.status import describe, status_of
from indlet.store import open_store

ROBOTS = b"""\
User-agent: otherbot
Disallow: /

User-agent: *
Crawl-delay: 2.5
Disallow: /search
Disallow: /*.php$
Disallow: /private/
Allow: /private/open
Disallow: /a%2fb
Disallow:
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True), ("/search", False), ("/searching?q=1", False), ("/x.php", False), ("/x.php?a=1", True),
        ("/private/x", False), ("/private/open.pdf", True), ("/a%2Fb", False), ("/ab", True),
    ],
)  # fmt: skip
def test_the_longest_rule_of_robots_txt_counts(path: str, allowed: bool) -> None:
    rules = parse_robots(ROBOTS, "indlet/0.2 (documents)")
    assert rules.delay == 2.5
    assert rules.allows(f"https://r.org{path}") is allowed


def test_a_group_for_us_comes_before_the_group_for_all() -> None:
    body = b"User-agent: *\nDisallow: /\nUser-agent: Indlet\nUser-agent: x\nDisallow: /pdf\n"
    rules = parse_robots(body, "indlet/0.2")
    assert rules.allows("https://r.org/abs") and not rules.allows("https://r.org/pdf/1")
    assert parse_robots(b"\xff\xfe" * 100_000, "indlet").allows("https://r.org/")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("hours", "now", "then"),
    [
        ("", "2024-05-01T12:00", "2024-05-01T12:00"),
        ("20:00-06:00", "2024-05-01T12:00", "2024-05-01T20:00"),
        ("20:00-06:00", "2024-05-01T23:00", "2024-05-01T23:00"),
        ("20:00-06:00", "2024-05-02T05:59", "2024-05-02T05:59"),
        ("20:00-06:00", "2024-05-02T06:00", "2024-05-02T20:00"),
        ("01:00-02:00, 13:00-14:00", "2024-05-01T12:30", "2024-05-01T13:00"),
    ],
)
def test_hours_may_pass_midnight(hours: str, now: str, then: str) -> None:
    assert opening(hours, at(now)) == at(then)


def test_hours_that_are_none_are_named() -> None:
    with pytest.raises(SettingsError, match="20:00-06:00"):
        opening("at night", 0.0)


def test_a_budget_is_one_of_a_day() -> None:
    budget, sidecar = DayBudget(), Sidecar(requests_per_day=2, bytes_per_day=100)
    budget.charge("2024-05-01", 1, 99)
    budget.require(sidecar, "2024-05-01")
    budget.charge("2024-05-01", 1, 2)
    with pytest.raises(BudgetSpent):
        budget.require(sidecar, "2024-05-01")
    budget.require(sidecar, "2024-05-02")


def test_a_host_that_fails_is_left_alone_for_growing_pauses() -> None:
    now = [1000.0]
    hosts = Hosts(Sidecar(), clock=lambda: now[0])
    pauses = []
    for _ in range(3):
        hosts.note_failure("a.org", "no answer", None, asked=False)
        hosts.note_failure("a.org", "no answer", None, asked=False)
        with pytest.raises(HostPaused) as paused:
            hosts.note_failure("a.org", "no answer", None, asked=False)
        pauses.append(paused.value.until - now[0])
        assert list(hosts.paused_hosts()) == ["a.org"]
        now[0] = paused.value.until + 1
    assert pauses == [300, 600, 1200]
    hosts.note_success("a.org")
    with pytest.raises(HostPaused) as paused:
        hosts.note_failure("a.org", "429", 20.0, asked=True)
    assert paused.value.until - now[0] == 20


def test_the_budget_of_a_source_holds_over_restarts(tmp_path: Path) -> None:
    with ArXiv(items(12, (Kind.OPEN,))) as server:
        sidecar = Sidecar(delay_seconds=0.0, requests_per_day=8)
        settings = settings_for(server, tmp_path, sidecar)
        with open_store(tmp_path) as store:
            harvest_all(store, settings, index=False)
        harvested = len(server.requests)
        for _ in range(3):
            with open_store(tmp_path) as store:
                fetch_documents(store, settings, settings.source)
                held_up = status_of(store, ORIGIN).held_up
        assert len(server.requests) - harvested <= 9
    assert "requests today" in held_up


class ManyHosts(DSpace6):
    """A repository some of whose files are on other hosts, of which two are broken."""

    def __init__(self, found: list[PlatformItem], others: list[str]) -> None:
        self.others = others
        super().__init__(found)

    def add(self, item: PlatformItem) -> None:
        super().add(item)
        if item.number % 5 == 0:
            self.html(f"/handle/1721.1/{item.number}", page(item.title))

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        text = super().metadata(item, prefix)
        other = self.others[item.number % len(self.others)] if item.number % 5 == 0 else ""
        return text.replace(f"{self.root}/bitstream", f"{other}/bitstream") if other else text


CHILD = """
import sys
from indlet.net.settings import Harvest
from indlet.settings import Settings, Sidecar, Source
from indlet.sidecar.run import fetch_documents
from indlet.store import open_store
source = Source(sys.argv[2], name="dspace6", fulltext="fetch")
settings = Settings(sidecar=Sidecar(delay_seconds=0.0), source=(source,),
                    harvest=Harvest(timeout_seconds=0.5, stall_seconds=0.5, retries=0))
with open_store(sys.argv[1]) as store:
    fetch_documents(store, settings, settings.source)
"""


def fetch_and_kill(folder: Path, server: PlatformServer, rounds: int, seconds: float) -> int:
    """Processes that fetch, each killed after a while; the last one may end. How many were killed."""
    killed = 0
    for turn in range(rounds + 1):
        process = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), server.url])
        if turn == rounds:
            assert process.wait(300) == 0
            break
        before = len(server.requests)
        while process.poll() is None and len(server.requests) < before + 25:
            time.sleep(seconds)
        if process.poll() is None:
            process.kill()
            killed += 1
        process.wait()
    return killed


def test_broken_hosts_and_kills_lose_nothing_and_repeat_little(tmp_path: Path) -> None:
    count, rounds = 120, 3
    with (
        ArXiv(items(1)) as broken,
        ManyHosts(items(count, (Kind.OPEN,)), [broken.root, "http://127.0.0.1:9"]) as server,
    ):
        broken.before = lambda path: Response(b"", 500)
        settings = settings_for(server, tmp_path)
        with open_store(tmp_path) as store:
            harvest_all(store, settings, index=False)
        killed = fetch_and_kill(tmp_path, server, rounds, 0.02)
        with open_store(tmp_path) as store:
            known = states(store, server)
            line = describe(status_of(store, ORIGIN))
    assert killed
    found = terms(tmp_path)
    elsewhere = {server.identifier(i) for i in server.items.values() if i.number % 5 == 0}
    assert len(known) == count
    assert set(found) == known.keys() - elsewhere
    assert all(found[server.identifier(i)][i.word] == 2 for i in server.items.values() if i.number % 5)
    assert {known[name].state for name in elsewhere} == {"waiting"}
    assert f"{count - len(elsewhere)} of {count} with full text; {len(elsewhere)} waiting" in line
    # What was fetched twice is what a killed process had not committed.
    fetched = Counter(seen.path for seen in server.requests if seen.path.startswith("/bitstream"))
    assert sum(fetched.values()) - len(fetched) <= 20 * killed
    # A broken host is left alone after a few requests, by later processes too.
    assert len(broken.requests) <= 4 * (killed + 1)
    assert all(json.loads(known[name].files) for name in found)
