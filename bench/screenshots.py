"""Pictures of the portal for the documentation, taken in a real Chromium.

    python -m bench.screenshots [--out docs/images] [--url URL --record IDENTIFIER --query WORDS]

Without a URL a node is started over the invented collection of the tests. With one, that node is shown; its
operations desk only if the password is given as INDLET_PASSWORD.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from playwright.sync_api import Browser, sync_playwright

WIDE, PHONE = (1280, 900), (390, 844)


@dataclass(frozen=True)
class Shot:
    name: str
    path: str
    size: tuple[int, int] = WIDE
    scheme: str = "light"
    desk: bool = False
    first: str = ""  # a link on that page, to what is shown


def shots(query: str, record: str) -> list[Shot]:
    q = quote_plus(query)
    page = f"/record?id={quote(record, safe='')}"
    return [
        Shot("start", "/"),
        Shot("search", f"/?q={q}"),
        Shot("search-dark", f"/?q={q}", scheme="dark"),
        Shot("search-phone", f"/?q={q}", PHONE),
        Shot("compare", f"/compare?q={q}"),
        Shot("explain", f"/?q={q}", first="article .told"),
        Shot("explain-phone", f"/?q={q}", PHONE, "dark", first="article .told"),
        Shot("record", page),
        Shot("record-phone", page, PHONE, "dark"),
        Shot("desk", "/admin", desk=True),
        Shot("desk-source", "/admin/source", desk=True),
        Shot("desk-store", "/admin/store", desk=True),
    ]


@contextlib.contextmanager
def node() -> Iterator[tuple[str, str]]:
    """A node over the invented collection: its address, and the desk's password."""
    from tests.web.collection import fill
    from tests.web.nodes import PASSWORD, free_socket, listening, settings_for

    from indlet.service.index import follow
    from indlet.store import Store
    from indlet.web.app import application

    with tempfile.TemporaryDirectory() as place:
        bound, port = free_socket()
        with Store.open(Path(place)) as store:
            fill(store, 400)
            follow.catch_up(store)
            with listening(application(store, settings_for(Path(place), port)), bound):
                yield f"http://127.0.0.1:{port}", PASSWORD


def take(browser: Browser, root: str, password: str, wanted: list[Shot], out: Path) -> None:
    for shot in wanted:
        if shot.desk and not password:
            continue
        width, height = shot.size
        context = browser.new_context(
            base_url=root,
            viewport={"width": width, "height": height},
            device_scale_factor=2 if shot.size == PHONE else 1,
            color_scheme="dark" if shot.scheme == "dark" else "light",
            locale="en-GB",
        )
        page = context.new_page()
        if shot.desk:
            page.goto("/admin")
            page.fill("#password", password)
            page.click("main button[type=submit]")
        path = shot.path
        if path == "/admin/source":
            path = page.locator("tbody th a").nth(1).get_attribute("href") or "/admin"
        page.goto(path)
        if shot.first:
            page.goto(page.locator(shot.first).first.get_attribute("href") or path)
        page.wait_for_load_state("networkidle") if not shot.desk else page.wait_for_timeout(300)
        page.screenshot(path=out / f"{shot.name}.png")
        context.close()
        print(out / f"{shot.name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--url")
    parser.add_argument("--query", default="full-text retrieval ranking")
    parser.add_argument("--record", default="oai:north.example.org:1000")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with contextlib.ExitStack() as stack:
        if given.url:
            root, password = given.url, os.environ.get("INDLET_PASSWORD", "")
        else:
            root, password = stack.enter_context(node())
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        take(browser, root, password, shots(given.query, given.record), given.out)
        browser.close()


if __name__ == "__main__":
    main()
