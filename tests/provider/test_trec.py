"""A TREC collection is put in as it comes: SGML files of many documents, plain, in gzip, and in compress."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.stores import store_in

from indlet.provider.pipeline import crawl
from indlet.settings import Crawl, Hierarchy, Node, Settings

# In the forms of AQUAINT, of the TREC disks and of the Foreign Broadcast Information Service.
AQUAINT = """<DOC>
<DOCNO> APW19980601.0003 </DOCNO><DOCTYPE> NEWS </DOCTYPE><DATE_TIME> 06/01/1998 00:10:00 </DATE_TIME>
<BODY><SLUG> BC-Sports </SLUG><HEADLINE> Flutter &amp; wings </HEADLINE>
<TEXT><P> The wing of the aeroplane fluttered. </P></TEXT></BODY><TRAILER> AP-NY-06-01-98 </TRAILER>
</DOC>
<DOC>
<DOCNO> APW19980601.0004 </DOCNO><BODY><TEXT> A second story. </TEXT></BODY>
</DOC>
"""
DISK = "<DOC>\n<DOCNO> AP880212-0001 </DOCNO>\n<HEAD>Rain</HEAD>\n<TEXT>\nIt rained.\n</TEXT>\n</DOC>\n"
FBIS = "<DOC><DOCNO> FBIS3-1 </DOCNO><DATE1> March 1, 1994 </DATE1><TEXT> Politics of ports. </TEXT></DOC>\n"


def compressed(text: str) -> bytes:
    """As Unix `compress` writes it, with the codes of single bytes alone: nine bits each, lowest first."""
    data = text.encode()
    assert len(data) < 255, "longer texts need wider codes"
    bits = sum(byte << (9 * place) for place, byte in enumerate(data))
    return b"\x1f\x9d\x90" + bits.to_bytes((9 * len(data) + 7) // 8, "little")


def test_each_document_of_a_trec_collection_is_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "trec" / "aquaint" / "apw" / "1998"
    folder.mkdir(parents=True)
    (folder / "19980601_APW_ENG.gz").write_bytes(gzip.compress(AQUAINT.encode()))
    (tmp_path / "trec" / "AP880212.Z").write_bytes(compressed(DISK))
    (tmp_path / "trec" / "fb396001").write_text(FBIS + FBIS.replace("FBIS3-1", "FBIS3-2"))
    settings = Settings(
        node=Node(base_url="http://trec.example.org"),
        hierarchy=(Hierarchy(str(tmp_path / "trec")),),
        crawl=Crawl(workers=1, settle_seconds=0.0),
    )
    with store_in(tmp_path / "data") as store:
        (summary,) = crawl(store, settings)
        assert summary.failed == 0
        with store.read() as view:
            found = {stored.identifier.rpartition("/")[2]: stored.record for stored in view.page(100)}
    assert found.keys() == {
        "19980601_APW_ENG;APW19980601.0003",
        "19980601_APW_ENG;APW19980601.0004",
        "AP880212",
        "fb396001;FBIS3-1",
        "fb396001;FBIS3-2",
    }
    first = found["19980601_APW_ENG;APW19980601.0003"]
    assert first.metadata["title"] == ["Flutter & wings"]
    assert first.vector is not None and {"wing", "flutter"} <= first.vector.frequencies().keys()
    assert "apw19980601.0003" not in first.vector.frequencies()
    disk = found["AP880212"].vector
    assert disk is not None and "rain" in disk.frequencies()
