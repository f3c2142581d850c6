"""Reads a settings file: TOML in, a checked `Settings` out, or a `SettingsError` that names what is wrong."""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, Union
from urllib.parse import urlsplit

from indlet.errors import SettingsError
from indlet.extension import extensions
from indlet.model import JsonMapping, JsonObject
from indlet.settings import EMBEDDED, ROLES, IndexEngine, Settings

SHORTEST_KEY = 16


def load(path: Path) -> Settings:
    """The settings that a file states, checked; local paths are relative to the file, or begin with "~"."""
    import tomllib  # 5 ms, and many commands read no file

    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise SettingsError(f"{path}: no such file. Write one with  indlet init {path}") from e
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        twice = "; write settings below the [table] that is there already" if " twice " in str(e) else ""
        raise SettingsError(f"{path}: cannot be read as TOML: {e}{twice}") from e
    settings = from_mapping(raw, str(path))
    here = path.resolve().parent
    return replace(
        settings,
        data=Path(_path(here, str(settings.data))),
        portal=replace(settings.portal, logo=settings.portal.logo and _path(here, settings.portal.logo)),
        store=replace(settings.store, url=settings.store.url and _beside(here, settings.store.url)),
        sidecar=replace(
            settings.sidecar,
            cache_folder=settings.sidecar.cache_folder and _path(here, settings.sidecar.cache_folder),
        ),
        hierarchy=tuple(replace(h, root=_beside(here, h.root)) for h in settings.hierarchy),
        library=tuple(
            replace(
                x,
                read=_beside(here, x.read),
                format=_text_format(here, x.format),
                mapping=_table(here, x.mapping),
            )
            for x in settings.library
        ),
        write=tuple(
            replace(
                x,
                folder=_beside(here, x.folder),
                format=_text_format(here, x.format),
                mapping=_table(here, x.mapping),
                subjects=tuple(_beside(here, table) for table in x.subjects),
            )
            for x in settings.write
        ),
        site=tuple(
            replace(s, root=_path(here, s.root), config=tuple(_path(here, path) for path in s.config))
            for s in settings.site
        ),
    )


def from_mapping(raw: JsonMapping, where: str = "settings") -> Settings:
    settings = _build(Settings, raw, where)
    for names, kind in (
        (
            [
                name
                for name in (
                    *(h.name for h in settings.hierarchy),
                    *(s.name for s in settings.site),
                    *(x.name for x in settings.library),
                )
                if name
            ],
            "hierarchy",
        ),
        ([s.name for s in settings.source if s.name], "source"),
        ([r.path for r in settings.repository], "repository"),
        ([one.name for one in settings.api_key], "api_key"),
    ):
        for name in names:
            if names.count(name) > 1:
                raise SettingsError(
                    f"{where}: two entries [[{kind}]] are called {name!r}; give each its own name"
                )
    for source in settings.source:
        if source.mode not in ("fresh", "historical"):
            raise SettingsError(
                f'{where}: source {source.name or source.url}: mode is "fresh" or "historical", '
                f"not {source.mode!r}"
            )
    _check_users(settings, where)
    _check_api_keys(settings, where)
    _check_engine(settings.index, where)
    _check_source_access(settings, where)
    if settings.index.prune and _is_restricted(settings):
        raise SettingsError(
            f"{where}: index.prune goes by the words of all records, so that numbers which everybody sees "
            "would depend on those of a restricted hierarchy or library; leave it out"
        )
    password = os.environ.get("INDLET_ADMIN_PASSWORD_HASH", "")
    if password and not settings.admin.password_hash:
        settings = replace(settings, admin=replace(settings.admin, password_hash=password))
    return settings


