"""What ARCHITECTURE.md and CONTRIBUTING.md name is there: hops, files, registries."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import indlet

PACKAGE = Path(indlet.__file__).parent
ROW = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)


def defined(path: Path) -> set[str]:
    """The functions and methods of a file, by their dotted names."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def test_every_hop_is_there() -> None:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = ROW.findall(text)
    assert [int(number) for number, _, _ in rows] == list(range(1, 23))
    wrong = [f"{file}: {name}" for _, file, name in rows if name not in defined(PACKAGE / file)]
    assert not wrong


def test_the_recipes_name_what_is_there() -> None:
    root = Path(__file__).parents[2]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs)/[\w/.-]+)`", text))
    assert len(named) > 12
    assert not [name for name in named if "NAME" not in name and not (root / name).exists()]


def test_every_registration_is_where_the_recipes_say() -> None:
    root = Path(__file__).parents[2]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)` in `(src/[\w/.-]+\.py)`", text)
    assert len(named) > 10
    for name, file in named:
        defined = rf"^(?:    )?(?:def |class )?{name}\b *(?::|=|\()"
        assert re.search(defined, (root / file).read_text(encoding="utf-8"), re.MULTILINE), (name, file)


def test_a_model_is_one_file() -> None:
    """The recipe for a model, followed: no other file of the product names the two newest ones."""
    for module, kind in (("pl2", "Pl2"), ("bm25_plus", "Bm25Plus")):
        users = [
            path
            for path in PACKAGE.rglob("*.py")
            if path.stem != module and re.search(rf"\b(?:{kind}|rank\.{module})\b", path.read_text("utf-8"))
        ]
        assert not users
