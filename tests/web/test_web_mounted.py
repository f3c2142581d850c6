"""A node below a path, behind the proxies of docs/operate.md: nothing leads to the root of the host."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect, sync_playwright
from selectolax.lexbor import LexborHTMLParser
from tests.site.web_servers import available, web_server
from tests.web.collection import fill
from tests.web.nodes import PASSWORD, free_socket, settings_for, shipped

from indlet.provider import serve
from indlet.provider.pipeline import crawl
from indlet.service.index import follow
from indlet.settings import Crawl, Hierarchy, Serve
from indlet.store import Store
from indlet.web.app import application

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPERATE = Path(__file__).parents[2] / "docs" / "operate.md"
TEMPLATES = Path(application.__code__.co_filename).parent / "templates"
MOUNT = "/search"
START = (
    "/", "/?q=harvesting", "/?q=zzzz", "/record/oai:north.example.org:1000", "/browse", "/browse/subject",
    "/help", "/api/", "/advanced", "/marked", "/about", "/compare?q=index", "/nowhere",
    "/oai?verb=ListRecords&metadataPrefix=oai_dc",
)  # fmt: skip
DESK = (
    "",
    "/provider",
    "/store",
    "/jobs",
    "/log",
    "/alerts",
    "/duplicates",
    "/source?name=Technical+Reports",
)


def documented(kind: str, port: int) -> str:
    """The configuration that docs/operate.md gives for a node below a path."""
    found = re.findall(rf"```{kind}\n(.*?)```", OPERATE.read_text("utf-8"), re.DOTALL)
    (block,) = (text for text in found if f"{MOUNT}/" in text and "auth_basic" not in text)
    assert "127.0.0.1:8080" in block
    return str(block).replace("127.0.0.1:8080", f"127.0.0.1:{port}")


@pytest.fixture(scope="module", params=["nginx", "apache"])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The public root of a node below a path."""
    if not available(request.param):
        pytest.skip(f"no {request.param} on this machine: make servers, as root, brings it")
    folder, tree = tmp_path_factory.mktemp("node"), tmp_path_factory.mktemp("tree")
    (tree / "a.txt").write_text("A note\n\nOn zebras.\n")
    bound, port = free_socket()
    with web_server(request.param) as web, Store.open(folder) as store:
        web.remote, web.extra = "", documented(request.param, port)
        settings = settings_for(
            folder,
            port,
            crawl=Crawl(workers=1, settle_seconds=0.0),
            serve=Serve(trusted_proxies=("127.0.0.1",)),
            hierarchy=(Hierarchy(root=str(tree), name="papers"),),
        )
        settings = replace(
            settings,
            node=replace(settings.node, base_url=f"{web.url}{MOUNT}"),
            admin=replace(settings.admin, public=True),
        )
        crawl(store, settings)
        fill(store)
        follow.catch_up(store)
        with shipped(application(store, settings), settings, bound):
            web.start()
            yield f"{web.url}{MOUNT}"


def links(page: httpx.Response) -> set[str]:
    """What a page leads to or loads, as absolute URLs without fragments."""
    found = set()
    for node in LexborHTMLParser(page.text).css(
        "[href],[src],[action],[formaction],[data-live],[data-suggest]"
    ):
        for name in ("href", "src", "action", "formaction", "data-live", "data-suggest"):
            if (value := node.attributes.get(name)) is not None:
                found.add(urljoin(str(page.url), value).partition("#")[0])
    return found


