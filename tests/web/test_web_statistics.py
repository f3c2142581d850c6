"""What readers do is counted by the rules of COUNTER, without a trace of who they are."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.collection import fill
from tests.web.nodes import make_client, settings_for
from tests.web.test_web_desk import Operator

from indlet.settings import Counting
from indlet.store import Store
from indlet.web.reader_statistics import Metric, ReaderStatistics

FIREFOX = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"}
RECORD = "/record/oai:north.example.org:1000"


def numbers(client: TestClient) -> Counter[tuple[str, str]]:
    Operator(client)
    found = Counter[tuple[str, str]]()
    for row in client.get("/admin/statistics.json").json()["statistics"]:
        found[row["metric"], row["source"]] += row["number"]
    return found


@pytest.fixture
def node(tmp_path: Path) -> tuple[Store, Path]:
    store = Store.open(tmp_path)
    fill(store)
    return store, tmp_path


def test_searches_views_and_clicks_are_counted_once(node: tuple[Store, Path]) -> None:
    store, folder = node
    client = make_client(store, settings_for(folder))
    for address in (
        "/?q=wave",
        "/?q=wave",
        "/?q=wave&page=2",
        "/?q=wave&sort=title",
        "/?q=zzzzzz",
        "/",
        RECORD,
    ):
        assert client.get(address, headers=FIREFOX).status_code == 200
    client.get("/?q=opera", headers={"user-agent": "Googlebot/2.1"})
    for _ in range(2):
        assert client.post("/clicks", data={"page": RECORD}, headers=FIREFOX).status_code == 204
    assert client.post("/clicks", data={"page": "/record/nowhere"}, headers=FIREFOX).status_code == 204
    foreign = {**FIREFOX, "sec-fetch-site": "cross-site", "x-forwarded-for": "192.0.2.1"}
    assert client.post("/clicks", data={"page": RECORD + "?x"}, headers=foreign).status_code == 204
    found = numbers(client)
    assert found[Metric.SEARCHES, ""] == 2 and found[Metric.ZERO_HITS, ""] == 1
    views = {source: n for (metric, source), n in found.items() if metric == Metric.INVESTIGATIONS}
    assert len(views) == 2 and set(views.values()) == {1}, "of the node, and of the record's source"
    assert found[Metric.CLICKS, ""] == 1
    rows = list(csv.reader(client.get("/admin/statistics.csv").text.splitlines()))
    assert rows[0] == ["period", "source", "metric", "number"] and len(rows) > 5
    page = client.get("/admin/statistics").text
    assert "Without hits" in page and "By source" in page
    store.close()


def test_nothing_that_is_kept_tells_who_a_reader_is(node: tuple[Store, Path]) -> None:
    store, folder = node
    with make_client(store, settings_for(folder)) as client:
        client.get("/?q=wave+secret+name", headers=FIREFOX)
    kept = (folder / "readers.json").read_text()
    assert json.loads(kept) and not any(word in kept for word in ("127.0.0.1", "Firefox", "secret", "wave"))
    assert not client.cookies
    store.close()


def test_numbers_go_after_the_days_that_are_set(tmp_path: Path) -> None:
    now = 1_700_000_000.0
    with Store.open(tmp_path) as store:
        old = ReaderStatistics(store, Counting(keep_days=30), lambda: now)
        old.add(Metric.SEARCHES, "s")
        old.save()
        later = ReaderStatistics(store, Counting(keep_days=30), lambda: now + 20 * 86400)
        later.add(Metric.SEARCHES)
        later.save()
        assert len(later.rows()) == 3
        last = ReaderStatistics(store, Counting(keep_days=30), lambda: now + 100 * 86400)
        assert last.rows() == []
        last.add(Metric.CLICKS)
        last.save()
        assert len(json.loads((tmp_path / "readers.json").read_text())) == 1


def test_counting_can_be_switched_off(node: tuple[Store, Path]) -> None:
    store, folder = node
    settings = replace(settings_for(folder), statistics=Counting(count=False))
    client = make_client(store, settings)
    client.get("/?q=wave", headers=FIREFOX)
    assert numbers(client)[Metric.SEARCHES, ""] == 0
    store.close()
