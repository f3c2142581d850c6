"""Real nodes that harvest each other over HTTP: crawled files travel round, and nothing comes back twice."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from lxml import etree

from indlet.formats.metadata import oai_dc
from indlet.model import Record, TermVector
from indlet.oai import provenance
from indlet.oai.read import canonical
from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.provider.workers import Workers
from indlet.service.harvest.cache import address_of
from indlet.service.harvest.one_origin import keeper
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import Run, RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Crawl, Harvest, Hierarchy, Node, Settings, Source
from indlet.store import Store, desk_sources, open_store
from indlet.text import Analyzer, policy_of

Held = dict[str, tuple[bytes, bytes | None]]


class Laboratory:
    """A node with a folder of its own, that harvests some others and serves what it has."""

    def __init__(self, name: str, folder: Path, workers: Workers) -> None:
        self.name, self._workers, self._time = name, workers, 1_500_000_000
        self.root = folder / name
        self.root.mkdir(parents=True)
        self._socket = socket.create_server(("127.0.0.1", 0))
        port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.settings = Settings(
            data=folder / f"{name}-data",
            node=Node(name=name, port=port, repository=f"{name}.example.org"),
            hierarchy=(Hierarchy(str(self.root), name="docs"),),
            crawl=Crawl(settle_seconds=0.0, workers=1),
            harvest=Harvest(retries=0, overlap_seconds=2),
        )
        self._ahead = 0.0  # each crawl happens some seconds after what was before
        self.store: Store = open_store(self.settings.data, clock=self._clock)
        self._server = uvicorn.Server(uvicorn.Config(self, log_level="error", lifespan="off", ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        self.app: Any = application(self.store, self.settings, clock=self._clock)

    def _clock(self) -> float:
        return time.time() + self._ahead

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    def harvests(self, *others: Laboratory) -> None:
        sources = tuple(Source(o.url, name=o.name, republish=True) for o in others)
        self.settings = replace(self.settings, source=sources)
        self.app = application(self.store, self.settings, clock=self._clock)

    def write(self, name: str, text: str) -> None:
        self._time += 10
        path = self.root / name
        path.write_text(text)
        os.utime(path, (self._time, self._time))

    def crawl(self) -> None:
        self._ahead += 2
        crawl(self.store, self.settings, workers=self._workers)

    def harvest(self) -> int:
        """How many records have changed."""
        done = harvest_all(self.store, self.settings, index=False)
        assert [p.outcome for p in done] == ["complete"] * len(done), [p.reason for p in done]
        return sum(p.changed for p in done)

    def holds(self) -> Held:
        """Every live record with its metadata and its statistics."""
        with self.store.read() as view:
            rows = [s for s in view.changes() if not s.deleted]
        found = {s.identifier: (canonical(etree.fromstring(s.raw)), s.vector) for s in rows}
        assert len(found) == len(rows), "a record is held twice"
        return found

    def own(self) -> Held:
        return {i: record for i, record in self.holds().items() if f":{self.name}.example.org:" in i}

    def rebuild(self) -> None:
        """Lose the store, and make another one of the files."""
        self.store.close()
        self.settings = replace(self.settings, data=self.settings.data.with_name(f"{self.name}-again"))
        self.store = open_store(self.settings.data, clock=self._clock)
        self.app = application(self.store, self.settings, clock=self._clock)
        self.crawl()

    def reconcile(self) -> list[tuple[str | None, str]]:
        """The outcomes and reasons of harvests that compare whole lists."""
        done = harvest_all(self.store, self.settings, index=False, options=RunOptions(reconcile=True))
        return [(progress.outcome, progress.reason) for progress in done]

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.store.close()


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    settings = Settings()
    with Workers(1, settings.crawl.limits, policy_of(settings.analysis)) as found:
        yield found


@pytest.fixture
def laboratories(tmp_path: Path, workers: Workers) -> Iterator[list[Laboratory]]:
    with contextlib.ExitStack() as stack:
        found = []
        for name in ("larc", "lanl", "afrl", "sandia"):
            found.append(Laboratory(name, tmp_path, workers))
            stack.callback(found[-1].close)
        yield found


def rounds(laboratories: list[Laboratory], most: int = 8) -> None:
    """Harvests go on until a round changes nothing."""
    for _ in range(most):
        if not sum(laboratory.harvest() for laboratory in laboratories):
            return
    raise AssertionError("the nodes do not come to rest")


def agree(laboratories: list[Laboratory]) -> None:
    union = {i: record for laboratory in laboratories for i, record in laboratory.own().items()}
    for laboratory in laboratories:
        assert laboratory.holds() == union, laboratory.name


TOPOLOGIES: dict[str, dict[int, tuple[int, ...]]] = {
    "ring": {0: (1,), 1: (2,), 2: (3,), 3: (0,)},
    "full": {n: tuple(m for m in range(4) if m != n) for n in range(4)},
    "star": {0: (1, 2, 3), 1: (0,), 2: (0,), 3: (0,)},
    "chain": {0: (1,), 1: (0, 2), 2: (1, 3), 3: (2,)},
    "two rings": {0: (1, 2), 1: (0,), 2: (3,), 3: (0,)},
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_node_comes_to_hold_every_record(laboratories: list[Laboratory], topology: str) -> None:
    for number, others in TOPOLOGIES[topology].items():
        laboratories[number].harvests(*(laboratories[other] for other in others))
    chance = random.Random(topology)
    for turn in range(3):
        for laboratory in laboratories:
            for name in ("a.txt", "b.txt", "c.txt"):
                if chance.random() < 0.3 and (laboratory.root / name).exists():
                    (laboratory.root / name).unlink()
                elif chance.random() < 0.6:
                    laboratory.write(name, f"{laboratory.name} {name} {turn} {chance.random()} layer")
            laboratory.write("kept.txt", f"kept {turn // 2}")
            laboratory.crawl()
            if chance.random() < 0.5:
                laboratory.harvest()
        rounds(laboratories)
        agree(laboratories)


def test_a_lost_node_does_not_take_its_records_along(laboratories: list[Laboratory]) -> None:
    one, two, three, _ = laboratories
    two.harvests(one)
    three.harvests(two)
    one.write("a.txt", "flutter of wings")
    one.crawl()
    two.harvest()
    one.app = None  # it is gone for good
    three.harvest()
    assert three.holds() == one.own()


def test_a_deletion_overtakes_an_old_copy(laboratories: list[Laboratory]) -> None:
    one, slow, fast, last = laboratories
    for node in (slow, fast):
        node.harvests(one)
    last.harvests(slow, fast)
    one.write("a.txt", "flutter")
    one.write("b.txt", "stays")
    one.crawl()
    slow.harvest()
    fast.harvest()
    (one.root / "a.txt").unlink()
    one.crawl()
    fast.harvest()
    last.harvest()  # hears of the live record from one of them, of its deletion from the other
    assert [i.rpartition("/")[2] for i in last.holds()] == ["b"]
    slow.harvest()
    last.harvest()
    assert [i.rpartition("/")[2] for i in last.holds()] == ["b"]


def test_what_is_passed_on_says_where_it_came_from(laboratories: list[Laboratory]) -> None:
    one, two, three, _ = laboratories
    two.harvests(one)
    three.harvests(two)
    one.write("a.txt", "flutter of wings")
    one.crawl()
    two.harvest()
    three.harvest()
    (name,) = one.own()
    asked = {"verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": name}
    page = etree.fromstring(httpx.get(f"{three.url}/oai", params=asked).content)
    (container,) = page.iter(f"{{{provenance.NAMESPACE}}}provenance")
    hops, _ = provenance.read([etree.tostring(container)])
    assert [hop.base_url.rpartition("/")[0] for hop in hops] == [two.url, one.url]
    assert [hop.identifier for hop in hops] == [name, name]
    sets = [node.text or "" for node in page.iter("{*}setSpec")]
    assert sets[0] == "docs" and sets[1].startswith("from:") and len(sets) == 2
    asked["indexPrefix"] = "tf_compact"
    answers = [httpx.get(f"{node.url}/ft-oai", params=asked).content for node in (one, three)]
    vectors = [etree.tostring(next(etree.fromstring(a).iter("{*}index"))[0], method="c14n") for a in answers]
    assert vectors[0] == vectors[1]  # the statistics of a cache are those of the origin


def test_an_origin_met_through_others_is_held_once_when_it_becomes_a_source(
    laboratories: list[Laboratory],
) -> None:
    larc, lanl, afrl, _ = laboratories
    afrl.write("ice.txt", "ice on wings")
    afrl.crawl()
    lanl.harvests(afrl)
    larc.harvests(lanl)
    rounds([lanl, larc])
    with larc.store.read() as view:
        (met,) = [o for o in view.origins("source") if o.settings.get("learned_from")]
    assert met.name != "ours"
    # The same origin, by its own address, under a name that the operator chose.
    larc.settings = replace(
        larc.settings,
        source=(*larc.settings.source, Source(f"{afrl.url}/oai", name="ours", republish=True, index="none")),
    )
    rounds([lanl, larc])
    assert larc.holds().keys() == afrl.holds().keys()  # which fails where one is held twice
    with larc.store.read() as view:
        origins = {o.name: o for o in view.origins("source")}
        kept = [s for s in view.changes() if s.origin == origins["ours"].id]
    assert origins.keys() == {"lanl", "ours"}
    assert origins["ours"].id == met.id
    assert "learned_from" not in origins["ours"].settings
    assert [[spec for spec in s.sets.split() if spec.startswith("from:")] for s in kept] == [["from:ours"]]


def _passed_on(one: Laboratory, two: Laboratory, three: Laboratory) -> None:
    """A record of the first comes to the second, and from there to the third."""
    one.write("a.txt", "flutter of wings")
    one.crawl()
    two.harvests(one)
    three.harvests(two)
    rounds([two, three])


def _told(laboratory: Laboratory) -> list[tuple[str, str]]:
    with laboratory.store.read() as view:
        return [(a.source, a.reason) for a in view.alerts(acknowledged=True) if a.kind == "twice"]


def test_an_origin_under_two_names_is_held_once(laboratories: list[Laboratory]) -> None:
    one, two, three, _ = laboratories
    _passed_on(one, two, three)
    first = two.settings.source[0]
    twin = replace(first, name="larc-again", url=f"{first.url}/oai")
    for other in (replace(twin, set="reports"), replace(twin, republish=False)):  # other copies are meant
        two.settings = replace(two.settings, source=(first, replace(other, name=f"{other.name}{other.set}")))
        harvest_all(two.store, two.settings, index=False)
        assert not _told(two)
    with two.store.write() as tx:  # the copy that is not passed on
        tx.forget(tx.origin("source", "larc-again"))
    two.settings = replace(two.settings, source=(first, twin))
    rounds([two, three])
    assert _told(two) == [
        ("larc-again", "the source larc has the same address, and keeps the records of both")
    ]
    one.write("a.txt", "flutter of swept wings")
    one.crawl()
    rounds([two, three])
    agree([one, two, three])
    two.settings = replace(
        two.settings, source=(twin,)
    )  # renamed: the name of the settings takes the records
    rounds([two, three])
    agree([one, two, three])
    assert not _told(two)
    with two.store.read() as view:
        kept = view.origin("source", "larc-again")
        assert kept is not None
        assert [s.origin for s in view.changes() if not s.deleted] == [kept.id]


def test_sources_of_one_address_with_different_sets_lose_and_revive_nothing(
    laboratories: list[Laboratory],
) -> None:
    one, two, three, _ = laboratories
    for name in ("a/1.txt", "a/2.txt", "b/1.txt", "b/2.txt"):
        (one.root / name).parent.mkdir(exist_ok=True)
        one.write(name, f"flutter {name}")
    one.crawl()
    parts = tuple(Source(one.url, name=f"larc-{x}", set=f"docs:{x}", republish=True) for x in "ab")
    two.settings = replace(two.settings, source=parts)
    two.app = application(two.store, two.settings, clock=two._clock)
    three.settings = replace(three.settings, source=(*parts, Source(two.url, name="lanl", republish=True)))
    rounds([two, three])
    agree([one, two, three])  # each record once, though it came by two ways
    three.harvests(two)  # what it harvested itself comes by way of another from now on
    (one.root / "b/2.txt").unlink()
    one.write("b/1.txt", "transonic")
    one.crawl()
    rounds([two, three])
    agree([one, two, three])
    two.harvests(one)  # all of it, where there were two sets
    (one.root / "a/2.txt").unlink()
    one.crawl()
    rounds([two, three])
    agree([one, two, three])


def test_two_first_runs_at_once_agree_on_who_keeps_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzer, runs = Analyzer(policy_of(Settings().analysis)), dict[str, Run]()

    def begin(store: Store, name: str) -> None:
        source = Source("http://lab.example/", name=name, republish=True)
        runs[name] = Run(store, source, name, analyzer, Harvest(), Progress(name))
        runs[name].fetcher.close()

    def late(store: Store, name: str, source: Source, ranks: dict[str, int]) -> str:
        if name == "larc":  # which is entered, and has not looked yet
            begin(store, "again")
        return keeper(store, name, source, ranks)

    monkeypatch.setattr("indlet.service.harvest.run.keeper", late)
    with open_store(tmp_path) as store:
        begin(store, "larc")
    assert {name: run.kept_as for name, run in runs.items()} == {"larc": "larc", "again": "larc"}


def test_no_source_is_known_by_the_address_of_another(tmp_path: Path) -> None:
    lanl, met, mine = "http://lanl.example/oai", "http://met.example/", "http://127.0.0.1:8/ft-oai"
    with open_store(tmp_path) as store:
        with store.write() as tx:
            tx.origin("source", "lanl", {"url": lanl})
            tx.origin("source", "met", {"url": met, "learned_from": "lanl"})
            tx.origin("source", "mine", {"url": mine})
        assert address_of(store, "mine", "http://lanl.example/ft-oai", mine) == mine
        assert address_of(store, "lanl", "http://lanl.example/ft-oai", lanl) == "http://lanl.example/ft-oai"
        # An origin that was only met is this one, for all that is known.
        assert [address_of(store, "mine", said, mine) for said in (met, "")] == [met, mine]


def test_what_an_operator_keeps_stays_kept_under_another_name(tmp_path: Path) -> None:
    larc = Source("http://lab.example/", name="larc", republish=True)
    again = replace(larc, name="again")
    first, later = ({"version": [0, f"2026-01-0{day}T00:00:00Z", True, 0]} for day in (1, 2))
    with open_store(tmp_path) as store:
        with store.write() as tx:
            old = tx.origin("source", "larc", larc.public())
            tx.origin("source", "again", again.public())
            tx.put(old, [Record("oai:x:1", {"title": ["Flutter"]}, properties=first)])
            tx.withhold(old, {"oai:x:1": {"sets": [], "properties": later}})
            tx.keep_withheld(old, "Ada")
            tx.alert("deletions", "larc", "", "one is said to be deleted", "see whether that is meant")
        assert keeper(store, "again", again, {"again": 0}) == "again"
        with store.read() as view:
            kept = view.origin("source", "again")
            assert kept is not None
            assert view.live(kept.id, ["oai:x:1"]) == {"oai:x:1"}
            (row,) = view.withheld(kept.id)
            assert (row.identifier, row.kept_by, row.detail["properties"]) == ("oai:x:1", "Ada", later)
            assert not view.alerts(acknowledged=True)


def _kept_as(laboratory: Laboratory) -> list[str]:
    """The names of the sources that live records are kept under."""
    with laboratory.store.read() as view:
        names = {origin.id: origin.name for origin in view.origins()}
        return sorted({names[stored.origin] for stored in view.changes() if not stored.deleted})


def test_while_one_of_two_names_is_paused_the_other_keeps_the_records(laboratories: list[Laboratory]) -> None:
    one, two, three, _ = laboratories
    _passed_on(one, two, three)
    first = two.settings.source[0]
    for paused, keeping in ((True, "again"), (False, "larc")):
        twin = replace(first, name="again")
        two.settings = replace(two.settings, source=(replace(first, paused=paused), twin))
        one.write("a.txt", f"flutter of wings, {keeping}")
        one.crawl()
        rounds([two, three])
        agree([one, two, three])
        assert _kept_as(two) == [keeping]


def test_records_that_stayed_when_their_source_was_removed_go_to_the_next_one(
    laboratories: list[Laboratory],
) -> None:
    one, two, three, _ = laboratories
    for name in ("a.txt", "b.txt"):
        one.write(name, f"flutter of wings, {name}")
    one.crawl()
    two.harvests(one)
    three.harvests(two)
    rounds([two, three])
    with two.store.read() as view, two.store.write() as tx:  # as the desk does
        (larc,) = view.origins("source")
        tx.state(larc.id, {**larc.state, "removed": True})
    two.settings = replace(two.settings, source=(replace(two.settings.source[0], name="again"),))
    one.write("a.txt", "flutter of swept wings")
    (one.root / "b.txt").unlink()
    one.crawl()
    rounds([two, three])
    agree([one, two, three])
    assert _kept_as(two) == ["again"]


def test_a_source_that_is_harvested_keeps_the_records_before_one_that_was_once(
    laboratories: list[Laboratory],
) -> None:
    one, two, _, _ = laboratories
    one.write("a.txt", "flutter of wings")
    one.crawl()
    two.harvests(one)
    two.harvest()
    added = replace(two.settings.source[0], name="again")
    two.settings = replace(two.settings, source=())  # moved from the settings to the desk
    with two.store.read() as view, two.store.write() as tx:
        (larc,) = view.origins("source")
        tx.state(larc.id, {**larc.state, "adopted": {"by": "Ada", "at": "2026-01-02T12:00:00Z"}})
        desk_sources.keep(tx, {"added": {"again": asdict(added)}})
    one.write("a.txt", "flutter of swept wings")
    one.crawl()
    harvest_all(two.store, two.settings, [added], index=False)
    assert two.holds() == one.holds()
    assert _kept_as(two) == ["again"]
    with two.store.read() as view:
        kept = view.origin("source", "again")
    assert kept is not None
    assert kept.state["adopted"]["by"] == "Ada"  # this node still speaks for the records


def test_what_comes_by_way_of_others_goes_to_the_name_that_keeps_the_records(
    laboratories: list[Laboratory],
) -> None:
    one, two, three, _ = laboratories
    one.write("a.txt", "flutter of wings")
    one.crawl()
    two.harvests(one)
    two.harvest()
    three.harvests(one)
    again = replace(two.settings.source[0], name="again")
    by_way = Source(three.url, name=three.name, republish=True)
    two.settings = replace(two.settings, source=(again, by_way))
    rounds([three, two])
    one.write("a.txt", "flutter of swept wings")
    one.crawl()
    three.harvest()
    harvest_all(two.store, two.settings, [by_way], index=False)
    assert two.holds() == one.holds()
    assert _kept_as(two) == ["again"]


def test_what_a_source_without_republish_passes_on_is_not_served_again(
    laboratories: list[Laboratory],
) -> None:
    one, two, three, _ = laboratories
    two.harvests(one)
    three.harvests(two)
    source = three.settings.source[0]
    for republish in (False, True):
        three.settings = replace(three.settings, source=(replace(source, republish=republish),))
        one.write("a.txt", f"flutter of wings {republish}")
        one.crawl()
        rounds([two, three])
        assert three.holds() == one.holds()
        with three.store.read() as view:
            (met,) = [o for o in view.origins("source") if "learned_from" in o.settings]
        assert met.settings["republish"] is republish


def test_copies_that_a_store_holds_under_two_names_are_brought_together(
    laboratories: list[Laboratory],
) -> None:
    one, two, three, _ = laboratories
    one.write("a.txt", "flutter of wings")
    one.write("b.txt", "ice on leading edges")
    one.crawl()
    two.harvests(one)
    two.harvest()
    three.harvests(two)
    with two.store.read() as view, two.store.write() as tx:  # as earlier versions left it
        old = tx.origin("source", "old", {**view.origins("source")[0].settings, "name": "old"})
        tx.put(old, [stored.record for stored in view.changes()])
    with three.store.read() as view:
        assert not view.last_seq()
    harvest_all(three.store, three.settings, index=False)
    one.write("a.txt", "flutter of swept wings")
    (one.root / "b.txt").unlink()
    one.crawl()
    rounds([two, three])
    agree([one, two, three])


def test_a_source_that_is_removed_at_one_node_is_removed_at_no_other(
    laboratories: list[Laboratory],
) -> None:
    one, two, three, _ = laboratories
    _passed_on(one, two, three)
    with two.store.write() as tx:
        tx.forget(tx.origin("source", "larc"))  # as the desk does
    three.harvest()
    assert three.holds() == one.holds()
    with two.store.write() as tx:  # and when it is a source again
        tx.state(tx.origin("source", "larc"), {})
    rounds([two, three])
    agree([one, two, three])


def test_what_comes_by_way_of_others_does_not_republish_a_source(laboratories: list[Laboratory]) -> None:
    one, two, three, _ = laboratories
    one.write("a.txt", "flutter of wings")
    one.crawl()
    two.harvests(one)
    two.harvest()
    three.harvests(one, two)
    larc = replace(three.settings.source[0], republish=False)
    three.settings = replace(three.settings, source=(larc, three.settings.source[1]))
    three.harvest()
    with three.store.read() as view:
        found = view.origin("source", "larc")
    assert found is not None
    assert found.settings["republish"] is False
    assert "learned_from" not in found.settings


def test_records_that_an_origin_dropped_with_its_store_go_everywhere(laboratories: list[Laboratory]) -> None:
    larc, lanl, *_ = laboratories
    for number, laboratory in enumerate(laboratories):
        laboratory.harvests(*(other for other in laboratories if other is not laboratory))
        for name in ("a", "b", "c"):
            laboratory.write(f"{name}.txt", f"Report {name} of number {number} about wings")
        laboratory.crawl()
    with lanl.store.write() as tx:
        origin = tx.origin("hierarchy", "more")
        described = {f"oai:lanl.example.org:{n}": {"title": [f"Note {n}"]} for n in range(400)}
        note = TermVector.of({"note": 1})
        tx.put(origin, [Record(i, said, note, raw=oai_dc.write(said)) for i, said in described.items()])
    rounds(laboratories)
    agree(laboratories)
    (larc.root / "b.txt").unlink()
    larc.rebuild()
    larc.harvest()
    for laboratory in laboratories:
        # Each lists the records of all others, which are held under their own origins.
        assert laboratory.reconcile() == [("complete", "")] * 3, laboratory.name
    rounds(laboratories)
    assert len(larc.own()) == 2
    agree(laboratories)
