"""What a source calls its sets: asked for when there is something to name, and never at a harvest's cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from indlet import datestamps as dates
from indlet.net.client import NoAnswer
from indlet.oai import answers
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.source_state import SetNames
from indlet.store import Store

AGAIN: Final = timedelta(days=1)
PAGES: Final = 1000
SETS: Final = 100_000
LENGTH: Final = 300  # characters of a name


def due(last: SetNames | None, known: Mapping[str, str], now: datetime) -> bool:
    """Whether to ask for names: there are sets, and some are new and nameless, or a day has gone by."""
    if not known:
        return False
    last = last or SetNames()
    asked = dates.parse(last.asked)
    nameless = sum(not name for name in known.values())
    return asked is None or now - asked >= AGAIN or nameless > last.nameless


def learn(
    store: Store, origin: int, fetcher: PageFetcher, url: str, last: SetNames | None, now: datetime
) -> tuple[SetNames | None, str]:
    """Bring the names of a source's sets up to date, if that is due: when that was, and what went wrong.

    Only sets that records are in are named: a list without end of others costs no room.
    """
    with store.read() as view:
        known = dict(view.sets([origin]))
    if not due(last, known, now):
        return last, ""
    told, trouble = names(fetcher, url)
    changed = {spec: told[spec] for spec in known if told.get(spec, known[spec]) != known[spec]}
    if changed:
        with store.write() as tx:
            for spec, name in changed.items():
                tx.name_set(origin, spec, name)
            tx.count_up("set_names")  # for caches of names
    nameless = sum(not (changed.get(spec) or name) for spec, name in known.items())
    return SetNames(dates.write(now, True), nameless), trouble


def names(fetcher: PageFetcher, url: str) -> tuple[dict[str, str], str]:
    """setSpec -> name by ListSets, as far as it goes, and what ended it early."""
    found: dict[str, str] = {}
    arguments = {"verb": "ListSets"}
    tokens: set[str] = set()
    while len(tokens) < PAGES and len(found) < SETS:
        try:
            page = fetcher.page_retried(url, arguments, attempts=2)
        except NoAnswer as e:
            # A repository without sets says so; one that does not know the verb has none either.
            return found, "" if e.failed.trouble == "fatal" and not tokens else str(e)
        found.update((spec, name[:LENGTH]) for spec, name in answers.set_names(page) if name)
        if not page.token:
            return found, ""
        if page.token in tokens:
            break
        tokens.add(page.token)
        arguments = {"verb": "ListSets", "resumptionToken": page.token}
    return found, f"{url}: ListSets goes on without end"
