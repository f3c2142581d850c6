"""PDF: text by PDFium, description from the Info dictionary and from XMP.

A PDF of pictures has no words but is a document: it gives a record with its description, an empty vector, and
`no_text` to tell it apart.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final

import pypdfium2

from indlet.errors import ExtractionError
from indlet.formats.dublin import build_metadata, pdf_text
from indlet.model import Document
from indlet.provider.extract.file import File, Text, parse_xml
from indlet.provider.extract.ocr import scanned_words
from indlet.provider.extract.office import meaningful
from indlet.provider.extract.xmltext import dublin_core
from indlet.text.language import language_code

# pypdf reads the whole cross-reference table, in Python: not worth it past this size.
_XMP_FILE: Final = 16 * 1024 * 1024
_PACKET: Final = 1024 * 1024
_LANG = re.compile(rb"/Lang ?\(([A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3})\)")
_INFO: Final = {"Title": "title", "Author": "creator", "Subject": "description"}
# What ReportLab writes where it was told nothing.
_NOTHING: Final = ("(anonymous)", "(unspecified)", "anonymous", "unspecified")
_WORD_FILE = re.compile(r"^(?:Microsoft (?:Word|PowerPoint|Excel)|\w+ Document) - ")
_FILE_NAME = re.compile(
    r"[^\s/\\]{1,100}\.(?:docx?|pptx?|xlsx?|dvi|tex|ps|eps|indd|qxd|rtf|pdf|html?|fm|p65|txt)", re.IGNORECASE
)
# PDFium marks a hyphen at the end of a line by U+FFFE (U+0002 in older builds); others leave the hyphen.
_BROKEN_WORD = re.compile(r"[\ufffe\x02](?:\r?\n)?|(?<=[a-zà-ÿ])-\r?\n(?=[a-zà-ÿ])")


def extract(file: File) -> Iterator[Document]:
    try:
        pdf = pypdfium2.PdfDocument(file.data)
    except pypdfium2.PdfiumError as error:
        raise ExtractionError(_reason(str(error), file.data)) from error
    try:
        info = pdf.get_metadata_dict()
        text = Text(file.limits)
        broken = 0
        for number in range(len(pdf)):
            try:
                _page(pdf, number, text)
            except pypdfium2.PdfiumError:
                broken += 1
        if broken and broken == len(pdf):
            raise ExtractionError(f"broken PDF: none of its {broken} pages can be read")
        words, no_text = str(text), ""
        if not words.strip():
            words = scanned_words(pdf, file)
            no_text = "scanned pages, read by OCR" if words.strip() else "scanned pages"
    finally:
        pdf.close()
    pairs, language = _xmp(file.data)
    pairs = [(e, pdf_text(v)) for e, v in pairs]
    pairs = [(e, v) for e, v in pairs if e != "title" or _is_title(v)]
    said = {element for element, value in pairs if value.strip()}
    for key, element in _INFO.items():
        value = _WORD_FILE.sub("", pdf_text(info.get(key, "").strip()))
        if element in said or value.lower() in _NOTHING or (element == "title" and not _is_title(value)):
            continue
        pairs.append((element, value))
    if "subject" not in said:
        keywords = info.get("Keywords", "")
        pairs.extend(
            ("subject", part) for part in re.split(r"[;,]" if ";" not in keywords else ";", keywords)
        )
    if "date" not in said:
        pairs.append(("date", info.get("CreationDate", "") or info.get("ModDate", "")))
    if language and "language" not in said:
        pairs.append(("language", language))
    # Neither XMP nor the catalogue tells the language reliably: programs write their own default.
    yield Document(words, build_metadata(pairs), file.media_type, no_text=no_text)


def _is_title(value: str) -> bool:
    return meaningful(value) and not _FILE_NAME.fullmatch(value.strip())


def _page(pdf: Any, number: int, text: Text) -> None:
    page = pdf[number]
    try:
        words = page.get_textpage()
        try:
            text.add(_BROKEN_WORD.sub("", words.get_text_range()))
            text.add("\n")
        finally:
            words.close()
    finally:
        page.close()


def _reason(message: str, data: bytes) -> str:
    if "password" in message.lower():
        return "encrypted PDF: it needs a password"
    if "security" in message.lower():
        return "encrypted PDF: unknown security handler"
    if b"%%EOF" not in data[-4096:]:
        return "broken PDF: truncated"
    return f"broken PDF: {message}"


def _xmp(data: bytes) -> tuple[list[tuple[str, str]], str]:
    """What the XMP packet says in Dublin Core, and the catalogue's language. Nothing where broken."""
    packet, language = _plain_packet(data)
    if not packet and len(data) <= _XMP_FILE and (b"/Metadata" in data or b"/ObjStm" in data):
        packet, language = _catalogue(data)
    if not packet or len(packet) > _PACKET:
        return [], language
    try:
        return xmp_packet(parse_xml(packet)), language
    except ExtractionError:
        return [], language


def _plain_packet(data: bytes) -> tuple[bytes, str]:
    """The packet where it lies open and is the only one: most files have it so, and need no second parser."""
    tag = _LANG.search(data)
    language = language_code(tag[1].decode("ascii")) if tag else ""
    start = data.find(b"<x:xmpmeta")
    end = data.find(b"</x:xmpmeta>", start, start + _PACKET) if start >= 0 else -1
    if end < 0 or data.find(b"<x:xmpmeta", end) >= 0:
        return b"", language
    return data[start : end + len(b"</x:xmpmeta>")], language


def _catalogue(data: bytes) -> tuple[bytes, str]:
    """The packet and the language that the catalogue names, by pypdf."""
    import logging

    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        root: Any = PdfReader(io.BytesIO(data)).trailer["/Root"]
        language = language_code(str(root.get("/Lang", "")))
        stream = root.get("/Metadata")
        return (stream.get_object().get_data() if stream is not None else b"").strip(b"\x00 \r\n\t"), language
    except MemoryError:
        raise
    except Exception:  # pypdf meets broken files with exceptions of every kind, and the text is already read
        return b"", ""


def xmp_packet(tree: Any) -> list[tuple[str, str]]:
    """What an XMP packet says in Dublin Core."""
    pairs: list[tuple[str, str]] = []
    namespace = "{http://purl.org/dc/elements/1.1/}"
    for description in tree.iter("{*}Description"):
        for child in description:
            if not isinstance(child.tag, str) or not child.tag.startswith(namespace):
                continue
            element = child.tag[len(namespace) :]
            items = list(child.iter("{*}li"))
            values = ["".join(item.itertext()) for item in items] or ["".join(child.itertext())]
            if element in ("title", "description", "rights"):
                values = values[:1]  # the default language comes first
            if element not in ("format", "type"):
                pairs.extend((element, value) for value in values)
        for name, value in description.attrib.items():
            if name.startswith(namespace) and name != namespace + "format":
                pairs.append((name[len(namespace) :], value))
    return pairs or [pair for pair in dublin_core(tree) if pair[0] != "format"]
