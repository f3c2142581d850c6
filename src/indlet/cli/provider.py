"""Commands of the provider: provide, crawl, serve, records, failures, init."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from indlet.cli.options import CONFIG, config_option, data_option, settings_given
from indlet.cli.secret import secret
from indlet.cli.show import amount, escaped, printable, say, say_json
from indlet.errors import SettingsError
from indlet.settings import Access, Hierarchy, Settings

if TYPE_CHECKING:
    from indlet.store import StoredFailure

F = TypeVar("F", bound=Callable[..., Any])


def hierarchy_options(command: F) -> F:
    """The options that say what folders given on the command line are."""
    options = (
        click.argument("roots", metavar="PATH…", nargs=-1),
        click.option("--data", type=click.Path(path_type=Path), help="Folder of the store.  [indlet-data]"),
        click.option("--base-url", default="", help="The node's public root, above /oai and /ft-oai."),
        click.option("--content-url", default="", help="Where the files already are on the web."),
        click.option("--private", is_flag=True, help="Give out statistics, but no content and no links."),
        click.option("--name", default="", help="The hierarchy, in identifiers and sets.  [end of PATH]"),
        click.option("--workers", type=click.IntRange(0), default=0, help="Processes.  [one a core]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def log_options(command: F) -> F:
    """The options that say what a serving node logs."""
    levels, forms = click.Choice(("debug", "info", "warning", "error")), click.Choice(("text", "json"))
    for option in (
        click.option("--log-format", type=forms, help="Of the log: lines of text, or of JSON."),
        click.option("--log-level", type=levels, help="What is logged; info tells of each request."),
    ):
        command = option(command)
    return command


def with_log(settings: Settings, level: str | None, form: str | None) -> Settings:
    log = settings.log
    return replace(settings, log=replace(log, level=level or log.level, format=form or log.format))


@click.command()
@hierarchy_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes any free one."
)
@click.option("--every", default="1m", show_default=True, help="How often to crawl again; '' for never.")
@click.option("--title", default="", help="What the repository is called.  [indlet]")
@click.option("--email", default="", help="Whom harvesters should write to.")
@click.option("--positions", is_flag=True, help="Keep word positions, so that phrases are exact.")
@click.option("--portal", is_flag=True, help="Also let people search this collection here.")
@log_options
def provide(
    roots: tuple[str, ...],
    data: Path | None,
    base_url: str,
    content_url: str,
    private: bool,
    name: str,
    workers: int,
    host: str,
    port: int,
    every: str,
    title: str,
    email: str,
    positions: bool,
    portal: bool,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Make folders harvestable: crawl them, serve them, and keep both in step.

    PATH is a folder, a file, a zip or tar archive, or a URL: ftp://, sftp://, http(s):// (a listing),
    webdav(s)://, s3://, and archives on any of these (zip::ftp://…).

    \b
    indlet provide ~/papers
    indlet provide ~/papers --base-url https://papers.example.org --port 8000
    indlet provide /srv/reports --content-url https://example.org/reports
    indlet provide ~/letters --private

    Nothing is written to PATH; everything is kept in --data.
    """
    from indlet.cli.serving import run

    settings = _from_options(roots, data, base_url, content_url, private, name, workers)
    if not settings.hierarchy:
        raise click.UsageError("name at least one folder:  indlet provide PATH")
    node = replace(
        settings.node,
        host=host,
        port=port,
        name=title or settings.node.name,
        admin_email=(email,) if email else settings.node.admin_email,
    )
    analysis = replace(settings.analysis, positions=positions or settings.analysis.positions)
    settings = replace(settings, node=node, crawl=replace(settings.crawl, every=every), analysis=analysis)
    run(with_log(settings, log_level, log_format), crawl_at_once=True, portal=portal)