def test_every_link_stays_below_the_path(root: str) -> None:
    host = root.removesuffix(MOUNT)
    with httpx.Client(timeout=60, follow_redirects=True, trust_env=False) as client:
        signed_in = client.post(f"{root}/admin/sign-in", data={"password": PASSWORD})
        assert signed_in.status_code == 200 and signed_in.url.path == f"{MOUNT}/admin"
        assert {cookie.path for cookie in client.cookies.jar} == {f"{MOUNT}/admin"}
        followed: set[str] = set()
        html = {"Accept": "text/html,application/xhtml+xml"}
        pages = [f"{root}{path}" for path in (*START, *(f"/admin{page}" for page in DESK))]
        for address in (root, *pages):
            page = client.get(address, headers=html)
            assert page.url.path.startswith(f"{MOUNT}/"), address
            for link in links(page):
                if link.startswith(f"{host}/"):
                    assert urlsplit(link).path.startswith(f"{MOUNT}/"), (address, link)
                    followed.add(link)
        for link in sorted(followed):
            path = urlsplit(link).path.removeprefix(MOUNT)
            if re.match(r"/(admin/(act|test|sign-out)$|marked\.)", path) or "nowhere" in link:
                continue  # posted to, or not there
            answer = client.get(link, headers=html)
            # Forms of the API need their arguments.
            assert answer.status_code == 200 or path.startswith("/api/") or path == "/unapi", (link, answer)
            assert answer.url.path.startswith(f"{MOUNT}/"), link
        chosen = client.get(f"{root}/preferences?theme=dark&back=%2Fhelp")
        assert chosen.url.path == f"{MOUNT}/help"
        for cookie in chosen.history[0].headers.get_list("set-cookie"):
            assert re.search(rf"; Path={MOUNT}(;|$)", cookie), cookie
        assert client.get(f"{root}/help/").url.path == f"{MOUNT}/help"
        assert f"Disallow: {MOUNT}/admin\n" in client.get(f"{root}/robots.txt").text


@pytest.mark.browser
def test_a_person_finds_the_way_below_a_path(root: str) -> None:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium, or make test as root, brings it")
    outside, problems = list[str](), list[str]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page = browser.new_context(locale="en-GB").new_page()
        page.set_default_timeout(30_000)
        page.on(
            "request",
            lambda r: None if r.url.startswith(f"{root}/") or r.url == root else outside.append(r.url),
        )
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: problems.append(str(e)))
        _walk(page, root)
        browser.close()
    assert outside == []
    assert problems == []


def _walk(page: Page, root: str) -> None:
    page.goto(f"{root}/")
    ground = page.evaluate("getComputedStyle(document.querySelector('header')).backgroundColor")
    assert ground != "rgba(0, 0, 0, 0)", "the style sheet is there"
    page.locator("#q").fill("harvesting")
    with page.expect_response(lambda r: "/answers" in r.url) as suggested:
        page.locator("#q").press_sequentially(" meta")
    assert suggested.value.status == 200
    page.locator("#q").press("Enter")
    page.wait_for_url(f"{root}/?q=harvesting*")
    page.locator(".mark").first.click()
    page.locator("ol.results a, .hit a, article a").first.click()
    page.wait_for_url(f"{root}/record/**")
    page.locator("#marked-link").click()
    page.locator("#marked ol a").click()
    page.wait_for_url(f"{root}/record/**")
    page.locator("#theme").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("link", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.wait_for_url(f"{root}/record/**")
    page.get_by_role("link", name="English").click()
    page.goto(f"{root}/admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{root}/admin")
    page.get_by_role("link", name="Jobs").click()
    page.wait_for_url(f"{root}/admin/jobs")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{root}/")
    page.goto(f"{root}/admin")
    page.wait_for_url(f"{root}/admin/sign-in?**")


def test_a_provider_alone_below_a_path_links_below_it(tmp_path: Path) -> None:
    bound, port = free_socket()
    settings = settings_for(tmp_path, port)
    settings = replace(settings, node=replace(settings.node, base_url=f"http://127.0.0.1:{port}{MOUNT}"))
    with Store.open(tmp_path) as store, shipped(serve.application(store, settings), settings, bound):
        for address in (MOUNT, f"{MOUNT}/", "/"):
            page = httpx.get(f"http://127.0.0.1:{port}{address}", trust_env=False)
            inside = {urlsplit(link).path for link in links(page) if "127.0.0.1" in link}
            assert inside and all(path.startswith(f"{MOUNT}/") for path in inside), address


def test_links_of_templates_know_of_the_path() -> None:
    """A link to a place within the node begins with {{ root }}, or is a value that `url` completes."""
    attribute = re.compile(r'(?<![\w-])(?:href|src|action|formaction|data-live|data-suggest)="([^"]*)')
    wrong = [
        f"{path.name}: {value}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for value in attribute.findall(path.read_text("utf-8"))
        if not (value.startswith(("{{ root }}/", "#")) or re.fullmatch(r"\{\{.*\|url \}\}", value))
    ]
    assert wrong == []
