"""Options that many commands take."""

from __future__ import annotations

from pathlib import Path

import click

data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="The data folder.  [default: as indlet.toml says, or indlet-data]",
)  # fmt: skip
config_option = click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="A settings file.  [default: indlet.toml, if there is one and --data is not given]",
)  # fmt: skip
