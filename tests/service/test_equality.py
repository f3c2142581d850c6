"""The law of equality: what is harvested equals what one would have built from the union of the content.

Providers crawl real files and serve over real HTTP; a service harvests them, in any format, at any time, with
restarts in between. Beside it, the same files are crawled straight into one central index under the service's
own policy. After every harvest the two have the same terms, df, cf and lengths, and every model gives scores
that are equal to the last bit.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.stores import store_in

from indlet.model import Stored
from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.provider.workers import Workers
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.searcher import SegmentSearcher
from indlet.service.index.expression import Or, Term
from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS, model
from indlet.settings import Analysis, Crawl, Harvest, Hierarchy, Node, Settings
from indlet.store import Store
from indlet.text import Analyzer, Policy, policy_of

SERVICE = Settings(
    harvest=Harvest(retries=0, timeout_seconds=20.0), crawl=Crawl(settle_seconds=0.0, workers=1)
)
# The second provider keeps stop words and does not stem: the service brings its terms to its own policy.
POLICIES = (Analysis(), Analysis(stem=False, stop=False), Analysis())
FORMATS = ("tf_compact", "tf_basic", "oai_dc_tf", "auto")
WORDS = [
    "flow", "flows", "flowing", "wing", "wings", "the", "of", "and", "boundary", "layer", "layers", "heat",
    "heated", "heating", "waves", "wave", "shock", "can", "cannot", "strömung", "情報検索", "naïve", "x",
]  # fmt: skip


class Door:
    """A web address behind which the application can be changed."""

    def __init__(self) -> None:
        self.app: Any = None
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(self, log_level="error", lifespan="off", ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class Federation:
    """Providers, a service that harvests them, and the centre that has all their content."""

    def __init__(self, folder: Path, doors: list[Door], workers: dict[str, Workers]) -> None:
        self.folder = folder
        self.doors = doors
        self.workers = workers
        self.stack = contextlib.ExitStack()
        self.formats = ["auto"] * len(doors)
        self.providers: list[tuple[Store, Settings]] = []
        self.centres: list[tuple[Store, Settings]] = []
        self.seen: list[list[Stored]] = [[] for _ in doors]
        for number, door in enumerate(doors):
            files = folder / f"files{number}"
            files.mkdir()
            (files / "first.txt").write_text("flow over a wing")
            hierarchy = Hierarchy(str(files), name=f"h{number}")
            node = Node(repository=f"p{number}.example", base_url=door.url)
            own = replace(SERVICE, node=node, hierarchy=(hierarchy,), analysis=POLICIES[number])
            self.providers.append((self._open(f"provider{number}"), own))
            self.centres.append((self._open(f"centre{number}"), replace(own, analysis=SERVICE.analysis)))
            door.app = application(self.providers[number][0], own)
        self.service = Library(self._open("service"), SERVICE)

    def _open(self, name: str) -> Store:
        return self.stack.enter_context(store_in(self.folder / name))

    def write(self, number: int, name: str, kind: str, words: list[str]) -> None:
        text = " ".join(words)
        page = f"<html><title>{name}</title><body><p>{text}</p></body></html>" if kind == "html" else text
        (self.folder / f"files{number}" / f"{name}.{kind}").write_text(page, "utf-8")

    def remove(self, number: int, name: str) -> None:
        for file in (self.folder / f"files{number}").glob(f"{name}.*"):
            file.unlink()

    def crawl(self, number: int) -> None:
        for store, own in (self.providers[number], self.centres[number]):
            (summary,) = crawl(
                store, own, workers=self.workers[policy_of(own.analysis).digest], accept_empty=True
            )
            assert summary.outcome == "complete", summary

    def harvest(self, number: int) -> None:
        path, wanted = "", self.formats[number]
        if wanted == "oai_dc_tf":
            path, wanted = "/oai", "auto"
        self.service.harvest(f"{self.doors[number].url}{path}", name=f"p{number}", index=wanted)
        with self.centres[number][0].read() as view:
            self.seen[number] = [stored for stored in view.changes() if not stored.deleted]

    def restart(self) -> None:
        self.service.close()
        self.service = Library(self._open("service"), SERVICE)

    def check(self) -> None:
        """Both sides have the same statistics, and the same scores to the last bit."""
        analyzer = Analyzer(Policy())
        union = [
            stored._replace(id=number, seq=number)
            for number, stored in enumerate((stored for seen in self.seen for stored in seen), 1)
        ]
        shutil.rmtree(self.folder / "central", ignore_errors=True)
        with Engine.open(self.folder / "central", writable=True) as engine:
            engine.apply(union, analyzer)
            engine.commit()
            centre = engine.searcher()
            here = self.service.searcher()
            assert here.collection == centre.collection
            assert list(here.vocabulary()) == list(centre.vocabulary())
            names = {stored.id: stored.identifier for stored in union}
            asked = Or(tuple(Term(term) for word in WORDS for term in analyzer.term(word, "en")))
            for kind in MODELS:
                mine = self._named(here.search(asked, model(kind), 1000, collapse=False).hits)
                theirs = centre.search(asked, model(kind), 1000, collapse=False).hits
                assert mine == [(names[hit.id], hit.score.hex()) for hit in theirs], kind
            assert self.service.search("wing").notes == ()  # nothing is amiss, and no other policy was used
            assert isinstance(here, SegmentSearcher)
            assert here.fingerprint() == centre.fingerprint()

    def _named(self, hits: Any) -> list[tuple[str, str]]:
        with self.service.store.read() as view:
            records = view.by_id([hit.id for hit in hits])
        return [(records[hit.id].identifier, hit.score.hex()) for hit in hits]

    def close(self) -> None:
        self.service.close()
        self.stack.close()


@pytest.fixture(scope="module")
def doors() -> Iterator[list[Door]]:
    opened = [Door() for _ in POLICIES]
    yield opened
    for door in opened:
        door.close()


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[str, Workers]]:
    """Extracting processes that all crawls share, one for each policy."""
    policies = {policy_of(analysis) for analysis in POLICIES}
    with contextlib.ExitStack() as stack:
        yield {
            policy.digest: stack.enter_context(Workers(1, SERVICE.crawl.limits, policy))
            for policy in policies
        }


_provider = st.integers(0, len(POLICIES) - 1)
_name = st.sampled_from(["a", "b", "c", "d"])
_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)
_event = st.one_of(
    st.tuples(st.just("write"), _provider, _name, st.sampled_from(["txt", "html"]), _words),
    st.tuples(st.just("write"), _provider, _name, st.just("txt"), _words),
    st.tuples(st.just("remove"), _provider, _name),
    st.tuples(st.just("crawl"), _provider),
    st.tuples(st.just("harvest"), _provider),
    st.tuples(st.just("format"), _provider, st.sampled_from(FORMATS)),
    st.tuples(st.just("restart")),
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(_event, max_size=14))
@example(
    [
        ("write", 1, "a", "txt", ["the", "heated", "wings", "can"]),
        ("write", 0, "a", "txt", ["flows", "flow"]),
        ("crawl", 0), ("crawl", 1), ("harvest", 1), ("harvest", 0),
        ("write", 0, "a", "html", ["shock", "waves"]),
        ("crawl", 0), ("format", 0, "oai_dc_tf"), ("harvest", 0), ("restart",),
        ("remove", 0, "a"), ("remove", 1, "a"), ("write", 1, "b", "txt", ["情報検索", "strömung", "of"]),
        ("crawl", 1), ("format", 1, "tf_basic"), ("harvest", 1), ("crawl", 0), ("harvest", 0),
    ]
)  # fmt: skip
def test_the_harvested_index_equals_the_central_one(
    tmp_path_factory: pytest.TempPathFactory,
    doors: list[Door],
    workers: dict[str, Workers],
    events: list[tuple[Any, ...]],
) -> None:
    federation = Federation(tmp_path_factory.mktemp("federation"), doors, workers)
    try:
        for name, *arguments in events:
            if name == "format":
                federation.formats[arguments[0]] = arguments[1]
                continue
            getattr(federation, name)(*arguments)
            if name in ("harvest", "restart"):
                federation.check()
        for number in range(len(doors)):
            federation.crawl(number)
            federation.harvest(number)
        federation.check()
    finally:
        federation.close()
