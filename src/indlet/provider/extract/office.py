"""Office documents as they lie in their zip archives: OOXML (Word, PowerPoint, Excel) and OpenDocument."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from indlet.errors import ExtractionError
from indlet.formats.dublin import build_metadata
from indlet.model import DUBLIN_CORE, Document
from indlet.oai.read import local_name
from indlet.provider.extract.file import File, Text, ZipArchive
from indlet.provider.extract.sniff import DOCX, PPTX, XLSX
from indlet.provider.extract.xmltext import content, flow

_FALLBACK: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_OFFICE_TEXT: Final = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"

# Titles that programs put there by themselves.
_EMPTY_TITLES: Final = frozenset(
    ("", "untitled", "untitled document", "powerpoint presentation", "slide 1", "document1", "no slide title",
     "presentation title", "title", "microsoft word", "folie 1", "word document", "default")
)  # fmt: skip


def meaningful(title: str) -> bool:
    """Whether a title was given by a person rather than by a program."""
    folded = " ".join(title.lower().split())
    return folded not in _EMPTY_TITLES and any(character.isalnum() for character in folded)


def extract(file: File) -> Iterator[Document]:
    archive = ZipArchive(file)
    text = Text(file.limits)
    reader = {DOCX: _word, PPTX: _slides, XLSX: _sheets}[file.media_type]
    pairs = _core_properties(archive)
    heading = reader(archive, text)
    if heading and not any(element == "title" for element, _ in pairs):
        pairs.append(("title", heading))
    yield Document(str(text), build_metadata(pairs), file.media_type)


def _core_properties(archive: ZipArchive) -> list[tuple[str, str]]:
    names = archive.matching(r"docProps/core\d*\.xml|package/services/metadata/core-properties/.*\.psmdcp")
    root = archive.optional_xml(names[0]) if names else None
    if root is None:
        return []
    pairs: list[tuple[str, str]] = []
    created = modified = ""
    for child in root:
        if not isinstance(child.tag, str) or not (child.text or "").strip():
            continue
        name, value = local_name(child).lower(), child.text or ""
        if name == "created":
            created = value
        elif name == "modified":
            modified = value
        elif name in ("keywords", "category"):
            pairs.extend(("subject", part) for part in value.replace(";", ",").split(","))
        elif name == "title":
            if meaningful(value):
                pairs.append(("title", value))
        elif name in DUBLIN_CORE:
            pairs.append((name, value))
    return [*pairs, ("date", modified or created)]


def _main_part(archive: ZipArchive, default: str) -> str:
    """The main part, as the package's relationships name it: not every program puts it in the usual place."""
    root = archive.optional_xml("_rels/.rels")
    if root is not None:
        for relation in root:
            if isinstance(relation.tag, str) and (relation.get("Type") or "").endswith("/officeDocument"):
                target = (relation.get("Target") or "").lstrip("/")
                if target in archive:
                    return target
    return default


def _word(archive: ZipArchive, text: Text) -> str:
    main = _main_part(archive, "word/document.xml")
    root = archive.xml(main)
    heading = ""
    for paragraph in root.iter("{*}p"):
        style = paragraph.find("{*}pPr/{*}pStyle")
        if style is not None and any(v in ("Title", "Titel", "Titre") for v in style.attrib.values()):
            heading = "".join(node.text or "" for node in paragraph.iter("{*}t"))
            break
    _runs(root, text)
    folder = posixpath.dirname(main) or "word"
    for name in archive.matching(
        rf"{re.escape(folder)}/(?:footnotes|endnotes|comments|header\d*|footer\d*)\.xml"
    ):
        part = archive.optional_xml(name)
        if part is not None:
            _runs(part, text)
    for name in archive.matching(rf"{re.escape(folder)}/(?:charts/chart|diagrams/data)\d*\.xml"):
        part = archive.optional_xml(name)
        if part is not None:
            _runs(part, text)
    return heading


def _runs(root: etree._Element, text: Text) -> None:
    """Adds the text runs of WordprocessingML or DrawingML; deleted text and fallback copies are not in it."""
    etree.strip_elements(root, _FALLBACK, with_tail=False)
    for node in root.iter("{*}t", "{*}p", "{*}tab", "{*}br", "{*}cr", "{*}noBreakHyphen", "{*}v", "{*}tc"):
        name = node.tag.rpartition("}")[2]
        if name == "t":
            text.add(node.text)
        elif name == "v":  # a value of a chart
            text.add(node.text)
            text.add(" ")
        elif name == "noBreakHyphen":
            text.add("-")
        elif name == "tab":
            parent = node.getparent()
            if parent is not None and not str(parent.tag).endswith("}tabs"):  # a tab stop is no tab
                text.add("\t")
        else:
            text.add("\n")


