"""A web server, a store beside it, and what harvesters of several credentials see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.provider.site.web_servers import Web, available, web_server

from indlet.provider.pipeline import crawl
from indlet.provider.summary import Summary
from indlet.provider.workers import Workers
from indlet.settings import Crawl, Settings, Site
from indlet.store import Store

Make = Callable[..., "Bench"]


class Bench:
    """A web server, its site in the settings, and the store that it is crawled into."""

    def __init__(self, web: Web, folder: Path, workers: Workers, **site: Any) -> None:
        self.web = web
        self.store = Store.open(folder / "data")
        self._workers = workers
        self.settings = Settings(
            data=folder / "data",
            crawl=Crawl(settle_seconds=0.0),
            site=(Site(str(web.root), web.url, name="site", **site),),
        )

    def crawl(self, **options: Any) -> Summary:
        (summary,) = crawl(self.store, self.settings, workers=self._workers, **options)
        return summary

    def listed(self, origin: str = "site") -> dict[str, dict[str, Any]]:
        """The live records of an origin by path, with all that is known of them."""
        with self.store.read() as view:
            found = view.origin("hierarchy", origin)
            assert found is not None
            return {
                s.identifier.removeprefix(f"{self.web.url}/"): {
                    "datestamp": s.datestamp, "sets": s.sets.split(), "seq": s.seq, "vector": s.vector,
                    **s.record.properties, "metadata": s.record.metadata,
                }
                for s in view.page(100_000, origins=[found.id])
                if not s.deleted
            }  # fmt: skip


@pytest.fixture(params=["apache-event", "apache-prefork", "nginx"])
def web(request: pytest.FixtureRequest) -> Iterator[Web]:
    yield from _started(request.param)


@pytest.fixture
def apache() -> Iterator[Web]:
    yield from _started("apache-event")


def _started(kind: str) -> Iterator[Web]:
    if not available(kind):
        pytest.skip(f"no {kind.partition('-')[0]} here: apt-get install apache2 nginx-light")
    with web_server(kind) as found:
        yield found


@pytest.fixture
def make(tmp_path: Path, workers: Workers) -> Iterator[Make]:
    with ExitStack() as stack:

        def made(web: Web, **site: Any) -> Bench:
            bench = Bench(web, tmp_path, workers, **site)
            stack.callback(bench.store.close)
            return bench

        yield made
