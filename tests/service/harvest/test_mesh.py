"""Nodes that harvest each other in any topology come to hold exactly what the origins hold.

The world here is small: origins that change records, several times a second if they like, and are restored
from backups; nodes that harvest origins and each other, in any order, and crash before they have noted how
far they were. Only the decisions are the product's.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.oai.provenance import BY_ORIGIN, ON_THE_WAY, Version
from indlet.service.harvest.mesh import Form, Held, Taken, direct, origin_key, passed_on

RECORDS = range(3)


@dataclass
class Origin:
    """A repository: its records with their datestamps, and a clock in seconds."""

    records: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    backup: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    clock: int = 1000

    def now(self) -> str:
        return f"{self.clock:06}"

    def change(self, record: int, content: bytes) -> None:
        self.records[record] = (self.now(), content)  # an empty content is a deletion


@dataclass
class Node:
    held: dict[int, Held] = field(default_factory=dict)
    log: list[int] = field(default_factory=list)  # our own order of changes
    cursors: dict[int, int] = field(default_factory=dict)
    since: str = ""
    moved: int = 0

    def put(self, record: int, held: Held) -> None:
        self.held[record] = held
        self.log.append(record)
        self.moved += 1

    def ask(self, origin: Origin, crash: bool, everything: bool = False) -> None:
        """What the origin says since the last time, both ends included."""
        response = origin.now()
        for record, (stamp, content) in sorted(origin.records.items()):
            if everything or stamp >= self.since:
                taken, version = direct(self.held.get(record), stamp, response > stamp, content)
                if taken is Taken.KEEP:
                    self.put(record, Held(version, content))
        if everything:  # a reconciliation: what is no longer listed is gone
            for record in self.held.keys() - origin.records.keys():
                if self.held[record].digest:
                    version = direct(self.held[record], response, True, b"")[1]
                    self.put(record, Held(version, b""))
        if not crash:
            self.since = response

    def harvest(self, number: int, other: Node, crash: bool) -> None:
        begin = self.cursors.get(number, 0)
        end = len(other.log)
        for record in dict.fromkeys(other.log[begin:end]):
            copy = other.held[record]
            if passed_on(self.held.get(record), copy.version, copy.digest) is Taken.KEEP:
                self.put(record, copy)
        if not crash:
            self.cursors[number] = end


EVENTS = st.one_of(
    st.tuples(st.just("change"), st.sampled_from(RECORDS), st.sampled_from([b"", b"a", b"b", b"c"])),
    st.tuples(st.just("tick"), st.integers(1, 3), st.none()),
    st.tuples(st.just("backup"), st.none(), st.none()),
    st.tuples(st.just("restore"), st.none(), st.none()),
    st.tuples(st.just("ask"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("harvest"), st.tuples(st.integers(0, 3), st.integers(0, 3)), st.booleans()),
    st.tuples(st.just("lose"), st.integers(0, 3), st.none()),
)


@settings(max_examples=500, deadline=None)
@given(
    st.integers(2, 4),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9),
    st.sets(st.integers(0, 3), min_size=1, max_size=2),
    st.lists(EVENTS, max_size=40),
)
def test_every_node_comes_to_hold_what_the_origin_holds(
    count: int, edges: set[tuple[int, int]], askers: set[int], events: list[tuple[str, object, object]]
) -> None:
    origin, nodes = Origin(), [Node() for _ in range(count)]
    asking = sorted({a % count for a in askers})
    # A ring, so that everybody hears of everything in the end, and whatever else there is.
    links = {(n, (n + 1) % count) for n in range(count)} | {(a % count, b % count) for a, b in edges}
    links = {(a, b) for a, b in links if a != b}
    restored = False
    for what, one, two in events:
        match what, one, two:
            case "change", int(record), bytes(content):
                origin.change(record, content)
            case "tick", int(seconds), _:
                origin.clock += seconds
            case "backup", _, _:
                origin.backup = dict(origin.records)
            case "restore", _, _:
                origin.records, restored = dict(origin.backup), True
            case "ask", int(number), bool(crash):
                nodes[asking[number % len(asking)]].ask(origin, crash)
            case "harvest", (int(a), int(b)), bool(crash):
                if (a % count, b % count) in links:
                    nodes[a % count].harvest(b % count, nodes[b % count], crash)
            case "lose", int(number), _:
                # A node comes back empty: its readers notice that its list begins anew.
                nodes[number % count] = Node()
                for node in nodes:
                    node.cursors.pop(number % count, None)
    origin.clock += 2
    for _ in range(3 * count + 4):
        for number in asking:
            nodes[number].ask(origin, False, everything=restored)
        for a, b in sorted(links):
            nodes[a].harvest(b, nodes[b], False)
        origin.clock += 1
    expected = {record: content for record, (_, content) in origin.records.items()}
    for node in nodes:
        live = {record: held.digest for record, held in node.held.items() if held.digest}
        assert live == {record: content for record, content in expected.items() if content}
    # And then there is silence: a round without changes moves nothing.
    moved = [node.moved for node in nodes]
    for number in asking:
        nodes[number].ask(origin, False, everything=restored)
    for a, b in sorted(links):
        nodes[a].harvest(b, nodes[b], False)
    assert [node.moved for node in nodes] == moved


@dataclass
class CautiousNode(Node):
    """Deletions of what it shows wait for an operator; to all decisions they have happened."""

    waiting: dict[int, Held] = field(default_factory=dict)
    shown: dict[int, Held] = field(default_factory=dict)

    def put(self, record: int, held: Held) -> None:
        self.held[record] = held
        if not held.digest and record in self.shown and self.shown[record].digest:
            self.waiting[record] = held
            return
        self.show(record, held)

    def show(self, record: int, held: Held) -> None:
        self.waiting.pop(record, None)
        self.shown[record] = held
        self.log.append(record)

    def harvest(self, number: int, other: Node, crash: bool) -> None:
        assert isinstance(other, CautiousNode)
        super().harvest(number, Node(other.shown, other.log), crash)

    def release(self) -> None:
        for record, held in list(self.waiting.items()):
            self.show(record, held)


STEPS = st.one_of(
    st.tuples(st.just("change"), st.sampled_from(RECORDS), st.sampled_from([b"", b"", b"a", b"b"])),
    st.tuples(st.just("tick"), st.integers(1, 2), st.just(b"")),
    st.tuples(st.just("ask"), st.integers(0, 2), st.just(b"")),
    st.tuples(st.just("harvest"), st.integers(0, 2), st.just(b"")),
    st.tuples(st.just("release"), st.integers(0, 2), st.just(b"")),
)


@settings(max_examples=300, deadline=None)
@given(st.sets(st.integers(0, 2), min_size=1), st.lists(STEPS, max_size=40))
def test_deletions_that_wait_delay_the_mesh_and_do_not_divide_it(
    asking: set[int], steps: list[tuple[str, int, bytes]]
) -> None:
    origin, nodes = Origin(), [CautiousNode() for _ in range(3)]
    for what, number, content in steps:
        match what:
            case "change":
                origin.change(number, content)
            case "tick":
                origin.clock += number
            case "ask" if number in asking:
                nodes[number].ask(origin, False)
            case "harvest":
                nodes[number].harvest((number + 1) % 3, nodes[(number + 1) % 3], False)
            case "release":
                nodes[number].release()
    origin.clock += 2
    expected = {record: content for record, (_, content) in origin.records.items()}
    for operators in (False, True):  # at first nobody releases anything
        for _ in range(8):
            for number in sorted(asking):
                nodes[number].ask(origin, False)
            for number in range(3):
                nodes[number].harvest((number + 1) % 3, nodes[(number + 1) % 3], False)
                if operators:
                    nodes[number].release()
            origin.clock += 1
        for node in nodes:
            shown = {record: held.digest for record, held in node.shown.items() if held.digest}
            live = {record: content for record, content in expected.items() if content}
            assert {
                r: c for r, c in shown.items() if r not in node.waiting and expected[r]
            } == live or operators
            if operators:
                assert shown == live and not node.waiting


@pytest.mark.parametrize(("early", "late"), [(b"a", b"b"), (b"b", b"a")])
def test_two_states_of_one_second_seen_by_two_nodes(early: bytes, late: bytes) -> None:
    """One node saw the first state, passed it on and is lost; another saw the second, in the same second."""
    origin, lost, other, last = Origin(), Node(), Node(), Node()
    origin.change(0, early)
    lost.ask(origin, False)
    last.harvest(0, lost, False)
    origin.change(0, late)
    other.ask(origin, False)
    last.harvest(1, other, False)
    origin.clock += 1
    other.ask(origin, False)
    last.harvest(1, other, False)
    assert last.held[0].digest == other.held[0].digest == late


@pytest.mark.parametrize(("one", "two"), [(b"a", b"b"), (b"b", b"a")])
def test_nodes_that_disagree_within_a_second_do_not_swap_for_ever(one: bytes, two: bytes) -> None:
    version = Version(0, "2024-05-01T00:00:00Z", settled=False)
    first, second = Node({0: Held(version, one)}, [0]), Node({0: Held(version, two)}, [0])
    for _ in range(5):
        before = deepcopy(first)
        first.harvest(1, second, False)
        second.harvest(0, before, False)  # both at the same time
    assert first.held == second.held and first.moved + second.moved == 1


def test_a_change_without_a_new_datestamp_is_passed_on() -> None:
    origin, node, other = Origin(), Node(), Node()
    origin.change(0, b"b")
    origin.clock += 5
    for content in (b"b", b"a", b"c"):
        origin.records[0] = ("001000", content)
        node.ask(origin, False, everything=True)
        other.harvest(0, node, False)
        assert other.held[0].digest == content


def test_an_old_copy_brings_no_deleted_record_back() -> None:
    gone = Held(Version(0, "2024-05-02T00:00:00Z"), b"")
    assert passed_on(gone, Version(0, "2024-05-01T00:00:00Z"), b"old") is Taken.OLDER


def test_a_restored_origin_is_believed() -> None:
    held = Held(Version(0, "2024-05-02T00:00:00Z"), b"new")
    taken, version = direct(held, "2024-05-01T00:00:00Z", True, b"old")
    assert taken is Taken.KEEP and version > held.version
    assert passed_on(held, version, b"old") is Taken.KEEP


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a.example.org/oai", "https://A.example.org/ft-oai/", True),
        ("http://a.example.org:8080/oai", "http://a.example.org/oai", False),
        ("http://a.example.org/x/oai", "http://a.example.org/oai", False),
        ("http://a.example.org/cgi/request", "http://a.example.org/cgi/request", True),
        ("http://a.example.org/oai.php?repository=a", "http://a.example.org/oai.php?repository=b", False),
        ("http://a.example.org/oai.php?repository=a", "https://a.example.org/oai.php?repository=a", True),
    ],
)
def test_origins_are_told_apart_by_their_addresses(one: str, other: str, same: bool) -> None:
    assert (origin_key(one) == origin_key(other)) is same


# Members that harvest in different formats


@dataclass
class Translating(Node):
    """A node of a mesh in which each harvest is in a format of its own; `asks`: that in which it asks."""

    asks: int = 0
    states: dict[int, bytes] = field(default_factory=dict)  # what the origin said, whatever the form

    def ask_for(self, origin: Origin, kept_in: int) -> None:
        response = origin.now()
        form = Form(0 if self.asks == kept_in else -BY_ORIGIN, self.asks)
        for record, (stamp, content) in sorted(origin.records.items()):
            if stamp >= self.since:
                digest = content and b"%b in %d" % (content, self.asks)
                taken, version = direct(self.held.get(record), stamp, response > stamp, digest, form)
                if taken is Taken.KEEP:
                    self.states[record] = content
                    self.put(record, Held(version, digest, form))
        self.since = response

    def harvest_in(self, number: int, other: Translating, wanted: int, salt: bytes) -> None:
        end = len(other.log)
        for record in dict.fromkeys(other.log[self.cursors.get(number, 0) : end]):
            copy = other.held[record]
            digest, form = copy.digest, copy.form
            if digest and form.richness != wanted:
                form = Form(form.nearness - ON_THE_WAY, wanted)
                digest = salt + blake2b(b"%b in %d" % (digest, wanted)).digest()
            if passed_on(self.held.get(record), copy.version, digest, form) is Taken.KEEP:
                self.states[record] = other.states[record]
                self.put(record, Held(copy.version, digest, form))
        self.cursors[number] = end


FORMATS = st.integers(0, 2)


@settings(max_examples=500, deadline=None)
@given(
    FORMATS,
    st.lists(FORMATS, min_size=4, max_size=4),
    st.lists(FORMATS, min_size=12, max_size=12),
    st.sets(st.integers(0, 3), min_size=1, max_size=3),
    st.lists(
        st.one_of(
            st.tuples(st.just("change"), st.sampled_from(RECORDS), st.sampled_from([b"", b"a", b"b"])),
            st.tuples(st.just("tick"), st.integers(1, 3), st.none()),
            st.tuples(st.just("ask"), st.integers(0, 3), st.none()),
            st.tuples(st.just("harvest"), st.integers(0, 11), st.none()),
        ),
        max_size=30,
    ),
    st.sampled_from([b"", b"\x00", b"\xff"]),
)
def test_the_form_that_the_origin_keeps_wins_in_every_mixture_of_formats(
    kept_in: int,
    asks: list[int],
    wanted: list[int],
    askers: set[int],
    events: list[tuple[str, int, bytes | None]],
    salt: bytes,
) -> None:
    origin, nodes = Origin(), [Translating(asks=one) for one in asks]
    links = [(a, b) for a in range(4) for b in range(4) if a != b]

    def harvest(link: int) -> None:
        a, b = links[link]
        nodes[a].harvest_in(b, nodes[b], wanted[link], salt)

    for what, number, content in events:
        match what:
            case "change":
                origin.change(number, content or b"")
            case "tick":
                origin.clock += number
            case "ask" if number in askers:
                nodes[number].ask_for(origin, kept_in)
            case "harvest":
                harvest(number)
    origin.clock += 2
    for _ in range(12):
        for number in sorted(askers):
            nodes[number].ask_for(origin, kept_in)
        for link in range(len(links)):
            harvest(link)
        origin.clock += 1
    whole = {number for number in askers if asks[number] == kept_in}
    for _ in nodes:
        whole |= {a for (a, b), form in zip(links, wanted, strict=True) if b in whole and form == kept_in}
    for number, node in enumerate(nodes):
        for record, (stamp, content) in origin.records.items():
            held = node.held.get(record)
            assert held is not None or not content
            if held is not None:
                assert node.states[record] == content
                assert held.version == Version(0, stamp, True, 0), "a translation is no version"
                if content and number in whole:
                    assert (held.digest, held.form) == (b"%b in %d" % (content, kept_in), Form(0, kept_in))
    moved = [node.moved for node in nodes]
    for number in sorted(askers):
        nodes[number].ask_for(origin, kept_in)
    for link in range(len(links)):
        harvest(link)
    assert [node.moved for node in nodes] == moved
