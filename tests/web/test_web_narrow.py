"""No page is wider than a phone, whatever words a record holds."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from tests.web.nodes import free_socket, listening, settings_for

pytest.importorskip("playwright")

from playwright.sync_api import sync_playwright
from tests.web.odd import odd_records
from tests.web.test_web_browser import CHROMIUM

from indlet.service.index import follow
from indlet.store import Store
from indlet.web.app import application
from indlet.web.browse import KINDS

# Puts the contents of some pages at a time into this one, and tells which do not fit.
WIDEST = """async (addresses) => {
  const wide = [], main = document.querySelector("main");
  const content = async (address) => {
    const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
    return page.querySelector("main").innerHTML;
  };
  while (addresses.length) {
    const some = addresses.splice(0, 20);
    main.innerHTML = (await Promise.all(some.map(content))).join("<hr>");
    const width = document.documentElement.scrollWidth;
    if (width > 390) wide.push([some, width]);
  }
  return wide;
}"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_no_page_is_wider_than_a_phone(tmp_path: Path) -> None:
    bound, port = free_socket()
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            origin = tx.origin("source", "A source whose name is rather long, and longer still")
            records = list(odd_records(500))
            tx.put(origin, records)
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
            "/?q=gale&size=100",
            "/?q=gale&size=100&page=3",
            "/advanced",
            "/browse",
            "/marked",
            *(f"/browse/{kind}" for kind in KINDS),
        ]
        names = [quote(record.identifier) for record in records]
        pages += [f"/explain?q=gale&id={name}" for name in names[:6]]
        pages += [f"/record?id={name}" for name in names[:12]]
        rest = [f"/record?id={name}" for name in names[12:]]
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
                # The other records in one page: a visit to each would take minutes.
                if language == "en-GB":
                    assert page.evaluate(WIDEST, rest) == []
                context.close()
            browser.close()
