"""`indlet mirror`: a folder becomes what the web server serves, byte for byte, for each credential."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result
from lxml import etree
from tests.site.conftest import Bench, Make
from tests.site.test_site_access import PUBLIC, guard
from tests.site.web_servers import USERS, Web, available, free_port, web_server

from indlet.errors import SettingsError
from indlet.net.connection import tls
from indlet.site import oai_didl
from indlet.site.mirror.command import mirror
from indlet.site.mirror.journal import MirrorJournal
from indlet.site.mirror.paths import path_of


def run(*arguments: str | Path, status: int = 0) -> Result:
    result = CliRunner().invoke(mirror, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Path -> bytes and modification time in seconds, of all files but a mirror's own."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), int(path.stat().st_mtime))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".indlet-mirror" not in path.parts and path.name != ".htaccess"
    }


def served(web: Web, paths: set[str] | None = None) -> dict[str, tuple[bytes, int]]:
    host = web.url.removeprefix("http://")
    found = contents(web.root)
    return {f"{host}/{path}": file for path, file in found.items() if paths is None or f"/{path}" in paths}


def test_a_repository_that_was_public_does_not_become_one_of_our_network(tmp_path: Path) -> None:
    with MirrorJournal(tmp_path).opened() as journal:
        journal.known_public().remember("localhost")
        journal.known_public().remember("example.org")
    with MirrorJournal(tmp_path).opened() as journal:
        assert set(journal.known_public().hosts) == {"localhost", "example.org"}
    result = CliRunner().invoke(mirror, [f"http://localhost:{free_port()}/oai", "--to", str(tmp_path)])
    assert "leads into a private network" in f"{result.output}{result.exception}"


@pytest.fixture
def bench(apache: Web, make: Make) -> Bench:
    web = apache
    for number in range(25):
        web.write(f"d{number % 3}/{number}.txt", os.urandom(200 + number), at=1_500_000_000 + number)
    web.write("large.bin", os.urandom(300_000))
    web.write("ü 100%?#&.html", "<p>odd</p>")
    web.start()
    bench = make(web, by_value_bytes=100_000)
    bench.crawl()
    return bench


def test_a_mirror_equals_the_served_tree_and_stays_in_step(bench: Bench, tmp_path: Path) -> None:
    copy, web = tmp_path / "copy", bench.web
    with bench.listening(records_per_page=7) as node:
        first = run(f"{node}/oai", "--to", copy)
        assert "27 records: 26 files came with them, 1 were fetched" in first.output
        assert contents(copy) == served(web)
        assert run(f"{node}/oai", "--to", copy).output.startswith("0 records")
        web.write("d0/0.txt", "changed")
        web.write("new/folder/file.txt", "new")
        shutil.rmtree(web.root / "d1")
        web.write("d1", "a file where a folder was")
        bench.crawl()
        run(f"{node}/oai", "--to", copy)
        assert contents(copy) == served(web)
        (web.root / "d1").unlink()
        bench.crawl()
        run(f"{node}/oai", "--to", copy, "--keep-deleted")
        assert contents(copy) == served(web)
        aside = copy / ".indlet-mirror" / "deleted" / web.url.removeprefix("http://") / "d1"
        assert aside.read_text() == "a file where a folder was"


def test_what_was_only_touched_does_not_come_again(bench: Bench, tmp_path: Path) -> None:
    copy, web = tmp_path / "copy", bench.web
    with bench.listening() as node:
        run(f"{node}/oai", "--to", copy)
        for number in range(9):
            os.utime(web.root / f"d{number % 3}/{number}.txt", (1_600_000_000, 1_600_000_000))
        os.utime(web.root / "large.bin", (1_600_000_000, 1_600_000_000))
        web.write("d0/9.txt", "other bytes")
        (web.root / "d1/10.txt").unlink()
        bench.crawl()
        done = run(f"{node}/oai", "--to", copy).output
        assert done.startswith("12 records: 1 file came with them, 0 were fetched, 10 were here already")
        assert contents(copy) == served(web)
        # What is missing here comes again, touched or not.
        (copy / web.url.removeprefix("http://") / "d0/0.txt").unlink()
        run(f"{node}/oai", "--to", copy, "--full")
        assert contents(copy) == served(web)
        # Many that changed come by the list.
        for path in web.root.rglob("*.txt"):
            path.write_bytes(os.urandom(99))
        bench.crawl()
        assert "24 files came with them, 0 were fetched" in run(f"{node}/oai", "--to", copy).output
        assert contents(copy) == served(web)


def test_changed_and_deleted_urls_are_listed_for_any_crawler(bench: Bench) -> None:
    with bench.listening() as node:
        everything = run(f"{node}/oai", "--list").output.split()
        assert len(everything) == 27
        assert all(url.startswith(bench.web.url) for url in everything)
        assert len(run(f"{node}/oai", "--list", "--set", "mime:text:plain").output.split()) == 25
        time.sleep(1.1)
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        bench.web.write("d0/0.txt", "changed")
        (bench.web.root / "large.bin").unlink()
        bench.crawl()
        assert run(f"{node}/oai", "--list", "--since", before).output.split() == [f"{bench.web.url}/d0/0.txt"]
        gone = run(f"{node}/oai", "--list", "--since", before, "--deleted").output.split()
        assert gone == [f"{bench.web.url}/large.bin"]


@pytest.mark.parametrize("user", ["", "ann", "bob"])
def test_each_credential_gets_its_own_mirror(web: Web, make: Make, tmp_path: Path, user: str) -> None:
    guard(web)
    web.write("staff/large.bin", os.urandom(5000))
    web.start()
    bench = make(web, by_value_bytes=1000, remember_seconds=0.0)
    bench.crawl()
    copy, given = tmp_path / "copy", ["--user", f"{user}:{USERS[user]}"] if user else []
    seen = PUBLIC | {"": set(), "bob": {"/staff/s.html", "/staff/large.bin"},
                     "ann": {"/staff/s.html", "/staff/large.bin", "/staff/deep/ann.html"}}[user]  # fmt: skip
    with bench.listening() as node:
        run(f"{node}/oai", "--to", copy, "--trust", web.url, *given)
        assert contents(copy) == served(web, seen)
        # Rights that were withdrawn tell nobody; a full look does.
        web.write_passwords()
        if web.kind == "nginx":
            (web.run / "ann").write_text("")
        run(f"{node}/oai", "--to", copy, "--full", "--trust", web.url, *given)
        assert contents(copy) == served(web, PUBLIC)


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)])
def test_the_address_of_this_machine_opens_nothing(
    web: Web, make: Make, tmp_path: Path, proxies: tuple[str, ...]
) -> None:
    """Every client of a proxy here has it, so it is nobody's."""
    guard(web)
    web.write("here/a.html")
    web.write("here/large.bin", os.urandom(5000))
    if web.kind == "nginx":
        web.extra += "location /here/ { allow 127.0.0.1; deny all; }\n"
    else:
        web.write("here/.htaccess", "Require ip 127.0.0.1\n")
    web.start()
    bench = make(web, by_value_bytes=1000)
    bench.crawl()
    with bench.listening(trusted_proxies=proxies) as node:
        run(f"{node}/oai", "--to", tmp_path / "copy")
    assert contents(tmp_path / "copy") == served(web, PUBLIC)


