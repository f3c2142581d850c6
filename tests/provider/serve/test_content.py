"""Files that the crawler knows are served, whole or in part; nothing else below the root or above it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from indlet.settings import Access, Hierarchy
from indlet.store import FileState

Provider = Any  # of conftest.py


@pytest.fixture
def shelf(provider: Provider, tmp_path: Path) -> Provider:
    root = tmp_path / "shelf"
    (root / "a b").mkdir(parents=True)
    known = {
        "a b/ä#1.txt": ("hello wings", "text/plain"),
        "two\nlines.txt": ("line by line", "text/plain"),
        "page.html": ("<script>alert(1)</script>", "text/html"),
        "inner.txt": ("linked", "text/plain"),
    }
    (tmp_path / "secret.txt").write_text("secret")
    for name, (text, _) in known.items():
        if name != "inner.txt":
            (root / name).write_text(text)
    (root / ".hidden").write_text("hidden")
    (root / "failed.pdf").write_text("broken")
    (root / "inner.txt").symlink_to("a b/ä#1.txt")
    (root / "outer.txt").symlink_to(tmp_path / "secret.txt")
    (root / "folder.txt").mkdir()
    os.mkfifo(root / "pipe.txt")
    with provider.store.write() as tx:
        origin = tx.origin("hierarchy", "shelf")
        tx.put_files(
            origin,
            [FileState(name, name, 1, 0, "", "", kind, "primary", "") for name, (_, kind) in known.items()]
            + [
                FileState(n, n, 1, 0, "", "", "", "other", "")
                for n in ("outer.txt", "folder.txt", "pipe.txt")
            ]
            + [FileState("../secret.txt", "", 1, 0, "", "", "", "other", "")]
            + [FileState("failed.pdf", "", 1, 0, "", "", "", "failed", "")],
        )
    provider.configure(replace(provider.settings, hierarchy=(Hierarchy(str(root), "shelf"),)))
    return provider


URL = "/content/shelf/a%20b/%C3%A4%231.txt"


def test_a_known_file_is_served(shelf: Provider) -> None:
    response = shelf.client.get(URL)
    assert response.text == "hello wings"
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert shelf.client.head(URL).headers["content-length"] == "11"
    assert shelf.client.get("/content/shelf/inner.txt").text == "hello wings"


def test_parts_of_it_are(shelf: Provider) -> None:
    response = shelf.client.get(URL, headers={"Range": "bytes=6-"})
    assert (response.status_code, response.text) == (206, "wings")
    assert response.headers["content-range"] == "bytes 6-10/11"
    assert shelf.client.get(URL, headers={"Range": "bytes=50-"}).status_code == 416


@pytest.mark.parametrize(
    "asked",
    ["lines=1-2", "bytes", "bytes=", "bytes=3-1", "bytes=a-b", "bytes=-", "bytes=" + "0-1," * 99 + "0-1"],
)
def test_a_range_that_makes_no_sense_counts_as_none(shelf: Provider, asked: str) -> None:
    response = shelf.client.get(URL, headers={"Range": asked})
    assert (response.status_code, response.text) == (200, "hello wings")


def test_a_name_may_hold_a_line_break(shelf: Provider) -> None:
    assert shelf.client.get("/content/shelf/two%0Alines.txt").text == "line by line"


def test_no_charset_is_claimed_that_nobody_checked(shelf: Provider) -> None:
    assert shelf.client.get(URL).headers["content-type"] == "text/plain"


def test_an_unchanged_file_is_not_sent_again(shelf: Provider) -> None:
    first = shelf.client.get(URL)
    assert shelf.client.get(URL, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    since = {"If-Modified-Since": first.headers["last-modified"]}
    assert shelf.client.get(URL, headers=since).status_code == 304
    Path(shelf.settings.hierarchy[0].root, "a b/ä#1.txt").write_text("other wings!")
    assert shelf.client.get(URL, headers={"If-None-Match": first.headers["etag"]}).text == "other wings!"


def test_what_a_browser_would_run_is_in_a_sandbox(shelf: Provider) -> None:
    response = shelf.client.get("/content/shelf/page.html")
    assert response.headers["content-security-policy"].startswith("default-src 'none'; sandbox")


@pytest.mark.parametrize(
    "path",
    [
        "/content/",
        "/content/shelf",
        "/content/shelf/",
        "/content/shelf/.hidden",
        "/content/shelf/failed.pdf",
        "/content/shelf/outer.txt",
        "/content/shelf/folder.txt",
        "/content/shelf/pipe.txt",
        "/content/shelf/../secret.txt",
        "/content/shelf/%2e%2e/secret.txt",
        "/content/shelf/%2e%2e%2fsecret.txt",
        "/content/shelf/a%20b/../../secret.txt",
        "/content/shelf//etc/passwd",
        "/content/shelf/%2fetc%2fpasswd",
        "/content/shelf/a%00.txt",
        "/content/shelf/%ff",
        "/content/%2e%2e/secret.txt",
        "/content/other/page.html",
    ],
)
def test_nothing_else_is(shelf: Provider, path: str) -> None:
    response = shelf.client.get(path)
    assert response.status_code == 404
    assert "secret" not in response.text


def test_a_known_file_that_became_a_link_gives_nothing_that_is_left_alone(
    shelf: Provider, tmp_path: Path
) -> None:
    root = tmp_path / "shelf"
    shelf.configure(replace(shelf.settings, hierarchy=(Hierarchy(str(tmp_path), "shelf"),)))
    with shelf.store.write() as tx:
        names = ("shelf/page.html", "indlet.toml")
        states = [FileState(name, name, 1, 0, "", "", "text/html", "primary", "") for name in names]
        tx.put_files(tx.origin("hierarchy", "shelf"), states)
    (tmp_path / "indlet.toml").write_text("token = 'hush'")
    own = shelf.store.local_folder / "kept"
    own.parent.mkdir(exist_ok=True)
    own.write_text("hush")
    assert shelf.client.get("/content/shelf/shelf/page.html").status_code == 200
    assert shelf.client.get("/content/shelf/indlet.toml").status_code == 404
    for target in (own, root / ".hidden", tmp_path / "indlet.toml"):
        (root / "page.html").unlink()
        (root / "page.html").symlink_to(target)
        assert shelf.client.get("/content/shelf/shelf/page.html").status_code == 404, target


def test_a_name_that_comes_to_mean_another_file_meanwhile(
    shelf: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, real = tmp_path / "shelf" / "page.html", os.readlink

    def readlink(path: str) -> str:
        found = real(path)
        if path.startswith("/proc/") and found == str(place):
            place.unlink()
            place.symlink_to(tmp_path / "secret.txt")
        return found

    monkeypatch.setattr(os, "readlink", readlink)
    assert shelf.client.get("/content/shelf/page.html").text == "<script>alert(1)</script>"
    assert shelf.client.get("/content/shelf/page.html").status_code == 404


def test_files_are_closed_again(shelf: Provider) -> None:
    def opened() -> int:
        return sum(1 for _ in Path("/dev/fd").iterdir())

    shelf.client.get(URL)
    before = opened()
    etag = shelf.client.get(URL).headers["etag"]
    shelf.client.head(URL)
    shelf.client.get(URL, headers={"If-None-Match": etag})
    for ranges in ("bytes=0-3", "bytes=0-1,4-5", "bytes=99-", "bytes=5-1"):
        shelf.client.get(URL, headers={"Range": ranges})
    shelf.client.get("/content/shelf/.hidden")
    assert opened() == before


def test_private_content_stays_where_it_is(shelf: Provider) -> None:
    (hierarchy,) = shelf.settings.hierarchy
    for access, base_url, status in [
        (Access(content="private"), "", 403),
        (Access(content="elsewhere"), "http://files.org/", 403),
        (Access(tokens=("key",)), "", 404),
    ]:
        changed = replace(hierarchy, access=access, base_url=base_url)
        shelf.configure(replace(shelf.settings, hierarchy=(changed,)))
        assert shelf.client.get(URL).status_code == status
    assert shelf.client.get(URL, headers={"Authorization": "Bearer key"}).text == "hello wings"


def test_a_remote_hierarchy_is_not_served_from_here(shelf: Provider) -> None:
    (hierarchy,) = shelf.settings.hierarchy
    changed = replace(hierarchy, root="ftp://files.org/shelf")
    shelf.configure(replace(shelf.settings, hierarchy=(changed,)))
    assert shelf.client.get(URL).status_code == 404


def test_a_hierarchy_may_be_a_single_file(shelf: Provider) -> None:
    (hierarchy,) = shelf.settings.hierarchy
    changed = replace(hierarchy, root=f"{hierarchy.root}/page.html")
    shelf.configure(replace(shelf.settings, hierarchy=(changed,)))
    assert shelf.client.get("/content/shelf/page.html").status_code == 200
    assert shelf.client.get("/content/shelf/.hidden").status_code == 404
