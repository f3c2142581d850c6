"""A crawl in a process of its own, so that walking a large tree never holds up a page.

The parent hands over the settings and hears how far each hierarchy is, a line of JSON at a time. SIGTERM and
the end of the parent stop it; what it had is committed, and the next crawl goes on there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import asdict
from typing import Final

import orjson

from indlet import process
from indlet.errors import IndletError, StoreUnavailable
from indlet.node import children
from indlet.provider.pipeline import crawl
from indlet.provider.summary import Report, Summary
from indlet.settings import Settings
from indlet.store import open_configured

_EVERY: Final = 0.25  # seconds between lines


def crawl_in_child(
    settings: Settings,
    report: Report,
    stop: threading.Event | None = None,
    only: Collection[str] | None = None,
) -> list[Summary]:
    """Crawl what the settings name, or `only` some; how each ended. `report` follows the child."""
    stop = stop or threading.Event()
    done: list[Summary] = []
    problem = ""

    def hear(line: bytes) -> None:
        nonlocal problem
        told = orjson.loads(line)
        if isinstance(told, str):
            problem = told
            return
        summary = Summary(**told)
        report(summary)
        if summary.outcome != "running":
            done.append(summary)

    status = children.run(__name__, (settings, only), hear, stop)
    if children.store_lost(status):
        raise StoreUnavailable(problem)
    if problem or (status and not stop.is_set()):
        raise IndletError(problem or f"the crawling process ended with status {status}")
    return done


def main() -> None:
    """The child."""
    settings, only = process.receive_task()
    stop = process.stop_event()
    last = 0.0

    def report(summary: Summary) -> None:
        nonlocal last
        if summary.outcome != "running" or time.monotonic() - last > _EVERY:
            last = time.monotonic()
            children.tell(asdict(summary))

    with children.ending(), open_configured(settings) as store:
        crawl(store, settings, report=report, stop=stop, only=only)


if __name__ == "__main__":
    main()
