"""A harvest of resources from lists as they are given: what a hostile or restless repository may say."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from indlet import durable
from indlet.errors import RemoteError, StoreError
from indlet.oai.read import Problem
from indlet.site import http_header
from indlet.site.mirror import journal
from indlet.site.mirror.archive import WarcFile
from indlet.site.mirror.fetch import Fetcher
from indlet.site.mirror.journal import Kept, MirrorJournal
from indlet.site.mirror.page_scan import ListedRecord
from indlet.site.mirror.pages import ListPage, ListReader
from indlet.site.mirror.paths import OWN, path_of
from indlet.site.mirror.run import Mirror, Mirrored
from indlet.site.oai_didl import Component

URL = "http://127.0.0.1:9/oai"
DATE = "2026-01-02T03:04:05Z"


class GivenLists(ListReader):
    """Pages of records by metadata format, and single records by identifier."""

    def __init__(
        self,
        pages: Mapping[str, Sequence[ListPage]],
        records: Mapping[str, ListedRecord | ListPage] | None = None,
    ) -> None:
        self._given, self._records = pages, records or {}

    def prefixes(self) -> list[str]:
        return list(self._given)

    def pages(self, verb: str, arguments: Mapping[str, str], token: str = "") -> Iterator[ListPage]:
        yield from self._given[arguments["metadataPrefix"]]

    def ask(self, arguments: Mapping[str, str]) -> ListPage:
        found = self._records[arguments["identifier"]]
        return found if isinstance(found, ListPage) else page(found)


def page(*records: ListedRecord, token: str = "", problems: Sequence[Problem] = ()) -> ListPage:
    return ListPage(DATE, token, records, problems=problems)


def by_value(name: str, content: bytes, *fields: tuple[str, str]) -> ListedRecord:
    url = f"http://h/{name}"
    return ListedRecord(url, False, [Component(url, "text/plain", content, fields, digest(content))])


def by_header(name: str, content: bytes, *fields: tuple[str, str]) -> ListedRecord:
    return ListedRecord(f"http://h/{name}", False, [Component(headers=fields, sha256=digest(content))])


def deleted(name: str) -> ListedRecord:
    return ListedRecord(f"http://h/{name}", True, None)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def mirrored(folder: Path, lists: ListReader) -> Mirrored:
    folder.mkdir(exist_ok=True)
    fetcher = Fetcher(URL, "", (), 1000, 1.0)
    with MirrorJournal(folder).opened() as opened:
        return Mirror(folder, lists, fetcher, opened).run(URL)


def test_a_record_that_a_list_names_twice_is_as_it_was_named_last(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    mirrored(copy, GivenLists({"oai_didl": [page(by_value("a", b"one"), by_value("b", b"two"))]}))
    headers = page(by_header("a", b"one"), by_header("b", b"two"), deleted("a"), deleted("b"))
    now = {"http://h/a": deleted("a"), "http://h/b": by_value("b", b"two")}  # removed and put back
    done = mirrored(copy, GivenLists({"oai_didl": [], http_header.PREFIX: [headers]}, now))
    assert not done.failed
    assert [path.name for path in (copy / "h").iterdir()] == ["b"]


def test_a_file_that_would_fill_the_disk_is_owed(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    lists = GivenLists({"oai_didl": [page(by_value("a", b"one"))]}, {"http://h/a": by_value("a", b"one")})
    with MirrorJournal(copy).opened() as opened:
        run = Mirror(copy, lists, Fetcher(URL, "", (), 1000, 1.0), opened)
        run.free_disk = 1 << 60
        assert "bytes are free on the disk" in run.run(URL).failed["http://h/a"]
    assert not mirrored(copy, lists).failed
    assert (copy / "h" / "a").read_bytes() == b"one"


def test_a_length_of_thousands_of_digits_is_none(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    mirrored(copy, GivenLists({"oai_didl": [page(by_value("a", b"one"))]}))
    headers = page(by_header("a", b"one", ("Content-Length", "9" * 5000)))
    done = mirrored(copy, GivenLists({"oai_didl": [], http_header.PREFIX: [headers]}))
    assert (done.unchanged, done.failed) == (1, {})


def test_a_record_without_an_identifier_is_told_and_asked_for_by_nobody(tmp_path: Path) -> None:
    problems = [Problem("", "a record without identifier", b"")] * 2
    lists = GivenLists({"oai_didl": [page(by_value("a", b"one"), problems=problems)]})
    done = mirrored(tmp_path / "copy", lists)
    assert done.records == 3 and list(done.failed.values()) == ["a record without identifier"] * 2
    done = mirrored(tmp_path / "copy", GivenLists({"oai_didl": []}))  # `ask` would know of none
    assert not done.failed


@pytest.mark.parametrize(
    "answer",
    [
        ListPage(DATE, "", (), (("cannotDisseminateFormat", "not any more"),)),
        page(problems=[Problem("http://h/a", "cannot be read", b"")]),
        page(by_value("b", b"two")),
        page(),
    ],
)
def test_a_changed_file_that_a_single_record_does_not_bring_is_owed(tmp_path: Path, answer: ListPage) -> None:
    copy = tmp_path / "copy"
    mirrored(copy, GivenLists({"oai_didl": [page(by_value("a", b"one"), by_value("b", b"two"))]}))
    headers = page(by_header("a", b"new"), by_header("b", b"two", ("Content-Length", "9999999")))
    records = {"http://h/a": answer}
    lists = GivenLists({"oai_didl": [], http_header.PREFIX: [headers]}, records)
    assert set(mirrored(copy, lists).failed) == {"http://h/a"}
    lists = GivenLists({"oai_didl": [], http_header.PREFIX: []}, records)
    assert set(mirrored(copy, lists).failed) == {"http://h/a"}  # still, and told again
    records["http://h/a"] = page(by_value("a", b"new"))
    assert not mirrored(copy, lists).failed and (copy / "h" / "a").read_bytes() == b"new"


def test_a_file_whose_time_cannot_be_set_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, real = tmp_path / "copy", os.utime
    dated = ("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
    mirrored(copy, GivenLists({"oai_didl": [page(by_value("a", b"one"))]}))

    def utime(place: str, times: tuple[float, float]) -> None:
        if str(place).endswith("/h/a"):
            raise PermissionError(errno.EPERM, "not the owner", place)
        real(place, times)

    monkeypatch.setattr(os, "utime", utime)
    lists = GivenLists(
        {"oai_didl": [], http_header.PREFIX: [page(by_header("a", b"one", dated))]},
        {"http://h/a": by_value("a", b"one", dated)},
    )
    done = mirrored(copy, lists)
    assert (done.by_value, done.unchanged, done.failed) == (1, 0, {})
    assert (copy / "h" / "a").stat().st_mtime == 1767323045


# A power cut


class Disk:
    """What is on the disk for certain: names as they were when their folder was synced, and contents."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._fsync = folder, os.fsync
        self._journal = folder / OWN / "journal.jsonl"
        self._names: dict[Path, set[str]] = {}
        self._once: set[Path] = set()  # what was there at some time
        self._contents: set[tuple[str, str]] = set()
        self.broken = ""  # the name of a file that cannot be synced
        patch.setattr(os, "fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        self.law()
        self._fsync(descriptor)
        self._keep(Path(f"/proc/self/fd/{descriptor}").readlink())

    def whole(self) -> Callable[[str], None]:
        """In place of `durable.file_system_sync`."""

        def sync(folder: str) -> None:
            self.law()
            for place in (self._folder, *self._folder.rglob("*")):
                self._keep(place)

        return sync

    def _keep(self, place: Path) -> None:
        if place.name == self.broken:
            raise OSError(errno.EIO, "Input/output error")
        if place.is_dir():
            self._names[place] = {one.name for one in place.iterdir()}
            self._once |= set(place.iterdir())
        else:
            self._contents.add((place.name, digest(place.read_bytes())))

    def noted(self) -> dict[str, list[Kept]]:
        """What a journal says that has come to the disk by itself, up to its last line."""
        found: dict[str, list[Kept]] = {}
        for line in self._journal.read_text().splitlines() if self._journal.exists() else ():
            told = json.loads(line or "{}")
            if "files" in told:
                found[told["record"]] = [Kept(**file) for file in told["files"]]
        return found

    def law(self) -> None:
        """If the power were cut now: what the journal has came to the disk, what it has no more is gone.

        A file that was removed or changed since is named by the list once more: the journal tells from when.
        """
        for identifier, files in self.noted().items():
            assert files or not self._is_there(path_of(identifier)), identifier
            for file in files:
                place = self._folder / file.path
                folders = [one for one in place.parents if one.is_relative_to(self._folder / "h")]
                assert {place, *folders} <= self._once, identifier
                assert (place.name, file.sha256) in self._contents, identifier

    def _is_there(self, path: str) -> bool:
        place = self._folder
        for name in path.split("/"):
            if name not in self._names.get(place, ()):
                return False
            place /= name
        return True


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path / "copy", monkeypatch)


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("every", [0.0, 1000.0])
def test_what_the_journal_names_is_on_the_disk_before_it(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, few: int, every: float
) -> None:
    monkeypatch.setattr(durable, "FEW", few)
    monkeypatch.setattr(durable, "file_system_sync", disk.whole)
    monkeypatch.setattr(journal, "EVERY", every)
    copy = tmp_path / "copy"
    first = [
        page(by_value("d/a", b"one"), by_value("d/b", b"two"), token="2"),
        page(by_value("c/c", b"three")),
    ]
    mirrored(copy, GivenLists({"oai_didl": first}))
    disk.law()
    assert set(disk.noted()) == {"http://h/d/a", "http://h/d/b", "http://h/c/c"}
    mirrored(
        copy, GivenLists({"oai_didl": [page(by_value("d/a", b"other"), deleted("d/b"), deleted("c/c"))]})
    )
    disk.law()
    assert set(disk.noted()) == {"http://h/d/a"}


