"""Harvesting our own node: every form gives the same index, changes come over, interruptions lose nothing."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.hostile import misbehaving as m
from tests.stores import command_options, store_in

from indlet.formats import METADATA, root_name
from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.provider.serve import application
from indlet.service.harvest.negotiate import best_index, candidates, source_name
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.service.index import engines, follow
from indlet.service.index.embedded.engine import Engine
from indlet.service.pipeline import harvest_all
from indlet.settings import Analysis, Harvest, Node, Serve, Settings, Source
from indlet.store import Store
from indlet.text import Analyzer, Policy

QUICK = Harvest(
    retries=2, backoff_seconds=0.01, backoff_limit_seconds=0.02, stall_seconds=5, timeout_seconds=5
)
WORDS = [
    "boundary",
    "layers",
    "of",
    "the",
    "heated",
    "wings",
    "are",
    "flowing",
    "and",
    "fluttering",
    "over",
    "a",
    "flat",
    "plate",
    "in",
    "air",
]


class Node_:
    """A provider over HTTP, with a store that the test changes."""

    def __init__(self, folder: Path, analysis: Analysis, page: int = 7, extended: bool = True) -> None:
        self.store = store_in(folder)
        self.analyzer = Analyzer(Policy.from_json({**_choices(analysis)}))
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        settings = Settings(
            data=folder,
            node=Node(base_url=self.url),
            analysis=analysis,
            serve=replace(Serve(), records_per_page=page, identifiers_per_page=page),
        )
        app: Any = application(self.store, settings)
        config = uvicorn.Config(
            app if extended else _without_extension(app), log_level="error", lifespan="off"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)

    def __enter__(self) -> Node_:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()
        self.store.close()

    def put(self, *texts: tuple[str, str]) -> None:
        records = []
        for name, text in texts:
            metadata = {
                "title": [f"On {text}"],
                "language": ["en"],
                "identifier": [f"http://x.org/{name}"],
                "date": ["1957-05"],
            }
            vector = self.analyzer.vector(text, "en")
            sets = ("h", f"h:{len(name)}")
            records.append(Record(f"oai:x.org:{name}", metadata, vector, sets, raw=oai_dc.write(metadata)))
        with self.store.write() as tx:
            tx.put(tx.origin("hierarchy", "h"), records)

    def delete(self, *names: str) -> None:
        with self.store.write() as tx:
            tx.delete(tx.origin("hierarchy", "h"), [f"oai:x.org:{n}" for n in names])

    def content(self) -> dict[str, Any]:
        with self.store.read() as view:
            return {s.identifier: None if s.deleted else (s.vector, s.length, s.sets) for s in view.changes()}


def _without_extension(app: Any) -> Any:
    async def narrowed(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/ft-oai"):
            scope = scope | {"path": "/nowhere", "raw_path": b"/nowhere"}
        await app(scope, receive, send)

    return narrowed


def _choices(analysis: Analysis) -> dict[str, Any]:
    return {
        name: getattr(analysis, name)
        for name in ("language", "default_language", "stop", "stem", "positions")
    }


def texts(count: int, seed: int = 1) -> list[tuple[str, str]]:
    source = random.Random(seed)
    return [(f"{i:03}", " ".join(source.choices(WORDS, k=12))) for i in range(count)]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node_]:
    with Node_(tmp_path / "provider", Analysis(default_language="en")) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with store_in(tmp_path / "service") as opened:
        yield opened


def harvest(store: Store, url: str, options: RunOptions | None = None, **source: Any) -> Progress:
    settings = Settings(harvest=QUICK, analysis=source.pop("analysis", Analysis()))
    (progress,) = harvest_all(store, settings, [Source(url, **source)], options=options, index=False)
    return progress


def content(store: Store) -> dict[str, Any]:
    with store.read() as view:
        return {s.identifier: None if s.deleted else (s.vector, s.length, s.sets) for s in view.changes()}


@pytest.mark.parametrize(
    ("path", "index", "form"),
    [
        ("", "auto", "oai_dc+tf_compact"),
        ("/ft-oai", "tf_basic", "oai_dc+tf_basic"),
        ("/oai", "auto", "oai_dc+tf_compact"),
        ("/oai", "tf_basic", "oai_dc+tf_basic"),
    ],
)
def test_every_form_brings_the_same_vectors(
    node: Node_, store: Store, path: str, index: str, form: str
) -> None:
    node.put(*texts(40))
    node.delete("003", "017")
    progress = harvest(store, node.url + path, index=index)
    assert (progress.outcome, progress.form, progress.repaired) == ("complete", form, 0)
    assert content(store) == node.content()
    with store.read() as view:
        stored = view.get("oai:x.org:005")
    assert stored is not None
    assert stored.record.metadata["date"] == ["1957-05"]
    assert stored.raw.startswith(b"<oai_dc:dc")


@pytest.mark.parametrize("prefix", [f.prefix for f in METADATA.values() if f.served])
@pytest.mark.parametrize("index", ["auto", "none"])
def test_every_metadata_format_is_harvested_and_says_the_same(
    node: Node_, store: Store, prefix: str, index: str
) -> None:
    node.put(*texts(10))
    progress = harvest(store, node.url, index=index, metadata=prefix)
    assert (progress.outcome, progress.failed) == ("complete", 0)
    assert progress.form.partition("+")[0] == prefix
    with store.read() as view, node.store.read() as theirs:
        for stored in theirs.changes():
            held = view.get(stored.identifier)
            assert held is not None
            said, meant = held.record.metadata, stored.record.metadata
            assert {name: list(said[name]) for name in meant} == {name: list(meant[name]) for name in meant}
            assert root_name(held.raw) in METADATA[prefix].roots


@pytest.mark.parametrize(("index", "form"), [("auto", "oai_dc_tf"), ("tf_basic", "oai_dc_tf_basic")])
def test_the_application_formats_where_there_is_no_extension(
    tmp_path: Path, store: Store, index: str, form: str
) -> None:
    with Node_(tmp_path / "p", Analysis(), extended=False) as node:
        node.put(*texts(20))
        node.delete("003")
        progress = harvest(store, node.url, index=index)
        assert (progress.outcome, progress.form, progress.failed) == ("complete", form, 0)
        assert content(store) == node.content()
    with store.read() as view:
        assert view.origins("source")[0].state["reconciliation"] == "identical"


def test_what_a_url_may_stand_for_and_which_format_is_best() -> None:
    assert candidates("http://x.org/oai") == ["http://x.org/ft-oai", "http://x.org/oai"]
    assert candidates("http://x.org") == ["http://x.org/ft-oai", "http://x.org/oai", "http://x.org"]
    assert candidates("http://x.org/a.php?repo=1") == ["http://x.org/a.php?repo=1"]
    assert best_index({"tf_compact": "", "tf_boolean": ""}, "auto", False) == "tf_compact"
    assert best_index({"tf_positions": "", "tf_compact": ""}, "auto", True) == "tf_positions"
    assert best_index({"tf_boolean": ""}, "tf_basic", False) is None
    assert {source_name(Source(u)) for u in ("http://x.org", "http://x.org/oai/", "http://x.org/ft-oai")} == {
        "x.org"
    }


def test_changes_deletions_and_returns_come_over(node: Node_, store: Store) -> None:
    node.put(*texts(30))
    assert harvest(store, node.url).changed == 30
    quiet = harvest(store, node.url)
    assert (quiet.outcome, quiet.changed) == ("complete", 0)
    node.put(("004", "an entirely other text"), ("100", "a new one"))
    node.delete("007", "008")
    assert harvest(store, node.url).changed == 4
    assert content(store) == node.content()
    node.put(("007", "back again"))
    assert harvest(store, node.url).changed == 1
    assert content(store) == node.content()
    assert harvest(store, node.url, RunOptions(full=True)).changed == 0


def test_sets_and_dates_select(node: Node_, store: Store) -> None:
    node.put(*texts(10), ("longer", "a text"))
    assert harvest(store, node.url, set="h:6").records == 1
    assert harvest(store, node.url, RunOptions(until="2000-01-01")).records == 0
    assert harvest(store, node.url, RunOptions(since="2000-01-01")).records == 11
    # A selective run moves no mark: the next plain one lists everything.
    assert harvest(store, node.url).records == 11


def test_a_milder_source_is_normalised_exactly(tmp_path: Path, store: Store) -> None:
    with Node_(tmp_path / "p", Analysis(stop=False, stem=False)) as node:
        node.put(*texts(25))
        assert harvest(store, node.url).outcome == "complete"
    ours = Analyzer(Policy())
    for name, text in texts(25):
        made = ours.vector(text, "en")
        assert content(store)[f"oai:x.org:{name}"][:2] == (made.packed, made.length)
    with store.read() as view:
        assert view.origins("source")[0].state["reconciliation"] == "milder"


def test_a_harsher_source_is_taken_and_its_loss_is_told(tmp_path: Path, store: Store) -> None:
    with Node_(tmp_path / "p", Analysis(stop=True, stem=True)) as node:
        node.put(*texts(5))
        progress = harvest(store, node.url, analysis=Analysis(stop=False, stem=False))
    assert (progress.outcome, progress.records) == ("complete", 5)
    with store.read() as view:
        assert view.origins("source")[0].state["loss"]


@pytest.mark.parametrize("extended", [True, False])
def test_an_index_without_frequencies_is_taken_and_their_loss_is_told(
    tmp_path: Path, store: Store, extended: bool
) -> None:
    with Node_(tmp_path / "p", Analysis(), extended=extended) as node:
        node.put(("1", "flat wings of flat plates"))
        assert harvest(store, node.url, index="tf_boolean").repaired == 0
        assert content(store)["oai:x.org:1"][:2] == (b"1 flat plate wing", 4)
        with store.read() as view:
            state = view.origins("source")[0].state
        assert (state["reconciliation"], state["loss"]) == (
            "identical",
            ["frequencies missing: each term counts once"],
        )
        harvest(store, node.url, index="tf_basic")
    with store.read() as view:
        assert view.origins("source")[0].state["loss"] == []


def test_a_change_of_our_policy_harvests_all_anew(node: Node_, store: Store) -> None:
    node.put(*texts(12))
    harvest(store, node.url)
    assert harvest(store, node.url, analysis=Analysis(stem=False)).records == 12


def indexed(store: Store, beginning: str) -> list[str]:
    return [term for term, _, _ in Engine.open(engines.folder(store)).searcher().terms(beginning)]


def test_a_change_of_our_policy_is_in_the_index_of_what_came_without_one(node: Node_, store: Store) -> None:
    """Metadata that has not changed is not stored again, but its terms have: the index is made anew."""
    node.put(*texts(300))
    harvest(store, node.url, index="none")
    follow.catch_up(store)
    assert indexed(store, "w") == ["wing"]
    again = harvest(store, node.url, index="none", analysis=Analysis(stem=False))
    assert (again.records, again.changed) == (300, 0)
    assert follow.catch_up(store).rebuilt == "it was made under another policy"
    assert indexed(store, "w") == ["wings"]
    assert follow.lag(store)[0] == follow.lag(store)[1]
    # Who asks otherwise than the data was made does not change the index.
    assert follow.catch_up(store, analyzer=Analyzer(Policy())).rebuilt == ""
    assert follow.rebuild(store, analyzer=Analyzer(Policy())).applied == 300
    assert indexed(store, "w") == ["wings"]


def test_a_dead_source_delays_no_other(node: Node_, store: Store) -> None:
    node.put(*texts(5))
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{unheard.getsockname()[1]}/oai"
        first, second = harvest_all(
            store, Settings(harvest=QUICK), [Source(dead, name="dead"), Source(node.url)], index=False
        )
    assert (first.outcome, second.outcome) == ("failed", "complete")
    assert "cannot connect" in first.reason
    with store.read() as view:
        assert {r.outcome for r in view.runs()} == {"failed", "complete"}


def test_sources_without_deletions_are_reconciled_only_by_a_whole_list(store: Store) -> None:
    with m.Provider(deleted="no") as provider:
        assert harvest(store, provider.url, name="repo").outcome == "complete"
        gone = [r for r in provider.records if not r.deleted][:5]
        for r in gone:
            provider.records.remove(r)
        assert harvest(store, provider.url, name="repo").deleted == 0
        provider.faults = (m.cut_list(verb="ListIdentifiers"),)
        broken = harvest(store, provider.url, RunOptions(reconcile=True), name="repo")
        assert (broken.outcome, broken.deleted) == ("incomplete", 0)
        provider.faults = (lambda q, r: provider.error(q, "noRecordsMatch") if q.listing else r,)
        emptied = harvest(store, provider.url, RunOptions(reconcile=True), name="repo")
        assert (emptied.outcome, emptied.deleted) == ("incomplete", 0)
        provider.faults = ()
        assert harvest(store, provider.url, RunOptions(reconcile=True), name="repo").deleted == 5
    assert {i for i, c in content(store).items() if c is not None} == provider.live()


def test_what_a_list_leaves_out_is_deleted_only_if_it_has_gone(store: Store) -> None:
    """A list that changes while it is read passes records over; one that is cut says nothing of the rest."""
    records = [m.Rec(f"oai:x.org:{i:04d}", f"2024-05-01T00:{i // 60:02d}:{i % 60:02d}Z") for i in range(600)]
    with m.Provider(records, deleted="no", page=100, sizes=False) as provider:
        assert harvest(store, provider.url, name="repo").records == 600
        gone = provider.records.pop(7)
        hidden = rb"<header><identifier>oai:x.org:0012</identifier>.*?</header>"
        provider.faults = (m.rewritten(hidden, b"", "ListIdentifiers"),)
        found = harvest(store, provider.url, RunOptions(reconcile=True), name="repo")
        assert (found.outcome, found.deleted) == ("complete", 1)
        assert found.repairs["records that a list left out"] == 1
        assert content(store)[gone.identifier] is None
        half = rb"<header><identifier>oai:x.org:0[1-5].*?</header>"
        provider.faults = (m.rewritten(half, b"", "ListIdentifiers"),)
        cut = harvest(store, provider.url, RunOptions(reconcile=True), name="repo")
        assert (cut.outcome, cut.deleted) == ("incomplete", 0)
        assert "still there" in cut.reason
        # Where single records cannot be had, a second list must agree with the first.
        also = provider.records.pop(20)
        provider.faults = (m.broken_verb("GetRecord"),)
        assert harvest(store, provider.url, RunOptions(reconcile=True), name="repo").deleted == 1
        assert content(store)[also.identifier] is None
    assert {i for i, c in content(store).items() if c is not None} == provider.live()


def test_an_interrupted_run_goes_on_from_its_token(store: Store) -> None:
    with m.Provider() as provider:
        provider.faults = (
            lambda q, r: m.Reply(b"", 503, {}) if "|30" in q.arguments.get("resumptionToken", "") else r,
        )
        stopped = harvest(store, provider.url, name="repo")
        assert (stopped.outcome, stopped.records + stopped.deleted) == ("incomplete", 30)
        provider.faults = ()
        asked = len(provider.requests)
        again = harvest(store, provider.url, name="repo")
        lists = [q.arguments for q in provider.requests[asked:] if q.verb == "ListRecords"]
        assert lists[0]["resumptionToken"].endswith("|30")
        assert (again.outcome, again.records + again.deleted) == ("complete", 17)
        # The mark is that of the first page, not of the page after the interruption.
    assert {i for i, c in content(store).items() if c is not None} == provider.live()


def test_a_process_killed_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL again and again; then one run to the end; the outcome is that of a clean harvest."""
    records = m.collection(300)

    def slowly(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.listing:
            time.sleep(0.02)
        return reply

    chance = random.Random(5)
    with m.Provider(records, slowly, page=5) as provider:
        command = [sys.executable, "-m", "indlet", "harvest", provider.url, "--name", "repo", "--quiet"]
        for _ in range(4):
            process = subprocess.Popen(
                [*command, *command_options(tmp_path / "killed")],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            # From the first request on, at a random moment of the harvest, of a commit, or of indexing.
            begun = len(provider.requests)
            while len(provider.requests) == begun and process.poll() is None:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 2.0))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run([*command, *command_options(tmp_path / "killed")], check=True, capture_output=True)
        subprocess.run([*command, *command_options(tmp_path / "clean")], check=True, capture_output=True)
    found = []
    for name in ("killed", "clean"):
        with store_in(tmp_path / name) as store:
            follow.catch_up(store)
            with store.read() as view:
                rows = sorted(
                    (s.identifier, s.deleted, s.sets, s.metadata, s.properties, s.raw, s.vector)
                    for s in view.changes()
                )
            with Engine.open(engines.folder(store)) as engine:
                stats = engine.stats()
        found.append((rows, stats.documents, stats.terms, stats.postings, stats.length))
    assert found[0] == found[1]
    assert len(found[0][0]) == 300


