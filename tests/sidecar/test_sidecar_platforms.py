"""Eight platforms: the right file for each record that has one, nothing from a landing page, as a guest."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tests.sidecar.platforms import (
    PLATFORMS,
    ArXiv,
    EPrints,
    Kind,
    PlatformItem,
    PlatformServer,
    Response,
    dublin_core,
    items,
    repository,
)

from indlet.net.settings import Harvest
from indlet.provider.pipeline import crawl
from indlet.service.harvest.run import RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Hierarchy, Settings, Sidecar, Source
from indlet.sidecar.run import fetch_documents
from indlet.sidecar.status import SourceStatus, status_of
from indlet.store import DocumentState, Store, open_store

QUICK = Sidecar(delay_seconds=0.0)
FAST = Harvest(retries=0, backoff_seconds=0.01, from_email="library@example.org")
ORIGIN = 1


def settings_for(server: PlatformServer, tmp_path: Path, sidecar: Sidecar = QUICK) -> Settings:
    source = Source(server.url, name=server.name, fulltext="fetch")
    return Settings(data=tmp_path, harvest=FAST, sidecar=sidecar, source=(source,))


def run(server: PlatformServer, tmp_path: Path, sidecar: Sidecar = QUICK) -> dict[str, DocumentState]:
    """Harvest and fetch; what is known of each record's document."""
    settings = settings_for(server, tmp_path, sidecar)
    with open_store(tmp_path) as store:
        (done,) = harvest_all(store, settings, index=False)
        assert done.outcome == "complete"
        fetch_documents(store, settings, settings.source)
        return states(store, server)


def states(store: Store, server: PlatformServer) -> dict[str, DocumentState]:
    with store.read() as view:
        return view.document_states(ORIGIN, [server.identifier(item) for item in server.items.values()])


def terms(tmp_path: Path) -> dict[str, dict[str, int]]:
    """The terms of each record that has an index part."""
    with open_store(tmp_path) as store, store.read() as view:
        found = [stored.record for stored in view.changes()]
    return {record.identifier: record.vector.frequencies() for record in found if record.vector}


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
def test_the_right_file_for_each_record_and_none_from_a_page(
    platform: type[PlatformServer], tmp_path: Path
) -> None:
    with repository(platform) as server:
        known = run(server, tmp_path)
    found = terms(tmp_path)
    wanted = {server.identifier(item): item for item in server.items.values() if item.kind.has_document}
    right = [name for name, item in wanted.items() if found.get(name, {}).get(item.word) == 2]
    missed = {name: known[name][2:6] for name in wanted.keys() - set(right)}
    assert len(right) >= 0.98 * len(wanted), missed
    assert not found.keys() - wanted.keys()
    assert not [name for name, words in found.items() if "landingpageword" in words]
    assert all(document.state != "waiting" for document in known.values())


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
def test_what_bars_the_way_is_recognised(platform: type[PlatformServer], tmp_path: Path) -> None:
    with repository(platform) as server:
        known = run(server, tmp_path)
    reasons = {item.kind: known[server.identifier(item)].reason for item in server.items.values()}
    assert reasons[Kind.EMBARGO] in ("embargo", "login"), reasons
    assert reasons[Kind.REQUEST] in ("request-a-copy", "login"), reasons
    assert reasons[Kind.LOGIN] in ("login", "restricted"), reasons
    assert reasons[Kind.DISGUISED] == "html-for-document", reasons
    assert reasons[Kind.NO_FILE] in ("landing-page", "gone", "restricted"), reasons


def test_the_type_of_the_response_tells_a_document_where_its_address_does_not(tmp_path: Path) -> None:
    class Opaque(EPrints):
        def metadata(self, item: PlatformItem, prefix: str) -> str:
            return dublin_core(("title", item.title), ("identifier", f"{self.root}/get/{item.number}"))

        def add(self, item: PlatformItem) -> None:
            self.file(f"/get/{item.number}", item.body)

    with Opaque(items(3, (Kind.OPEN,))) as server:
        known = run(server, tmp_path)
    assert {(one.state, one.way) for one in known.values()} == {("read", "link")}
    assert [seen.path for seen in server.requests if "/get/" in seen.path] == ["/get/1", "/get/2", "/get/3"]


def test_several_files_are_parts_of_one_record(tmp_path: Path) -> None:
    with repository(PLATFORMS[0]) as server:
        known = run(server, tmp_path)
        item = next(item for item in server.items.values() if item.kind is Kind.TWO_FILES)
    words = terms(tmp_path)[server.identifier(item)]
    assert words[item.word] == 2 and words[f"gnu{item.number:05d}z"] == 1
    assert known[server.identifier(item)].files.index("thesis.pdf") < known[
        server.identifier(item)
    ].files.index("appendix.pdf")


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
def test_a_guest_keeps_the_pace(platform: type[PlatformServer], tmp_path: Path) -> None:
    with platform(items(4)) as server:
        run(server, tmp_path, Sidecar(delay_seconds=0.03))
    fetched = [seen for seen in server.requests if "documents" in seen.headers["User-Agent"]]
    gaps = [later.at - earlier.at for earlier, later in pairwise(fetched)]
    assert min(gaps) >= 0.03
    assert server.together == 1
    assert "mailto:library@example.org" in fetched[-1].headers["User-Agent"]
    assert [seen.path for seen in fetched].count("/robots.txt") == 1
    assert not [seen for seen in fetched if seen.path.startswith("/search")]


