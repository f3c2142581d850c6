"""A reader at work in a real browser, on odd records: each row of what a portal has to be good at."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.web.nodes import free_socket, listening, settings_for
from tests.web.odd import odd_records

pytest.importorskip("playwright")

from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.web.test_web_browser import PATIENCE, browser  # noqa: F401 - a fixture

from indlet.model import Record
from indlet.service.index import follow
from indlet.store import Store
from indlet.web.app import application

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE)
KNOWN = Record(
    "oai:odd:known",
    {
        "title": ["On the theory of very quiet gales: a first account"],
        "creator": ["Wang, Wei", "Smith, Anna"], "subject": ["Storms"], "date": ["2004"],
        "type": ["Journal article"],
        "source": ["Journal of Gales"],
        "identifier": ["https://doi.org/10.5555/KNOWN.1"], "format": ["application/pdf"], "language": ["en"],
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("reader")
    bound, port = free_socket()
    with Store.open(folder) as store:
        with store.write() as tx:
            tx.put(tx.origin("source", "Odd repository"), [*odd_records(80), KNOWN])
            tx.put(
                tx.origin("source", "Second source"), [Record("oai:odd:1", {"title": ["Namesake of a gale"]})]
            )
        follow.catch_up(store)
        with listening(application(store, settings_for(folder, port)), bound):
            yield f"http://127.0.0.1:{port}"


@pytest.fixture
def page(browser: Browser, node: str) -> Iterator[Page]:  # noqa: F811
    context: BrowserContext = browser.new_context(base_url=node, locale="en-GB")
    context.set_default_timeout(PATIENCE)
    found = context.new_page()
    errors: list[str] = []
    found.on("pageerror", lambda error: errors.append(str(error)))
    found.on(
        "request", lambda request: errors.append(request.url) if not request.url.startswith(node) else None
    )
    yield found
    context.close()
    assert not errors


def ask(page: Page, text: str) -> None:
    page.goto("/")
    page.locator("#q").fill(text)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#results-title")).to_be_visible()


def titles(page: Page) -> list[str]:
    return page.locator("article.result h2").all_inner_texts()


def test_1_the_right_record_of_two_with_one_identifier(page: Page) -> None:
    ask(page, "namesake")
    page.locator("article.result h2 a").first.click()
    expect(page.locator("h1")).to_have_text("Namesake of a gale")
    page.goto("/record/oai:odd:1")
    expect(page.locator("main li")).to_have_count(2)


@pytest.mark.parametrize(
    "text",
    ["10.5555/known.1", "https://doi.org/10.5555/KNOWN.1", "doi:10.5555/known.1", "oai:odd:known",
     "on the theory of very quiet gales a first account"],
)  # fmt: skip
def test_2_a_known_item_comes_first(page: Page, text: str) -> None:
    ask(page, text)
    assert titles(page)[0].startswith("On the theory of very quiet gales")


def test_3_people_as_values_facets_and_lists(page: Page) -> None:
    page.goto("/browse/creator?from=wang")
    entry = page.locator(".counted a").filter(has_text="Wang, Wei").first
    count = int(entry.locator(".count").inner_text().split()[0])
    entry.click()
    expect(page.locator("h1")).to_have_text("Wang, Wei")
    page.locator(".page-head").get_by_role("link", name=f"{count} records", exact=True).click()
    expect(page.locator("#results-title")).to_contain_text(f"{count} records")
    expect(page.locator(".chip")).to_contain_text("Author: Wang, Wei")
    page.locator("section[aria-labelledby=facet-subject] a").filter(
        has_text=re.compile("storms", re.I)
    ).click()
    expect(page.locator(".chip")).to_have_count(2)
    bylines = page.locator("article.result .byline").all_inner_texts()
    assert all(re.search("Wang, Wei|Wei Wang|more", line) for line in bylines)


def test_4_a_phrase_tells_where_it_is_exact(page: Page) -> None:
    ask(page, '"gale warnings"')
    expect(page.locator(".note")).to_contain_text("Odd repository came without word positions")


def test_5_accents_and_rare_languages(page: Page) -> None:
    for text in ("Müller", "Muller", "reseaux", "réseaux neuronaux"):
        ask(page, text)
        assert titles(page), text


def test_6_suggestions_of_people_and_titles_find_what_they_say(page: Page) -> None:
    page.goto("/")
    page.locator("#q").press_sequentially("on the theory of ve")
    option = page.locator("#suggestions li:not(.hit)").filter(has_text="On the theory of very quiet gales")
    expect(option).to_contain_text("title · 1")
    option.click()
    expect(page.locator("#results-title")).to_contain_text("1 record")
    page.goto("/")
    page.locator("#q").press_sequentially("smith an")
    option = page.locator("#suggestions li:not(.hit)").filter(has_text="Smith, Anna")
    expect(option).to_contain_text("person · 1")
    option.click()
    assert titles(page)[0].startswith("On the theory")


def test_7_facets_keep_their_siblings(page: Page) -> None:
    ask(page, "gale")
    kinds = page.locator("section[aria-labelledby=facet-format] a")
    before = kinds.count()
    kinds.filter(has_text="PDF").click()
    expect(page.locator(".chip")).to_have_count(1)
    assert kinds.count() == before
    kinds.filter(has_text="HTML").click()
    expect(page.locator(".chip")).to_have_count(2)


def test_8_mark_cite_save_history_and_print(page: Page) -> None:
    ask(page, "gale")
    page.locator(".order summary").click()
    page.get_by_label("Per page").select_option("20")
    page.wait_for_url("**size=20**")
    page.locator(".order summary").click()
    page.get_by_label("Sort by").select_option("title")
    page.wait_for_url("**sort=title**")
    page.locator("[data-mark]").first.click()
    expect(page.locator("#marked-link .count")).to_have_text("1")
    page.emulate_media(media="print")
    assert page.locator(".print-only").is_visible() and "gale" in page.locator(".print-only").inner_text()
    assert not page.locator(".facets").is_visible() and not page.locator(".masthead").is_visible()
    page.emulate_media(media="screen")
    page.goto("/record/oai:odd:known")
    page.locator("[data-mark]").click()
    page.locator(".cite summary").click()
    expect(page.locator("#reference-apa")).to_contain_text("Wang, W., & Smith, A. (2004).")
    page.locator("[data-copy=reference-apa]").click()
    expect(page.locator("[data-copy=reference-apa]")).to_have_text("Copied")
    page.goto("/marked")
    expect(page.locator(".marked-list li")).to_have_count(2)
    with page.expect_download() as saved:
        page.get_by_role("button", name="BibTeX").click()
    text = saved.value.path().read_text("utf-8")
    assert "@article" in text and "journal = {Journal of Gales}" in text
    page.locator(".marked-list .mark").first.click()
    expect(page.locator(".marked-list li")).to_have_count(1)
    page.goto("/")
    expect(page.locator("#history a")).to_have_text(["gale"])
    page.locator("#history button").click()
    page.reload()
    expect(page.locator("#history")).to_be_hidden()


def test_8_the_advanced_form(page: Page) -> None:
    page.goto("/advanced")
    page.get_by_label("Title", exact=True).fill("quiet gales")
    page.get_by_label("Author", exact=True).fill("Anna Smith")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#q")).to_have_value('+title:quiet +title:gales +creator:"Anna Smith"')
    assert len(titles(page)) == 1


def test_9_mathematics_in_titles(page: Page) -> None:
    ask(page, "decay")
    title = page.locator("article.result h2").filter(has_text="-decay of").first
    expect(title.locator("math").nth(0)).to_have_text("α")
    expect(title.locator("math").nth(1).locator("msup")).to_have_text("12")
    assert "α-decay of 12C" in (title.text_content() or "") and "$" not in (title.text_content() or "")
