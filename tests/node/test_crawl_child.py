"""A node's crawl: in a process of its own, heard of while it runs, and stopped when asked."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from indlet.errors import IndletError
from indlet.node.crawl_child import crawl_in_child
from indlet.provider.summary import Summary
from indlet.settings import Crawl, Hierarchy, Settings
from indlet.store import Store


def settings(folder: Path, files: int = 3) -> Settings:
    (folder / "files").mkdir()
    for number in range(files):
        (folder / "files" / f"{number}.txt").write_text(f"wings of aeroplane {number}")
    hierarchy = Hierarchy(str(folder / "files"), name="files")
    return Settings(data=folder / "data", hierarchy=(hierarchy,), crawl=Crawl(settle_seconds=0.0, workers=1))


def held(given: Settings) -> int:
    with Store.open(given.data) as store, store.read() as view:
        return sum(not stored.deleted for stored in view.page(1000))


def test_a_crawl_in_a_child(tmp_path: Path) -> None:
    given = settings(tmp_path)
    heard: list[Summary] = []
    [summary] = crawl_in_child(given, heard.append)
    assert (summary.outcome, summary.records, summary.hierarchy) == ("complete", 3, "files")
    assert heard[-1] == summary
    assert held(given) == 3
    [again] = crawl_in_child(given, heard.append)
    assert again.idle
    with Store.open(given.data) as store, store.read() as view:
        assert [run.kind for run in view.runs()][:1] == ["crawl"]


def test_a_crawl_is_stopped_and_goes_on_later(tmp_path: Path) -> None:
    given = settings(tmp_path, files=600)
    stop = threading.Event()

    def report(summary: Summary) -> None:
        if summary.read or summary.total:
            stop.set()

    done = crawl_in_child(given, report, stop)
    assert all(summary.outcome == "interrupted" for summary in done)
    [summary] = crawl_in_child(given, lambda summary: None)
    assert summary.outcome == "complete"
    assert held(given) == 600


def test_why_there_is_no_crawl_is_told(tmp_path: Path) -> None:
    given = settings(tmp_path)
    with Store.open(given.data) as store, store.job("crawl"), pytest.raises(IndletError, match="crawl"):
        crawl_in_child(given, lambda summary: None)
