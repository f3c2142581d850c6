"""Changing a source at the desk, asking for one record again, and which of settings file and desk counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tests.hostile.misbehaving as m
from lxml import html
from starlette.testclient import TestClient
from tests.hostile.misbehaving import Provider
from tests.web.nodes import make_client, settings_for, until
from tests.web.test_web_desk import Operator

from indlet.errors import SettingsError
from indlet.node.harvests import Harvests
from indlet.node.probe import Probe
from indlet.node.schedule import Schedule
from indlet.service.harvest.cache import KEPT_AS
from indlet.service.harvest.one_origin import keep_renamed
from indlet.service.pipeline import harvest_all
from indlet.settings import Source, Write
from indlet.store import Store

BAD = "oai:x.org:0003"


@pytest.fixture
def desk(empty: tuple[Store, TestClient]) -> Iterator[Operator]:
    operator = Operator(empty[1])
    yield operator
    office(operator).schedule.close()


def office(desk: Operator) -> Any:
    return desk.client.app.state.desk  # type: ignore[attr-defined]


def idle(desk: Operator) -> bool:
    return all(job.started is None for job in office(desk).schedule.jobs())


def test_a_source_is_named_as_it_calls_itself(desk: Operator, slow_provider: str) -> None:
    answer = desk.client.post("/admin/test", data={"csrf": desk.csrf, "url": slow_provider})
    assert 'name="name" maxlength="100" value="Slow Repository"' in answer.text
    desk.act("add", url=slow_provider)
    assert set(office(desk).harvests.sources()) == {"Slow Repository"}
    desk.act("add", url=slow_provider)
    assert set(office(desk).harvests.sources()) == {"Slow Repository", "Slow Repository (127.0.0.1)"}
    desk.act("add", url="http://127.0.0.1:9/oai")
    assert "127.0.0.1:9" in office(desk).harvests.sources(), "what says nothing is named by its address"


def test_a_source_is_added_step_by_step(desk: Operator) -> None:
    with Provider() as provider:
        provider.set_names = {"physics": "Physics", "maths": "Mathematics"}
        for number, record in enumerate(provider.records):
            record.sets = ("physics",) if number % 2 else ("maths",)
        first = desk.client.get("/admin/add").text
        assert 'name="url"' in first and 'value="add"' not in first, "nothing to add before it was tested"
        form = {"csrf": desk.csrf, "url": provider.url}
        seen = desk.client.post("/admin/test", data=form)
        words = " ".join(desk.words(seen).split())
        assert "47 records, the oldest from" in words and "Everything (47)" in words
        assert "Mathematics (24)" in words and "Physics (23)" in words
        assert words.count("flutter of wing") == 3, "what the records look like"
        assert 'name="name" maxlength="100" value="Hostile"' in seen.text
        assert seen.text.index('id="tested"') < seen.text.index('id="step-what"')
        part = desk.words(desk.client.post("/admin/test", data={**form, "set": "physics"}))
        assert "23 records" in part
        desk.act("add", url=provider.url, set="physics", name="Hostile")
        again = desk.words(desk.client.post("/admin/test", data=form))
        assert "already harvested, as Hostile" in again
        source = office(desk).harvests.sources()["Hostile"]
        assert (source.set, source.metadata) == ("physics", "oai_dc")


def test_formats_that_say_more_are_offered_by_their_namespaces(desk: Operator) -> None:
    marc = (
        b"<metadataFormat><metadataPrefix>marcxml</metadataPrefix><schema>http://x.org/m.xsd</schema>"
        b"<metadataNamespace>http://www.loc.gov/MARC21/slim</metadataNamespace></metadataFormat>"
        b"<metadataFormat><metadataPrefix>ore</metadataPrefix><schema>http://x.org/o.xsd</schema>"
        b"<metadataNamespace>http://www.w3.org/2005/Atom</metadataNamespace></metadataFormat>"
    )
    end = b"</ListMetadataFormats>"
    with Provider(None, m.rewritten(end, marc + end, "ListMetadataFormats")) as provider:
        seen = desk.client.post("/admin/test", data={"csrf": desk.csrf, "url": provider.url})
        words = " ".join(desk.words(seen).split())
        assert "marcxml says more than oai_dc" in words and "not understood here: ore" in words
        assert 'value="oai_dc" checked' in seen.text and 'value="marcxml">' in seen.text
        desk.act("add", url=provider.url, name="marc", metadata="marcxml", readable="oai_dc marcxml")
        assert office(desk).harvests.sources()["marc"].metadata == "marcxml"


def test_nodes_that_nobody_has_named_are_told_apart(desk: Operator) -> None:
    named = [
        office(desk).acts.name_by_itself(Probe(f"http://user:hush@example.org:{port}/oai", name="indlet"))
        for port in (8080, 8081)
    ]
    assert named == ["indlet (example.org:8080)", "indlet (example.org:8081)"]


def test_no_password_of_an_address_is_kept_in_the_log(desk: Operator) -> None:
    desk.act("add", 400, url="ftp://user:hush@127.0.0.1/oai")
    page = desk.client.get("/admin/log").text
    assert "ftp://127.0.0.1/oai" in page and "hush" not in page


def test_a_member_is_republished_in_its_own_format(desk: Operator) -> None:
    desk.act("add", url="http://127.0.0.1:9/", name="lanl", republish="1", metadata="marc21")
    source = office(desk).harvests.sources()["lanl"]
    assert source.republish and source.metadata == "marc21"
    desk.act("add", 400, url="http://127.0.0.1:9/", name="afrl", metadata="marc42")
    desk.act("pause", name="lanl")
    until(lambda: idle(desk))
    desk.act("edit", name="lanl", every="3h")  # a form without the box says nothing about it
    assert office(desk).harvests.sources()["lanl"].republish
    desk.act("edit", name="lanl", with_republish="1", metadata="dcterms")
    source = office(desk).harvests.sources()["lanl"]
    assert not source.republish and source.metadata == "dcterms"
    desk.act("edit", 400, name="lanl", metadata="marc42")
    for fulltext in ("fetch", "auto", ""):
        desk.act("edit", name="lanl", fulltext=fulltext)
        assert office(desk).harvests.sources()["lanl"].fulltext == fulltext


def test_a_source_is_changed(desk: Operator, empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    desk.act("add", url="http://127.0.0.1:9/", name="old", token="hush")
    desk.act("pause", name="old")
    until(lambda: idle(desk))
    desk.act("edit", name="old", new_name="new", every="3h", set="a:b", index="none")
    source = office(desk).harvests.sources()["new"]
    assert (source.every, source.set, source.index, source.token) == ("3h", "a:b", "none", "hush")
    assert source.paused and "old" not in office(desk).harvests.sources()
    jobs = {job.name: job for job in office(desk).schedule.jobs()}
    assert jobs["harvest new"].every == "3h" and jobs["harvest new"].paused and "harvest old" not in jobs
    with store.read() as view:
        assert [origin.name for origin in view.origins("source")] == ["new"], "its records stay its own"
    page = desk.client.get("/admin/source?name=new").text
    assert "hush" not in page and "A token is set; it is never shown" in page
    desk.act("edit", name="new", token="other")
    assert office(desk).harvests.sources()["new"].token == "other"
    desk.act("edit", name="new", no_token="1")
    assert office(desk).harvests.sources()["new"].token == ""
    assert "is no interval" in desk.act("edit", 400, name="new", every="sometimes")
    desk.act("add", url="http://127.0.0.1:9/", name="second")
    assert "already" in desk.act("edit", 400, name="new", new_name="second")
    desk.act("edit", 409, name="gone", every="1h")
    with store.read() as view:
        assert all("token" not in origin.settings for origin in view.origins())


def test_a_source_without_a_slot_is_shown_as_waiting(tmp_path: Path, slow_provider: str) -> None:
    plain = settings_for(tmp_path)
    settings = replace(
        plain,
        harvest=replace(plain.harvest, at_once=1),
        source=(Source(slow_provider, "one"), Source(f"{slow_provider}/?other", "two")),
    )
    with Store.open(tmp_path) as store, make_client(store, settings) as client:
        desk = Operator(client)
        harvests = office(desk).harvests
        desk.act("harvest", name="one")
        until(lambda: harvests.running()["one"].records > 0)
        desk.act("harvest", name="two")
        until(lambda: "two" in harvests.running())
        page = desk.see("/admin")
        assert "1 running" in page and "1 waiting" in page
        assert "waiting" in desk.see("/admin/source?name=two")
        office(desk).schedule.close()


def test_why_a_source_failed_stands_in_its_row(desk: Operator) -> None:
    desk.act("add", url="http://127.0.0.1:9/", name="dead", now="1")
    until(lambda: idle(desk))
    answer = desk.client.get("/admin").text
    row = answer.partition(">dead</a>")[2].partition("</tr>")[0]
    assert "failed" in row and 'class="failure' in row and "127.0.0.1:9" in row


def test_one_failed_record_is_asked_for_again(desk: Operator, empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    with Provider(None, m.malformed_record(BAD, single=True)) as provider:
        desk.act("add", url=provider.url, name="x", now="1")
        until(lambda: idle(desk))
        page = desk.client.get("/admin/source?name=x").text
        assert f'name="identifier" value="{BAD}"' in page and "requested 1 time" in page
        with store.read() as view:
            runs = view.runs()
        desk.act("retry", name="x", identifier=BAD)
        until(lambda: idle(desk))
        assert "requested 2 times" in desk.see("/admin/source?name=x")
        provider.faults, asked = (), len(provider.requests)
        desk.act("retry", name="x", identifier=BAD)
        until(lambda: idle(desk))
        assert not any(q.verb.startswith("List") for q in provider.requests[asked:] if "Records" in q.verb)
        with store.read() as view:
            assert view.get(BAD) is not None and not list(view.failures()) and view.runs() == runs
        assert "not among the failures" in desk.act("retry", 409, name="x", identifier=BAD)


def test_failures_with_one_reason_are_one_row_with_one_action(
    desk: Operator, empty: tuple[Store, TestClient]
) -> None:
    store, _ = empty
    with Provider(
        None, *(m.malformed_record(f"oai:x.org:{i:04}", single=True) for i in (1, 3, 5))
    ) as provider:
        desk.act("add", url=provider.url, name="x", now="1")
        until(lambda: idle(desk))
        page = desk.client.get("/admin/source?name=x").text
        assert page.count('value="retry_group"') == 1 and "Request 3 records again" in page
        (group,) = (
            str(box.get("value")) for box in html.fromstring(page).iter("input") if box.get("name") == "group"
        )
        provider.faults = ()
        desk.act("retry_group", name="x", group=group)
        until(lambda: idle(desk))
        with store.read() as view:
            assert view.get("oai:x.org:0005") is not None and not list(view.failures())
        assert "fails for this reason" in desk.act("retry_group", 409, name="x", group=group)


def test_a_source_that_suddenly_lists_nothing_is_a_warning(
    desk: Operator, empty: tuple[Store, TestClient]
) -> None:
    store, _ = empty
    with Provider() as provider:
        desk.act("add", url=provider.url, name="x", now="1")
        until(lambda: idle(desk))
        assert "1 healthy" in desk.see("/admin")
        all_records, provider.records = provider.records, provider.records[:3]
        desk.act("full", name="x")
        until(lambda: idle(desk))
        seen = desk.see("/admin")
        assert "1 with a warning" in seen and "lists 3 of the 43 records held from it" in seen
        with store.read() as view:
            assert "fewer" in {alert.kind for alert in view.alerts()}
        provider.records = all_records
        desk.act("full", name="x")
        until(lambda: idle(desk))
        assert "1 healthy" in desk.see("/admin")
        with store.read() as view:
            assert "fewer" not in {alert.kind for alert in view.alerts()}


def test_what_the_desk_changed_counts_until_it_is_taken_back(tmp_path: Path) -> None:
    written = Source("http://127.0.0.1:9/oai", "one", set="physics", every="1d", token="file")
    settings = replace(settings_for(tmp_path), source=(written,))
    with Store.open(tmp_path) as store:
        client = make_client(store, settings)
        desk = Operator(client)
        assert "is in the settings file" in desk.see("/admin/source?name=one")
        desk.act("edit", name="one", every="2h", set="physics")
        seen = desk.see("/admin/source?name=one")
        assert "the settings file says: 1d" in seen and "field by field" in seen
        moved = replace(settings, source=(replace(written, every="5h", set="maths"),))
        again = Harvests(store, moved, Schedule(), lambda: None)
        assert (again.sources()["one"].every, again.sources()["one"].set) == ("2h", "maths")
        assert again.changed_here("one") == {"every": "5h"}
        again.plan()
        assert [job.every for job in again.schedule.jobs()] == ["2h"]
        desk.act("reset", name="one")
        assert again.sources()["one"].every == "5h" and again.changed_here("one") == {}
        desk.act("reset", 409, name="two")


def test_a_source_of_the_file_is_renamed_and_removed_at_the_desk(tmp_path: Path) -> None:
    with Provider() as provider, Store.open(tmp_path) as store:
        settings = replace(settings_for(tmp_path), source=(Source(provider.url, "one"),))
        harvest_all(store, settings)
        client = make_client(store, settings)
        desk = Operator(client)
        desk.act("edit", name="one", new_name="two")
        assert "the settings file says: one" in desk.see("/admin/source?name=two")
        (run,) = harvest_all(store, settings)  # as the next start does, and a command with the file
        assert (run.source, run.records) == ("two", 0), "the records stay, and nothing comes a second time"
        assert live_records(store) == {"two": 43}
        desk.act("edit", name="two", set="physics")
        moved = replace(settings, source=(Source(provider.url, "three"),))
        keep_renamed(store, moved)
        assert live_records(store) == {"three": 43}, "also where the desk has changed the set"
        keep_renamed(store, settings)
        desk.act("remove", 409, name="one")
        assert live_records(store) == {"one": 43}
        desk.act("remove", name="one", records="keep")
        assert live_records(store) == {"one": 43} and harvest_all(store, settings) == []
        page = desk.see("/admin")
        assert "Removed here, still in the settings file: one" in page
        desk.act("reset", name="one")
        assert set(office(desk).harvests.sources()) == {"one"}
        desk.act("remove", name="one", records="delete")
        assert live_records(store) == {"one": 0}
        office(desk).schedule.close()


def test_a_name_that_other_settings_refer_to_is_changed_there(tmp_path: Path) -> None:
    write = Write(folder=str(tmp_path / "out"), from_=("one:physics",))
    settings = replace(settings_for(tmp_path), source=(Source("http://127.0.0.1:9/", "one"),), write=(write,))
    with Store.open(tmp_path) as store:
        harvests = Harvests(store, settings, Schedule(), lambda: None)
        with pytest.raises(SettingsError, match=r"named in \[\[write\]\]"):
            harvests.edit("one", {"name": "two"})
        with pytest.raises(SettingsError, match=r"named in \[\[write\]\]"):
            harvests.remove("one", records=False)


def test_a_node_hears_of_what_a_command_renamed(tmp_path: Path) -> None:
    with Provider() as provider, Store.open(tmp_path) as store:
        settings = settings_for(tmp_path)
        serving = Harvests(store, settings, Schedule(), lambda: None)
        serving.add(Source(provider.url, "one"))
        serving.start("one")
        until(lambda: live_records(store) == {"one": 43} and not serving.running())
        Harvests(store, settings, Schedule(), lambda: None).edit("one", {"name": "two"})
        with pytest.raises(SettingsError, match="no source called 'one'"):
            serving.start("one")
        serving.schedule.run_now("harvest one")  # when its time comes
        until(lambda: {job.name for job in serving.schedule.jobs()} == {"harvest two"})
        assert live_records(store) == {"two": 43}
        serving.schedule.close()


def live_records(store: Store) -> dict[str, int]:
    with store.read() as view:
        totals = view.totals()
        return {origin.name: totals.get(origin.id, (0, 0))[0] for origin in view.origins("source")}


def test_of_two_sources_of_one_name_the_files_counts(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        Harvests(store, settings_for(tmp_path), Schedule(), lambda: None).add(
            Source("http://desk.example/", "one")
        )
        settings = replace(settings_for(tmp_path), source=(Source("http://file.example/", "one"),))
        both = Harvests(store, settings, Schedule(), lambda: None)
        assert both.sources()["one"].url == "http://file.example/"
        both.plan()
        assert len(both.schedule.jobs()) == 1


def test_a_source_whose_records_another_keeps_is_still_one_that_is_republished(tmp_path: Path) -> None:
    about = Source("http://file.example/", "old", republish=True).public()
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            tx.origin("source", "old", {**about, "republish": False, KEPT_AS: "new"})
        found = Harvests(store, settings_for(tmp_path), Schedule(), lambda: None).sources()
    assert found["old"].republish  # harvested as one that is not, its records would be held twice
