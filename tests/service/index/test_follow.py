"""The index follows the store, whatever happened to either."""

from __future__ import annotations

import resource
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from indlet.errors import StoreError
from indlet.model import Record, TermVector
from indlet.service.index import engines, follow
from indlet.service.index.embedded.engine import Engine
from indlet.service.search.library import Library
from indlet.store import Store


def put(store: Store, *words: str) -> None:
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [Record(f"oai:s:{word}", {}, TermVector.of({word: 1, "all": 2})) for word in words])


def test_catching_up_applies_what_is_new_and_nothing_twice(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, "one", "two")
        assert follow.lag(store) == (2, 0)
        assert follow.catch_up(store) == follow.CaughtUp(2, 2)
        assert follow.catch_up(store) == follow.CaughtUp(0, 2)
        put(store, "three")
        heard: list[int] = []
        assert follow.catch_up(store, heard.append).applied == 1
        assert heard == [1]
        with Engine.open(engines.folder(store)) as engine:
            assert engine.searcher().df("all") == 3
            assert engine.stats().documents == 3


def test_a_long_feed_is_taken_in_pieces(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, *(f"w{n}" for n in range(6)))
        heard: list[int] = []
        assert follow.catch_up(store, heard.append, chunk=3) == follow.CaughtUp(6, 6)
        assert heard == [3, 6, 6]


def test_a_reindexed_index_is_the_same(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    with library.store.write() as tx:
        tx.delete(tx.origin("source", "sea"), ["oai:sea:1"])
    before = library.stats()["index"]["fingerprint"]
    assert library.reindex().applied == 5
    assert library.stats()["index"]["fingerprint"] == before
    assert library.stats()["index"]["segments"] == 1


def test_an_index_of_the_version_before_is_rebuilt(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    fingerprint = library.stats()["index"]["fingerprint"]
    folder = engines.folder(library.store)
    for file in folder.iterdir():
        file.unlink()
    zipfile.ZipFile(Path(__file__).parent / "fixtures/version-2.zip").extractall(folder)
    with Library.open(library.store.local_folder) as again:
        assert again.search("boundary").total == library.search("boundary").total
        assert again.stats()["index"]["fingerprint"] == fingerprint
    assert not any("00000001-c947b7c4" in file.name for file in folder.iterdir())


@pytest.mark.parametrize("wound", ["flip", "cut", "remove", "manifest", "nonsense"])
def test_a_damaged_index_is_made_anew_and_says_so(make_shelf: Callable[..., Library], wound: str) -> None:
    library = make_shelf()
    fingerprint = library.stats()["index"]["fingerprint"]
    folder = engines.folder(library.store)
    segment = next(folder.glob("seg-*"))
    match wound:
        case "flip":
            data = bytearray(segment.read_bytes())
            data[len(data) // 2] ^= 0xFF
            segment.write_bytes(data)
        case "cut":
            segment.write_bytes(segment.read_bytes()[:-100])
        case "remove":
            segment.unlink()
        case "manifest":
            manifest = folder / "manifest.json"
            manifest.write_text(manifest.read_text().replace("seg-", "sag-"))
        case "nonsense":
            (folder / "manifest.json").write_bytes(b"\xff\xfe nonsense")
    with Library.open(library.store.local_folder) as again:
        result = again.search("boundary")
        assert result.total == 3
        assert any("made anew" in note for note in result.notes)
        assert again.stats()["index"]["fingerprint"] == fingerprint
        assert again.search("boundary").notes == ()


def test_an_index_of_another_store_is_not_believed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a") as a, Store.open(tmp_path / "b") as b:
        put(a, "one", "two")
        put(b, "three", "four")
        follow.catch_up(a)
        shutil.copytree(engines.folder(a), engines.folder(b))
        progress = follow.catch_up(b)
        assert (progress.applied, progress.rebuilt) == (2, "it was made from another store")
        with Engine.open(engines.folder(b)) as engine:
            assert engine.searcher().df("three") == 1
            assert engine.searcher().df("one") == 0


def test_an_index_that_is_ahead_of_a_restored_store_is_not_believed(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, "one")
        follow.catch_up(store)
    backup = (tmp_path / "store.sqlite").read_bytes()
    with Store.open(tmp_path) as store:
        put(store, "two")
        follow.catch_up(store)
    for file in tmp_path.glob("store.sqlite*"):
        file.unlink()
    (tmp_path / "store.sqlite").write_bytes(backup)
    with Store.open(tmp_path) as store:
        progress = follow.catch_up(store)
        assert "ahead of its store" in progress.rebuilt
        with Engine.open(engines.folder(store)) as engine:
            assert engine.searcher().df("all") == 1


def test_a_standby_that_is_behind_does_not_erase_the_index_that_all_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path) as store:
        put(store, "one")
        follow.catch_up(store)
        index = engines.index_of(store)
        monkeypatch.setattr(follow, "_newest", lambda store: 0)
        monkeypatch.setattr(store, "shared", True)
        assert "ahead of its store" in follow._misleading(store, index)
        monkeypatch.setattr(store, "writable", False)
        assert not follow._misleading(store, index)


def test_a_search_beside_a_writer_answers_and_says_how_far_it_is(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    library.sync()
    with Engine.open(engines.folder(library.store), writable=True):
        put(library.store, "new")
        with pytest.raises(StoreError, match="another process"):
            follow.catch_up(library.store, engine=library.settings.index)
        progress, behind = follow.catch_up_or_wait(library.store, patience=0.0, engine=library.settings.index)
        assert (progress.applied, behind) == (0, 1)
    assert library.search("new").total == 1


def test_on_a_full_disk_the_index_that_is_there_goes_on_answering(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    assert library.search("flutter").total == 1
    put(library.store, "zebra")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))  # no file may grow beyond this
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            follow.catch_up(library.store, engine=library.settings.index)
        result = library.search("flutter zebra")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.total == 1
    assert "could not be brought up to date" in result.notes[0]
    assert library.search("flutter zebra").total == 2
    assert library.search("zebra").notes == ()


def test_a_reader_sees_what_another_process_committed(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    library.sync()
    with Library.open(library.store.local_folder, follow=False) as reader:
        assert reader.search("zebra").total == 0
        put(library.store, "zebra")
        assert reader.search("zebra").total == 0  # it does not follow by itself
        library.sync()
        assert reader.search("zebra").total == 1


def test_records_of_own_hierarchies_can_be_searched_by_field(tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            record = Record(
                "oai:own:1", {"title": ["Heated wings"]}, TermVector.of({"flutter": 1}, language="en")
            )
            tx.put(tx.origin("hierarchy", "own"), [record])
        assert [hit.identifier for hit in library.search("title:wing")] == ["oai:own:1"]
        library.reindex()
        assert library.search("title:heat").total == 1
