"""Imports point one way: a room knows only the rooms above it in this list."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import indlet
from indlet.extension import INSTALLED, extensions

ROOMS = [
    "model",
    "errors",
    "extension",
    "limits",
    "memo",
    "wording",
    "durable",
    "datestamps",
    "net",
    "settings",
    "logs",
    "process",
    "text",
    "oai",
    "formats",
    "store",
    "provider",
    "service",
    "node",
    "web",
    "cli",
]
# The same within a room. A model's formula is known to every index, so `search/rank` stands above `index`.
SUB_ROOMS = {
    "service": ["search/rank", "records", "harvest", "index", "pipeline", "search", "api"],
}
# Each may import the core; the core may not import them.
EXTENSIONS = ["site", "exchange", "cluster", "sidecar"]
# What a plain `pip install indlet` does not bring; only rooms below "provider" may need it.
EXTRAS = {
    "citeproc",
    "httpx",
    "numba",
    "rapidfuzz",
    "jinja2",
    "cronsim",
    "ir_measures",
    "s3fs",
    "paramiko",
    "webdav4",
    "aiohttp",
    "warcio",
}
PACKAGE = Path(indlet.__file__).parent


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Every module that a file imports, by its full name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def sub_room(parts: Sequence[str]) -> str:
    """The part of a room that a dotted name or path below it belongs to."""
    return "/".join(parts[:2]) if list(parts[:2]) == ["search", "rank"] else parts[0]


def modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if room(p) in ROOMS]


def test_every_room_is_listed() -> None:
    others = {room(p) for p in PACKAGE.rglob("*.py")} - {*ROOMS, *EXTENSIONS}
    assert others <= {"__init__", "__main__", "demo"}


def test_imports_point_upward() -> None:
    wrong = []
    for path in modules():
        if room(path) == "extension":
            continue  # names, for type checkers, what extensions add to all rooms
        here = ROOMS.index(room(path))
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "indlet" and len(parts) > 1 and parts[1] in ROOMS and ROOMS.index(parts[1]) > here:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong


def test_every_extension_is_installed() -> None:
    assert {name.removeprefix("indlet.") for name in INSTALLED} >= {"site", "exchange", "cluster"}
    assert len({extension.name for extension in extensions()}) == len(INSTALLED)


def test_extensions_are_known_without_loading_them() -> None:
    """What a value of an extension imports, every process loads."""
    for package in INSTALLED:
        path = PACKAGE / package.partition(".")[2] / "extension.py"
        loaded = {n for n in imports(path, top_level_only=True) if n.startswith("indlet.")}
        assert {n.split(".")[1] for n in loaded} <= {"errors", "extension"}, path


def test_the_core_imports_no_extension() -> None:
    importing = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        if any(name.split(".")[1:2] and name.split(".")[1] in EXTENSIONS for name in imports(path))
    }
    assert not importing


def test_imports_point_upward_within_a_room() -> None:
    wrong = []
    for name, order in SUB_ROOMS.items():
        for path in modules():
            parts = path.relative_to(PACKAGE).with_suffix("").parts
            if parts[0] != name or parts[1] == "__init__":
                continue
            here = sub_room(parts[1:])
            assert here in order, f"{path}: not in SUB_ROOMS"
            for imported in imports(path):
                inner = imported.split(".")[1:]
                if (
                    inner[0:1] == [name]
                    and inner[1:]
                    and sub_room(inner[1:]) in order[order.index(here) + 1 :]
                ):
                    wrong.append(f"{path.relative_to(PACKAGE)} imports {imported}")
    assert not wrong


def test_nobody_knows_how_an_engine_keeps_its_index() -> None:
    """What is outside an engine's folder goes by `service/index/protocol.py`; `engines.py` opens engines."""
    inside = PACKAGE / "service" / "index" / "embedded"
    wrong = [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if inside not in path.parents
        and path != inside.parent / "engines.py"
        and any(name.startswith("indlet.service.index.embedded") for name in imports(path))
    ]
    assert not wrong


def test_only_the_store_knows_its_database() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        drivers = {"store": {"psycopg"}, "cluster": set()}.get(room(path), {"sqlite3", "psycopg"})
        found = {n for n in imports(path) if n.split(".")[0] in drivers}
        if room(path) not in ("store", "cluster"):
            found |= {n for n in imports(path) if n.startswith("indlet.store.") and n.count(".") > 2}
        assert not found, f"{path} imports {found}; use what indlet.store gives"


def test_provider_and_service_meet_only_over_http() -> None:
    for one, other in (("provider", "service"), ("service", "provider")):
        wrong = [
            p
            for p in modules()
            if room(p) == one and any(n.startswith(f"indlet.{other}") for n in imports(p))
        ]
        assert not wrong


def test_a_provider_needs_no_extra() -> None:
    for path in modules():
        if ROOMS.index(room(path)) <= ROOMS.index("provider"):
            needed = {name.split(".")[0] for name in imports(path, top_level_only=True)} & EXTRAS
            assert not needed, f"{path} imports {needed}"
