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


@pytest.mark.parametrize(("kind", "version"), [("atom", "atom10"), ("rss", "rss20"), ("rdf", "rss10")])
def test_a_reader_understands_the_feed(client: TestClient, kind: str, version: str) -> None:
    found = read(client, f"/feed.{kind}")
    assert found.version == version
    assert "Union Catalogue" in found.feed.title and found.feed.updated_parsed
    assert len(found.entries) >= 45
    entry = found.entries[0]
    assert entry.title and entry.link.startswith("http://127.0.0.1:8080/record/") and entry.id
    if kind != "rdf":  # RSS 1.0 has no word for it
        assert entry.enclosures and entry.enclosures[0].type == "application/pdf"
    assert entry.authors and entry.tags and entry.summary
    times = [e["published_parsed" if kind == "rss" else "updated_parsed"] for e in found.entries]
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
    both = read(client, f"/feed.{kind}?q=shock+wave&language=fr")
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
    assert 'type="application/rdf+xml" href="/feed.rdf?q=wave&amp;language=en"' in body
    assert 'type="application/feed+json" href="/feed.json"' in body
    assert client.get("/feed.xml").status_code == 404
    assert 'type="application/opensearchdescription+xml"' in body


def test_the_format_may_be_named(client: TestClient) -> None:
    answer = client.get("/feed.rss?format=rss1")
    assert answer.headers["content-type"].startswith("application/rdf+xml")
    assert read(client, "/feed.rss?format=rss1").version == "rss10"
    assert read(client, "/feed.atom?format=rss2").version == "rss20"
    entries = [entry.id for entry in read(client, "/feed.atom?set=north").entries]
    assert len(read(client, "/feed.rss?format=rss1").entries) == len(read(client, "/feed.rdf").entries) > 0
    assert [entry.id for entry in read(client, "/feed.rss?set=north&format=atom").entries] == entries
    # As on a result page, formats of files narrow it.
    total = client.get("/api/search?q=*&format=PDF&limit=0").json()["total"]
    assert len(read(client, "/feed.atom?format=PDF").entries) == min(total, 50)
    assert client.get("/feed.rss?format=word").status_code == 404
    found = client.get("/feed.json").json()
    assert found["version"].endswith("1.1") and len(found["items"]) >= 45


def filled(store: Store, count: int, word: str = "wing") -> int:
    with store.write() as tx:
        origin = tx.origin("source", "s")
        for n in range(count):
            sets = ("even",) if n % 2 == 0 else ("odd",)
            tx.put(origin, [Record(f"oai:s:{n}", {"title": [f"T{n}"]}, TermVector.of({word: 1}), sets)])
    return origin


def walked(client: TestClient, address: str, relation: str) -> list[Any]:
    """The documents of a feed, from its own address on."""
    found = [read(client, address)]
    for _ in range(40):
        links = [link.href for link in found[-1].feed.links if link.rel == relation]
        if not links:
            return found
        found.append(read(client, links[0].removeprefix("http://127.0.0.1:8080")))
    raise AssertionError("no end")


@pytest.mark.parametrize("kind", ["atom", "rss", "rdf"])
@pytest.mark.parametrize("where", ["", "?set=even", "?source=s"])
def test_archives_hold_all_that_a_feed_has_left_behind(
    empty: tuple[Store, TestClient], kind: str, where: str
) -> None:
    store, client = empty
    filled(store, 230)
    documents = walked(client, f"/feed.{kind}{where}", "prev-archive")
    titles = {entry.title for one in documents for entry in one.entries}
    assert titles == {f"T{n}" for n in range(230) if n % 2 == 0 or "even" not in where}
    assert [("fh_archive" in one.feed) for one in documents] == [False] + [True] * (len(documents) - 1)
    assert all(len(one.entries) <= 50 for one in documents) and len(documents) == 5
    # What is known stays: new entries change the newest document, and move no archive.
    archives = [[link.href for link in one.feed.links if link.rel == "self"] for one in documents[1:]]
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [Record(f"oai:s:new{n}", {"title": ["N"]}, None, ("even",)) for n in range(120)])
    again = walked(client, f"/feed.{kind}{where}", "prev-archive")
    later = [[link.href for link in one.feed.links if link.rel == "self"] for one in again[1:]]
    assert later[-len(archives) :] == archives
    assert [[e.title for e in one.entries] for one in again[-len(archives) :]] == [
        [e.title for e in one.entries] for one in documents[1:]
    ]
    back = [link.href for link in again[-1].feed.links if link.rel in ("next-archive", "current")]
    assert len(back) == 2
    assert client.get(f"/feed.{kind}?archive=nonsense").status_code == 404


def test_the_feed_of_a_query_is_read_in_pages(empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    filled(store, 130)
    client = make_client(store, settings_for(store.local_folder))
    documents = walked(client, "/feed.atom?q=wing", "next")
    titles = [entry.title for one in documents for entry in one.entries]
    assert titles == [f"T{n}" for n in range(129, -1, -1)] and len(documents) == 3
    assert [link.href for link in documents[2].feed.links if link.rel == "first"]
    assert client.get("/feed.atom?q=wing&before=x").status_code == 404


def test_another_index_part_is_no_news(empty: tuple[Store, TestClient]) -> None:
    store, client = empty
    filled(store, 3)
    before = read(client, "/feed.atom")
    filled(store, 2, word="other")
    after = read(client, "/feed.atom")
    assert [(e.title, e.updated) for e in after.entries] == [(e.title, e.updated) for e in before.entries]


def test_descriptions_in_full_are_content_where_allowed(client: TestClient) -> None:
    for kind in ("text", "html", "xhtml"):
        root = etree.fromstring(client.get(f"/feed.atom?content={kind}").content)
        assert {c.get("type") for c in root.iter(f"{ATOM}content")} == {kind}
    assert b"<content" not in client.get("/feed.atom?content=word").content
