"""The portal in a real Chromium: what a person does, by mouse, by keyboard, without scripts, on a phone.

Every test fails if the page logs an error or asks any other host for anything.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request, ViewportSize, expect, sync_playwright
from tests.web.collection import fill
from tests.web.nodes import PASSWORD, free_socket, listening, settings_for, until

from indlet.service.index import follow
from indlet.settings import Hierarchy
from indlet.store import Store
from indlet.web.app import application

pytestmark = pytest.mark.browser
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
RECORD = "/record/oai:north.example.org:1000"
PUBLIC = (
    "/",
    "/?q=harvesting+metadata",
    "/?q=%28wave",
    "/?q=harvetser",
    "/compare?q=index+ranking",
    "/explain?q=index+ranking+libretto&model=lm-dirichlet&id=oai:north.example.org:1000",
    RECORD,
    "/help",
    "/api/",
    "/advanced",
    "/browse",
    "/browse/subject",
    "/browse/creator?from=w",
    "/browse/year",
    "/marked",
    "/values/creator?q=wave",
    "/nowhere",
    "/about/author?name=Working+Group+A",
    "/about/source?name=North+Library",
    "/embed?q=wave",
    "/record/oai:none",
)
PHONE, DESKTOP = ViewportSize(width=390, height=844), ViewportSize(width=1280, height=900)
# Milliseconds before something that ought to appear is missed; a busy machine starts processes slowly.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)
DESK = (
    "/admin",
    "/admin/add",
    "/admin/source?name=Technical+Reports",
    *(f"/admin/{page}" for page in ("provider", "store", "jobs", "log", "alerts", "duplicates")),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium, or make test as root, brings it")
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
    ]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A whole node on loopback: portal, desk and provider."""
    folder = tmp_path_factory.mktemp("node")
    bound, port = free_socket()
    tree = tmp_path_factory.mktemp("tree")
    settings = settings_for(folder, port, hierarchy=(Hierarchy(root=str(tree), name="papers"),))
    with Store.open(folder) as store:
        fill(store)
        follow.catch_up(store)
        with listening(application(store, settings), bound):
            yield f"http://127.0.0.1:{port}"


