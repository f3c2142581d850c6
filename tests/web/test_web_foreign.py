"""What a source wrote never runs as a page of this node: only our own pages are not locked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import sync_playwright
from starlette.routing import Route
from tests.web.nodes import PASSWORD, free_socket, settings_for, shipped

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.provider import serve
from indlet.provider.pipeline import crawl
from indlet.provider.serve.responses import LOCKED, LOCKED_FILE
from indlet.service.index import follow
from indlet.settings import Access, Crawl, Duplicates, Hierarchy, Settings, Site, Source, VirtualRepository
from indlet.store import Store
from indlet.web.app import application
from indlet.web.embed import EMBEDDED

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
IDENTIFIER = "oai:evil.example:1"
# Signed in at the desk, this would read the page's token and add a source.
SCRIPT = """<script xmlns="http://www.w3.org/1999/xhtml">
fetch("/admin").then(r =&gt; r.text()).then(async page =&gt; {
  const csrf = /name="csrf" value="([^"]+)"/.exec(page)[1];
  const form = new URLSearchParams({csrf, action: "add", name: "stolen", url: "http://127.0.0.1:9/oai"});
  await fetch("/admin/act", {method: "POST", body: form});
  document.title = "taken";
});
document.documentElement.setAttribute("ran", "yes");
</script>"""
TREE_PAGE = "<title>Page</title><style>p{color:red}</style><p>zebra<script>document.title='ran'</script>"
_OWN = re.compile(r"^default-src '(self|none)'; .*frame-ancestors 'none'$")
_ACTS = re.compile(r"<(?:form|button|input|select|textarea|script)\b|csrf|\son\w+=")


@dataclass(frozen=True)
class Running:
    address: str
    store: Store
    settings: Settings
    paths: tuple[str, ...]


def hostile_record() -> Record:
    metadata = {"title": ["Zebra"], "description": ["stripes"]}
    raw = oai_dc.write(metadata)
    raw = raw.replace(b"<dc:title>", SCRIPT.encode() + b"<dc:title>", 1)
    assert b"<script" in raw
    return Record(IDENTIFIER, metadata, None, raw=raw)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A node with every kind of route, and a record that attacks."""
    folder, tree, site = (tmp_path_factory.mktemp(name) for name in ("data", "tree", "site"))
    (tree / "page.html").write_text(TREE_PAGE)
    (site / "index.html").write_text("<title>Home</title>")
    bound, port = free_socket()
    settings = settings_for(
        folder,
        port,
        crawl=Crawl(workers=1, settle_seconds=0.0),
        duplicates=Duplicates(exchange=True),
        hierarchy=(Hierarchy(root=str(tree), name="tree", access=Access(content="public")),),
        source=(Source("http://evil.example/oai", name="evil", republish=True, every="never"),),
        repository=(VirtualRepository("/oai/part", from_=("evil",)),),
    )
    with Store.open(folder) as store:
        crawl(store, settings)
        with store.write() as tx:
            tx.put(tx.origin("source", "evil", {"url": "http://evil.example/oai"}), [hostile_record()])
        follow.catch_up(store)
        settings = replace(settings, site=(Site(root=str(site), url="http://127.0.0.1:9/"),))
        app = application(store, settings, follow=False)
        paths = tuple(route.path for route in app.routes if isinstance(route, Route))
        assert len(paths) == len(app.routes)
        with shipped(app, settings, bound):
            yield Running(f"http://127.0.0.1:{port}", store, settings, paths)


def examples(path: str) -> list[str]:
    """Requests to a route: with arguments that lead somewhere, and with none."""
    known = {
        "{name}": "portal.css", "{identifier:path}": IDENTIFIER, "{kind:str}": "csv", "{kind}": "subject",
        "{number}": "1", "{part}": "x", "{rest:path}": "x", "{path:anything}": "tree/page.html",
    }  # fmt: skip
    if path == "/export/{name}":
        known["{name}"] = "oai_dc"
    if path.startswith("/feed"):
        known["{kind:str}"] = "atom"
    for name, value in known.items():
        path = path.replace(name, value)
    assert "{" not in path, path
    record, listing = f"id={quote(IDENTIFIER)}&format=oai_dc", "verb=ListRecords&metadataPrefix=oai_dc"
    return [path, f"{path}/", *(f"{path}?{query}" for query in (record, listing, "q=zebra"))]


