"""A renamed folder is no loss: its records change their names, and nothing waits."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.provider.conftest import Bench


def cautious(bench: Bench, count: int = 12) -> None:
    """A hierarchy of that many documents, whose deletions wait if more than three go."""
    bench.settings = replace(bench.settings, crawl=replace(bench.settings.crawl, withhold_records=3))
    for number in range(count):
        bench.write(f"old/{number}.txt", f"wing number {number}")
    bench.crawl()


def test_a_renamed_folder_does_not_wait(bench: Bench) -> None:
    cautious(bench)
    (bench.root / "old").rename(bench.root / "new")
    summary = bench.crawl()
    assert (summary.deleted, summary.withheld, summary.status) == (12, 0, 0)
    assert set(bench.records()) == {f"new/{number}" for number in range(12)}
    assert set(bench.files()) == {f"new/{number}.txt" for number in range(12)}
    assert bench.crawl().deleted == 0


def test_what_is_lost_beside_a_rename_waits(bench: Bench) -> None:
    cautious(bench, 20)
    for number in range(6):
        (bench.root / "old" / f"{number}.txt").unlink()
    (bench.root / "old").rename(bench.root / "new")
    summary = bench.crawl()
    assert (summary.deleted, summary.withheld, summary.status) == (14, 6, 3)
    assert {name for name in bench.records() if name.startswith("old/")} == {f"old/{n}" for n in range(6)}
    assert bench.crawl().withheld == 6


def test_equal_files_that_vanish_are_no_renames(bench: Bench) -> None:
    bench.settings = replace(bench.settings, crawl=replace(bench.settings.crawl, withhold_records=3))
    for number in range(12):
        bench.write(f"old/{number}.txt", "an empty page")
    bench.crawl()
    shutil.rmtree(bench.root / "old")
    bench.write("new/1.txt", "an empty page")
    summary = bench.crawl()
    assert (summary.deleted, summary.withheld) == (1, 11)


def test_an_interrupted_crawl_recognises_the_rename_the_next_time(bench: Bench) -> None:
    cautious(bench)
    shutil.copytree(bench.root / "old", bench.root / "new")
    bench.crawl()
    shutil.rmtree(bench.root / "old")
    assert (bench.crawl().deleted, bench.crawl().withheld) == (12, 0)
