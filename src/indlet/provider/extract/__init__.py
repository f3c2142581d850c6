"""What documents does a file hold, what are their words, and how do they describe themselves?

An extractor is a callable from a `File` to its parts, in a dict by media type. The type is sniffed from the
content. Whatever an extractor cannot read ends as an ExtractionError (the whole file) or a Failure (a part).
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, cast
from urllib.parse import unquote

from indlet.errors import ExtractionError, LimitExceeded
from indlet.model import WARNING, Document, Failure
from indlet.provider.extract.file import Extractor, File, Part
from indlet.provider.extract.lzw import decompressed
from indlet.provider.extract.sniff import DOC, DOCX, ODF, PPT, PPTX, XLS, XLSX, sniff
from indlet.settings import Limits

__all__ = ["EXTRACTORS", "extract", "parts", "read", "told_apart"]

# Media type -> module and function. Modules are imported when first needed: a worker that only meets text
# starts in a tenth of the time.
EXTRACTORS: Final[dict[str, tuple[str, str]]] = {
    "application/pdf": ("pdf", "extract"),
    "text/html": ("html", "extract"),
    "application/xml": ("xmltext", "extract"),
    "text/sgml": ("sgml", "extract"),
    "text/plain": ("plain", "extract"),
    "text/markdown": ("plain", "extract"),
    DOCX: ("office", "extract"),
    PPTX: ("office", "extract"),
    XLSX: ("office", "extract"),
    ODF + "text": ("office", "extract_odf"),
    ODF + "spreadsheet": ("office", "extract_odf"),
    ODF + "presentation": ("office", "extract_odf"),
    DOC: ("legacy", "extract"),
    XLS: ("legacy", "extract"),
    PPT: ("legacy", "extract"),
    "application/rtf": ("rtf", "extract"),
    "application/epub+zip": ("epub", "extract"),
    "application/marc": ("marc", "extract"),
    "application/marcxml+xml": ("marc", "extract_xml"),
    "message/rfc822": ("mail", "extract"),
    "application/mbox": ("mail", "extract_mbox"),
    "application/rss+xml": ("feed", "extract"),
    "application/rdf+xml": ("feed", "extract"),
    "application/atom+xml": ("feed", "extract"),
    "application/feed+json": ("feed", "extract"),
}
# Whatever is a picture, a sound or a film, by the first half of its media type.
_MEDIA: Final = {
    "image": ("media", "extract_image"),
    "audio": ("media", "extract_sound"),
    "video": ("media", "extract_video"),
}

_COMPRESSED: Final[dict[str, Callable[[BinaryIO], BinaryIO]]] = {
    "application/gzip": lambda data: cast(BinaryIO, gzip.GzipFile(fileobj=data)),
    "application/x-bzip2": lambda data: cast(BinaryIO, bz2.BZ2File(data)),
    "application/x-compress": decompressed,
    "application/x-xz": lambda data: cast(BinaryIO, lzma.LZMAFile(data)),  # noqa: SIM115 - its user closes it
}
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
KEY_LENGTH: Final = 200


def extract(path: Path, name: str, limits: Limits) -> Iterator[Document]:
    """The documents of a file. Unreadable parts are left out; if there is nothing else, that is an error."""
    found, failure = False, None
    for part in parts(File(read(path, limits), name, limits)):
        if isinstance(part, Document):
            found = True
            yield part
        else:
            failure = failure or part
    if failure and not found:
        raise ExtractionError(failure.reason)


def read(path: Path, limits: Limits) -> bytes:
    """The file's bytes. What is no regular file, or too large, is an ExtractionError."""
    try:
        # Without O_NONBLOCK the mere opening of a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with io.FileIO(descriptor) as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ExtractionError("not a regular file")
            if status.st_size > limits.file_bytes:
                raise LimitExceeded(
                    f"{status.st_size} bytes, more than the limit of {limits.file_bytes} (file_bytes)"
                )
            data = stream.read(limits.file_bytes + 1) if not status.st_size else stream.readall()
    except OSError as error:
        raise ExtractionError(f"cannot be read: {error.strerror or error}") from error
    if len(data) > limits.file_bytes:
        raise LimitExceeded(f"larger than the limit of {limits.file_bytes} bytes (file_bytes)")
    return data


