"""Every page of the desk, narrow and wide, light and dark, in both languages: axe, and no overflow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.web.nodes import HASH, PASSWORD, free_socket, listening, settings_for

pytest.importorskip("playwright")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright
from tests.web.test_web_browser import CHROMIUM

from indlet.model import Failure, Record
from indlet.service.index import follow
from indlet.settings import Source, User
from indlet.store import Store
from indlet.web.admin.desk_log import DeskLog
from indlet.web.app import application
from indlet.web.auth import Session

LONG = "A source whose name is rather long, and " + "x" * 55
REASON = f"https://{'a' * 80}.example.org/oai: cannot be reached: {'b' * 120}"
PAGES = ("", "/add", "/source?name=Written", f"/source?name={LONG}", "/provider", "/store", "/jobs", "/log")


def fill(store: Store) -> None:
    with store.write() as tx:
        for name in (LONG, "Written"):
            origin = tx.origin("source", name, {"url": "http://127.0.0.1:9/oai"})
            tx.put(origin, [Record(f"oai:{name[:3]}:1", {"title": ["Wind"]})])
            tx.fail(origin, Failure(f"oai:x:{'y' * 150}", "harvest", "r" * 200, b"<dc>\x00"), due=1)
            run = tx.start_run(origin, "harvest")
            tx.note_run(run, {"reason": REASON, "records": 3}, "failed")
        tree = tx.origin("hierarchy", "papers", {"root": "/srv/" + "p" * 150})
        tx.fail(tree, Failure(f"a/{'f' * 150}.pdf", "extract", "encrypted"))
    log = DeskLog(store)
    for outcome in ("done", REASON):
        log.add(
            "edit",
            Session("i", 0, "c", "u" * 100, "operator"),
            "2001:db8::1",
            f"{LONG}: set={'s' * 99}",
            outcome,
        )
    follow.catch_up(store)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("desk")
    bound, port = free_socket()
    source = Source("http://127.0.0.1:9/oai", "Written", every="1d", paused=True)
    settings = replace(settings_for(folder, port), source=(source,), user=(User("otto", "operator", HASH),))
    with Store.open(folder) as store:
        fill(store)
        app = application(store, settings)
        app.state.desk.harvests.edit(
            "Written", {"every": "2h", "set": "physics", "index": "none", "token": "t"}
        )
        with listening(app, bound):
            yield f"http://127.0.0.1:{port}"


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
@pytest.mark.parametrize(
    ("width", "scheme", "locale", "user"),
    [(390, "light", "de-DE", "admin"), (390, "dark", "en-GB", "otto"), (1280, "dark", "en-GB", "admin")],
)
def test_every_page_of_the_desk(node: str, width: int, scheme: str, locale: str, user: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(
            base_url=node,
            viewport={"width": width, "height": 800},
            locale=locale,
            color_scheme="dark" if scheme == "dark" else "light",
        ).new_page()
        problems = []
        for address in ("/sign-in", *PAGES):
            page.goto(f"/admin{address}")
            if address == "/sign-in":
                problems += found(page, address, width)
                page.fill("#user", user)
                page.fill("#password", PASSWORD)
                page.click("main button[type=submit]")
                page.wait_for_url("**/admin")
            else:
                closed = page.locator("details:not([open]) > summary")
                for _ in range(min(2, closed.count())):
                    closed.first.click()
                problems += found(page, address, width)
        browser.close()
    assert not problems


def found(page: Page, address: str, width: int) -> list[str]:
    wide = page.evaluate("document.documentElement.scrollWidth")
    violations = Axe().run(page).response["violations"]
    told = [f"{address}: {v['id']} {[n['html'][:200] for n in v['nodes'][:3]]}" for v in violations]
    return told + ([f"{address} is {wide} wide"] if wide > width else [])
