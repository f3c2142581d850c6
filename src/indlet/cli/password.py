"""The password of the operations desk, set or changed in a settings file that is there already."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TextIO

import click

from indlet.cli.provider import CONFIG, config_option
from indlet.cli.secret import secret
from indlet.cli.show import say
from indlet.errors import SettingsError
from indlet.settings import load


@click.command()
@config_option
@click.option(
    "--password-file", type=click.File(), help="Read it from a file; - for stdin.  [it is asked for]"
)
def password(config: Path | None, password_file: TextIO | None) -> None:
    """Set or change the password of the operations desk.

    \b
    indlet password
    indlet password --config /etc/indlet.toml --password-file /run/secrets/desk

    The settings file keeps its hash alone. Sessions that were opened with another password end when the node
    is started again.
    """
    from indlet.web.auth import hash_password

    path = config or CONFIG
    load(path)  # what cannot be read is not written
    given = secret(None, password_file) or click.prompt(
        "Password for the operations desk", hide_input=True, confirmation_prompt=True
    )
    text = path.read_text(encoding="utf-8")
    new = with_hash(text, hash_password(given))
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_text(new, encoding="utf-8")
        beside.chmod(0o600)
        load(beside)
        beside.replace(path)
    except OSError as e:
        raise SettingsError(f"{path}: cannot be written: {e.strerror}; get the right to") from e
    finally:
        beside.unlink(missing_ok=True)
    say(f"{path} has the new password; start the node again to use it")


def with_hash(text: str, hashed: str) -> str:
    """The text of a settings file with this hash in its section [admin], and all else as it was."""
    line = f'password_hash = "{hashed}"'
    section = re.search(r"^\[admin\][^\n]*\n", text, re.MULTILINE)
    if section is None:
        return text.rstrip("\n") + f"\n\n[admin]\n{line}\n"
    end = re.compile(r"^\[", re.MULTILINE).search(text, section.end())
    before, inside = text[: section.end()], text[section.end() : end.start() if end else len(text)]
    after = text[end.start() :] if end else ""
    inside, found = re.subn(
        r"^#?[ \t]*password_hash[ \t]*=[^\n]*", lambda _: line, inside, count=1, flags=re.M
    )
    return before + (inside if found else f"{line}\n{inside}") + after