def parts(file: File) -> Iterator[Part]:
    """The documents and failures in a file's bytes, at least one of them, cleaned and with distinct keys.

    A file that holds a single document gives it no key, whatever its format: it may then be one of several
    manifestations of a resource.
    """
    if file.depth > file.limits.depth:
        raise LimitExceeded(f"nested deeper than {file.limits.depth} (depth)")
    kind = sniff(file)
    if kind in _COMPRESSED:
        yield from parts(_inflated(file, kind))
        return
    # Text of a special kind is read as text; what it is stays in its media type.
    module, function = EXTRACTORS.get(kind) or _MEDIA.get(kind.partition("/")[0]) or EXTRACTORS["text/plain"]
    run: Extractor = getattr(importlib.import_module(f".{module}", __name__), function)
    yield from told_apart(run(File(file.data, file.name, file.limits, kind, file.depth)), file, kind)


def told_apart(found: Iterator[Part], file: File, kind: str = "records") -> Iterator[Part]:
    """The parts of a file, cleaned and with distinct keys; at least one. Warnings come first."""
    first = next(found, None)
    while isinstance(first, Failure) and first.stage == WARNING:
        yield first
        first = next(found, None)
    if first is None:
        raise ExtractionError(f"no document in it ({kind})")
    second = next(found, None)
    if second is None:
        yield _finished(first, "", file.name) if isinstance(first, Document) else first
        return
    seen: dict[str, int] = {}
    for number, part in enumerate(chain((first, second), found), 1):
        if number > file.limits.documents:
            yield Failure(
                file.name, "extract", f"more than {file.limits.documents} documents: the rest is left out"
            )
            return
        if isinstance(part, Failure):
            yield part
            continue
        key = " ".join(_UNFIT.sub(" ", part.key).split())[:KEY_LENGTH] or str(number)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            key = f"{key}~{seen[key]}"
        yield _finished(part, key, file.name)


def _finished(document: Document, key: str, name: str) -> Document:
    text = document.text
    if _UNFIT.search(text):
        text = _UNFIT.sub(" ", text)
    if "\xad" in text:
        text = text.replace("\xad", "")
    metadata = document.metadata
    if not metadata.get("title"):
        title = title_from_name(name)
        metadata = {"title": [f"{title} {key}".strip()], **metadata}
    return replace(document, text=text, metadata=metadata, key=key)


def title_from_name(name: str) -> str:
    """The file's name made readable: "annual_report-2019.pdf" gives "annual report 2019"."""
    stem = unquote(name).rstrip("/").rpartition("/")[2]
    stem = re.sub(r"\.(?:gz|bz2|xz|Z)$", "", stem)
    stem = stem.rpartition(".")[0] or stem
    readable = re.sub(r"(?<!\d)-|-(?!\d)", " ", stem.replace("_", " ").replace("+", " "))
    return " ".join(_UNFIT.sub(" ", readable).split()) or "untitled"


def _inflated(file: File, kind: str) -> File:
    try:
        with _COMPRESSED[kind](io.BytesIO(file.data)) as stream:
            data = stream.read(file.limits.inflated_bytes + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise ExtractionError(f"damaged {kind.rpartition('/')[2]} data: {error or 'truncated'}") from error
    if len(data) > file.limits.inflated_bytes:
        raise LimitExceeded(f"it inflates to more than {file.limits.inflated_bytes} bytes (inflated_bytes)")
    name = re.sub(r"\.(?:gz|bz2|xz|tgz|z)$", "", file.name, flags=re.IGNORECASE)
    return File(data, name, file.limits, depth=file.depth + 1)
