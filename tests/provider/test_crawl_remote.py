"""Hierarchies behind real servers behave as local ones do; whatever fails there deletes nothing."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from indlet.errors import HierarchyError, MissingExtra, SettingsError
from indlet.provider.connect import answer_deadline, connect
from indlet.provider.hierarchy import open_tree
from indlet.provider.pipeline import _scratch
from indlet.settings import Crawl, Hierarchy, Limits

if TYPE_CHECKING:
    from tests.provider.conftest import Bench


def _servers() -> Any:
    """The module beside this one; test modules are not importable by name."""
    spec = spec_from_file_location("indlet_test_servers", Path(__file__).with_name("servers.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


servers = _servers()

# Servers that answer an empty tree in the same way as one that is not there, or that know no time.
KINDS = ["ftp", "http", "nginx", "webdav", "s3", "sftp"]


@contextmanager
def served(kind: str, bench: Bench) -> Iterator[Callable[[], None]]:
    """The bench's root behind a server; call what comes out to bring a copying server up to date."""
    with servers.SERVERS[kind](bench.root) as (root, options):
        bench.at(root, options=options)
        servers.sync(bench.root)
        yield lambda: servers.sync(bench.root)


@pytest.mark.parametrize("kind", KINDS)
def test_a_remote_tree_is_crawled_as_a_local_one(kind: str, bench: Bench) -> None:
    bench.write("a.txt", "wings of aeroplanes")
    bench.write("sub/deep er/b c.html", "<html><title>On flow</title><body>boundary layers</body></html>")
    bench.write("sub/é&%25+;=.txt", "awkward name")
    bench.write("100%25 #x/c.txt", "awkward folder")
    bench.write("sub/.hidden.txt", "not seen")
    bench.write("bad.pdf", b"%PDF-1.7 broken")
    expected = {"a", "sub/deep%20er/b%20c", "sub/%C3%A9%26%2525%2B%3B%3D", "100%2525%20%23x/c"}
    with served(kind, bench) as sync:
        summary = bench.crawl()
        assert summary.reason == ""
        assert set(bench.records()) == expected
        assert (summary.files, summary.records, summary.failures) == (5, 4, 1)
        assert bench.terms("a") == {"wing": 1, "aeroplan": 1}
        assert bench.records()["sub/deep%20er/b%20c"].metadata["title"] == ["On flow"]
        assert set(bench.failures()) == {"bad.pdf"}

        before = bench.seqs()
        summary = bench.crawl()
        assert (summary.unchanged, summary.read, summary.records, summary.deleted) == (5, 0, 0, 0)
        assert bench.seqs() == before

        bench.write("a.txt", "rudders of aeroplanes", at=1_600_000_000)
        bench.write("new.txt", "tail")
        shutil.rmtree(bench.root / "sub/deep er")
        sync()
        summary = bench.crawl()
        assert (summary.records, summary.deleted) == (2, 1)
        assert set(bench.records()) == expected - {"sub/deep%20er/b%20c"} | {"new"}
        assert bench.terms("a")["rudder"] == 1
    before = bench.seqs()
    summary = bench.crawl()  # the server is gone
    assert (summary.outcome, summary.deleted, summary.status) == ("unreachable", 0, 1)
    assert bench.seqs() == before


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_remote_root_deletes_nothing_unless_told(kind: str, bench: Bench) -> None:
    bench.write("a.txt")
    with served(kind, bench) as sync:
        bench.crawl()
        (bench.root / "a.txt").unlink()
        sync()
        summary = bench.crawl()
        assert (summary.outcome, summary.deleted) == ("unreachable", 0)
        assert set(bench.records()) == {"a"}


@pytest.mark.parametrize("kind", ["ftp", "old-ftp", "nginx"])
def test_a_folder_that_refuses_to_be_listed_deletes_nothing(kind: str, bench: Bench, tmp_path: Path) -> None:
    bench.write("a.txt")
    bench.write("shut/b.txt")
    with served(kind, bench), ExitStack() as stack:
        bench.crawl()
        if kind != "nginx":
            # The server's own file system says no, as it does to a server that is not root.
            stack.enter_context(_ftp_refuses("shut"))
        else:
            bench.write("shut/.nolist")
        summary = bench.crawl()
        assert (summary.outcome, summary.deleted, summary.status) == ("partial", 0, 3)
        assert list(summary.unread) == ["shut"]
        assert set(bench.records()) == {"a", "shut/b"}


