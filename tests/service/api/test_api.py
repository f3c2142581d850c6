"""The JSON API over HTTP: answers that keep to their schemas, errors that help, a document that is true."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
from openapi_spec_validator import validate
from starlette.routing import Route

from indlet.errors import StoreUnavailable
from indlet.model import Record, TermVector
from indlet.service.api.routes import ENDPOINTS, application, openapi, routes
from indlet.service.search.library import FACETS, Library
from indlet.settings import Node, Settings

PUBLIC = Settings(node=Node(base_url="http://node.example"))


@pytest.fixture
def client(shelf: Library) -> httpx.AsyncClient:
    shelf.settings = PUBLIC
    transport = httpx.ASGITransport(app=application(shelf))
    return httpx.AsyncClient(transport=transport, base_url="http://node.example")


async def get(client: httpx.AsyncClient, path: str, **params: Any) -> Any:
    answer = await client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == "*"
    schema = next(endpoint.schema for endpoint in ENDPOINTS if endpoint.path == path)
    document = openapi()
    jsonschema.validate(answer.json(), {"$ref": f"#/components/schemas/{schema}", **document})
    return answer.json()


async def problem(client: httpx.AsyncClient, path: str, status: int, **params: Any) -> Any:
    answer = await client.get(path, params=params)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    return answer.json()


async def test_search(client: httpx.AsyncClient, shelf: Library) -> None:
    answer = await get(client, "/api/search", q="boundary layer", facets=["source", "year"], limit=2)
    assert answer["total"] == 3
    assert [hit["score"] for hit in answer["hits"]] == [
        hit.score for hit in shelf.search("boundary layer", limit=2)
    ]
    assert answer["facets"]["source"] == [{"value": "air", "count": 2}, {"value": "sea", "count": 1}]
    few = await get(client, "/api/search", q="boundary layer", facets="source", facet_values=1)
    assert few["facets"]["source"] == [{"value": "air", "count": 2}]
    quick = await get(client, "/api/search", q="boundary layer", exact_total="false", limit=1)
    assert quick["hits"] == answer["hits"][:1]
    assert quick["total"] == 3 if quick["total_is_exact"] else 1 <= quick["total"] <= 3
    assert answer["total_is_exact"]
    everything = await get(client, "/api/search", q="*", facets="all", sort="oldest", limit=100)
    assert set(everything["facets"]) == set(FACETS)


async def test_where_a_lost_store_lies_is_for_the_log(
    client: httpx.AsyncClient,
    shelf: Library,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise StoreUnavailable("http://10.0.3.7:9200: the cluster does not answer; start it")

    monkeypatch.setattr(shelf, "search", lost)
    with caplog.at_level(logging.ERROR, "indlet.api"):
        told = await problem(client, "/api/search", 503, q="wind")
    assert "10.0.3.7" not in str(told) and told["detail"].endswith("ask again later")
    assert "10.0.3.7" in caplog.text


async def test_search_with_filters_models_and_pages(client: httpx.AsyncClient) -> None:
    answer = await get(client, "/api/search", q="wind", source=["sea"], model="lm-jm", param="lambda=0.2")
    assert answer["parameters"] == {"lambda": 0.2}
    assert {hit["source"] for hit in answer["hits"]} == {"sea"}
    assert (await get(client, "/api/search", q="wind", offset=1))["hits"][0]["rank"] == 2
    assert (await get(client, "/api/search", q="*", date="1950..1955"))["total"] == 2
    assert (await get(client, "/api/search", q="der wind (", plain="1"))["total"] == 3


async def test_the_other_questions(client: httpx.AsyncClient) -> None:
    compared = await get(client, "/api/compare", q="boundary", model=["bm25", "vsm"])
    assert compared["models"] == ["bm25", "vsm"]
    told = await get(client, "/api/explain", q="flutter", identifier="oai:air:2")
    assert told["score"] == told["terms"][0]["contribution"]
    similar = await get(client, "/api/similar", identifier="oai:air:1", limit=1)
    assert len(similar["hits"]) == 1
    completed = await get(client, "/api/suggest", q="flut")
    assert completed["completions"] == [
        {"word": "flutter", "query": "flutter", "kind": "word", "records": 1},
        {
            "word": "Flutter of a heated wing",
            "query": 'title:"Flutter of a heated wing"',
            "kind": "title",
            "records": 1,
        },
    ]
    listed = await get(client, "/api/browse", facet="year", limit=2)
    assert [value["records"] for value in listed["values"]] and listed["previous"] == ""
    record = await get(client, "/api/record", identifier="oai:air:2", frequencies="true")
    assert record["frequencies"]["flutter"] == 3
    assert record["metadata"]["title"] == ["Flutter of a heated wing"]
    assert len((await get(client, "/api/sources"))["sources"]) == 2
    counted = await get(client, "/api/stats")
    assert counted["index"]["records"] == 5


@pytest.mark.parametrize(
    ("path", "params", "status", "says"),
    [
        ("/api/search", {}, 400, "q is missing"),
        ("/api/search", {"q": "a AND"}, 400, "AND needs something"),
        ("/api/search", {"q": "wind", "limit": "many"}, 400, "give a number"),
        ("/api/search", {"q": "wind", "limit": "1001"}, 400, "from 0 to 1,000"),
        ("/api/search", {"q": "wind", "limit": "-1"}, 400, "give a number"),
        ("/api/search", {"q": "wind", "limit": "٣٣٣٣٣٣٣٣٣٣٣"}, 400, "give a number"),
        ("/api/search", {"q": "wind", "limit": "٣"}, 400, "give a number"),
        ("/api/search", {"q": ["wind", "sea"]}, 400, "give it once"),
        ("/api/search", {"q": "wind", "model": "pagerank"}, 400, "choose from bm25"),
        ("/api/search", {"q": "wind", "param": "k1=fast"}, 400, "cannot be 'fast'"),
        ("/api/search", {"q": "wind", "colour": "red"}, 400, "no parameter 'colour'"),
        ("/api/search", {"q": "wind", "plain": "perhaps"}, 400, "true or false"),
        ("/api/search", {"q": "x" * 30_000}, 400, "characters"),
        ("/api/record", {"identifier": "oai:none:1"}, 404, "is not here"),
        ("/api/explain", {"q": "wind", "identifier": "oai:none:1"}, 404, "is not here"),
        ("/api/nothing", {}, 404, "there are /api/search"),
    ],
)
async def test_errors_name_the_problem_and_the_remedy(
    client: httpx.AsyncClient, path: str, params: dict[str, Any], status: int, says: str
) -> None:
    assert says in (await problem(client, path, status, **params))["detail"]


async def test_a_faulty_query_is_pointed_at(client: httpx.AsyncClient) -> None:
    fault = await problem(client, "/api/search", 400, q='wing "shock')
    assert (fault["query"], fault["position"]) == ('wing "shock', 5)


async def test_browsers_of_other_sites_may_ask(client: httpx.AsyncClient) -> None:
    answer = await client.options("/api/search")
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD"
    assert (await client.head("/api/stats")).status_code == 200


@pytest.mark.parametrize("path", ["/api/search?q=wind", "/api/nothing"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_changed(client: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "use GET" in answer.json()["detail"]


async def test_a_score_is_explained_of_the_record_that_was_found(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    with library.store.write() as tx:
        # Two sources have one record; the one that came last gives its metadata alone.
        whole = Record("oai:r:1", {}, TermVector.of({"helium": 2}), resource="http://r/1")
        tx.put(tx.origin("source", "air"), [whole])
        tx.put(tx.origin("source", "catalogue"), [Record("oai:r:1", {}, resource="http://r/1")])
    library.settings = PUBLIC
    transport = httpx.ASGITransport(app=application(library))
    async with httpx.AsyncClient(transport=transport, base_url="http://node.example") as client:
        (hit,) = (await get(client, "/api/search", q="helium"))["hits"]
        assert hit["sources"] == ["air", "catalogue"]
        asked = {"q": "helium", "identifier": hit["identifier"]}
        assert (await get(client, "/api/explain", **asked))["score"] == hit["score"] > 0
        assert (await get(client, "/api/explain", **asked, source="air"))["score"] == hit["score"]
        assert (await get(client, "/api/explain", **asked, source="catalogue"))["matches"] is False
        assert "is not here" in (await problem(client, "/api/explain", 404, **asked, source="sea"))["detail"]


async def test_the_document_is_valid_and_names_every_route(client: httpx.AsyncClient, shelf: Library) -> None:
    document = (await client.get("/api/openapi.json")).json()
    validate(document)
    served = {route.path for route in routes(shelf) if isinstance(route, Route) and "{" not in route.path}
    assert served == set(document["paths"]) | {"/api/openapi.json"}
    assert document["servers"] == [{"url": "http://node.example"}]
