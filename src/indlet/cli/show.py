"""Crawls as people see them: a bar on a terminal, plain lines elsewhere, JSON when asked."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import orjson

from indlet.wording import amount as amount

if TYPE_CHECKING:  # and all that crawls, which most commands do not need
    from indlet.provider.summary import Report, Summary

LINE_SECONDS = 10.0
BAR_SECONDS = 0.1


# Control characters of a terminal (C0, DEL, C1 such as U+009B) and signs that reverse the order of text; but
# not lines, tabs, and the colours that we set ourselves.
_COMMANDS: Final = re.compile(
    r"(?!\x1b\[[0-9;]{0,16}m)[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_RAW: Final = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


def printable(text: str) -> str:
    """Text from outside without what a terminal would take for a command."""
    return "".join(character if character.isprintable() else " " for character in text)


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Everything that a command prints goes through here: whatever is in it, it commands no terminal."""
    click.echo(_COMMANDS.sub(" ", text), err=err, nl=nl)


def say_json(value: object, *, indent: bool = False) -> None:
    click.echo(escaped(orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)).decode())


def escaped(json_text: bytes) -> bytes:
    """The same JSON, with the control characters escaped that its rules leave alone."""
    return _RAW.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), json_text)


def complain(text: str) -> None:
    """Says what went wrong, in as many lines as it has."""
    lines = [printable(line) for line in text.split("\n")]
    say("indlet: " + "\n".join(lines), err=True)


class _Safe(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(printable(line) for line in super().format(record).split("\n"))


def keep_terminal_safe() -> None:
    """What is logged goes to stderr where nobody configured another place: it is printable, too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Safe())


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
            say(
                f"{summary.hierarchy}: {summary.done:,}{total} read, {amount(summary.records, 'record')}, "
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
                detail=f"{amount(summary.records, 'record')}{failed}",
            )

        yield report


def summary_lines(summary: Summary, data: Path | None = None, names: int = 10) -> list[str]:
    """A crawl's outcome in a few lines; the first of what was left alone by name."""
    if summary.outcome == "unreachable":
        return [f"{summary.hierarchy}: not read: {summary.reason}"]
    parts = [
        amount(summary.files, "file"),
        f"{summary.unchanged + summary.touched:,} unchanged",
        f"{amount(summary.records, 'record')} new or changed",
        f"{summary.deleted:,} deleted",
    ]
    if summary.echoes:
        parts.append(f"{summary.echoes:,} left out that are other libraries' records")
    if summary.withheld:
        parts.append(
            f"{amount(summary.withheld, 'deletion')} for an operator to decide (see indlet deletions)"
        )
    if summary.failures:
        place = f" --data {data}" if data else ""
        parts.append(f"{amount(summary.failures, 'failure')} (see indlet failures{place})")
    if summary.warnings:
        place = f" --data {data}" if data else ""
        parts.append(f"{amount(summary.warnings, 'warning')} (see indlet failures{place})")
    how = {"interrupted": " (interrupted)", "partial": " (in part)"}.get(summary.outcome, "")
    lines = [f"{summary.hierarchy}{how}: {', '.join(parts)}, in {summary.seconds:.1f} s"]
    if summary.outcome == "complete" and not summary.files:
        lines.append(f"  {summary.root} holds no file to read: put documents there, or name another folder")
    lines += [f"  not listed: {folder}: {reason}" for folder, reason in list(summary.unread.items())[:names]]
    if summary.skipped:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in summary.skipped.items())
        lines.append(f"  left alone: {counts}")
        lines += [f"    {path}: {reason}" for path, reason in summary.named[:names]]
        more = sum(summary.skipped.values()) - names
        if more > 0:
            lines.append(f"    and {more:,} more")
    return [printable(line.replace("\n", "\\n")) for line in lines]


def print_summaries(summaries: list[Summary], as_json: bool, data: Path | None = None) -> None:
    if as_json:
        say_json([asdict(summary) | {"status": summary.status} for summary in summaries], indent=True)
        return
    for summary in summaries:
        for line in summary_lines(summary, data):
            say(line)
