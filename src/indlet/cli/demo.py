"""demo: the whole idea in one command."""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from indlet.errors import MissingExtra, SettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from indlet.demo.stage import Provider
    from indlet.settings import Settings

PORT = 8080


@click.command()
@click.option("--once", is_flag=True, help="End after the tour, without the portal.")
@click.option("--mesh", is_flag=True, help="Another tour: four laboratories that keep each other's records.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Of the portal; 0: any.  [8080 if free, else any]"
)
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Keep everything here.  [a temporary folder, removed at the end]",
)  # fmt: skip
def demo(once: bool, mesh: bool, port: int | None, data: Path | None) -> None:
    """A tour: two providers, one service, one portal.

    Two bundled collections of some two hundred short documents are crawled and served by a provider each; a
    service harvests both over HTTP, indexes and searches them by five models; then documents change and the
    change arrives. The portal stays at a printed address until Ctrl-C.

    \b
    indlet demo
    indlet demo --once
    indlet demo --mesh
    indlet demo --data demo-data --port 9000
    """
    for needed in ("httpx", "jinja2"):
        if importlib.util.find_spec(needed) is None:
            raise MissingExtra(f"indlet demo (it imports {needed})", "service")
    from rich.console import Console

    from indlet.demo.stage import lay_out
    from indlet.demo.tour import WIDTH

    console = Console(highlight=False, soft_wrap=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    with _ended_by_term(), contextlib.ExitStack() as stack:
        if data is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="indlet-demo-")))
        else:
            home = data.absolute()
        lay_out(home)
        if mesh:
            _mesh(console, home)
        else:
            _run(console, home, once, port)


def _mesh(console: Console, home: Path) -> None:
    from rich.text import Text

    from indlet.demo.mesh import mesh_tour

    console.print()
    console.print(
        Text.assemble((" indlet", "bold cyan"), "  four laboratories, four formats, one collection")
    )
    console.print()
    with mesh_tour(console, home) as tour:
        tour.run()
    console.print()


def _run(console: Console, home: Path, once: bool, port: int | None) -> None:
    from indlet.cli.serving import bind
    from indlet.demo.stage import Children, providers
    from indlet.demo.tour import Tour

    password = secrets.token_urlsafe(9)
    with contextlib.ExitStack() as stack:
        settings = _settings(home, password)
        bound = None
        if not once:
            bound, settings = _bind(bind, settings, port)
            stack.enter_context(contextlib.closing(bound))
        children = stack.enter_context(Children())
        pair = providers(home)
        tour = Tour(console, pair, children)
        _title(console)
        tour.provide()
        settings = _with_sources(settings, pair, home)
        # Only now: the providers have been at work meanwhile.
        from indlet.service.search.library import Library

        with Library.open(settings.data, settings) as library:
            tour.harvest(library)
            tour.index(library)
            tour.search(library)
            tour.change(library)
            if bound is not None:
                _portal(console, tour, library, settings, bound, password)
    console.print()


def _title(console: Console) -> None:
    from rich.text import Text

    console.print()
    console.print(Text.assemble((" indlet", "bold cyan"), "  harvest the index, not the content"))


def _settings(home: Path, password: str) -> Settings:
    from indlet.settings import Admin, Appearance, Harvest, Node, Search, Settings
    from indlet.web.auth import hash_password

    return Settings(
        data=home / "data" / "service",
        node=Node(
            name="indlet demo",
            repository="demo.example",
            port=PORT,
            description="Two small collections, harvested from their owners.",
        ),
        # A node's datestamps leave no gap: nothing has to be asked for twice. And the bytes moved should be
        # those that a network would see.
        harvest=Harvest(overlap_seconds=0, compress_loopback=True),
        search=Search(),
        portal=Appearance(models=True),
        admin=Admin(password_hash=hash_password(password)),
    )


def _bind(bind: Any, settings: Settings, port: int | None) -> tuple[Any, Settings]:
    """The portal's socket, before anything else: a port that is taken should not be told after the tour."""
    wanted = PORT if port is None else port
    try:
        found: tuple[Any, Settings] = bind(replace(settings, node=replace(settings.node, port=wanted)))
    except SettingsError:
        if port is not None:
            raise
        found = bind(replace(settings, node=replace(settings.node, port=0)))
    return found


def _with_sources(settings: Settings, pair: tuple[Provider, ...], home: Path) -> Settings:
    """The service's settings, also as a file for those who want to go on by hand."""
    from indlet.settings import Source

    lines = ['data = "data/service"\n\n[harvest]\noverlap_seconds = 0\ncompress_loopback = true\n']
    lines += [f'\n[[source]]\nurl = "{p.url}/ft-oai"\nname = "{p.title}"\n' for p in pair]
    (home / "service.toml").write_text("".join(lines), "utf-8")
    sources = tuple(Source(f"{provider.url}/ft-oai", name=provider.title) for provider in pair)
    return replace(settings, source=sources)


def _portal(console: Console, tour: Any, library: Any, settings: Settings, bound: Any, password: str) -> None:
    from rich.text import Text

    from indlet.cli.serving import listen
    from indlet.demo.stage import typed_command
    from indlet.web.app import application

    app = application(library.store, settings)
    root = settings.base_url()
    tour.head("Look", "the portal is open; Ctrl-C ends the demonstration")
    home = settings.data.parent.parent
    rows = (
        ("search", f"{root}/"),
        ("compare", f"{root}/compare?q=salt+wind"),
        ("desk", f"{root}/admin   password: {password}"),
    )
    for name, value in rows:
        console.print(Text.assemble("    ", (f"{name:<9}", "dim"), (value, "bold")), soft_wrap=True)
    console.print()
    tour.say("Change a file of the orchard, and let the change arrive:")
    console.print()
    command = typed_command()
    for line in (
        f"cd {shlex.quote(str(home))}",
        f"{command} crawl --config orchard.toml",
        f"{command} harvest --config service.toml",
    ):
        console.print(Text(f"      {line}"), soft_wrap=True)
    console.file.flush()
    listen(app, settings, bound)


@contextlib.contextmanager
def _ended_by_term() -> Iterator[None]:
    """SIGTERM unwinds like Ctrl-C, so that the children are told and the folder goes."""

    def stop(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
