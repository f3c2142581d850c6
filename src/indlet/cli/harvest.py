"""Harvesting: harvest, sources. What makes HTTP requests is imported only when it is used."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from indlet import process
from indlet.cli.options import config_option, data_option, settings_given
from indlet.cli.secret import secret
from indlet.cli.show import amount, printable, say, say_json
from indlet.errors import SettingsError
from indlet.extension import FollowUp, extensions
from indlet.limits import CHILD_MEMORY_MB
from indlet.model import JsonObject
from indlet.service.harvest.progress import Phase, Progress, RunOutcome
from indlet.settings import Settings, Source, without_credentials

if TYPE_CHECKING:
    from indlet.store import Origin, Store

LINE_SECONDS = 5.0
LOOK_SECONDS = 0.2
WIDTH = 100
SHORT_WIDTH = 80


@click.command()
@click.argument("urls", metavar="[URL…]", nargs=-1)
@data_option
@config_option
@click.option("--set", "set_spec", metavar="S", default="", help="Only this set.")
@click.option("--from", "since", metavar="D", default="", help="Only what changed since; 2024-05-01.")
@click.option("--until", metavar="D", default="", help="Only what changed until.")
@click.option("--full", is_flag=True, help="Everything anew, not only what changed.")
@click.option("--historical", is_flag=True, help="The same in date windows; once interrupted, it goes on.")
@click.option("--reconcile", is_flag=True, help="Then delete what the source no longer lists.")
@click.option("--index", "index_format", metavar="P", default="", help="Index format: tf_basic …, or none.")
@click.option("--fulltext", is_flag=True, help="Where there is no index, find, fetch and analyse documents.")
@click.option("--name", default="", help="What to call the source; for a single URL.")
@click.option("--token", default="", help="Bearer token to send.", envvar="INDLET_TOKEN")
@click.option("--token-file", type=click.File(), help="Read that token from a file; - for stdin.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Seconds of silence before a request is given up.",
)
@click.option("--retries", type=click.IntRange(0), help="How often a request is tried again.")
@click.option("--delay", type=click.FloatRange(0), help="Pause between requests to one source, in seconds.")
@click.option("--at-once", type=click.IntRange(1), help="How many sources at the same time.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def harvest(
    urls: tuple[str, ...], data: Path | None, config: Path | None, set_spec: str, since: str, until: str,
    full: bool, historical: bool, reconcile: bool, index_format: str, fulltext: bool, name: str, token: str,
    token_file: TextIO | None,
    timeout: float | None, retries: int | None, delay: float | None, at_once: int | None,
    as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Harvest metadata and indexes from providers, and make them searchable.

    URL is a node's root, an /oai or /ft-oai address, or the base URL of any OAI-PMH repository. Without one,
    the sources of the settings file are harvested. A later run brings what changed since.

    \b
    indlet harvest http://localhost:8080 --data mine
    indlet harvest https://export.arxiv.org/oai2 --set physics --from 2024-01-01
    indlet harvest --config indlet.toml
    indlet harvest http://one.example.org http://two.example.org --json

    \b
    Exit status
      0  every source was had in full
      1  a source could not be harvested, or not in full; what came was kept
      3  complete, but some records failed, now or before, and are owed (see  indlet failures), or
         deletions wait for an operator (see  indlet deletions)
      130  interrupted; the same command goes on from there
    """
    settings = _adjusted(settings_given(data, config), timeout, retries, at_once)
    _check_command(settings, urls, index_format, name)
    with _indexer_ahead(settings) as indexer, process.limited_data(CHILD_MEMORY_MB):
        from indlet.service.harvest.run import RunOptions
        from indlet.service.pipeline import harvest_all
        from indlet.store import open_configured

        options = RunOptions(full, since, until, reconcile, historical)
        with open_configured(settings) as store, Shown(quiet or as_json) as shown:
            sources = _sources(
                store, settings, urls, set_spec, index_format, fulltext, name, secret(token, token_file) or ""
            )
            if delay is not None:
                sources = [replace(s, delay_seconds=delay) for s in sources]
            try:
                done = harvest_all(
                    store, settings, sources, options=options,
                    started=shown.follow, indexer_ahead=indexer,
                )  # fmt: skip
            finally:
                _put_on_schedule(store, settings, sources, shown.progress)
            twins = _twins(store, sources)
            followed = [extension.after_harvest(store, settings, sources) for extension in extensions()]
    if as_json:
        say_json([p.to_json() for p in done], indent=True)
    else:
        _say_lines(done, followed, settings)
    _warn(done, twins, index_format)
    if any(p.outcome is not RunOutcome.COMPLETE for p in done):
        sys.exit(1)
    if not all(p.ok for p in done) or any(one.failed for one in followed):
        sys.exit(3)


