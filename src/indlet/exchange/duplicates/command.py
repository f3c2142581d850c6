"""Records that may be of one work: list them side by side, keep what people decide."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from indlet.cli.options import config_option, data_option, settings_given
from indlet.cli.show import printable, say, say_json
from indlet.model import JsonObject

_WIDTH: Final = 100  # characters of a value on a terminal


@click.command()
@data_option
@config_option
@click.option("--jsonl", is_flag=True, help="A line of JSON for each pair.")
@click.option(
    "--least", type=click.FloatRange(0.1, 1), default=0.8, show_default=True, metavar="SCORE",
    help="List pairs of this score or more.",
)  # fmt: skip
@click.option("--within", is_flag=True, help="Pairs within one source, too.")
@click.option("--all", "everything", is_flag=True, help="Pairs that were decided on, too.")
@click.option(
    "--decide", type=click.Choice(["same", "different", "later", "open"]),
    help="Keep a decision about two records; open takes it back.",
)  # fmt: skip
@click.option("--by", default="", metavar="NAME", help="Who decided.")
@click.argument("records", nargs=-1, metavar="[ID1 ID2]")
def duplicates(
    data: Path | None, config: Path | None, jsonl: bool, least: float, within: bool, everything: bool,
    decide: str | None, by: str, records: tuple[str, ...],
) -> None:  # fmt: skip
    """List records of different sources that may describe one work, or decide about two of them.

    Nothing is deleted or changed by a decision; the pair is only not listed again.

    \b
    indlet duplicates --data larc-data
    indlet duplicates --data larc-data --decide same oai:lanl:1 oai:larc:7 --by Ruth
    """
    from indlet.exchange.duplicates import decisions
    from indlet.exchange.duplicates.listed import listed
    from indlet.store import open_configured

    if decide is None and records:
        raise click.UsageError("records are named with --decide same|different|later|open only")
    if decide is not None and len(records) != 2:
        raise click.UsageError("--decide needs the identifiers of two records")
    settings = settings_given(data, config, required=True)
    with open_configured(settings, create=False) as store:
        if decide is not None:
            decisions.decide(store, records[0], records[1], decide, by=by)
            return
        count = 0
        for one in listed(store, least, within, everything):
            count += 1
            say_json(one) if jsonl else _show(one)
    if not count and not jsonl:
        say("no possible duplicates")


def _show(pair: JsonObject) -> None:
    decided = f"   {_decision(pair)}" if pair["decision"] else ""
    say(printable(f"{pair['score']:.3f}  {'; '.join(pair['why'])}{decided}"))
    for told in pair["elsewhere"]:
        if told["node"] != pair["node"]:
            say(printable(f"       elsewhere: {_decision(told)}"))
    for one in pair["records"]:
        say(printable(f"  {one['id']}   ({one['source']})"))
        say(printable(f"      {one['title'][:_WIDTH]}"))
        authors = "; ".join(one["authors"])[:_WIDTH]
        say(printable(f"      {authors}{', ' if authors and one['year'] else ''}{one['year']}"))
    say()


def _decision(made: JsonObject) -> str:
    where = f"at {made['node']}" if made["node"] else ""
    return " ".join(filter(None, (f"{made['decision']}, {made['at']}", made["by"], where)))
