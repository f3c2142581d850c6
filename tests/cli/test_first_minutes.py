"""The first five minutes: every command of the README works as typed, in order, in one empty folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from indlet.cli import cli
from indlet.cli.password import _write, with_hash
from indlet.errors import SettingsError
from indlet.settings.file import load

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, str]]:
    """(language, line or block) of what a reader types after the installation."""
    told = README.partition("## Start here")[2]
    for language, block in re.findall(r"```(sh|python)\n(.*?)```", told, re.DOTALL):
        if language == "python":
            yield language, block
        else:
            for line in block.splitlines():
                yield language, re.sub(r"\s+#.*", "", line)


@contextlib.contextmanager
def running(line: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """A command that goes on, in a terminal of its own, from when it says how to stop it."""
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec {line}"], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = ""
        try:
            for out in process.stdout:
                said += out
                if "stop with Ctrl-C" in said and ("records new" in said or "provide" not in line):
                    break
            assert process.poll() is None, said
            yield said
        finally:
            process.terminate()
            process.communicate(timeout=60)


def taken(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(taken(8080) or taken(8081), reason="another program has the ports that the README names")
def test_every_command_of_the_readme_works_as_typed(tmp_path: Path) -> None:
    folder, home = tmp_path / "empty", tmp_path / "home"
    folder.mkdir()
    reports = home / "reports"
    reports.mkdir(parents=True)
    (reports / "one.txt").write_text("The boundary layer of a wing\n\nOn the boundary layer.\n")
    (reports / "two.html").write_text("<html><title>Shock waves</title><body>A layer of air</body></html>")
    environment = os.environ | {
        "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    told: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for language, line in commands():
            if language == "python":
                done = subprocess.run([sys.executable, "-c", line], cwd=folder, env=environment, text=True,
                                      capture_output=True, timeout=300)  # fmt: skip
            elif line.startswith(("indlet provide", "indlet serve")):
                told[line] = stack.enter_context(running(line, folder, environment))
                continue
            else:
                done = subprocess.run(
                    ["/bin/sh", "-c", line], cwd=folder, env=environment, text=True, capture_output=True,
                    input="open sesame\nopen sesame\n", timeout=300, start_new_session=True,
                )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            told[line] = done.stdout
    assert told["indlet search boundary layer"].startswith("2 records")  # and not each of them twice
    served = next(said for line, said in told.items() if line.startswith("indlet serve"))
    assert "search    http://127.0.0.1:8081/" in served and "desk      http://127.0.0.1:8081/admin" in served
    assert "oai" not in served  # this node has nothing to be harvested


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in bound]


def test_the_tutorial_of_the_portal_can_be_followed(tmp_path: Path) -> None:
    """Every block, in one empty folder; settings go to the end of the file, as the text says."""
    text = (ROOT / "docs" / "tutorials" / "portal.md").read_text(encoding="utf-8")
    first, second, portal = free_ports(3)
    text = text.replace("8081", str(first)).replace("8082", str(second))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    told: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for language, block in re.findall(r"```(sh|toml)\n(.*?)```", text, re.DOTALL):
            if language == "toml":
                with (tmp_path / "indlet.toml").open("a") as file:
                    file.write(f"\n{block}")
                continue
            for line in block.splitlines():
                if line.startswith("indlet serve"):
                    typed = line if "--port" in line else f"{line} --port {portal}"
                    told[line] = stack.enter_context(running(typed, tmp_path, environment))
                    continue
                done = subprocess.run(
                    ["/bin/sh", "-c", line], cwd=tmp_path, env=environment, text=True, capture_output=True,
                    input="open sesame\nopen sesame\n", timeout=300, start_new_session=True,
                )  # fmt: skip
                assert done.returncode == 0, (line, done.stdout, done.stderr)
                told[line] = done.stdout
        assert f"search    http://127.0.0.1:{portal}/" in told["indlet serve"]
        searches = [said for line, said in told.items() if line.startswith("indlet search")]
        assert len(searches) == 2 and not any(said.startswith("0 records") for said in searches)
        shown = subprocess.run(
            ["indlet", "sources", "--json"], cwd=tmp_path, env=environment, capture_output=True, check=True
        )
    rows = {row["source"]: row for row in json.loads(shown.stdout)}
    assert {name: row["records"] for name, row in rows.items()} == {
        "Harbour station": 111,
        "Orchard school": 100,
    }
    assert all(row["next"] for row in rows.values())


def test_a_wheel_is_enough(tmp_path: Path) -> None:
    """`make dist` in an empty environment: the wheel holds all that the program reads, and runs."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, timeout=600)
    (wheel,) = tmp_path.glob("indlet-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src"
    for file in package.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert file.relative_to(package).as_posix() in names
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        wheel,
    ]
    subprocess.run(install, check=True, timeout=600)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.txt").write_text("wings of aeroplanes")
    run: list[str | Path] = [
        tmp_path / "venv" / "bin" / "indlet",
        "crawl",
        tmp_path / "papers",
        "--data",
        tmp_path / "data",
    ]
    done = subprocess.run(run, check=True, capture_output=True, text=True, timeout=300)
    assert "1 record new" in done.stdout


def test_a_mistyped_command_gets_a_suggestion() -> None:
    done = CliRunner().invoke(cli, ["serch", "wing"])
    assert done.exit_code == 2 and "did you mean  indlet search" in done.output
    assert "indlet --help" in CliRunner().invoke(cli, ["xyzzy"]).output


def test_what_is_no_address_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="'notaurl' is no address"):
        CliRunner().invoke(cli, ["harvest", "notaurl"], catch_exceptions=False)
    Path("papers").mkdir()
    with pytest.raises(SettingsError, match="indlet provide papers"):
        CliRunner().invoke(cli, ["harvest", "papers"], catch_exceptions=False)


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    done = CliRunner().invoke(cli, ["crawl", str(tmp_path / "papers"), "--data", str(tmp_path / "data")])
    assert "holds no file to read" in done.output


def test_failures_are_named_with_their_folder(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    data = tmp_path / "data"
    done = CliRunner().invoke(cli, ["crawl", str(tmp_path / "papers"), "--data", str(data)])
    assert f"see indlet failures --data {data}" in done.output


def test_the_password_of_the_desk_is_set_in_a_file_that_is_there(tmp_path: Path) -> None:
    path, secret = tmp_path / "indlet.toml", tmp_path / "secret"
    secret.write_text("open sesame\n")
    runner = CliRunner()
    assert runner.invoke(cli, ["init", str(path)]).exit_code == 0
    before = path.read_text()
    done = runner.invoke(cli, ["password", "--config", str(path), "--password-file", str(secret)])
    assert done.exit_code == 0, done.output
    hashed = load(path).admin.password_hash
    assert hashed.startswith("scrypt$") and path.stat().st_mode & 0o77 == 0
    assert [line for line in path.read_text().splitlines() if "password_hash" not in line] == [
        line for line in before.splitlines() if "password_hash" not in line
    ]
    assert with_hash("[node]\nname = 'x'\n", "h") == "[node]\nname = 'x'\n\n[admin]\npassword_hash = \"h\"\n"
    assert with_hash("[admin]\npublic = true\n[node]\n", "h").startswith(
        '[admin]\npassword_hash = "h"\npublic'
    )


def test_new_settings_are_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "indlet.toml"
    path.write_text("")
    monkeypatch.setattr(Path, "chmod", lambda self, mode: None)  # not even until their mode is set
    _write(path, "[node]\nname = 'x'\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and "name" in path.read_text()
