"""Sets have names: asked for when there is something to name, kept by source, and shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.hostile import misbehaving as m
from tests.hostile.misbehaving import Provider, Rec
from tests.stores import command_options, store_in

from indlet.cli.service import search
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.sets import due
from indlet.service.harvest.source_state import SetNames
from indlet.service.pipeline import harvest_all
from indlet.service.search.library import Library
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store

QUICK = Harvest(retries=1, backoff_seconds=0.01, backoff_limit_seconds=0.02, stall_seconds=2)
DAY = "2024-05-01T00:00:00Z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with store_in(tmp_path / "data") as opened:
        yield opened


def harvest(store: Store, provider: Provider, name: str = "repo") -> Progress:
    settings = Settings(harvest=QUICK)
    return harvest_all(store, settings, [Source(provider.url, name=name)], index=False)[0]


def asked(provider: Provider) -> int:
    return sum(q.verb == "ListSets" for q in provider.requests)


def records() -> list[Rec]:
    return [
        Rec("oai:x.org:1", DAY, "wing one", sets=("phys:optics", "math")),
        Rec("oai:x.org:2", DAY, "wing two", sets=("phys",)),
        Rec("oai:x.org:3", DAY, "wing three", sets=("plain",)),
    ]


def test_names_come_over_and_are_shown(store: Store) -> None:
    with Provider(records()) as provider:
        provider.set_names = {
            "phys": " Physics\n and more ", "phys:optics": "Optics", "math": "R & D", "unused": "Nobody"
        }  # fmt: skip
        progress = harvest(store, provider)
        assert (progress.outcome, progress.repaired, asked(provider)) == ("complete", 0, 2)
        harvest(store, provider)
        assert asked(provider) == 2, "once a day is enough"
        provider.records.append(Rec("oai:x.org:4", "2024-06-01T13:00:00Z", "wing four", sets=("new",)))
        provider.set_names["new"] = "Brand new"
        harvest(store, provider)
        assert asked(provider) == 5, "unless there is a new set"
    with store.read() as view:
        assert ("unused", "Nobody") not in view.sets()
    with Library(store, Settings()) as library:
        names = {"phys": "Physics and more", "phys:optics": "Optics", "math": "R & D", "new": "Brand new"}
        assert library.set_names("repo") == names
        assert library.set_names() == names
        answer = library.search("wing", facets=["set", "language"])
        labels = {entry["value"]: entry.get("label") for entry in answer.to_json()["facets"]["set"]}
        assert labels == {**names, "plain": None}
        assert all("label" not in entry for entry in answer.to_json()["facets"]["language"])
        assert [hit.identifier for hit in library.search("set:phys:optics wing")] == ["oai:x.org:1"]


def test_two_sources_may_call_a_set_differently(store: Store) -> None:
    for name, called in (("one", "Physics"), ("two", "Physik"), ("three", "Physics")):
        with Provider(records()) as provider:
            provider.set_names = {"phys": called}
            harvest(store, provider, name)
    with Library(store, Settings(), follow=False) as library:
        assert library.set_names("two") == {"phys": "Physik"}
        assert library.set_names()["phys"] == "Physics / Physik"


def test_no_sets_no_question(store: Store) -> None:
    with Provider() as provider:
        harvest(store, provider)
        assert asked(provider) == 0


@pytest.mark.parametrize("kind", ["broken", "endless", "unknown verb"])
def test_a_source_that_cannot_name_its_sets_is_harvested_all_the_same(kind: str, store: Store) -> None:
    def endless(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.verb != "ListSets":
            return reply
        return m.Reply(reply.body.replace(b"</ListSets>", b"<resumptionToken>2</resumptionToken></ListSets>"))

    with Provider(records()) as provider:
        if kind != "unknown verb":
            provider.set_names = {"phys": "Physics"}
            provider.faults = (m.broken_verb("ListSets") if kind == "broken" else endless,)
        progress = harvest(store, provider)
    assert (progress.outcome, progress.records) == ("complete", 3)
    assert progress.repairs["set names are not to be had"] == (kind != "unknown verb")
    with store.read() as view:
        assert dict(view.sets())["phys"] == ("Physics" if kind == "endless" else "")


def test_when_names_are_due() -> None:
    now = m.moment("2024-06-02T12:00:00+00:00")
    fresh = SetNames("2024-06-02T00:00:00Z", 1)
    assert not due(None, {}, now)
    assert due(None, {"a": ""}, now)
    assert not due(fresh, {"a": "", "b": "B"}, now)
    assert due(fresh, {"a": "", "b": ""}, now)
    assert due(SetNames("2024-06-01T00:00:00Z"), {"a": "A"}, now)


def test_the_command_line_shows_names_beside_set_specs(store: Store) -> None:
    with Provider(records()) as provider:
        provider.set_names = {"phys": "Physics\x1b[2J"}
        harvest(store, provider)
    shown = CliRunner().invoke(search, [*command_options(store.local_folder), "--facets", "wing"])
    assert "phys (Physics" in shown.output
    assert "\x1b[2J" not in shown.output
