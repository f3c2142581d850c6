"""Where the documents of a record are, by the metadata that real platforms give out.

Shapes of oai_dc are those of captured responses (Caltech: EPrints; UNL: Digital Commons; MIT: DSpace; Zenodo;
arXiv). xoai, ore and mets follow DSpace's crosswalks (dspace/config/crosswalks/oai/metadataFormats), oaire
the OpenAIRE Guidelines for Literature Repositories 4, DDI the export of Dataverse.
"""

from __future__ import annotations

import pytest

from indlet.sidecar.formats import files_in
from indlet.sidecar.links import AccessRight, FileLink, choose_files
from indlet.sidecar.locate import LANDING, LINK, RECORD, Ways, document_link, files_in_dublin_core

XOAI = b"""<metadata xmlns="http://www.lyncode.com/xoai">
 <element name="dc"><element name="rights"><element name="none">
   <field name="value">info:eu-repo/semantics/openAccess</field></element></element></element>
 <element name="bundles">
  <element name="bundle"><field name="name">TEXT</field><element name="bitstreams"><element name="bitstream">
    <field name="name">thesis.pdf.txt</field><field name="format">text/plain</field>
    <field name="size">900</field><field name="url">https://r.org/bitstream/1/2/3/thesis.pdf.txt</field>
  </element></element></element>
  <element name="bundle"><field name="name">ORIGINAL</field><element name="bitstreams">
   <element name="bitstream">
    <field name="name">appendix.pdf</field><field name="format">application/pdf</field>
    <field name="size">9000</field><field name="url">https://r.org/bitstream/1/2/2/appendix.pdf</field></element>
   <element name="bitstream"><field name="name">thesis.pdf</field><field name="format">application/pdf</field>
    <field name="size">5000</field><field name="url">https://r.org/bitstream/1/2/1/thesis.pdf</field></element>
   <element name="bitstream"><field name="name">data.zip</field><field name="format">application/zip</field>
    <field name="size">99000</field><field name="url">https://r.org/bitstream/1/2/4/data.zip</field></element>
  </element></element>
  <element name="bundle"><field name="name">LICENSE</field><element name="bitstreams">
   <element name="bitstream"><field name="name">license.txt</field><field name="url">https://r.org/bitstream/1/2/5/license.txt</field>
  </element></element></element>
 </element></metadata>"""

ORE = b"""<atom:entry xmlns:atom="http://www.w3.org/2005/Atom">
 <atom:link rel="alternate" href="https://hdl.handle.net/1/2"/>
 <atom:link rel="http://www.openarchives.org/ore/terms/aggregates" href="https://r.org/bitstream/1/2/1/a.pdf"
   title="a.pdf" type="application/pdf" length="1200"/>
</atom:entry>"""

METS = b"""<mets xmlns="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"><fileSec>
 <fileGrp USE="ORIGINAL"><file MIMETYPE="application/pdf" SIZE="77">
   <FLocat LOCTYPE="URL" xlink:href="https://r.org/bitstream/1/2/1/a.pdf"/></file></fileGrp>
 <fileGrp USE="THUMBNAIL"><file MIMETYPE="image/jpeg"><FLocat xlink:href="https://r.org/t.jpg"/></file></fileGrp>
</fileSec></mets>"""

OPENAIRE = b"""<resource xmlns="http://namespace.openaire.eu/schema/oaire/"
  xmlns:datacite="http://datacite.org/schema/kernel-4">
 <datacite:rights rightsURI="http://purl.org/coar/access_right/c_f1cf">embargoed access</datacite:rights>
 <datacite:dates><datacite:date dateType="Available">2031-05-01</datacite:date></datacite:dates>
 <file accessRightsURI="http://purl.org/coar/access_right/c_f1cf" mimeType="application/pdf"
   objectType="fulltext">https://r.org/bitstreams/11111111-2222-3333-4444-555555555555/download</file>
 <file mimeType="text/csv" objectType="dataset">https://r.org/data.csv</file></resource>"""

DDI = b"""<codeBook xmlns="http://www.icpsr.umich.edu/DDI">
 <otherMat ID="f7" URI="https://d.org/api/access/datafile/7" level="datafile"><labl>codebook.pdf</labl>
  <notes level="file" type="DATAVERSE:CONTENTTYPE" >application/pdf</notes></otherMat>
 <otherMat ID="f8" URI="https://d.org/api/access/datafile/8" level="datafile"><labl>data.tab</labl>
  <notes type="DATAVERSE:CONTENTTYPE">text/tab-separated-values</notes></otherMat></codeBook>"""