def test_a_run_that_breaks_off_writes_what_it_has(tmp_path: Path, disk: Disk) -> None:
    class Breaking(GivenLists):
        def pages(self, verb: str, arguments: Mapping[str, str], token: str = "") -> Iterator[ListPage]:
            yield from super().pages(verb, arguments, token)
            raise RemoteError("gone")

    with pytest.raises(RemoteError):
        mirrored(tmp_path / "copy", Breaking({"oai_didl": [page(by_value("a", b"one"), token="2")]}))
    disk.law()
    assert set(disk.noted()) == {"http://h/a"}
    with MirrorJournal(tmp_path / "copy").opened() as again:
        assert again.state.token == "2"


def test_what_the_disk_does_not_take_is_not_noted(tmp_path: Path, disk: Disk) -> None:
    disk.broken = "a"
    with pytest.raises(StoreError, match="cannot be written to the disk: Input/output error"):
        mirrored(tmp_path / "copy", GivenLists({"oai_didl": [page(by_value("a", b"one"))]}))
    assert not disk.noted()


def test_an_archive_is_on_the_disk_before_the_journal_names_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "EVERY", 0.0)
    seen: list[bytes] = []
    with MirrorJournal(tmp_path).opened() as opened:
        opened.also_durable.append(lambda: seen.append((tmp_path / OWN / "journal.jsonl").read_bytes()))
        opened.keep("http://h/a", [Kept("h/a", "http://h/a", 3, digest(b"one"))])
        opened.keep("http://h/b", [Kept("h/b", "http://h/b", 3, digest(b"two"))])
    assert [b"h/a" in before for before in seen] == [False, True, True]
    assert [b"h/b" in before for before in seen] == [False, False, True]


