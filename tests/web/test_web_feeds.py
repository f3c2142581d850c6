"""Feeds, as readers read them."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import feedparser
import pytest
from lxml import etree
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.model import Record, TermVector
from indlet.store import Store

ATOM = "{http://www.w3.org/2005/Atom}"


def read(client: TestClient, address: str) -> Any:
    answer = client.get(address)
    assert answer.status_code == 200
    found = feedparser.parse(
        answer.content, response_headers={"content-type": answer.headers["content-type"]}
    )
    assert not found.bozo, found.get("bozo_exception")
    return found


@pytest.mark.parametrize(("kind", "version"), [("atom", "atom10"), ("rss", "rss20")])
def test_a_reader_understands_the_feed(client: TestClient, kind: str, version: str) -> None:
    found = read(client, f"/feed.{kind}")
    assert found.version == version
    assert "Union Catalogue" in found.feed.title and found.feed.updated_parsed
    assert len(found.entries) >= 45
    entry = found.entries[0]
    assert entry.title and entry.link.startswith("http://127.0.0.1:8080/record/") and entry.id
    assert entry.enclosures and entry.enclosures[0].type == "application/pdf"
    assert entry.authors and entry.tags and entry.summary
    times = [e["updated_parsed" if kind == "atom" else "published_parsed"] for e in found.entries]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("kind", ["atom", "rss"])
def test_feeds_of_a_set_a_source_and_a_query(client: TestClient, kind: str) -> None:
    whole = {e.link for e in read(client, f"/feed.{kind}?q=shock+wave").entries}
    assert whole and all("/record/" in link for link in whole)
    german = read(client, f"/feed.{kind}?source=Stadtarchiv")
    assert german.entries and all("stadt.example.org" in e.link for e in german.entries)
    assert "Stadtarchiv" in german.feed.title
    topic = read(client, f"/feed.{kind}?set=topic:0")
    assert 0 < len(topic.entries) <= 25
    both = read(client, f"/feed.{kind}?q=shock+wave&language=de")
    assert not both.entries
    assert client.get(f"/feed.{kind}?q=%28").status_code == 400


def test_a_saved_query_shows_the_latest_change_first(empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    with store.write() as tx:
        origin = tx.origin("source", "s")
        for n in range(60):
            word = "kept" if n % 3 == 0 else "other"
            tx.put(
                origin, [Record(f"oai:s:{n}", {"title": [f"{word} {n}"]}, TermVector.of({word: 1 + n % 4}))]
            )
    client = make_client(store, settings_for(store.local_folder))
    found = read(client, "/feed.atom?q=kept")
    assert [e.title for e in found.entries] == [f"kept {n}" for n in range(57, -1, -3)]
    assert found.feed.os_totalresults == "20"


def test_deletions_are_tombstones(client: TestClient) -> None:
    root = etree.fromstring(client.get("/feed.atom").content)
    gone = root.findall("{http://purl.org/atompub/tombstones/1.0}deleted-entry")
    assert len(gone) == 3 and all(g.get("ref") and g.get("when") for g in gone)
    assert len(read(client, "/feed.rss").entries) == 47


def test_atom_has_what_the_specification_demands(client: TestClient) -> None:
    root = etree.fromstring(client.get("/feed.atom?q=wave").content)
    for name in ("id", "title", "updated", "author"):
        assert root.find(f"{ATOM}{name}") is not None
    relations = {link.get("rel") for link in root.findall(f"{ATOM}link")}
    assert relations >= {"self", "alternate"}
    ids = [e.findtext(f"{ATOM}id") for e in root.findall(f"{ATOM}entry")]
    assert len(ids) == len(set(ids)) > 0
    for entry in root.findall(f"{ATOM}entry"):
        assert entry.find(f"{ATOM}updated") is not None and entry.find(f"{ATOM}title") is not None
        assert entry.find("{http://purl.org/dc/elements/1.1/}creator") is not None


def test_an_unchanged_feed_is_not_sent_again(empty: tuple[Store, TestClient]) -> None:
    store, client = empty
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [Record("oai:s:1", {"title": ["One"]}, TermVector.of({"one": 1}))])
    first = client.get("/feed.rss")
    etag = first.headers["etag"]
    again = client.get("/feed.rss", headers={"if-none-match": f'W/"x", {etag}'})
    assert again.status_code == 304 and not again.content and again.headers["etag"] == etag
    assert client.get("/feed.atom", headers={"if-none-match": etag}).status_code == 200
    old = formatdate(0, usegmt=True)
    assert client.get("/feed.rss", headers={"if-modified-since": old}).status_code == 200
    assert client.get("/feed.rss", headers={"if-modified-since": "nonsense"}).status_code == 200
    with store.write() as tx:
        tx.put(origin, [Record("oai:s:1", {"title": ["Two"]}, TermVector.of({"one": 1}))])
    changed = client.get("/feed.rss", headers={"if-none-match": etag})
    assert changed.status_code == 200 and "Two" in changed.text


def test_a_feed_that_was_quiet_answers_by_date(library_store: Store, client: TestClient) -> None:
    with library_store.read() as view:
        span = view.datestamps()
    assert span is not None
    later = formatdate(span[1] + 60, usegmt=True)
    headers = {"if-modified-since": later}
    # Until the second of the last change is over, a date proves nothing.
    assert client.get("/feed.atom", headers=headers).status_code in (200, 304)


def test_pages_announce_their_feeds(client: TestClient) -> None:
    body = client.get("/?q=wave&language=en").text
    assert 'type="application/atom+xml" href="/feed.atom"' in body
    assert 'href="/feed.rss?q=wave&amp;language=en"' in body
    assert client.get("/feed.xml").status_code == 404
    assert 'type="application/opensearchdescription+xml"' in body