@click.command()
@hierarchy_options
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
@click.option("--accept-empty", is_flag=True, help="Delete what is known of a hierarchy that is empty now.")
@click.option("--forget", metavar="NAME", help="Delete all records of a hierarchy that is no longer wanted.")
def crawl(
    roots: tuple[str, ...],
    data: Path | None,
    base_url: str,
    content_url: str,
    private: bool,
    name: str,
    workers: int,
    config: Path | None,
    as_json: bool,
    quiet: bool,
    accept_empty: bool,
    forget: str | None,
) -> None:
    """Crawl hierarchies once: those named here, else those of the settings file.

    \b
    indlet crawl ~/papers --data papers-data
    indlet crawl --config indlet.toml
    indlet crawl --config indlet.toml --json

    Only what changed is read. An interrupted crawl is completed by the next one. What cannot be reached is
    never taken for deleted.

    \b
    Exit status
      0  everything became a record, was unchanged, or was left alone by rule
      1  a hierarchy could not be read at all
      3  complete, but some files failed (see  indlet failures), some folders could not be listed, or
         deletions wait for an operator (see  indlet deletions)
      130  interrupted
    """
    from indlet.cli.show import print_summaries, progress
    from indlet.provider import pipeline
    from indlet.store import open_configured

    if roots:
        settings = _from_options(roots, data, base_url, content_url, private, name, workers)
        if config:
            settings = replace(settings_given(data, config), hierarchy=settings.hierarchy)
            settings = _chosen(settings, workers, base_url)
    else:
        settings = settings_given(data, config, with_file=True, required=forget is None)
        settings = _chosen(settings, workers)
    if forget is not None:
        _forget(settings, forget)
        return
    if not settings.crawls():
        raise SettingsError(
            f"{config or CONFIG}: no [[hierarchy]] is set; add one, or name a folder to crawl"
        )
    with open_configured(settings) as store:
        with progress(quiet or as_json) as report:
            summaries = pipeline.crawl(store, settings, report=report, accept_empty=accept_empty)
        print_summaries(summaries, as_json, settings.data)
    statuses = {summary.status for summary in summaries}
    sys.exit(1 if 1 in statuses else max(statuses, default=0))


def _chosen(settings: Settings, workers: int, base_url: str = "") -> Settings:
    """The settings with what the command line says instead."""
    return replace(
        settings,
        node=replace(settings.node, base_url=base_url or settings.node.base_url),
        crawl=replace(settings.crawl, workers=workers or settings.crawl.workers),
    )


