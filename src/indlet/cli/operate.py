"""Commands for those who run a node: log, backup, restore."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from indlet.cli.options import CONFIG, config_option, data_option, settings_given
from indlet.cli.provider import open_existing
from indlet.cli.show import amount, printable, say, say_json
from indlet.errors import SettingsError


@click.command()
@data_option
@config_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many acts.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def log(data: Path | None, config: Path | None, limit: int, as_json: bool) -> None:
    """Show who did what at the operations desk, newest first.

    \b
    indlet log
    indlet log --data /var/lib/indlet --limit 500 --json

    The latest 2,000 acts are kept in the store. A node that runs with  --log-level info  also writes each to
    its log, as it happens.
    """
    from indlet.web.admin.desk_log import entries_of

    with open_existing(data, config) as store, store.read() as view:
        found = entries_of(view, limit)
    told = [{**entry._asdict(), "at": _moment(entry.at)} for entry in found]
    if as_json:
        say_json(told, indent=True)
        return
    for entry in told:
        line = f"{entry['at']}  {entry['user']} ({entry['role']}, {entry['client'] or '-'})  {entry['act']}"
        outcome = "" if entry["outcome"] == "done" else f"  NOT DONE: {entry['outcome']}"
        say(printable(f"{line}  {entry['what']}{outcome}".rstrip()))
    if not told:
        say("nothing was done at the desk yet", err=True)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@data_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print what it holds as JSON.")
def backup(folder: Path, data: Path | None, config: Path | None, as_json: bool) -> None:
    """Write a backup of the store to FOLDER, which must not be there yet. The node may go on.

    It holds the store as it is at one moment, the counts of use, and the settings file; all of it is
    checked before FOLDER appears. It is as private as the data folder: it holds tokens and keys.

    \b
    indlet backup /srv/backup/indlet-$(date +%F)
    indlet backup /srv/backup/today --config /etc/indlet/indlet.toml

    A store on PostgreSQL is backed up by pg_dump; the command says how.
    """
    from indlet.store import back_up

    settings_file = config or (CONFIG if data is None and CONFIG.exists() else None)
    with open_existing(data, config) as store:
        contents = back_up(store, folder, settings_file)
    if as_json:
        say_json({**asdict(contents), "at": _moment(contents.at)}, indent=True)
    else:
        say(f"{folder}: {amount(contents.records, 'record')}, {contents.deleted:,} deleted ones; checked")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@data_option
@config_option
@click.option("--index/--no-index", default=True, help="Also make the index.  [yes]")
def restore(folder: Path, data: Path | None, config: Path | None, index: bool) -> None:
    """Make the backup in FOLDER the store of a data folder that has none.

    Each file is compared with its digest, the store is checked, and the index is made anew. Whoever was
    signed in at the desk signs in again, and harvesters that were in the middle of a list begin it anew.

    \b
    indlet restore /srv/backup/today --data /var/lib/indlet
    indlet restore /srv/backup/today --config /etc/indlet/indlet.toml
    """
    from indlet.store import open_store, settings_in
    from indlet.store import restore as restored

    settings = settings_given(data, config)
    if settings.store.url.startswith("postgres"):
        raise SettingsError("[store] url names a PostgreSQL server: bring its dump back with  pg_restore")
    if settings.store.url and data is None:
        raise SettingsError("[store] url names a folder of its own: give it as --data")
    target = data or settings.data
    contents = restored(folder, target)
    say(
        f"{target}: {amount(contents.records, 'record')} of {_moment(contents.at)}, "
        f"{contents.deleted:,} deleted ones"
    )
    if index:
        from indlet.service.index import follow

        with open_store(target, create=False) as store:
            done = follow.catch_up(store, engine=settings.index)
        say(f"the index was made anew, from {amount(done.applied, 'change')}")
    if kept := settings_in(folder):
        say(f"the settings of that time are in {kept}; they were not put into use", err=True)
