"""Commands that look after the store itself."""

from __future__ import annotations

import click

from indlet.cli.show import amount, say
from indlet.errors import SettingsError, StoreError


@click.command()
@click.option("--from", "source", required=True, metavar="URL", help="The store to copy: a folder or a URL.")
@click.option("--to", "target", required=True, metavar="URL", help="Where to: an empty database or folder.")
@click.option("--quiet", is_flag=True, help="No progress.")
def copy(source: str, target: str, quiet: bool) -> None:
    """Copy a store into another one, of the same or another kind, and compare every row of both.

    The old store is only read and stays in use. A copy that was broken off, or whose source has changed
    meanwhile, goes on when the same command is given again. When it is complete, name the new store in
    indlet.toml ([store] url) and start the node again: index, tokens and schedules stay valid.

    \b
    indlet copy --from indlet-data --to postgresql://indlet@db.example.org/indlet
    indlet copy --from postgresql://indlet@db.example.org/indlet --to /srv/indlet-data

    \b
    Exit status
      0  copied in full, and every row found equal
      1  not complete: the old store has changed meanwhile, or something differs; the old one stays in use
    """
    from indlet.cluster.copying import copy_store
    from indlet.store import open_store

    with (
        open_store(source, create=False) as old,
        open_store(target, half_copied=True) as new,
    ):
        if old.url == new.url:
            raise SettingsError(f"{old.location}: cannot be copied onto itself; name another store with --to")
        with old.read() as view:
            newest = view.last_seq()

        def report(seq: int) -> None:
            if not quiet:
                say(f"copied {seq * 100 // max(newest, 1)} %", err=True)

        copied = copy_store(old, new, report)
        say(f"{new.location}: {amount(copied.records, 'record')}, each equal to that of {old.location}")
        if not copied.complete:
            raise StoreError(
                f"{old.location}: has changed meanwhile; stop what writes it, and give the command once more"
            )
        say(f'use it with  [store] url = "{new.location}"  in indlet.toml')
