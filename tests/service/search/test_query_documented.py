"""docs/query.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from indlet.model import Record
from indlet.service.api.routes import ENDPOINTS
from indlet.service.search.lexer import FILTER_FIELDS, WORD_FIELDS
from indlet.service.search.library import Library
from indlet.service.search.query import MAX_DEPTH, MAX_LENGTH, MAX_PHRASES, MAX_PREFIXES, parse
from indlet.service.search.query_reader import ACCENTS
from indlet.service.search.rank import MODELS, parameters_of
from indlet.settings import Search

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


def test_what_is_said_of_accents_and_languages_is_so(tmp_path: Path) -> None:
    """docs/query.md, docs/settings.md and the help page say one thing, and the code does it."""
    docs = Path(__file__).parents[3] / "docs"
    settings_page = (docs / "settings.md").read_text("utf-8")
    strings = Path(__file__).parents[3] / "src" / "indlet" / "web" / "strings"
    assert "Accents do not count" in TEXT and 'They count in quotation marks (`"naïve"`)' in TEXT
    assert "every language that any record is in" in " ".join(TEXT.split())
    row = next(line for line in settings_page.splitlines() if line.startswith("| `accents` |"))
    assert f'`"{Search().accents}"`' in row
    assert all(f'"{name}"' in row or f"`{name}`" in row for name in ACCENTS)
    assert "neither case nor accents matter" in (strings / "en.toml").read_text("utf-8")
    assert "Akzente" in (strings / "de.toml").read_text("utf-8")
    records = [
        Record(f"oai:x:{n}", {"title": ["The wind over the sea"], "language": ["en"]}) for n in range(40)
    ]
    french = {"title": ["Étude des réseaux neuronaux"], "language": ["fr"]}
    naive = {"title": ["A naïve Müller"], "language": ["en"]}
    with Library.open(tmp_path) as library:
        with library.store.write() as tx:
            tx.put(tx.origin("source", "s"), [*records, Record("oai:x:f", french), Record("oai:x:n", naive)])
        found = {q: library.search(q).total for q in ("Muller", "Müller", "naive", '"naïve"', '"naive"')}
        assert found == {"Muller": 1, "Müller": 1, "naive": 1, '"naïve"': 1, '"naive"': 0}
        assert library.search("muller", accents="exact").total == 0
        # One record in forty is below one in twenty, and takes part all the same.
        assert library.search("réseau neuronal").total == library.search("réseaux neuronaux").total == 1
        assert library.search("reseaux", filters={"language": ["fr"]}).total == 1
