"""A small library of real records, for every test that asks it something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from tests.opensearch_index import library_in

from indlet.model import Record
from indlet.service.search.library import Library
from indlet.store import Store
from indlet.text import Analyzer, Policy

# identifier -> (source, title, creator, date, type, set, language, text)
SHELF: Mapping[str, tuple[str, str, str, str, str, str, str, str]] = {
    "oai:air:1": (
        "air", "Boundary layers on a flat plate", "Prandtl, L.", "1904", "Text", "flow:viscous", "en",
        "The boundary layer on a flat plate is thin. Inside the boundary layer viscosity matters.",
    ),
    "oai:air:2": (
        "air", "Flutter of a heated wing", "Garrick, I.", "1955-06", "Text", "wing", "en",
        "A heated wing may flutter. Aeroelastic models of a wing in a wind tunnel show the flutter speed.",
    ),
    "oai:air:3": (
        "air", "Heat transfer in hypersonic flow", "Lees, L.", "1956-03-01", "Article", "flow", "en",
        "Heat transfer over blunt bodies in hypersonic flow, with a laminar boundary layer and shock waves.",
    ),
    "oai:sea:1": (
        "sea", "Waves and currents", "Munk, W.", "1950", "Text", "ocean", "en",
        "Ocean currents and waves are driven by wind. The layer of mixing is a boundary for heat.",
    ),
    "oai:sea:2": (
        "sea", "Die Strömung der Meere", "Ekman, V.", "1905", "Text", "ocean", "de",
        "Die Strömungen der Meere werden vom Wind getrieben und von der Drehung der Erde abgelenkt.",
    ),
}  # fmt: skip


def shelf_record(identifier: str, analyzer: Analyzer) -> Record:
    _, title, creator, date, kind, spec, language, text = SHELF[identifier]
    metadata = {
        "title": [title],
        "creator": [creator],
        "date": [date],
        "type": [kind],
        "language": [language],
        "identifier": [f"http://example.org/{identifier.rpartition(':')[2]}"],
    }
    return Record(
        identifier,
        metadata,
        analyzer.vector(f"{title} {text}", language),
        (spec,),
    )


def fill(store: Store, *, positions: bool = False) -> None:
    analyzer = Analyzer(Policy(positions=positions))
    with store.write() as tx:
        for name in ("air", "sea"):
            origin = tx.origin("source", name, {"url": f"http://{name}.example/oai", "token": "secret"})
            wanted = [identifier for identifier, row in SHELF.items() if row[0] == name]
            tx.put(origin, [shelf_record(identifier, analyzer) for identifier in wanted])


@pytest.fixture
def make_shelf(tmp_path: Path) -> Iterator[Callable[..., Library]]:
    """Makes libraries with the records of the shelf, with or without word positions."""
    with ExitStack() as stack:
        numbers = count()

        def make(*, positions: bool = False) -> Library:
            library = stack.enter_context(library_in(tmp_path / f"shelf-{next(numbers)}"))
            fill(library.store, positions=positions)
            return library

        yield make


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """One library for all tests of a module that only ask."""
    with library_in(tmp_path_factory.mktemp("shelf")) as library:
        fill(library.store)
        yield library
