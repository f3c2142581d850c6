"""Records are addressed by source and identifier: two of one identifier are never taken for each other."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.model import Record
from indlet.provider.identity import identified
from indlet.settings import Settings
from indlet.settings.file import from_mapping
from indlet.store import Store
from indlet.text import Analyzer

NAME = "oai:localhost.localdomain:papers/report1"


def put(store: Store, source: str, identifier: str, title: str, *, resource: str = "") -> None:
    vector = Analyzer().vector(f"{title} gale")
    with store.write() as tx:
        origin = tx.origin("source", source)
        tx.put(origin, [Record(identifier, {"title": [title]}, vector, resource=resource)])


def two(empty: tuple[Store, TestClient], **more: str) -> TestClient:
    store, _ = empty
    put(store, "North", NAME, "Gales of the north", **more)
    put(store, "South", NAME, "Gales of the south", **more)
    put(store, "South", "oai:x:alone", "A gale alone")
    return make_client(store, settings_for(store.local_folder))


def test_a_click_opens_the_record_that_was_clicked(empty: tuple[Store, TestClient]) -> None:
    client = two(empty)
    page = client.get("/?q=north").text
    assert f'href="/record/{NAME}?source=North"' in page
    for source in ("North", "South"):
        shown = client.get(f"/record/{NAME}?source={source}")
        assert f"<h1>Gales of the {source.lower()}</h1>" in shown.text
        assert f"<http://127.0.0.1:8080/record/{NAME}?source={source}>" in shown.headers["link"]
        export = client.get(f"/export/json?id={NAME}&source={source}").json()
        assert export["metadata"]["title"] == [f"Gales of the {source.lower()}"]
        told = client.get(f"/explain?q=gale&id={NAME}&via={source}").text
        assert f"Gales of the {source.lower()}" in told
        found = client.get(f"/api/record?identifier={NAME}&source={source}").json()
        assert found["metadata"]["title"] == [f"Gales of the {source.lower()}"]
        by_unapi = client.get("/unapi", params={"id": f"/record/{NAME}?source={source}", "format": "json"})
        assert by_unapi.json()["metadata"]["title"] == [f"Gales of the {source.lower()}"]


def test_an_address_without_a_source_works_where_one_record_is_meant(
    empty: tuple[Store, TestClient],
) -> None:
    client = two(empty)
    assert "A gale alone" in client.get("/record/oai:x:alone").text
    chosen = client.get(f"/record/{NAME}")
    assert chosen.status_code == 300
    assert f'href="/record/{NAME}?source=North"' in chosen.text
    assert f'href="/record/{NAME}?source=South"' in chosen.text
    assert client.get(f"/export/json?id={NAME}").status_code == 300
    assert client.get("/unapi", params={"id": NAME, "format": "json"}).status_code == 409
    refused = client.get(f"/api/record?identifier={NAME}")
    assert refused.status_code == 409 and sorted(refused.json()["sources"]) == ["North", "South"]
    # A source that was called otherwise when the address was noted.
    moved = client.get("/record/oai:x:alone?source=Old+name")
    assert moved.status_code == 303 and moved.headers["location"] == "/record/oai:x:alone?source=South"


def test_copies_of_one_resource_need_no_choice(empty: tuple[Store, TestClient]) -> None:
    client = two(empty, resource="http://example.org/report1")
    assert client.get(f"/record/{NAME}").status_code == 200
    assert client.get(f"/api/record?identifier={NAME}").status_code == 200


def test_feeds_tell_both_apart(empty: tuple[Store, TestClient]) -> None:
    client = two(empty)
    atom, rss = client.get("/feed.atom").text, client.get("/feed.rss").text
    for source in ("North", "South"):
        address = f"http://127.0.0.1:8080/record/{NAME}?source={source}"
        assert f"<id>{address}</id>" in atom
        assert f'<guid isPermaLink="true">{address}</guid>' in rss


def test_a_deleted_record_is_told_apart_from_an_unknown_one(empty: tuple[Store, TestClient]) -> None:
    client = two(empty)
    store, _ = empty
    with store.write() as tx:
        tx.delete(tx.origin("source", "North"), [NAME])
    # Its namesake is alive: an address without a source means that one now.
    assert "Gales of the south" in client.get(f"/record/{NAME}").text
    gone = client.get(f"/record/{NAME}?source=North")
    assert gone.status_code == 410 and "deleted by its source" in gone.text
    unknown = client.get("/export/json?id=oai:x:nobody")
    assert unknown.status_code == 404 and "deleted" not in unknown.text
    format_ = client.get("/export/UNKNOWN?id=oai:x:alone")
    assert format_.status_code == 404
    assert "deleted" not in format_.text and "no export format UNKNOWN" in format_.text


def test_the_operator_is_told_of_shared_identifiers(empty: tuple[Store, TestClient]) -> None:
    two(empty)
    store, _ = empty
    with store.read() as view:
        (shared,) = view.shared_identifiers()
        names = {origin.id: origin.name for origin in view.origins()}
    assert (names[shared.first], names[shared.second]) == ("North", "South")
    assert (shared.identifiers, shared.example) == (1, NAME)


def test_a_node_without_a_name_has_one_of_its_own(tmp_path: Path) -> None:
    names = []
    for folder in ("one", "two"):
        with Store.open(tmp_path / folder) as store:
            names.append(identified(store, Settings()).node.repository)
        with Store.open(tmp_path / folder) as store:  # and keeps it
            assert identified(store, Settings()).node.repository == names[-1]
            named = from_mapping({"node": {"base_url": "https://library.example.org"}})
            assert identified(store, named) is named
    assert names[0] != names[1]


def test_a_store_that_was_crawled_before_keeps_its_identifiers(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data") as store:
        with store.write() as tx:
            tx.origin("hierarchy", "papers")
        assert identified(store, Settings()).node.repository == "localhost.localdomain"
