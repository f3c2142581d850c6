"""The command that makes a web server's files harvestable."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import click

from indlet.cli.provider import log_options, with_log
from indlet.cli.show import say
from indlet.errors import SettingsError
from indlet.settings import Settings, Site


@click.command()
@click.argument("root", required=False)
@click.option("--url", default="", help="What ROOT is on the web.")
@click.option(
    "--also", nargs=2, multiple=True, metavar="FOLDER URL", help="One more folder; may be repeated."
)
@click.option("--server", default="", help="Where the web server is asked, if not at the URL.")
@click.option(
    "--config", multiple=True, type=click.Path(exists=True), help="A configuration file of the server."
)
@click.option("--dynamic", is_flag=True, help="Take what handlers make (PHP, CGI, SSI).")
@click.option("--data", type=click.Path(path_type=Path), help="Folder of the store.  [indlet-data]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free one."
)
@click.option(
    "--base-url", default="", help="The node's public root, such as https://www.example.org/modoai."
)
@click.option("--every", default="1m", show_default=True, help="How often to look again; '' for never.")
@click.option("--title", default="", help="What the repository is called.  [indlet]")
@click.option("--email", default="", help="Whom harvesters should write to.")
@click.option(
    "--print", "printed", type=click.Choice(["apache", "nginx", "caddy"]),
    help="Print the lines that mount the node in that server, at the path of --base-url (/modoai), and end.",
)  # fmt: skip
@log_options
def site(
    root: str | None,
    url: str,
    also: tuple[tuple[str, str], ...],
    server: str,
    config: tuple[str, ...],
    dynamic: bool,
    data: Path | None,
    host: str,
    port: int,
    base_url: str,
    every: str,
    title: str,
    email: str,
    printed: str | None,
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Make a web server's files harvestable: what it really serves, to whom it really serves it.

    \b
    indlet site /var/www/html --url https://www.example.org
    indlet site /var/www/html --url https://www.example.org --server http://127.0.0.1:80 \\
           --base-url https://www.example.org/modoai
    indlet site --print apache

    Files are found below ROOT, and the server is asked for each: only what it gives out becomes a record. A
    harvester sees what the server would give to the harvester's own credentials. See docs/site.md.
    """
    if printed:
        from indlet.site.mount import PATH, snippet

        path = urlsplit(base_url).path.rstrip("/") or PATH
        if not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
            raise click.UsageError(f"--base-url: the path {path!r} cannot be mounted; use letters and digits")
        say(snippet(printed, host, port, path), nl=False)
        return
    if root is None or not url:
        raise click.UsageError("name a folder and its address:  indlet site ROOT --url URL")
    from indlet.cli.serving import run

    settings = Settings()
    sites = tuple(_site(folder, at, server, config, dynamic) for folder, at in ((root, url), *also))
    data = data or settings.data
    if any(data.resolve().is_relative_to(Path(one.root).resolve()) for one in sites):
        raise SettingsError(f"{data.resolve()}: the web server would give it out; choose another with --data")
    node = replace(
        settings.node,
        host=host,
        port=port,
        base_url=base_url,
        name=title or settings.node.name,
        admin_email=(email,) if email else settings.node.admin_email,
    )
    # Behind the web server on the same machine, its word on who asks is believed.
    trusted = ("127.0.0.1", "::1") if _is_loopback(host) else ()
    serve, crawl = replace(settings.serve, trusted_proxies=trusted), replace(settings.crawl, every=every)
    settings = replace(settings, data=data, node=node, serve=serve, crawl=crawl, site=sites)
    run(with_log(settings, log_level, log_format), crawl_at_once=True, portal=False)


def _site(folder: str, url: str, server: str, config: tuple[str, ...], dynamic: bool) -> Site:
    place = Path(folder)
    if not place.is_dir():
        raise SettingsError(f"{folder}: no such folder; check the path")
    files = tuple(str(Path(path).resolve()) for path in config)
    # The name as it is: a deploy may let a link lead to another folder.
    return Site(str(place.absolute()), url, server=server, config=files, dynamic=dynamic)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
