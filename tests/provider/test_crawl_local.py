"""A crawl of local files: what changes, what stays, and what is left alone."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from indlet.errors import StoreError
from indlet.provider.pipeline import crawl
from indlet.provider.workers import Outcome, ReadingJob, Workers
from indlet.settings import Access, Hierarchy, Limits
from indlet.text import policy_of

if TYPE_CHECKING:
    from tests.provider.conftest import Bench


def test_files_become_records(bench: Bench) -> None:
    bench.write("a.txt", "wings of aeroplanes")
    bench.write(
        "sub/deep/b.html", "<html><head><title>On flow</title></head><body>boundary layers</body></html>"
    )
    summary = bench.crawl()
    assert (summary.outcome, summary.files, summary.records, summary.status) == ("complete", 2, 2, 0)
    found = bench.records()
    assert set(found) == {"a", "sub/deep/b"}
    plain = found["a"]
    assert plain.metadata["title"] == ["wings of aeroplanes"]
    assert "date" not in plain.metadata  # when a file was written is no date of publication
    assert plain.metadata["type"] == ["Text"]
    assert plain.metadata["format"] == ["text/plain"]
    assert plain.metadata["identifier"] == ["http://127.0.0.1:8080/content/docs/a.txt"]
    assert bench.terms("a") == {"wing": 1, "aeroplan": 1}
    assert plain.properties["size"] == 19
    assert plain.properties["modified"] == "2017-07-14T02:40:00Z"
    assert plain.properties["restricted"] is False
    assert b"<dc:title>wings of aeroplanes</dc:title>" in plain.raw
    assert found["sub/deep/b"].metadata["title"] == ["On flow"]
    assert found["sub/deep/b"].sets == ("docs:sub:deep",)
    with bench.store.read() as view:
        assert view.sets() == [("docs", "docs"), ("docs:sub", "sub"), ("docs:sub:deep", "deep")]


class Idle(Workers):
    """Workers that nothing may be given to."""

    def map(self, jobs: Iterable[ReadingJob]) -> Iterator[Outcome]:
        assert [job.name for job in jobs] == []
        return iter(())


def test_unchanged_files_are_not_read(bench: Bench) -> None:
    for number in range(50):
        bench.write(f"{number % 7}/{number}.txt", f"number {number:02d}")
    bench.crawl()
    before = bench.seqs()
    (summary,) = crawl(
        bench.store, bench.settings, workers=Idle(1, Limits(), policy_of(bench.settings.analysis))
    )
    assert (summary.unchanged, summary.read, summary.touched, summary.records) == (50, 0, 0, 0)
    assert bench.seqs() == before


def test_a_touched_file_keeps_its_datestamp(bench: Bench) -> None:
    place = bench.write("a.txt")
    bench.crawl()
    before = bench.seqs()
    os.utime(place, (1_600_000_000, 1_600_000_000))
    summary = bench.crawl()
    assert (summary.touched, summary.read, summary.records) == (1, 0, 0)
    assert bench.seqs() == before
    assert bench.files()["a.txt"].modified == 1_600_000_000 * 10**9
    assert bench.crawl().unchanged == 1


def test_changed_content_of_equal_size_is_found_by_its_digest(bench: Bench) -> None:
    bench.write("a.txt", "one wing")
    bench.crawl()
    bench.write("a.txt", "two wind", at=1_600_000_000)
    assert bench.crawl().records == 1
    assert bench.terms("a") == {"two": 1, "wind": 1}


def test_content_replaced_under_the_old_time_is_noticed(bench: Bench) -> None:
    place = bench.write("a.txt", "one wing")
    bench.crawl()
    before = place.stat()
    place.write_text("two wind")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert bench.crawl().records == 1
    assert bench.terms("a") == {"two": 1, "wind": 1}


def test_gone_files_become_deletions(bench: Bench) -> None:
    bench.write("a.txt")
    bench.write("sub/b.txt")
    bench.crawl()
    shutil.rmtree(bench.root / "sub")
    summary = bench.crawl()
    assert (summary.deleted, summary.status) == (1, 0)
    assert bench.deleted() == {"sub/b"}
    assert set(bench.files()) == {"a.txt"}
    assert bench.crawl().deleted == 0
    bench.write("sub/b.txt")
    assert bench.crawl().records == 1
    assert bench.deleted() == set()


def test_the_last_file_can_be_deleted(bench: Bench) -> None:
    bench.write("a.txt")
    bench.crawl()
    (bench.root / "a.txt").unlink()
    assert bench.crawl().deleted == 1


def test_a_missing_root_deletes_nothing(bench: Bench) -> None:
    bench.write("a.txt")
    bench.crawl()
    bench.root.rename(bench.root.with_name("elsewhere"))
    summary = bench.crawl()
    assert (summary.outcome, summary.status) == ("unreachable", 1)
    assert "nothing was deleted" in summary.reason
    assert set(bench.records()) == {"a"}
    assert "/" in bench.failures()
    bench.root.with_name("elsewhere").rename(bench.root)
    assert bench.crawl().status == 0
    assert bench.failures() == {}


def test_an_empty_folder_in_the_place_of_the_root_deletes_nothing(bench: Bench) -> None:
    """What an unmounted file system leaves behind: an empty mount point."""
    bench.write("a.txt")
    bench.crawl()
    bench.root.rename(bench.root.with_name("elsewhere"))
    bench.root.mkdir()
    summary = bench.crawl()
    assert (summary.outcome, summary.deleted) == ("unreachable", 0)
    assert "--accept-empty" in summary.reason
    assert set(bench.records()) == {"a"}
    assert bench.crawl(accept_empty=True).deleted == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become somebody else")
def test_what_cannot_be_read_is_not_deleted(bench: Bench, tmp_path: Path) -> None:
    for place in ("a.txt", "shut/b.txt", "shut/deeper/c.txt", "open/d.txt"):
        bench.write(place)
    bench.write("e.txt")
    bench.crawl()
    (bench.root / "shut").chmod(0)
    (bench.root / "open/d.txt").unlink()
    bench.write("e.txt", "something else").chmod(0)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    for folder in (tmp_path / "data", *(tmp_path / "data").iterdir()):
        os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    try:
        summary = bench.crawl()
    finally:
        os.seteuid(0)
    assert (summary.outcome, summary.status) == ("partial", 3)
    assert summary.unread == {"shut": "Permission denied"}
    assert ("e.txt", "unreadable: Permission denied") in summary.named
    assert bench.deleted() == {"open/d"}
    assert set(bench.records()) == {"a", "shut/b", "shut/deeper/c", "e"}
    assert bench.failures()["shut/"].stage == "list"
    (bench.root / "shut").chmod(0o755)
    (bench.root / "e.txt").chmod(0o644)
    assert bench.crawl().outcome == "complete"
    assert bench.failures() == {}


def test_what_is_left_alone_is_named(bench: Bench, tmp_path: Path) -> None:
    bench.write("a.txt")
    bench.write(".hidden.txt")
    bench.write(".git/config")
    bench.write("draft.txt~")
    bench.write("indlet.toml", "[[source]]\ntoken = 'hush'")
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    (bench.root / "out.txt").symlink_to(outside)
    (bench.root / "nowhere.txt").symlink_to("missing")
    (bench.root / "loop").symlink_to(bench.root)
    (bench.root / "self").symlink_to("self")
    (bench.root / "secret.txt").symlink_to(".hidden.txt")
    os.mkfifo(bench.root / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(bench.root / "socket"))
        summary = bench.crawl()
    assert set(bench.records()) == {"a"}
    assert summary.status == 0
    reasons = dict(summary.named)
    assert reasons[".hidden.txt"] == reasons[".git"] == "hidden"
    assert reasons["draft.txt~"] == "matches an ignore pattern"
    assert reasons["indlet.toml"] == "indlet's own settings"
    assert reasons["out.txt"] == "a link that leads out of the root"
    assert "leads nowhere" in reasons["nowhere.txt"]
    assert "leads nowhere" in reasons["self"]
    assert reasons["loop"] == "a link to a folder"
    assert reasons["secret.txt"] == "a link to something hidden or ignored"
    assert reasons["pipe"] == reasons["socket"] == "neither file nor folder"
    assert sum(summary.skipped.values()) == len(summary.named) == 11


def test_a_link_inside_the_root_is_a_file_of_its_own(bench: Bench) -> None:
    bench.write("versions/report-3.txt")
    (bench.root / "report.txt").symlink_to("versions/report-3.txt")
    bench.crawl()
    assert set(bench.records()) == {"report", "versions/report-3"}


def test_the_store_is_not_crawled_when_it_lies_inside(bench: Bench) -> None:
    bench.at(str(bench.root.parent))
    bench.write("a.txt")
    summary = bench.crawl()
    assert ("data", "holds indlet's own data") in summary.named
    assert set(bench.records()) == {"docs/a"}


def test_a_file_that_is_still_changing_is_left_alone(bench: Bench) -> None:
    bench.write("old.txt", "first version")
    bench.crawl()
    now = 2_000_000_000
    bench.write("old.txt", "second ver", at=now)
    bench.write("new.txt", "half", at=now)
    bench.write("quiet.txt", "all of it", at=now)
    waited = []

    class Stop(threading.Event):
        """The pause, in which a writer goes on writing."""

        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            for name in ("old.txt", "new.txt"):
                with (bench.root / name).open("a") as file:
                    file.write(" ailerons")
            return False

    summary = bench.crawl(clock=lambda: now + 0.25, stop=Stop())
    assert waited == [0.75]
    assert sorted(summary.named) == [("new.txt", "still changing"), ("old.txt", "still changing")]
    found = bench.records()
    assert set(found) == {"old", "quiet"}
    assert bench.terms("old") == {"first": 1, "version": 1}
    assert bench.deleted() == set()
    bench.crawl(clock=lambda: now + 1e9)
    assert set(bench.records()) == {"old", "new", "quiet"}
    assert "aileron" in bench.terms("old")


def test_a_broken_file_is_a_failure_that_is_tried_again_when_it_changes(bench: Bench) -> None:
    bench.write("bad.pdf", b"%PDF-1.7 and then nothing of the kind")
    summary = bench.crawl()
    assert (summary.failed, summary.failures, summary.status) == (1, 1, 3)
    assert bench.failures()["bad.pdf"].reason
    summary = bench.crawl()
    assert (summary.read, summary.unchanged, summary.failures, summary.status) == (0, 1, 1, 3)
    os.utime(bench.root / "bad.pdf", (1_600_000_000, 1_600_000_000))
    summary = bench.crawl()
    assert (summary.read, summary.touched) == (0, 1)
    bench.write("bad.pdf", "a text after all", at=1_700_000_000)
    assert bench.crawl().status == 0
    assert bench.failures() == {}
    assert set(bench.records()) == {"bad"}


def test_other_limits_give_failures_another_chance(bench: Bench) -> None:
    bench.write("big.txt", "word " * 1000)
    small = replace(bench.settings.crawl, limits=Limits(file_bytes=100))
    bench.settings = replace(bench.settings, crawl=small)
    assert bench.crawl(own=True).failed == 1
    assert bench.crawl(own=True).read == 0
    bench.settings = replace(bench.settings, crawl=replace(small, limits=Limits()))
    summary = bench.crawl()
    assert (summary.read, summary.records, summary.failures) == (1, 1, 0)


def test_a_file_that_breaks_keeps_its_record_until_it_goes(bench: Bench) -> None:
    bench.write("a.pdf", "plain text for now")
    bench.crawl()
    assert set(bench.records()) == {"a"}
    bench.write("a.pdf", b"%PDF-1.7 broken", at=1_600_000_000)
    bench.crawl()
    assert set(bench.records()) == {"a"}
    assert set(bench.failures()) == {"a.pdf"}
    (bench.root / "a.pdf").unlink()
    bench.crawl()
    assert bench.deleted() == {"a"}
    assert bench.failures() == {}


def test_another_policy_reads_everything_anew(bench: Bench) -> None:
    bench.write("a.txt", "wings")
    bench.crawl()
    before = bench.seqs()
    bench.settings = replace(bench.settings, analysis=replace(bench.settings.analysis, stem=False))
    assert bench.crawl(own=True).records == 1
    assert bench.terms("a") == {"wings": 1}
    assert bench.seqs()["a"] > before["a"]
    assert bench.crawl(own=True).read == 0


def test_a_single_file_is_a_hierarchy(bench: Bench) -> None:
    place = bench.write("book.txt")
    bench.write("other.txt")
    bench.at(str(place))
    assert bench.crawl().files == 1
    assert set(bench.records()) == {"book"}
    place.unlink()
    assert bench.crawl().outcome == "unreachable"
    assert set(bench.records()) == {"book"}


def test_private_content_has_no_address(bench: Bench) -> None:
    bench.write("a.txt")
    bench.write("a.pdf", "also text")
    bench.at(str(bench.root), access=Access(content="private"))
    bench.crawl()
    record = bench.records()["a"]
    assert record.metadata["identifier"] == ["oai:test.example.org:docs/a"]
    assert record.properties["restricted"] is True
    assert "http://127" not in str(record.properties) + record.raw.decode()


def test_content_elsewhere_is_linked_there(bench: Bench) -> None:
    bench.write("sub/a b.txt")
    bench.at(str(bench.root), base_url="https://example.org/files/", rights="CC0")
    bench.crawl()
    record = bench.records()["sub/a%20b"]
    assert record.metadata["identifier"] == ["https://example.org/files/sub/a%20b.txt"]
    assert record.metadata["rights"] == ["CC0"]


def test_a_renamed_node_renames_its_records(bench: Bench) -> None:
    bench.write("a.txt")
    bench.crawl()
    node = replace(bench.settings.node, repository="library.example.org")
    bench.settings = replace(bench.settings, node=node)
    summary = bench.crawl()
    assert (summary.records, summary.deleted) == (1, 1)
    summary = bench.crawl()
    assert (summary.records, summary.deleted, summary.unchanged) == (0, 0, 1)


def test_several_hierarchies_keep_apart(bench: Bench, workers: Workers) -> None:
    bench.write("docs/a.txt")
    bench.write("more/docs/a.txt")
    roots = (Hierarchy(str(bench.root / "docs")), Hierarchy(str(bench.root / "more/docs")))
    settings = replace(bench.settings, hierarchy=roots)
    first, second = crawl(bench.store, settings, workers=workers)
    assert (first.hierarchy, second.hierarchy) == ("docs", "docs-2")
    with bench.store.read() as view:
        assert sorted(s.identifier for s in view.page(10)) == [
            "oai:test.example.org:docs-2/a",
            "oai:test.example.org:docs/a",
        ]


def test_one_crawl_at_a_time(bench: Bench) -> None:
    with bench.store.job("crawl"), pytest.raises(StoreError, match="busy with 'crawl'"):
        bench.crawl()


def test_a_crawl_that_is_stopped_is_completed_by_the_next(bench: Bench) -> None:
    for number in range(40):
        bench.write(f"{number}.txt", f"text {number}")
    stop = threading.Event()
    summary = bench.crawl(stop=stop, report=lambda s: stop.set() if s.done >= 10 else None)
    assert summary.outcome == "interrupted"
    assert summary.status == 1
    kept = len(bench.records())
    assert 10 <= kept < 40
    summary = bench.crawl()
    assert (summary.outcome, summary.unchanged) == ("complete", kept)
    assert len(bench.records()) == 40


def test_the_journal_tells_each_run(bench: Bench) -> None:
    bench.write("a.txt")
    bench.write(".b.txt")
    bench.crawl()
    with bench.store.read() as view:
        (run,) = view.runs()
    assert (run.kind, run.outcome) == ("crawl", "complete")
    assert run.detail["records"] == 1
    assert run.detail["named"] == [[".b.txt", "hidden"]]


def test_a_journal_of_nothing_stays_short(bench: Bench) -> None:
    bench.write("a.txt")
    for _ in range(5):
        bench.crawl()
    with bench.store.read() as view:
        assert [run.detail["records"] for run in view.runs()] == [0, 1]
        origin = view.origins()[0].id
    with bench.store.write() as tx:
        killed = tx.start_run(origin, "crawl")
    bench.crawl()
    with bench.store.read() as view:
        assert {run.id: run.outcome for run in view.runs()}[killed] == "interrupted"


def test_the_data_folder_itself_is_no_hierarchy(bench: Bench) -> None:
    bench.at(str(bench.store.local_folder))
    assert "own data" in bench.crawl().reason


@pytest.mark.parametrize("at", [-5_000_000_000, -1, 0, 15_000_000_000])
def test_times_far_away(bench: Bench, at: int) -> None:
    bench.settings = replace(bench.settings, crawl=replace(bench.settings.crawl, settle_seconds=0.0))
    bench.write("a.txt", at=at)
    assert bench.crawl().records == 1
    assert bench.crawl().unchanged == 1


def test_an_edit_that_metadata_does_not_show_is_no_news_for_metadata(bench: Bench) -> None:
    """Neither another body of the primary file nor another size of a copy changes what oai_dc says."""
    page, old = "<html><head><title>Wings</title></head><body>{}</body></html>", 1_500_000_000
    bench.write("a.html", page.format("a wing in the air and the river"), old)
    bench.write("a.txt", "a copy of it", old)

    def seqs(metadata_only: bool) -> list[int]:
        with bench.store.read() as view:
            return [stored.seq for stored in view.page(10, metadata_only=metadata_only)]

    bench.crawl()
    before, whole = seqs(True), seqs(False)
    bench.write("a.html", page.format("a wing in the air and the river of stone"), old + 1)
    bench.crawl()
    assert seqs(True) == before and seqs(False) != whole
    whole = seqs(False)
    bench.write("a.txt", "a longer copy of it", old + 2)
    bench.crawl()
    assert seqs(True) == before and seqs(False) != whole
    bench.write("a.html", page.format("a wing").replace("Wings", "Air"), old + 3)
    bench.crawl()
    assert seqs(True) != before
