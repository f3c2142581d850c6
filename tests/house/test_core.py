"""The crate holds what its architecture promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "core"
SOURCES = sorted((CRATE / "src").rglob("*.rs"))


def test_unsafe_code_is_in_the_module_that_maps_files_alone() -> None:
    assert 'unsafe_code = "deny"' in (CRATE / "Cargo.toml").read_text()
    allowing = [path.name for path in SOURCES if re.search(r"\bunsafe\b *\{|allow\(unsafe", path.read_text())]
    assert allowing == ["map.rs"]


def test_only_the_binding_knows_python() -> None:
    knowing = {path.relative_to(CRATE / "src").parts[0] for path in SOURCES if "pyo3" in path.read_text()}
    assert knowing == {"python", "python.rs"}


def test_everything_that_is_exported_has_types() -> None:
    binding = "".join(path.read_text() for path in SOURCES if path.parent.name == "python")
    exported = set(re.findall(r"#\[pyfunction\]\n(?:#\[.*\]\n)*pub fn (\w+)", binding))
    exported |= set(re.findall(r"#\[pyclass.*\]\n(?:#\[.*\]\n)*pub struct (\w+)", binding))
    stub = (ROOT / "src/indlet/_core.pyi").read_text()
    typed = set(re.findall(r"^(?:def|class) (\w+)", stub, re.MULTILINE))
    assert exported
    assert exported == typed


def test_no_file_but_its_own_names_a_model() -> None:
    models = {path.stem for path in (CRATE / "src/rank").glob("*.rs")} - {"mod"}
    assert models
    for path in SOURCES:
        if path.parent.name != "rank":
            named = models & set(re.findall(r'"(\w+)"', path.read_text()))
            assert not named, (path, named)