@contextmanager
def _ftp_refuses(name: str) -> Iterator[None]:
    from pyftpdlib.filesystems import AbstractedFS

    listdir = AbstractedFS.listdir

    def refuse(self: Any, path: str) -> Any:
        if path.endswith(name):
            raise PermissionError(13, "Permission denied")
        return listdir(self, path)

    AbstractedFS.listdir = refuse
    try:
        yield
    finally:
        AbstractedFS.listdir = listdir


def test_ftp_names_need_not_be_unicode(bench: Bench) -> None:
    raw = os.fsencode(bench.root) + b"/caf\xe9.txt"
    with open(raw, "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"coffee")
    os.utime(raw, (1_500_000_000, 1_500_000_000))
    with served("ftp", bench):
        summary = bench.crawl()
        assert (summary.reason, summary.records) == ("", 1)
        assert set(bench.records()) == {"caf%E9"}
        assert bench.crawl().unchanged == 1


def test_a_large_remote_file_is_not_fetched_beyond_the_limit(bench: Bench) -> None:
    bench.write("big.txt", "word " * 10_000)
    bench.write("small.txt", "word")
    limited = replace(bench.settings.crawl, limits=Limits(file_bytes=1000))
    bench.settings = replace(bench.settings, crawl=limited)
    with served("ftp", bench):
        summary = bench.crawl()
        assert (summary.records, summary.failures) == (1, 1)
        assert "limits.file_bytes" in bench.failures()["big.txt"].reason
        assert bench.crawl().read == 0


def test_a_single_remote_file(bench: Bench) -> None:
    bench.write("sub/book.txt")
    bench.write("sub/other.txt")
    for kind in ("http", "ftp"):
        with servers.SERVERS[kind](bench.root) as (root, options):
            bench.at(f"{root}sub/book.txt", options=options)
            assert bench.crawl().files == 1
    assert set(bench.records()) == {"book"}


def test_web_roots_are_their_own_address(bench: Bench) -> None:
    bench.write("a b.txt")
    with served("http", bench):
        bench.crawl()
        root = bench.settings.hierarchy[0].root
        assert bench.records()["a%20b"].metadata["identifier"] == [f"{root}a%20b.txt"]
    with servers.SERVERS["ftp"](bench.root) as (root, options):
        bench.at(root, options=options)
        bench.crawl()
        stored = str(bench.records()["a%20b"])
        assert "s3cret" not in stored
        with bench.store.read() as view:
            assert "s3cret" not in str(view.origins()) + str(view.runs())


def archives(bench: Bench) -> dict[str, Path]:
    bench.write("a.txt", "wings")
    bench.write("sub/b.txt", "flow")
    bench.write("sub/.c.txt", "hidden")
    found = {ending: bench.root.parent / f"docs{ending}" for ending in (".zip", ".tar", ".tar.gz", ".tar.xz")}
    for ending, place in found.items():
        if ending == ".zip":
            with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
                for path in sorted(bench.root.rglob("*")):
                    file.write(path, path.relative_to(bench.root))
        else:
            mode: Any = {".tar": "w", ".tar.gz": "w:gz", ".tar.xz": "w:xz"}[ending]
            with tarfile.open(place, mode) as tar:
                tar.add(bench.root, arcname="")
    return found


@pytest.mark.parametrize("ending", [".zip", ".tar", ".tar.gz", ".tar.xz"])
def test_archives(ending: str, bench: Bench) -> None:
    place = archives(bench)[ending]
    bench.at(str(place))
    summary = bench.crawl()
    assert (summary.reason, summary.records) == ("", 2)
    assert set(bench.records()) == {"a", "sub/b"}
    record = bench.records()["a"]
    assert record.metadata["identifier"] == ["oai:test.example.org:docs/a"]
    summary = bench.crawl()
    assert (summary.unchanged, summary.read) == (2, 0)
    place.write_bytes(place.read_bytes()[:100])
    assert bench.crawl().outcome == "unreachable"
    assert set(bench.records()) == {"a", "sub/b"}


@pytest.mark.parametrize("start", ["", ".", "./", ".//"])
def test_tars_name_their_members_in_several_ways(start: str, bench: Bench) -> None:
    place = bench.root.parent / "docs.tar"
    with tarfile.open(place, "w") as tar:
        if start:
            folder = tarfile.TarInfo(start)
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
        for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt"):
            member = tarfile.TarInfo(f"{start.rstrip('/')}/{name}" if start else name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"wing"))
    bench.at(str(place))
    assert bench.crawl().status == 0
    assert set(bench.records()) == {"a", "sub/b", "sub/deep/c"}
    bench.at(f"tar://sub::{place}")
    assert bench.crawl().reason == ""
    assert set(bench.records()) == {"b", "deep/c"}
    bench.at(f"tar://sub/b.txt::{place}")
    assert bench.crawl().reason == ""
    assert set(bench.records()) == {"b"}
    bench.at(f"tar://nowhere::{place}")
    assert bench.crawl().outcome == "unreachable"


