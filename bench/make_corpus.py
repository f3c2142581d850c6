"""Builds the demonstration's collections: bench/corpus/*.txt become files of many formats in src/indlet/demo.

    python -m bench.make_corpus

A document is a line "@ path | language | date | creator | subjects | title" and its text. A path with "#"
names one document among several of a file; "html+pdf" gives two manifestations. The same input gives the same
bytes.
"""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate

pymarc: Any = import_module("pymarc")  # half of it is typed

SOURCES = Path(__file__).parent / "corpus"
TARGET = Path(__file__).parents[1] / "src" / "indlet" / "demo"
COLLECTIONS = {
    "harbour": ("harbour-en", "harbour-more"),
    "logbook": ("logbook",),
    "orchard": ("orchard-en", "orchard-more"),
}
MARC_LANGUAGES = {"en": "eng", "de": "ger", "fr": "fre", "es": "spa", "it": "ita", "nl": "dut"}


class Text(NamedTuple):
    path: str
    language: str
    date: str
    creator: str
    subjects: tuple[str, ...]
    title: str
    body: str

    @property
    def when(self) -> datetime:
        year, month, day = (*map(int, self.date.split("-")), 1, 1)[:3]
        return datetime(year, month, day, 9, tzinfo=UTC)


def read(path: Path) -> Iterator[Text]:
    for block in re.split(r"^@ ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        name, language, date, creator, subjects, title = (part.strip() for part in head.split(" | "))
        yield Text(name, language, date, creator, tuple(subjects.split("; ")), title, body.strip())


def txt(text: Text) -> bytes:
    return f"{text.title}\n\n{text.body}\n".encode()


def md(text: Text) -> bytes:
    head = f"title: {text.title!r}\nauthor: {text.creator}\ndate: {text.date}\nlang: {text.language}\n"
    return (
        f"---\n{head}keywords: [{', '.join(text.subjects)}]\n---\n\n# {text.title}\n\n{text.body}\n".encode()
    )


def html(text: Text) -> bytes:
    pairs = [("title", text.title), ("creator", text.creator), ("date", text.date)]
    pairs += [("subject", subject) for subject in text.subjects]
    meta = "\n".join(f'<meta name="DC.{name}" content="{escape(value)}">' for name, value in pairs)
    return (
        f'<!DOCTYPE html>\n<html lang="{text.language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(text.title)}</title>\n{meta}\n</head>\n<body>\n<h1>{escape(text.title)}</h1>\n"
        f"<p>{escape(text.body)}</p>\n</body>\n</html>\n"
    ).encode()


def pdf(text: Text) -> bytes:
    target = io.BytesIO()
    document = SimpleDocTemplate(
        target, pagesize=A5, title=text.title, author=text.creator, keywords="; ".join(text.subjects),
        lang=text.language, invariant=1, pageCompression=1, initialFontName="Times-Roman",
    )  # fmt: skip
    styles = getSampleStyleSheet()

    def dated(canvas: object, template: object) -> None:
        # reportlab's only other source for the date of creation is the clock
        canvas._doc._timeStamp.YMDhms = text.when.timetuple()[:6]  # type: ignore[attr-defined]

    document.build(
        [Paragraph(escape(text.title), styles["Title"]), Paragraph(escape(text.body), styles["BodyText"])],
        onFirstPage=dated,
    )
    return target.getvalue()


def rtf(text: Text) -> bytes:
    def coded(value: str) -> str:
        return "".join(c if ord(c) < 128 else f"\\u{ord(c)}?" for c in value)

    made = f"{{\\creatim\\yr{text.when.year}\\mo{text.when.month}\\dy{text.when.day}}}"
    info = (
        f"{{\\info{{\\title {coded(text.title)}}}{{\\author {coded(text.creator)}}}"
        f"{{\\keywords {coded(text.subjects[0])}}}{made}}}"
    )
    return (
        f"{{\\rtf1\\ansi\\deff0{{\\fonttbl{{\\f0 Times New Roman;}}}}\n{info}\n"
        f"{{\\b {coded(text.title)}}}\\par\n{coded(text.body)}\\par\n}}\n"
    ).encode("ascii")


def eml(text: Text) -> bytes:
    message = EmailMessage()
    address = re.sub(r"[^a-z]+", ".", text.creator.lower())
    message["From"] = f"{text.creator} <{address}@station.example>"
    message["To"] = "All departments <all@station.example>"
    message["Subject"] = text.title
    message["Date"] = format_datetime(text.when)
    message["Message-ID"] = f"<{Path(text.path).stem}@station.example>"
    for subject in text.subjects:
        message["Keywords"] = subject
    message["Content-Language"] = text.language
    message.set_content(text.body, cte="quoted-printable")
    return message.as_bytes()


def xml(text: Text) -> bytes:
    pairs = [("title", text.title), ("creator", text.creator), ("date", text.date)]
    pairs += [("subject", subject) for subject in text.subjects] + [("language", text.language)]
    elements = "\n".join(f"  <dc:{name}>{escape(value)}</dc:{name}>" for name, value in pairs)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<note xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
        f"{elements}\n  <text>{escape(text.body)}</text>\n</note>\n"
    ).encode()


