"""The command that serves the full-text statistics of a repository beside it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from indlet.cli.options import config_option, settings_given
from indlet.cli.provider import log_options, with_log
from indlet.cli.show import printable, say
from indlet.errors import SettingsError
from indlet.settings import Settings, Source

# What a sidecar answers: statistics, what describes them, and whether it lives.
PATHS = ("/ft-oai", "/schema", "/oai.xsl", "/robots.txt", "/healthz")


@click.command()
@click.argument("url")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the store.  [indlet-data]")
@config_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free one."
)
@click.option("--base-url", default="", help="Its public root, such as https://repo.example.org/index.")
@click.option("--set", "set_spec", metavar="S", default="", help="Only this set.")
@click.option("--delay", type=click.FloatRange(0), help="Seconds between two requests to one host.  [1]")
@click.option("--hours", default="", help="When documents are fetched, in UTC: 20:00-06:00.  [always]")
@click.option("--email", default="", help="Whom the repository and harvesters should write to.")
@click.option("--plan", is_flag=True, help="Show what would be done, and end.")
@click.option("--all", "everything", is_flag=True, help="Serve the other pages of a provider, too.")
@log_options
def sidecar(
    url: str, data: Path | None, config: Path | None, host: str, port: int, base_url: str, set_spec: str,
    delay: float | None, hours: str, email: str, plan: bool, everything: bool, log_level: str | None,
    log_format: str | None,
) -> None:  # fmt: skip
    """Serve the full-text statistics of a repository that exists, without touching it.

    URL is the base URL of its OAI-PMH endpoint. Its records are harvested, their documents are found, fetched
    at the pace of a guest, analysed and discarded. Term statistics are served at /ft-oai, for others to
    harvest; what has been read so far is there at any time, and a restart goes on.

    \b
    indlet sidecar https://repository.example.org/oai --plan
    indlet sidecar https://repository.example.org/oai --data sidecar --port 8090 --email lib@example.org
    """
    from indlet.cli.serving import run
    from indlet.sidecar.extraction import extractor
    from indlet.sidecar.plan import FetchPlan, make_plan

    settings = _with_options(settings_given(data, config), delay, hours, email)
    source = Source(url, set=set_spec, fulltext="fetch", republish=True)
    found: FetchPlan = make_plan(settings, source, extractor(settings.crawl.limits))
    for line in found.lines():
        say(printable(line))
    sys.stdout.flush()
    if plan:
        return
    node = replace(
        settings.node, host=host, port=port, base_url=base_url,
        name=f"Full-text statistics of {found.name or url}",
        description=f"Term statistics of the documents of {found.name or url}, made on its behalf from what "
        f"it gives out to the public. Records come from {found.url}; provenance names it.",
        admin_email=(email,) if email else settings.node.admin_email,
    )  # fmt: skip
    settings = replace(settings, node=node, source=(replace(source, url=found.url),))
    run(
        with_log(settings, log_level, log_format), crawl_at_once=False, portal=False,
        paths=() if everything else PATHS,
    )  # fmt: skip


def _with_options(settings: Settings, delay: float | None, hours: str, email: str) -> Settings:
    pace = settings.sidecar
    pace = replace(
        pace, delay_seconds=pace.delay_seconds if delay is None else delay, hours=hours or pace.hours
    )
    if settings.source or settings.hierarchy or settings.site:
        raise SettingsError("a sidecar serves one repository: name settings without sources and hierarchies")
    return replace(
        settings,
        sidecar=pace,
        harvest=replace(settings.harvest, from_email=email or settings.harvest.from_email),
    )