@click.command()
@config_option
@click.option("--host", help="Instead of the one in the settings.")
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of the one in the settings.")
@data_option
@click.option("--crawl/--no-crawl", "at_once", default=True, help="Crawl once at the start.  [yes]")
@click.option(
    "--portal/--no-portal", default=None, help="Also let people search here.  [if that part is installed]"
)
@log_options
def serve(
    config: Path | None,
    host: str | None,
    port: int | None,
    data: Path | None,
    at_once: bool,
    portal: bool | None,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Serve, crawl and harvest as the settings file says.

    \b
    indlet init && indlet serve
    indlet serve --config /etc/indlet.toml
    indlet serve --data harvested
    """
    from indlet.cli.serving import run

    # A store alone is enough to be served: what was harvested into it can be searched.
    settings = settings_given(data, config, with_file=True, required=True)
    node = replace(
        settings.node,
        host=host or settings.node.host,
        port=settings.node.port if port is None else port,
    )
    run(with_log(replace(settings, node=node), log_level, log_format), crawl_at_once=at_once, portal=portal)


@click.command()
@data_option
@config_option
@click.option("--jsonl", is_flag=True, help="A JSON object a line, with metadata and terms.")
@click.option("--set", "set_spec", help="Only of this set and those below it.")
@click.option("--live", is_flag=True, help="Leave out deleted records.")
def records(data: Path | None, config: Path | None, jsonl: bool, set_spec: str | None, live: bool) -> None:
    """List the records of a store, oldest change first.

    \b
    indlet records --data papers-data
    indlet records --data papers-data --jsonl | jq -r .identifier
    """
    import orjson

    from indlet.service.records.stored_policy import policy_for
    from indlet.text import Analyzer

    with open_existing(data, config) as store, store.read() as view:
        analyzer = Analyzer(policy_for(store, settings_given(data, config).analysis))
        names = {origin.id: origin.name for origin in view.origins()}
        after = 0
        out = sys.stdout.buffer
        while page := view.page(500, after=after, set_spec=set_spec):
            after = page[-1].seq
            for stored in page:
                if live and stored.deleted:
                    continue
                if jsonl:
                    stored = analyzer.completed(stored)
                record = stored.record
                stamp = datetime.fromtimestamp(stored.datestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                if jsonl:
                    vector = record.vector
                    line = {
                        "identifier": record.identifier,
                        "datestamp": stamp,
                        "deleted": record.deleted,
                        "sets": record.sets,
                        "metadata": record.metadata,
                        "terms": vector.frequencies() if vector else {},
                        "length": stored.length,
                        "language": stored.language,
                        "origin": names.get(stored.origin, ""),
                        "properties": record.properties,
                    }
                    out.write(escaped(orjson.dumps(line)) + b"\n")
                else:
                    title = (
                        "(deleted)" if record.deleted else next(iter(record.metadata.get("title", ())), "")
                    )
                    text = printable(f"{stamp}  {record.identifier}  {' '.join(title.split())}")
                    out.write(text.encode() + b"\n")
        out.flush()


@click.command()
@data_option
@config_option
@click.option("--jsonl", is_flag=True, help="A JSON object a line.")
@click.option("--left-out", is_flag=True, help="List what the last crawl left out by rule, and why.")
def failures(data: Path | None, config: Path | None, jsonl: bool, left_out: bool) -> None:
    """List what could not be read or harvested, and why.

    \b
    indlet failures --data papers-data
    indlet failures --data site-data --left-out
    """

    from indlet.provider.summary import left_out_of

    with open_existing(data, config) as store, store.read() as view:
        names = {origin.id: origin.name for origin in view.origins()}
        if left_out:
            for number, name in names.items():
                for where, reason in left_out_of(view, number):
                    line = {"origin": name, "where": where, "reason": reason}
                    told = _one_line(f"{name}: {where}: {reason}")
                    say_json(line) if jsonl else say(printable(told))
            return
        for failure in view.failures():
            origin = names.get(failure.origin, "")
            if jsonl:
                line = {
                    "origin": origin,
                    "where": failure.where,
                    "stage": failure.stage,
                    "reason": failure.reason,
                    "at": _moment(failure.at),
                    "since": _moment(failure.first),
                    "attempts": failure.attempts,
                    "next": None if failure.due is None else _moment(failure.due),
                    "raw": failure.raw.decode("utf-8", "replace"),
                }
                say_json(line)
            else:
                told = _one_line(f"{origin}: {failure.where}: {failure.stage}: {failure.reason}")
                say(printable(told + _history(failure)))


def _history(failure: StoredFailure) -> str:
    """Since when it fails, how often it did, and when it is tried again; empty for a single failure."""
    if failure.due is None and failure.attempts == 1:
        return ""
    again = "" if failure.due is None else f", next attempt from {_moment(failure.due)}"
    return f"  (since {_moment(failure.first)}, attempts: {failure.attempts}{again})"


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=CONFIG)
@click.option("--root", "roots", multiple=True, help="A folder to provide; may be given several times.")
@click.option("--password", envvar="INDLET_ADMIN_PASSWORD", help="Opens the operations desk; kept as a hash.")
@click.option("--password-file", type=click.File(), help="Read that password from a file; - for stdin.")
@click.option("--ask-password", is_flag=True, help="Ask for that password instead.")
@click.option("--all", "everything", is_flag=True, help="Every setting with its default and meaning.")
def init(
    path: Path,
    roots: tuple[str, ...],
    password: str | None,
    password_file: TextIO | None,
    ask_password: bool,
    everything: bool,
) -> None:
    """Write a short indlet.toml to start from; with --all, one that lists every setting.

    \b
    indlet init
    indlet init --all
    indlet init /etc/indlet.toml --root /srv/documents --ask-password
    indlet init --password-file /run/secrets/desk
    """
    from indlet.cli.template import short_template, template

    hashed = ""
    password = secret(password, password_file)
    if ask_password:
        password = click.prompt("Password for the operations desk", hide_input=True, confirmation_prompt=True)
    if password:
        from indlet.web.auth import hash_password

        hashed = hash_password(password)
    try:
        with path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)  # it may come to hold passwords and tokens
            file.write((template if everything else short_template)(path.name, roots, hashed))
    except FileExistsError as e:
        raise SettingsError(
            f"{path}: exists already and was left as it is; choose another name, or set "
            "the password of the desk in it with  indlet password"
        ) from e
    except OSError as e:
        raise SettingsError(f"{path}: cannot be written: {e.strerror}") from e
    say(f"Wrote {path}. Adapt it, then:  indlet serve --config {path}")


def _from_options(
    roots: tuple[str, ...],
    data: Path | None,
    base_url: str,
    content_url: str,
    private: bool,
    name: str,
    workers: int,
) -> Settings:
    from indlet.provider.hierarchy import local_root

    if name and len(roots) > 1:
        raise click.UsageError("--name goes with a single PATH; use a settings file (indlet init) for more")
    if content_url and len(roots) > 1:
        raise click.UsageError(
            "--content-url goes with a single PATH; use a settings file (indlet init) for more"
        )
    if content_url and private:
        raise click.UsageError("--private gives out no links, --content-url gives them: choose one")
    access = Access(content="private" if private else "elsewhere" if content_url else "public")
    hierarchies = []
    for root in roots:
        local = local_root(root)
        if local is not None and not local.exists():
            raise SettingsError(f"{root}: no such file or folder; check the path")
        full = root if local is None else str(Path.cwd() / local)
        hierarchies.append(Hierarchy(full, name=name, base_url=content_url, access=access))
    settings = Settings(data=data or Settings().data, hierarchy=tuple(hierarchies))
    # Said before the store is made: nothing is written to PATH.
    for root in roots:
        local = local_root(root)
        if local is not None and local.resolve() == settings.data.resolve():
            raise SettingsError(
                f"{root}: cannot hold indlet's own data too; choose another folder with --data"
            )
    return replace(
        settings,
        node=replace(settings.node, base_url=base_url),
        crawl=replace(settings.crawl, workers=workers),
    )


def open_existing(data: Path | None, config: Path | None) -> Any:
    """The store of a folder that is named, of a settings file that is named, or of the one here."""
    from indlet.store import open_configured

    return open_configured(settings_given(data, config), create=False)


def _forget(settings: Settings, name: str) -> None:
    from indlet.provider.pipeline import all_permits
    from indlet.provider.source import guarded_name
    from indlet.store import open_configured

    with open_configured(settings, create=False) as store, contextlib.ExitStack() as permits:
        for permit in all_permits(name):
            permits.enter_context(store.job(permit))
        with store.read() as view:
            origin = view.origin("hierarchy", name)
            guarded = view.origin("hierarchy", guarded_name(name))
            known = [o.name for o in view.origins("hierarchy")]
        if origin is None:
            raise SettingsError(
                f"no hierarchy is called {name!r} in {store.location}; known: {', '.join(known) or 'none'}"
            )
        with store.write() as tx:
            count = sum(tx.forget(one.id) for one in (origin, guarded) if one is not None)
    say(f"{name}: {amount(count, 'record')} deleted")


def _one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n").encode("utf-8", "backslashreplace").decode()