def _certificate(folder: Path, name: str, *more: str) -> Path:
    """A PEM file with a key and a certificate for it that it has signed itself."""
    place, cert = folder / f"{name}.pem", folder / f"{name}.crt"
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-subj", f"/CN={name}", "-keyout", str(place), "-out", str(cert), *more]
    subprocess.run(command, check=True, capture_output=True)
    place.write_text(place.read_text() + cert.read_text())
    place.chmod(0o644)
    return place


def test_a_client_certificate_gets_its_own_mirror(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """nginx asks for certificates; node and files behind it go by the name that it found there."""
    if not available("nginx"):
        pytest.skip("no nginx here: apt-get install nginx-light")
    with web_server("nginx") as web:
        ann, bob = (_certificate(web.run, name) for name in ("ann", "bob"))
        own = _certificate(web.run, "localhost", "-addext", "subjectAltName=IP:127.0.0.1")
        known = web.run / "known.crt"
        known.write_text((web.run / "ann.crt").read_text() + (web.run / "bob.crt").read_text())
        web.write("a.html")
        web.write("staff/s.html", os.urandom(5000))
        rule = 'location /staff/ { if ($http_x_ssl_client_s_dn != "CN=ann") { return 403; } }\n'
        web.extra = rule
        web.start()
        bench = make(web)
        bench.crawl()
        port = free_port()
        monkeypatch.setenv("SSL_CERT_FILE", str(web.run / "localhost.crt"))
        tls.cache_clear()
        request.addfinalizer(tls.cache_clear)
        with bench.listening(trusted_proxies=("127.0.0.1",)) as node:
            web.reload(
                f"{rule}listen 127.0.0.1:{port} ssl; ssl_certificate {own}; ssl_certificate_key {own};\n"
                f"ssl_client_certificate {known}; ssl_verify_client optional;\n"
                f"location /modoai/ {{ proxy_pass {node}/; proxy_set_header X-SSL-Client-S-DN "
                "$ssl_client_s_dn; proxy_set_header X-Forwarded-For 198.51.100.7; }\n"
            )
            for shown, seen in ((ann, {"/a.html", "/staff/s.html"}), (bob, {"/a.html"}), (None, {"/a.html"})):
                copy = tmp_path / f"copy-{shown.stem if shown else ''}"
                given = ["--certificate", str(shown)] if shown else []
                run(f"https://127.0.0.1:{port}/modoai/oai", "--to", copy, *given)
                assert contents(copy) == served(web, seen)
            (web.run / "not.pem").write_text("no certificate")
            with pytest.raises(SettingsError, match="certificate"):
                run(f"{node}/oai", "--to", tmp_path / "x", "--certificate", web.run / "not.pem")


def test_a_broken_off_mirror_goes_on_where_it_was(bench: Bench, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with bench.listening(records_per_page=5) as node:
        url = f"{node}/oai"
        run(url, "--to", copy)
        journal = copy / ".indlet-mirror" / "journal.jsonl"
        lines = journal.read_text().splitlines()
        # As after a crash: half of the files, the token of the second page, a torn line.
        first = json.loads(lines[0])
        kept = lines[1:14]
        gone = [json.loads(line)["files"][0]["path"] for line in lines[14:]]
        for path in gone:
            (copy / path).unlink()
        first["state"] |= {"since": "", "token": ""}
        journal.write_text("\n".join([json.dumps(first), *kept, lines[14][:20]]))
        done = run(url, "--to", copy).output
        assert "13 were here already" in done
        assert contents(copy) == served(bench.web)


def test_a_file_that_cannot_be_had_is_asked_for_again(bench: Bench, tmp_path: Path) -> None:
    copy, web = tmp_path / "copy", bench.web
    data = (web.root / "large.bin").read_bytes()
    with bench.listening() as node:
        (web.root / "large.bin").unlink()
        result = run(f"{node}/oai", "--to", copy, status=3)
        assert "the server answers 404" in result.output
        web.write("large.bin", data)
        run(f"{node}/oai", "--to", copy)
        assert contents(copy) == served(web)


def test_a_warc_file_holds_what_was_taken(bench: Bench, tmp_path: Path) -> None:
    from warcio.archiveiterator import ArchiveIterator

    archive = tmp_path / "copy.warc.gz"
    with bench.listening() as node:
        run(f"{node}/oai", "--to", tmp_path / "copy", "--warc", archive)
    with gzip.open(archive) as file:
        assert file.read(8) == b"WARC/1.0"
    with archive.open("rb") as raw:
        found = {
            record.rec_headers["WARC-Target-URI"]: record.content_stream().read()
            for record in ArchiveIterator(raw)
            if record.rec_type == "response"
        }
    expected = {file for file, _ in contents(bench.web.root).values()}
    assert set(found.values()) == expected
    assert len(found) == len(expected)


# Hostile and foreign repositories

FRAME = """<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-01-01T00:00:00Z</responseDate>
<request>x</request>{body}</OAI-PMH>"""
RECORD = """<record><header><identifier>{identifier}</identifier><datestamp>2025-01-01</datestamp></header>
<metadata>{metadata}</metadata></record>"""


@contextmanager
def repository(records: Sequence[tuple[str, bytes | str]], prefix: str = "oai_didl") -> Iterator[str]:
    """A repository that gives out these records, whatever is asked; and files of one byte."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            verb = parse_qs(urlsplit(self.path).query).get("verb", [""])[0]
            body = b"?"
            if verb == "ListMetadataFormats":
                formats = f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix></metadataFormat>"
                body = FRAME.format(body=f"<ListMetadataFormats>{formats}</ListMetadataFormats>").encode()
            elif verb == "ListRecords":
                told = "".join(
                    RECORD.format(identifier=i, metadata=m.decode() if isinstance(m, bytes) else m)
                    for i, m in records
                )
                body = FRAME.format(body=f"<ListRecords>{told}</ListRecords>").encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/oai"
        server.shutdown()
        thread.join()


EVIL = [
    "http://h/../../../../etc/passwd", "http://h/%2e%2e/%2e%2e/x", "http://h/a/..%2f..%2f..%2fx", "http://h//etc/x",
    "http://../x", "http://h/a%00b", "file:///etc/passwd", "/etc/passwd", "http://h/.indlet-mirror/journal.jsonl",
    "http://h/" + "a/" * 5000, "http://h/" + "x" * 5000, "http://h/link/x", "http://%2e%2e%2f/x", "..", "", "http://h/%",
]  # fmt: skip


def test_no_url_leads_out_of_the_folder(tmp_path: Path) -> None:
    copy, outside = tmp_path / "in" / "copy", tmp_path / "outside"
    outside.mkdir()
    (copy / "h").mkdir(parents=True)
    (copy / "h" / "link").symlink_to(outside)
    before = sorted(str(p) for p in tmp_path.rglob("*") if copy not in p.parents)
    records = [
        (f"oai:x:{n}", oai_didl.write(url, "text/plain", b"<x/>", b"evil")) for n, url in enumerate(EVIL)
    ]
    with repository(records) as url:
        result = run(url, "--to", copy, status=3)
    assert "leads out of" in result.output
    assert sorted(str(p) for p in tmp_path.rglob("*") if copy not in p.parents) == before
    assert not list(outside.iterdir())
    for url in EVIL:
        assert ".." not in Path(path_of(url, "oai:x:1")).parts
        assert not Path(path_of(url, "oai:x:1")).is_absolute()


def test_two_urls_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    records = [
        ("http://h/a", oai_didl.write("http://h/a", "text/plain", b"<x/>", b"one")),
        ("http://h/%61", oai_didl.write("http://h/%61", "text/plain", b"<x/>", b"two")),
    ]
    with repository(records) as url:
        result = run(url, "--to", tmp_path / "copy", status=3)
    assert "has a file of that name already" in result.output
    assert (tmp_path / "copy/h/a").read_bytes() == b"one"


def test_wrong_bytes_are_refused(tmp_path: Path) -> None:
    header = (
        '<h:headers xmlns:h="urn:indlet:http-header:1.0"><h:header name="Content-Length">1</h:header>'
        f'<h:digest algorithm="sha-256">{"0" * 64}</h:digest></h:headers>'
    ).encode()
    records: list[tuple[str, bytes | str]] = []
    with repository(records) as url:
        ref = url.removesuffix("/oai") + "/file"
        records.append((ref, oai_didl.write(ref, "text/plain", header, b"x")))
        result = run(url, "--to", tmp_path / "copy", status=3)
    assert "SHA-256" in result.output
    assert not contents(tmp_path / "copy")


NAMESPACE = 'xmlns:d="urn:mpeg:mpeg21:2002:02-DIDL-NS"'
DSPACE = f"""<d:DIDL {NAMESPACE}><d:DIDLInfo/><d:Item id="uuid-1">
<d:Descriptor><d:Statement mimeType="application/xml; charset=utf-8"><x/></d:Statement></d:Descriptor>
<d:Component id="uuid-2">
  <d:Resource ref="{{base}}/bitstream/1/thesis.pdf" mimeType="application/pdf"/>
</d:Component>
<d:Component><d:Resource mimeType="text/plain" encoding="base64">{{text}}</d:Resource></d:Component>
</d:Item></d:DIDL>"""
EPRINTS = f"""<d:DIDL {NAMESPACE}><d:Item>
<d:Descriptor><d:Statement mimeType="text/xml"/></d:Descriptor>
<d:Item><d:Descriptor><d:Statement mimeType="application/xml">
<p:ObjectType xmlns:p="urn:mpeg:mpeg21:2005:01-DIP-NS"
>info:eu-repo/semantics/descriptiveMetadata</p:ObjectType>
</d:Statement></d:Descriptor>
<d:Component><d:Resource mimeType="application/xml"><dc><title>A paper</title></dc></d:Resource></d:Component>
</d:Item>
<d:Item><d:Component><d:Resource ref="{{base}}/12/1/paper.pdf" mimeType="x/pdf"/></d:Component></d:Item>
<d:Item><d:Component><d:Resource ref="{{base}}/12/2/data.csv" mimeType="text/csv"/></d:Component></d:Item>
</d:Item></d:DIDL>"""


def test_the_forms_of_dspace_and_eprints_are_mirrored_too(tmp_path: Path) -> None:
    records: list[tuple[str, bytes | str]] = []
    with repository(records, prefix="didl") as url:
        base = url.removesuffix("/oai")
        text = base64.b64encode(b"a text").decode()
        records.append(("oai:dspace:1", DSPACE.format(base=base, text=text)))
        records.append(("oai:eprints:12", EPRINTS.format(base=base)))
        run(url, "--to", tmp_path / "copy")
    found = contents(tmp_path / "copy")
    host = base.removeprefix("http://")
    assert {f"{host}/bitstream/1/thesis.pdf", f"{host}/12/1/paper.pdf", f"{host}/12/2/data.csv"} < set(found)
    assert [data for path, (data, _) in found.items() if path.startswith("records/")] == [b"a text"]


PLAIN = '<d:Resource mimeType="x/y" encoding="base64">{}</d:Resource>'
PAGES = [
    # answer, whether texts are taken out of it
    (PLAIN.format("QUJD"), True),
    (PLAIN.format("QU\nJD") + PLAIN.format(""), True),
    ("<?a b?>" + PLAIN.format("QUJD"), True),
    (PLAIN.format("QU&#13;\nJD"), False),
    (PLAIN.format("#0") + PLAIN.format("QUJD"), True),
    (PLAIN.format("not base64"), True),
    (f"<!-- {PLAIN.format('QUJD')} -->" + PLAIN.format("REVG"), False),
    (f"<x><![CDATA[{PLAIN.format('QUJD')}]]></x>" + PLAIN.format("REVG"), False),
    ('<?pi encoding="base64">?>' + PLAIN.format("REVG"), False),
    (PLAIN.format("REVG") + "<?pi?>", False),
    ("<x a=' encoding=\"base64\">' b='c'>text</x>" + PLAIN.format("REVG"), False),
    (PLAIN.replace('"', "'").format("QUJD"), False),
    (PLAIN.replace('"', "'").format("#" + "1" * 5000) + PLAIN.format("REVG"), True),
]


@pytest.mark.parametrize(("inside", "taken"), PAGES)
def test_files_taken_out_of_an_answer_are_those_that_a_parser_finds(inside: str, taken: bool) -> None:
    body = f"<d:C {NAMESPACE}><d:Component>{inside}</d:Component></d:C>".encode()
    rest, contents = oai_didl.without_content(body)
    assert bool(contents) == taken
    expected = oai_didl.read(etree.fromstring(body))
    if inside == PLAIN.format("#0") + PLAIN.format("QUJD"):
        assert [one.content for one in expected] == [b"ABC"]
    assert oai_didl.read(etree.fromstring(rest), contents) == expected


def test_a_didl_comes_back_as_it_was_written() -> None:
    written = oai_didl.write("http://h/a&b", "text/plain", b"<x/>", b"\0\xff")
    assert oai_didl.read(etree.fromstring(written)) == [
        oai_didl.Component("http://h/a&b", "text/plain", b"\0\xff")
    ]