def test_a_request_to_stop_is_heeded_while_a_source_is_silent(store: Store) -> None:
    halt = threading.Event()
    patient = replace(QUICK, stall_seconds=60, timeout_seconds=60)
    with m.Provider(None, m.stall(60, 10**9)) as provider:
        begun = time.monotonic()
        timer = threading.Timer(0.5, halt.set)
        timer.start()
        (progress,) = harvest_all(
            store, Settings(harvest=patient), [Source(provider.url)], index=False, halt=halt
        )
        timer.join()
        assert time.monotonic() - begun < 30
    assert progress.outcome == "interrupted"


def test_deletions_that_a_node_has_reviewed_do_not_wait_again(store: Store, tmp_path: Path) -> None:
    cautious = replace(QUICK, withhold_records=3)
    source = Source("", name="node")
    with Node_(tmp_path / "node", Analysis()) as node:
        node.put(*texts(20))
        names = [name for name, _ in texts(20)]
        for republish in (False, True):
            source = Source(node.url, name="node", republish=republish)
            harvest_all(store, Settings(harvest=cautious), [source], index=False)
        node.delete(*names[:15])
        (progress,) = harvest_all(store, Settings(harvest=cautious), [source], index=False)
        assert (progress.deleted, progress.withheld, progress.ok) == (15, 0, True)
        assert sum(c is not None for c in content(store).values()) == 5


def test_deletions_that_wait_are_told_by_the_exit_status(tmp_path: Path) -> None:
    settings = tmp_path / "indlet.toml"
    with m.Provider([m.Rec(f"oai:x.org:{n}", f"2024-05-01T00:00:{n:02}Z") for n in range(20)]) as provider:
        settings.write_text(
            f'data = "{tmp_path / "data"}"\n[harvest]\nwithhold_records = 3\n'
            f'[[source]]\nurl = "{provider.url}"\nname = "repo"\n'
        )
        command = [sys.executable, "-m", "indlet", "harvest", "--config", str(settings)]
        assert subprocess.run(command, check=False, capture_output=True).returncode == 0
        for r in provider.records[:15]:
            r.deleted, r.datestamp = True, "2024-06-02T00:00:00Z"
        found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 3 and "indlet deletions" in found.stdout, found.stderr
