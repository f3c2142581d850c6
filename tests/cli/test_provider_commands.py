"""The provider's commands, run as people run them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest
from click.testing import CliRunner, Result

from indlet.cli import cli, main
from indlet.cli.template import template
from indlet.model import Failure, Record
from indlet.settings import (
    ApiKey,
    Hierarchy,
    LibraryFolder,
    SetRule,
    Settings,
    Site,
    User,
    VirtualRepository,
    Write,
)
from indlet.settings.file import from_mapping, load
from indlet.store import Store

runner = CliRunner()


def indlet(*arguments: str | Path, cwd: Path | None = None) -> Result:
    """A command in this process; an error of ours becomes its exception."""
    before = Path.cwd()
    os.chdir(cwd or before)
    try:
        return runner.invoke(cli, [str(a) for a in arguments])
    finally:
        os.chdir(before)


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    root = tmp_path / "papers"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("wings of aeroplanes")
    (root / "sub" / "b.html").write_text("<html><title>On flow</title><body>flow</body></html>")
    for place in (root / "a.txt", root / "sub" / "b.html"):
        os.utime(place, (1_500_000_000, 1_500_000_000))
    return root


def test_crawl_then_records(papers: Path, tmp_path: Path) -> None:
    done = indlet("crawl", papers, "--data", tmp_path / "data")
    assert done.exit_code == 0, done.output
    assert "2 files, 0 unchanged, 2 records new or changed, 0 deleted" in done.output
    lines = indlet("records", "--data", tmp_path / "data", "--jsonl").stdout.splitlines()
    first, second = sorted(map(json.loads, lines), key=lambda r: str(r["identifier"]))
    repository = str(first["identifier"]).split(":")[1]
    assert re.fullmatch(
        r"node-[0-9a-f]{8}\.localdomain", repository
    )  # a name of its own, for it was given none
    assert first["identifier"] == f"oai:{repository}:papers/a"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first["datestamp"])
    assert first["deleted"] is False
    assert first["terms"] == {"wing": 1, "aeroplan": 1}
    assert first["length"] == 2
    assert first["origin"] == "papers"
    assert second["sets"] == ["papers:sub"]
    assert second["metadata"]["title"] == ["On flow"]
    plain = indlet("records", "--data", tmp_path / "data", "--set", "papers:sub").stdout
    assert plain.endswith(f"oai:{repository}:papers/sub/b  On flow\n")

    (papers / "a.txt").unlink()
    indlet("crawl", papers, "--data", tmp_path / "data")
    found = [
        json.loads(line)
        for line in indlet("records", "--data", tmp_path / "data", "--jsonl").stdout.splitlines()
    ]
    gone = next(r for r in found if r["deleted"])
    assert (gone["identifier"], gone["metadata"], gone["terms"]) == (first["identifier"], {}, {})
    assert gone["sets"] == ["papers"]
    assert len(indlet("records", "--data", tmp_path / "data", "--live").stdout.splitlines()) == 1


def test_crawl_says_by_its_status_what_came_of_it(papers: Path, tmp_path: Path) -> None:
    (papers / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    done = indlet("crawl", papers, "--data", tmp_path / "data", "--json")
    assert done.exit_code == 3
    (summary,) = json.loads(done.stdout)
    assert (summary["records"], summary["failures"], summary["status"]) == (2, 1, 3)
    listed = indlet("failures", "--data", tmp_path / "data").stdout
    assert listed.startswith("papers: bad.pdf: extract: ")
    (failure,) = map(
        json.loads, indlet("failures", "--data", tmp_path / "data", "--jsonl").stdout.splitlines()
    )
    assert failure["where"] == "bad.pdf"
    config = tmp_path / "indlet.toml"
    config.write_text('data = "data"\n[[hierarchy]]\nroot = "missing"\n[[hierarchy]]\nroot = "papers"\n')
    done = indlet("crawl", "--config", config)
    assert done.exit_code == 1
    assert "missing: not read" in done.output
    assert "papers: 3 files, 3 unchanged" in done.output


def test_mistakes_are_told(papers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status, message in [
        (["crawl", str(tmp_path / "nowhere")], 1, "no such file or folder"),
        (["crawl", "--config", str(tmp_path / "none.toml")], 1, "Write one with  indlet init"),
        (["provide"], 2, "name at least one folder"),
        (["provide", str(papers), "--private", "--content-url", "http://x.org"], 2, "choose one"),
        (["provide", str(papers), str(papers), "--name", "x"], 2, "single PATH"),
        (["records", "--data", str(tmp_path / "none")], 1, "no indlet store here"),
        (["serve", "--config", str(tmp_path / "none.toml")], 1, "Write one with  indlet init"),
        (["crawl", str(papers), "--data", str(papers)], 1, "own data"),
        (
            ["provide", str(papers), "--base-url", "x.org", "--port", "0", "--data", str(tmp_path / "d")],
            1,
            "root",
        ),
        (
            ["provide", str(papers), "--every", "soon", "--port", "0", "--data", str(tmp_path / "d")],
            1,
            "no interval",
        ),
        (
            ["provide", str(papers), "--host", "203.0.113.1", "--data", str(tmp_path / "d")],
            1,
            "cannot listen",
        ),
    ]:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == status, arguments
        told = capsys.readouterr()
        assert message in told.err
        assert told.out == ""
    assert sorted(p.name for p in papers.iterdir()) == ["a.txt", "sub"]


def test_what_a_title_or_a_reason_says_cannot_command_a_terminal(tmp_path: Path) -> None:
    said = "red \x1b[31m\x9b2J\u202e"
    with Store.open(tmp_path) as store, store.write() as tx:
        origin = tx.origin("source", "far")
        tx.put(origin, [Record("oai:x:\x9b1", {"title": [said]})])
        tx.fail(origin, Failure("oai:x:2\n", "record", said))
    for command, shown in (
        ("records", "  oai:x: 1  red  [31m 2J "),
        ("failures", "far: oai:x:2\\n: record: red  [31m 2J "),
    ):
        (line,) = indlet(command, "--data", tmp_path).stdout.split("\n")[:-1]
        assert line.endswith(shown) and line.isprintable()
    whole = json.loads(indlet("records", "--data", tmp_path, "--jsonl").stdout)
    assert whole["metadata"]["title"] == [said]
    assert json.loads(indlet("failures", "--data", tmp_path, "--jsonl").stdout)["reason"] == said


def test_what_a_file_is_called_cannot_command_a_terminal(papers: Path, tmp_path: Path) -> None:
    (papers / "red\x1b[31m.bin").symlink_to(tmp_path)
    said = indlet("crawl", papers, "--data", tmp_path / "data").output
    assert "red [31m.bin: " in said and "\x1b" not in said


@pytest.mark.parametrize("form", [("records", "--jsonl"), ("records",), ("failures",), ("--help",)])
def test_a_pipe_that_nobody_reads_on_ends_a_command_quietly(tmp_path: Path, form: tuple[str, ...]) -> None:
    with Store.open(tmp_path) as store, store.write() as tx:
        origin = tx.origin("source", "far")
        tx.put(origin, [Record("oai:x:1", {"title": ["A title"]})])
        tx.fail(origin, Failure("oai:x:2", "record", "a reason"))
    read, write = os.pipe()
    os.close(read)
    options = () if form == ("--help",) else ("--data", str(tmp_path))
    command = [sys.executable, "-m", "indlet", *form, *options]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_forget(papers: Path, tmp_path: Path) -> None:
    indlet("crawl", papers, "--data", tmp_path / "data")
    done = indlet("crawl", "--data", tmp_path / "data", "--forget", "papers", cwd=tmp_path)
    assert done.output == "papers: 2 records deleted\n"
    assert indlet("records", "--data", tmp_path / "data", "--live").stdout == ""


def test_a_folder_that_is_named_is_the_one_that_is_opened(tmp_path: Path) -> None:
    """Whatever an indlet.toml of the current folder says."""
    for name in ("mine", "other"):
        with Store.open(tmp_path / name) as store, store.write() as tx:
            origin = tx.origin("hierarchy", name, {})
            tx.put(origin, [Record(f"oai:{name}:1", {"title": [name]})])
            tx.fail(origin, Failure(f"{name}.pdf", "extract", "encrypted"))
    (tmp_path / "indlet.toml").write_text('[store]\nurl = "other"\n')
    for command in ("records", "failures"):
        told = indlet(command, "--data", "mine", cwd=tmp_path).stdout
        assert "mine" in told and "other" not in told
        assert "other" in indlet(command, cwd=tmp_path).stdout
    checked = json.loads(indlet("check", "--offline", "--json", "--data", "mine", cwd=tmp_path).stdout)
    assert {"mine"} == {Path(c["subject"]).parent.name for c in checked if c["area"] == "store"}
    (tmp_path / "other.toml").write_text('data = "other"\n')
    found = indlet("records", "--config", "other.toml", "--data", "mine", cwd=tmp_path).stdout
    assert "oai:mine:1" in found
    kept = json.loads(indlet("backup", tmp_path / "b", "--data", "mine", "--json", cwd=tmp_path).stdout)
    assert kept["records"] == 1 and not list((tmp_path / "b").glob("*.toml"))
    done = indlet("restore", tmp_path / "b", "--data", "back", cwd=tmp_path)
    assert done.exit_code == 0, done.exception
    assert "oai:mine:1" in indlet("records", "--data", "back", cwd=tmp_path).stdout


def test_init_writes_every_setting_with_its_default(tmp_path: Path) -> None:
    place = tmp_path / "indlet.toml"
    done = indlet("init", place, "--root", "papers", "--password", "opensesame")
    assert done.exit_code == 0
    settings = load(place)
    assert [h.root for h in settings.hierarchy] == [str(tmp_path / "papers")]
    assert settings.admin.password_hash.startswith("scrypt$")
    from indlet.web.auth import check_password

    assert check_password("opensesame", settings.admin.password_hash)
    assert place.stat().st_mode & 0o077 == 0
    before = place.read_bytes()
    assert "was left as it is" in str(indlet("init", place).exception)
    assert place.read_bytes() == before


@pytest.mark.parametrize("root", ["/srv/a b", "/srv/😀ü", 'C:\\x"y', "/a\nb\x7f\x01"])
def test_a_root_is_written_as_it_is(root: str) -> None:
    assert from_mapping(tomllib.loads(template("x", [root]))).hierarchy == (Hierarchy(root),)


def test_all_of_the_template_uncommented_is_the_defaults() -> None:
    lines = template("indlet.toml").splitlines()
    settings_lines = [re.sub(r"^# (?=(\w+ = |\[))", "", line) for line in lines]
    found = from_mapping(tomllib.loads("\n".join(settings_lines)))
    (hierarchy,), (source,) = found.hierarchy, found.source
    assert hierarchy == Hierarchy("/srv/documents")
    assert source.url
    (site,) = found.site
    assert site == Site("/srv/documents", "https://www.example.org/docs")
    (library,), (write,) = found.library, found.write
    assert library == LibraryFolder("larc", "catalogue/export") and write == Write("catalogue/import")
    assert found == Settings(
        hierarchy=(hierarchy,), library=(library,), set_=(SetRule(by="type"),), site=(site,),
        source=(source,), write=(write,), user=(User("anna"),),
        repository=(VirtualRepository("/oai/theses"),),
        api_key=(ApiKey("partner", "a long random text"),),
    )  # fmt: skip
    kinds = get_type_hints(Settings)
    assert all(getattr(found, name) for name, kind in kinds.items() if get_origin(kind) is tuple)
    assert from_mapping(tomllib.loads(template("x"))) == Settings()


@contextmanager
def running(
    *arguments: str | Path, start: tuple[str, ...] = ("-m", "indlet")
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and the address that it says it has."""
    command = [sys.executable, *start, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        address = re.search(r"http://[\d.:]+", first)
        assert address, first + (process.stderr.read() if process.stderr else "")
        yield process, address[0]
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"ended without saying {text!r}")


