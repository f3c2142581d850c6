"""The pages of a provider in a real Chromium: readable, linked, accessible, self-contained."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from indlet.settings import Settings
from indlet.store import Store

pytestmark = pytest.mark.browser
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
Provider = Any  # of conftest.py
PAGES = (
    "/",
    "/oai?verb=Identify",
    "/oai?verb=ListSets",
    "/oai?verb=ListMetadataFormats",
    "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc",
    "/oai?verb=ListRecords&metadataPrefix=oai_dc_tf_basic",
    "/ft-oai?verb=ListIndexFormats",
    "/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_compact",
    "/oai?verb=Nonsense",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium, or make test as root, brings it")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    found = context.new_page()
    problems: list[str] = []
    found.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("request", lambda r: None if "127.0.0.1" in r.url else problems.append(f"asked for {r.url}"))
    yield found
    context.close()
    # A browser asks for an icon of its own accord.
    assert [p for p in problems if "favicon" not in p and "404" not in p] == []


@pytest.fixture
def root(filled: Provider, running: Callable[[Store, Settings], str]) -> str:
    return running(filled.store, filled.settings)


def test_pages_are_accessible_and_fit_a_phone(page: Page, root: str) -> None:
    axe = Axe()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for path in PAGES:
            page.goto(root + path)
            found = axe.run(page)
            assert found.violations_count == 0, f"{path} {scheme}: {found.generate_report()}"
    page.set_viewport_size({"width": 360, "height": 700})
    for path in PAGES:
        page.goto(root + path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, f"{path} is {width} pixels wide"


def test_a_person_finds_the_way(page: Page, root: str) -> None:
    page.goto(root)
    expect(page.get_by_role("heading", level=1)).to_have_text("Wings")
    page.get_by_role("link", name="records", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Records")
    expect(page.locator("main")).to_contain_text("1 to 10 of 25")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("main")).to_contain_text("11 to 20 of 25")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("main")).to_contain_text("Deleted")
    expect(page.get_by_role("link", name="Next page")).to_have_count(0)
    # The identifier holds a percent sign, which has to be encoded once more in a link.
    page.get_by_role("link", name="oai:x.org:papers/0024%20a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Record")
    expect(page.get_by_role("heading", level=2)).to_have_text("Report 24 on <wings> & air")
    page.get_by_role("link", name="papers:b").click()
    expect(page.locator("main")).to_contain_text("1 to 10 of 15")
    page.get_by_role("link", name="Sets").click()
    page.get_by_role("link", name="a", exact=True).click()
    expect(page.locator("main")).to_contain_text("set papers:a")


def test_the_index_part_can_be_looked_into(page: Page, root: str) -> None:
    page.goto(f"{root}/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_compact")
    terms = page.get_by_text("air term0 wing")
    expect(terms).not_to_be_visible()
    page.get_by_text("Index part: 3 words, language en").first.click()
    expect(terms).to_be_visible()
