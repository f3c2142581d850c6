"""Real nodes that harvest each other in different formats: whole MARC stays whole."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from lxml import etree
from tests.exchange.test_mesh_nodes import Laboratory, rounds

from indlet.formats.iso2709 import Marc, write_iso2709
from indlet.formats.record import Field
from indlet.oai import provenance
from indlet.oai.dates import written
from indlet.oai.read import canonical
from indlet.provider.serve import application
from indlet.provider.workers import Workers
from indlet.settings import LibraryFolder, Settings, Source
from indlet.text import policy_of

RECORDS = 4


class Catalogue(Laboratory):
    """A laboratory whose records are MARC, and that asks each other one in a format."""

    def export(self, edition: int = 1) -> None:
        folder = self.settings.data.parent / f"{self.name}-export"
        folder.mkdir(exist_ok=True)
        library = LibraryFolder("lib", str(folder))
        self.settings = replace(self.settings, hierarchy=(), library=(library,))
        self.app = application(self.store, self.settings, clock=self._clock)
        (folder / "all.mrc").write_bytes(
            b"".join(write_iso2709(catalogued(number, edition)) for number in range(RECORDS))
        )
        self.crawl()

    def takes(self, **formats: tuple[Laboratory, str]) -> None:
        sources = tuple(
            Source(other.url, name=other.name, republish=True, metadata=format)
            for other, format in formats.values()
        )
        self.settings = replace(self.settings, source=sources)
        self.app = application(self.store, self.settings, clock=self._clock)

    def copies(self) -> dict[str, tuple[bytes, str, tuple[int, int]]]:
        """What is held of each record: its metadata, its version's datestamp, its epoch and revision."""
        found = {}
        with self.store.read() as view:
            for stored in view.changes():
                version = provenance.version_of(orjson.loads(stored.properties))
                changes = version.epoch, version.revision
                found[stored.identifier] = (
                    canonical(etree.fromstring(stored.raw)),
                    version.datestamp,
                    changes,
                )
        return found


def catalogued(number: int, edition: int) -> Marc:
    return Marc(
        "00000cam a2200000 a 4500",
        (
            Field("001", f"x{number}"),
            Field("008", "000313s2000    enk           000 0 eng d"),
            Field("245", "", "10", (("a", f"Flutter of swept wings, part {number}, edition {edition} /"),)),
            Field("852", "", "0 ", (("b", "stacks"), ("h", f"TL{number}"))),
            Field("999", "", "ff", (("i", f"local {number}"),)),
        ),
    )


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    settings = Settings()
    with Workers(1, settings.crawl.limits, policy_of(settings.analysis)) as found:
        yield found


@pytest.fixture
def mesh(tmp_path: Path, workers: Workers) -> Iterator[tuple[Catalogue, Catalogue, Catalogue]]:
    with contextlib.ExitStack() as stack:
        found = [Catalogue(name, tmp_path, workers) for name in ("larc", "lanl", "afrl")]
        for one in found:
            stack.callback(one.close)
        yield found[0], found[1], found[2]


DIRECT = ("marc21", "oai_dc", "mods")
MIXTURES = [
    *itertools.product(("marc21",), ("oai_dc",), DIRECT, DIRECT),
    ("oai_dc", "dcterms", "marc21", "marc21"),
    ("rfc1807", "marc21", "cosati", "marc21"),
    ("mods", "oai_dc", "marc21", "oai_dc"),
]


@pytest.mark.parametrize("formats", MIXTURES, ids="-".join)
def test_a_mixture_of_formats_loses_nothing(
    mesh: tuple[Catalogue, Catalogue, Catalogue], formats: tuple[str, str, str, str]
) -> None:
    """`formats`: of lanl and of afrl from the origin, of lanl from afrl and of afrl from lanl."""
    origin, lanl, afrl = mesh
    first, second, across, back = formats
    lanl.takes(origin=(origin, first), other=(afrl, across))
    afrl.takes(origin=(origin, second), other=(lanl, back))
    whole = [node for node, asks in ((lanl, first), (afrl, second)) if asks == "marc21"]
    if lanl in whole and back == "marc21" and afrl not in whole:
        whole.append(afrl)
    if afrl in whole and across == "marc21" and lanl not in whole:
        whole.append(lanl)
    for edition in (1, 2):
        origin.export(edition)
        rounds([lanl, afrl])
        with origin.store.read() as view:
            dated = {s.identifier: written(s.datestamp) for s in view.changes()}
        originals = {i: metadata for i, (metadata, _, _) in origin.copies().items()}
        for node in (lanl, afrl):
            copies = node.copies()
            assert {i: (date, changes) for i, (_, date, changes) in copies.items()} == {
                i: (date, (0, 0)) for i, date in dated.items()
            }
            assert all(b"edition %d" % edition in metadata for metadata, _, _ in copies.values())
            if node in whole:
                assert {i: metadata for i, (metadata, _, _) in copies.items()} == originals


def test_a_copy_of_an_earlier_version_gives_way_to_the_origins_own_form(
    mesh: tuple[Catalogue, Catalogue, Catalogue],
) -> None:
    """Translations were not marked before: a copy that came by way of another node may be one."""
    origin, lanl, afrl = mesh
    lanl.takes(origin=(origin, "marc21"))
    afrl.takes(other=(lanl, "marc21"))
    origin.export()
    rounds([lanl, afrl])
    whole = afrl.copies()
    with afrl.store.read() as view:
        before = [(s.origin, s.record) for s in view.changes()]
    with afrl.store.write() as tx:
        for number, record in before:
            kept = {name: value for name, value in record.properties.items() if name != "distance"}
            lossy = record.raw.replace(b"stacks", b"zzz")
            tx.put(number, [replace(record, raw=lossy, properties=kept)])
    assert afrl.copies() != whole
    afrl.takes(origin=(origin, "marc21"))
    rounds([afrl])
    assert {i: copy[0] for i, copy in afrl.copies().items()} == {i: copy[0] for i, copy in whole.items()}
    assert all(changes == (0, 0) for _, _, changes in afrl.copies().values())
