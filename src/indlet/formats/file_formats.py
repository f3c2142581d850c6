"""Short names of file formats: what people call a media type."""

from __future__ import annotations

import re
from typing import Final

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OPEN: Final = "application/vnd.oasis.opendocument."
NAMES: Final = {
    "application/pdf": "PDF",
    "application/x-pdf": "PDF",
    "text/html": "HTML",
    "application/xhtml+xml": "HTML",
    "text/plain": "Text",
    "text/markdown": "Markdown",
    "text/csv": "CSV",
    "text/x-tex": "TeX",
    "application/x-tex": "TeX",
    "application/x-latex": "TeX",
    "application/postscript": "PostScript",
    "application/epub+zip": "EPUB",
    "application/rtf": "RTF",
    "text/rtf": "RTF",
    "application/xml": "XML",
    "text/xml": "XML",
    "application/json": "JSON",
    "application/zip": "ZIP",
    "application/msword": "DOC",
    "application/vnd.ms-excel": "XLS",
    "application/vnd.ms-powerpoint": "PPT",
    f"{_OPEN}text": "ODT",
    f"{_OPEN}spreadsheet": "ODS",
    f"{_OPEN}presentation": "ODP",
    f"{_OFFICE}wordprocessingml.document": "DOCX",
    f"{_OFFICE}presentationml.presentation": "PPTX",
    f"{_OFFICE}spreadsheetml.sheet": "XLSX",
    "application/marc": "MARC",
    "message/rfc822": "Mail",
    "image/jpeg": "JPEG",
    "image/svg+xml": "SVG",
    "audio/mpeg": "MP3",
    "video/mp4": "MP4",
}
_MEDIA_TYPE: Final = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/([a-z0-9][a-z0-9.+_-]{0,80})$"
)
_PLAIN: Final = {name.casefold(): name for name in NAMES.values()}


def file_format(value: str) -> str:
    """The name of the format that a value of dc:format states; empty if it states none ("12 pages")."""
    kind = value[:200].partition(";")[0].strip().casefold()
    known = NAMES.get(kind) or _PLAIN.get(kind)
    if known is not None:
        return known
    found = _MEDIA_TYPE.match(kind)
    return found[1].rpartition(".")[2].removeprefix("x-").upper()[:24] if found else ""