def test_robots_txt_is_obeyed(tmp_path: Path) -> None:
    with ArXiv(items(3)) as server:
        server.robots = "User-agent: *\nDisallow: /pdf/\n"
        known = run(server, tmp_path)
    assert {document.reason for document in known.values()} == {"robots"}
    assert not [seen for seen in server.requests if seen.path.startswith("/pdf/")]


def test_a_host_that_asks_for_time_gets_it(tmp_path: Path) -> None:
    with ArXiv(items(6, (Kind.OPEN,))) as server:
        answered: list[str] = []

        def later(path: str) -> Response | None:
            if path.startswith("/pdf/"):
                answered.append(path)
                if len(answered) > 2:
                    return Response(b"", 503, {"Retry-After": "7200"})
            return None

        server.before = later
        known = run(server, tmp_path)
    assert len(answered) == 3
    by_state = [document.state for document in known.values()]
    assert (by_state.count("read"), by_state.count("waiting")) == (2, 4)


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    with repository(EPrints, 9) as server:
        settings = settings_for(server, tmp_path)
        run(server, tmp_path)
        first = terms(tmp_path)
        item = next(item for item in server.items.values() if item.kind is Kind.OPEN)
        before = len(server.requests)
        with open_store(tmp_path) as store:
            fetch_documents(store, settings, settings.source)
        assert len(server.requests) == before
        server.stamps[item.number] = "2024-05-20T00:00:00Z"
        server.items[item.number] = item
        with open_store(tmp_path) as store, store.write() as tx:
            documents = states(store, server)
            tx.put_documents([documents[server.identifier(item)]._replace(due=0)])
        with open_store(tmp_path) as store:
            fetch_documents(store, settings, settings.source)
        assert [seen.status for seen in server.requests[before:] if ".pdf" in seen.path] == [304]
    assert terms(tmp_path) == first


def test_a_document_that_disappeared_leaves_the_metadata(tmp_path: Path) -> None:
    with repository(EPrints, 9) as server:
        settings = settings_for(server, tmp_path)
        known = run(server, tmp_path)
        name = next(server.identifier(item) for item in server.items.values() if item.kind is Kind.OPEN)
        path = next(path for path in server.routes if path.startswith(f"/{name.rpartition(':')[2]}/1/"))
        del server.routes[path]
        with open_store(tmp_path) as store:
            with store.write() as tx:
                tx.put_documents([known[name]._replace(due=0)])
            fetch_documents(store, settings, settings.source)
            gone = states(store, server)[name]
    assert (gone.state, gone.reason) == ("none", "gone")
    assert name not in terms(tmp_path)


def test_a_harvest_leaves_documents_as_they_are(tmp_path: Path) -> None:
    with repository(EPrints, 9) as server:
        settings = settings_for(server, tmp_path)
        run(server, tmp_path)
        before = terms(tmp_path)
        with open_store(tmp_path) as store:
            (done,) = harvest_all(store, settings, options=RunOptions(full=True), index=False)
        assert (done.outcome, done.changed) == ("complete", 0)
    assert terms(tmp_path) == before


def test_automatic_full_text_goes_on_only_if_a_sample_succeeds(tmp_path: Path) -> None:
    def status(server: PlatformServer, folder: Path) -> SourceStatus:
        settings = settings_for(server, folder)
        source = Source(server.url, name=server.name, fulltext="auto")
        with open_store(folder) as store:
            harvest_all(store, settings, [source], index=False)
            fetch_documents(store, settings, [source])
            return status_of(store, ORIGIN)

    with ArXiv(items(30, (Kind.OPEN,))) as server:
        good = status(server, tmp_path / "good")
    assert (good.read, good.sample["found"]) == (30, 10)
    with ArXiv(items(30, (Kind.NO_FILE,), open_share=1)) as server:
        bad = status(server, tmp_path / "bad")
    assert (bad.read, bad.records, bad.sample["found"]) == (0, 10, 0)
    assert "0 of 10" in bad.held_up


def test_a_sidecar_and_a_provider_make_the_same_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    with EPrints(items(5, (Kind.OPEN,))) as server:
        for item in server.items.values():
            (folder / f"Paper {item.number}.pdf").write_bytes(item.body)
        run(server, tmp_path / "sidecar")
        names = {server.identifier(item): item.number for item in server.items.values()}
    with open_store(tmp_path / "provider") as store:
        settings = Settings(data=tmp_path / "provider", hierarchy=(Hierarchy(str(folder), name="f"),))
        crawl(store, settings)
        with store.read() as view:
            provided = {stored.record.metadata["identifier"][0][-5]: stored for stored in view.changes()}
    with open_store(tmp_path / "sidecar") as store, store.read() as view:
        fetched = {str(names[stored.identifier]): stored for stored in view.changes()}
    assert len(fetched) == 5
    for number, stored in fetched.items():
        other = provided[number]
        assert (stored.vector, stored.length, stored.language) == (other.vector, other.length, other.language)
