"""The cache of documents: off by default, private, bounded, and enough for another policy."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sidecar.platforms import EPrints, Kind, items
from tests.sidecar.test_sidecar_platforms import run, settings_for, states, terms

from indlet.settings import Analysis, Sidecar
from indlet.sidecar.cache import FOLDER, DocumentCache
from indlet.sidecar.run import fetch_documents
from indlet.sidecar.visit import FetchedFile
from indlet.store import open_store

CACHED = Sidecar(delay_seconds=0.0, cache_bytes=10_000_000)
UNSTEMMED = Analysis(stem=False)


def document(number: int, size: int = 1000) -> FetchedFile:
    return FetchedFile(
        f"https://a.org/{number}.pdf", bytes([number]) * size, "application/pdf", f'"{number}"'
    )


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def test_without_a_size_nothing_is_kept(tmp_path: Path) -> None:
    with EPrints(items(2, (Kind.OPEN,))) as server:
        run(server, tmp_path)
    assert not (tmp_path / FOLDER).exists()


def test_another_policy_needs_no_download(tmp_path: Path) -> None:
    with EPrints(items(4, (Kind.OPEN,))) as server:
        known = run(server, tmp_path, CACHED)
        assert len(files(tmp_path / FOLDER)) == 4
        first, before = terms(tmp_path), len(server.requests)
        settings = replace(settings_for(server, tmp_path, CACHED), analysis=UNSTEMMED)
        with open_store(tmp_path) as store:
            fetch_documents(store, settings, settings.source)
            again = states(store, server)
        assert not [seen for seen in server.requests[before:] if ".pdf" in seen.path]
    assert {one.policy for one in again.values()}.isdisjoint(one.policy for one in known.values())
    assert terms(tmp_path).keys() == first.keys() and terms(tmp_path) != first
    assert {name: one.files for name, one in again.items()} == {
        name: one.files for name, one in known.items()
    }


def test_without_the_cache_another_policy_downloads_again(tmp_path: Path) -> None:
    with EPrints(items(4, (Kind.OPEN,))) as server:
        run(server, tmp_path)
        before = len(server.requests)
        settings = replace(settings_for(server, tmp_path), analysis=UNSTEMMED)
        with open_store(tmp_path) as store:
            fetch_documents(store, settings, settings.source)
        assert [seen.status for seen in server.requests[before:] if ".pdf" in seen.path] == [200] * 4


def test_a_document_that_is_gone_leaves_the_cache(tmp_path: Path) -> None:
    with EPrints(items(1, (Kind.OPEN,))) as server:
        known = run(server, tmp_path, CACHED)
        for path in [path for path in server.routes if path.endswith(".pdf")]:
            del server.routes[path]
        settings = settings_for(server, tmp_path, CACHED)
        with open_store(tmp_path) as store:
            with store.write() as tx:
                tx.put_documents([one._replace(due=0) for one in known.values()])
            fetch_documents(store, settings, settings.source)
    assert files(tmp_path / FOLDER) == []


def test_a_document_of_an_uncommitted_visit_is_not_fetched_again(tmp_path: Path) -> None:
    with EPrints(items(3, (Kind.OPEN,))) as server:
        known = run(server, tmp_path, CACHED)
        settings = settings_for(server, tmp_path, CACHED)
        before = len(server.requests)
        waiting = [one._replace(state="waiting", files="[]", policy="", due=0) for one in known.values()]
        with open_store(tmp_path) as store:
            with store.write() as tx:
                tx.put_documents(waiting)
            fetch_documents(store, settings, settings.source)
            again = states(store, server)
        assert not [seen for seen in server.requests[before:] if ".pdf" in seen.path]
    assert {one.state for one in again.values()} == {"read"}


def test_a_record_that_becomes_restricted_leaves_the_cache(tmp_path: Path) -> None:
    with EPrints(items(2, (Kind.OPEN,))) as server:
        run(server, tmp_path, CACHED)
        plain = server.metadata
        rights = "<dc:rights>info:eu-repo/semantics/restrictedAccess</dc:rights></oai_dc:dc>"
        server.metadata = lambda item, prefix: plain(item, prefix).replace("</oai_dc:dc>", rights)  # type: ignore[method-assign]
        server.stamps[1] = "2024-06-20T00:00:00Z"
        known = run(server, tmp_path, CACHED)
    assert known[server.identifier(server.items[1])].reason == "restricted"
    assert len(files(tmp_path / FOLDER)) == 1


def test_a_cache_that_is_switched_off_is_emptied(tmp_path: Path) -> None:
    with EPrints(items(2, (Kind.OPEN,))) as server:
        run(server, tmp_path, CACHED)
        run(server, tmp_path)
    assert files(tmp_path / FOLDER) == []


def test_a_folder_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o777)
    DocumentCache(folder, 1000)
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError, match="belongs"):
        DocumentCache(tmp_path / "link", 1000)


def test_files_are_private_and_the_least_recently_used_go_first(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = DocumentCache(folder, 3500)
    for number in (1, 2, 3):
        cache.put(document(number))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in files(folder)} == {0o600}
    assert cache.get(document(1).url) is not None
    cache.put(document(4))
    kept = [number for number in (1, 2, 3, 4) if cache.get(document(number).url) is not None]
    assert kept == [1, 3, 4]
    assert sum(path.stat().st_size for path in files(folder)) <= 3500
    cache.put(document(5, 4000))  # larger than the whole cache
    assert cache.get(document(5).url) is None


def test_a_smaller_limit_holds_from_the_start_and_other_files_are_left_alone(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path, 10_000)
    for number in (1, 2, 3):
        cache.put(document(number))
        os.utime(files(tmp_path)[-1])
    (tmp_path / "unfinished-x").write_bytes(b"of a killed process")
    (tmp_path / "notes.txt").write_text("not ours")
    smaller = DocumentCache(tmp_path, 1500)
    assert sum(smaller.get(document(number).url) is not None for number in (1, 2, 3)) == 1
    assert len(files(tmp_path)) == 2 and (tmp_path / "notes.txt").exists()


def test_only_what_is_intact_and_has_the_digest_is_found(tmp_path: Path) -> None:
    cache = DocumentCache(tmp_path, 10_000)
    file = document(1)
    cache.put(file)
    found = cache.get(file.url, file.digest)
    assert found is not None and (found.body, found.etag, found.media_type) == (
        file.body,
        file.etag,
        file.media_type,
    )
    assert cache.get(file.url, "another") is None
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.get(file.url) is None
    assert files(tmp_path) == []


def test_a_disk_that_is_nearly_full_gets_no_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NearlyFull:
        f_bavail, f_frsize = 1, 4096

    cache = DocumentCache(tmp_path, 10_000)
    monkeypatch.setattr(os, "statvfs", lambda folder: NearlyFull())
    cache.put(document(1))
    assert files(tmp_path) == []