def test_links_and_devices_in_a_tar_are_left_alone(bench: Bench) -> None:
    place = bench.root.parent / "docs.tar"
    with tarfile.open(place, "w") as tar:
        member = tarfile.TarInfo("a.txt")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"wing"))
        for name, kind, target in [
            ("inside.txt", tarfile.SYMTYPE, "./a.txt"),
            ("outside.txt", tarfile.SYMTYPE, "/etc/passwd"),
            ("above.txt", tarfile.SYMTYPE, "../a.txt"),
            ("hard.txt", tarfile.LNKTYPE, "a.txt"),
            ("pipe.txt", tarfile.FIFOTYPE, ""),
        ]:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            tar.addfile(member)
    bench.at(str(place))
    summary = bench.crawl()
    assert (summary.status, bench.failures()) == (0, {})
    assert set(bench.records()) == {"a", "inside", "hard"}
    assert {path for path, _ in summary.named} == {"outside.txt", "above.txt", "pipe.txt"}


def test_an_archive_of_nothing_holds_nothing(bench: Bench) -> None:
    place = bench.root.parent / "docs.zip"
    zipfile.ZipFile(place, "w").close()
    bench.at(str(place))
    assert (bench.crawl().status, bench.records()) == (0, {})


def test_an_archive_with_a_member_without_a_name_cannot_be_listed(bench: Bench) -> None:
    place = bench.root.parent / "docs.zip"
    with zipfile.ZipFile(place, "w") as file:
        file.writestr("a", "wings")
    bench.at(str(place))
    bench.crawl()
    whole = place.read_bytes()
    local, central = whole.index(b"PK\x03\x04"), whole.index(b"PK\x01\x02")
    # The name's length becomes 0, and the name the extra field of as many bytes.
    data = bytearray(whole)
    for at in (local + 26, central + 28):
        data[at : at + 4] = b"\x00\x00\x01\x00"
    place.write_bytes(bytes(data))
    summary = bench.crawl()
    assert summary.outcome == "unreachable"
    assert "cannot be" in summary.reason
    assert set(bench.records()) == {"a"}, "what cannot be listed deletes nothing"


def test_a_compressed_tar_without_an_end_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    place = archives(bench)[".tar.gz"]
    monkeypatch.setattr("indlet.provider.archive.LISTING_SECONDS", -1.0)
    bench.at(str(place))
    summary = bench.crawl()
    assert summary.outcome == "unreachable"
    assert "took longer" in summary.reason


def test_nothing_that_was_fetched_is_left_behind(bench: Bench) -> None:
    place = archives(bench)[".zip"]
    left = bench.store.local_folder / "scratch" / "left-by-a-killed-crawl"
    left.parent.mkdir()
    left.write_text("wings")
    bench.at(str(place))
    bench.crawl()
    assert not list(left.parent.iterdir())


def test_crawls_that_end_take_no_folder_away_from_those_that_begin(tmp_path: Path) -> None:
    def crawl_often(name: str) -> None:
        for _ in range(300):
            with _scratch(tmp_path, name) as folder:
                (folder / "fetched").write_text("wings")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(crawl_often, ("a", "b", "c")))


@pytest.mark.parametrize(
    "chain", ["zip::{}docs.zip", "zip://sub::{}docs.zip", "{}docs.zip", "tar::{}docs.tar.gz"]
)
@pytest.mark.parametrize("kind", ["ftp", "http"])
def test_archives_behind_servers(chain: str, kind: str, bench: Bench) -> None:
    archives(bench)
    with servers.SERVERS[kind](bench.root.parent) as (root, options):
        bench.at(chain.format(root), options=options)
        summary = bench.crawl()
        assert summary.reason == ""
        assert set(bench.records()) == ({"b"} if "sub" in chain else {"a", "sub/b"})
        assert bench.crawl().read == 0


def test_a_broken_member_is_a_failure(bench: Bench) -> None:
    place = bench.root.parent / "x.zip"
    with zipfile.ZipFile(place, "w") as file:
        file.writestr("good.txt", "wings of aeroplanes")
        file.writestr("torn.txt", "tails of aeroplanes")
        file.writestr("../../escape.txt", "out of here")
    data = place.read_bytes()
    place.write_bytes(data.replace(b"tails of aeroplanes", b"TAILS of aeroplanes"))
    bench.at(str(place))
    summary = bench.crawl()
    assert set(bench.records()) == {"good"}
    assert "archive" in bench.failures()["torn.txt"].reason
    assert summary.read == 1


