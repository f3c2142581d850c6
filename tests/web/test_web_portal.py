"""The pages, as a browser without scripts gets them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from selectolax.lexbor import LexborHTMLParser, LexborNode
from starlette.testclient import TestClient
from tests.hostile import misbehaving as m
from tests.web.collection import SOURCES
from tests.web.nodes import make_client, settings_for

from indlet.model import Record, TermVector
from indlet.service.pipeline import harvest_all
from indlet.service.search.rank import MODELS
from indlet.settings import Access, Admin, Hierarchy, LibraryFolder, Site, Source, User
from indlet.store import Store, open_store

RECORD = "/record/oai:north.example.org:1000"


class Node:
    """An element of a page, read as browsers read it."""

    def __init__(self, node: LexborNode) -> None:
        self.node = node

    def all(self, selector: str) -> list[Node]:
        return [Node(found) for found in self.node.css(selector)]

    def one(self, selector: str) -> Node:
        found = self.all(selector)
        assert found, f"nothing on the page is {selector}"
        return found[0]

    def has(self, selector: str) -> bool:
        return bool(self.node.css(selector))

    def get(self, name: str) -> str:
        return self.node.attributes[name] or ""

    @property
    def text(self) -> str:
        return " ".join(self.node.text().split())


def parsed(text: str) -> Node:
    root = LexborHTMLParser(text).root
    assert root is not None
    return Node(root)


def page(client: TestClient, address: str, status: int = 200, headers: dict[str, str] | None = None) -> Node:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"].startswith("text/html")
    return parsed(answer.text)


def test_the_start_page_tells_what_there_is(client: TestClient) -> None:
    root = page(client, "/")
    assert "197" in root.one(".figures").text and "3" in root.one(".figures").text
    cards = [card.text for card in root.all(".card")]
    assert len(cards) == 6
    assert all(any(source in card for card in cards) for source in SOURCES)  # the latest change is of one
    assert root.all("form[role=search] input[name=q]")


def test_results_say_what_matched_and_lead_to_the_reason(client: TestClient) -> None:
    root = page(client, "/?q=harvesting+metadata")
    results = root.all("article.result")
    assert len(results) == 10
    why = page(client, results[0].one(".told").get("href"))
    assert "harvesting" in why.one(".why").text and "%" in why.one(".why").text
    assert sum(float(r.get("width")) for r in why.all(".why rect")) == pytest.approx(100, abs=0.1)
    assert root.one("#results-title").text.startswith("22 records")
    assert "harvesting" in [m.text for m in root.all("mark")]


def test_facets_count_and_narrow(client: TestClient) -> None:
    root = page(client, "/?q=*")
    facet = {a.one("span").text: a for a in root.all("section[aria-labelledby=facet-language] li a")}
    assert set(facet) == {"English", "German"}
    count = int(facet["German"].one(".count").text)
    narrowed = page(client, facet["German"].get("href"))
    assert narrowed.one("#results-title").text.startswith(f"{count} records")
    chip = narrowed.one(".chip a")
    assert page(client, chip.get("href")).one("#results-title").text.startswith("197")


def test_each_bar_of_the_histogram_leads_to_its_records(client: TestClient) -> None:
    root = page(client, "/?q=*")
    for bar in root.all(".years a")[:5]:
        count = bar.get("aria-label").rpartition(": ")[2].split()[0]
        found = page(client, bar.get("href"))
        assert found.one("#results-title").text.split()[0] == count


def test_pages_hold_every_result_once(client: TestClient) -> None:
    address, seen = "/?q=wave", []
    while address:
        root = page(client, address)
        seen += [a.get("href") for a in root.all("article.result h2 a")]
        following = root.all("a[rel=next]")
        address = following[0].get("href") if following else ""
    total = int(root.one("#results-title").text.split()[0])
    assert len(seen) == len(set(seen)) == total > 10


def test_every_model_answers_and_explains_itself(client: TestClient) -> None:
    root = page(client, "/?q=wave+pressure")
    models = [option.get("value") for option in root.all("#model option")]
    assert len(models) == len(MODELS)
    for model in models:
        other = page(client, f"/?q=wave+pressure&model={model}")
        assert other.one("#model option[selected]").get("value") == model
        assert len(other.one(".sort .muted").text) > 30


def test_a_fault_is_pointed_at(client: TestClient) -> None:
    root = page(client, "/?q=wave+%28flow", 400)
    assert root.one(".fault .caret").text == "("
    plain = root.one(".notice a")
    assert plain.text == "wave flow"
    page(client, plain.get("href"))


def test_nothing_found_helps_on(client: TestClient) -> None:
    root = page(client, "/?q=harvetser&language=en&verbatim=1")
    offered = {a.text: a.get("href") for a in root.all(".notice a")}
    assert "harvester" in offered
    assert page(client, offered["harvester"]).all("article.result")
    assert "Search without the filters" in offered


def test_a_page_beyond_the_last_leads_to_the_last(client: TestClient) -> None:
    answer = client.get("/?q=harvesting+metadata&page=50")
    assert answer.status_code == 303
    assert answer.headers["location"].endswith("page=3")


def test_comparison_draws_movements_and_gives_overlap(client: TestClient) -> None:
    root = page(client, "/compare?q=index+ranking&models=bm25&models=vsm&models=boolean")
    assert len(root.all(".ranking")) == 3
    assert len(root.all(".moves svg")) == 2
    assert root.all(".moves path")
    rows = root.all("table tbody tr")
    assert len(rows) == 3 and "%" in rows[0].text
    assert page(client, "/compare").all(".notice")
    assert page(client, "/compare?q=%28", 400).all(".fault")


def test_the_record_page_tells_everything(client: TestClient) -> None:
    answer = client.get(RECORD)
    root = parsed(answer.text)
    assert root.all("h1") and root.all(".terms rect") and root.all(".similar li")
    assert {a.text for a in root.all(".files a")} == {"PDF", "HTML"}
    assert "North Library" in root.one("section[aria-labelledby=provenance]").text
    assert "1 November 2026, 09:30 UTC" in root.one("section[aria-labelledby=provenance]").text
    links = answer.headers["link"]
    assert 'rel="cite-as"' in links and 'rel="describedby"' in links and 'rel="item"' in links
    assert root.all("meta[name=citation_title]") and root.all("meta[name=citation_pdf_url]")
    value = json.loads(root.one('script[type="application/ld+json"]').text)
    assert value["@context"] == "https://schema.org" and value["encoding"]
    assert root.all("span.Z3988") and root.all("abbr.unapi-id")
    assert root.all("link[rel=unapi-server]")


def test_restricted_content_is_marked(client: TestClient) -> None:
    root = page(client, "/record/oai:reports.example.org:1003")
    assert root.all(".badge.restricted")
    assert "Ask for access at" in root.one(".actions").text
    assert not root.all("meta[name=citation_pdf_url]")


@pytest.mark.parametrize("name", ["bibtex", "ris", "oai_dc", "json", "marc21", "mods"])
def test_exports_by_address_by_unapi_and_by_negotiation(client: TestClient, name: str) -> None:
    identifier = RECORD.removeprefix("/record/")
    direct = client.get(f"/export/{name}", params={"id": identifier})
    assert direct.status_code == 200 and "attachment" in direct.headers["content-disposition"]
    assert client.get("/unapi", params={"id": identifier, "format": name}).text == direct.text
    kind = direct.headers["content-type"].partition(";")[0]
    assert client.get(RECORD, headers={"accept": f"{kind}, text/html;q=0.5"}).text == direct.text
    assert "Harvesting metadata" in direct.text


def test_unapi_lists_formats_and_refuses_the_unknown(client: TestClient) -> None:
    assert client.get("/unapi").status_code == 200
    assert client.get("/unapi?id=oai:north.example.org:1000").status_code == 300
    assert client.get("/unapi?id=none").status_code == 404
    assert client.get("/unapi?id=oai:north.example.org:1000&format=x").status_code == 406


def test_deleted_and_unknown_records(client: TestClient, library_store: Store) -> None:
    with library_store.read() as view:
        gone = next(s for s in view.changes() if s.deleted)
    assert "deleted by its source" in page(client, f"/record/{gone.identifier}", 410).text
    page(client, "/record/oai:none", 404)
    page(client, "/record?id=http%3A%2F%2Fx", 404)
    page(client, "/no/such/page", 404)


def test_suggestions_complete_the_last_word(client: TestClient) -> None:
    answer = client.get("/suggest", params={"q": "shock wa"})
    assert answer.headers["content-type"] == "application/x-suggestions+json"
    q, completions, counts = answer.json()
    assert q == "shock wa" and "shock wave" in " ".join(completions)
    assert all(int(count) > 0 for count in counts)
    assert client.get("/suggest?q=").json()[1] == []


def test_german_by_wish_by_cookie_and_by_address(client: TestClient) -> None:
    assert page(client, "/", headers={"accept-language": "de-AT"}).get("lang") == "de"
    assert page(client, "/?lang=de").get("lang") == "de"
    answer = client.get("/preferences?lang=de&back=/help")
    assert answer.status_code == 303 and answer.headers["location"] == "/help"
    assert "lang=de" in answer.headers["set-cookie"]
    assert page(client, "/help", headers={"cookie": "lang=de; theme=dark"}).get("data-theme") == "dark"
    client.cookies.clear()


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1"]
)
def test_preferences_lead_nowhere_else(client: TestClient, back: str) -> None:
    answer = client.get("/preferences", params={"theme": "dark", "back": back})
    client.cookies.clear()
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "address", ["/", "/?q=wave", "/compare?q=wave", RECORD, "/help", "/admin/sign-in", "/none"]
)
def test_every_page_is_guarded_by_headers(client: TestClient, address: str) -> None:
    answer = client.get(address)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    root: Any = html.fromstring(answer.text)
    assert not root.xpath("//@style") and not root.xpath("//style") and not root.xpath("//@onclick")
    assert not root.xpath("//script[not(@src)][not(@type='application/ld+json')]")
    for outside in root.xpath("//script/@src | //link[@rel='stylesheet']/@href | //img/@src"):
        assert outside.startswith("/static/")


def test_hostile_metadata_stays_text(empty: tuple[Store, TestClient]) -> None:
    store, client = empty
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    metadata = {
        e: [evil] for e in ("title", "creator", "subject", "description", "publisher", "type", "date")
    }
    metadata["identifier"] = ["javascript:alert(3)", evil]
    properties = {
        "url": "javascript:alert(4)",
        "manifestations": [{"url": "data:text/html,x", "media_type": evil}],
    }
    record = Record(f"oai:{evil}", metadata, TermVector.of({"alert": 2}), (), properties=properties)
    with store.write() as tx:
        tx.put(tx.origin("source", evil, {"url": "http://x.example/"}), [record])
    client = make_client(store, settings_for(store.local_folder))
    addresses = ["/", "/?q=alert", f"/?q={evil}", "/compare?q=alert", "/feed.atom"]
    addresses.append(page(client, "/?q=alert").one("article.result h2 a").get("href"))
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code < 500
        if "html" in answer.headers["content-type"]:
            root: Any = html.fromstring(answer.text)
            assert not root.xpath("//img[@src='x']") and not root.xpath("//@onerror")
            assert not root.xpath("//script[not(@src)][not(@type)]")
            hrefs = [*root.xpath("//@href"), *root.xpath("//@src")]
            assert not [h for h in hrefs if h.lower().lstrip().startswith(("javascript:", "data:"))]


def test_an_empty_node_says_how_to_fill_it(empty: tuple[Store, TestClient]) -> None:
    _, client = empty
    assert "indlet harvest" in page(client, "/").text
    assert "No records found" in page(client, "/?q=wave").text


def test_hierarchies_that_are_not_for_everybody_stay_hidden(tmp_path: Path) -> None:
    closed = Hierarchy(root="/nowhere", name="closed", access=Access(networks=("10.0.0.0/8",)))
    settings = replace(settings_for(tmp_path), hierarchy=(closed, Hierarchy(root="/elsewhere", name="open")))
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            for name in ("closed", "open"):
                record = Record(f"oai:{name}:1", {"title": [f"A {name} paper"]}, TermVector.of({"paper": 1}))
                tx.put(tx.origin("hierarchy", name), [record])
        client = make_client(store, settings)
        for address in ("/", "/?q=paper", "/?q=*", "/api/search?q=paper", "/feed.atom", "/feed.rss?q=paper"):
            found = client.get(address).text
            assert "A open paper" in found and "A closed paper" not in found, address
        assert client.get("/record/oai:closed:1").status_code == 404
        assert client.get("/export/json?id=oai:closed:1").status_code == 404
        assert 'origin="closed"' not in client.get("/metrics").text
        assert client.get("/about").status_code == 200


@pytest.mark.parametrize(
    "provided",
    [
        {"site": (Site(root="site", url="http://127.0.0.1:9/"),)},
        {"library": (LibraryFolder("catalogue", read="exports"),)},
        {"source": (Source("http://127.0.0.1:9/oai", name="s", republish=True),)},
        {"hierarchy": (Hierarchy(root="files", name="files"),)},
    ],
)
def test_every_repository_is_linked_from_its_portal(tmp_path: Path, provided: dict[str, Any]) -> None:
    with Store.open(tmp_path) as store:
        client = make_client(store, settings_for(tmp_path, **provided))
        assert page(client, "/").one("footer a[href='/about']") is not None
        assert client.get("/about").status_code == 200
        alone = make_client(store, settings_for(tmp_path))
        assert 'href="/about"' not in alone.get("/").text


def test_the_desk_is_linked_wherever_somebody_may_enter(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for admin, user in (
            (Admin(user_header="Remote-User"), ()),
            (Admin(), (User("ann", password_hash="x"),)),
        ):
            settings = settings_for(tmp_path, admin=admin, user=user)
            assert 'href="/admin"' in make_client(store, settings).get("/").text
        assert 'href="/admin"' not in make_client(store, settings_for(tmp_path, admin=Admin())).get("/").text


def test_metrics_are_in_the_text_format(library_store: Store) -> None:
    settings = settings_for(library_store.local_folder)
    settings = replace(settings, admin=replace(settings.admin, metrics_token="scrape"))
    client = make_client(library_store, settings)
    client.get("/?q=wave")
    body = client.get("/metrics", headers={"authorization": "Bearer scrape"}).text
    values = dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    assert float(values['indlet_records{kind="source",origin="North Library"}']) == 88
    assert float(values["indlet_index_lag"]) == 0
    assert float(values['indlet_http_requests_total{area="search",status="2xx"}']) >= 1
    assert float(values['indlet_http_request_duration_seconds_count{area="search"}']) >= 1


def test_static_files_and_only_those(client: TestClient) -> None:
    link = page(client, "/").one("link[rel=stylesheet]").get("href")
    assert "immutable" in client.get(link).headers["cache-control"]
    assert client.get("/static/..%2Fapp.py").status_code == 404
    assert client.get("/static/portal.js").headers["content-type"].startswith("text/javascript")


def test_pages_are_compressed_for_those_who_take_it(client: TestClient) -> None:
    plain = client.get("/?q=wave", headers={"accept-encoding": "identity"})
    small = client.get("/?q=wave", headers={"accept-encoding": "br, gzip;q=0.8"})
    assert "content-encoding" not in plain.headers
    for weight in ("0", "0.0", "0.000", " 0.00", "-1", "x"):
        for address in ("/?q=wave", "/static/portal.css", "/oai?verb=Identify"):
            refused = client.get(address, headers={"accept-encoding": f"gzip; q={weight}"})
            assert "content-encoding" not in refused.headers, (address, weight)
    assert small.headers["content-encoding"] == "gzip" and "Accept-Encoding" in small.headers["vary"]
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 3
    assert "content-encoding" not in client.get("/admin/sign-in").headers


def test_metrics_of_runs_hold_while_the_next_one_is_on(tmp_path: Path) -> None:
    clock = [1_700_000_000.0]
    with open_store(tmp_path, clock=lambda: clock[0]) as store:
        client = make_client(store, settings_for(tmp_path))

        def metrics() -> dict[str, float]:
            lines = [line for line in client.get("/metrics").text.splitlines() if 'origin="s"' in line]
            values = (line.rsplit(" ", 1) for line in lines)
            return {name.partition("{")[0].removeprefix("indlet_last_"): float(at) for name, at in values}

        def run(outcome: str) -> None:
            with store.write() as tx:
                tx.note_run(tx.start_run(tx.origin("source", "s", {}), "harvest"), {}, outcome)
            clock[0] += 100

        run("running")
        assert "run_ok" not in metrics()  # nothing has ended
        run("complete")
        done = metrics()
        assert done["run_ok"] == 1 and done["complete_run_timestamp_seconds"] == 1_700_000_100
        for _ in range(12):
            run("failed")
        for outcome in ("running", "failed"):
            run(outcome)
            told = metrics()
            assert told["run_ok"] == 0
            assert told["complete_run_timestamp_seconds"] == 1_700_000_100


def test_a_deleted_record_is_dated_by_its_deletion(tmp_path: Path) -> None:
    with m.Provider() as provider, open_store(tmp_path) as store:
        settings = settings_for(tmp_path)
        harvest_all(store, settings, [Source(provider.url, name="s")])
        with store.read() as view:
            gone = next(s for s in view.changes() if s.deleted)
        (stamp,) = [one.datestamp for one in provider.records if one.identifier == gone.identifier]
        told = make_client(store, settings).get(f"/record/{gone.identifier}")
    assert told.status_code == 410
    at = datetime.fromisoformat(stamp)
    assert f"It was withdrawn on {at.day} {at:%B} {at.year}" in told.text, told.text
