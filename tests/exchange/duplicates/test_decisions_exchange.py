"""Decisions about duplicates travel between real nodes; what was decided here stays, all can be undone."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from indlet.errors import BadResponse
from indlet.exchange.alerts import alerts
from indlet.exchange.duplicates import decisions, other_decisions
from indlet.exchange.duplicates.decisions import PairDecision, counting, decide, elsewhere_in
from indlet.exchange.duplicates.job import decided, look, waiting
from indlet.exchange.duplicates.listed import listed
from indlet.exchange.duplicates.shared_decisions import decisions_list
from indlet.model import Record
from indlet.provider.serve import application
from indlet.provider.serve.access import AccessGate, Permit
from indlet.provider.serve.repository import Repository
from indlet.service.pipeline import harvest_all
from indlet.settings import Access, Duplicates, Harvest, Hierarchy, Node, Settings, Source
from indlet.store import Store, View, open_store
from indlet.text import policy_of

ONE, OTHER = "oai:lanl.example.org:1", "oai:larc.example.org:1"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class Laboratory:
    """A node with one report, which also the other has."""

    def __init__(self, name: str, folder: Path, access: Access | None = None) -> None:
        self.name = name
        bound = socket.create_server(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.settings = Settings(
            data=folder / name,
            node=Node(name=name, port=port),
            hierarchy=(Hierarchy(str(folder), name=name, access=access or Access()),),
            duplicates=Duplicates(exchange=True),
            harvest=Harvest(retries=0),
        )
        self.store: Store = open_store(self.settings.data)
        said = {"title": ["Flutter of swept wings at transonic speed"], "creator": ["Garrick, Isadore"]}
        with self.store.write() as tx:
            record = Record(f"oai:{name}.example.org:1", {**said, "date": ["1957"]})
            tx.put(tx.origin("hierarchy", name), [record])
        self.asked: list[tuple[str, int]] = []  # paths and statuses
        self.app: Any = application(self.store, self.settings)
        self._server = uvicorn.Server(uvicorn.Config(self, log_level="error", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [bound]})
        self._thread.start()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.asked.append((scope["path"], message["status"]))
            await send(message)

        await self.app(scope, receive, noted)

    def harvest(self, *others: Laboratory, republish: bool = True) -> None:
        sources = [Source(o.url, name=o.name, republish=republish) for o in others]
        done = harvest_all(self.store, self.settings, sources, index=False)
        assert [p.outcome for p in done] == ["complete"] * len(done), [p.reason for p in done]
        assert not any(p.repairs for p in done)

    def decide(self, decision: str, by: str) -> None:
        decide(self.store, ONE, OTHER, decision, by=by)

    def heard(self) -> list[tuple[str, str, str]]:
        with self.store.read() as view:
            return [(d.decision, d.by, d.node) for d in elsewhere_in(view).get((ONE, OTHER), ())]

    def counts(self) -> str | None:
        with self.store.read() as view:
            found = counting(decisions.decisions_in(view), elsewhere_in(view), ONE, OTHER)
        return found.decision if found else None

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.store.close()


Start = Callable[..., Laboratory]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def started(name: str, access: Access | None = None) -> Laboratory:
            found = Laboratory(name, tmp_path, access)
            stack.callback(found.close)
            return found

        yield started


def test_a_decision_travels_counts_where_nobody_decided_and_can_be_taken_back(start: Start) -> None:
    lanl, larc = start("lanl"), start("larc")
    lanl.harvest(larc)
    larc.harvest(lanl)
    look(larc.store)
    assert len(waiting(larc.store)[1]) == len(list(alerts(larc.store))) == 1
    lanl.decide("same", "Ruth")
    larc.harvest(lanl)
    assert larc.heard() == [("same", "Ruth", lanl.url)]
    assert larc.counts() == "same"
    assert not list(listed(larc.store))
    (shown,) = listed(larc.store, everything=True)
    assert (shown["decision"], shown["by"], shown["node"]) == ("same", "Ruth", lanl.url)
    assert look(larc.store) == 0
    assert not list(alerts(larc.store))
    lanl.harvest(larc)  # its own decision comes back to it, and is left alone
    assert lanl.heard() == []
    lanl.decide("open", "Ruth")
    larc.harvest(lanl)
    assert larc.counts() is None
    assert look(larc.store) == len(waiting(larc.store)[1]) == 1


def test_what_was_decided_here_stays_and_what_others_say_stands_beside_it(start: Start) -> None:
    lanl, larc = start("lanl"), start("larc")
    lanl.harvest(larc)
    larc.harvest(lanl)
    lanl.decide("same", "Ruth")
    larc.decide("different", "Ada")
    lanl.harvest(larc)
    larc.harvest(lanl)
    assert (lanl.counts(), larc.counts()) == ("same", "different")
    assert lanl.heard() == [("different", "Ada", larc.url)]
    (made,) = decided(larc.store)
    assert (made["decision"], made["node"]) == ("different", "")
    assert [(one["decision"], one["by"]) for one in made["elsewhere"]] == [("same", "Ruth")]
    larc.decide("open", "Ada")  # taken back here: open here, whatever others say
    assert larc.counts() is None
    with larc.store.read() as view:
        assert sum(live for live, _ in view.totals().values()) == 2  # nothing is deleted


def test_a_decision_goes_by_way_of_others_and_a_round_without_news_moves_none(start: Start) -> None:
    lanl, larc, afrl = start("lanl"), start("larc"), start("afrl")
    lanl.harvest(larc)
    lanl.decide("different", "Ruth")
    larc.harvest(lanl)
    afrl.harvest(larc)
    assert afrl.heard() == [("different", "Ruth", lanl.url)]
    larc.asked.clear()
    afrl.harvest(larc)
    assert ("/duplicates.json", 304) in larc.asked


def test_a_node_that_does_not_exchange_neither_tells_nor_asks(start: Start) -> None:
    lanl, larc = start("lanl"), start("larc")
    lanl.harvest(larc)
    larc.harvest(lanl)
    lanl.decide("same", "Ruth")
    larc.harvest(lanl, republish=False)
    assert larc.heard() == []
    lanl.app = application(lanl.store, replace(lanl.settings, duplicates=Duplicates()))
    assert httpx.get(f"{lanl.url}/duplicates.json").status_code == 404
    larc.harvest(lanl)
    assert larc.heard() == []
    larc.settings = replace(larc.settings, duplicates=Duplicates())
    lanl.app = application(lanl.store, lanl.settings)
    larc.harvest(lanl)
    assert larc.heard() == []


def test_a_pair_is_named_only_to_those_who_may_see_both_records(start: Start) -> None:
    lanl = start("lanl", Access(tokens=("secret",)))
    larc = start("larc")
    lanl.harvest(larc)
    lanl.decide("same", "Ruth")
    hidden = httpx.get(f"{lanl.url}/duplicates.json")
    assert hidden.json() == {"node": lanl.url, "decisions": []}
    assert hidden.headers["cache-control"].startswith("private")
    shown = httpx.get(f"{lanl.url}/duplicates.json", headers={"Authorization": "Bearer secret"})
    assert [one["records"] for one in shown.json()["decisions"]] == [[ONE, OTHER]]
    larc.harvest(lanl)
    assert larc.heard() == []


def test_a_node_that_changes_its_address_is_still_the_same_node(start: Start) -> None:
    lanl, larc = start("lanl"), start("larc")
    lanl.harvest(larc)
    larc.harvest(lanl)
    lanl.decide("same", "Ruth")
    larc.harvest(lanl)
    moved = replace(lanl.settings, node=replace(lanl.settings.node, base_url="https://lanl.example.org"))
    lanl.app = application(lanl.store, moved)
    lanl.decide("different", "Ruth")
    larc.harvest(lanl)
    assert larc.heard() == [("different", "Ruth", "https://lanl.example.org")]
    assert larc.counts() == "different"
    lanl.harvest(larc)  # what it decided under either address comes back to it, and is left alone
    assert lanl.heard() == []


def test_the_list_is_made_once_for_each_state_and_for_those_who_may_see_the_same(start: Start) -> None:
    lanl, larc = start("lanl", Access(tokens=("secret",))), start("larc")
    lanl.harvest(larc)
    lanl.decide("same", "Ruth")
    made = 0

    class Counting(Repository):
        def visible(self, view: View, permit: Permit) -> Callable[[str], bool]:
            nonlocal made
            made += 1
            return super().visible(view, permit)

    settings = lanl.settings
    repository = Counting(lanl.store, settings, lanl.store.now, policy_of(settings.analysis))
    body, gate = decisions_list(lanl.store, repository, lanl.url), AccessGate(settings)
    request = {"type": "http", "headers": [], "client": ("127.0.0.1", 1)}
    known = {**request, "headers": [(b"authorization", b"Bearer secret")]}
    hidden, shown = gate.permit(Request(request)), gate.permit(Request(known))
    assert b"Ruth" not in body(hidden) == body(hidden)
    assert b"Ruth" in body(shown) == body(shown)
    assert made == 2
    lanl.decide("different", "Ada")
    assert b"Ada" in body(shown)
    assert b"Ada" not in body(hidden)
    assert made == 4


USABLE = {
    "records": [ONE, OTHER], "decision": "same", "at": "2026-01-02T11:00:00Z", "revision": 0, "by": "Ruth",
    "node": "https://lanl.example.org",
}  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": "javascript:alert(1)"},
        {"node": "https://larc.example.org/ft-oai"},  # ourselves
        {"decision": "delete"},
        {"at": "2026-01-05T00:00:00Z"},  # could not be taken back for days
        {"at": "yesterday"},
        {"records": [ONE, ONE]},
        {"records": [ONE, "x" * 2000]},
        {"records": [ONE, "é" * 300]},  # in bytes
        {"records": [ONE, "oai:x.org:\0"]},  # which not every database can be asked for
        {"records": [ONE, 7]},
        {"revision": -1},
        {"revision": 1 << 40},
        {"revision": 0.5},
        {"revision": True},
        {"node_id": 7 * "x" + "\n"},
    ],
)
def test_what_cannot_be_used_is_left_out(wrong: dict[str, object]) -> None:
    body = json.dumps({"decisions": [{**USABLE, **wrong}, USABLE]}).encode()
    made = PairDecision("same", "2026-01-02T11:00:00Z", "Ruth", "https://lanl.example.org")
    assert list(other_decisions.read(body, {"larc.example.org"}, NOON)) == [((ONE, OTHER), made)]


@pytest.mark.parametrize(
    "body", ["", "<html>", "[]", '{"decisions": 7}', '{"decisions": [{}]}', '{"decisions": [{"records": 1}]}']
)
def test_an_answer_that_is_none_is_refused(body: str) -> None:
    with pytest.raises(BadResponse, match="cannot be read"):
        list(other_decisions.read(body.encode(), {"larc.example.org"}, NOON))


def _told(source: str, count: int, pair: str = "") -> list[tuple[decisions.Pair, PairDecision]]:
    day = "2026-01-02T{:02}:{:02}:{:02}Z"
    return [
        (
            (f"oai:{source}:{pair or n}", "oai:x:1"),
            PairDecision(
                "same", day.format(n // 3600, n // 60 % 60, n % 60), node=f"https://{source}-{n}.example",
                via=source,
            ),
        )
        for n in range(count)
    ]  # fmt: skip


def test_one_source_cannot_take_the_room_of_the_others() -> None:
    kept: decisions.History = {}
    assert decisions.merge(kept, _told("greedy", decisions.KEPT + 5)) == decisions.KEPT
    assert decisions.merge(kept, _told("lanl", 300)) == 300
    held = Counter(one.via for made in kept.values() for one in made)
    assert held["lanl"] == 300
    assert decisions.KEPT // 2 < held["greedy"] <= decisions.KEPT - 300
    latest = max(kept, key=lambda pair: kept[pair][0].at)
    assert latest[0].startswith("oai:greedy")  # the oldest have gone
    assert decisions.merge(kept, _told("greedy", decisions.KEPT + 5)) + held.total() <= decisions.KEPT
    assert sum(one.via == "lanl" for made in kept.values() for one in made) == 300


def test_one_pair_is_decided_on_by_so_many_nodes_of_a_source_and_no_more() -> None:
    kept: decisions.History = {}
    assert decisions.merge(kept, _told("greedy", 2000, "1")) == 50
    assert decisions.merge(kept, [(pair, replace(one, via="lanl", node="https://lanl.example"))
                                  for pair, one in _told("greedy", 1, "1")]) == 1  # fmt: skip


MADE = st.builds(
    PairDecision,
    st.sampled_from(decisions.CHOICES),
    st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]),
    st.just(""),
    st.sampled_from(["https://a.example", "https://b.example"]),
    st.integers(0, 2),
)


@given(st.lists(MADE, max_size=4))
def test_in_whatever_order_decisions_come_all_nodes_hold_the_same(made: list[PairDecision]) -> None:
    held = set()
    for order in permutations(made):
        kept: decisions.History = {}
        for one in order:
            decisions.merge(kept, [((ONE, OTHER), one)])
        assert decisions.merge(kept, [((ONE, OTHER), one) for one in order]) == 0
        held.add(json.dumps([one.order for one in kept.get((ONE, OTHER), ())]))
    assert len(held) == 1
