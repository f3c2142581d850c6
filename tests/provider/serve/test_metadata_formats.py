"""Every metadata format of the registry is served for every record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from starlette.testclient import TestClient

from indlet.errors import SettingsError
from indlet.exchange.table_formats import table_formats
from indlet.formats import METADATA
from indlet.formats.record import Field
from indlet.model import Record
from indlet.oai.names import OAI_NAMESPACE
from indlet.provider import serve
from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.settings import LibraryFolder, Settings, Write
from indlet.store import open_store

Provider = Any
OAI = f"{{{OAI_NAMESPACE}}}"

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


def test_a_format_that_a_table_describes_is_served_valid_and_unchanged(tmp_path: Path) -> None:
    table = tmp_path / "our reports.tsv"
    table.write_text(
        "!form\tdelimited\nReport title\t\t\ttitle\t\tboth\nNumber\t\t\tidentifier[report]\t\tboth\n"
    )
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "all.csv").write_text("Report title,Number,Shelf\nFlutter & ice,TN-1,B 7\n")
    settings = Settings(
        data=tmp_path / "data",
        library=(LibraryFolder("larc", str(tmp_path / "export"), f"table:{table}"),),
        write=(Write(str(tmp_path), "table:sandia"),),
    )
    with open_store(settings.data) as store:
        crawl(store, settings)
        with TestClient(application(store, settings), base_url=settings.base_url()) as client:

            def get(path: str, **arguments: str) -> etree._Element:
                return etree.fromstring(client.get(path, params=arguments).content)

            listed = get("/oai", verb="ListMetadataFormats")
            offered = {
                one[0].text: (one[1].text or "", one[2].text) for one in listed.iter(f"{OAI}metadataFormat")
            }
            for prefix in ("table-our-reports", "table-sandia"):
                url, namespace = offered[prefix]
                schema = etree.XMLSchema(get(url.removeprefix(settings.base_url())))
                answer = get("/oai", verb="ListRecords", metadataPrefix=prefix)
                (record,) = (part[0] for part in answer.iter(f"{OAI}metadata"))
                assert etree.QName(record).namespace == namespace
                schema.assertValid(record)
                fields = [(field.get("tag"), field.text) for field in record]
                if prefix == "table-our-reports":  # as the catalogue has it
                    assert fields == [("Report title", "Flutter & ice"), ("Number", "TN-1"), ("Shelf", "B 7")]
                else:  # the number's scheme is known from the original
                    assert ("REPORT-NUMBER", "TN-1") in fields and ("TITLE", "Flutter & ice") in fields
            (unknown,) = get("/oai", verb="ListRecords", metadataPrefix="table-x").iter(f"{OAI}error")
            assert unknown.get("code") == "cannotDisseminateFormat"


def test_a_field_beyond_our_profile_of_cosati_is_valid() -> None:
    schema = etree.XMLSchema(etree.parse(Path(serve.__file__).with_name("schema") / "cosati.xsd"))
    schema.assertValid(etree.fromstring(METADATA["cosati"].xml([Field("6", "Flutter"), Field("6A", "Ice")])))


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.tsv").write_text("!form\ttagged\nTITLE\t\t\ttitle\t\tboth\n")
    write = tuple(Write(str(tmp_path), f"table:{tmp_path / folder / 'x.tsv'}") for folder in ("a", "b"))
    with pytest.raises(SettingsError, match="table-x; rename one"):
        table_formats(Settings(write=write))


@pytest.mark.parametrize("namespace", ["urn:x", METADATA["marc21"].namespace])
def test_a_table_with_the_namespace_of_another_format_is_refused(tmp_path: Path, namespace: str) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tsv").write_text(
            f"!form\ttagged\n!namespace\t{namespace}\nTITLE\t\t\ttitle\t\tboth\n"
        )
    write = tuple(Write(str(tmp_path), f"table:{tmp_path / name}.tsv") for name in ("a", "b"))
    with pytest.raises(SettingsError, match="one of its own"):
        table_formats(Settings(write=write))
