"""Other harvesters, each as a program that takes all oai_dc records of an address.

    python -m bench.harvest_others NAME URL

Each runs at the settings that its documentation shows for the job, and does the least that it can: libraries
make the records and let them go, and nobody asks for their fields. metha keeps the answers as files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

PERL: Final = r"""
use strict; use warnings; use HTTP::OAI;
my $count = 0;
my $answer = HTTP::OAI::Harvester->new(baseURL => $ARGV[0])->ListRecords(
    metadataPrefix => 'oai_dc', onRecord => sub { $count++ });
die $answer->message if $answer->is_error;
print $count;
"""


def sickle(url: str) -> int:
    from sickle import Sickle

    return sum(1 for _ in Sickle(url).ListRecords(metadataPrefix="oai_dc"))


def scythe(url: str) -> int:
    from oaipmh_scythe import Scythe

    with Scythe(url) as client:
        return sum(1 for _ in cast(Any, client.list_records(metadata_prefix="oai_dc")))


PYTHON: Final[dict[str, tuple[str, Callable[[str], int]]]] = {
    "sickle": ("sickle", sickle),
    "scythe": ("oaipmh_scythe", scythe),
}
NAMES: Final = (*PYTHON, "HTTP::OAI", "metha")
# So slow that a quarter of the records tells enough.
SLOW: Final = ("HTTP::OAI",)


def metha(tool: str) -> str | None:
    """The path of one of metha's programs: below the folder METHA, or where programs are looked for."""
    return shutil.which(tool, path=os.environ.get("METHA"))


def command(name: str, url: str, scratch: Path) -> list[str]:
    """The program and its arguments; what it keeps, it keeps below `scratch`."""
    if name == "HTTP::OAI":
        return ["perl", "-e", PERL, url]
    if name == "metha":
        # All at once, as its documentation says for lists that shall not be cut by months: those would end
        # yesterday, and the records are of today.
        return [str(metha("metha-sync")), "-q", "-no-intervals", "-base-dir", str(scratch), url]
    return [sys.executable, "-m", "bench.harvest_others", name, url]


def taken(name: str, output: bytes, url: str, scratch: Path) -> int:
    """How many records came of a command that has ended."""
    if name == "metha":
        show = [str(metha("metha-cat")), "-base-dir", str(scratch), url]
        return subprocess.run(show, capture_output=True, check=True).stdout.count(b"<record ")
    return int(output)


def missing(name: str) -> str:
    """Why a harvester cannot be run here, with the remedy; empty if it can."""
    if name == "HTTP::OAI":
        probe = ["perl", "-MHTTP::OAI", "-MJSON::PP", "-e", "1"]
        there = (
            shutil.which("perl") and not subprocess.run(probe, capture_output=True, check=False).returncode
        )
        return "" if there else "HTTP::OAI, a harvester in Perl, is not installed (Debian: libhttp-oai-perl)"
    if name == "metha":
        return (
            "" if metha("metha-sync") else "metha, a harvester in Go, is not installed (see bench/README.md)"
        )
    return "" if find_spec(PYTHON[name][0]) else f"{name} is not installed (pip install {name})"


if __name__ == "__main__":
    print(PYTHON[sys.argv[1]][1](sys.argv[2]))