def check(answer: httpx.Response, what: object) -> None:
    policy, kind = answer.headers.get("content-security-policy", ""), answer.headers.get("content-type", "")
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"], what
    assert len(answer.headers.get_list("content-security-policy")) == 1, what
    if policy in (LOCKED, LOCKED_FILE):
        return
    if policy == EMBEDDED:
        # The one page that others may frame: nothing in it acts, so that no click can be stolen.
        assert answer.url.path == "/embed" and "form-action 'none'" in policy, what
        assert not _ACTS.search(answer.text), what
        assert "set-cookie" not in answer.headers, what
        policy = policy.replace("frame-ancestors *", "frame-ancestors 'none'")
    assert kind.startswith("text/html") and _OWN.match(policy), (what, policy, kind)
    assert "<script xmlns" not in answer.text and "document.title='ran'" not in answer.text, what


def test_every_route_is_locked_or_a_page_of_ours(node: Running) -> None:
    pages = 0
    with httpx.Client(base_url=node.address, timeout=60, trust_env=False) as client:
        assert client.post("/admin/sign-in", data={"password": PASSWORD}).status_code == 303
        for path in node.paths:
            for address in examples(path):
                for accept in ("application/xml", "text/html,application/xhtml+xml,application/xml;q=0.9"):
                    answer = client.get(address, headers={"Accept": accept})
                    check(answer, (address, accept))
                    pages += answer.headers["content-security-policy"] not in (LOCKED, LOCKED_FILE)
            for method in ("POST", "OPTIONS"):
                check(client.request(method, examples(path)[0]), (method, path))
        for address in ("/nowhere", "/api/nowhere", "/content/none", "//x", "/%00"):
            check(client.get(address), address)
        check(client.get("/", headers={"Host": "evil.example"}), "another name")
    assert pages > 50  # the check above knows our pages


def test_a_provider_alone_locks_its_responses_too(node: Running) -> None:
    bound, port = free_socket()
    settings = replace(node.settings, node=replace(node.settings.node, port=port))
    app = serve.application(node.store, settings)
    with (
        shipped(app, settings, bound),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
    ):
        for route in app.routes:
            assert isinstance(route, Route)
            for address in examples(route.path):
                check(client.get(address), address)
        check(client.get("/nowhere"), "nowhere")
        answer = client.get("/content/tree/page.html")
        assert answer.headers["content-security-policy"] == LOCKED_FILE
        again = client.get("/content/tree/page.html", headers={"If-None-Match": answer.headers["etag"]})
        # A browser takes the header fields of a 304 over to its copy.
        assert again.status_code == 304 and again.headers["content-security-policy"] == LOCKED_FILE


@pytest.mark.browser
def test_a_script_in_a_harvested_record_does_not_run_with_the_operators_session(node: Running) -> None:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium, or make test as root, brings it")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        context = browser.new_context(base_url=node.address)
        page = context.new_page()
        page.goto("/admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/admin")
        ran = []
        for address, accept in (
            (f"/unapi?id={quote(IDENTIFIER)}&format=oai_dc", ""),
            (f"/record/{IDENTIFIER}", "application/xml"),
            ("/oai?verb=ListRecords&metadataPrefix=oai_dc", "text/xml"),
            ("/oai?verb=ListRecords&metadataPrefix=oai_dc", ""),
            ("/oai/part?verb=ListRecords&metadataPrefix=oai_dc", "text/xml"),
            ("/content/tree/page.html", ""),
        ):
            if accept:
                page.set_extra_http_headers({"Accept": accept})
            page.goto(address)
            marked = "document.documentElement.getAttribute('ran') || document.title"
            if page.evaluate(marked) in ("yes", "ran", "taken"):
                ran.append(address)
            page.set_extra_http_headers({})
        browser.close()
    assert ran == []
    with node.store.read() as view:
        assert view.origin("source", "stolen") is None
