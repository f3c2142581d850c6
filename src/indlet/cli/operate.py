"""Commands for those who run a node: log."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from indlet.cli.provider import config_option, data_option, open_existing
from indlet.cli.show import printable, say, say_json


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
