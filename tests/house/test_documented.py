"""What exists is documented: settings, commands, formats, models, error codes."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import indlet.errors
from indlet.cli import COMMANDS
from indlet.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"


def sections(kind: type[Any], name: str = "") -> list[tuple[str, type[Any]]]:
    """A settings class and all those within it, each with the name of its section."""
    found = [(name, kind)]
    for inner_name, hint in get_type_hints(kind).items():
        inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
        if is_dataclass(inner):
            found += sections(inner, inner_name.rstrip("_"))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(("name", "kind"), sections(Settings))
def test_every_setting_is_documented(name: str, kind: type[Any]) -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    if kind is not Settings:
        start = re.search(rf"^##.*\[{name}\]|^##.*\.{name}\]", text, re.MULTILINE)
        assert start, f"docs/settings.md has no section for {name}"
        text = text[start.start() :].split("\n## ", 1)[0]
    for field in fields(kind):
        if not is_dataclass(get_type_hints(kind)[field.name]) and field.name not in {
            "api_key",
            "hierarchy",
            "library",
            "repository",
            "set_",
            "site",
            "source",
            "write",
        }:
            assert f"| `{field.name.rstrip('_')}` |" in text, (
                f"{kind.__name__}.{field.name} is not documented"
            )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert f"## `indlet {command}" in (DOCS / "cli.md").read_text(encoding="utf-8")


def test_every_error_code_is_documented() -> None:
    text = (DOCS / "protocol.md").read_text(encoding="utf-8")
    for kind in vars(indlet.errors).values():
        if isinstance(kind, type) and issubclass(kind, indlet.errors.ProtocolError) and "code" in vars(kind):
            assert f"`{kind.code}`" in text
