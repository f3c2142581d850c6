"""The command that does the jobs of a store without serving: worker."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from indlet import logs
from indlet.cli.options import config_option, data_option, settings_given
from indlet.cli.show import printable, say
from indlet.errors import MissingExtra
from indlet.provider.hierarchy import named
from indlet.store import Store, open_configured


@click.command()
@data_option
@config_option
@click.option("--at-once", type=click.IntRange(1, 64), default=2, show_default=True, help="Jobs at a time.")
@click.option("--pause", "wish", flag_value="pause", help="Let no worker of the store begin a job; then end.")
@click.option("--resume", "wish", flag_value="resume", help="Let them begin jobs again; then end.")
@click.option("--status", "wish", flag_value="status", help="Show what was done and what waits; then end.")
def worker(data: Path | None, config: Path | None, at_once: int, wish: str | None) -> None:
    """Crawl, harvest, index and write out, beside any number of other workers of the same store.

    \b
    indlet worker --config indlet.toml
    indlet worker --config indlet.toml --pause

    SIGTERM lets running jobs end and begins no others; a second one cuts them short, and whoever looks next
    takes them up again. Nodes that only answer have  jobs = false  under [node].
    """
    settings = settings_given(data, config, with_file=True)
    settings = replace(settings, hierarchy=named(settings.hierarchy))
    try:
        from indlet.cluster import worker as workers
        from indlet.node import job_entries
        from indlet.service.harvest.one_origin import keep_renamed
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        raise MissingExtra(f"a worker (it imports {e.name})", "service") from e
    logs.configure(settings.log)
    with open_configured(settings) as store:
        if wish == "status":
            _show(store)
            return
        if wish is not None:
            job_entries.pause(store, wish == "pause")
            return
        keep_renamed(store, settings)
        working = workers.Worker(store, settings, at_once)

        def heard(number: int, frame: object) -> None:
            (working.stop if working.draining else working.drain)()

        before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            working.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _show(store: Store) -> None:
    from indlet.node.job_entries import last_runs, paused, requests

    if paused(store):
        say("paused: indlet worker --resume lets jobs begin again")
    for name, run in sorted(last_runs(store).items()):
        moment = datetime.fromtimestamp(run.ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        say(printable(f"{moment}  {name}  {run.worker}  {run.error or 'done'}"))
    for name, request in requests(store).items():
        moment = datetime.fromtimestamp(request.asked, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        say(printable(f"{moment}  {name}  asked for"))
