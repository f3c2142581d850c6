"""check: whether a node has what it needs, before it starts and while it runs."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from indlet.cli.options import CONFIG, config_option, data_option, settings_given
from indlet.cli.show import amount, printable, say, say_json
from indlet.errors import IndletError, StoreError
from indlet.extension import extensions
from indlet.settings import IndexEngine, Settings, Source, is_loopback

if TYPE_CHECKING:
    from indlet.store import Store

_TIGHT: Final = 1024**3  # bytes of free disk below which it is told
_TOO_LITTLE: Final = 100 * 1024**2
_ENDED: Final = {"failed": "its last run failed", "incomplete": "its last run was incomplete"}
_AT_ONCE: Final = 4  # sources that are asked at one time


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`status`: "ok"; "warning": it works, and somebody should look; "problem": it does not work."""

    area: str
    subject: str
    status: str
    message: str


@click.command()
@data_option
@config_option
@click.option("--offline", is_flag=True, help="Ask no source.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def check(ctx: click.Context, data: Path | None, config: Path | None, offline: bool, as_json: bool) -> None:
    """Check settings, rights, disk, store, index, folders and sources; a node may be running meanwhile.

    \b
    indlet check
    indlet check --config /etc/indlet/indlet.toml --json
    indlet check --offline

    Reads the whole store once, and asks each source for its formats, but changes nothing.

    \b
    Exit status
      0  no problem; there may be warnings
      1  at least one problem
    """
    found = list(_results(data, config, offline))
    if as_json:
        say_json([asdict(result) for result in found], indent=True)
    else:
        for f in found:
            say(printable(f"{f.status:<8} {f.area:<9} {f.subject}: {f.message}"))
    ctx.exit(int(any(result.status == "problem" for result in found)))


def _results(data: Path | None, config: Path | None, offline: bool) -> Iterator[CheckResult]:
    path = config or CONFIG
    try:
        settings = settings_given(data, config, with_file=True)
    except IndletError as e:
        yield CheckResult("settings", str(path), "problem", str(e).removeprefix(f"{path}: "))
        return
    yield from _settings(settings, path)
    yield from _roots(settings)
    for extension in extensions():
        yield from extension.checks(settings)
    yield from _formats(settings)
    yield from _folder(settings.data)
    try:
        from indlet.store import open_configured

        with open_configured(settings, create=False) as store:
            yield from _store(store)
            yield from _index(store, settings.index)
            yield from _sources(store, settings, offline)
    except StoreError as e:
        yield CheckResult("store", str(settings.data), "problem", str(e).removeprefix(f"{settings.data}: "))


def _settings(settings: Settings, path: Path) -> Iterator[CheckResult]:
    if path.exists():
        yield CheckResult("settings", str(path), "ok", "can be read")
        secret = (
            settings.admin.password_hash
            or settings.user
            or any(s.token or s.password for s in settings.source)
            or bool(settings.api_key)
        )
        if secret and path.stat().st_mode & 0o077:
            yield CheckResult("settings", str(path), "warning", f"others may read it: chmod 600 {path}")
    else:
        yield CheckResult("settings", str(path), "ok", "is not there; the defaults hold")
    public = urlsplit(settings.base_url())
    if public.scheme == "http" and not is_loopback(public.hostname or ""):
        yield CheckResult(
            "settings",
            "node.base_url",
            "warning",
            "is plain http: put a proxy with TLS in front (docs/operate.md)",
        )
    if settings.admin.public and public.scheme != "https":
        yield CheckResult("settings", "admin.public", "warning", "passwords go over plain http: use https")
    people = [f"{user.name} ({user.role})" for user in settings.user]
    if settings.admin.password_hash:
        people.insert(0, "admin (admin)")
    if settings.admin.user_header:
        people.append(f"whom {settings.admin.user_header} names")
    yield CheckResult("settings", "desk", "ok", ", ".join(people) or "shut: open it with  indlet password")


def _roots(settings: Settings) -> Iterator[CheckResult]:
    roots = (
        [h.root for h in settings.hierarchy]
        + [s.root for s in settings.site]
        + [x.read for x in settings.library]
    )
    for root in roots:
        if "://" in root or "::" in root:
            continue  # asked by the crawl, with its own rights
        good = os.access(root, os.R_OK)
        yield CheckResult(
            "folder",
            root,
            "ok" if good else "problem",
            "can be read" if good else "is not there, or may not be read",
        )


def _formats(settings: Settings) -> Iterator[CheckResult]:
    """Formats of sources."""
    try:
        from indlet.formats import METADATA
        from indlet.service.harvest.negotiate import source_name
        from indlet.service.harvest.run import FEED
    except ModuleNotFoundError:
        return  # a provider alone
    known = (*METADATA, FEED)
    for source in settings.source:
        if source.metadata not in known and not source.metadata.startswith("table-"):
            message = f"metadata is {source.metadata!r}, which is read for Dublin Core names only; known are "
            yield CheckResult(
                "format", f"source {source_name(source)}", "warning", message + ", ".join(METADATA)
            )


def _folder(folder: Path) -> Iterator[CheckResult]:
    """Rights and room of the data folder."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not os.access(there, os.W_OK):
        yield CheckResult("rights", str(there), "problem", "may not be written by this user")
    elif not folder.exists():
        message = "is not there: indlet serve creates it; if the node uses another folder, name that one"
        yield CheckResult("rights", str(folder), "warning", f"{message} with --data or in the settings")
    elif wide := stat.S_IMODE(folder.stat().st_mode) & 0o077:
        message = f"others may enter it ({wide:03o}); the next start takes that right away"
        yield CheckResult("rights", str(folder), "warning", message)
    else:
        yield CheckResult("rights", str(folder), "ok", "can be written, by its owner alone")
    free = shutil.disk_usage(there).free
    status = "problem" if free < _TOO_LITTLE else "warning" if free < _TIGHT else "ok"
    yield CheckResult("disk", str(there), status, f"{free / 1024**3:,.1f} GB are free")


def _store(store: Store) -> Iterator[CheckResult]:
    problems = store.check()
    with store.read() as view:
        live = sum(count for count, _ in view.totals().values())
    told = (
        "; ".join(problems) + "; restore a backup"
        if problems
        else f"whole, {amount(live, 'record')}, {store.size():,} bytes"
    )
    yield CheckResult("store", store.location, "problem" if problems else "ok", told)
    room, size = shutil.disk_usage(store.local_folder).free, store.size()
    if room < size:
        yield CheckResult(
            "disk", str(store.local_folder), "warning", f"no room for a second store of {size:,} bytes"
        )


def _index(store: Store, engine: IndexEngine) -> Iterator[CheckResult]:
    try:
        from indlet.service.index import follow
        from indlet.service.index.engines import index_of
    except ModuleNotFoundError:
        return  # a provider alone
    try:
        newest, position = follow.lag(store, engine)
        if position < 0:
            yield CheckResult(
                "index", "index", "problem", "is missing, damaged or of other records:  indlet reindex"
            )
        elif position < newest:
            yield CheckResult(
                "index",
                "index",
                "warning",
                f"{amount(newest - position, 'change')} behind; a running node catches up",
            )
        else:
            with store.read() as view:
                live = sum(count for count, _ in view.totals().values())
            documents = index_of(store, engine).searcher().collection.documents
            good = documents == live
            told = (
                f"holds {'all ' * (live > 1)}{amount(live, 'record')}"
                if good
                else f"{amount(documents, 'record')} for {live:,}:  indlet reindex"
            )
            yield CheckResult("index", "index", "ok" if good else "problem", told)
    except IndletError as e:
        yield CheckResult("index", "index", "problem", str(e))


def _sources(store: Store, settings: Settings, offline: bool) -> Iterator[CheckResult]:
    try:
        from indlet.node.harvests import Harvests
        from indlet.node.schedule import Schedule
    except ModuleNotFoundError:
        return
    sources = Harvests(store, settings, Schedule(), lambda: None).sources()
    with store.read() as view:
        origins = {origin.name: origin for origin in view.origins("source")}
        for name in sources:
            runs = view.runs(origins[name].id, 1) if name in origins else []
            if runs and runs[0].outcome in _ENDED:
                reason = str(runs[0].detail.get("reason", ""))
                yield CheckResult("source", name, "warning", f"{_ENDED[runs[0].outcome]}: {reason}")
    asked = {name: source for name, source in sources.items() if not source.paused and not offline}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda one: _asked(one[0], one[1], settings), asked.items())


def _asked(name: str, source: Source, settings: Settings) -> CheckResult:
    from indlet.node.probe import probe_in_child
    from indlet.text import policy_of

    answer = probe_in_child(source, settings.harvest, policy_of(settings.analysis), seconds=30.0)
    if answer.problem:
        return CheckResult("source", name, "problem", answer.problem)
    return CheckResult("source", name, "ok", f"answers as {answer.name or answer.url}, {answer.form}")
