"""What comes from outside commands no terminal, and secrets are not shown to other users."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from indlet.cli import cli, main
from indlet.cli.show import escaped, keep_terminal_safe, say, say_json
from indlet.errors import StoreError
from indlet.model import Failure, Record
from indlet.store import Store

EVIL = "a\x1b]0;title\x07b\x9b31mc\x9d\x7f\u202ed\r\x08"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_nothing_that_is_said_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    say("\x1b[1mbold\x1b[0m\tand\nlines")
    out = capsys.readouterr().out
    assert out.startswith("a ]0;title b 31mc") and out.endswith("bold\tand\nlines\n")
    assert not COMMANDS.search(out)


def test_json_says_the_same_with_the_signs_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"x": EVIL, "ü": "é\u0100"}, indent=True)
    out = capsys.readouterr().out
    assert not re.search("[\x7f-\x9f]", out) and json.loads(out) == {"x": EVIL, "ü": "é\u0100"}
    assert escaped("é\u0100".encode()) == "é\u0100".encode()


def test_errors_and_logs_are_printable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError(EVIL)

    monkeypatch.setattr(cli, "main", fail)
    with pytest.raises(SystemExit):
        main(["stats"])
    assert not COMMANDS.search(capsys.readouterr().err)
    keep_terminal_safe()
    handler = logging.lastResort
    assert handler is not None
    record = logging.LogRecord("indlet", logging.WARNING, "", 1, "%s", (EVIL,), None)
    assert not COMMANDS.search(handler.format(record))


def test_foreign_words_in_every_list(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data") as store, store.write() as tx:
        origin = tx.origin("source", EVIL, {"url": "http://127.0.0.1/"})
        tx.put(origin, [Record(f"oai:x:{EVIL}", {"title": [EVIL + " zebra"], "creator": [EVIL]})])
        tx.fail(origin, Failure(EVIL, "harvest", EVIL, EVIL.encode()))
        tx.state(origin, {"last": {"at": "", "outcome": EVIL, "reason": EVIL}, "repairs": {EVIL: 1}})
    for command in (
        ["records"], ["records", "--jsonl"], ["failures"], ["failures", "--jsonl"], ["sources"],
        ["sources", "--json"], ["stats"], ["search", "zebra"], ["search", "--json", "zebra"],
        ["search", "--explain", "zebra"],
    ):  # fmt: skip
        done = CliRunner().invoke(cli, [command[0], "--data", str(tmp_path / "data"), *command[1:]])
        assert done.exit_code == 0, (command, done.output)
        assert not COMMANDS.search(done.output), command


def test_sources_say_how_many_records_are_owed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data") as store, store.write() as tx:
        for name, owed in (("owing", 1200), ("whole", 0)):
            origin = tx.origin("source", name, {"url": "http://127.0.0.1/"})
            tx.state(origin, {"last": {"at": "2024-05-01T00:00:00Z", "outcome": "complete", "owed": owed}})
    done = CliRunner().invoke(cli, ["sources", "--data", str(tmp_path / "data")])
    assert "2024-05-01T00:00:00Z complete, 1,200 owed\t" in done.output
    assert "2024-05-01T00:00:00Z complete\t" in done.output


def test_no_command_prints_by_another_way() -> None:
    folder = Path(sys.modules["indlet.cli"].__file__ or "").parent
    for path in (*folder.glob("*.py"), *folder.parent.rglob("*command*.py")):
        text = path.read_text("utf-8")
        if path.name != "show.py":
            assert "click.echo(" not in text and not re.search(r"(?<![.\w])print\(", text), path


def test_a_data_folder_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Store.open(folder) as store:
        store.secret("sessions")
        assert modes(folder) == {0o700, 0o600}
    (folder / "index").mkdir(mode=0o755)
    (folder / "index" / "manifest").write_text("x")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)  # as an earlier version left it
    (folder / "mine.txt").write_text("not indlet's")
    (folder / "mine.txt").chmod(0o644)
    with Store.open(folder):
        assert stat.S_IMODE((folder / "mine.txt").stat().st_mode) == 0o644
        (folder / "mine.txt").unlink()
        assert modes(folder) == {0o700, 0o600}


def test_files_of_a_data_folder_are_private_from_the_start(tmp_path: Path) -> None:
    """Not from the next start on: whatever the umask, whoever makes them."""
    files, data = tmp_path / "files", tmp_path / "data"
    files.mkdir()
    (files / "zebra.txt").write_text("Zebras\n\nA text on zebras.\n")
    before = os.umask(0o022)
    try:
        for command in (["crawl", str(files)], ["search", "zebras"], ["reindex"]):
            done = subprocess.run(
                [sys.executable, "-m", "indlet", *command, "--data", str(data)],
                cwd=tmp_path,
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert modes(data) == {0o700, 0o600}, command
    finally:
        os.umask(before)
    assert any((data / "index").glob("seg-*"))


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@pytest.mark.parametrize("way", ["file", "stdin", "environment"])
def test_a_password_need_not_be_an_argument(tmp_path: Path, way: str) -> None:
    (tmp_path / "secret").write_text("open sesame\nsecond line\n")
    arguments, environment, typed = ["init", str(tmp_path / "indlet.toml")], {}, None
    if way == "environment":
        environment["INDLET_ADMIN_PASSWORD"] = "open sesame"
    else:
        arguments += ["--password-file", "-" if way == "stdin" else str(tmp_path / "secret")]
        typed = "open sesame\n"
    done = CliRunner(env=environment).invoke(cli, arguments, input=typed)
    assert done.exit_code == 0, done.output
    from indlet.settings.file import load
    from indlet.web.auth import check_password

    assert check_password("open sesame", load(tmp_path / "indlet.toml").admin.password_hash)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc to look an argument up in")
def test_a_password_in_the_arguments_is_not_shown_for_long(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom indlet.cli.secret import hide\nhide(sys.argv[1])\n"
        "print(sys.argv[1], flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "open-sesame"], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "open-sesame\n", "the command itself still has it"
            shown = Path(f"/proc/{child.pid}/cmdline").read_bytes()
        finally:
            child.kill()
    assert b"open-sesame" not in shown and b"***********" in shown