def test_a_server_that_dies_while_files_are_fetched(bench: Bench) -> None:
    for number in range(30):
        bench.write(f"{number:02}.txt", f"text {number}")
    with ExitStack() as stack:
        root, options = stack.enter_context(servers.SERVERS["ftp"](bench.root))
        bench.at(root, options=options)
        bench.crawl()
        for number in range(30):
            bench.write(f"{number:02}.txt", f"rudder {number}", at=1_600_000_000)
        calls = itertools.count()

        def die(summary: Any) -> None:
            if next(calls) == 6:
                stack.close()

        summary = bench.crawl(report=die)
    assert summary.outcome == "unreachable"
    assert summary.deleted == 0
    assert len(bench.records()) == 30
    texts = [name for name in bench.records() if "rudder" in bench.terms(name)]
    assert 5 <= len(texts) < 30


def test_where_no_time_is_told_digests_decide(bench: Bench) -> None:
    bench.write("a.txt", "one wing")
    bench.write("b.txt", "two wings")
    with served("timeless", bench):
        assert bench.crawl().records == 2
        before = bench.seqs()
        summary = bench.crawl()
        assert (summary.touched, summary.read, summary.records) == (2, 0, 0)
        bench.write("a.txt", "one tail")
        summary = bench.crawl()
        assert (summary.touched, summary.read, summary.records) == (1, 1, 1)
        assert bench.seqs()["b"] == before["b"]


def test_a_listing_without_end_ends(bench: Bench) -> None:
    bench.write("a/b.txt")
    (bench.root / "a" / "loop").symlink_to(bench.root / "a")
    with served("http", bench):
        summary = bench.crawl()
    assert summary.outcome == "partial"
    assert list(summary.unread) == ["a/loop/loop/loop/loop"]


def test_an_answer_of_a_webdav_server_has_a_deadline(bench: Bench) -> None:
    """However busily its bytes drip: the timeouts of httpx are for single reads."""
    import httpx

    bench.write("a.txt", "wing")
    with servers.SERVERS["webdav"](bench.root) as (root, options):
        address = root.replace("webdav://", "http://")
        with httpx.Client(event_hooks=answer_deadline(-1.0)) as client, pytest.raises(TimeoutError):
            client.request("PROPFIND", address)
        with httpx.Client(event_hooks=answer_deadline(60.0)) as client:
            assert b"a.txt" in client.request("PROPFIND", address).content
        storage = connect(root, options)
        assert storage._fs.client.http.event_hooks["response"]
        storage.close()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="known are ftp"):
        open_tree(Hierarchy("gopher://example.org/"), Crawl())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(HierarchyError, match="cannot be reached"):
        open_tree(Hierarchy(f"ftp://127.0.0.1:{port}/"), Crawl())


@pytest.mark.parametrize(
    ("root", "module", "extra"),
    [
        ("http://127.0.0.1/", "aiohttp", "http"),
        ("webdav://127.0.0.1/", "webdav4", "webdav"),
        ("sftp://127.0.0.1/", "paramiko", "sftp"),
        ("s3://bucket/", "s3fs", "s3"),
        ("zip::s3://bucket/x.zip", "s3fs", "s3"),
    ],
)
def test_a_missing_extra_is_named(root: str, module: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from indlet.provider.hierarchy import open_tree\n"
        "from indlet.errors import MissingExtra\n"
        "from indlet.settings import Crawl, Hierarchy\n"
        f"try:\n    open_tree(Hierarchy({root!r}), Crawl())\n"
        "except MissingExtra as e:\n    print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"indlet[{extra}]" in done.stdout, done.stderr
    assert issubclass(MissingExtra, Exception)


def test_an_sftp_server_with_another_key_is_not_talked_to(bench: Bench, tmp_path: Path) -> None:
    """Whoever answers at a known address with another key might be anybody."""
    bench.write("a.txt", "wings of aeroplanes")
    with served("sftp", bench):
        assert bench.crawl().records == 1
        root, options = bench.settings.hierarchy[0].root, dict(bench.settings.hierarchy[0].options)
        other = tmp_path / "other_hosts"
        good = Path(options["known_hosts"]).read_text()
        with servers.SERVERS["sftp"](bench.root) as (_, stranger):
            key = Path(stranger["known_hosts"]).read_text().partition(" ")[2]
            other.write_text(f"{good.partition(' ')[0]} {key}")
        for known in (str(other), str(tmp_path / "none")):
            Path(known).touch()
            bench.at(root, options={**options, "known_hosts": known})
            summary = bench.crawl()
            assert summary.outcome == "unreachable" and "known" in summary.reason
        assert set(bench.records()) == {"a"}
