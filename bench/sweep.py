"""Every page of a running node, as a reader and on the desk: too wide for a phone, or hard to use for some?

    python -m bench.sweep URL [--most 80]

Follows the links of the node from its start page (and from its desk, if INDLET_PASSWORD is its password), one
page for each form of address, and looks at each in light and dark, on a phone and on a desktop: with axe for
what is serious or critical, and on the phone for what is wider than the screen. Ends with 1 if it found any.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections import Counter
from itertools import product
from urllib.parse import parse_qsl, urljoin, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, sync_playwright

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
ALIKE = 4  # pages with addresses of one form that are looked at
# Not pages.
FILES = re.compile(
    r"/(export|static|results\.|marked\.|feed\.|content|logo|oai|ft-oai|metrics|unapi|preferences)"
)


def form(address: str) -> str:
    """What is alike in addresses of the same kind of page."""
    parts = urlsplit(address)
    path = "/".join(parts.path.split("/")[:3]) if parts.path.startswith("/admin") else parts.path[:8]
    return path + "?" + "&".join(sorted({name for name, _ in parse_qsl(parts.query)}))


def addresses(page: Page, root: str, starts: list[str], most: int) -> list[str]:
    """The pages that links lead to, the nearest first."""
    found, forms = list(starts), Counter(map(form, starts))
    for address in found:  # grows
        if len(found) >= most:
            break
        page.goto(root + address)
        for link in page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)"):
            parts = urlsplit(urljoin(root, link))
            near = f"{parts.path}?{parts.query}" if parts.query else parts.path
            if f"{parts.scheme}://{parts.netloc}" != root or FILES.match(near) or near in found:
                continue
            if forms[form(near)] < ALIKE and "logout" not in near and "sign-out" not in near:
                forms[form(near)] += 1
                found.append(near)
    return found[:most]


def sign_in(context: BrowserContext, root: str, password: str) -> None:
    page = context.new_page()
    page.goto(f"{root}/admin")
    if page.locator("#password").count():
        page.fill("#password", password)
        page.click("main button[type=submit]")
    page.close()


def faults(page: Page, address: str, size: str) -> list[str]:
    page.goto(address)
    found = []
    width = page.evaluate("document.documentElement.scrollWidth")
    if size == "phone" and width > SIZES["phone"][0]:
        found.append(f"{width} px wide")
    return found + [
        f"{violation['id']}: {violation['nodes'][0]['html'][:120]}"
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--most", type=int, default=80, help="pages to look at")
    given = parser.parse_args()
    root, password = given.url.rstrip("/"), os.environ.get("INDLET_PASSWORD", "")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        wanted: list[str] = []
        for size, scheme in product(SIZES, ("light", "dark")):
            width, height = SIZES[size]
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                locale="en-GB",
            )
            if password:
                sign_in(context, root, password)
            page = context.new_page()
            page.set_default_timeout(120_000)
            if not wanted:
                wanted = addresses(page, root, ["/"] + (["/admin"] if password else []), given.most)
            for address in wanted:
                for fault in faults(page, root + address, size):
                    wrong += 1
                    print(f"{size} {scheme} {address[:100]}: {fault}", flush=True)
            context.close()
        browser.close()
    print(f"{len(wanted)} pages in 4 ways: {wrong} faults")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
