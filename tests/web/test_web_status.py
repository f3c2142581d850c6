"""The desk with 200 sources: filters, search, pages, actions on many, and how it fits a screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from tests.web.nodes import PASSWORD, free_socket, listening, make_client, settings_for
from tests.web.test_web_desk import Operator

from indlet.model import JsonObject, Record
from indlet.service.index import follow
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store
from indlet.web.app import application

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
COUNT, FAILING, INCOMPLETE = 200, 4, 8
STOPS = """[...document.querySelectorAll('a[href],button,input:not([type=hidden]),select,summary,[tabindex]')]
  .filter(e => e.tabIndex >= 0 && e.getClientRects().length).length"""


def fill(store: Store) -> tuple[Source, ...]:
    """Sources with a record and thirty runs each; some failed the last time, some were cut short."""
    sources = tuple(Source(f"http://127.0.0.1:9/{i:03}/oai", f"Repository {i:03}") for i in range(COUNT))
    with store.write() as tx:
        for number, source in enumerate(sources):
            origin = tx.origin("source", source.name, source.public())
            tx.put(origin, [Record(f"oai:r{number}:1", {"title": [f"Record {number}"]})])
            for run in range(30):
                last = run == 29
                outcome, detail = "complete", JsonObject(records=1)
                if last and number < FAILING:
                    outcome, detail = "failed", {"reason": f"{source.url}?verb=Identify: status 500"}
                elif last and number < FAILING + INCOMPLETE:
                    outcome, detail = "incomplete", {"reason": "the list ended early"}
                tx.note_run(tx.start_run(origin, "harvest"), detail, outcome)
    follow.catch_up(store)
    return sources


def many(folder: Path, store: Store, port: int = 8080) -> Settings:
    return replace(settings_for(folder, port), source=fill(store), harvest=Harvest(every="1d", retries=0))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Operator]:
    with Store.open(tmp_path) as store:
        operator = Operator(make_client(store, many(tmp_path, store)))
        yield operator
        operator.client.app.state.desk.schedule.close()  # type: ignore[attr-defined]


def test_what_needs_somebody_comes_first_and_states_are_filters(desk: Operator) -> None:
    seen = desk.see("/admin")
    assert "All 200 4 failing 8 incomplete 188 healthy" in seen
    assert seen.index("Repository 003 failed") < seen.index("Repository 004 incomplete")
    assert "status 500" in seen and "127.0.0.1" not in seen, "the row names the source, not its address"
    assert "Repository 012" in seen and "Repository 199" not in seen and "1 / 10" in seen
    failing = desk.see("/admin?show=failing")
    assert "Repository 003" in failing and "Repository 004" not in failing and "all 4 listed" in failing
    assert "Repository 199" in desk.see("/admin?q=repository+199")
    assert "No source matches" in desk.see("/admin?q=nowhere&show=failing")
    assert "Repository 199" in desk.see("/admin?page=10") and "10 / 10" in desk.see("/admin?page=999999")
    page = desk.client.get("/admin").text
    assert page.count('class="ticks"') == 20 and "29 of the last 30 runs complete" in page


def test_many_sources_are_paused_resumed_and_harvested(desk: Operator) -> None:
    harvests = desk.client.app.state.desk.harvests  # type: ignore[attr-defined]

    def paused() -> set[str]:
        return {name for name, source in harvests.sources().items() if source.paused}

    desk.act("pause_all", show="incomplete")
    assert paused() == {f"Repository {i:03}" for i in range(FAILING, FAILING + INCOMPLETE)}
    assert "8 paused" in desk.see("/admin")
    desk.act("resume_all", q="Repository 005")
    assert len(paused()) == 7
    answer = desk.client.post(
        "/admin/act", data={"action": "harvest_all", "csrf": desk.csrf, "show": "failing"}
    )
    assert "4+harvests+started" in answer.headers["location"] and "show=failing" in answer.headers["location"]
    begun = {job.name for job in harvests.schedule.jobs() if job.started or job.runs}
    assert begun == {f"harvest Repository {i:03}" for i in range(FAILING)}
    assert "4 sources: Repository 000" in desk.see("/admin/log")


def test_the_start_page_counts_all_sources(desk: Operator) -> None:
    assert "200 sources" in desk.see("/").replace("sources 200", "200 sources")
    assert len(desk.client.get("/api/sources").json()["sources"]) == COUNT


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_two_hundred_sources_fit_three_screens_and_sixty_tab_stops(tmp_path: Path) -> None:
    bound, port = free_socket()
    with Store.open(tmp_path) as store, sync_playwright() as playwright:
        app = application(store, many(tmp_path, store, port))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with listening(app, bound):
            for width, scheme, language in ((1280, "light", "en"), (768, "dark", "de"), (390, "light", "de")):
                look(browser, f"http://127.0.0.1:{port}", width, {"color_scheme": scheme, "locale": language})
        browser.close()


def look(browser: Any, base: str, width: int, options: dict[str, str]) -> None:
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 800}, **options)
    page = context.new_page()
    page.goto("/admin")
    page.locator("#password").fill(PASSWORD)
    page.locator("main button").click()
    page.wait_for_selector("table.sources")
    for address in ("/admin", "/admin?show=failing", "/admin/add"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
        assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 800, (address, width)
        assert page.evaluate(STOPS) <= 60, (address, width)
        assert not Axe().run(page).response["violations"], (address, width)
    context.close()