def _slides(archive: ZipArchive, text: Text) -> str:
    slides = archive.matching(r"ppt/slides/slide\d*\.xml")
    if not slides and not archive.matching(r"ppt/presentation\d*\.xml"):
        raise ExtractionError("damaged PowerPoint file: it has no slides")
    heading = ""
    for name in slides:
        root = archive.optional_xml(name)
        if root is None:
            continue
        if not heading:
            heading = _slide_title(root)
        _runs(root, text)
        text.add("\n")
    others = (
        r"ppt/(?:notesSlides/notesSlide|comments/(?:modern)?comment|charts/chart|diagrams/data)[^/]*\.xml"
    )
    for name in archive.matching(others):
        root = archive.optional_xml(name)
        if root is not None:
            _runs(root, text)
            for comment in root.iter("{*}text"):
                text.add(comment.text)
                text.add("\n")
    return heading


def _slide_title(slide: etree._Element) -> str:
    for shape in slide.iter("{*}sp"):
        place = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
        if place is not None and place.get("type") in ("title", "ctrTitle"):
            title = " ".join(node.text or "" for node in shape.iter("{*}t"))
            if meaningful(title):
                return title
    return ""


def _sheets(archive: ZipArchive, text: Text) -> str:
    shared: list[str] = []
    strings = archive.optional_xml("xl/sharedStrings.xml")
    if strings is not None:
        for item in strings.iter("{*}si"):
            for phonetic in item.findall("{*}rPh"):
                item.remove(phonetic)
            shared.append("".join(node.text or "" for node in item.iter("{*}t")))
        strings.clear()
    workbook = archive.optional_xml(_main_part(archive, "xl/workbook.xml"))
    if workbook is not None:
        for sheet in workbook.iter("{*}sheet"):
            text.add((sheet.get("name") or "") + "\n")
    sheets = archive.matching(r"xl/(?:worksheets|chartsheets)/[^/]*\.xml")
    if not sheets and workbook is None:
        raise ExtractionError("damaged Excel file: it has no sheets")
    for name in sheets:
        root = archive.optional_xml(name)
        if root is None:
            continue
        for row in root.iter("{*}row"):
            for cell in row.iter("{*}c"):
                text.add(_cell(cell, shared))
                text.add("\t")
            text.add("\n")
        for note in root.iter("{*}oddHeader", "{*}oddFooter"):
            text.add(note.text)
            text.add("\n")
    for name in archive.matching(
        r"xl/(?:comments|threadedComments/threadedComment|drawings/drawing|charts/chart)\d*\.xml"
    ):
        part = archive.optional_xml(name)
        if part is not None:
            _runs(part, text)
    return ""


def _cell(cell: etree._Element, shared: list[str]) -> str:
    kind = cell.get("t")
    if kind == "inlineStr":
        return "".join(node.text or "" for node in cell.iter("{*}t"))
    value = cell.findtext("{*}v") or ""
    if kind == "s":
        return shared[int(value)] if value.isdecimal() and int(value) < len(shared) else ""
    return "" if kind in ("b", "e") else value


_ODF_SKIP: Final = frozenset(
    (f"{{{_OFFICE_TEXT}}}tracked-changes", "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}binary-data",
     f"{{{_OFFICE_TEXT}}}sequence-decls", "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}scripts")
)  # fmt: skip
_ODF_META: Final = {
    "title": "title", "subject": "subject", "description": "description", "keyword": "subject",
    "creator": "creator", "initial-creator": "creator", "date": "date", "language": "language",
}  # fmt: skip


def extract_odf(file: File) -> Iterator[Document]:
    archive = ZipArchive(file)
    manifest = archive.optional_xml("META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter("{*}encryption-data"), None) is not None:
        raise ExtractionError("encrypted OpenDocument file: it needs a password")
    text = Text(file.limits)
    body = archive.xml("content.xml")
    for space in body.iter(f"{{{_OFFICE_TEXT}}}s", f"{{{_OFFICE_TEXT}}}tab", f"{{{_OFFICE_TEXT}}}line-break"):
        space.tail = " " + (space.tail or "")
    flow(body, text, _ODF_SKIP)
    styles = archive.optional_xml("styles.xml")
    if styles is not None:
        for master in styles.iter("{*}master-page"):
            flow(master, text)
    yield Document(str(text), build_metadata(_odf_metadata(archive, body)), file.media_type)


def _odf_metadata(archive: ZipArchive, body: etree._Element) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    meta = archive.optional_xml("meta.xml")
    holder = meta.find("{*}meta") if meta is not None else None
    for child in holder if holder is not None else ():
        if isinstance(child.tag, str) and (value := (child.text or "").strip()):
            element = _ODF_META.get(local_name(child))
            if element and (element != "title" or meaningful(value)):
                pairs.append((element, value))
    if any(local_name(child) == "initial-creator" for child in (holder if holder is not None else ())):
        # dc:creator is here whoever saved last; the author is the initial creator.
        first = (
            next(child.text or "" for child in holder.iter("{*}initial-creator"))
            if holder is not None
            else ""
        )
        pairs = [pair for pair in pairs if pair[0] != "creator"] + [("creator", first)]
    if not any(element == "title" for element, _ in pairs):
        for heading in body.iter(f"{{{_OFFICE_TEXT}}}p"):
            if heading.get(f"{{{_OFFICE_TEXT}}}style-name") == "Title":
                pairs.append(("title", content(heading)))
                break
    return pairs