def _say_lines(done: list[Progress], followed: list[FollowUp], settings: Settings) -> None:
    for progress in done:
        say(line(progress, settings.data))
    for text in (text for one in followed for text in one.lines):
        say(printable(text))


def _warn(done: list[Progress], twins: list[tuple[str, str]], index_format: str) -> None:
    from indlet.service.harvest.negotiate import not_offered

    for one, other in twins:
        say(
            printable(
                f"{one}: has the same address as {other}, so that their records are held twice; "
                "keep one of the two, and remove the other at the desk with its records"
            ),
            err=True,
        )
    for progress in done:
        if progress.outcome is RunOutcome.COMPLETE and not_offered(index_format) in progress.repairs:
            say(
                f"{printable(progress.source)}: has no {index_format}: metadata alone were harvested; "
                "leave --index out for the best format that it has",
                err=True,
            )


@contextlib.contextmanager
def _indexer_ahead(settings: Settings) -> Iterator[subprocess.Popen[bytes] | None]:
    """Where there are no data yet, much may come: the process that will index it loads what it needs while
    this one does. If little comes, it goes.
    """
    if settings.store.url or not settings.index.is_embedded or _holds_something(settings.data):
        yield None
        return
    with process.start(
        "indlet.service.index.indexer", "ahead", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            yield child
        finally:
            child.kill()  # it has ended, if it had a task


def _holds_something(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:  # whoever opens it tells what is wrong
        return True


def _adjusted(
    settings: Settings, timeout: float | None, retries: int | None, at_once: int | None
) -> Settings:
    """The settings with what the command line says instead."""
    chosen = settings.harvest
    if timeout is not None:
        chosen = replace(chosen, timeout_seconds=timeout, stall_seconds=timeout)
    if retries is not None:
        chosen = replace(chosen, retries=retries)
    if at_once is not None:
        chosen = replace(chosen, at_once=at_once)
    return replace(settings, harvest=chosen)


@click.command()
@data_option
@config_option
@click.option("--rename", nargs=2, metavar="NAME NEW", help="Rename a source; its records stay.")
@click.option("--remove", metavar="NAME", help="Remove a source; needs --records.")
@click.option("--records", type=click.Choice(["keep", "delete"]), help="With --remove: what becomes of them.")
@click.option("--wide", is_flag=True, help="All columns, also formats, policies and repairs.")
@click.option("--json", "as_json", is_flag=True, help="Everything that is known, as JSON.")
def sources(
    data: Path | None, config: Path | None, rename: tuple[str, str] | None, remove: str | None,
    records: str | None, wide: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show the harvested sources: what they hold, how they are harvested, and what that loses.

    \b
    indlet sources --data mine
    indlet sources --json
    indlet sources --rename 127.0.0.1:8080 "Technical reports"
    indlet sources --remove "Technical reports" --records keep
    """
    from indlet.store import open_configured

    if rename and remove:
        raise click.UsageError("--rename and --remove cannot be given together; choose one")
    if records and not remove:
        raise click.UsageError("--records goes with --remove NAME")
    settings = settings_given(data, config)
    with open_configured(settings, create=False) as store:
        if rename:
            _rename(store, settings, *rename)
            return
        if remove:
            _remove(store, settings, remove, records)
            return
        rows = _rows(store, settings)
        with store.read() as view:
            names, shared = {o.id: o.name for o in view.origins()}, view.shared_identifiers()
    for one in shared:
        say(
            printable(
                f"{names[one.first]} and {names[one.second]} have different records under "
                f"{one.identifiers:,} same identifiers, {one.example} for one: "
                "give each node a name of its own, node.repository in its settings"
            ),
            err=True,
        )
    if as_json:
        say_json(rows, indent=True)
        return
    if not rows:
        say("no sources yet; harvest one with  indlet harvest URL")
        return
    _table(rows, wide)


def _rename(store: Store, settings: Settings, name: str, wanted: str) -> None:
    from indlet.node.harvests import Harvests
    from indlet.node.schedule import Schedule
    from indlet.node.source_list import clean_name

    harvests, wanted = Harvests(store, settings, Schedule(), lambda: None), clean_name(wanted)
    if not wanted:
        raise click.UsageError("--rename needs a new name that is not empty")
    harvests.edit(name, {"name": wanted})
    say(printable(f"{name}: is called {wanted} now, with its {amount(harvests.records(wanted), 'record')}"))


def _remove(store: Store, settings: Settings, name: str, records: str | None) -> None:
    from indlet.node.harvests import Harvests
    from indlet.node.schedule import Schedule

    harvests = Harvests(store, settings, Schedule(), lambda: None)
    if name not in harvests.sources():
        raise SettingsError(f"there is no source called {name!r}; see  indlet sources")
    count = amount(harvests.records(name), "record")
    if records is None:
        raise click.UsageError(
            f"{printable(name)} has {count}: say what becomes of them, "
            f"--records keep (they stay searchable) or --records delete (deletes {count})"
        )
    harvests.check_idle(name)
    harvests.remove(name, records=records == "delete")
    say(printable(f"{name}: removed, {count} {'deleted' if records == 'delete' else 'kept'}"))


def line(progress: Progress, data: Path | None = None) -> str:
    """What came of one source, in one line."""
    parts = [
        amount(progress.records, "record"),
        f"{progress.deleted:,} deleted",
        f"{progress.changed:,} changed",
    ]
    if progress.failed:
        place = f" --data {data}" if data else ""
        parts.append(f"{progress.failed:,} failed (see indlet failures{place})")
    if progress.owed:
        parts.append(f"{progress.owed:,} owed, to be asked for again")
    if progress.withheld:
        parts.append(
            f"{amount(progress.withheld, 'deletion')} for an operator to decide (see indlet deletions)"
        )
    told = ", ".join(f"{kind} {count:,}" for kind, count in progress.repairs.items() if count)
    if told:
        parts.append(f"repaired: {told}")
    how = f" ({progress.form})" if progress.form else ""
    mark = f" {progress.reason};" if progress.reason else ""
    if progress.outcome not in (RunOutcome.COMPLETE, None):
        mark = f" {progress.outcome.upper()}: {progress.reason};"
    return printable(f"{progress.source}{how}:{mark} {', '.join(parts)}, in {progress.seconds:.1f} s")


class Shown:
    """Progress on stderr: a live table on a terminal, a line now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live: Any = None
        self.progress: list[Progress] = []
        self._last = time.monotonic()

    def __enter__(self) -> Shown:
        return self

    def follow(self, progress: list[Progress]) -> None:
        self.progress = progress
        if self._quiet or not progress:
            return
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            self._live = Live(
                get_renderable=self._render, console=console, refresh_per_second=4, transient=True
            )
            self._live.start()
        else:
            import threading

            self._done = threading.Event()
            threading.Thread(target=self._lines, daemon=True).start()
            self._live = None

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        elif hasattr(self, "_done"):
            self._done.set()

    def _lines(self) -> None:
        told: dict[str, str] = {}
        due = time.monotonic() + LINE_SECONDS
        while not self._done.wait(LOOK_SECONDS):
            for p in self.progress:
                if p.trouble and p.trouble != told.get(p.source):
                    say(printable(f"{p.source}: {p.trouble}"), err=True)
                told[p.source] = p.trouble
            if time.monotonic() < due:
                continue
            due = time.monotonic() + LINE_SECONDS
            for p in self.progress:
                if not p.outcome and p.phase is not Phase.WAITING:
                    left = "" if p.remaining is None else f", {p.remaining:,} to come"
                    say(
                        f"{p.source}: {p.phase}, {amount(p.records + p.deleted, 'record')}, "
                        f"{p.rate:,.0f}/s{left}",
                        err=True,
                    )

    def _render(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        # A source's words are shown as they are: what is in brackets there is no markup.
        table = Table(
            "source", "", *("records", "deleted", "repaired", "failed", "rate", "remaining"), box=None
        )
        for column in table.columns[2:]:
            column.justify = "right"
        for p in self.progress:
            left = "" if p.remaining is None or p.outcome else f"{p.remaining:,}"
            state = Text(printable(p.trouble[:WIDTH]) or p.outcome or p.phase)
            table.add_row(
                Text(printable(p.source)), state, f"{p.records:,}", f"{p.deleted:,}", f"{p.repaired:,}",
                f"{p.failed:,}", f"{p.rate:,.0f}/s", left,
            )  # fmt: skip
        return table


def _check_command(settings: Settings, urls: tuple[str, ...], index: str, name: str) -> None:
    """Mistakes on the command line are reported before a store is created."""
    from indlet.formats import INDEX

    if name and len(urls) != 1:
        raise click.UsageError("--name goes with a single URL")
    if index not in ("", "auto", "none", *INDEX):
        raise click.UsageError(f"--index is {index!r}: choose from auto, none, {', '.join(INDEX)}")
    if not urls and not settings.source:
        raise click.UsageError("name a URL, or a settings file that has sources:  indlet harvest URL")
    if not settings.store.url and not _holds_something(settings.data):
        for url in set(urls) - _by_address_or_name(settings.source).keys():
            _checked(url)


def _by_address_or_name(sources: Collection[Source]) -> dict[str, Source]:
    return {s.url: s for s in sources} | {s.name: s for s in sources if s.name}


def _sources(
    store: Store,
    settings: Settings,
    urls: tuple[str, ...],
    set_spec: str,
    index: str,
    fulltext: bool,
    name: str,
    token: str,
) -> list[Source]:
    from indlet.service.harvest.one_origin import configured_sources

    written = list(configured_sources(store, settings).values())
    known = _by_address_or_name(written)
    found = [_given(store, url, set_spec, name, known) for url in urls] or written
    changes: JsonObject = {"set": set_spec, "index": index, "name": name, "token": token}
    changes = {key: value for key, value in changes.items() if value}
    if fulltext:
        changes["fulltext"] = "fetch"
    return [replace(source, **changes) for source in found]


def _put_on_schedule(store: Store, settings: Settings, sources: list[Source], begun: list[Progress]) -> None:
    """What was named on the command line is harvested again by a node that serves this store.

    A source that never answered is not: its address may be a slip.
    """
    from indlet.service.harvest.negotiate import source_name
    from indlet.service.harvest.one_origin import configured_sources
    from indlet.store import desk_sources

    answered = {
        progress.source for progress in begun if progress.pages or progress.outcome is RunOutcome.COMPLETE
    }
    written = configured_sources(store, settings).keys()
    new = [s for s in sources if source_name(s) in answered - written]
    if new:
        with store.write() as tx:
            for source in new:
                desk_sources.add(tx, source_name(source), source)


def _twins(store: Store, sources: list[Source]) -> list[tuple[str, str]]:
    """The sources whose records an earlier one holds as well, and that one."""
    from indlet.service.harvest.negotiate import source_name
    from indlet.service.harvest.one_origin import same_source

    with store.read() as view:
        found = [(source_name(s), same_source(view, source_name(s), s)) for s in sources if not s.republish]
    return [(name, other.name) for name, other in found if other is not None]


def _checked(url: str) -> str:
    if "://" not in url:
        if Path(url).exists():
            raise SettingsError(f"{url} is a file or folder; make it harvestable with  indlet provide {url}")
        host = url.partition("/")[0]
        if not re.search(r"[.:]", host) and host != "localhost":
            raise SettingsError(f"{url!r} is no address; write one such as https://library.example.org/oai")
        url = f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise SettingsError(f"{without_credentials(url)[0]}: only http and https URLs can be harvested")
    return url


def _given(store: Store, url: str, set_spec: str, name: str, known: dict[str, Source]) -> Source:
    """The source that a URL or a name stands for: one of the settings, one harvested before, or a new one."""
    from indlet.service.harvest.negotiate import source_name
    from indlet.service.harvest.one_origin import same_source
    from indlet.store import desk_sources

    plain, user, password = without_credentials(url)
    if (found := known.get(plain)) is not None:
        return replace(found, user=user or found.user, password=password or found.password)
    with store.read() as view:
        if (found := desk_sources.added(view).get(plain)) is not None:
            return found
        new = Source(_checked(url), set=set_spec, name=name)
        twin = same_source(view, source_name(new), new)
    if twin is None:
        return new
    if name:
        raise SettingsError(
            f"{plain}: is harvested already, as {twin.name!r}; leave --name out, or rename it at the desk "
            "or in the settings"
        )
    return replace(new, name=twin.name)


def _rows(store: Store, settings: Settings) -> list[JsonObject]:
    from indlet.service.harvest.one_origin import source_ranks

    scheduled = source_ranks(store, settings).keys()
    with store.read() as view:
        totals, failures = view.totals(), view.failure_counts()
        return [
            _row(
                o,
                totals.get(o.id, (0, 0)),
                failures.get(o.id, 0),
                settings,
                o.name in scheduled or not settings.node.jobs,
            )
            for o in view.origins("source")
        ]


def _row(
    origin: Origin, totals: tuple[int, int], failures: int, settings: Settings, scheduled: bool
) -> JsonObject:
    state = origin.state
    last = state.get("last", {})
    every = (origin.settings.get("every") or settings.harvest.every) if scheduled else ""
    return {
        "source": origin.name,
        "url": state.get("url", origin.settings.get("url", "")),
        "repository": state.get("name", ""),
        "records": totals[0],
        "deleted": totals[1],
        "failures": failures,
        "repairs": state.get("repairs", {}),
        "format": state.get("format", ""),
        "reconciliation": state.get("reconciliation", ""),
        "loss": state.get("loss", []),
        "policy": state.get("policy"),
        "granularity": state.get("granularity", ""),
        "deleted_record": state.get("deleted_record", ""),
        "high_water": state.get("marks", {}),
        "resumable": bool(state.get("run")),
        "last": last,
        "confirmed": state.get("confirmed", ""),
        "adopted": state.get("adopted"),
        "next": _next(every, last.get("at", "")),
    }


def _next(every: str, last: str) -> str:
    from datetime import datetime

    from indlet.node.schedule import next_run

    if not every or not last:
        return ""
    try:
        due = next_run(every, datetime.fromisoformat(last).timestamp())
    except (SettingsError, ValueError):
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due))


def _ended(last: JsonObject) -> str:
    """When and how a source's last run ended: a complete one may still owe records."""
    owed = f"{last['owed']:,} owed" if last.get("owed") else ""
    told = " ".join(filter(None, (last.get("at", ""), last.get("outcome", ""))))
    return ", ".join(filter(None, (told, owed)))


def _table(rows: list[JsonObject], wide: bool) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    headings = ("source", "records", "deleted", "failures", "repairs", "format", "policy", "last run", "next")
    told = [
        (
            row["source"], f"{row['records']:,}", f"{row['deleted']:,}", f"{row['failures']:,}",
            f"{sum(row['repairs'].values()):,}", row["format"],
            "; ".join([row["reconciliation"], *row["loss"]]),
            _ended(row["last"]), row["next"],
        )
        for row in rows
    ]  # fmt: skip
    console = Console()
    if not console.is_terminal:
        for entry in (headings, *told):
            say("\t".join(map(printable, entry)))
        return
    if not wide:
        _short_table(rows)
        return
    table = Table(*(Column(heading, overflow="fold") for heading in headings))
    for entry in told:
        table.add_row(*(Text(printable(cell)) for cell in entry))
    console.print(table)
    for row in rows:
        if row["repairs"]:
            repairs = ", ".join(f"{kind} {count:,}" for kind, count in row["repairs"].items() if count)
            say(printable(f"{row['source']}: {repairs}"))
        if row["adopted"]:
            when = f"last confirmed by its origin: {row['confirmed'] or 'never'}"
            say(printable(f"{row['source']}: adopted by {row['adopted']['by']}; {when}"))
        if row["last"].get("reason"):
            say(printable(f"{row['source']}: {row['last']['reason']}"))


def _short_table(rows: list[JsonObject]) -> None:
    """What fits 80 columns: one line for each source, and below why some were not harvested in full."""
    import textwrap

    names = [printable(row["source"]) for row in rows]
    width = min(max(map(len, (*names, "source"))), 34)
    say(f"{'source':<{width}}  {'state':<10} {'records':>9} {'failures':>8}  last run")
    for name, row in zip(names, rows, strict=True):
        shown = name if len(name) <= width else f"{name[: width - 1]}…"
        last = row["last"]
        at = last.get("at", "")[:10] or "never"
        state = "warning" if last.get("warning") else last.get("outcome", "new")
        say(f"{shown:<{width}}  {state:<10} {row['records']:>9,} {row['failures']:>8,}  {at}")
    for name, row in zip(names, rows, strict=True):
        if said := row["last"].get("warning") or row["last"].get("reason"):
            say("\n".join(textwrap.wrap(f"{name}: {printable(said)}", SHORT_WIDTH, subsequent_indent="  ")))