DIDL = b"""<d:DIDL xmlns:d="urn:mpeg:mpeg21:2002:02-DIDL-NS" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
 <d:Item><d:Item><d:Descriptor><d:Statement>
   <rdf:type rdf:resource="info:eu-repo/semantics/objectFile"/></d:Statement></d:Descriptor>
   <d:Component><d:Resource mimeType="application/pdf" ref="https://r.org/f/1.pdf"/></d:Component></d:Item>
  <d:Item><d:Descriptor><d:Statement>
   <rdf:type rdf:resource="info:eu-repo/semantics/humanStartPage"/></d:Statement></d:Descriptor>
   <d:Component><d:Resource mimeType="text/html" ref="https://r.org/page/1"/></d:Component></d:Item>
 </d:Item></d:DIDL>"""

MARC = b"""<record xmlns="http://www.loc.gov/MARC21/slim">
 <datafield tag="856" ind1="4" ind2="2"><subfield code="u">https://r.org/related.pdf</subfield></datafield>
 <datafield tag="856" ind1="4" ind2="0"><subfield code="u">https://r.org/files/9</subfield>
  <subfield code="q">application/pdf</subfield></datafield></record>"""

MODS = b"""<mods xmlns="http://www.loc.gov/mods/v3"><location>
 <url usage="primary display">https://r.org/page/3</url><url access="raw object">https://r.org/get/3</url></location>
 <physicalDescription><internetMediaType>application/pdf</internetMediaType></physicalDescription></mods>"""

RIOXX = b"""<rioxx xmlns="http://www.rioxx.net/schema/v2.0/rioxx/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:ali="http://ali.niso.org/2014/ali/1.0"><ali:license_ref>http://creativecommons.org/licenses/by/4.0</ali:license_ref>
 <dc:format>application/pdf</dc:format><dc:identifier>https://e.org/12/1/paper.pdf</dc:identifier></rioxx>"""

DATACITE = b"""<oai_datacite xmlns="http://schema.datacite.org/oai/oai-1.1/"><payload>
 <resource xmlns="http://datacite.org/schema/kernel-4">
 <identifier identifierType="DOI">10.5281/zenodo.17</identifier>
 <alternateIdentifiers><alternateIdentifier>https://z.org/records/17/files/a.pdf</alternateIdentifier>
 </alternateIdentifiers><rightsList><rights rightsURI="info:eu-repo/semantics/openAccess">Open Access</rights>
 </rightsList></resource></payload></oai_datacite>"""

JATS = b"""<article xmlns:xlink="http://www.w3.org/1999/xlink"><front><article-meta>
 <self-uri content-type="pdf" xlink:href="https://j.org/article/download/5/6"/></article-meta></front></article>"""


@pytest.mark.parametrize(
    ("raw", "first"),
    [
        (XOAI, "https://r.org/bitstream/1/2/1/thesis.pdf"),
        (ORE, "https://r.org/bitstream/1/2/1/a.pdf"),
        (METS, "https://r.org/bitstream/1/2/1/a.pdf"),
        (OPENAIRE, "https://r.org/bitstreams/11111111-2222-3333-4444-555555555555/download"),
        (DDI, "https://d.org/api/access/datafile/7"),
        (DIDL, "https://r.org/f/1.pdf"),
        (MARC, "https://r.org/files/9"),
        (MODS, "https://r.org/get/3"),
        (RIOXX, "https://e.org/12/1/paper.pdf"),
        (DATACITE, "https://z.org/records/17/files/a.pdf"),
        (JATS, "https://j.org/article/download/5/6"),
    ],
    ids=["xoai", "ore", "mets", "openaire", "ddi", "didl", "marc", "mods", "rioxx", "datacite", "jats"],
)
def test_a_format_names_the_primary_file(raw: bytes, first: str) -> None:
    found = files_in(raw)
    assert found is not None
    assert choose_files(found.files, 5)[0].url == first


def test_accompanying_files_come_after_the_primary_one_and_others_not_at_all() -> None:
    found = files_in(XOAI)
    assert found is not None and found.access is AccessRight.OPEN
    assert [link.name for link in choose_files(found.files, 5)] == ["thesis.pdf", "appendix.pdf"]


