"""What keeps the house easy to read: short files and functions, one meaning for a name, few untyped."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from radon.complexity import cc_rank, cc_visit

import indlet

PACKAGE = Path(indlet.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_MODULE = 790  # may only fall
LONG_FUNCTIONS = {"service/search/library.py: search", "web/record.py: page"}  # may only shrink
ANY = 88  # how often `Any` stands in for a type: may only fall


def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in FILES]


def test_no_module_is_longer_than_the_longest() -> None:
    longest = max(path.read_text(encoding="utf-8").count("\n") for path in FILES)
    assert longest <= LONGEST_MODULE


def test_a_public_class_name_has_one_meaning() -> None:
    names = Counter(
        node.name
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in names.items() if count > 1]


def test_a_function_fits_on_a_screen() -> None:
    long = {
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    }
    assert long <= LONG_FUNCTIONS


def test_little_is_untyped() -> None:
    count = sum(isinstance(n, ast.Name) and n.id == "Any" for _, tree in trees() for n in ast.walk(tree))
    assert count <= ANY


def test_nothing_is_past_following() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}: {block.name} ({block.complexity})"
        for path in FILES
        for block in cc_visit(path.read_text(encoding="utf-8"))
        if cc_rank(block.complexity) == "F"
    ]
    assert not wrong