def archive(parts: list[tuple[str, str]]) -> bytes:
    """A zip whose bytes depend on its parts alone; the first, if it is a media type, stays uncompressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, content in parts:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            info.create_system = 3
            file.writestr(info, content)
    return target.getvalue()


_DECLARED = '<?xml version="1.0" encoding="UTF-8"?>\n'


def docx(text: Text) -> bytes:
    office = "http://schemas.openxmlformats.org"
    types = (
        f'<Types xmlns="{office}/package/2006/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
        '<Override PartName="/docProps/core.xml" ContentType='
        '"application/vnd.openxmlformats-package.core-properties+xml"/></Types>'
    )
    relations = (
        f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r1" Type='
        f'"{office}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>'
        f'<Relationship Id="r2" Type="{office}/package/2006/relationships/metadata/core-properties" '
        'Target="docProps/core.xml"/></Relationships>'
    )
    core = (
        f'<cp:coreProperties xmlns:cp="{office}/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(text.title)}</dc:title><dc:creator>{escape(text.creator)}</dc:creator>"
        f"<cp:keywords>{escape('; '.join(text.subjects))}</cp:keywords>"
        f"<dc:language>{text.language}</dc:language>"
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{text.when:%Y-%m-%dT%H:%M:%SZ}</dcterms:created>'
        "</cp:coreProperties>"
    )
    word = (
        f'<w:document xmlns:w="{office}/wordprocessingml/2006/main"><w:body>'
        f'<w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>{escape(text.title)}</w:t></w:r></w:p>'
        f"<w:p><w:r><w:t>{escape(text.body)}</w:t></w:r></w:p></w:body></w:document>"
    )
    parts = [("[Content_Types].xml", types), ("_rels/.rels", relations)]
    parts += [("docProps/core.xml", core), ("word/document.xml", word)]
    return archive([(name, _DECLARED + content) for name, content in parts])


def odt(text: Text) -> bytes:
    base = "urn:oasis:names:tc:opendocument:xmlns"
    kind = "application/vnd.oasis.opendocument.text"
    keywords = "".join(f"<meta:keyword>{escape(subject)}</meta:keyword>" for subject in text.subjects)
    meta = (
        f'<office:document-meta xmlns:office="{base}:office:1.0" xmlns:meta="{base}:meta:1.0" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.3"><office:meta>'
        f"<dc:title>{escape(text.title)}</dc:title><dc:creator>{escape(text.creator)}</dc:creator>"
        f"<dc:date>{text.when:%Y-%m-%dT%H:%M:%S}</dc:date><dc:language>{text.language}</dc:language>{keywords}"
        "</office:meta></office:document-meta>"
    )
    content = (
        f'<office:document-content xmlns:office="{base}:office:1.0" xmlns:text="{base}:text:1.0" '
        f'office:version="1.3"><office:body><office:text><text:h text:outline-level="1">{escape(text.title)}'
        f"</text:h><text:p>{escape(text.body)}</text:p></office:text></office:body></office:document-content>"
    )
    manifest = (
        f'<manifest:manifest xmlns:manifest="{base}:manifest:1.0" manifest:version="1.3">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        '<manifest:file-entry manifest:full-path="meta.xml" manifest:media-type="text/xml"/>'
        "</manifest:manifest>"
    )
    parts = [("content.xml", content), ("meta.xml", meta), ("META-INF/manifest.xml", manifest)]
    return archive([("mimetype", kind), *((name, _DECLARED + part) for name, part in parts)])


def epub(text: Text) -> bytes:
    name = Path(text.path).stem
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    subjects = "".join(f"<dc:subject>{escape(subject)}</dc:subject>" for subject in text.subjects)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">{name}</dc:identifier>'
        f"<dc:title>{escape(text.title)}</dc:title><dc:creator>{escape(text.creator)}</dc:creator>"
        f"<dc:date>{text.date}</dc:date><dc:language>{text.language}</dc:language>{subjects}"
        f'<meta property="dcterms:modified">{text.when:%Y-%m-%dT%H:%M:%SZ}</meta></metadata>'
        '<manifest><item id="text" href="text.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        '</manifest><spine><itemref idref="text"/></spine></package>'
    )
    page = (
        f'<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" '
        f'lang="{text.language}"><head><title>{escape(text.title)}</title></head><body>'
        f"<h1>{escape(text.title)}</h1><p>{escape(text.body)}</p>"
        '<nav epub:type="toc"><ol><li><a href="text.xhtml">•</a></li></ol></nav></body></html>'
    )
    parts = [("META-INF/container.xml", container), ("book.opf", package), ("text.xhtml", page)]
    return archive([("mimetype", "application/epub+zip"), *((n, _DECLARED + part) for n, part in parts)])


def sgml(texts: list[Text]) -> bytes:
    return "\n".join(
        f"<DOC>\n<DOCNO> {text.path.partition('#')[2]} </DOCNO>\n<TITLE>{escape(text.title)}</TITLE>\n"
        f"<DATE>{text.date}</DATE>\n<AUTHOR>{escape(text.creator)}</AUTHOR>\n"
        + "".join(f"<SUBJECT>{escape(subject)}</SUBJECT>\n" for subject in text.subjects[:1])
        + f"<TEXT>\n{escape(text.body, quote=False)}\n</TEXT>\n</DOC>\n"
        for text in texts
    ).encode()


def _marc(text: Text) -> Any:
    def field(tag: str, one: str, two: str, **codes: str) -> Any:
        subfields = [pymarc.Subfield(code, value) for code, value in codes.items()]
        return pymarc.Field(tag, pymarc.Indicators(one, two), subfields)

    record = pymarc.Record(force_utf8=True)
    record.leader = pymarc.Leader("00000nam a2200000 a 4500")
    record.add_field(pymarc.Field("001", data=text.path.partition("#")[2]))
    language = MARC_LANGUAGES[text.language]
    record.add_field(pymarc.Field("008", data=f"800101s{text.date[:4]}    xx            000 0 {language} d"))
    record.add_field(field("110", "2", " ", a=text.creator))
    record.add_field(field("245", "1", "0", a=text.title))
    record.add_field(field("264", " ", "1", b=text.creator, c=text.date[:4]))
    record.add_field(field("520", " ", " ", a=text.body))
    for subject in text.subjects:
        record.add_field(field("650", " ", "4", a=subject))
    return record


def mrc(texts: list[Text]) -> bytes:
    return b"".join(bytes(_marc(text).as_marc()) for text in texts)


def marcxml(texts: list[Text]) -> bytes:
    records = b"\n".join(bytes(pymarc.record_to_xml(_marc(text))) for text in texts)
    return (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<collection xmlns="http://www.loc.gov/MARC21/slim">\n'
        + records
        + b"\n</collection>\n"
    )


SINGLE: dict[str, Callable[[Text], bytes]] = {
    "txt": txt, "md": md, "html": html, "pdf": pdf, "rtf": rtf, "eml": eml, "xml": xml, "docx": docx,
    "odt": odt, "epub": epub,
}  # fmt: skip
SEVERAL: dict[str, Callable[[list[Text]], bytes]] = {"sgml": sgml, "mrc": mrc, "xml": marcxml}


def build(texts: list[Text], folder: Path) -> dict[str, str]:
    """Writes a collection; the date of each of its files, by path."""
    gathered: dict[str, list[Text]] = {}
    made: dict[str, tuple[bytes, str]] = {}
    for text in texts:
        path, _, key = text.path.partition("#")
        if key:
            gathered.setdefault(path, []).append(text)
            continue
        stem, _, extensions = path.rpartition(".")
        if extensions == "txt":  # plain text says nothing of itself: its name has to, as far as a name can
            if text.title.isascii():
                stem = str(Path(path).parent / re.sub(r"[^\w',.-]+", "_", text.title).strip("_"))
            else:
                extensions = "md"
        for extension in extensions.split("+"):
            made[f"{stem}.{extension}"] = SINGLE[extension](text), f"{text.when:%Y-%m-%d}"
    for path, several in gathered.items():
        made[path] = (
            SEVERAL[path.rpartition(".")[2]](several),
            f"{max(text.when for text in several):%Y-%m-%d}",
        )
    for path, (content, _) in made.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return {path: date for path, (_, date) in sorted(made.items())}


def main() -> None:
    lines = []
    for collection, sources in COLLECTIONS.items():
        texts = [text for source in sources for text in read(SOURCES / f"{source}.txt")]
        shutil.rmtree(TARGET / collection, ignore_errors=True)
        dates = build(texts, TARGET / collection)
        lines += [f"{collection}/{path}\t{date}" for path, date in dates.items()]
        size = sum(path.stat().st_size for path in (TARGET / collection).rglob("*.*"))
        print(f"{collection}: {len(texts)} documents, {len(dates)} files, {size:,} bytes")
    (TARGET / "dates.tsv").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
