"""What other programs make of our MARC, and where our Dublin Core differs from the Library of Congress's.

    INDLET_DATA=… python -m bench.marc readers [--formats mods …] [--json FILE]
    INDLET_DATA=… python -m bench.marc stylesheet MARC21slim2OAIDC.xsl [--json FILE]

The records are those below INDLET_DATA/marc (a folder, or marc.tar.gz there).

`readers`: one node reads them as a catalogue's export, another harvests them as MARC over HTTP and writes
import folders in MARC (UTF-8 and MARC-8), and in every other format. Each of those folders is then an export:
MARC is written from it by two more nodes. yaz-marcdump, Catmandu and pymarc then read every MARC file that
was written (in MARC-8, which Catmandu does not know, the other two), and every record as MARCXML; but
Catmandu no record of more than 1,500 fields as MARCXML, for its time grows with the square of their number.
Told are the records that each found, its complaints, and our alerts.

`stylesheet`: both translate each field of each record alone, so that a difference belongs to one field.
The stylesheet is not part of indlet (the PyPI package invenio-marc21 has a copy). It imports a library of
which it uses one template; unless MARC21slimUtils.xsl stands beside it, ours takes its place.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pymarc
import uvicorn
from lxml import etree

from indlet.exchange.write_out import write_out
from indlet.formats import METADATA, in_format
from indlet.formats.crosswalk import Crosswalk
from indlet.formats.metadata import marc21
from indlet.formats.record import Broken, Field
from indlet.provider.pipeline import crawl
from indlet.provider.serve import application
from indlet.service.pipeline import harvest_all
from indlet.settings import Crawl, LibraryFolder, Node, Settings, Source, Write
from indlet.store import Store, open_store

MARC = marc21.FORMAT
ENDINGS = (".mrc", ".marc", ".xml")
MOST_FIELDS = 1500  # of a record as MARCXML that Catmandu is given


def marc_folder(data: Path, folder: Path) -> Path:
    """The real files, in a folder."""
    folder.mkdir(parents=True)
    for path in sorted(data.rglob("*")):
        if path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        elif path.suffix in ENDINGS:
            (folder / path.name).write_bytes(path.read_bytes())
    for path in list(folder.rglob("*")):
        if path.is_file() and path.suffix not in ENDINGS:
            path.unlink()
    return folder


# What other programs read


def library(folder: Path, name: str, data: Path, format_: str) -> tuple[Store, Settings]:
    """A node that has read an export folder."""
    settings = Settings(
        data=data / name,
        node=Node(name=name, repository=f"{name.replace('_', '-')}.example.org"),
        library=(LibraryFolder(name, str(folder), format_),),
        crawl=Crawl(settle_seconds=0.0, workers=1),
    )
    store = open_store(settings.data)
    crawl(store, settings)
    return store, settings


def exchanged(export: Path, format_: str, work: Path, formats: list[str]) -> tuple[int, Store]:
    """Export folder -> node -> HTTP -> node -> import folders: how many records, and the second store."""
    name = f"from-{format_}-{export.name}".replace(":", "-")
    store, settings = library(export, name, work, format_)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        app = application(store, settings)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        writes = []
        for one in formats:
            folder = work / "import" / name / one.replace(":", "-")
            folder.mkdir(parents=True)
            writes.append(Write(str(folder), one, path="{name}"))
        other = Settings(
            data=work / f"{name}-harvested",
            source=(Source(url, name="origin", metadata=format_.replace(":", "-")),),
            write=tuple(writes),
        )
        second = open_store(other.data)
        (done,) = harvest_all(second, other, index=False)
        assert done.outcome == "complete", done.reason
        for written in write_out(second, other):
            assert not written.reason, written.reason
        server.should_exit = True
        thread.join()
    with store.read() as view:
        count = sum(live for live, _ in view.totals().values())
    store.close()
    return count, second


def read_by_others(files: list[Path], work: Path) -> dict[str, tuple[int, int]]:
    """(records, complaints) of each program over ISO 2709 files, one after the other."""
    whole = work / "whole.mrc"
    whole.write_bytes(b"".join(path.read_bytes() for path in files))
    return {
        "pymarc": _pymarc(files),
        "yaz-marcdump": _yaz(whole, "marc"),
        "Catmandu": _catmandu(whole),
    }


def read_marc8_by_others(files: list[Path], same: list[Path], work: Path) -> dict[str, dict[str, object]]:
    """The same for MARC-8, which Catmandu does not know, and in how many records the text is another.

    `same`: the files of these records in UTF-8.
    """
    whole = work / "whole8.mrc"
    whole.write_bytes(b"".join(path.read_bytes() for path in files))
    command = ["yaz-marcdump", "-f", "marc-8", "-t", "utf-8", "-o", "marcxml", str(whole)]
    told = subprocess.run(command, capture_output=True, check=False)
    root = etree.fromstring(told.stdout, etree.XMLParser(recover=True, huge_tree=True))
    by_yaz = [
        [
            node.text or ""
            for field in record.iter("{*}datafield")
            if field.get("tag") != "066"
            for node in field.iter("{*}subfield")
        ]
        for record in root.iter("{*}record")
    ]
    wanted = [texts(_by_pymarc(path)) for path in same]
    found = {"pymarc": [_by_pymarc(path) for path in files], "yaz-marcdump": by_yaz}
    complaints = {"pymarc": found["pymarc"].count([]), "yaz-marcdump": len(told.stderr.splitlines())}
    return {
        "read": {name: (len(read), complaints[name]) for name, read in found.items()},
        "other_text": {
            name: sum(texts(a) != b for a, b in zip(read, wanted, strict=False))
            for name, read in found.items()
        },
    }


def _by_pymarc(path: Path) -> list[str]:
    with contextlib.redirect_stderr(
        io.StringIO()
    ):  # it remarks on each blank between words of another script
        record = next(iter(pymarc.MARCReader(path.read_bytes())))
    fields = record.fields if record is not None else []
    return [value for field in fields if field.tag != "066" for _, value in field.subfields]


def texts(values: list[str]) -> list[str]:
    """Values as they are compared: composed, references resolved, a mark over two letters in one form."""
    whole = (_REFERENCE.sub(lambda m: chr(int(m[1], 16)), value).translate(_HALVES) for value in values)
    return [unicodedata.normalize("NFC", " ".join(value.split())) for value in whole]


_REFERENCE = re.compile(r"&#x([0-9A-F]{4,6});")
_HALVES = {0xFE20: 0x361, 0xFE21: None, 0xFE22: 0x360, 0xFE23: None}


def read_xml_by_others(records: list[bytes], work: Path) -> dict[str, tuple[int, int]]:
    whole = work / "whole.xml"
    _collect(whole, records)
    found: list[object] = pymarc.parse_xml_to_array(str(whole))  # type: ignore[no-untyped-call]
    read = {"pymarc": (len(found), 0), "yaz-marcdump": _yaz(whole, "marcxml")}
    _collect(whole, [record for record in records if record.count(b"<datafield") <= MOST_FIELDS])
    return {**read, "Catmandu": _catmandu(whole, "XML")}


def _collect(whole: Path, records: list[bytes]) -> None:
    inside = b"\n".join(records)
    whole.write_bytes(b'<collection xmlns="%b">%b</collection>' % (MARC.namespace.encode(), inside))


def _pymarc(files: list[Path]) -> tuple[int, int]:
    records = complaints = 0
    for path in files:
        reader = pymarc.MARCReader(path.read_bytes(), force_utf8=True)
        for record in reader:
            if record is None or not record.fields:
                complaints += 1
            else:
                records += 1
    return records, complaints


def _yaz(path: Path, form: str) -> tuple[int, int]:
    done = subprocess.run(
        ["yaz-marcdump", "-i", form, "-o", "turbomarc", str(path)], capture_output=True, check=False
    )
    said = done.stdout.count(b"<!--") + len(done.stderr.splitlines()) + (done.returncode != 0)
    return done.stdout.count(b"<r>") + done.stdout.count(b"<r "), said


def _catmandu(path: Path, form: str = "ISO") -> tuple[int, int]:
    done = subprocess.run(
        ["catmandu", "convert", "MARC", "--type", form, "to", "JSON", "--line_delimited", "1"],
        stdin=path.open("rb"), capture_output=True, check=False,
    )  # fmt: skip
    return done.stdout.count(b"\n"), len(done.stderr.splitlines()) + (done.returncode != 0)


def readers(data: Path, formats: list[str]) -> Iterator[dict[str, object]]:
    with tempfile.TemporaryDirectory(prefix="indlet-marc-") as folder:
        work = Path(folder)
        export = marc_folder(data, work / "export")
        count, harvested = exchanged(export, "marc21", work, ["marc21", "marc8", *formats])
        with harvested.read() as view:
            xml = [in_format(one, MARC) for one in view.changes() if not one.deleted]
        harvested.close()
        home = work / "import" / "from-marc21-export"
        yield _told("MARC, harvested and written", count, sorted(home.glob("marc21/**/*.mrc")), work)
        files = sorted(home.glob("marc8/**/*.mrc"))
        same = [home / "marc21" / path.relative_to(home / "marc8") for path in files]
        read = read_marc8_by_others(files, same, work)
        yield {"what": "MARC in MARC-8", "records": count, "files": len(files), **read}
        yield {"what": "MARCXML, as served", "records": count, "read": read_xml_by_others(xml, work)}
        for prefix in formats:
            name = prefix.replace(":", "-")
            # A node knows the tables that its settings name.
            also = [prefix] if prefix not in METADATA else []
            count, harvested = exchanged(home / name, prefix, work, ["marc21", *also])
            harvested.close()
            again = work / "import" / f"from-{name}-{name}" / "marc21"
            yield _told(f"MARC, made from {prefix}", count, sorted(again.rglob("*.mrc")), work)


def _told(what: str, count: int, files: list[Path], work: Path) -> dict[str, object]:
    return {"what": what, "records": count, "files": len(files), "read": read_by_others(files, work)}


# Beside the stylesheet

# subfieldSelect of MARC21slimUtils.xsl: the subfields of some codes, with a blank between them.
_UTILS = b"""<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
 xmlns:marc="http://www.loc.gov/MARC21/slim"><xsl:template name="subfieldSelect"><xsl:param name="codes"/>
 <xsl:for-each select="marc:subfield[contains($codes, @code)]"><xsl:if test="position() > 1">
 <xsl:text> </xsl:text></xsl:if><xsl:value-of select="."/></xsl:for-each></xsl:template></xsl:stylesheet>"""
Pairs = Counter[tuple[str, str]]
_PRESENT = (
    Field("245", "", "00", (("a", "Present"),)),
    Field("260", "", "  ", (("c", "1234"),)),
    Field("264", "", " 1", (("c", "1234"),)),
)


class Stylesheet:
    def __init__(self, path: Path) -> None:
        parser = etree.XMLParser(no_network=True, resolve_entities=False)
        tree = etree.parse(str(path), parser)
        for imported in list(tree.getroot().iterchildren("{*}import", "{*}include")):
            beside = path.parent / (imported.get("href") or "").rpartition("/")[2]
            if beside.exists():
                imported.set("href", str(beside.resolve()))
            else:
                tree.getroot().replace(imported, etree.fromstring(_UTILS)[0])
        self._transform = etree.XSLT(tree)

    def pairs(self, leader: str, fields: list[Field]) -> Pairs:
        made = self._transform(etree.fromstring(marc21.write_xml(leader, fields))).getroot()
        return Counter(
            (str(node.tag).rpartition("}")[2], value)
            for node in made.iter(etree.Element)
            if len(node) == 0 and (value := " ".join(str(node.text or "").split()))
        )


def real_records(data: Path) -> Iterator[list[Field]]:
    with tempfile.TemporaryDirectory(prefix="indlet-marc-") as folder:
        for path in sorted(marc_folder(data, Path(folder) / "marc").rglob("*")):
            if path.is_file():
                yield from (list(one) for one in MARC.load(path.read_bytes()) if not isinstance(one, Broken))


def beside(data: Path, stylesheet: Stylesheet) -> dict[str, dict[str, object]]:
    """By tag: how many fields, in how many both say the same, and kinds of difference, with examples."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[tuple[str, str], str] = {}
    records = 0
    for fields in real_records(data):
        leader = next((field for field in fields if field.tag == marc21.LEADER), Field(marc21.LEADER, ""))
        table = marc21.crosswalk(fields)
        if table.name != "marc21" or leader.value[6:7] == "z":
            continue  # UNIMARC and authorities: not what the stylesheet is for
        records += 1
        _compare(found, examples, "Leader", stylesheet.pairs(leader.value, []), _ours(table, [leader]))
        tags = {field.tag for field in fields}
        for field in fields:
            if field.tag == marc21.LEADER:
                continue
            # Some fields count only where a record has no title or date elsewhere.
            beside = [one for one in _PRESENT if one.tag in tags and one.tag != field.tag]
            theirs = stylesheet.pairs(leader.value, [*beside, field]) - stylesheet.pairs(leader.value, beside)
            ours = _ours(table, [leader, *beside, field]) - _ours(table, [leader, *beside])
            if theirs or ours:
                _compare(found, examples, field.tag, theirs, ours)
    print(f"{records:,} records")
    return {
        tag: {kind: [n, examples.get((tag, kind), "")] for kind, n in kinds.most_common()}
        for tag, kinds in sorted(found.items())
    }


