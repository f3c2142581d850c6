"""Options that many commands take, and the settings that they come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from indlet.settings import FILE, Database, Settings
from indlet.settings.file import load

CONFIG = Path(FILE)

data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="The data folder.  [default: as the settings say, or indlet-data]",
)  # fmt: skip
config_option = click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="A settings file.  [default: indlet.toml, if there is one]",
)  # fmt: skip


def _account() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without an account, as in some containers
        return "operator"


# Alerts and decisions are a person's.
by_option = click.option(
    "--by",
    default=_account,
    show_default="your account",
    metavar="NAME",
    help="Who decides or has seen to it.",
)


def settings_given(
    data: Path | None, config: Path | None, *, with_file: bool = False, required: bool = False
) -> Settings:
    """The settings of a command: those of the file that is named, else of the one here, else the defaults.

    A folder that is named is the data folder, and its store is the store, whatever the file here says. A file
    that is named as well may put the store elsewhere: in a database server, say. `with_file`: the file here
    counts beside a folder, too. `required`: SettingsError where neither is named and there is no file here.
    """
    path = config
    if path is None and (data is None or with_file) and (CONFIG.exists() or (required and data is None)):
        path = CONFIG
    settings = load(path) if path is not None else Settings()
    if data is None:
        return settings
    return replace(settings, data=data, store=settings.store if config is not None else Database())
