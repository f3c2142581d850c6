"""`indlet identify`: a check of any repository, in plain words."""

from __future__ import annotations

import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click
from lxml import etree
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from indlet.cli.show import printable, say_json
from indlet.net.client import Client
from indlet.oai.names import FT_NAMESPACE, OAI_NAMESPACE
from indlet.service.harvest.repository_check import PAGES, RepositoryCheck, Validate, schema_check
from indlet.settings import Harvest
from indlet.settings.file import load

_MARKS: Final = {"good": "[green]✓[/]", "note": "[yellow]·[/]", "wrong": "[red]✗[/]"}


@click.command()
@click.argument("url")
@click.option("--pages", type=click.IntRange(0), default=PAGES, help="Pages of records to read; 0: all.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=30.0, help="Seconds to wait for an answer."
)
@click.option("--config", type=click.Path(path_type=Path), help="Settings for the harvest (proxy, limits).")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def identify(url: str, pages: int, timeout: float, config: Path | None, as_json: bool) -> None:
    """Check a repository: what it says of itself, whether that holds, and what a harvester will meet.

    URL is the base URL of any OAI-PMH repository. Some fifteen requests are made, one after the other, and
    nothing is kept. The status is 0 if nothing is wrong, otherwise 1.

    \b
    indlet identify http://localhost:8080/oai
    indlet identify https://export.arxiv.org/oai2 --pages 2 --json
    """
    from dataclasses import replace

    harvest = load(config).harvest if config else Harvest()
    client = Client(replace(harvest, timeout_seconds=timeout, stall_seconds=timeout, retries=0))
    check = RepositoryCheck(url, client, _schema(), pages)
    try:
        check.run()
    finally:
        client.close()
    if as_json:
        findings = [finding._asdict() for finding in check.findings]
        say_json(
            {"url": url, "passed": check.passed, "records": check.records, "findings": findings}, indent=True
        )
    else:
        _show(check)
    sys.exit(0 if check.passed else 1)


def _schema() -> Validate:
    """By the schema of the extension, which says of the plain elements what the official one says."""
    with as_file(files("indlet.provider.serve").joinpath("schema")) as folder:
        schema = etree.XMLSchema(etree.parse(folder / "ft-oai.xsd"))
    return schema_check(schema, FT_NAMESPACE, OAI_NAMESPACE)


def _show(check: RepositoryCheck) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in check.findings:
        table.add_row(_MARKS[finding.level], escape(finding.about), escape(printable(finding.text)))
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(table)
    wrong = sum(finding.level == "wrong" for finding in check.findings)
    told = (
        "nothing is wrong"
        if not wrong
        else f"{wrong} things are wrong"
        if wrong > 1
        else "one thing is wrong"
    )
    console.print(f"{escape(printable(check.url))}: {told}")
