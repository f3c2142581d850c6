"""Options that many commands take, and the settings that they come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from indlet.settings import FILE, Settings
from indlet.settings.file import load

CONFIG = Path(FILE)

data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="The data folder.  [default: as indlet.toml says, or indlet-data]",
)  # fmt: skip
config_option = click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="A settings file.  [default: indlet.toml, if there is one and --data is not given]",
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


def settings_given(data: Path | None, config: Path | None) -> Settings:
    """Those of the file, if one is named or lies here and no folder is; defaults otherwise. A folder that is
    named is the data folder in any case."""
    if config is None and data is None and CONFIG.exists():
        config = CONFIG
    settings = load(config) if config is not None else Settings()
    return settings if data is None else replace(settings, data=data)


def settings_of_node(data: Path | None, config: Path | None) -> Settings:
    """Those of a node that is there: of the file that is named, of the folder, or of the file here."""
    return load(config) if config else Settings(data=data) if data else load(CONFIG)
