"""docs/query.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from indlet.service.api.routes import ENDPOINTS
from indlet.service.rank import MODELS, parameters_of
from indlet.service.search.lexer import FILTER_FIELDS, WORD_FIELDS
from indlet.service.search.query import MAX_DEPTH, MAX_LENGTH, MAX_PHRASES, MAX_PREFIXES, parse

TEXT = (Path(__file__).parents[3] / "docs" / "query.md").read_text("utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(("name", "aliases"), [*WORD_FIELDS.items(), *FILTER_FIELDS.items()])
def test_every_field_is_documented(name: str, aliases: tuple[str, ...]) -> None:
    row = next(row for row in ROWS if row.startswith(f"| `{name}` |"))
    assert all(f"`{alias}`" in row for alias in aliases)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_and_its_defaults_are_documented(name: str) -> None:
    row = next(row for row in ROWS if row.startswith(f"| `{name}` |"))
    model = MODELS[name]()
    for own in parameters_of(model):
        assert f"`{own.rstrip('_')}` = {getattr(model, own):g}" in row


def test_every_path_of_the_api_is_documented() -> None:
    for endpoint in ENDPOINTS:
        assert any(row.startswith(f"| `{endpoint.path}` |") for row in ROWS)


def test_the_examples_can_be_asked() -> None:
    table = TEXT.split("## In short")[1].split("## Words")[0]
    examples = [
        example
        for line in table.splitlines()
        if line.startswith("| `")
        for example in re.findall("`([^`]+)`", line.split(" | ")[0])
    ]
    assert len(examples) > 15
    for example in examples:
        parse(example)


def test_the_bounds_are_those_documented() -> None:
    bounds = f"{MAX_LENGTH:,} characters, {MAX_DEPTH} levels of parentheses"
    assert f"{bounds}, {MAX_PREFIXES} prefixes, {MAX_PHRASES} phrases" in TEXT
