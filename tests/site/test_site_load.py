"""How often a web server is asked on behalf of requesters, and who may make it busy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
from lxml import etree
from tests.site.conftest import OAI, Bench, Make
from tests.site.web_servers import Web, available, web_server

from indlet.errors import HierarchyError
from indlet.provider.serve.http import RequestSlots
from indlet.settings import Serve
from indlet.site.visibility import MOST_ASKED, AskingSlots

GUARDED = 40
MADE_UP = {"Authorization": "Basic bWFkZTp1cA=="}


@contextmanager
def nginx_with_staff(guarded: int) -> Iterator[Web]:
    """A server with two public files and some that need a password."""
    if not available("nginx"):
        pytest.skip("no nginx here: apt-get install nginx-light")
    with web_server("nginx") as web:
        web.write("a.html")
        web.write("b.html")
        for number in range(guarded):
            web.write(f"staff/{number}.html", f"<p>{number}</p>", at=1_500_000_100 + number)
        web.extra = (
            f'access_log {web.run}/access.log;\nlocation /staff/ {{ auth_basic "x"; '
            f"auth_basic_user_file {web.passwords}; }}\n"
        )
        web.start()
        yield web


@pytest.fixture
def bench(make: Make) -> Iterator[Bench]:
    with nginx_with_staff(GUARDED) as web:
        bench = make(web, remember_seconds=0.0)
        bench.crawl()
        yield bench


def asked(web: Web) -> int:
    """How many requests the server got since the last time."""
    log = web.run / "access.log"
    count = len(log.read_text().splitlines())
    log.write_text("")
    return count


def test_made_up_credentials_cost_one_page_and_identify_costs_nothing(bench: Bench) -> None:
    client = bench.serve(identifiers_per_page=10)
    asked(bench.web)
    client.http.get("/oai?verb=Identify", headers=MADE_UP)
    client.http.get("/oai?verb=ListMetadataFormats", headers=MADE_UP)
    assert asked(bench.web) == 0
    record = f"identifier={bench.web.url}/staff/1.html&metadataPrefix=oai_dc"
    client.http.get(f"/oai?verb=GetRecord&{record}", headers=MADE_UP)
    assert asked(bench.web) == 1
    client.http.get("/oai?verb=ListIdentifiers&metadataPrefix=oai_dc")
    assert asked(bench.web) == 0, "a stranger gets what the crawl got"
    next(client.pages(user="ann"))
    # The page and the record that shows that more follow, as ann and as a stranger.
    assert asked(bench.web) <= 2 * 11


def test_deletions_are_asked_for_once_and_for_strangers_never(bench: Bench) -> None:
    for number in range(GUARDED):
        (bench.web.root / f"staff/{number}.html").unlink()
    bench.crawl(accept_empty=True)
    client = bench.serve()
    asked(bench.web)
    assert client.http.get("/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").text.count("<header>") == 2
    assert asked(bench.web) == 0
    assert client.harvested() == {"/a.html", "/b.html"}
    assert asked(bench.web) == GUARDED, "an address may be let in where strangers are not"
    assert len(client.harvested(user="ann")) == GUARDED + 2


def test_a_response_ends_before_it_has_asked_for_too_much(make: Make) -> None:
    with nginx_with_staff(MOST_ASKED + 100) as web:
        bench = make(web, remember_seconds=0.0, extract=False)
        bench.crawl()
        client = bench.serve(identifiers_per_page=500)
        found, given = list[str](), {"metadataPrefix": "oai_dc"}
        while given:
            asked(web)
            page = client.http.get("/oai", params={"verb": "ListIdentifiers", **given}, headers=MADE_UP)
            assert asked(web) < MOST_ASKED + 600
            root = etree.fromstring(page.content)
            found += [one.text or "" for one in root.iter(f"{OAI}identifier")]
            token = root.findtext(f".//{OAI}resumptionToken")
            given = {"resumptionToken": token} if token else {}
        # A list is never empty: the second page repeats a record.
        assert found == [f"{web.url}/a.html", f"{web.url}/b.html", f"{web.url}/a.html"]


def test_one_client_cannot_take_the_turns_of_others() -> None:
    slots = AskingSlots(wait_seconds=0.05)
    with slots.take("198.51.100.7"):
        with pytest.raises(HierarchyError, match="retry later"), slots.take("198.51.100.7"):
            pass
        with slots.take("198.51.100.8"):
            pass
    with slots.take("198.51.100.7"):
        pass


async def test_one_client_cannot_take_all_slots_of_a_node() -> None:
    slots, begun, end = RequestSlots(Serve(requests_at_once=4)), threading.Semaphore(0), threading.Event()

    def slow() -> str:
        begun.release()
        end.wait(10)
        return "done"

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(slots.serve, slow, "198.51.100.7")
        while begun._value < 2:
            await anyio.sleep(0.001)
        refused = await slots.serve(lambda: "done", "198.51.100.7")
        assert getattr(refused, "status_code", 0) == 503
        assert await slots.serve(lambda: "done", "198.51.100.8") == "done"
        end.set()
    assert await slots.serve(lambda: "done", "198.51.100.7") == "done"
