"""The file of a record, as it is read for a page: from the site's folder, and only if it is the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from indlet.settings import Site
from indlet.site.disseminate import read_unchanged


@pytest.fixture(params=["with /proc", "without"], autouse=True)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS, for one, has no /proc."""
    real = os.readlink

    def readlink(path: str, *, dir_fd: int | None = None) -> str:
        if path.startswith("/proc/"):
            raise FileNotFoundError(path)
        return real(path, dir_fd=dir_fd)

    if request.param == "without":
        monkeypatch.setattr(os, "readlink", readlink)


def read(root: Path, name: str, like: Path | None = None) -> bytes | None:
    """The file of that name, where its record tells of one like another."""
    found = (like or root / name).stat()
    return read_unchanged(Site(str(root), "http://h"), f"http://h/{name}", found.st_size, found.st_mtime_ns)


def test_a_file_of_the_site_is_read_and_no_other(tmp_path: Path) -> None:
    root, outside = tmp_path / "site", tmp_path / "site-old"
    for folder in (root / "d", outside):
        folder.mkdir(parents=True)
    (root / "d" / "a").write_bytes(b"inside")
    (outside / "b").write_bytes(b"secret")
    (root / "inner").symlink_to("d/a")
    (root / "outer").symlink_to(outside / "b")
    (root / "folder").symlink_to(outside)
    os.mkfifo(root / "pipe")
    assert read(root, "d/a") == read(root, "inner") == b"inside"
    assert read(root, "outer") is None
    assert read(root, "folder/b") is None
    assert read(root, "../site-old/b") is None
    assert read(root, "d") is None
    assert read(root, "pipe") is None
    assert read(root, "d/a", like=outside / "b") is None
    assert read(root, "d/none", like=root / "d" / "a") is None


def test_a_site_whose_folder_was_moved_is_read_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "one" / "site").mkdir(parents=True)
    (tmp_path / "one" / "site" / "a").write_bytes(b"inside")
    root = tmp_path / "link" / "site"
    (tmp_path / "link").symlink_to("one")
    assert read(root, "a") == b"inside"
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two")
    (tmp_path / "one" / "site").mkdir(parents=True)
    (tmp_path / "one" / "site" / "b").write_bytes(b"secret")
    (root / "outer").symlink_to(tmp_path / "one" / "site" / "b")
    assert read(root, "a") == b"inside"
    assert read(root, "outer") is None


def test_a_name_that_is_given_to_another_file_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, real = tmp_path / "site", os.path.realpath
    root.mkdir()
    (root / "a").write_bytes(b"inside")
    (tmp_path / "b").write_bytes(b"secret")
    (root / "outer").symlink_to(tmp_path / "b")
    swapped = {f"{root}/outer": str(root / "a")}
    monkeypatch.setattr(os.path, "realpath", lambda place: swapped.get(place) or real(place))
    assert read(root, "outer") is None
