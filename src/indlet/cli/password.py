"""Who may sit at the operations desk: passwords and users in a settings file that is there already."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from indlet.cli.options import CONFIG, config_option
from indlet.cli.secret import secret
from indlet.cli.show import say
from indlet.cli.template import toml
from indlet.errors import SettingsError
from indlet.settings import ROLES, User
from indlet.settings.file import load


@click.command()
@click.argument("user", required=False)
@config_option
@click.option("--role", type=click.Choice(ROLES), help="Of a user: what they may do.  [reader, if new]")
@click.option("--remove", is_flag=True, help="Take the user out instead.")
@click.option("--no-password", is_flag=True, help="The user comes by admin.user_header alone.")
@click.option(
    "--password-file", type=click.File(), help="Read it from a file; - for stdin.  [it is asked for]"
)
def password(
    user: str | None,
    config: Path | None,
    role: str | None,
    remove: bool,
    no_password: bool,
    password_file: TextIO | None,
) -> None:
    """Set or change a password of the operations desk: that of admin, or of USER, who is added if new.

    \b
    indlet password
    indlet password --config /etc/indlet.toml --password-file /run/secrets/desk
    indlet password anna --role operator
    indlet password anna --remove

    \b
    reader    sees the desk
    operator  also harvests, pauses, resumes, asks for failed records again, checks
    admin     also adds, changes and removes sources, rebuilds the index

    The settings file keeps a hash alone. Sessions that were opened with another password end when the node
    is started again.
    """
    from indlet.web.auth import hash_password

    path = config or CONFIG
    known = {one.name: one for one in load(path).user}  # what cannot be read is not written
    if user is None and (role or remove or no_password):
        raise click.UsageError("--role, --remove and --no-password are about a USER: name one")
    if remove and user not in known:
        raise SettingsError(f"{path}: there is no [[user]] called {user!r}")
    text = path.read_text(encoding="utf-8")
    hashed = ""
    if not remove and not no_password:
        given = secret(None, password_file) or click.prompt(
            f"Password of {user or 'the operations desk'}", hide_input=True, confirmation_prompt=True
        )
        hashed = hash_password(given)
    if user is None:
        text, done = with_hash(text, hashed), "has the new password"
    elif remove:
        text, done = without_user(text, user), f"no longer knows {user}"
    else:
        entry = known.get(user) or User(user)
        text = with_user(
            without_user(text, user), replace(entry, role=role or entry.role, password_hash=hashed)
        )
        done = f"knows {user} as {role or entry.role}"
    _write(path, text)
    say(f"{path} {done}; start the node again to use it")


def _write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    try:
        beside.unlink(missing_ok=True)
        beside.touch(mode=0o600, exist_ok=False)  # before it holds anything: others would read it meanwhile
        beside.write_text(text, encoding="utf-8")
        load(beside)
        beside.replace(path)
    except OSError as e:
        raise SettingsError(f"{path}: cannot be written: {e.strerror}; get the right to") from e
    finally:
        beside.unlink(missing_ok=True)


def with_user(text: str, user: User) -> str:
    """The text of a settings file with one more user at its end."""
    hashed = f"password_hash = {toml(user.password_hash)}\n" if user.password_hash else ""
    return f"{text.rstrip()}\n\n[[user]]\nname = {toml(user.name)}\nrole = {toml(user.role)}\n{hashed}"


def without_user(text: str, name: str) -> str:
    """The text of a settings file without the entry of one user, and all else as it was."""
    kept = []
    for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        entry = tomllib.loads(part).get("user", []) if part.startswith("[[user]]") else []
        if any(one.get("name") == name for one in entry):
            # Comments below an entry are about what comes next.
            part = "".join(re.findall(r"(?:^[ \t]*(?:#[^\n]*)?\n?)*\Z", part, flags=re.MULTILINE))
        kept.append(part)
    return "".join(kept)


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
