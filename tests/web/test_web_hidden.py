"""What a stranger may not see does not exist: pages are to the byte those of a node that never held it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.web.nodes import settings_for

from indlet.model import Record, TermVector
from indlet.service.index import follow
from indlet.settings import Access, LibraryFolder, Source
from indlet.store import Store
from indlet.web.app import application
from indlet.web.browse import KINDS

HIDDEN = {"access": {"networks": [], "tokens": 1}}
PAGES = [
    "/", "/?q=wind", "/?q=*&sort=title", "/?q=*&sort=author&size=100", "/?q=*&creator=Nemo%2C+A.",
    "/?q=%22secret+wind%22", "/?q=secrte", "/?q=*&subject=Vaults", "/?q=*&format=PDF", "/browse", "/advanced",
    *(f"/browse/{kind}" for kind in KINDS), "/browse/creator?from=n", "/browse/subject?from=v",
    "/suggest?q=sec", "/suggest?q=nemo", "/suggest?q=vaul", "/portal-sitemap.xml", "/portal-sitemap/0.xml",
    "/results.csv?q=*", "/results.bib?q=*&sort=title", "/compare?q=wind+secret", "/record/oai:x:0",
    "/record/oai:x:0?source=vault", "/explain?q=wind&id=oai:x:1", "/api/suggest?q=secr", "/feed.atom?q=wind",
]  # fmt: skip

record: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    source=st.sampled_from(["air", "vault", "vault"]),
    number=st.integers(0, 4),
    title=st.sampled_from(["Wind", "Secret wind", "The vault of winds", "Zeppelin"]),
    creator=st.lists(st.sampled_from(["Nemo, A.", "A. Nemo", "nemo, a", "Ahab", "Vaultier, B."]), max_size=2),
    subject=st.lists(st.sampled_from(["Vaults", "vaults", "Wind", "Air"]), max_size=2),
    format=st.sampled_from([[], ["application/pdf"], ["text/html"]]),
    language=st.sampled_from(["en", "de"]),
    date=st.sampled_from(["1999", "2001-05"]),
    sets=st.sampled_from([(), ("vaults:deep",), ("open",)]),
)


@contextmanager
def node(folder: Path, records: list[dict[str, Any]], *, hidden: bool) -> Iterator[TestClient]:
    with Store.open(folder) as store:
        with store.write() as tx:
            origins = {"air": tx.origin("source", "air", {"url": "http://air/oai"})}
            if hidden:
                origins["vault"] = tx.origin("hierarchy", "vault", HIDDEN)
        for told in records:
            if told["source"] not in origins:
                continue
            fields = ("creator", "subject", "format")
            metadata = {name: told[name] for name in fields if told[name]}
            metadata |= {name: [told[name]] for name in ("title", "language", "date")}
            vector = TermVector.of({"wind": 1, told["title"].split()[0].lower(): 2})
            with store.write() as tx:
                one = Record(f"oai:x:{told['number']}", metadata, vector, told["sets"])
                tx.put(origins[told["source"]], [one])
        follow.catch_up(store)
        app = application(store, settings_for(folder), follow=False)
        yield TestClient(app, base_url="http://127.0.0.1:8080", follow_redirects=False)


def untimed(answer: bytes) -> bytes:
    answer = re.sub(
        rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[Z+:\d]*|\d\d? \w+ \d{4}(, \d\d:\d\d UTC)?", b"<when>", answer
    )
    return re.sub(rb"[\d.,]+ ms|\"took_ms\":[\d.e-]+", b"<ms>", answer)


@given(records=st.lists(record, max_size=10))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_stranger_sees_a_node_that_never_had_the_hidden_records(records: list[dict[str, Any]]) -> None:
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        node(Path(one), records, hidden=True) as restricted,
        node(Path(two), records, hidden=False) as never,
    ):
        for address in PAGES:
            here, there = (client.get(address) for client in (restricted, never))
            assert untimed(here.content) == untimed(there.content), address
            assert here.status_code == there.status_code
        body = "&".join(f"record={source}%0Aoai:x:{n}" for source in ("air", "vault", "") for n in range(5))
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        marked = [c.post("/marked.csv", content=body, headers=headers).content for c in (restricted, never)]
        assert marked[0] == marked[1]


def test_hidden_records_do_not_decide_which_others_are_of_one_resource(tmp_path: Path) -> None:
    pages = []
    for hidden in (True, False):
        folder = tmp_path / str(hidden)
        folder.mkdir()
        with Store.open(folder) as store:
            with store.write() as tx:
                held = [
                    (tx.origin("source", name, {"url": f"http://{name}/oai"}), 1) for name in ("air", "sea")
                ]
                if hidden:  # two of one origin: what they share would tell no resource
                    held.append((tx.origin("hierarchy", "vault", HIDDEN), 2))
                for origin, count in held:
                    vector, doi = TermVector.of({"wind": 1}), "doi:10.1000/1"
                    names = [f"oai:x:{origin}-{number}" for number in range(count)]
                    tx.put(
                        origin, [Record(name, {"title": ["Wind"]}, vector, resource=doi) for name in names]
                    )
            follow.catch_up(store)
            client = TestClient(application(store, settings_for(folder), follow=False))
            page = client.get(f"http://127.0.0.1:8080/record/oai:x:{held[0][0]}-0?source=air").content
            assert b"source=sea" in page
            pages.append(untimed(page))
    assert pages[0] == pages[1]


def test_the_portal_does_not_show_a_source_with_rules_of_access(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.write() as tx:  # harvested before there were rules
            partner = tx.origin("source", "partner", {"url": "http://partner.org/oai"})
            far = tx.origin("source", "far", {"url": "http://far.org/oai", "learned_from": "partner"})
            tx.put(partner, [Record("oai:x:1", {"title": ["Secret wind"]}, TermVector.of({"wind": 1}))])
            tx.put(far, [Record("oai:x:2", {"title": ["Secret wind, too"]}, TermVector.of({"wind": 1}))])
        follow.catch_up(store)
        for access, status in ((Access(), 200), (Access(tokens=("sesame",)), 404)):
            source = Source("http://partner.org/oai", name="partner", access=access)
            app = application(store, settings_for(tmp_path, source=(source,)), follow=False)
            client = TestClient(app, base_url="http://127.0.0.1:8080", follow_redirects=False)
            for record in ("oai:x:1", "oai:x:2"):
                assert client.get(f"/record/{record}").status_code == status
            for page in ("/?q=wind", "/api/search?q=wind", "/api/sources"):
                assert (b"partner" in client.get(page).content.lower()) is (status == 200), page
            assert (b"Secret wind" in client.get("/?q=wind").content) is (status == 200)


def test_the_portal_does_not_show_a_library_with_rules_of_access(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.write() as tx:  # as it was read before there were rules
            one = Record("oai:x:1", {"title": ["Secret wind"]}, TermVector.of({"wind": 1}))
            tx.put(tx.origin("hierarchy", "vault", {"root": "/nowhere"}), [one])
        follow.catch_up(store)
        for access, status in ((Access(), 200), (Access(tokens=("sesame",)), 404)):
            library = LibraryFolder("vault", "/nowhere", access=access)
            app = application(store, settings_for(tmp_path, library=(library,)), follow=False)
            client = TestClient(app, base_url="http://127.0.0.1:8080", follow_redirects=False)
            assert client.get("/record/oai:x:1").status_code == status
            assert (b"Secret wind" in client.get("/?q=wind").content) is (status == 200)
