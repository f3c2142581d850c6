"""Every metadata format of the registry is served for every record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from indlet.formats import METADATA
from indlet.formats.record import Field
from indlet.model import Record
from indlet.oai.names import OAI_NAMESPACE

Provider = Any

SERVED = [f.prefix for f in METADATA.values() if f.served]


def test_all_formats_are_listed_with_schema_and_namespace(provider: Provider) -> None:
    root = provider.ask(verb="ListMetadataFormats")
    assert set(SERVED) <= set(provider.found(root, "metadataPrefix"))
    for schema in provider.found(root, "schema"):
        assert schema.startswith("http")


@pytest.mark.parametrize("prefix", SERVED)
def test_every_record_is_served_in_every_format(
    filled: Provider, prefix: str, valid: Callable[[bytes], None]
) -> None:
    valid(filled.get("/oai", verb="ListRecords", metadataPrefix=prefix))
    root = filled.ask(verb="ListRecords", metadataPrefix=prefix)
    parts = root.findall(f".//{{{OAI_NAMESPACE}}}metadata")
    assert len(parts) >= 5
    for part in parts:
        assert part[0].tag in METADATA[prefix].roots
        assert METADATA[prefix].read(part[0]).simple()["title"][0].startswith("Report")


def test_an_original_is_given_out_unchanged_in_its_own_format(provider: Provider) -> None:
    title = Field("245", "", "10", (("a", "Wings /"), ("c", "A. B.")))
    raw = METADATA["marc21"].xml([title, Field("099", "", "  ", (("z", "local"),))])
    provider.put([Record("oai:x.org:1", {"title": ["Wings"]}, raw=raw)])
    answer = provider.get("/oai", verb="GetRecord", metadataPrefix="marc21", identifier="oai:x.org:1")
    assert raw in answer
    plain = provider.get("/oai", verb="GetRecord", metadataPrefix="oai_dc", identifier="oai:x.org:1")
    assert b"<dc:title>Wings</dc:title>" in plain
