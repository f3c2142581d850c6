"""The command that mirrors what a repository's records stand for."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from indlet.net.client import Client
from indlet.net.connection import tls
from indlet.net.reach import KnownPublic
from indlet.net.settings import Harvest
from indlet.site.mirror.archive import WarcFile
from indlet.site.mirror.fetch import Fetcher
from indlet.site.mirror.journal import MirrorJournal
from indlet.site.mirror.pages import ListReader
from indlet.site.mirror.run import Mirror, Mirrored

FILE_BYTES = 4 << 30
FILE_SECONDS = 3600.0


@click.command()
@click.argument("url")
@click.option("--list", "listed", is_flag=True, help="Print the URLs that changed; fetch nothing.")
@click.option("--deleted", is_flag=True, help="With --list: print the deleted ones instead.")
@click.option("--since", default="", help="With --list: only what changed since this UTC date or second.")
@click.option("--set", "set_spec", default="", help="With --list: only of this set.")
@click.option("--to", "folder", type=click.Path(path_type=Path), help="Folder of the mirror.")
@click.option("--full", is_flag=True, help="List everything anew, and drop what is not listed any more.")
@click.option("--keep-deleted", is_flag=True, help="Move deleted files aside instead of removing them.")
@click.option("--warc", type=click.Path(path_type=Path), help="Append everything taken to this WARC file.")
@click.option(
    "--user",
    metavar="NAME:PASSWORD",
    envvar="INDLET_MIRROR_USER",
    default="",
    help="Credentials (Basic); better in the environment as INDLET_MIRROR_USER.",
)
@click.option(
    "--certificate",
    metavar="FILE",
    default="",
    help="PEM file with a client certificate and its key; shown where the credentials go.",
)
@click.option("--trust", multiple=True, metavar="URL", help="Send the credentials to this server too.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of what was done.")
def mirror(
    url: str,
    listed: bool,
    deleted: bool,
    since: str,
    set_spec: str,
    folder: Path | None,
    full: bool,
    keep_deleted: bool,
    warc: Path | None,
    user: str,
    certificate: str,
    trust: tuple[str, ...],
    quiet: bool,
) -> None:
    """Mirror the files that a repository's records stand for, or list what changed.

    \b
    indlet mirror https://www.example.org/modoai/oai --list --since 2026-01-01 | wget -i -
    indlet mirror https://www.example.org/modoai/oai --to copy
    indlet mirror https://www.example.org/modoai/oai --to copy --warc copy.warc.gz

    URL is the base URL of an OAI-PMH repository with MPEG-21 DIDL, such as  indlet site  serves. A later run
    brings what changed, removes what was deleted, and goes on where an interrupted one stopped.

    \b
    Exit status
      0  the folder is what the repository shows
      1  the repository could not be harvested
      3  some files could not be had; they are asked for again next time
    """
    if listed == (folder is not None):
        raise click.UsageError("choose one:  --list  or  --to FOLDER")
    authorization = f"Basic {base64.b64encode(user.encode()).decode()}" if user else ""
    if certificate:
        tls(certificate)  # refused at once if it is none
    if folder is None:
        with _lists(url, user, certificate) as lists:
            _list(lists, deleted, since, set_spec)
        return
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        archive = stack.enter_context(WarcFile(warc)) if warc else None
        journal = stack.enter_context(MirrorJournal(folder).opened())
        lists = stack.enter_context(_lists(url, user, certificate, known := journal.known_public()))
        fetcher = Fetcher(
            url, authorization, trust, FILE_BYTES, FILE_SECONDS, certificate=certificate, known_public=known
        )
        stack.callback(fetcher.close)
        run = Mirror(folder, lists, fetcher, journal, archive=archive, keep_deleted=keep_deleted)
        done = run.run(url, full=full)
    if not quiet:
        _tell(done)
    sys.exit(3 if done.failed else 0)


@contextmanager
def _lists(
    url: str, user: str, certificate: str, known_public: KnownPublic | None = None
) -> Iterator[ListReader]:
    harvest = Harvest()
    name, _, password = user.partition(":")
    client = Client(harvest, user=name, password=password, certificate=certificate, known_public=known_public)
    try:
        yield ListReader(client, url, harvest)
    finally:
        client.close()


def _list(lists: ListReader, deleted: bool, since: str, set_spec: str) -> None:
    """One identifier a line; those of a site are URLs."""
    arguments = {"metadataPrefix": "oai_dc", "from": since, "set": set_spec}
    arguments = {name: value for name, value in arguments.items() if value}
    out = sys.stdout
    for page in lists.pages("ListIdentifiers", arguments):
        for item in page.records:
            if item.deleted == deleted and item.identifier.isprintable():
                out.write(item.identifier + os.linesep)
    out.flush()


def _tell(done: Mirrored) -> None:
    from indlet.cli.show import amount, printable, say

    say(
        f"{amount(done.records, 'record')}: {amount(done.by_value, 'file')} came with them, "
        f"{done.fetched:,} were fetched, {done.unchanged:,} were here already, "
        f"{done.deleted:,} were deleted; {done.bytes:,} bytes"
    )
    for identifier, reason in done.failed.items():
        say(printable(f"  {identifier}: {reason}"), err=True)
