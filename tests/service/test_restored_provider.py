"""A provider that is restored, or shows a service other records: it comes to hold what is there for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.store.contract.given import Clock
from tests.stores import on_postgresql, store_in

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.oai import answers
from indlet.oai.read import read
from indlet.provider.serve import application
from indlet.service.pipeline import harvest_all
from indlet.settings import Access, Harvest, Hierarchy, Node, Settings, Source
from indlet.store import Store, back_up, open_store, restore

RECORDS = range(30)


@contextmanager
def served(store: Store, settings: Settings, clock: Callable[[], float]) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", settings.node.port)) as place:
        app = application(store, settings, clock=clock)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join()


def put(store: Store, titles: dict[int, str], hierarchy: str = "papers") -> None:
    with store.write() as tx:
        made = [
            Record(f"oai:x.org:{n}", metadata := {"title": [title]}, sets=("a",), raw=oai_dc.write(metadata))
            for n, title in titles.items()
        ]
        tx.put(tx.origin("hierarchy", hierarchy), made)


def held(store: Store) -> dict[str, str]:
    with store.read() as view:
        return {s.identifier: s.record.metadata["title"][0] for s in view.changes() if not s.deleted}


@pytest.mark.skipif(on_postgresql(), reason="PostgreSQL is restored by its own tools")
@pytest.mark.parametrize("set_spec", ["", "a"])
def test_what_was_harvested_after_the_backup_and_is_gone_goes_at_services(
    tmp_path: Path, set_spec: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    settings = Settings(node=Node(admin_email=("a@x.org",), port=port), harvest=Harvest(retries=0))
    source = Source(f"{settings.base_url()}/oai", name="s", set=set_spec)
    clock = Clock()
    provider, service = open_store(tmp_path / "provider", clock=clock), store_in(tmp_path / "service")
    put(provider, dict.fromkeys(RECORDS, "as backed up"))
    back_up(provider, tmp_path / "backup")
    clock.now += 3600
    put(provider, {1: "changed since", 99: "added since"})
    clock.now += 3600

    def harvest() -> None:
        with served(provider, settings, clock):
            (done,) = harvest_all(service, settings, [source])
        assert done.outcome == "complete", done.reason

    harvest()
    assert held(service) == held(provider) and len(held(service)) == 31
    provider.close()
    restore(tmp_path / "backup", tmp_path / "restored")
    clock.now += 3600
    with open_store(tmp_path / "restored", clock=clock) as provider, service:
        harvest()
        assert held(service) == held(provider) == {f"oai:x.org:{n}": "as backed up" for n in RECORDS}
        with service.read() as view:
            (origin,) = view.origins("source")
        assert origin.state["store"] == provider.epoch() and not origin.state.get("restored")


def test_the_store_is_named_in_identify_and_keeps_its_name(tmp_path: Path) -> None:
    settings = Settings(node=Node(admin_email=("a@x.org",)))
    names = set[str]()
    for _ in range(2):
        with store_in(tmp_path) as store:
            client = TestClient(application(store, settings), base_url="http://localhost")
            page = read(client.get("/oai?verb=Identify").content)
            names.add(answers.identity(page).store)
    assert len(names) == 1 and len(names.pop()) == 33


def test_other_credentials_show_other_records(tmp_path: Path) -> None:
    """A service that is given a token gets what that opens, though it is older; without it, that goes."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    hidden = Hierarchy("/nowhere", "hidden", access=Access(tokens=("sesame",)))
    settings = Settings(
        node=Node(admin_email=("a@x.org",), port=port), harvest=Harvest(retries=0), hierarchy=(hidden,)
    )
    clock = Clock()
    with (
        open_store(tmp_path / "provider", clock=clock) as provider,
        store_in(tmp_path / "service") as service,
    ):
        put(provider, dict.fromkeys(RECORDS, "open"))
        put(provider, dict.fromkeys(range(100, 110), "hidden"), "hidden")
        clock.now += 3600
        for token, size in (("", 30), ("sesame", 40), ("sesame", 40), ("", 30)):
            clock.now += 3600
            source = Source(f"{settings.base_url()}/oai", name="s", token=token)
            with served(provider, settings, clock):
                (done,) = harvest_all(service, settings, [source])
            assert done.outcome == "complete", done.reason
            assert len(held(service)) == size