def _check_api_keys(settings: Settings, where: str) -> None:
    for one in settings.api_key:
        if len(one.key) < SHORTEST_KEY or not (one.key.isascii() and one.key.isprintable()):
            raise SettingsError(
                f"{where}: [[api_key]] {one.name}: fewer than {SHORTEST_KEY} ASCII characters; make one "
                "with  python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )


def _check_users(settings: Settings, where: str) -> None:
    """Who may enter the desk must be beyond doubt before anybody does."""
    names = [user.name for user in settings.user]
    for user in settings.user:
        if not user.name.strip() or len(user.name) > 100 or not user.name.isprintable():
            raise SettingsError(f"{where}: {user.name!r} is no name of a [[user]]; use up to 100 characters")
        if user.name == "admin":
            raise SettingsError(f'{where}: a [[user]] cannot be called "admin": that is who [admin] is about')
        if names.count(user.name) > 1:
            raise SettingsError(f"{where}: two entries [[user]] are called {user.name!r}; leave one")
        if user.role not in ROLES:
            raise SettingsError(f"{where}: user {user.name!r}: role is one of {', '.join(ROLES)}")
    admin = settings.admin
    if admin.header_role not in ("", *ROLES):
        raise SettingsError(f"{where}: admin.header_role is one of {', '.join(ROLES)}, or empty")
    if admin.user_header and not settings.serve.trusted_proxies:
        raise SettingsError(
            f"{where}: admin.user_header is believed from trusted proxies alone; name them in "
            'serve.trusted_proxies, such as ["127.0.0.1"]'
        )
    for value, known, name in (
        (settings.log.level, ("debug", "info", "warning", "error"), "log.level"),
        (settings.log.format, ("text", "json"), "log.format"),
    ):
        if value not in known:
            raise SettingsError(f"{where}: {name} is one of {', '.join(known)}; found {value!r}")


def _check_engine(index: IndexEngine, where: str) -> None:
    engines = [EMBEDDED, *(name for extension in extensions() for name in extension.index_engines)]
    if index.engine not in engines:
        known = " or ".join(f'"{name}"' for name in engines)
        raise SettingsError(f"{where}: index.engine is {known}, not {index.engine!r}")
    if (index.engine == "opensearch") != bool(index.url):
        raise SettingsError(f'{where}: index.url goes with index.engine = "opensearch", and that needs one')
    for url in index.url:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise SettingsError(
                f"{where}: index.url holds {_bare(url)!r}; give addresses like https://host:9200"
            )
    if not 1 <= index.shards <= 1024:
        raise SettingsError(f"{where}: index.shards is {index.shards}; give a number from 1 to 1024")
    if not 0 <= index.prune <= 1:
        raise SettingsError(f"{where}: index.prune is {index.prune}; give a share such as 0.5, or 0 for none")
    if not 1 <= index.prune_best <= 1_000_000:
        raise SettingsError(f"{where}: index.prune_best is {index.prune_best}; give a number such as 10")
    if not set(index.infer) <= {"subject", "type"}:
        raise SettingsError(f'{where}: index.infer is {list(index.infer)}; give "subject", "type" or both')
    if index.infer_function and not (index.infer and ":" in index.infer_function):
        raise SettingsError(f'{where}: index.infer_function is "package.module:name", beside index.infer')
    if index.prune and not index.is_embedded:
        raise SettingsError(f"{where}: index.prune is for the embedded engine; leave it out")


def _bare(url: str) -> str:
    """A URL without a name and password."""
    return url.rpartition("@")[2]


def _table(here: Path, name: str) -> str:
    """A table beside the settings; a bare name is one that comes with indlet."""
    return _path(here, name) if "." in name or "/" in name else name


def _text_format(here: Path, name: str) -> str:
    """A format whose table may stand beside the settings."""
    return f"table:{_table(here, name[6:])}" if name.startswith("table:") else name


def _beside(here: Path, root: str) -> str:
    return root if "://" in root or "::" in root else _path(here, root)


def _path(here: Path, path: str) -> str:
    """A path of the settings: relative to their folder, "~" for the home of whoever runs the node."""
    try:
        return str(here / Path(path).expanduser())
    except RuntimeError as e:
        raise SettingsError(f"{path}: the home folder is not known here; write the whole path") from e


T = TypeVar("T")


def _build(kind: type[T], raw: Any, where: str) -> T:
    """A dataclass from a table: unknown keys and wrong types are errors that name the key."""
    if not isinstance(raw, Mapping):
        raise SettingsError(f"{where}: expected a table, found {raw!r}")
    assert is_dataclass(kind)
    hints = typing.get_type_hints(kind)
    known = {f.name.rstrip("_"): f for f in fields(kind)}
    values: JsonObject = {}
    for key, value in raw.items():
        if key not in known:
            import difflib

            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"
            raise SettingsError(f"{where}: unknown setting {key!r}; {hint}")
        name = known[key].name
        values[name] = _value(hints[name], value, f"{where}: {key}")
    for key, f in known.items():
        if f.name not in values and f.default is MISSING and f.default_factory is MISSING:
            raise SettingsError(f"{where}: {kind.__name__.lower()} needs {key!r}")
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if is_dataclass(hint):
        return _build(typing.cast(type[Any], hint), value, where)
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        if not isinstance(value, list | tuple):
            raise SettingsError(f"{where}: expected a list, found {value!r}")
        return tuple(_value(inner, v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise SettingsError(f"{where}: expected a table, found {value!r}")
        return value
    if origin in (Union, types.UnionType):
        return value
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise SettingsError(f"{where}: expected {hint.__name__}, found {value!r}")
    return value


def _check_source_access(settings: Settings, where: str) -> None:
    """Rules of access go by the name of a source; sources of one address may hold each other's records."""
    for source in settings.source:
        if source.access.is_restricted and not source.name:
            raise SettingsError(f"{where}: source {source.url} has rules of access; give it a name")
        others = (other for other in settings.source if other.url.rstrip("/") == source.url.rstrip("/"))
        if any(other.access != source.access for other in others):
            raise SettingsError(
                f"{where}: the sources with the URL {source.url} have different rules of access, but may "
                "hold the same records; give all of them the same rules"
            )


def _is_restricted(settings: Settings) -> bool:
    """Whether there are rules of access to anything that is searched."""
    rules = [one.access for one in settings.hierarchy] + [one.access for one in settings.library]
    return any(access.is_restricted for access in (*rules, *(one.access for one in settings.source)))
