"""Sets go by their names: in the facet, among the filters in force, and on the record's page."""

from __future__ import annotations

from starlette.testclient import TestClient

from indlet.model import Record
from indlet.service.index import follow
from indlet.store import Store
from indlet.text import Analyzer, Policy


def test_sets_go_by_their_names(empty: tuple[Store, TestClient]) -> None:
    store, client = empty
    vector = Analyzer(Policy()).vector("heated wings", "en")
    with store.write() as tx:
        origin = tx.origin("source", "one")
        tx.put(
            origin,
            [
                Record("oai:x.org:1", {"title": ["Wings"]}, vector, ("phys:opt", "plain")),
                Record("oai:x.org:2", {"title": ["Winged"]}, vector, ("plain",)),
            ],
        )
    follow.catch_up(store)
    assert ">phys:opt<" in client.get("/record/oai:x.org:1").text
    with store.write() as tx:
        tx.name_set(origin, "phys:opt", "Optics & <light>")
        tx.count_up("set_names")
    page = client.get("/", params={"q": "wings"}).text
    assert "Optics &amp; &lt;light&gt;" in page
    filtered = client.get("/", params={"q": "wings", "set": "phys:opt"}).text
    assert "Set: Optics &amp; &lt;light&gt;" in filtered
    assert "Winged" not in filtered
    record = client.get("/record/oai:x.org:1").text
    assert "Optics &amp; &lt;light&gt;" in record
    assert ">plain<" in record
    answer = client.get("/api/search", params={"q": "wings", "facets": "set"}).json()
    assert {"value": "phys:opt", "count": 1, "label": "Optics & <light>"} in answer["facets"]["set"]
    assert {"value": "plain", "count": 2} in answer["facets"]["set"]
