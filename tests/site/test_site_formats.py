"""http_header and oai_didl say what the server says, and pages stay small whatever the files hold."""

from __future__ import annotations

import base64
import hashlib
import tracemalloc
from email.utils import parsedate_to_datetime
from importlib.resources import files
from pathlib import Path

import httpx
from lxml import etree
from tests.site.conftest import OAI, Client, Make
from tests.site.web_servers import Web

from indlet.site import http_header, oai_didl

HTTP, DIDL = f"{{{http_header.NAMESPACE}}}", f"{{{oai_didl.NAMESPACE}}}"
DII = f"{{{oai_didl.DII_NAMESPACE}}}"
HEADER_SCHEMA = etree.XMLSchema(
    etree.parse(Path(str(files("indlet.provider.serve"))) / "schema" / http_header.SCHEMA_FILE)
)
# The elements and attributes of ISO/IEC 21000-2 that we use, in their order.
DIDL_SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("didl_subset.xsd")))


def records(client: Client, prefix: str, **arguments: str) -> dict[str, etree._Element]:
    """Path -> metadata part."""
    found = {}
    for page in client.pages("ListRecords", metadataPrefix=prefix, **arguments):
        for record in page.iter(f"{OAI}record"):
            url = record.findtext(f".//{OAI}identifier", "")
            metadata = record.find(f"{OAI}metadata")
            assert metadata is not None
            found["/" + url.split("/", 3)[3]] = metadata[0]
    return found


def test_the_header_is_what_a_get_returns(web: Web, make: Make) -> None:
    web.write("a.html", "<p>a</p>")
    web.write("b/ü.svg", "<svg/>")
    web.extra = (
        "Header set X-Own \"a & 'b'\"" if web.kind.startswith("apache") else "add_header X-Own \"a & 'b'\";"
    )
    web.start()
    bench = make(web)
    bench.crawl()
    found = records(bench.serve(), "http_header")
    assert set(found) == {"/a.html", "/b/%C3%BC.svg"}
    for path, part in found.items():
        HEADER_SCHEMA.assertValid(part)
        told = [(h.get("name", ""), h.text or "") for h in part.iter(f"{HTTP}header")]
        answer = httpx.get(web.url + path, headers={"Accept-Encoding": "identity"})
        hop = {"connection", "keep-alive", "date"}
        real = [(n.decode(), v.decode()) for n, v in answer.headers.raw]
        assert [p for p in told if p[0].lower() not in hop] == [p for p in real if p[0].lower() not in hop]
        assert ("X-Own", "a & 'b'") in told
        assert parsedate_to_datetime(dict(told)["Date"])
        assert part.findtext(f"{HTTP}digest") == hashlib.sha256(answer.content).hexdigest()


def test_a_didl_holds_the_resource_by_reference_and_by_value(web: Web, make: Make) -> None:
    small, large = b"\0\xff<p>&", b"x" * 5000
    web.write("small.bin", small)
    web.write("large.txt", large)
    web.start()
    bench = make(web, by_value_bytes=100)
    bench.crawl()
    found = records(bench.serve(), "oai_didl")
    for path, part in found.items():
        DIDL_SCHEMA.assertValid(part)
        assert part.findtext(f".//{DII}Identifier") == web.url + path
        header = part.find(f".//{HTTP}headers")
        assert header is not None
        HEADER_SCHEMA.assertValid(header)
        by_reference, *by_value = part.iter(f"{DIDL}Resource")
        assert by_reference.get("ref") == web.url + path
        if path == "/small.bin":
            assert by_value[0].get("encoding") == "base64"
            assert base64.b64decode(by_value[0].text or "") == small
            assert by_value[0].get("mimeType") == by_reference.get("mimeType")
        else:
            assert not by_value


def test_a_file_that_changed_since_the_crawl_is_not_given_by_value(apache: Web, make: Make) -> None:
    apache.write("a.txt", "before")
    apache.start()
    bench = make(apache)
    bench.crawl()
    apache.write("a.txt", "AFTER!")
    (part,) = records(bench.serve(), "oai_didl").values()
    assert len(list(part.iter(f"{DIDL}Resource"))) == 2, "same size and time: taken for the same"
    apache.write("a.txt", "AFTER!", at=1_600_000_000)
    (part,) = records(bench.serve(), "oai_didl").values()
    assert len(list(part.iter(f"{DIDL}Resource"))) == 1


def test_pages_are_bounded_in_bytes_and_memory_stays_flat(apache: Web, make: Make) -> None:
    for number in range(40):
        apache.write(f"{number:02}.bin", bytes([number]) * 1_000_000)
    with (apache.root / "huge.bin").open("wb") as file:
        file.truncate(100_000_000)
    apache.start()
    bench = make(apache, by_value_bytes=2_000_000)
    tracemalloc.start()
    bench.crawl()
    client = bench.serve(records_per_page=1000)
    sizes = [len(etree.tostring(page)) for page in client.pages("ListRecords", metadataPrefix="oai_didl")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(sizes) > 40 * 4 / 3 * 1_000_000
    assert max(sizes) < 20_000_000
    assert peak < 150_000_000


def test_both_endpoints_bind_index_parts_to_site_records(apache: Web, make: Make) -> None:
    apache.write("a.html", "<p>wings wings</p>")
    apache.start()
    bench = make(apache)
    bench.crawl()
    client = bench.serve()
    answer = client.http.get("/ft-oai?verb=ListRecords&metadataPrefix=oai_didl&indexPrefix=tf_basic").text
    assert 'name="wing" freq="2"' in answer
    assert "didl:Resource" in answer
    formats = client.get(verb="ListMetadataFormats", identifier=f"{apache.url}/a.html")
    assert {"oai_dc", "http_header", "oai_didl", "oai_dc_tf"} <= {
        p.text for p in formats.iter(f"{OAI}metadataPrefix")
    }