def _ours(table: Crosswalk, fields: list[Field]) -> Pairs:
    said = table.read(fields).simple()
    return Counter((name, value) for name, values in said.items() for value in values)


def _compare(
    found: dict[str, Counter[str]], examples: dict[tuple[str, str], str], tag: str, theirs: Pairs, ours: Pairs
) -> None:
    found[tag]["fields"] += 1
    if theirs == ours:
        found[tag]["equal"] += 1
        return
    left, right = theirs - ours, ours - theirs
    names = [sorted({name for name, _ in side}) for side in (left, right)]
    if names[0] == names[1]:
        same = [{_bare(value) for _, value in side} for side in (left, right)]
        kind = f"{'/'.join(names[0])}: " + (
            "punctuation" if same[0] == same[1] else "number of times" if not names[1] else "words"
        )
    else:
        kind = f"{'/'.join(names[0]) or 'none'} -> {'/'.join(names[1]) or 'none'}"
    found[tag][kind] += 1
    examples.setdefault((tag, kind), f"{dict(left)} -> {dict(right)}"[:200])


def _bare(value: str) -> str:
    return "".join(char for char in value.casefold() if char.isalnum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["readers", "stylesheet"])
    parser.add_argument("file", type=Path, nargs="?")
    others = [prefix for prefix, one in METADATA.items() if one.served and one is not MARC]
    parser.add_argument("--formats", nargs="*", default=others, help="by way of which MARC is written, too")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    data, begun = Path(os.environ.get("INDLET_DATA", ".")) / "marc", time.process_time()
    out: object
    if given.what == "readers":
        rows = []
        for row in readers(data, given.formats):
            rows.append(row)
            print(json.dumps(row), flush=True)
        out = rows
    else:
        if given.file is None:
            parser.error("name the stylesheet")
        out = beside(data, Stylesheet(given.file))
        for tag, kinds in out.items():
            print(tag)
            for kind, about in kinds.items():
                assert isinstance(about, list)
                print(f"  {about[0]:6,}  {kind}   {about[1]}")
    print(f"{time.process_time() - begun:.1f} s of processor time; load {os.getloadavg()[0]:.1f}")
    if given.json:
        given.json.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
