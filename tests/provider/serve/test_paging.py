"""Law 3: whatever the page size and the changes in between, the pages hold every record that did not move."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from tests.stores import store_in

from indlet.model import Record
from indlet.provider.serve.access import Permit
from indlet.provider.serve.repository import Repository
from indlet.settings import Serve, Settings
from indlet.text import policy_of

Provider = Any  # of conftest.py
Check = Callable[[bytes], None]

SETS = ("a", "a:x", "b")
# What happens between two pages: time passes, a record is written (into another set, perhaps) or deleted.
steps = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("put"), st.integers(0, 14)),
    st.tuples(st.just("delete"), st.integers(0, 14)),
)
requests = st.fixed_dictionaries(
    {"verb": st.sampled_from(["ListRecords", "ListIdentifiers"]), "metadataPrefix": st.just("oai_dc")},
    optional={
        "set": st.sampled_from(SETS),
        "from": st.sampled_from(["2001-09-09T01:46:41Z", "2001-09-09"]),
        "until": st.sampled_from(["2001-09-09T01:46:42Z", "2001-09-09T01:46:44Z"]),
    },
).filter(lambda r: len(r.get("from", "")) != 10 or "until" not in r)


class World:
    """A store that changes between pages, and a repository over it."""

    def __init__(self, folder: Path, page_size: int) -> None:
        self.now = 1_000_000_000.0
        self.version = 0
        self.store = store_in(folder, clock=lambda: self.now)
        serve = Serve(records_per_page=page_size, identifiers_per_page=page_size)
        chosen = replace(Settings(), serve=serve)
        self.repository = Repository(self.store, chosen, lambda: self.now, policy_of(chosen.analysis))

    def step(self, kind: str, number: int) -> None:
        if kind == "wait":
            self.now += number
            return
        self.version += 1
        with self.store.write() as tx:
            origin = tx.origin("hierarchy", "h")
            if kind == "delete":
                tx.delete(origin, [f"oai:x.org:{number}"])
            else:
                spec = SETS[(number + self.version) % 3]
                tx.put(origin, [Record(f"oai:x.org:{number}", {"title": [str(self.version)]}, sets=(spec,))])

    def matching(self, request: dict[str, str]) -> set[tuple[str, int]]:
        """(identifier, seq) of what the request is about, by plain comparison."""
        with self.store.read() as view:
            everything = view.page(1000)
        wanted = set()
        for stored in everything:
            stamp = _written(stored.datestamp)
            spec = request.get("set")
            inside = spec is None or f"{stored.sets}:".startswith(f"{spec}:")
            if inside and request.get("from", "0") <= stamp and stamp <= request.get("until", "9"):
                wanted.add((stored.identifier, stored.seq))
        return wanted


def _written(seconds: int) -> str:
    return f"2001-09-09T01:{46 + (seconds - 999_999_960) // 60}:{(seconds - 999_999_960) % 60:02d}Z"


@settings(max_examples=60, deadline=None)
@given(
    page_size=st.integers(1, 6),
    before=st.lists(steps, max_size=30),
    between=st.lists(st.lists(steps, max_size=4), max_size=12),
    request=requests,
)
def test_the_pages_hold_whatever_did_not_move(
    valid: Check,
    page_size: int,
    before: list[tuple[str, int]],
    between: list[list[tuple[str, int]]],
    request: dict[str, str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), page_size)
        with world.store:
            for step in before:
                world.step(*step)
            at_first = world.matching(request)
            seen: list[str] = []
            asked = request
            pauses = iter(between)
            for _ in range(200):
                answer = world.repository.answer(asked.items(), Permit(), extended=False).body.data
                valid(answer)
                again = world.repository.answer(asked.items(), Permit(), extended=False).body.data
                assert again == answer
                seen += re.findall(r"<identifier>(.*?)</identifier>", answer.decode())
                token = etree.fromstring(answer).findtext(".//{*}resumptionToken")
                if not token:
                    break
                asked = {"verb": request["verb"], "resumptionToken": token}
                for step in next(pauses, []):
                    world.step(*step)
            else:
                raise AssertionError("the list does not end")
            unmoved = {name for name, seq in at_first & world.matching(request)}
            assert unmoved <= set(seen)
            if not between:
                assert sorted(seen) == sorted(name for name, _ in at_first)


@pytest.mark.parametrize(
    ("window", "moved", "ending"),
    [
        ({}, range(25), []),  # the end was ours to choose: the rest is sent from where it went
        ({"until": "2023-11-14T22:15:00Z"}, range(10, 25), []),  # it was not: a record is repeated
        ({"until": "2023-11-14T22:15:00Z"}, range(25), ["noRecordsMatch"]),  # and here there is none left
    ],
)
def test_a_list_whose_rest_moved_on_ends_well(
    filled: Provider, valid: Check, window: dict[str, str], moved: range, ending: list[str]
) -> None:
    pages = filled.pages("/oai", verb="ListRecords", metadataPrefix="oai_dc", **window)
    next(pages)
    filled.clock.now += 50
    filled.put(filled.record(n, ("papers",), "quite new") for n in moved)
    rest = list(pages)
    for page in rest:
        valid(etree.tostring(page))
    assert filled.codes(rest[-1]) == ending


@pytest.mark.parametrize(("prefix", "most"), [("oai_dc", 1000), ("oai_dc_tf", 3000)])
def test_large_records_make_short_pages(filled: Provider, monkeypatch: Any, prefix: str, most: int) -> None:
    monkeypatch.setattr("indlet.provider.serve.repository.PAGE_BYTES", most)
    pages = list(filled.pages(verb="ListRecords", metadataPrefix=prefix))
    assert len(pages) > 5
    names = [name for page in pages for name in filled.found(page, "identifier")]
    assert sorted(names) == sorted(filled.name(n) for n in range(25))


def test_a_token_serves_its_own_list_only(filled: Provider) -> None:
    token = filled.found(filled.ask(verb="ListRecords", metadataPrefix="oai_dc"), "resumptionToken")[0]
    for path, verb in (("/oai", "ListIdentifiers"), ("/oai", "ListSets"), ("/ft-oai", "ListRecords")):
        assert filled.codes(filled.ask(path, verb=verb, resumptionToken=token)) == ["badResumptionToken"]
    for position in range(len(token)):
        other = "A" if token[position] != "A" else "B"
        changed = token[:position] + other + token[position + 1 :]
        assert filled.codes(filled.ask(verb="ListRecords", resumptionToken=changed)) == ["badResumptionToken"]
    assert filled.codes(filled.ask(verb="ListRecords", resumptionToken=token + "=")) == ["badResumptionToken"]
    assert filled.codes(filled.ask(verb="ListRecords", resumptionToken=token)) == []


def test_a_token_expires(filled: Provider) -> None:
    root = filled.ask(verb="ListRecords", metadataPrefix="oai_dc")
    node = root.find(".//{*}resumptionToken")
    assert node is not None
    assert node.get("expirationDate") == "2023-11-15T22:18:20Z"
    filled.clock.now += 24 * 3600
    assert filled.codes(filled.ask(verb="ListRecords", resumptionToken=node.text)) == []
    filled.clock.now += 1
    assert filled.codes(filled.ask(verb="ListRecords", resumptionToken=node.text)) == ["badResumptionToken"]


def test_a_token_outlives_a_restart(filled: Provider) -> None:
    token = filled.found(filled.ask(verb="ListRecords", metadataPrefix="oai_dc"), "resumptionToken")[0]
    filled.configure(filled.settings)
    assert len(filled.found(filled.ask(verb="ListRecords", resumptionToken=token), "identifier")) == 10


@pytest.mark.parametrize("size", [1, 3, 300])
def test_a_list_gives_each_record_as_it_is_given_alone(provider: Provider, valid: Check, size: int) -> None:
    """Whatever it is called, whatever its original is in, deleted or not: lists write many at once."""
    mods = b'<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><title>M</title></titleInfo></mods>'
    names = ["oai:x.org:a", "oai:x.org:a&b", "oai:x.org:(b)", "oai:x.org:z%0A"]
    usual = provider.record(1)
    other = Record("oai:x.org:mods", {"title": ["M & N"]}, usual.vector, ("a", "b:c"), raw=mods)
    bare = Record("oai:x.org:bare", {"title": ["<T>"]}, usual.vector, ())
    provider.configure(replace(provider.settings, serve=replace(Serve(), records_per_page=size)))
    provider.put([*(replace(usual, identifier=name) for name in names), other, bare, provider.record(2)])
    provider.delete([provider.name(2)])
    listed = list[bytes]()
    for page in provider.pages(verb="ListRecords", metadataPrefix="oai_dc"):
        valid(etree.tostring(page))
        listed += [etree.tostring(one, with_tail=False) for one in page.iter("{*}record")]
    alone = [
        etree.tostring(one, with_tail=False)
        for name in [*names, "oai:x.org:mods", "oai:x.org:bare", provider.name(2)]
        for one in provider.ask(verb="GetRecord", identifier=name, metadataPrefix="oai_dc").iter("{*}record")
    ]
    assert len(alone) == len(names) + 3
    assert sorted(listed) == sorted(alone)
