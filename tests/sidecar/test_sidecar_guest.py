"""As a guest: pace across sources, hours, licences, logins, retries, and what changes; seen at the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.sidecar.platforms import (
    ArXiv,
    EPrints,
    Kind,
    PlatformItem,
    PlatformServer,
    Response,
    dublin_core,
    items,
    page,
    pdf,
)
from tests.sidecar.test_sidecar_platforms import ORIGIN, QUICK, run, settings_for, states, terms

from indlet.service.pipeline import harvest_all
from indlet.settings import Sidecar, Source
from indlet.sidecar.links import Reason
from indlet.sidecar.pace import Hosts
from indlet.sidecar.run import fetch_documents
from indlet.sidecar.status import describe, status_of
from indlet.sidecar.visit import Visit
from indlet.sidecar.work import LONGEST_RETRY, SourceTask, SourceWork
from indlet.store import open_store


def fetch_again(server: PlatformServer, folder: Path, sidecar: Sidecar = QUICK) -> None:
    """Make everything due, and fetch."""
    settings = settings_for(server, folder, sidecar)
    with open_store(folder) as store:
        with store.write() as tx:
            tx.put_documents([one._replace(due=0) for one in states(store, server).values()])
        fetch_documents(store, settings, settings.source)


def of_documents(server: PlatformServer) -> list[float]:
    """When requests for documents came; for pages and files, not for lists of records."""
    return sorted(seen.at for seen in server.requests if "documents" in seen.headers["User-Agent"])


def test_two_sources_on_one_host_keep_its_pace_together(tmp_path: Path) -> None:
    with ArXiv(items(4, (Kind.OPEN,))) as server:
        settings = settings_for(server, tmp_path, Sidecar(delay_seconds=0.05, at_once=2))
        first = settings.source[0]
        settings = replace(settings, source=(first, replace(first, name="twin")))
        with open_store(tmp_path) as store:
            harvest_all(store, settings, index=False)
            server.together = 0  # sources are harvested at the same time
            fetch_documents(store, settings, settings.source)
            assert [status_of(store, origin).read for origin in (1, 2)] == [4, 4]
    gaps = [later - earlier for earlier, later in pairwise(of_documents(server))]
    assert len(gaps) >= 8 and min(gaps) >= 0.05
    assert server.together == 1


def test_a_crawl_delay_in_robots_txt_makes_the_pause_longer(tmp_path: Path) -> None:
    with ArXiv(items(4, (Kind.OPEN,))) as server:
        server.robots = "User-agent: *\nCrawl-delay: 0.15\n"
        run(server, tmp_path)
    fetched = sorted(seen.at for seen in server.requests if seen.path.startswith("/pdf/"))
    assert min(later - earlier for earlier, later in pairwise(fetched)) >= 0.15


def test_nothing_is_fetched_outside_of_the_hours(tmp_path: Path) -> None:
    with ArXiv(items(2, (Kind.OPEN,))) as server:
        with open_store(tmp_path) as store:
            minute = int(store.now() // 60 + 120) % 1440  # two hours from now, for an hour
        begin, end = (f"{m // 60:02d}:{m % 60:02d}" for m in (minute, (minute + 60) % 1440))
        known = run(server, tmp_path, Sidecar(delay_seconds=0.0, hours=f"{begin}-{end}"))
        assert not known
        with open_store(tmp_path) as store:
            assert "outside of the hours" in status_of(store, ORIGIN).held_up
    assert not [seen for seen in server.requests if seen.path.startswith("/pdf/")]


class Licensed(EPrints):
    """Odd items have a Creative Commons licence."""

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        licence = "http://creativecommons.org/licenses/by/4.0/" if item.number % 2 else "All rights reserved"
        return (
            super()
            .metadata(item, prefix)
            .replace("</oai_dc:dc>", f"<dc:rights>{licence}</dc:rights></oai_dc:dc>")
        )


def test_only_documents_of_accepted_licences_are_requested(tmp_path: Path) -> None:
    with Licensed(items(4, (Kind.OPEN,))) as server:
        wanted = Sidecar(delay_seconds=0.0, licences=("http://creativecommons.org/",))
        known = run(server, tmp_path, wanted)
        numbers = {number: known[server.identifier(server.items[number])] for number in server.items}
    assert [numbers[n].reason for n in (1, 2, 3, 4)] == ["", "licence", "", "licence"]
    assert {seen.path.split("/")[1] for seen in server.requests if ".pdf" in seen.path} == {"1", "3"}


class Closed(ArXiv):
    """A repository whose files want a name and a password."""

    def _answer(self, path: str, headers: Mapping[str, str]) -> Response:
        if path.startswith("/pdf/") and "Authorization" not in headers:
            return Response(b"who are you?", 401, {"WWW-Authenticate": "Basic"})
        return super()._answer(path, headers)


@pytest.mark.parametrize(("user", "state"), [("", ("none", "login")), ("ann", ("read", ""))])
def test_a_login_is_passed_only_with_credentials(tmp_path: Path, user: str, state: tuple[str, str]) -> None:
    with Closed(items(2, (Kind.OPEN,))) as server:
        settings = settings_for(server, tmp_path)
        source = replace(settings.source[0], user=user, password="x" if user else "")
        with open_store(tmp_path) as store:
            harvest_all(store, settings, [source], index=False)
            fetch_documents(store, settings, [source])
            known = states(store, server)
    assert {(one.state, one.reason) for one in known.values()} == {state}


def test_a_document_that_changed_is_read_again_by_its_digest_if_there_is_nothing_else(tmp_path: Path) -> None:
    with ArXiv(items(2, (Kind.OPEN,))) as server:
        paths = [path for path in server.routes if path.startswith("/pdf/")]
        bodies = {path: server.routes[path]().body for path in paths}
        for path in paths:  # no ETag, no Last-Modified
            server.routes[path] = lambda path=path: Response(  # type: ignore[misc]
                bodies[path], headers={"Content-Type": "application/pdf"}
            )
        run(server, tmp_path)
        first = terms(tmp_path)
        fetch_again(server, tmp_path)
        assert terms(tmp_path) == first
        bodies[paths[0]] = pdf("Another text with quokka")
        fetch_again(server, tmp_path)
    changed = terms(tmp_path)
    name = server.identifier(server.items[1])
    assert "quokka" in changed[name]
    assert {one: words for one, words in changed.items() if one != name} == {
        one: words for one, words in first.items() if one != name
    }


def test_a_document_that_fails_is_retried_with_growing_pauses(tmp_path: Path) -> None:
    with ArXiv(items(1, (Kind.OPEN,))) as server:
        server.before = lambda path: Response(b"", 500) if path.startswith("/pdf/") else None
        run(server, tmp_path)
        settings = settings_for(server, tmp_path)
        with open_store(tmp_path) as store:
            work = SourceWork(
                store,
                settings,
                SourceTask(settings.source[0], ORIGIN),
                Hosts(QUICK),
                lambda body, url: None,  # type: ignore[arg-type, return-value]
            )
            (document,) = states(store, server).values()
            pauses = []
            for _ in range(12):
                before = 1_000_000
                document = work._outcome(document, Visit(Reason.UNREACHABLE, "no answer"), before)
                pauses.append((document.due or 0) - before)
            work.close()
    assert document.state == "waiting"
    assert pauses == sorted(pauses) and len(set(pauses)) > 5
    assert pauses[-1] == LONGEST_RETRY


def test_the_desk_states_rates_and_what_is_left(tmp_path: Path) -> None:
    with ArXiv(items(6, (Kind.OPEN,))) as server:
        known = run(server, tmp_path)
        with open_store(tmp_path) as store:
            with store.write() as tx:
                waiting = [one._replace(state="waiting") for one in list(known.values())[:3]]
                tx.put_documents(waiting)
            line = describe(status_of(store, ORIGIN))
    assert line == "3 of 6 with full text; 3 waiting; 6 an hour; about 30 minutes left"


class WithLinkset(PlatformServer):
    """Landing pages that name nothing but a linkset."""

    name = "linkset"

    def metadata(self, item: PlatformItem, prefix: str) -> str:
        return dublin_core(("title", item.title), ("identifier", f"{self.root}/item/{item.number}"))

    def add(self, item: PlatformItem) -> None:
        self.file(f"/blob/{item.number}", item.body)
        links = f"</links/{item.number}>"
        self.html(
            f"/item/{item.number}",
            page(item.title),
            f'{links}; rel="linkset"; type="application/linkset+json"',
        )
        self.routes[f"/links/{item.number}"] = lambda: Response(
            json.dumps(
                {
                    "linkset": [
                        {"item": [{"href": f"{self.root}/blob/{item.number}", "type": "application/pdf"}]}
                    ]
                }
            ).encode(),
            headers={"Content-Type": "application/linkset+json"},
        )


def test_a_linkset_leads_to_the_document(tmp_path: Path) -> None:
    with WithLinkset(items(3, (Kind.OPEN,))) as server:
        known = run(server, tmp_path)
    assert {(one.state, one.way) for one in known.values()} == {("read", "landing: linkset")}


def test_new_records_come_before_those_to_be_tried_again(tmp_path: Path) -> None:
    with ArXiv(items(3, (Kind.OPEN,))) as server:
        run(server, tmp_path)
        (new,) = items(4, (Kind.OPEN,))[3:]
        server.items[new.number], server.stamps[new.number] = new, "2024-06-01T00:00:00Z"
        server.add(new)
        before = len(server.requests)
        settings = settings_for(server, tmp_path)
        with open_store(tmp_path) as store:
            harvest_all(store, settings, index=False)
            with store.write() as tx:
                tx.put_documents([one._replace(due=0) for one in states(store, server).values()])
            fetch_documents(store, settings, [Source(server.url, name=server.name, fulltext="fetch")])
    fetched = [seen.path for seen in server.requests[before:] if seen.path.startswith("/pdf/")]
    assert len(fetched) == 4
    assert fetched[0] == next(path for path in server.routes if path.endswith("4") and "/pdf/" in path)
