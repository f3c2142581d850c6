"""A settings file to start from: the few settings that most nodes need, or every one with its default."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from indlet import settings

_COMMENT = re.compile(r"^    (\w+): [^#\n]*(?:\(\n[^#\n]*)?  # (?!fmt:)(.+)$", re.MULTILINE)

# What an entry must state.
_EXAMPLES = {
    "api_key": {"name": "partner", "key": "a long random text"},
    "hierarchy": {"root": "/srv/documents"},
    "library": {"name": "larc", "read": "catalogue/export"},
    "repository": {"path": "/oai/theses"},
    "set": {"by": "type"},
    "site": {"root": "/srv/documents", "url": "https://www.example.org/docs"},
    "source": {"url": "https://library.example.org/ft-oai"},
    "user": {"name": "anna"},
    "write": {"folder": "catalogue/import"},
}

HEAD = """\
# Settings of an indlet node. What is commented out is the default.
# Serve with     indlet serve --config {name}
# Crawl with     indlet crawl --config {name}
"""


SHORT = """\
# Settings of an indlet node: docs/settings.md explains all of them, indlet init --all lists them.
# Serve, crawl and harvest with  indlet serve --config {name}
[node]
# name = "indlet"  # what the node is called
# base_url = "https://library.example.org"  # its public address

[admin]
{password}  # opens the operations desk, /admin; see  indlet password

{folders}

# [[source]]  # a repository to harvest, as many as you like
# url = "https://repository.example.org/oai"
# every = "1d"  # how often
"""


def short_template(name: str, roots: Iterable[str] = (), password_hash: str = "") -> str:
    """The text of a settings file with what most nodes need; `roots` become hierarchies."""
    folders = "\n".join(f"[[hierarchy]]\nroot = {toml(root)}" for root in roots)
    password = f"password_hash = {toml(password_hash)}" if password_hash else '# password_hash = ""'
    example = '# [[hierarchy]]  # a folder to provide, as many as you like\n# root = "/srv/documents"'
    return SHORT.format(name=name, password=password, folders=folders or example)


def template(name: str, roots: Iterable[str] = (), password_hash: str = "") -> str:
    """The text of a settings file with every setting; `roots` become hierarchies."""
    parts = [HEAD.format(name=name), *_values(settings.Settings)]
    for field in fields(settings.Settings):
        default = field.default_factory() if field.default_factory is not MISSING else None
        if is_dataclass(default) and not isinstance(default, type):
            parts += _table(f"[{field.name}]", type(default), {"password_hash": password_hash})
    for field_name, kind in list_tables().items():
        parts += _entries(field_name, kind, list(roots) if kind is settings.Hierarchy else [])
    return "\n".join(parts) + "\n"


def list_tables() -> dict[str, type]:
    """The tables that a settings file may have several times, such as [[source]], and what each entry is."""
    hints = get_type_hints(settings.Settings)
    inner = {f.name: next(iter(get_args(hints[f.name])), None) for f in fields(settings.Settings)}
    return {
        name.rstrip("_"): kind
        for name, kind in inner.items()
        if isinstance(kind, type) and is_dataclass(kind)
    }


def _table(title: str, kind: type, stated: dict[str, str]) -> Iterator[str]:
    yield f"\n# {_doc(kind)}\n{title}"
    yield from _values(kind, stated)
    for field in fields(kind):
        if field.default_factory is not MISSING:
            default = field.default_factory()
            if is_dataclass(default) and not isinstance(default, type):
                yield from _table(f"{title[:-1]}.{field.name}]", type(default), {})


def _entries(name: str, kind: type, roots: list[str]) -> Iterator[str]:
    """A list of tables: those given, else one that is commented out altogether."""
    for root in roots:
        yield f"\n# {_doc(kind)}\n[[{name}]]"
        yield from _values(kind, {"root": root})
        yield "# [hierarchy.access]"
        yield from _values(settings.Access)
    if not roots:
        first = next(iter(fields(kind))).name
        yield f"\n# {_doc(kind)} As many as you like.\n# [[{name}]]"
        yield from (f"# {key} = {json.dumps(value)}" for key, value in _EXAMPLES[name].items())
        yield from _values(kind, skip=first)
        if any(field.name == "access" for field in fields(kind)):
            yield f"# [{name}.access]"
            yield from _values(settings.Access)


def _values(kind: type, stated: dict[str, str] | None = None, skip: str = "") -> Iterator[str]:
    comments = dict(_COMMENT.findall(inspect.getsource(kind)))
    for field in fields(kind):
        key = field.name.rstrip("_")
        if key == skip:
            continue
        value = (stated or {}).get(key) or _default(field)
        if is_dataclass(value) or value is MISSING:
            continue
        if isinstance(value, tuple) and not value and kind is settings.Settings:
            continue  # hierarchies and sources have their own tables
        comment = f"  # {comments[field.name]}" if field.name in comments else ""
        mark = "" if (stated or {}).get(key) else "# "
        yield f"{mark}{key} = {toml(value)}{comment}"


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def _doc(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").splitlines()[0]


def toml(value: object) -> str:
    """A value in TOML: strings as in JSON, but for surrogates, and for a DEL that JSON leaves alone."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + "}"
    return str(value)
