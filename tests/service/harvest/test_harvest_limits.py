"""What a source may take, and what must not be seen of it: room on the disk, user and password."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
import tests.hostile.misbehaving as m
from click.testing import CliRunner
from tests.service.harvest.test_harvest_hostile import QUICK, harvest, held, state

from indlet.cli.harvest import harvest as harvest_command
from indlet.cli.harvest import sources as sources_command
from indlet.errors import StoreError
from indlet.limits import CHILD_MEMORY_MB, FREE_DISK
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import Run, RunOptions
from indlet.service.index import follow
from indlet.service.search import statistics
from indlet.settings import Source
from indlet.settings.file import from_mapping
from indlet.store import Store, open_store
from indlet.store.kept_tables import CREDENTIALS, Credentials
from indlet.store.sqlite.migrations import STEPS, credentials_out_of_urls
from indlet.store.sqlite.store import SqliteStore
from indlet.text import Analyzer, Policy

PASSWORD = "hunter2"
STEP = STEPS.index(credentials_out_of_urls)


def test_a_source_that_has_its_room_stops_and_goes_on_when_it_has_more(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, m.Provider() as provider:
        first = harvest(store, provider.url, disk_bytes=2000)
        assert (first.outcome, "disk_bytes" in first.reason) == ("incomplete", True)
        some = set(held(store))
        assert 0 < len(some) < len(provider.live())
        asked = len(provider.requests)
        again = harvest(store, provider.url, disk_bytes=2000)
        assert (again.outcome, set(held(store))) == ("incomplete", some)
        assert not any(q.listing for q in provider.requests[asked:])
        assert harvest(store, provider.url, disk_bytes=10_000_000).ok
        assert set(held(store)) == provider.live()


def test_records_that_come_again_take_no_room(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, m.Provider() as provider:
        assert harvest(store, provider.url).ok
        with store.read() as view:
            exact = view.stored_bytes(1)
        for _ in range(5):
            assert harvest(store, provider.url, RunOptions(full=True), disk_bytes=exact + 2000).ok
        assert state(store)["stored_bytes"] < 3 * exact


def test_failures_take_room_too(tmp_path: Path) -> None:
    broken = m.rewritten(rb"</dc:title>", b"x" * 10_000 + b"</dc:titel>", "ListRecords")
    with open_store(tmp_path) as store, m.Provider(None, broken, m.dead(["GetRecord"])) as provider:
        done = harvest(store, provider.url, disk_bytes=150_000)
        assert "disk_bytes" in done.reason


def test_urls_are_parted_from_their_credentials_on_entry() -> None:
    source = Source(f"http://me:{PASSWORD}%21@127.0.0.1:9/oai?a=@b")
    assert (source.url, source.user, source.password) == ("http://127.0.0.1:9/oai?a=@b", "me", PASSWORD + "!")
    assert PASSWORD not in json.dumps(source.public())
    settings = from_mapping({"source": [{"url": f"http://me:{PASSWORD}@x.org/"}]})
    assert (settings.source[0].url, settings.source[0].password) == ("http://x.org/", PASSWORD)
    assert Source("http://x.org/a@b").url == "http://x.org/a@b"


def everything(folder: Path) -> str:
    """All that a store holds but its vault, as text."""
    with sqlite3.connect(folder / "store.sqlite") as connection:
        tables = ("origins", "runs", "failures", "records", "sets")
        return "".join(str(connection.execute(f"SELECT * FROM {t}").fetchall()) for t in tables)


def test_a_password_is_used_and_shown_nowhere(tmp_path: Path) -> None:
    told = ""
    with m.Provider() as provider:
        url = provider.url.replace("http://", f"http://me:{PASSWORD}@")
        for fault in (
            m.malformed_record("oai:x.org:0003", single=True),
            m.dead(["ListRecords", "GetRecord"]),
        ):
            provider.faults = (fault,)
            done = CliRunner().invoke(
                harvest_command, [url, "--data", str(tmp_path), "--retries", "0", "--full"]
            )
            told += done.output
    told += CliRunner().invoke(sources_command, ["--data", str(tmp_path), "--json"]).output
    with open_store(tmp_path) as store:
        told += orjson.dumps(statistics.sources(store)).decode()
    assert "repo" in told
    assert PASSWORD not in told + everything(tmp_path)


def test_what_was_given_once_is_used_again(tmp_path: Path) -> None:
    seen = list[str | None]()

    class Guarded(m.Provider):
        def _handle(self, handler: BaseHTTPRequestHandler) -> None:
            seen.append(handler.headers.get("Authorization"))
            super()._handle(handler)

    with open_store(tmp_path) as store, Guarded() as provider:
        secret = provider.url.replace("http://", f"http://me:{PASSWORD}@")
        for url in (secret, provider.url):
            source = Source(url, name="repo")
            Run(store, source, "repo", Analyzer(Policy()), QUICK, Progress("repo")).go()
    assert set(seen) == {"Basic bWU6aHVudGVyMg=="}


def test_stored_credentials_go_only_to_the_server_that_they_were_given_for(tmp_path: Path) -> None:
    seen = list[str | None]()

    class Listener(m.Provider):
        def _handle(self, handler: BaseHTTPRequestHandler) -> None:
            seen.append(handler.headers.get("Authorization"))
            super()._handle(handler)

    def harvest(store: Store, url: str) -> None:
        Run(store, Source(url, name="repo"), "repo", Analyzer(Policy()), QUICK, Progress("repo")).go()

    with open_store(tmp_path) as store, m.Provider() as first, Listener() as other:
        harvest(store, first.url.replace("http://", f"http://me:{PASSWORD}@"))
        harvest(store, other.url)
        assert seen
        assert set(seen) == {None}
        # As an earlier version kept them: they belong to the address that was harvested with them.
        with store.read() as view:
            origin = view.origins("source")[0].id
        with store.write() as tx:
            tx.origin("source", "repo", {"url": first.url})
            tx.upsert(CREDENTIALS, [Credentials(origin, "me", PASSWORD, "")])
        harvest(store, other.url)
        assert set(seen) == {None}


def test_an_older_store_is_cleaned_when_it_is_opened(tmp_path: Path) -> None:
    url = f"http://me:{PASSWORD}@127.0.0.1:9/oai"
    said = json.dumps({"reason": f"{url}: HTTP status 500"})
    origin = 1
    with contextlib.closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as connection:
        for step in STEPS[:STEP]:
            step(connection)
        state = json.dumps({"url": url, "last": json.loads(said)})
        connection.execute(
            "INSERT INTO origins VALUES (?, 'source', 'old', ?, ?)", (origin, json.dumps({"url": url}), state)
        )
        connection.execute("INSERT INTO runs VALUES (1, ?, 'harvest', 0, 1, 'failed', ?)", (origin, said))
        connection.execute(f"PRAGMA user_version = {STEP}")
    assert PASSWORD in everything(tmp_path)
    with open_store(tmp_path) as store, store.read() as view:
        assert view.origins("source")[0].settings == {"url": "http://127.0.0.1:9/oai"}
        assert view.select(CREDENTIALS) == [Credentials(origin, "me", PASSWORD, "")]
    assert PASSWORD not in everything(tmp_path)


def test_a_namespace_that_the_canonical_form_repeats_takes_no_room(tmp_path: Path) -> None:
    """300 kilobytes would become more than 100 megabytes; each record alone is as it should be."""
    uri = b"urn:" + b"y" * 20_000
    bomb = m.rewritten(rb"</oai_dc:dc>", b"<x:a/>" * 1000 + b"</oai_dc:dc>", "ListRecords")
    declared = m.rewritten(rb"<ListRecords>", b'<ListRecords xmlns:x="%b">' % uri, "ListRecords")
    with open_store(tmp_path) as store, m.Provider(None, bomb, declared) as provider:
        assert harvest(store, provider.url).ok
        assert set(held(store)) == provider.live()
        assert store.size() < 20_000_000
    with (
        open_store(tmp_path / "other") as store,
        m.Provider(None, bomb, declared, m.dead(["GetRecord"])) as provider,
    ):
        assert "bytes would come of one response" in str(harvest(store, provider.url)) + failures(store)
        assert store.size() < 20_000_000


def failures(store: Store) -> str:
    with store.read() as view:
        return " ".join(str(failure) for failure in view.failures(1))


def test_a_commit_leaves_some_room_on_the_disk(tmp_path: Path) -> None:
    """The run fails and says why, and with more room the next one has everything."""
    with SqliteStore.open(tmp_path) as store, m.Provider() as provider:
        store.free_disk = 1 << 60
        first = harvest(store, provider.url)
        assert first.outcome == "failed"
        assert "bytes are free on the disk" in first.reason
        assert not held(store)
        store.free_disk = FREE_DISK
        assert harvest(store, provider.url).ok
        assert set(held(store)) == provider.live()


def test_an_index_file_leaves_some_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with less room than that, here by the system's own answer, stops the index and not the store."""
    with open_store(tmp_path) as store, m.Provider() as provider:
        assert harvest(store, provider.url).ok
        full = os.statvfs_result((4096, 4096, 1 << 20, 9, 9, 9, 9, 9, 0, 255))
        with monkeypatch.context() as small:
            small.setattr(os, "statvfs", lambda path: full)
            with pytest.raises(StoreError, match="make room and go on"):
                follow.catch_up(store)
        assert follow.lag(store)[1] <= 0
        assert follow.catch_up(store).applied >= len(provider.live())


def test_the_command_limits_its_own_memory(tmp_path: Path) -> None:
    limits: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = Path(f"/proc/{command.pid}/limits").read_text().splitlines()
            limits.extend(line.split()[3] for line in told if line.startswith("Max data size"))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/oai"
        arguments = [
            sys.executable,
            "-m",
            "indlet",
            "harvest",
            url,
            "--data",
            str(tmp_path / "d"),
            "--retries",
            "0",
        ]
        command = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert command.wait(60) == 1
        server.shutdown()
        thread.join()
    assert set(limits) == {str(CHILD_MEMORY_MB << 20)}


def test_the_name_of_the_harvester_can_be_set(tmp_path: Path) -> None:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("User-Agent", ""))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, open_store(tmp_path) as store:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/oai"
        harvest(store, url)
        named = replace(QUICK, user_agent="LaRC harvester (tri@larc.example.org)")
        harvest(store, url, harvest=named)
        forged = harvest(store, url, harvest=replace(QUICK, user_agent="x\r\nCookie: y"))
        server.shutdown()
        thread.join()
    assert seen[0].startswith("indlet/") and seen[-1] == named.user_agent
    assert forged.outcome == "failed" and "harvest.user_agent" in forged.reason
