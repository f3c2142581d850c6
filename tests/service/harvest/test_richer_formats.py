"""A harvest that takes Dublin Core where MARC or MODS could be had says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.hostile import misbehaving as m
from tests.service.harvest.test_harvest_own import Node_
from tests.stores import store_in

from indlet.formats.iso2709 import Marc
from indlet.formats.metadata import marc21
from indlet.formats.record import Field
from indlet.model import Record
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.record_intake import RICHER
from indlet.service.pipeline import harvest_all
from indlet.settings import Analysis, Harvest, Settings, Source


def harvest(folder: Path, url: str, **source: str) -> Progress:
    with store_in(folder) as store:
        settings = Settings(harvest=Harvest(retries=0))
        (progress,) = harvest_all(store, settings, [Source(url, name="repo", **source)], index=False)  # type: ignore[arg-type]
    assert progress.outcome == "complete"
    return progress


def test_other_repositories_are_told_by_what_they_list(tmp_path: Path) -> None:
    def with_marc(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.verb != "ListMetadataFormats":
            return reply
        more = b"<metadataFormat><metadataPrefix>marcxml</metadataPrefix></metadataFormat>"
        end = b"</ListMetadataFormats>"
        return replace(reply, body=reply.body.replace(end, more + end))

    with m.Provider(None, with_marc) as provider:
        told = harvest(tmp_path / "a", provider.url).repairs
    assert any("though marcxml is offered" in note for note in told)
    with m.Provider() as provider:
        assert not any("is offered" in note for note in harvest(tmp_path / "b", provider.url).repairs)


def test_nodes_are_told_by_what_they_keep(tmp_path: Path) -> None:
    record = Marc(
        "00000cam a2200000 a 4500",
        (
            Field("001", "x1"),
            Field("245", "", "10", (("a", "Flutter"),)),
            Field("999", "", "ff", (("i", "z"),)),
        ),
    )
    raw = marc21.write_xml(record.leader, record.fields)
    with Node_(tmp_path / "node", Analysis()) as node:
        node.put(("1", "plain wings"))
        with node.store.write() as tx:
            made = Record("oai:x.org:marc", {"title": ["Flutter"]}, raw=raw)
            tx.put(tx.origin("hierarchy", "h"), [made])
        assert harvest(tmp_path / "dc", node.url).repairs[RICHER] == 1
        assert not harvest(tmp_path / "marc", node.url, metadata="marc21").repairs[RICHER]