def test_provide_crawls_serves_and_follows_changes(papers: Path, tmp_path: Path) -> None:
    options = ("--port", "0", "--every", "1s", "--data", papers / "indlet-data")
    with running("provide", papers, *options) as (process, address):
        wait_for(process, "papers: 2 files")
        listing = get(f"{address}/oai?verb=ListRecords&metadataPrefix=oai_dc")
        assert listing.count("<record>") == 2
        assert f"{address}/content/papers/a.txt" in listing
        assert get(f"{address}/content/papers/a.txt") == "wings of aeroplanes"
        assert "ListRecords" in get(f"{address}/")
        (papers / "sub" / "b.html").unlink()
        wait_for(process, "1 deleted")
        assert 'status="deleted"' in get(f"{address}/oai?verb=ListIdentifiers&metadataPrefix=oai_dc")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_provide_private(papers: Path, tmp_path: Path) -> None:
    options = (
        "--port",
        "0",
        "--private",
        "--data",
        tmp_path / "data",
        "--base-url",
        "https://papers.example.org",
    )
    command = [sys.executable, "-m", "indlet", "provide", str(papers), *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "https://papers.example.org/" in process.stdout.readline()
        wait_for(process, "papers: 2 files")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.communicate()
    found = indlet("records", "--data", tmp_path / "data", "--jsonl").stdout
    assert "oai:papers.example.org:papers/a" in found
    assert "http" not in found


def test_serve_from_a_settings_file(papers: Path, tmp_path: Path) -> None:
    config = tmp_path / "indlet.toml"
    config.write_text(
        'data = "data"\n[node]\nport = 0\nname = "Papers"\n[crawl]\nevery = "1h"\n'
        '[[hierarchy]]\nroot = "papers"\n'
    )
    with running("serve", "--config", config) as (process, address):
        wait_for(process, "papers: 2 files")
        assert get(f"{address}/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").count("<header>") == 2
        assert "<repositoryName>Papers</repositoryName>" in get(f"{address}/oai?verb=Identify")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


# What comes with the service part only; none of it is there after a plain  pip install indlet.
BARE = """
import sys
for name in ("cronsim", "httpx", "jinja2", "llvmlite", "numba"):
    sys.modules[name] = None
from indlet.cli import main
main()
"""


def test_serve_provides_without_the_service_part(papers: Path, tmp_path: Path) -> None:
    config = tmp_path / "indlet.toml"
    config.write_text('data = "data"\n[node]\nport = 0\n[[hierarchy]]\nroot = "papers"\n')
    with running("serve", "--config", config, start=("-c", BARE)) as (process, address):
        wait_for(process, "papers: 2 files")
        assert get(f"{address}/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").count("<header>") == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("asked", ["--portal", "--data"])
def test_what_needs_the_service_part_says_so(papers: Path, tmp_path: Path, asked: str) -> None:
    config = tmp_path / "indlet.toml"
    config.write_text('data = "data"\n[node]\nport = 0\n[[hierarchy]]\nroot = "papers"\n')
    rest = (
        ("--config", str(config), "--portal")
        if asked == "--portal"
        else ("--port", "0", "--data", str(tmp_path / "other"))
    )
    command = [sys.executable, "-c", BARE, "serve", *rest]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path / "papers")
    assert done.returncode == 1
    assert "pip install 'indlet[service]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["provide", "crawl", "serve", "records", "failures", "init"])
def test_help_has_examples(name: str) -> None:
    done = indlet(name, "--help")
    assert done.exit_code == 0
    assert f"indlet {name}" in done.output.partition("Usage")[2].partition("\n")[2]
