"""The command line: one command for each job. A command's module is imported only when it is called."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from indlet import __version__
from indlet.cli.show import complain, keep_terminal_safe
from indlet.errors import IndletError, MissingExtra, QueryError
from indlet.extension import CommandEntry, extensions

# Objects between two garbage collections. With the default of 700, imports alone trigger some 70, which
# take a tenth of the start-up time.
GC_THRESHOLD = 20_000
AROUND = 70  # characters of a query on either side of its fault

_CORE = {
    "provide": CommandEntry("indlet.cli.provider", "Make folders harvestable: crawl them and serve."),
    "crawl": CommandEntry("indlet.cli.provider", "Crawl hierarchies once."),
    "serve": CommandEntry("indlet.cli.provider", "Serve, crawl and harvest as indlet.toml says."),
    "records": CommandEntry("indlet.cli.provider", "List the records of a store."),
    "failures": CommandEntry("indlet.cli.provider", "List what could not be read or harvested, and why."),
    "init": CommandEntry("indlet.cli.provider", "Write an indlet.toml to start from."),
    "password": CommandEntry(
        "indlet.cli.password", "Set the password of the operations desk, or add a user to it."
    ),
    "log": CommandEntry("indlet.cli.operate", "Show who did what at the operations desk."),
    "harvest": CommandEntry("indlet.cli.harvest", "Harvest metadata and indexes from providers."),
    "identify": CommandEntry(
        "indlet.cli.identify", "Check any repository: what it says of itself, and whether that holds."
    ),
    "sources": CommandEntry(
        "indlet.cli.harvest", "Show the harvested sources, their state and their policies."
    ),
    "search": CommandEntry("indlet.cli.service", "Search the harvested index."),
    "stats": CommandEntry("indlet.cli.service", "Show the statistics of store and index."),
    "reindex": CommandEntry("indlet.cli.service", "Rebuild the index from the store."),
    "backup": CommandEntry("indlet.cli.operate", "Write a backup of a store, while it is in use."),
    "restore": CommandEntry("indlet.cli.operate", "Make a backup a data folder again."),
    "check": CommandEntry("indlet.cli.check", "Check settings, store, index, disk and sources."),
    "evaluate": CommandEntry("indlet.cli.service", "Measure retrieval models against relevance judgements."),
    "demo": CommandEntry("indlet.cli.demo", "A tour: two providers, one service, one portal."),
}
COMMANDS = _CORE | {n: c for extension in extensions() for n, c in extension.commands.items()}


class Unread(Exception):
    """Whoever read our output has gone."""


@contextmanager
def _read() -> Iterator[None]:
    """A broken pipe by a name that click does not know: it would end with status 1 for that."""
    try:
        yield
    except BrokenPipeError as e:
        raise Unread from e


class Commands(click.Group):
    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        with _read():  # --help is printed here
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: click.Context) -> object:
        with _read():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        try:
            module = import_module(COMMANDS[name].module)
        except ModuleNotFoundError as e:
            if (e.name or "").startswith("indlet."):
                raise
            raise MissingExtra(f"indlet {name} (it imports {e.name})", "service") from e
        command = getattr(module, name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean  indlet {near[0]} ?" if near else "indlet --help  lists them all"
            ctx.fail(f"there is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="indlet")
def cli() -> None:
    """Search collections that you do not hold: harvest the index, not the content."""


def _pointed(error: QueryError) -> str:
    """A query's fault with a caret below its place, of a long query only what is around it."""
    first, last = max(error.position - AROUND, 0), error.position + AROUND
    before, after = error.query[first : error.position], error.query[error.position : last]
    before, after = "… " * (first > 0) + before, after + " …" * (last < len(error.query))
    # East Asian characters take two columns, marks above and below others none.
    widths = (1 + (unicodedata.east_asian_width(c) in "WF") - bool(unicodedata.combining(c)) for c in before)
    return f"{error.problem}\n  {before}{after}\n  {' ' * sum(widths)}^"


def main(arguments: list[str] | None = None) -> int:
    """The entry point: errors of ours become one line and status 1; Ctrl-C becomes status 130.

    If nobody reads on, status 141, as of a program that the signal for it had ended.
    """
    keep_terminal_safe()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to start threads that nothing uses takes numpy 30 ms
    gc.set_threshold(GC_THRESHOLD)
    atexit.register(gc.freeze)  # nobody need look for cycles in what goes with the process
    try:
        status: int = cli.main(arguments, standalone_mode=False)
        return status
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except QueryError as e:
        complain(_pointed(e))
        sys.exit(1)
    except IndletError as e:
        complain(str(e))
        sys.exit(1)
    except ModuleNotFoundError as e:
        # Commands import what is heavy when they use it.
        if (e.name or "indlet").startswith("indlet"):
            raise
        complain(str(MissingExtra(f"this command (it imports {e.name})", "service")))
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted; run the same command again to go on")
        sys.exit(130)
    except Unread:
        # What is still held back would be written at the end, and fail once more.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        sys.exit(141)