def test_extracted_text_stands_in_where_the_original_is_not_listed() -> None:
    found = files_in(XOAI.replace(b"ORIGINAL", b"CC-LICENSE"))
    assert found is not None
    assert [link.name for link in choose_files(found.files, 5)] == ["thesis.pdf.txt"]


def test_an_embargo_has_its_end() -> None:
    found = files_in(OPENAIRE)
    assert found is not None
    assert (found.access, found.until) == (AccessRight.EMBARGOED, "2031-05-01")


def test_an_article_in_jats_is_the_full_text_itself() -> None:
    found = files_in(b"<article><front/><body><p>All of it.</p></body></article>")
    assert found is not None and b"All of it." in found.text
    found = files_in(b"<article><front><abstract><p>Little.</p></abstract></front></article>")
    assert found is not None and not found.text


def test_manifestations_of_one_text_count_once() -> None:
    links = [FileLink(f"https://r.org/{name}", name=name) for name in ("a.docx", "a.pdf", "b.docx")]
    assert [link.name for link in choose_files(links, 5)] == ["a.pdf", "b.docx"]


@pytest.mark.parametrize(
    ("url", "document"),
    [
        ("http://arxiv.org/abs/0907.3404", "http://arxiv.org/pdf/0907.3404"),
        ("https://arxiv.org/abs/hep-th/9901001v2", "https://arxiv.org/pdf/hep-th/9901001v2"),
        ("http://dc.org/cgi/viewcontent.cgi?article=1101&context=phys",) * 2,
        ("https://e.org/14873/1/1684832.pdf",) * 2,
        ("https://e.org/id/eprint/9/1/a.docx",) * 2,
        ("https://z.org/records/17/files/a%20b.pdf?download=1",) * 2,
        ("https://z.org/api/records/17/files/a.pdf/content",) * 2,
        ("https://d.org/api/access/datafile/:persistentId?persistentId=doi:10.1/X/Y",) * 2,
        ("https://o.org/index.php/j/article/view/12/34", "https://o.org/index.php/j/article/download/12/34"),
        ("https://r.org/bitstream/handle/1/2/a.pdf?sequence=1&isAllowed=y",) * 2,
        ("https://r.org/bitstreams/11111111-2222-3333-4444-555555555555/download",) * 2,
        ("https://o.org/index.php/j/article/view/12", ""),
        ("https://r.org/handle/1/2", ""),
        ("https://dc.org/phys/102", ""),
        ("https://e.org/14873/", ""),
        ("https://r.org/about.html", ""),
    ],
)
def test_addresses_of_documents_are_recognised_by_rules(url: str, document: str) -> None:
    found = document_link(url)
    assert (found.url if found else "") == document


def test_an_address_that_was_escaped_twice_is_read_as_meant() -> None:
    found = files_in_dublin_core({
        "identifier": ["http://dc.org/phys/1", "http://dc.org/cgi/viewcontent.cgi?article=1&amp;context=p"]
    })  # fmt: skip
    assert [link.url for link in found.files] == ["http://dc.org/cgi/viewcontent.cgi?article=1&context=p"]
    assert found.pages == ("http://dc.org/phys/1",)


def test_the_repository_comes_before_a_publisher() -> None:
    found = files_in_dublin_core(
        {
            "identifier": ["doi:10.1109/TNS.2009.2027019", "http://hdl.handle.net/1721.1/92499", "2049-3002"],
            "relation": ["http://dx.doi.org/10.1186/2049-3002-2-21", "https://repo.org/92499/"],
        },
        "https://repo.org/oai",
    )
    assert found.pages[0] == "https://repo.org/92499/"
    assert "https://doi.org/10.1109/TNS.2009.2027019" in found.pages


def test_a_way_that_never_works_is_left_out_and_tried_now_and_then() -> None:
    ways = Ways()
    for _ in range(20):
        assert ways.order(["xoai"])[0] == RECORD
        ways.note("xoai", False)
        ways.note(LANDING, True)
    assert ways.order(["xoai"])[:3] == [RECORD, LINK, LANDING]
    assert "xoai" not in ways.order(["xoai"])
    ways.records = 49
    assert "xoai" in ways.order(["xoai"])
    assert Ways.from_json(ways.to_json()) == ways
