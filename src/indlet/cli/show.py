"""Crawls as people see them: a bar on a terminal, plain lines elsewhere, JSON when asked."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

from indlet.provider.summary import Report, Summary

LINE_SECONDS = 10.0
BAR_SECONDS = 0.1


def printable(text: str) -> str:
    """Text from outside without what a terminal would take for a command."""
    return "".join(character if character.isprintable() else " " for character in text)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Report]:
    """Something to report a running crawl to; it writes to stderr."""
    if quiet:
        yield lambda summary: None
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _lines()


def _lines() -> Report:
    last = time.monotonic()

    def report(summary: Summary) -> None:
        nonlocal last
        if summary.outcome == "running" and time.monotonic() - last > LINE_SECONDS:
            last = time.monotonic()
            total = f" of {summary.total:,}" if summary.total else ""
            click.echo(
                f"{summary.hierarchy}: {summary.done:,}{total} read, {summary.records:,} records, "
                f"{summary.failed:,} failed",
                err=True,
            )

    return report


@contextmanager
def _bar() -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, tuple[TaskID, float]] = {}
        last = 0.0

        def report(summary: Summary) -> None:
            nonlocal last
            now = time.monotonic()
            if summary.hierarchy not in tasks:
                task = bar.add_task(summary.hierarchy, total=None, rate="", detail="")
                tasks[summary.hierarchy] = task, now
            elif summary.outcome == "running" and now - last < BAR_SECONDS:
                return
            last = now
            task, begun = tasks[summary.hierarchy]
            rate = summary.done / max(now - begun, 0.1)
            failed = f", {summary.failed:,} failed" if summary.failed else ""
            bar.update(
                task,
                total=summary.total,
                completed=summary.done,
                rate=f"{rate:,.0f}/s",
                detail=f"{summary.records:,} records{failed}",
            )

        yield report


def summary_lines(summary: Summary, names: int = 10) -> list[str]:
    """A crawl's outcome in a few lines; the first of what was left alone by name."""
    if summary.outcome == "unreachable":
        return [f"{summary.hierarchy}: not read: {summary.reason}"]
    parts = [
        f"{summary.files:,} files",
        f"{summary.unchanged + summary.touched:,} unchanged",
        f"{summary.records:,} records new or changed",
        f"{summary.deleted:,} deleted",
    ]
    if summary.failures:
        parts.append(f"{summary.failures:,} failures (see indlet failures)")
    how = {"interrupted": " (interrupted)", "partial": " (in part)"}.get(summary.outcome, "")
    lines = [f"{summary.hierarchy}{how}: {', '.join(parts)}, in {summary.seconds:.1f} s"]
    lines += [f"  not listed: {folder}: {reason}" for folder, reason in list(summary.unread.items())[:names]]
    if summary.skipped:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in summary.skipped.items())
        lines.append(f"  left alone: {counts}")
        lines += [f"    {path}: {reason}" for path, reason in summary.named[:names]]
        more = sum(summary.skipped.values()) - names
        if more > 0:
            lines.append(f"    and {more:,} more")
    return [printable(line.replace("\n", "\\n")) for line in lines]


def print_summaries(summaries: list[Summary], as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps([asdict(summary) | {"status": summary.status} for summary in summaries], indent=2)
        )
        return
    for summary in summaries:
        for line in summary_lines(summary):
            click.echo(line)
