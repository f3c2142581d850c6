"""A source under another name keeps its records, and the same address under two names is reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.hostile import misbehaving as m
from tests.web.nodes import settings_for, until

from indlet.cli import cli
from indlet.errors import SettingsError
from indlet.node.jobs import Jobs
from indlet.service.pipeline import harvest_all
from indlet.settings import Settings, Source
from indlet.store import Store, desk_sources, open_store


@pytest.fixture
def provider() -> Iterator[m.Provider]:
    with m.Provider() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store") as opened:
        yield opened


def settings_of(store: Store, *sources: Source) -> Settings:
    return settings_for(store.local_folder, source=sources)


def counts(store: Store) -> dict[str, int]:
    """Live records by source."""
    with store.read() as view:
        totals = view.totals()
        return {origin.name: totals.get(origin.id, (0, 0))[0] for origin in view.origins("source")}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


def test_a_source_renamed_in_the_settings_keeps_its_records(store: Store, provider: m.Provider) -> None:
    old = Source(provider.url, name="old")
    harvest_all(store, settings_of(store, old))
    (again,) = harvest_all(store, settings_of(store, replace(old, name="new")))
    assert counts(store) == {"new": 43}
    assert (again.outcome, again.records, again.changed) == ("complete", 0, 0)  # incremental, not a first run


def test_another_set_of_the_same_address_is_another_source(store: Store, provider: m.Provider) -> None:
    harvest_all(store, settings_of(store, Source(provider.url, name="whole")))
    harvest_all(store, settings_of(store, Source(provider.url, name="part", set="physics")))
    assert counts(store)["whole"] == 43


def test_a_pause_at_the_desk_stays_with_a_renamed_source(store: Store, provider: m.Provider) -> None:
    old = Source(provider.url, name="old")
    harvest_all(store, settings_of(store, old))
    first = Jobs(store, settings_of(store, old))
    first.harvests.pause("old", paused=True)
    second = Jobs(store, settings_of(store, replace(old, name="new")))
    second.harvests.plan()
    assert {name: s.paused for name, s in second.harvests.sources().items()} == {"new": True}


def test_naming_a_harvested_address_in_the_settings_names_its_records(
    tmp_path: Path, provider: m.Provider
) -> None:
    assert run("harvest", provider.url, "--data", tmp_path, "--quiet").exit_code == 0
    with open_store(tmp_path) as store:
        jobs = Jobs(store, settings_of(store, Source(provider.url, name="Reports")))
        jobs.harvests.plan()
        assert counts(store) == {"Reports": 43}
        assert [job.name for job in jobs.schedule.jobs()] == ["harvest Reports"]


def test_two_sources_with_one_address_raise_an_alert(store: Store, provider: m.Provider) -> None:
    one, two = (Source(provider.url, name=name) for name in ("one", "two"))
    settings = settings_of(store, one, two)
    harvest_all(store, settings, [one])
    harvest_all(store, settings, [two])
    with store.read() as view:
        (alert,) = view.alerts()
    assert (alert.source, "one has the same address" in alert.reason) == ("two", True)


def test_the_command_says_that_an_address_is_known(tmp_path: Path, provider: m.Provider) -> None:
    assert run("harvest", provider.url, "--name", "one", "--data", tmp_path, "--quiet").exit_code == 0
    again = run("harvest", f"{provider.url}/", "--data", tmp_path, "--json")  # the same, written otherwise
    assert [told["source"] for told in json.loads(again.stdout)] == ["one"]
    by_name = run("harvest", "one", "--data", tmp_path, "--json")
    assert [told["source"] for told in json.loads(by_name.stdout)] == ["one"]
    renamed = run("harvest", provider.url, "--name", "two", "--data", tmp_path)
    assert renamed.exit_code == 1 and "harvested already, as 'one'" in str(
        renamed.exception or renamed.output
    )
    settings = tmp_path / "indlet.toml"
    settings.write_text(
        "".join(f'[[source]]\nurl = "{provider.url}"\nname = "{n}"\n' for n in ("one", "two"))
    )
    both = run("harvest", "--config", settings, "--data", tmp_path, "--quiet")
    assert "two: has the same address as one" in both.stderr


def test_the_desk_refuses_an_address_that_is_harvested(store: Store, provider: m.Provider) -> None:
    one = Source(provider.url, name="one")
    harvest_all(store, settings_of(store, one))
    jobs = Jobs(store, settings_of(store, one))
    with pytest.raises(SettingsError, match="harvested already, as 'one'"):
        jobs.harvests.add(replace(one, name="two"))
    assert jobs.harvests.add(replace(one, name="two", set="physics")) == "two"


def test_what_a_command_harvested_is_harvested_again_by_a_node(tmp_path: Path, provider: m.Provider) -> None:
    assert run("harvest", provider.url, "--name", "one", "--data", tmp_path, "--quiet").exit_code == 0
    with open_store(tmp_path) as store:
        settings = settings_of(store)
        jobs = Jobs(store, replace(settings, harvest=replace(settings.harvest, every="1s")))
        with store.read() as view:
            (origin,) = view.origins("source")
        jobs.begin()
        try:
            until(lambda: len(_runs(store, origin.id)) > 1)
        finally:
            jobs.schedule.close()


def _runs(store: Store, origin: int) -> list[object]:
    with store.read() as view:
        return list(view.runs(origin))


def test_a_next_run_is_shown_only_where_there_is_one(tmp_path: Path, provider: m.Provider) -> None:
    def next_run(*arguments: str) -> str:
        (row,) = json.loads(run("sources", "--data", tmp_path, "--json", *arguments).stdout)
        return str(row["next"])

    with open_store(tmp_path) as store:  # named in settings that no longer name it
        harvest_all(store, settings_of(store, Source(provider.url, name="one")))
    assert next_run() == ""
    assert run("harvest", provider.url, "--data", tmp_path, "--quiet").exit_code == 0
    assert next_run() != ""


def test_an_address_that_never_answered_is_not_put_on_the_schedule(tmp_path: Path) -> None:
    failed = run("harvest", "http://127.0.0.1:9/oai", "--data", tmp_path, "--retries", "0", "--quiet")
    assert failed.exit_code == 1
    with open_store(tmp_path) as store, store.read() as view:
        assert desk_sources.added(view) == {}
