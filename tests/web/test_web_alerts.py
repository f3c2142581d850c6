"""Alerts at the desk: seen, acknowledged by name, as JSON and as a feed; deletions that wait are decided."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lxml import etree
from starlette.testclient import TestClient
from tests.web.nodes import PASSWORD

from indlet.exchange.alerts_desk import ON_PAGE
from indlet.exchange.duplicates.decisions import PairDecision, decisions, take
from indlet.exchange.duplicates.job import look
from indlet.model import Record
from indlet.service.index import follow
from indlet.store import Store, withheld

Desk = tuple[Store, TestClient, str]


@pytest.fixture
def desk(empty: tuple[Store, TestClient]) -> Iterator[Desk]:
    store, client = empty
    assert client.post("/admin/sign-in", data={"password": PASSWORD}).status_code == 303
    (csrf, *_) = re.findall(r'name="csrf" value="([^"]+)"', client.get("/admin").text)
    with store.write() as tx:
        tx.alert("silent", "lanl", "", "not harvested <b>", "see whether it answers")
        tx.alert("deleted", "import", "oai:lanl:7", "deleted at its source", "delete it in the catalogue")
        origin = tx.origin("source", "afrl", {"url": "http://afrl.example.org"})
        tx.put(origin, [Record(f"oai:afrl:{n}", {"title": ["Ice"]}) for n in range(9)])
        tx.withhold(origin, {f"oai:afrl:{n}": {} for n in range(8)})
    yield store, client, csrf
    client.app.state.desk.schedule.close()  # type: ignore[attr-defined]


def act(desk: Desk, action: str, name: str) -> int:
    return desk[1].post("/admin/act", data={"action": action, "csrf": desk[2], "name": name}).status_code


def test_an_alert_is_acknowledged_by_name(desk: Desk) -> None:
    store, client, _ = desk
    page = client.get("/admin/alerts").text
    assert "oai:lanl:7" in page and "not harvested &lt;b&gt;" in page and "delete it in the catalogue" in page
    with store.read() as view:
        (number,) = (alert.id for alert in view.alerts() if alert.record)
    assert act(desk, "acknowledge", str(number)) == 303
    told = {alert["record"]: alert for alert in client.get("/admin/alerts.json").json()["alerts"]}
    assert told["oai:lanl:7"]["acknowledged_by"] == "admin" and not told["lanl"]["acknowledged_by"]
    assert act(desk, "acknowledge", str(number)) == 409
    with store.write() as tx:  # it happens again
        tx.alert("deleted", "import", "oai:lanl:7", "deleted once more", "delete it in the catalogue")
    with store.read() as view:
        assert len(view.alerts()) == 2


def test_many_alerts_are_paged_filtered_and_seen_to_together(desk: Desk) -> None:
    store, client, csrf = desk
    with store.write() as tx:
        tx.put(tx.origin("source", "lanl"), [Record("oai:lanl:9", {"title": ["Flutter of <wings>"]})])
        for number in range(120):
            tx.alert("changed", "import", f"oai:lanl:{number}", "changed at its source", "import it again")
    page = client.get("/admin/alerts?kind=changed").text
    assert page.count('value="acknowledge"') == ON_PAGE and "not harvested" not in page
    assert "Flutter of &lt;wings&gt;" in page and 'href="/record?id=oai%3Alanl%3A9"' in page
    assert 'href="/admin/alerts?kind=changed&amp;page=2"' in page
    assert client.get("/admin/alerts?kind=changed&page=3").text.count('value="acknowledge"') == 20
    assert client.get("/admin/alerts?page=x&kind=no").status_code == 200
    (until,) = re.findall(r'name="until" value="([^"]+)"', page)
    form = {"action": "acknowledge_all", "csrf": csrf, "kind": "changed", "until": until}
    assert client.post("/admin/act", data={**form, "until": ""}).status_code == 409
    assert client.post("/admin/act", data=form).status_code == 303
    with store.read() as view:
        assert sorted(alert.kind for alert in view.alerts()) == ["deleted", "silent"]
    assert client.post("/admin/act", data={**form, "until": "1970-01-01T00:00:00Z"}).status_code == 303
    with store.read() as view:
        assert len(view.alerts()) == 2  # what came after the page was made is left alone


def test_the_feed_needs_its_key(desk: Desk) -> None:
    _, client, _ = desk
    (address,) = re.findall(r'href="(/admin/alerts.atom[^"]+)"', client.get("/admin/alerts").text)
    client.cookies.clear()
    answer = client.get(address)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/atom+xml"
    feed = etree.fromstring(answer.content)
    titles = [node.text or "" for node in feed.iter("{http://www.w3.org/2005/Atom}title")]
    assert any("oai:lanl:7" in title for title in titles) and len(titles) == 3
    assert client.get("/admin/alerts.atom?key=wrong").status_code == 404
    assert client.get("/admin/alerts").status_code == 303


@pytest.mark.parametrize(("action", "left"), [("release", 1), ("keep", 9)])
def test_deletions_that_wait_are_decided(desk: Desk, action: str, left: int) -> None:
    store, client, _ = desk
    assert "8 / 9" in client.get("/admin/alerts").text
    assert act(desk, action, "afrl") == 303
    with store.read() as view:
        assert sum(live for live, _ in view.totals().values()) == left
    assert not any(one.waiting for one in withheld.waiting_deletions(store))
    assert act(desk, action, "afrl") == 409


def test_a_record_of_our_own_is_marked_as_deleted_and_unmarked(desk: Desk) -> None:
    store, client, _ = desk
    with store.write() as tx:
        tx.put(tx.origin("hierarchy", "larc"), [Record("oai:larc:1", {"title": ["Ice"]})])
    assert act(desk, "withdraw", " oai:larc:1 ") == 303
    page = client.get("/admin/provider").text
    assert "admin: oai:larc:1" in page
    with store.read() as view:
        found = view.get("oai:larc:1")
    assert found is not None and found.deleted
    assert act(desk, "withdraw", "oai:afrl:3") == 409  # its origin alone deletes it
    assert act(desk, "restore", "oai:larc:1") == 303
    assert "admin: oai:larc:1" not in client.get("/admin/provider").text
    assert act(desk, "restore", "oai:larc:1") == 409


def test_a_record_that_is_to_be_marked_is_found_by_its_words(desk: Desk) -> None:
    store, client, _ = desk
    with store.write() as tx:
        tx.put(tx.origin("hierarchy", "larc"), [Record("oai:larc:1", {"title": ["Flutter of <wings>"]})])
        tx.put(tx.origin("source", "lanl"), [Record("oai:lanl:1", {"title": ["Flutter elsewhere"]})])
    follow.catch_up(store)
    page = client.get("/admin/provider?q=flutter").text
    assert "Flutter of &lt;wings&gt;" in page and 'name="name" value="oai:larc:1"' in page
    assert "Flutter elsewhere" not in page  # its origin alone deletes it
    assert client.get('/admin/provider?q="((').status_code == 200
    assert act(desk, "withdraw", "oai:larc:1") == 303
    follow.catch_up(store)
    page = client.get("/admin/provider?q=flutter").text
    assert "Flutter" not in page and 'value="restore"' in page


def test_possible_duplicates_are_shown_side_by_side_and_decided(desk: Desk) -> None:
    store, client, _ = desk
    said = {"title": ["Flutter of <swept> wings at transonic speed"], "creator": ["Garrick, I."]}
    with store.write() as tx:
        for source in ("lanl", "larc"):
            tx.put(tx.origin("source", source), [Record(f"oai:{source}:1", {**said, "date": ["1957"]})])
    assert "Flutter" not in client.get("/admin/duplicates").text  # nobody has looked yet
    look(store)
    page = client.get("/admin/duplicates").text
    assert page.count("Flutter of &lt;swept&gt; wings") == 2
    assert act(desk, "different", "oai:lanl:1 oai:larc:1") == 303
    assert "Flutter" not in client.get("/admin/duplicates").text
    assert [(d.decision, d.by) for made in decisions(store).values() for d in made] == [
        ("different", "admin")
    ]
    assert act(desk, "same", "oai:lanl:1") == 409
    told = PairDecision("same", "2026-01-02T12:00:00Z", "<Ruth>", "https://lanl.example.org")
    take(store, [(("oai:lanl:1", "oai:larc:1"), told)])
    page = client.get("/admin/duplicates").text
    assert 'value="open"' in page and "&lt;Ruth&gt;" in page  # beside our own decision, which stays
    assert act(desk, "open", "oai:lanl:1 oai:larc:1") == 303
    look(store)
    page = client.get("/admin/duplicates").text
    assert page.count("Flutter") == 2 and "&lt;Ruth&gt;" in page and 'value="open"' not in page
