"""Electronic books: the package's metadata, and the spine's pages in their order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from indlet.errors import ExtractionError, LimitExceeded
from indlet.formats.dublin import build_metadata
from indlet.model import Document
from indlet.provider.extract.decode import declared_encoding, decode
from indlet.provider.extract.file import File, Text, ZipArchive
from indlet.provider.extract.xmltext import dublin_core
from indlet.text.language import language_code
from indlet.text.markup import html_text


def extract(file: File) -> Iterator[Document]:
    archive = ZipArchive(file)
    path = _package(archive)
    package = archive.xml(path)
    pairs = [(element, value) for element, value in dublin_core(package) if value.strip()]
    folder = posixpath.dirname(path)
    items = {item.get("id"): item for item in package.iter("{*}item")}
    spine = [items.get(reference.get("idref")) for reference in package.iter("{*}itemref")]
    text = Text(file.limits)
    read = 0
    problem = ""
    for item in dict.fromkeys(item for item in spine if item is not None):
        name = posixpath.normpath(posixpath.join(folder, unquote((item.get("href") or "").partition("#")[0])))
        if "svg" in (item.get("media-type") or ""):
            continue
        try:
            data = archive.read(name)
        except LimitExceeded:
            raise
        except ExtractionError as error:
            problem = str(error)
            continue
        text.add(html_text(decode(data, declared_encoding(data))))
        text.add("\n")
        read += 1
    if not read and problem:
        raise ExtractionError(f"EPUB without a readable page: {problem}")
    declared = next((value for element, value in pairs if element == "language"), "")
    yield Document(str(text), build_metadata(pairs), file.media_type, language=language_code(declared))


def _package(archive: ZipArchive) -> str:
    container = archive.optional_xml("META-INF/container.xml")
    if container is not None:
        for rootfile in container.iter("{*}rootfile"):
            path = (rootfile.get("full-path") or "").lstrip("/")
            if path in archive:
                return path
    found = archive.matching(r".*\.opf")
    if not found:
        raise ExtractionError("EPUB without a package document (.opf)")
    return found[0]