def test_many_files_are_synced_by_one_call_for_their_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir()
    places = [str(tmp_path / "d" / str(number)) for number in range(durable.FEW + 1)]
    for place in places:
        Path(place).write_bytes(b"x")
    (tmp_path / "d" / "0").unlink()
    one_by_one: list[int] = []
    monkeypatch.setattr(os, "fsync", one_by_one.append)
    durable.sync_changes(str(tmp_path), places)
    assert not one_by_one, "this system has syncfs"
    durable.sync_changes(str(tmp_path), places[: durable.FEW])
    assert len(one_by_one) == durable.FEW - 1 + 2  # all but the one that is gone, and two folders
    del one_by_one[:]
    durable.sync_changes(str(tmp_path), ())
    assert not one_by_one


def test_a_record_writes_no_lines_into_an_archive_but_its_own(tmp_path: Path) -> None:
    from warcio.archiveiterator import ArchiveIterator

    file, archive = tmp_path / "file", tmp_path / "copy.warc.gz"
    file.write_bytes(b"bytes")
    fields = (
        ("A", "x\r\nEvil: 1\r\n\r\nbody"),
        ("Evil\r\nB", "2"),
        ("\u00dc", "3"),
        ("C", "\u00e4\u20ac\u2028"),
    )
    with WarcFile(archive) as opened:
        opened.add("http://h/\u00e4 b%20c\r\nEvil: 4", fields, file)
    with archive.open("rb") as raw:
        (record,) = list(ArchiveIterator(raw))[-1:]
        told = [name for name, _ in (*record.rec_headers.headers, *record.http_headers.headers)]
    assert record.rec_headers["WARC-Target-URI"] == "http://h/%C3%A4%20b%20c%0D%0AEvil:%204"
    assert {"A", "C"} <= set(told) and not {"Evil", "B", "\u00dc"} & set(told)
