"""Libraries that keep each other's records: sync, alerts, deletions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from indlet.cli.harvest import line as harvest_line
from indlet.cli.options import CONFIG, by_option, config_option, data_option, settings_given
from indlet.cli.show import amount, printable, say, say_json
from indlet.errors import RemoteError, SettingsError
from indlet.model import JsonObject
from indlet.settings.file import load

if TYPE_CHECKING:
    from indlet.exchange.write_state import Written
    from indlet.provider.summary import Summary
    from indlet.service.harvest.progress import Progress


@click.command()
@click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False), default=CONFIG,
    show_default=True, metavar="FILE", help="A settings file.",
)  # fmt: skip
@click.option("--historical", is_flag=True, help="Everything, in date windows, not only what changed.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def sync(config: Path, historical: bool, as_json: bool) -> None:
    """One round: read what the catalogue exported, harvest the others, write what the catalogue imports.

    For cron. An interrupted round is completed by the next one. A historical one also asks the others for
    all that they have, and looks at every file in the import folders; what is there already stays as it is.

    \b
    Exit status
      0  all was done
      1  a step could not be done, or not in full; the others were
    """
    from indlet.exchange.duplicates.job import look
    from indlet.exchange.notify import tell, watch
    from indlet.exchange.write_out import write_out
    from indlet.provider import pipeline
    from indlet.service.harvest.run import RunOptions
    from indlet.service.pipeline import harvest_all
    from indlet.store import open_configured

    settings = load(config)
    options = RunOptions(historical=historical)
    if not (settings.library or settings.hierarchy or settings.source or settings.write):
        raise SettingsError(f"{config}: nothing to do; it needs [[library]], [[source]] or [[write]]")
    with open_configured(settings) as store:
        read = pipeline.crawl(store, settings) if settings.library or settings.hierarchy else []
        harvested = harvest_all(store, settings, options=options) if settings.source else []
        written = write_out(store, settings, historical=historical)
        if settings.duplicates.every:
            look(store)
        watch(store, settings)
        try:
            tell(store, settings)
            untold = ""
        except RemoteError as e:
            untold = str(e)
    problems = [*_problems(read, harvested, written), *([untold] if untold else [])]
    if as_json:
        say_json(_told(read, harvested, written, problems), indent=True)
    else:
        for summary in read:
            counts = f"{summary.records} written, {summary.deleted} deleted, {summary.failed} failed"
            told = (
                f", {amount(summary.warnings, 'warning')} (see  indlet failures)" if summary.warnings else ""
            )
            say(f"local read   {printable(summary.hierarchy)}: {counts}{told}")
        for progress in harvested:
            say(f"harvest      {harvest_line(progress)}")
        for one in written:
            counts = f"{one.files} written, {one.unchanged} unchanged, {one.deleted} deleted"
            say(f"local write  {printable(one.folder)}: {counts}, {one.failed} failed")
        for problem in problems:
            say(printable(problem), err=True)
    if problems:
        sys.exit(1)


def _problems(read: list[Summary], harvested: list[Progress], written: list[Written]) -> Iterator[str]:
    """What was not done of a round."""
    for s in read:
        if why := s.reason or (f"{s.failures} could not be read; see  indlet failures" if s.failures else ""):
            yield f"local read, {s.hierarchy}: {why}"
    for p in harvested:
        if not p.ok:
            waiting = f"{amount(p.withheld, 'deletion')} for an operator to decide; see  indlet deletions"
            yield f"harvest, {p.source}: {p.reason or (waiting if p.withheld else 'records are owed')}"
    for w in written:
        if why := w.reason or (f"{w.failed} could not be written; see  indlet alerts" if w.failed else ""):
            yield f"local write, {w.folder}: {why}"


def _told(
    read: list[Summary], harvested: list[Progress], written: list[Written], problems: list[str]
) -> JsonObject:
    return {
        "read": [
            {
                "name": s.hierarchy,
                "records": s.records,
                "deleted": s.deleted,
                "failed": s.failed,
                "warnings": s.warnings,
            }
            for s in read
        ],
        "harvested": [p.to_json() for p in harvested],
        "written": [asdict(w) for w in written],
        "problems": problems,
    }


@click.command()
@data_option
@config_option
@click.option("--jsonl", is_flag=True, help="A line of JSON for each.")
@click.option("--all", "everything", is_flag=True, help="Also those that somebody has seen to.")
@click.option("--kind", default="", help="Only alerts of this kind, such as deleted or changed.")
@click.option(
    "--done",
    metavar="ALERT",
    help="Somebody has seen to the alert of this number, record or source; all: to all, or all of --kind.",
)
@by_option
def alerts(
    data: Path | None,
    config: Path | None,
    jsonl: bool,
    everything: bool,
    kind: str,
    done: str | None,
    by: str,
) -> None:
    """List what waits for somebody: written records that were deleted, folders that cannot be written.

    \b
    indlet alerts --data larc-data
    indlet alerts --data larc-data --done oai:lanl.example.org:reports/1 --by "Ada Wells"
    indlet alerts --data larc-data --kind changed --done all --by "Ada Wells"
    """
    from indlet.exchange.alerts import KINDS, acknowledge, acknowledge_all
    from indlet.exchange.alerts import alerts as waiting
    from indlet.store import open_configured

    if kind and kind not in KINDS:
        raise SettingsError(f"no alerts are of the kind {kind!r}; one of {', '.join(KINDS)}")
    with open_configured(settings_given(data, config, required=True), create=False) as store:
        if done == "all":
            say(f"{amount(acknowledge_all(store, by, kind=kind), 'alert')} seen to")
            return
        if done is not None:
            acknowledge(store, done, by)
            return
        found = list(waiting(store, acknowledged=everything, kind=kind))
    for alert in found:
        if jsonl:
            say_json(asdict(alert))
        else:
            seen = f"  (seen to by {alert.acknowledged_by})" if alert.acknowledged else ""
            say(f"{alert.at}  {alert.id}  {alert.kind}  {printable(alert.record)}{printable(seen)}")
            if alert.title:
                say(f"    {printable(alert.title)}")
            say(f"    {printable(alert.reason)}")
            if alert.remedy:
                say(f"    to do: {printable(alert.remedy)}")
    if not found and not jsonl:
        say("nothing waits")


@click.command()
@data_option
@config_option
@click.option("--release", metavar="SOURCE", help="Let the deletions of this source happen.")
@click.option("--keep", metavar="SOURCE", help="Keep the records of this source.")
@by_option
@click.option("--json", "as_json", is_flag=True, help="Print what waits as JSON.")
def deletions(
    data: Path | None, config: Path | None, release: str | None, keep: str | None, by: str, as_json: bool
) -> None:
    """List deletions that wait because a source lost too many records at once; release them or not.

    \b
    indlet deletions --data larc-data
    indlet deletions --data larc-data --release lanl
    indlet deletions --data larc-data --keep lanl --by "Ada Wells"
    """
    from indlet.store import open_configured, withheld

    if release and keep:
        raise SettingsError("--release and --keep cannot be given together; choose one")
    with open_configured(settings_given(data, config, required=True), create=False) as store:
        if release:
            say(f"{amount(withheld.release(store, release), 'record')} deleted")
            return
        if keep:
            say(f"{amount(withheld.keep(store, keep, by), 'record')} kept")
            return
        found = withheld.waiting_deletions(store)
    if as_json:
        say_json([asdict(one) for one in found], indent=True)
        return
    for one in found:
        say(f"{printable(one.source)}: {one.waiting:,} of {one.live:,} wait, {one.kept:,} are kept")
        for name in one.examples:
            say(f"    {printable(name)}")
    if not found:
        say("nothing waits")


@click.command()
@click.argument("source")
@data_option
@config_option
@by_option
@click.option("--undo", is_flag=True, help="Give the records back to their origin.")
def adopt(source: str, data: Path | None, config: Path | None, by: str, undo: bool) -> None:
    """Keep the records of a source whose origin is gone, and speak for them from now on.

    They stay though their origin comes back empty, and can be withdrawn here (indlet withdraw).

    \b
    indlet adopt lanl --data larc-data --by "Ada Wells"
    """
    from indlet.exchange import ownership
    from indlet.store import open_configured

    with open_configured(settings_given(data, config, required=True), create=False) as store:
        if undo:
            ownership.give_back(store, source)
            return
        done = ownership.adopt(store, source, by)
    say(printable(f"{done.source}: adopted; last confirmed by its origin: {done.confirmed or 'never'}"))


@click.command()
@click.argument("identifier")
@data_option
@config_option
@by_option
@click.option("--undo", is_flag=True, help="Take the mark off; the next crawl brings the record back.")
def withdraw(identifier: str, data: Path | None, config: Path | None, by: str, undo: bool) -> None:
    """Mark a record of this node's own, or of an adopted source, as deleted; all others hear of it.

    The file that holds it does not bring it back.

    \b
    indlet withdraw oai:larc.example.org:reports/7 --data larc-data --by "Ada Wells"
    """
    from indlet.exchange import ownership
    from indlet.store import open_configured

    with open_configured(settings_given(data, config, required=True), create=False) as store:
        name = ownership.restore(store, identifier) if undo else ownership.withdraw(store, identifier, by)
    say(printable(f"{identifier} of {name}: {'to be read again' if undo else 'deleted'}"))
