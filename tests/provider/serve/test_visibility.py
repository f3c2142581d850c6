"""Visibility is a change: what appears in a view is in its incremental lists, what leaves it, deleted."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from starlette.testclient import TestClient
from tests.provider.serve.conftest import SETTINGS, Clock, Provider, record
from tests.stores import store_in

from indlet.formats.metadata import oai_dc
from indlet.model import Record, TermVector
from indlet.provider.serve.scope import Scope
from indlet.settings import Access, Hierarchy, LibraryFolder, Source, VirtualRepository
from indlet.settings.file import from_mapping
from indlet.store.kept_tables import COUNTERS

Held = dict[str, tuple[str, ...] | None]  # identifier -> title and sets; None: deleted


class Harvester:
    """One requester at one endpoint: what it holds after incremental harvests, each from the last answer."""

    def __init__(
        self, path: str = "/oai", token: str = "", address: str = "198.51.100.1", set_spec: str = "",
        index: str = "",
    ) -> None:  # fmt: skip
        self.path, self.token, self.address, self.since = path, token, address, ""
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.selection = {"metadataPrefix": "oai_dc"} | ({"set": set_spec} if set_spec else {})
        self.selection |= {"indexPrefix": index} if index else {}
        self.held: Held = {}
        self.live: Held = {}

    def wants(self, sets: list[str]) -> bool:
        wanted = self.selection.get("set", "")
        return not wanted or any(one == wanted or one.startswith(f"{wanted}:") for one in sets)

    def harvest(self, provider: Provider) -> Held:
        """Bring what is held up to date; the records that came."""
        came, first = self.listed(provider, {"from": self.since} if self.since else {})
        self.since = first
        self.held |= came
        self.live = {name: value for name, value in self.held.items() if value is not None}
        return came

    def everything(self, provider: Provider) -> Held:
        return {n: v for n, v in self.listed(provider, {})[0].items() if v is not None}

    def listed(self, provider: Provider, bounds: dict[str, str]) -> tuple[Held, str]:
        client = TestClient(provider.app, base_url="http://x.org", client=(self.address, 1))
        found, first, size = Held(), "", 0
        arguments = {"verb": "ListRecords", **self.selection, **bounds}
        while arguments:
            root = etree.fromstring(client.get(self.path, params=arguments, headers=self.headers).content)
            first = first or root.findtext("{*}responseDate") or ""
            for node in root.iter("{*}record"):
                header = node.find("{*}header")
                assert header is not None
                size += 1
                sets = tuple(spec.text or "" for spec in header.iter("{*}setSpec"))
                gone = header.get("status") == "deleted"
                stamp = header.findtext("{*}datestamp") or ""
                assert not bounds or stamp >= bounds["from"]
                name = header.findtext("{*}identifier") or ""
                found[name] = None if gone else (node.findtext(".//{*}title") or "", *sets)
            token = root.find(".//{*}resumptionToken")
            more = token.text if token is not None else ""
            if token is not None and not more:
                assert int(token.get("completeListSize", "0")) == size
            arguments = {"verb": "ListRecords", "resumptionToken": more} if more else {}
        return found, first


def papers(*names: str, **access: Any) -> tuple[Hierarchy, ...]:
    return tuple(Hierarchy("/nowhere", name, access=Access(**access)) for name in names)


@pytest.fixture
def two(filled: Provider) -> Provider:
    """25 records of papers, two of them deleted, and 12 of a hierarchy that a token opens, one deleted."""
    filled.put((record(n, ("hidden:x",)) for n in range(100, 112)), origin="hidden")
    filled.delete([filled.name(111)], origin="hidden")
    restrict(filled)
    return filled


def restrict(provider: Provider, **access: tuple[str, ...]) -> None:
    provider.clock.now += 10
    hidden = papers("hidden", **(access or {"tokens": ("sesame",)}))
    provider.configure(replace(provider.settings, hierarchy=(*papers("papers"), *hidden)))


def unlock(provider: Provider) -> None:
    provider.clock.now += 10
    provider.configure(replace(provider.settings, hierarchy=papers("papers", "hidden")))


HIDDEN = {f"oai:x.org:papers/{n:04d}%20a" for n in range(100, 111)}


@pytest.mark.parametrize("index", ["", "tf_compact"])
@pytest.mark.parametrize("set_spec", ["", "hidden"])
def test_a_hierarchy_that_is_opened_and_closed_again(two: Provider, index: str, set_spec: str) -> None:
    path = "/ft-oai" if index else "/oai"
    anybody, friend = Harvester(path, set_spec=set_spec, index=index), Harvester(path, "sesame", index=index)
    anybody.harvest(two)
    friend.harvest(two)
    held = dict(friend.held)
    unlock(two)
    assert anybody.harvest(two).keys() >= HIDDEN and anybody.live == anybody.everything(two)
    assert two.name(111) not in anybody.held  # deleted before it was there for anybody
    assert friend.harvest(two).keys() - anybody.held.keys() == set() and friend.held == held
    restrict(two)
    assert {n for n, v in anybody.harvest(two).items() if v is None} >= HIDDEN
    assert anybody.live == anybody.everything(two) and not HIDDEN & anybody.live.keys()
    friend.harvest(two)
    assert friend.held == held
    for name in sorted(HIDDEN)[:2]:
        answer = two.ask(verb="GetRecord", metadataPrefix="oai_dc", identifier=name)
        header = answer.find(".//{*}header")
        assert header is not None and header.get("status") == "deleted"
        assert answer.find(".//{*}metadata") is None


@pytest.mark.parametrize("index", ["", "tf_compact"])
def test_a_record_that_leaves_a_set_is_deleted_in_its_lists(filled: Provider, index: str) -> None:
    def put(number: int, *sets: str, text: str = "wing air") -> None:
        filled.clock.now += 10
        filled.put([record(number, sets, text)])

    def harvest() -> None:
        for spec, each in harvesters.items():
            each.harvest(filled)
            wanted = {n for n, sets in members.items() if each.wants(sets)}
            assert each.live == each.everything(filled), spec
            assert each.live.keys() & names == {filled.name(n) for n in wanted}, spec

    path, specs = "/ft-oai" if index else "/oai", ("a", "a:x", "a:y", "b")
    harvesters = {spec: Harvester(path, set_spec=spec, index=index) for spec in specs}
    members = {200: ["a:x"], 201: ["a:x", "b"], 202: ["b"]}
    names = set(map(filled.name, members))
    for number, sets in members.items():
        put(number, *sets)
    harvest()
    everything = Harvester(path, index=index)
    everything.harvest(filled)
    members |= {200: ["a:y"], 201: ["b"]}
    put(200, "a:y")  # stays in a
    put(201, "b")
    assert None not in everything.harvest(filled).values()
    put(200, "a:y", text="flow")  # what left a set and changes later has left it still
    harvest()
    members |= {200: ["a:x"], 202: []}
    put(200, "a:x")
    put(202)
    harvest()
    filled.clock.now += 10
    filled.delete([filled.name(200)])
    members[200] = []
    harvest()


def test_a_library_that_is_closed_and_opened_again(two: Provider) -> None:
    def close(*tokens: str) -> None:
        two.clock.now += 10
        library = LibraryFolder("hidden", "/nowhere", access=Access(tokens=tokens))
        two.configure(replace(two.settings, hierarchy=papers("papers"), library=(library,)))

    anybody, friend = Harvester(), Harvester(token="sesame")
    close()
    for each in (anybody, friend):
        each.harvest(two)
        assert each.live.keys() >= HIDDEN
    for tokens in (("sesame",), ()):
        close(*tokens)
        for each in (anybody, friend):
            each.harvest(two)
            assert each.live == each.everything(two)
            assert each.live.keys() >= HIDDEN or (tokens and each is anybody)
        assert not (tokens and HIDDEN & anybody.live.keys())


def test_what_was_in_the_only_sets_is_deleted_there(filled: Provider) -> None:
    anybody = Harvester(set_spec="papers")
    assert anybody.harvest(filled)
    filled.clock.now += 10
    filled.configure(replace(filled.settings, hierarchy=papers("papers", tokens=("sesame",))))
    assert set(anybody.harvest(filled).values()) == {None}
    assert anybody.live == anybody.everything(filled) == {}


@pytest.mark.parametrize(("closed", "by_sets"), [(False, False), (True, False), (True, True)])
def test_a_repository_is_emptied_before_it_is_closed(two: Provider, closed: bool, by_sets: bool) -> None:
    """Who may no longer use it does not find it: this is how its records are withdrawn."""

    def offer(*names: str, closed: bool = False) -> None:
        two.clock.now += 10
        part = VirtualRepository("/oai/part", "Part", names, access=Access(tokens=("sesame",)), closed=closed)
        two.configure(replace(two.settings, repository=(part,)))

    friend = Harvester("/oai/part", token="sesame")
    offer("papers", "hidden")
    friend.harvest(two)
    assert friend.live.keys() >= HIDDEN
    if by_sets:
        offer("papers:a", "hidden")
        friend.harvest(two)
        assert friend.live == friend.everything(two)
    offer(*(("papers", "hidden") if closed else ()), closed=closed)
    came = friend.harvest(two)
    assert came.keys() >= HIDDEN and set(came.values()) == {None}
    assert friend.live == friend.everything(two) == {}
    offer("papers", "hidden")
    friend.harvest(two)
    assert friend.live == friend.everything(two) != {}


def test_a_source_that_is_closed_and_opened_again(two: Provider) -> None:
    passed_on = "oai:far.org:1"

    def close(*tokens: str) -> None:
        two.clock.now += 10
        source = Source(
            "http://partner.org/oai", name="partner", republish=True, access=Access(tokens=tokens)
        )
        two.configure(replace(two.settings, source=(source,)))

    with two.store.write() as tx:
        met = {"url": "http://far.org/oai", "republish": True, "learned_from": "partner"}
        for name, settings, identifier in (
            ("partner", {"url": "http://partner.org/oai", "republish": True}, "oai:partner.org:1"),
            ("far", met, passed_on),
        ):
            tx.put(tx.origin("source", name, settings), [Record(identifier, {"title": ["Wind"]})])
    anybody, friend = Harvester(), Harvester(token="sesame")
    close()
    for tokens in ((), ("sesame",), ()):
        close(*tokens)
        for each in (anybody, friend):
            each.harvest(two)
            assert each.live == each.everything(two)
            shown = not tokens or each is friend
            assert ({"oai:partner.org:1", passed_on} <= each.live.keys()) is shown
            assert shown or not {"oai:partner.org:1", passed_on} & each.live.keys()


def test_who_sees_it_anyway_is_told_nothing_new(two: Provider) -> None:
    friend = Harvester(token="sesame")
    friend.harvest(two)
    unlock(two)
    Harvester().harvest(two)
    two.clock.now += 10
    restrict(two)
    two.clock.now += 10
    friend.since = "2023-11-14T22:18:30Z"
    assert friend.harvest(two) == {}


def test_a_token_that_is_taken_back_ends_with_deletions(two: Provider) -> None:
    friend, other, office = Harvester(token="sesame"), Harvester(), Harvester(address="192.0.2.7")
    for each in (friend, other, office):
        each.harvest(two)
    restrict(two, tokens=("another",), networks=("192.0.2.0/24",))
    assert set(friend.harvest(two)) >= HIDDEN and not HIDDEN & friend.live.keys()
    assert other.harvest(two).keys() & HIDDEN == set()
    assert office.harvest(two).keys() >= HIDDEN and office.live == office.everything(two)
    new = Harvester(token="another")
    new.harvest(two)
    assert new.live.keys() >= HIDDEN
    restrict(two)
    for each in (friend, office, new):
        each.harvest(two)
        assert each.live == each.everything(two)


def test_what_changes_while_it_is_hidden_stays_hidden(two: Provider) -> None:
    anybody = Harvester()
    unlock(two)
    anybody.harvest(two)
    restrict(two)
    anybody.harvest(two)
    two.clock.now += 10
    two.put([record(100, ("hidden:y",), "secret"), record(120, ("hidden:y",))], origin="hidden")
    two.delete([two.name(101)], origin="hidden")
    two.clock.now += 10
    anybody.since = "2023-11-14T22:19:40Z"
    later = two.clock.now
    assert all(value is None for value in anybody.harvest(two).values())
    assert two.name(120) not in anybody.held
    two.clock.now = later + 10
    unlock(two)
    anybody.harvest(two)
    assert anybody.live == anybody.everything(two)
    assert anybody.live[two.name(100)] and two.name(101) not in anybody.live


def test_a_source_that_is_served_again_and_no_longer(filled: Provider) -> None:
    def source(republish: bool) -> None:
        filled.clock.now += 10
        with filled.store.write() as tx:
            origin = tx.origin("source", "s", {"url": "http://s.example/oai", "republish": republish})
            tx.put(origin, [record(n, ("other",)) for n in range(200, 220)])

    source(False)
    anybody, extended = Harvester(), Harvester("/ft-oai", index="tf_basic")
    for expected in (0, 20, 0, 20):
        source(bool(expected))
        for each in (anybody, extended):
            each.harvest(filled)
            assert each.live == each.everything(filled) and len(each.live) == 23 + expected


def test_a_virtual_repository_that_is_widened_and_narrowed(two: Provider) -> None:
    unlock(two)

    def show(*chosen: str) -> None:
        two.clock.now += 10
        two.configure(replace(two.settings, repository=(VirtualRepository("/oai/part", "Part", chosen),)))

    show("papers")
    part, whole = Harvester("/oai/part"), Harvester()
    sizes = {("papers",): 23, ("papers", "hidden"): 34, ("papers:a", "hidden"): 20, ("papers:b",): 14}
    for chosen, size in [*sizes.items(), *reversed(sizes.items())]:
        show(*chosen)
        part.harvest(two)
        assert part.live == part.everything(two) and len(part.live) == size, chosen
        whole.harvest(two)
    assert len(whole.live) == 34
    two.clock.now += 10
    whole.since = "2023-11-14T22:18:31Z"
    assert whole.harvest(two) == {}


def test_a_record_that_leaves_the_sets_of_a_virtual_repository(filled: Provider) -> None:
    virtual = VirtualRepository("/oai/part", "Part", ("papers:a",))
    filled.configure(replace(filled.settings, repository=(virtual,)))
    part, one_set = Harvester("/oai/part"), Harvester("/oai/part", set_spec="papers:a")
    for sets in ("papers:a", "papers:b", "papers:c", "papers:a", "papers:a:x"):
        filled.clock.now += 10
        filled.put([record(1, (sets,)), record(12, (sets,))])
        for each in (part, one_set):
            each.harvest(filled)
            assert each.live == each.everything(filled)
            assert (filled.name(12) in each.live) == (filled.name(1) in each.live) == ("papers:a" in sets)


def test_a_record_that_leaves_a_set_and_then_the_repository_is_deleted_in_that_set(filled: Provider) -> None:
    virtual = VirtualRepository("/oai/part", "Part", ("papers:a", "papers:b"))
    filled.configure(replace(filled.settings, repository=(virtual,)))
    often, seldom = Harvester("/oai/part"), Harvester("/oai/part", set_spec="papers:b")
    for number, sets in enumerate((("papers:a", "papers:b"), ("papers:a",), ("papers:c",))):
        filled.clock.now += 10
        filled.put([record(1, sets), record(12, sets)])
        for each in (often, seldom) if number != 1 else (often,):  # between two harvests of the set
            each.harvest(filled)
            assert each.live == each.everything(filled)


def test_nothing_is_written_where_nothing_changes(two: Provider) -> None:
    Harvester().harvest(two)
    with two.store.read() as view:
        seq = view.select(COUNTERS)
    two.configure(two.settings)
    Harvester().harvest(two)
    Harvester(token="sesame").harvest(two)
    with two.store.read() as view:
        assert view.select(COUNTERS) == seq and view.grants("") == []


def test_an_upgrade_dates_nothing_again(two: Provider) -> None:
    """The first list of a store that knows no grants takes what is shown now as it is."""
    came = Harvester(token="sesame").listed(two, {"from": "2023-11-14T22:18:31Z"})[0]
    assert came == {}


ACCESS = [
    {},
    {"tokens": ("one",)},
    {"tokens": ("one", "two")},
    {"networks": ("192.0.2.0/24",)},
    {"tokens": ("two",), "networks": ("192.0.2.0/25", "2001:db8::/32")},
]
SCOPES = [
    ("papers",), ("hidden",), ("*",), ("papers", "hidden", "s"), ("papers:a", "hidden"), ("hidden:a",),
    ("s",), ("papers:a", "hidden:b", "s"),
]  # fmt: skip
NAMES, NUMBERS = st.sampled_from(["papers", "hidden", "s"]), st.integers(0, 3)
CHANGES = st.one_of(
    st.tuples(st.just("put"), NAMES, NUMBERS, st.sampled_from(["a", "b", "a:x"]), st.booleans()),
    st.tuples(st.just("delete"), NAMES, NUMBERS),
    st.tuples(st.just("restrict"), st.sampled_from(ACCESS)),
    st.tuples(st.just("republish"), st.booleans()),
    st.tuples(st.just("choose"), st.sampled_from(SCOPES)),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("wait"), st.integers(-5, 5)),
    st.tuples(st.just("harvest"), st.integers(0, 16)),
)


class World:
    """A node whose records, rules and clock change."""

    def __init__(self, provider: Provider) -> None:
        self.provider, self.versions = provider, 0
        self.access: dict[str, Any] = {}
        self.scope: tuple[str, ...] = ("papers",)
        self.republish = False
        with provider.store.write() as tx:
            for kind, name in (("hierarchy", "papers"), ("hierarchy", "hidden")):
                tx.origin(kind, name, {})
        self.configure()

    def configure(self) -> None:
        with self.provider.store.write() as tx:
            tx.origin("source", "s", {"url": "http://s.example/oai", "republish": self.republish})
        hidden = Hierarchy("/nowhere", "hidden", access=Access(**self.access))
        self.provider.configure(
            replace(
                self.provider.settings,
                hierarchy=(*papers("papers"), hidden),
                repository=(VirtualRepository("/oai/part", "Part", self.scope),),
            )
        )

    def visible(self, harvester: Harvester) -> set[str]:
        """What a requester may see now, whatever was before."""
        scope = Scope("/oai/part", self.scope if "part" in harvester.path else ("*",))
        address = ip_address(harvester.address)
        is_open = not self.access or harvester.token in self.access.get("tokens", ())
        is_open |= any(address in ip_network(network) for network in self.access.get("networks", ()))
        shown = {"papers": True, "hidden": is_open, "s": self.republish}
        with self.provider.store.read() as view:
            origins = {o.id: shown[o.name] and scope.shows(o) for o in view.origins()}
            return {
                stored.identifier
                for stored in view.changes()
                if not stored.deleted
                and origins[stored.origin]
                and (not scope.by_sets or scope.takes(stored.sets.split()))
                and harvester.wants(stored.sets.split())
            }

    def change(self, event: Any) -> None:
        match event:
            case ("put", name, number, spec, titled):
                self.versions += 1
                metadata = {"title": [str(self.versions) if titled else "the same"]}
                vector = TermVector.of({f"word{self.versions}": 1})
                sets = (f"{'from:s' if name == 's' else name}", f"{name}:{spec}")
                made = Record(f"oai:x.org:{name}{number}", metadata, vector, sets, raw=oai_dc.write(metadata))
                with self.provider.store.write() as tx:
                    tx.put(tx.origin("source" if name == "s" else "hierarchy", name), [made])
            case ("delete", name, number):
                with self.provider.store.write() as tx:
                    origin = tx.origin("source" if name == "s" else "hierarchy", name)
                    tx.delete(origin, [f"oai:x.org:{name}{number}"])
            case ("restrict", access):
                self.access = access
                self.configure()
            case ("republish", republish):
                self.republish = republish
                self.configure()
            case ("choose", scope):
                self.scope = scope
                self.configure()
            case ("sweep",):
                with self.provider.store.write() as tx:
                    tx.sweep()
            case ("wait", seconds):
                self.provider.clock.now += seconds


@given(st.lists(CHANGES, max_size=14))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_incremental_lists_of_any_view_lead_to_the_state_of_a_full_list(
    tmp_path_factory: pytest.TempPathFactory, events: list[Any]
) -> None:
    clock = Clock()
    with store_in(tmp_path_factory.mktemp("node"), clock=clock) as store:
        world = World(Provider(store, from_mapping(SETTINGS), clock))
        harvesters = [
            Harvester(), Harvester(token="one"), Harvester(token="two"), Harvester(address="192.0.2.7"),
            Harvester("/ft-oai", index="tf_basic"), Harvester("/ft-oai", "one", index="tf_compact"),
            Harvester("/oai/part"), Harvester("/oai/part", "one"),
            Harvester("/ft-oai/part", index="tf_basic"),
            Harvester("/ft-oai/part", "two", address="192.0.2.200", index="tf_basic"),
            Harvester(set_spec="papers:a"), Harvester("/ft-oai", set_spec="papers:a:x", index="tf_basic"),
            Harvester(set_spec="hidden:a"), Harvester(token="one", set_spec="hidden:b"),
            Harvester(set_spec="s:a"), Harvester("/oai/part", set_spec="papers:a"),
            Harvester("/oai/part", "one", set_spec="hidden:b"),
        ]  # fmt: skip
        for each in harvesters:
            each.harvest(world.provider)
        for event in events:
            if event[0] == "harvest":
                harvesters[event[1]].harvest(world.provider)
            else:
                world.change(event)
        for each in harvesters:
            each.harvest(world.provider)
            assert each.live == each.everything(world.provider)
            assert each.live.keys() == world.visible(each)
