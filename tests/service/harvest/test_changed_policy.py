"""A provider that changes its analysis policy while it is harvested: every vector ends under one policy."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import uvicorn
from tests.stores import store_in

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.provider.serve import application
from indlet.service.harvest.progress import Progress
from indlet.service.pipeline import harvest_all
from indlet.settings import Analysis, Harvest, Node, Serve, Settings, Source
from indlet.store import Store
from indlet.text import Analyzer, policy_of

QUICK = Harvest(retries=2, backoff_seconds=0.01)
STEMMED, PLAIN = Analysis(), Analysis(stem=False, stop=False)
COUNT = 40


class Changing:
    """A provider over HTTP; `before` is called with the number of each ListRecords request, from 1."""

    def __init__(self, folder: Path) -> None:
        self.store = store_in(folder)
        self.folder = folder
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.before: Callable[[int], None] = lambda number: None
        self.lists = 0
        self.serve(STEMMED)

    def serve(self, analysis: Analysis) -> None:
        settings = Settings(
            data=self.folder, node=Node(base_url=self.url), analysis=analysis, serve=Serve(records_per_page=7)
        )
        self.app: Any = application(self.store, settings)

    def put(self, analysis: Analysis, numbers: range) -> None:
        """The documents of these numbers, as a crawl under this policy leaves them."""
        policy = policy_of(analysis)
        analyzer = Analyzer(policy)
        records = []
        for n in numbers:
            metadata = {"title": [f"On wing {n}"], "language": ["en"]}
            vector = analyzer.vector(f"the wings are fluttering over plate word{n}", "en")
            properties = {"policy": policy.digest}
            raw = oai_dc.write(metadata)
            records.append(Record(f"oai:x.org:{n}", metadata, vector, raw=raw, properties=properties))
        with self.store.write() as tx:
            tx.put(tx.origin("hierarchy", "h"), records)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if parse_qs(scope.get("query_string", b"").decode()).get("verb") == ["ListRecords"]:
            self.lists += 1
            self.before(self.lists)
        await self.app(scope, receive, send)

    def __enter__(self) -> Changing:
        self.server = uvicorn.Server(uvicorn.Config(self, log_level="error", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()
        self.store.close()


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Changing]:
    with Changing(tmp_path / "provider") as found:
        yield found


def harvest(store: Store, provider: Changing, index: str = "auto") -> Progress:
    url = f"{provider.url}/oai" if index == "oai_dc_tf" else provider.url
    source = Source(url, name="node", index="auto" if index == "oai_dc_tf" else index)
    (progress,) = harvest_all(store, Settings(harvest=QUICK, analysis=STEMMED), [source], index=False)
    return progress


def vectors(store: Store) -> dict[str, bytes | None]:
    with store.read() as view:
        return {s.identifier: s.vector for s in view.changes()}


def expected() -> dict[str, bytes]:
    """As one analysis by the service's own policy gives it: the source's is equal, or milder."""
    analyzer = Analyzer(policy_of(STEMMED))
    return {
        f"oai:x.org:{n}": analyzer.vector(f"the wings are fluttering over plate word{n}", "en").packed
        for n in range(COUNT)
    }


@pytest.mark.parametrize("index", ["tf_compact", "tf_basic", "tf_boolean"])
@pytest.mark.parametrize("at", [2, 4])
def test_a_run_that_meets_two_policies_starts_again(
    provider: Changing, tmp_path: Path, index: str, at: int
) -> None:
    provider.put(STEMMED, range(COUNT))

    def change(number: int) -> None:
        if number == at:
            provider.put(PLAIN, range(COUNT))
            provider.serve(PLAIN)

    provider.before = change
    with store_in(tmp_path / "service") as store:
        progress = harvest(store, provider, index)
        assert progress.outcome == "complete", progress.reason
        assert progress.repairs["runs begun again: the source changed its analysis policy"] == 1
        found = vectors(store)
        if index == "tf_boolean":
            assert {k: set(v.split()[1:]) for k, v in found.items() if v} == {
                k: set(v.split()[1:]) for k, v in expected().items()
            }
        else:
            assert found == expected()


def test_records_that_a_crawl_has_not_reached_are_taken_by_their_own_policy(
    provider: Changing, tmp_path: Path
) -> None:
    provider.put(PLAIN, range(COUNT))
    provider.serve(PLAIN)
    with store_in(tmp_path / "service") as store:
        harvest(store, provider)
        provider.serve(STEMMED)  # the settings have changed, and the crawl is half done
        provider.put(STEMMED, range(COUNT // 2))
        progress = harvest(store, provider)
        assert progress.outcome == "complete"
        assert progress.repairs["index parts of another policy than the source states"] == 1
        assert vectors(store) == expected()


def test_a_source_that_changes_its_policy_all_the_time_is_given_up(
    provider: Changing, tmp_path: Path
) -> None:
    provider.put(STEMMED, range(COUNT))
    shares = iter(range(30, 90))

    def change(number: int) -> None:
        if number % 3 == 0:
            analysis = Analysis(prune=next(shares) / 100)
            provider.put(analysis, range(COUNT))
            provider.serve(analysis)

    provider.before = change
    with store_in(tmp_path / "service") as store:
        progress = harvest(store, provider)
    assert progress.outcome == "incomplete" and "policy changed" in progress.reason


def test_every_index_part_names_the_policy_that_made_it(provider: Changing) -> None:
    from urllib.request import urlopen

    provider.put(PLAIN, range(2))
    provider.put(STEMMED, range(2, 4))
    for url in (
        f"{provider.url}/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_basic",
        f"{provider.url}/oai?verb=ListRecords&metadataPrefix=oai_dc_tf",
    ):
        with urlopen(url) as answer:
            body = answer.read().decode()
        for analysis in (PLAIN, STEMMED):
            assert body.count(f' policy="{policy_of(analysis).digest}"') == 2
