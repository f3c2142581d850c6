"""A harvest of resources from lists as they are given: what a hostile or restless repository may say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from indlet.formats.metadata import http_header
from indlet.formats.metadata.oai_didl import Component
from indlet.service.mirror.fetch import Fetcher
from indlet.service.mirror.journal import MirrorJournal
from indlet.service.mirror.page_scan import ListedRecord
from indlet.service.mirror.pages import ListPage, ListReader
from indlet.service.mirror.run import Mirror, Mirrored

URL = "http://127.0.0.1:9/oai"
DATE = "2026-01-02T03:04:05Z"


class GivenLists(ListReader):
    """Pages of records by metadata format, and single records by identifier."""

    def __init__(
        self, pages: Mapping[str, Sequence[ListPage]], records: Mapping[str, ListedRecord] | None = None
    ) -> None:
        self._given, self._records = pages, records or {}

    def prefixes(self) -> list[str]:
        return list(self._given)

    def pages(self, verb: str, arguments: Mapping[str, str], token: str = "") -> Iterator[ListPage]:
        yield from self._given[arguments["metadataPrefix"]]

    def ask(self, arguments: Mapping[str, str]) -> ListPage:
        return page(self._records[arguments["identifier"]])


def page(*records: ListedRecord, token: str = "") -> ListPage:
    return ListPage(DATE, token, records)


def by_value(name: str, content: bytes) -> ListedRecord:
    url = f"http://h/{name}"
    return ListedRecord(url, False, [Component(url, "text/plain", content, (), digest(content))])


def by_header(name: str, content: bytes, *fields: tuple[str, str]) -> ListedRecord:
    return ListedRecord(f"http://h/{name}", False, [Component(headers=fields, sha256=digest(content))])


def deleted(name: str) -> ListedRecord:
    return ListedRecord(f"http://h/{name}", True, None)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def mirrored(folder: Path, lists: ListReader) -> Mirrored:
    folder.mkdir(exist_ok=True)
    fetcher = Fetcher(URL, "", (), 1000, 1.0)
    with MirrorJournal(folder).opened() as journal:
        return Mirror(folder, lists, fetcher, journal).run(URL)


def test_a_record_that_a_list_names_twice_is_as_it_was_named_last(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    mirrored(copy, GivenLists({"oai_didl": [page(by_value("a", b"one"), by_value("b", b"two"))]}))
    headers = page(by_header("a", b"one"), by_header("b", b"two"), deleted("a"), deleted("b"))
    now = {"http://h/a": deleted("a"), "http://h/b": by_value("b", b"two")}  # removed and put back
    done = mirrored(copy, GivenLists({"oai_didl": [], http_header.PREFIX: [headers]}, now))
    assert not done.failed
    assert [path.name for path in (copy / "h").iterdir()] == ["b"]


def test_a_length_of_thousands_of_digits_is_none(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    mirrored(copy, GivenLists({"oai_didl": [page(by_value("a", b"one"))]}))
    headers = page(by_header("a", b"one", ("Content-Length", "9" * 5000)))
    done = mirrored(copy, GivenLists({"oai_didl": [], http_header.PREFIX: [headers]}))
    assert (done.unchanged, done.failed) == (1, {})
