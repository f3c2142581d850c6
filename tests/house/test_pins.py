"""What `make` installs: each version is pinned, with the hashes of its files, and both lists say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
REMEDY = "pin it in constraints.txt, then run  make hashes"


def pins(name: str) -> set[tuple[str, str]]:
    return set(_PIN.findall((ROOT / name).read_text(encoding="utf-8")))


def test_every_hashed_version_is_a_pinned_one() -> None:
    assert not pins("requirements.txt") - pins("constraints.txt"), REMEDY


def test_every_file_to_install_has_its_hashes() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert re.fullmatch(r"\S+==\S+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+", entry), entry[
            :100
        ]


def test_everything_that_is_declared_is_hashed() -> None:
    raw = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*raw["project"]["dependencies"], *raw["dependency-groups"]["dev"]]
    for extra in raw["project"]["optional-dependencies"].values():
        declared += extra
    names = {_normal(re.match(r"[A-Za-z0-9._-]+", one)[0]) for one in declared}  # type: ignore[index]
    hashed = {_normal(name) for name, _ in pins("requirements.txt")}
    assert not names - hashed - {"indlet"}, REMEDY


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
