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


NODE: Final = """
const places = [process.cwd(), '/usr/lib/node_modules', '/usr/local/lib/node_modules'];
const { OaiPmh } = require(require.resolve('oai-pmh', { paths: places }));
async function main(url) {
  const client = new OaiPmh(url, { retryMin: 0.1, retryMax: 600 });
  let count = 0;
  for await (const record of client.listRecords({ metadataPrefix: 'oai_dc' })) { count++; }
  console.log(count);
}
main(process.argv[1]).catch(error => { console.error(error); process.exit(1); });
"""


def sickle(url: str) -> int:
    from sickle import Sickle

    return sum(1 for _ in Sickle(url).ListRecords(metadataPrefix="oai_dc"))


def scythe(url: str) -> int:
    from oaipmh_scythe import Scythe

    with Scythe(url) as client:
        return sum(1 for _ in cast(Any, client.list_records(metadata_prefix="oai_dc")))


def pyoai(url: str) -> int:
    from bench.pyoai import client, metadata

    registry = metadata.MetadataRegistry()
    registry.registerReader("oai_dc", metadata.oai_dc_reader)
    listed = client.Client(url, registry, force_http_get=True).listRecords(metadataPrefix="oai_dc")
    return sum(1 for _ in listed)


PYTHON: Final[dict[str, tuple[str, Callable[[str], int]]]] = {
    "sickle": ("sickle", sickle),
    "scythe": ("oaipmh_scythe", scythe),
    "pyoai": ("oaipmh", pyoai),
}
NAMES: Final = (*PYTHON, "metha", "oai-pmh.js", "HTTP::OAI")
# To keep it short, these have the turn with a quarter of the records alone.
ASIDE: Final = ("pyoai", "oai-pmh.js", "HTTP::OAI")


def metha(tool: str) -> str | None:
    """The path of one of metha's programs: below the folder METHA, or where programs are looked for."""
    return shutil.which(tool, path=os.environ.get("METHA"))


def command(name: str, url: str, scratch: Path) -> list[str]:
    """The program and its arguments; what it keeps, it keeps below `scratch`."""
    if name == "HTTP::OAI":
        return ["perl", "-e", PERL, url]
    if name == "oai-pmh.js":
        return ["node", "-e", NODE, url]
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
    match name:
        case "HTTP::OAI":
            there = _runs("perl", "-MHTTP::OAI", "-MJSON::PP", "-e", "1")
            remedy = "a harvester in Perl; Debian: libhttp-oai-perl"
        case "metha":
            there = bool(metha("metha-sync") and metha("metha-cat"))
            remedy = "a harvester in Go; see bench/README.md"
        case "oai-pmh.js":
            there = _runs("node", "-e", NODE.partition("async")[0])
            remedy = "a harvester for Node; npm install -g oai-pmh"
        case _:
            there, remedy = bool(find_spec(PYTHON[name][0])), f"pip install {name}"
    return "" if there else f"{name} is not installed here ({remedy})"


def _runs(*command: str) -> bool:
    try:
        return not subprocess.run(command, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    print(PYTHON[sys.argv[1]][1](sys.argv[2]))
