"""What a stranger may not see counts nowhere: OAI lists, feeds, metrics and health are to the byte those of a
node that never held it. The API's answers are compared in tests/service/api/test_hidden_records.py."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.model import Failure, Record, TermVector
from indlet.settings import Access, Hierarchy, Serve, Settings
from indlet.store import Store

OPEN = Hierarchy(root="/nowhere", name="open", access=Access(content="private"))
VAULT = Hierarchy(root="/elsewhere", name="vault", access=Access(tokens=("key",), content="private"))
LISTS = ("ListRecords", "ListIdentifiers")

change: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "where": st.sampled_from(["open", "vault"]),
        "number": st.integers(0, 4),
        "title": st.sampled_from(["Wind", "Wing", "Zeppelin"]),
        "set": st.sampled_from(["", "a", "a:b"]),
        "what": st.sampled_from(["put", "put", "put", "delete", "fail"]),
    }
)


def settings_with(folder: Path, *, hidden: bool) -> Settings:
    trees = (OPEN, VAULT) if hidden else (OPEN,)
    return replace(
        settings_for(folder), hierarchy=trees, serve=Serve(records_per_page=2, identifiers_per_page=2)
    )


@contextmanager
def node(folder: Path, changes: list[dict[str, Any]], *, hidden: bool) -> Iterator[TestClient]:
    with Store.open(folder, clock=lambda: 1_700_000_000.0) as store:
        for tree in (OPEN, VAULT) if hidden else (OPEN,):
            with store.write() as tx:
                tx.origin("hierarchy", tree.name, {"access": {"tokens": len(tree.access.tokens)}})
        for told in changes:
            if hidden or told["where"] == "open":
                _apply(store, told)
        yield make_client(store, settings_with(folder, hidden=hidden), address="192.0.2.7")


def _apply(store: Store, told: dict[str, Any]) -> None:
    name = f"oai:{told['where']}:{told['number']}"
    with store.write() as tx:
        origin = tx.origin("hierarchy", told["where"])
        if told["what"] == "delete":
            tx.delete(origin, [name])
        elif told["what"] == "fail":
            tx.fail(origin, Failure(name, "extract", "broken"))
        else:
            sets = tuple(f"{told['where']}:{told['set']}".rstrip(":").split()) if told["set"] else ()
            vector = TermVector.of({"wind": 1 + told["number"]})
            tx.put(origin, [Record(name, {"title": [told["title"]]}, vector, sets)])


def asked() -> Iterator[str]:
    for endpoint in ("/oai", "/ft-oai"):
        for verb in ("Identify", "ListSets", "ListMetadataFormats", "ListIndexFormats", "Nonsense"):
            yield f"{endpoint}?verb={verb}"
        for verb in LISTS:
            for chosen in ("", "&set=vault", "&set=vault:a", "&set=open:a", "&until=2020-01-01", "&set=none"):
                yield f"{endpoint}?verb={verb}&metadataPrefix=oai_dc{chosen}"
        for name in ("oai:vault:0", "oai:open:0", "oai:none:0"):
            yield f"{endpoint}?verb=GetRecord&metadataPrefix=oai_dc&identifier={name}"
            yield f"{endpoint}?verb=ListMetadataFormats&identifier={name}"
            yield f"{endpoint}?verb=ListIndexFormats&identifier={name}"
    for kind in ("atom", "rss"):
        for query in ("", "?q=wind", "?set=vault:a", "?source=vault", "?source=none"):
            yield f"/feed.{kind}{query}"
    yield from ("/metrics", "/healthz", "/robots.txt", "/sitemap.xml", "/about", "/opensearch.xml")
    yield from ("/content/vault/a.txt", "/content/open/a.txt")


def comparable(answer: bytes) -> bytes:
    """Without the time of day; tokens are sealed with a key of the store."""
    answer = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"<when>", answer)
    answer = re.sub(rb"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", b"<when>", answer)
    answer = re.sub(rb"urn:indlet:store:[\w:]+", b"<store>", answer)  # drawn by lot for each store
    answer = re.sub(rb'resumptionToken="[^"]+"', b'resumptionToken="token"', answer)
    return re.sub(rb"(<resumptionToken[^>]*>)[^<]+<", rb"\1token<", answer)


def walk(client: TestClient, address: str) -> Iterator[bytes]:
    """An answer, and the rest of the list that it begins."""
    for _ in range(10):
        answer = client.get(address)
        yield f"{answer.status_code} {answer.headers.get('content-type')}\n".encode() + comparable(
            answer.content
        )
        token = re.search(rb"<resumptionToken[^>]*>([^<]+)<", answer.content)
        if token is None or "verb=List" not in address:
            return
        address = re.sub(r"&.*", "", address) + f"&resumptionToken={token[1].decode()}"
    raise AssertionError("a list without an end")


@given(changes=st.lists(change, max_size=12))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_stranger_sees_a_node_that_never_had_the_hidden_records(changes: list[dict[str, Any]]) -> None:
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        node(Path(one), changes, hidden=True) as restricted,
        node(Path(two), changes, hidden=False) as never,
    ):
        for address in asked():
            assert list(walk(restricted, address)) == list(walk(never, address)), address


def test_metrics_in_full_are_for_those_who_have_the_token(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            tx.put(tx.origin("hierarchy", "vault"), [Record("oai:vault:1", {"title": ["Zeppelin"]})])
        given = settings_with(tmp_path, hidden=True)
        given = replace(given, admin=replace(given.admin, metrics_token="scrape me"))
        client = make_client(store, given, address="192.0.2.7")
        for wrong in (
            {},
            {"authorization": "Bearer "},
            {"authorization": "Bearer wrong"},
            {"authorization": "Basic scrape me"},
        ):
            assert "vault" not in client.get("/metrics", headers=wrong).text
        told = client.get("/metrics", headers={"authorization": "Bearer scrape me"}).text
        assert 'indlet_records{kind="hierarchy",origin="vault"} 1' in told
        assert "indlet_change_feed_position 1" in told and "indlet_disk_free_bytes" in told


@pytest.mark.parametrize("token", ["", "t"])
def test_sizes_and_positions_need_the_token_even_where_nothing_is_hidden(tmp_path: Path, token: str) -> None:
    """Otherwise their absence would show that something is hidden."""
    with Store.open(tmp_path) as store:
        given = settings_with(tmp_path, hidden=False)
        given = replace(given, admin=replace(given.admin, metrics_token=token))
        client = make_client(store, given, address="192.0.2.7")
        assert not re.search("lag|position|bytes", client.get("/metrics").text)
        told = client.get("/metrics", headers={"authorization": f"Bearer {token}"}).text
        assert ("indlet_index_lag 0" in told) == bool(token)


def test_folders_that_are_written_to_are_named_to_nobody(tmp_path: Path) -> None:
    """The name of such an origin is a path of this machine."""
    with Store.open(tmp_path / "data") as store:
        with store.write() as tx:
            tx.start_run(tx.origin("write", str(tmp_path / "catalogue"), {"format": "marc21"}), "write")
            tx.put(tx.origin("source", "s"), [Record("oai:s:1", {"title": ["Zeppelin"]})])
        given = settings_with(tmp_path / "data", hidden=False)
        given = replace(given, admin=replace(given.admin, metrics_token="scrape me"))
        client = make_client(store, given, address="192.0.2.7")
        addresses = (
            *asked(),
            "/",
            "/?q=*",
            "/api/sources",
            "/api/stats",
            "/api/search?q=*",
            "/browse",
            "/help",
        )
        for address in addresses:
            assert str(tmp_path) not in client.get(address).text, address
        assert [one["name"] for one in client.get("/api/sources").json()["sources"]] == ["s"]
        told = client.get("/metrics", headers={"authorization": "Bearer scrape me"}).text
        assert f'origin="{tmp_path}/catalogue"' in told
