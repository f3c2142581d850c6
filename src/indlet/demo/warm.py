"""Compiles the index's kernels into numba's cache, ahead of their first use.

    python -m indlet.demo.warm index FOLDER     those that make an index
    python -m indlet.demo.warm search FOLDER    those that search one

After a fresh installation all of them take some twelve seconds of one core. The two commands take half of it
each and can run at the same time, for the second searches an index that comes with the package (`seed`; made
anew by  python -m indlet.demo.warm seed src/indlet/demo/seed). Where numba's cache cannot be written, or the
seed is of an older form (it is then made anew on the spot), nothing is lost but time.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path

from indlet.model import Record, TermVector
from indlet.service.index import engines
from indlet.service.rank import MODELS
from indlet.service.search.library import FACETS, Library

VECTORS = (b"1 barrel harbour\n2 salt", b"1 orchard salt\n3 wind", b"1 appl salt wind", b"2 wind")


def index(folder: Path) -> None:
    """Makes a small index, and changes it."""
    with Library.open(folder) as library:
        origin = fill(library)
        library.sync()
        with library.store.write() as tx:
            tx.delete(origin, ["oai:warm.example:2", "oai:warm.example:3"])
        library.sync()


def search(folder: Path) -> None:
    """Searches the bundled index in every way."""
    with Library.open(folder, follow=False) as library:
        fill(library)
        target = engines.folder(library.store)
        target.mkdir(exist_ok=True)
        for file in resources.files("indlet.demo").joinpath("seed").iterdir():
            (target / file.name).write_bytes(file.read_bytes())
        for model in MODELS:
            library.search("salt wind", model=model, facets=FACETS)
        library.search("salt AND wind NOT appl date:1980..1990 source:warm harb*")
        library.search("salt", sort="newest")
        library.explain("salt wind", "oai:warm.example:1")
        library.similar("oai:warm.example:1")
        library.suggest("sal")


def seed(folder: Path) -> None:
    """Writes the index that `search` searches."""
    with tempfile.TemporaryDirectory() as name, Library.open(Path(name)) as library:
        fill(library)
        library.sync()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in engines.folder(library.store).iterdir():
            if path.suffix in (".idx", ".json"):
                shutil.copyfile(path, folder / path.name)


def fill(library: Library) -> int:
    with library.store.write() as tx:
        origin = tx.origin("source", "warm", {})
        tx.put(origin, (_record(number, packed) for number, packed in enumerate(VECTORS)))
    return origin


def _record(number: int, packed: bytes) -> Record:
    metadata = {"title": [f"Number {number}"], "date": ["1987"], "language": ["en"]}
    vector = TermVector(packed, 4, language="en")
    return Record(f"oai:warm.example:{number}", metadata, vector, ("warm",))


if __name__ == "__main__":
    {"index": index, "search": search, "seed": seed}[sys.argv[1]](Path(sys.argv[2]))
