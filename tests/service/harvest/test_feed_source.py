"""Feeds as sources, over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from indlet.model import Record
from indlet.oai import provenance
from indlet.oai.dates import period
from indlet.provider.serve.provenance import Provenance
from indlet.service.harvest.progress import Progress
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store, open_store

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0">
<title>T</title><id>urn:f</id><updated>2020-01-01T00:00:00Z</updated>{entries}</feed>"""
ENTRY = """<entry><id>urn:{name}</id><title>{title}</title><updated>2020-02-03T04:05:06Z</updated>
<link href="http://example.org/{name}"/><summary>flutter of {title}</summary></entry>"""


class Server(BaseHTTPRequestHandler):
    body: ClassVar[str] = ""
    status: ClassVar[list[int]] = []
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        etag = f'"{hash(self.body)}"'
        self.seen.append(self.headers.get("If-None-Match", ""))
        status = self.status.pop(0) if self.status else 200
        if status == 200 and self.headers.get("If-None-Match") == etag:
            status = 304
        data = self.body.encode() if status == 200 else b""
        self.send_response(status)
        self.send_header("ETag", etag)
        self.send_header("Content-Type", "application/atom+xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Server.status, Server.seen = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/feed"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "data")


def show(*names: str, more: str = "") -> None:
    entries = "".join(ENTRY.format(name=name, title=f"wing {name}") for name in names)
    Server.body = ATOM.format(entries=entries + more)


def harvest(store: Store, url: str) -> Progress:
    settings = Settings(harvest=Harvest(retries=2, backoff_seconds=0.01))
    (done,) = harvest_all(store, settings, [Source(url, name="news", metadata="feed")], index=False)
    return done


def held(store: Store) -> set[str]:
    with store.read() as view:
        return {stored.identifier for stored in view.changes() if not stored.deleted}


def test_entries_become_records_and_stay_when_they_fall_off(store: Store, url: str) -> None:
    show("a", "b")
    assert (harvest(store, url).outcome, held(store)) == ("complete", {"urn:a", "urn:b"})
    with store.read() as view:
        record = view.get("urn:a")
        assert record is not None and record.vector is not None
        assert b"flutter" in record.vector and b"<dc:title" in record.raw
    show("b", "c")
    done = harvest(store, url)
    assert done.changed == 1
    assert held(store) == {"urn:a", "urn:b", "urn:c"}


def test_an_unchanged_feed_costs_one_small_answer(store: Store, url: str) -> None:
    show("a")
    harvest(store, url)
    done = harvest(store, url)
    assert (done.outcome, done.changed, done.records) == ("complete", 0, 0)
    assert Server.seen[0] == "" and Server.seen[1] != ""


def test_a_tombstone_deletes(store: Store, url: str) -> None:
    show("a", "b")
    harvest(store, url)
    show("b", more='<at:deleted-entry ref="urn:a" when="2020-03-01T00:00:00Z"/>')
    harvest(store, url)
    assert held(store) == {"urn:b"}


def test_passing_trouble_is_waited_for(store: Store, url: str) -> None:
    show("a")
    Server.status = [503, 503]
    assert harvest(store, url).outcome == "complete"


@pytest.mark.parametrize(("status", "body"), [(404, ""), (200, "<html>no feed</html>")])
def test_what_is_no_feed_fails_and_says_so(store: Store, url: str, status: int, body: str) -> None:
    show("a")
    harvest(store, url)
    Server.body, Server.status = body or Server.body + " ", [status]
    done = harvest(store, url)
    assert done.outcome == "failed" and done.reason
    assert held(store) == {"urn:a"}


def test_guids_that_are_no_uris_become_some(store: Store, url: str) -> None:
    rss = "<rss version='2.0'><channel><title>T</title>{}</channel></rss>"
    item = "<item><guid isPermaLink='false'>{}</guid><title>wing {}</title></item>"
    names = ("1", "post 7 &lt;b&gt;", "http://example.org/a b", "urn:x:1")
    Server.body = rss.format("".join(item.format(name, n) for n, name in enumerate(names)))
    with store.write() as tx:  # as it was kept before
        tx.put(tx.origin("source", "news"), [Record("1"), Record("older")])
    assert harvest(store, url).outcome == "complete"
    found = {f"{url}#1", f"{url}#post%207%20%3Cb%3E", "http://example.org/a%20b", "urn:x:1"}
    assert held(store) == {*found, "older"}
    # Another feed's entry of that guid is another entry.
    settings = Settings(harvest=Harvest(retries=0))
    other = f"{url}/other"
    harvest_all(store, settings, [Source(other, name="other", metadata="feed")], index=False)
    assert held(store) == {*found, "older", f"{other}#1", f"{other}#post%207%20%3Cb%3E"}
    with store.read() as view:
        one, two = view.get(f"{url}#1"), view.get(f"{other}#1")
        assert one is not None and two is not None and one.resource != two.resource


def test_entries_without_a_date_are_passed_on_with_sound_provenance(store: Store, url: str) -> None:
    Server.body = ATOM.format(entries="<entry><id>1</id><title>wing</title></entry>")
    settings = Settings(harvest=Harvest(retries=0))
    source = Source(url, name="news", metadata="feed", republish=True)
    harvest_all(store, settings, [source], index=False)
    with store.read() as view:
        origins = view.origins()
        stored = view.get(f"{url}#1")
    assert stored is not None
    about = Provenance(origins, extended=False).about(stored, "http://www.openarchives.org/OAI/2.0/oai_dc/")
    (hop,), _ = provenance.read([about.removeprefix(b"<about>").removesuffix(b"</about>")])
    assert period(hop.datestamp) and hop.identifier == f"{url}#1"


def test_what_entries_inherit_is_charged_to_the_size_of_the_feed(url: str, store: Store) -> None:
    """200 kilobytes of authors for each of 2,000 entries would be 400 megabytes."""
    authors = "".join(f"<author><name>Wells, Ada {number}</name></author>" for number in range(5000))
    show(*map(str, range(2000)), more=authors)
    (progress,) = harvest_all(store, Settings(), [Source(url, name="feed", metadata="feed")], index=False)
    assert progress.outcome == "failed"
    assert "bytes would come of one response" in progress.reason
    assert store.size() < 50_000_000