@dataclass
class Watch:
    """What went on in the browser beside the test."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    expected: str = "^$"  # errors that the test provokes


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, node: str) -> Iterator[Visit]:
    """Opens a page in a context of its own; afterwards, nothing may have gone wrong in any of them."""
    opened: list[BrowserContext] = []
    watch = Watch()

    def asked(request: Request) -> None:
        if not request.url.startswith((node, "data:", "blob:")):
            watch.outside.append(request.url)

    def visit(address: str = "/", *, errors: str = "^$", **options: Any) -> Page:
        watch.expected = f"{watch.expected}|{errors}"
        context = browser.new_context(base_url=node, **{"locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda m: watch.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: watch.errors.append(str(e)))
        page.on("request", asked)
        page.goto(address)
        return page

    yield visit
    for context in opened:
        context.close()
    assert not watch.outside
    assert not [e for e in watch.errors if not re.search(watch.expected, e)]


def sign_in(page: Page) -> None:
    page.goto("/admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Operations desk")).to_be_visible()


def test_search_narrow_sort_and_turn_the_page(visit: Visit) -> None:
    page = visit("/")
    page.locator("#q").fill("wave")
    page.get_by_role("button", name="Search").click()
    heading = page.locator("#results-title")
    expect(heading).to_contain_text("records")
    whole = heading.inner_text()
    page.locator("section[aria-labelledby=facet-type] a").first.click()
    expect(page.locator(".chip")).to_have_count(1)
    assert heading.inner_text() != whole
    page.locator(".chip a").click()
    expect(heading).to_have_text(re.compile(re.escape(whole.split()[0])))
    page.locator(".years a").first.click()
    expect(page.locator(".chip")).to_contain_text("Year")
    page.go_back()
    page.locator(".order summary").click()
    page.get_by_label("Sort by").select_option("newest")
    page.wait_for_url("**sort=newest**")
    years = [
        int(t)
        for t in page.locator("article.result .byline").all_inner_texts()
        for t in re.findall(r"\d{4}", t)
    ]
    assert years == sorted(years, reverse=True)
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**page=2**")
    page.locator(".order summary").click()
    page.get_by_label("Ranking model").select_option("vsm")
    page.wait_for_url("**model=vsm**")


def test_suggestions_by_keyboard(visit: Visit) -> None:
    page = visit("/")
    box = page.locator("#q")
    box.press_sequentially("harves", delay=10)
    options = page.get_by_role("option")
    expect(options.first).to_be_visible()
    box.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    wanted = options.first.locator("span").first.inner_text()
    box.press("Enter")
    page.wait_for_url("**q=harves**")
    expect(page.locator("#q")).to_have_value(wanted)
    expect(page.locator("article.result")).not_to_have_count(0)


def test_compare_models(visit: Visit) -> None:
    page = visit("/?q=index+ranking")
    page.locator(".order summary").click()
    page.get_by_role("link", name="Compare ranking models").click()
    expect(page.locator(".ranking")).to_have_count(3)
    # Each line starts and ends at the middle of the rows that it joins.
    first = page.locator(".moves path").first
    identifier = first.get_attribute("data-record")
    rows = page.locator(f'li[data-record="{identifier}"]')
    line, row = first.bounding_box(), rows.first.bounding_box()
    assert line is not None and row is not None
    middle = row["y"] + row["height"] / 2
    assert min(abs(line["y"] - middle), abs(line["y"] + line["height"] - middle)) < 4
    rows.first.hover()
    expect(first).to_have_class(re.compile("lit"))
    page.get_by_label("Boolean").check()
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".ranking")).to_have_count(4)
    expect(page.locator("table tbody tr")).to_have_count(6)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_score_is_explained(visit: Visit, scripts: bool) -> None:
    page = visit("/?q=wave+pressure&model=lm-jm", java_script_enabled=scripts)
    page.get_by_role("link", name="Why this result?").first.click()
    expect(page.locator("#score")).not_to_be_empty()
    expect(page.get_by_role("heading", name="What each term adds")).to_be_visible()
    page.get_by_role("link", name="BM25", exact=True).click()
    expect(page.locator(".formula")).to_contain_text("avgdl")
    page.get_by_role("link", name="Back to the results").click()
    expect(page.locator("article.result").first).to_be_visible()


def test_a_record_and_its_exports(visit: Visit) -> None:
    page = visit("/?q=harvesting+metadata")
    title = page.locator("article.result h2 a").first.inner_text()
    page.locator("article.result h2 a").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.get_by_text("Cite", exact=True).click()
    kinds = ("BibTeX", "@"), ("RIS", "TY  - "), ("CSL-JSON", "["), ("EndNote", "%0 ")
    for label, start in (*kinds, ("Dublin Core", "<?xml"), ("JSON", "{")):
        if label == "Dublin Core":
            page.get_by_text("Cite", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("link", name=label, exact=True).click()
        assert Path(download.value.path()).read_text(encoding="utf-8").startswith(start)
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_url("**q=harvesting**")


def test_add_a_source_watch_it_pause_it_and_find_its_records(visit: Visit, slow_provider: str) -> None:
    page = visit("/")
    sign_in(page)
    page.get_by_role("link", name="Add a source").click()
    page.get_by_role("textbox", name="Address").fill(slow_provider)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("#tested")).to_contain_text("Slow Repository")
    assert page.locator("#tested .notice").bounding_box()["y"] < 600, "the answer is where the eye is"  # type: ignore[index]
    expect(page.locator(".samples li")).to_have_count(3)
    expect(page.get_by_label("Name", exact=True)).to_have_value("Slow Repository")
    page.get_by_label("Name", exact=True).fill("notes")
    page.get_by_role("button", name="Add and harvest").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("notes")
    expect(page.locator(".panel-head .badge")).to_have_text("running")
    expect(page.locator("progress")).to_have_attribute("value", re.compile("[1-9]"))
    page.get_by_role("link", name="Sources").click()
    expect(page.get_by_role("row", name=re.compile("notes"))).to_contain_text("running")
    page.get_by_role("link", name="notes").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".panel-head .badge")).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Harvest now").click()
    page.evaluate("window.same = true")
    expect(page.locator(".panel-head .badge")).to_have_text("complete")
    assert page.evaluate("window.same"), "it was shown without reloading"

    def found() -> bool:  # the index follows a moment later
        page.goto("/?q=quincunx")
        return "64 records" in page.locator("#results-title").inner_text()

    until(found)
    page.goto("/admin")
    page.get_by_role("button", name="Sign out").click()
    page.goto("/admin")
    expect(page.get_by_label("Password")).to_be_visible()


def test_by_keyboard_alone(visit: Visit) -> None:
    page = visit("/help")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.goto("/?q=*")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("opera")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=opera**")
    target = page.locator("article.result h2 a").first
    for _ in range(12):
        page.keyboard.press("Tab")
        if target.evaluate("e => e === document.activeElement"):
            break
    expect(target).to_be_focused()
    outline = target.evaluate("e => getComputedStyle(e).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/record/**")


def test_without_javascript(visit: Visit) -> None:
    page = visit("/", java_script_enabled=False)
    page.locator("#q").fill("wave")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("article.result")).to_have_count(10)
    page.locator("section[aria-labelledby=facet-type] a").first.click()
    expect(page.locator(".chip")).to_have_count(1)
    page.locator(".order summary").click()
    page.get_by_label("Sort by").select_option("oldest")
    page.locator(".sort").get_by_role("button", name="Apply").click()
    page.wait_for_url("**sort=oldest**")
    page.get_by_role("link", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("link", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.goto("/preferences?lang=en&back=/")
    sign_in(page)
    page.get_by_role("link", name="Technical Reports").click()
    failures = page.locator(".failure-groups > li").first
    expect(failures.locator("pre.raw").first).to_be_hidden()
    failures.locator("summary").nth(0).click()
    failures.locator("summary").nth(1).click()
    expect(failures.locator("pre.raw").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_sticks_out(visit: Visit, scheme: str) -> None:
    page = visit("/", viewport={"width": 360, "height": 740}, color_scheme=scheme, errors="40[04]")
    sign_in(page)
    for address in (*PUBLIC, *DESK):
        page.goto(address)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, f"{address} is {wide} wide"
    page.goto("/?q=wave")
    narrow = page.locator("details.facets")
    expect(narrow).not_to_have_attribute("open", re.compile(".*"))
    page.get_by_text("Filter the results").click()
    expect(page.locator("#facet-type")).to_be_visible()


def test_the_appearance_is_remembered(visit: Visit) -> None:
    page = visit("/", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("link", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.goto("/help")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("link", name="Light")).to_be_visible()


@pytest.mark.parametrize("addresses", [PUBLIC, DESK])
def test_axe_finds_nothing(visit: Visit, addresses: tuple[str, ...]) -> None:
    page = visit("/", errors="40[04]")
    sign_in(page)
    schemes: tuple[Literal["dark", "light"], ...] = ("light", "dark")
    for address in addresses:
        page.goto(address)
        for scheme, size in product(schemes, (PHONE, DESKTOP)):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.set_viewport_size(size)
            found = Axe().run(page).response["violations"]
            told = [(v["id"], v["help"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found]
            assert not told, f"{address} ({scheme}, {size['width']} px): {told}"


def test_nothing_is_asked_of_other_hosts(visit: Visit) -> None:
    page = visit("/?q=wave")
    hosts = page.evaluate("performance.getEntriesByType('resource').map(e => new URL(e.name).host)")
    assert set(hosts) == {urlsplit(page.url).netloc}
