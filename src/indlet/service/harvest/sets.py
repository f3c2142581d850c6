"""What a source calls its sets: asked for when there is something to name, and never at a harvest's cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from indlet.oai import answers
from indlet.service.harvest import dates
from indlet.service.harvest.client import NoAnswer
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.store import Store

AGAIN: Final = timedelta(days=1)
PAGES: Final = 1000
SETS: Final = 100_000
LENGTH: Final = 300  # characters of a name


def due(state: Mapping[str, Any], known: Mapping[str, str], now: datetime) -> bool:
    """Whether to ask for names: there are sets, and some are new and nameless, or a day has gone by."""
    if not known:
        return False
    last = state.get("sets", {})
    asked = dates.parse(last.get("asked", ""))
    nameless = sum(not name for name in known.values())
    return asked is None or now - asked >= AGAIN or nameless > last.get("nameless", 0)


def learn(
    store: Store, origin: int, asker: PageFetcher, url: str, state: dict[str, Any], now: datetime
) -> str:
    """What went wrong in bringing the names of a source's sets up to date; nothing if that was not due.

    Only sets that records are in are named: a list without end of others costs no room.
    """
    with store.read() as view:
        known = dict(view.sets([origin]))
    if not due(state, known, now):
        return ""
    told, trouble = names(asker, url)
    changed = {spec: told[spec] for spec in known if told.get(spec, known[spec]) != known[spec]}
    if changed:
        with store.write() as tx:
            for spec, name in changed.items():
                tx.name_set(origin, spec, name)
            tx.meta("set_names", tx.meta_value("set_names", 0) + 1)  # for those who remember them
    nameless = sum(not (changed.get(spec) or name) for spec, name in known.items())
    state["sets"] = {"asked": dates.write(now, True), "nameless": nameless}
    return trouble


def names(asker: PageFetcher, url: str) -> tuple[dict[str, str], str]:
    """setSpec -> name by ListSets, as far as it goes, and what ended it early."""
    found: dict[str, str] = {}
    arguments = {"verb": "ListSets"}
    tokens: set[str] = set()
    while len(tokens) < PAGES and len(found) < SETS:
        try:
            page = asker.patiently(url, arguments, attempts=2)
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
