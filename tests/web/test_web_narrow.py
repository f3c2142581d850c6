"""No page is wider than a phone, whatever words a record holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.web.nodes import free_socket, listening, settings_for

pytest.importorskip("playwright")

from playwright.sync_api import sync_playwright
from tests.web.test_web_browser import CHROMIUM

from indlet.model import Record
from indlet.service.index import follow
from indlet.store import Store
from indlet.web.app import application

LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
ODD = {
    "oai:x:" + "y" * 150: {"title": ["gale " + "x" * 99], "description": [f"https://example.org/{'b' * 99}"]},
    "oai:x:2": {"title": [f"gale {LONG} {LONG}"], "creator": [LONG, "Wang, Wei"], "subject": ["s" * 100]},
    "oai:x:3": {"title": ["gale"], "identifier": [f"https://example.org/{'a' * 99}", "doi:10.5555/d"]},
    "oai:x:4": {"title": ["gale"], "relation": [f"https://example.org/{'r/' * 150}"], "type": ["t" * 90]},
    "oai:x:5": {"title": ["gale $\\mathcal{O}(" + "n" * 90 + ")$"], "rights": ["©" * 150]},
}  # fmt: skip


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_no_page_is_wider_than_a_phone(tmp_path: Path) -> None:
    bound, port = free_socket()
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            origin = tx.origin("source", "A source whose name is rather long, and longer still")
            tx.put(
                origin, [Record(name, metadata, sets=("a:" + "c" * 80,)) for name, metadata in ODD.items()]
            )
        follow.catch_up(store)
        pages = [
            "/",
            "/?q=gale",
            "/?q=gale+wave+sea",
            "/help",
            "/api/",
            "/compare?q=gale",
            "/record/oai:x:none",
            "/?q=%22",
        ]
        pages += [f"/record/{name}" for name in ODD] + [f"/explain?q=gale&id={name}" for name in ODD]
        with (
            listening(application(store, settings_for(tmp_path, port)), bound),
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for language in ("en-GB", "de-DE"):
                context = browser.new_context(viewport={"width": 390, "height": 844}, locale=language)
                page = context.new_page()
                for address in pages:
                    page.goto(f"http://127.0.0.1:{port}{address}", timeout=120_000)
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= 390, (language, address[:60], wide)
                context.close()
            browser.close()
