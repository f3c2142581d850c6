"""A node without a portal has feeds too: of all, of a set, of a hierarchy."""

from __future__ import annotations

import time
from typing import Any

import feedparser
import pytest
from tests.provider.serve.conftest import Provider

from indlet.formats.feed_writer import FEEDS
from indlet.model import Record


def read(provider: Provider, address: str) -> Any:
    answer = provider.client.get(address)
    assert answer.status_code == 200
    found = feedparser.parse(
        answer.content, response_headers={"content-type": answer.headers["content-type"]}
    )
    assert not found.bozo, found.get("bozo_exception")
    return found


@pytest.mark.parametrize("kind", ["atom", "rss", "rdf"])
def test_feeds_of_all_of_a_set_and_of_a_hierarchy(filled: Provider, kind: str) -> None:
    filled.put(
        [Record("oai:x.org:other/1", {"title": ["Other"]}, properties={"url": "http://x.org/o"})], "other"
    )
    whole = read(filled, f"/feed.{kind}")
    assert len(whole.entries) == 24 and whole.entries[0].title == "Other"
    assert len(read(filled, f"/feed.{kind}?set=papers:a").entries) == 9
    assert [e.title for e in read(filled, f"/feed.{kind}?source=other").entries] == ["Other"]
    assert read(filled, f"/feed.{kind}?source=none").entries == []
    link = read(filled, f"/feed.{kind}?set=papers:b").entries[0].link
    assert b"<record>" in filled.fetch(link.removeprefix("http://x.org"))


def test_deletions_are_tombstones_and_files_are_enclosures(filled: Provider) -> None:
    body = filled.client.get("/feed.atom").text
    assert body.count("<at:deleted-entry") == 2
    (first, *_) = read(filled, "/feed.atom?set=papers:b").entries
    assert first.enclosures[0].href.startswith("http://x.org/files/")
    named = filled.client.get("/feed.rss?format=rss1")
    assert named.headers["content-type"].startswith("application/rdf+xml")
    assert filled.client.get("/feed.xml").status_code == 404


def test_an_unchanged_feed_is_not_sent_again(filled: Provider) -> None:
    first = filled.client.get("/feed.json")
    tag, date = first.headers["etag"], first.headers["last-modified"]
    for known in ({"if-none-match": tag}, {"if-modified-since": date}):
        assert filled.client.get("/feed.json", headers=known).status_code == 304
    filled.put([filled.record(50)])
    assert filled.client.get("/feed.json", headers={"if-none-match": tag}).status_code == 200


def test_the_date_of_a_second_that_is_not_over_proves_nothing(filled: Provider) -> None:
    filled.clock.now = time.time() + 60  # however slow this test is: that second is not over
    filled.put([filled.record(50)])
    date = filled.client.get("/feed.json").headers["last-modified"]
    assert filled.client.get("/feed.json", headers={"if-modified-since": date}).status_code == 200


def test_archives_and_the_landing_page(filled: Provider) -> None:
    for n in range(120):
        filled.put([filled.record(1000 + n)])
    seen, address = set(), "/feed.atom"
    for _ in range(10):
        found = read(filled, address)
        seen |= {entry.link for entry in found.entries}
        earlier = [link.href for link in found.feed.links if link.rel == "prev-archive"]
        if not earlier:
            break
        address = earlier[0].removeprefix("http://x.org")
    assert len(seen) == 143
    assert filled.client.get("/feed.atom?archive=AAAA").status_code == 404
    page = filled.client.get("/").text
    for kind, form in FEEDS.items():
        assert f'type="{form.media_type}"' in page and f"/feed.{kind}" in page
