"""What a file is, by what is in it. The name's ending only decides between kinds of plain text."""

from __future__ import annotations

import re
from typing import Final

from indlet.errors import ExtractionError
from indlet.provider.extract.decode import decode
from indlet.provider.extract.file import File, ZipArchive

HEAD: Final = 8192

OOXML: Final = "application/vnd.openxmlformats-officedocument."
DOCX: Final = OOXML + "wordprocessingml.document"
PPTX: Final = OOXML + "presentationml.presentation"
XLSX: Final = OOXML + "spreadsheetml.sheet"
ODF: Final = "application/vnd.oasis.opendocument."

# Magic bytes of what we cannot read, with the name that the failure gives it.
_UNSUPPORTED: Final = (
    (b"\x7fELF", "ELF program"), (b"MZ", "Windows program"), (b"\xca\xfe\xba\xbe", "Java class"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"), (b"Rar!\x1a\x07", "RAR archive"),
    (b"\x28\xb5\x2f\xfd", "zstd file"),
    (b"SQLite format 3\x00", "SQLite database"), (b"wOFF", "font"), (b"OTTO", "font"),
    (b"\x00\x01\x00\x00\x00", "font"), (b"%!PS", "PostScript"), (b"\xc5\xd0\xd3\xc6", "PostScript"),
    (b"AT&TFORM", "DjVu"), (b"ITSF", "CHM"), (b"!BDN", "Outlook store"), (b"\x00\x00\x01\x00", "icon"),
)  # fmt: skip

# Magic bytes of images, sound and video, with their media types; `_container` tells the rest.
_MEDIA: Final = (
    (b"\x89PNG\r\n", "image/png"), (b"GIF8", "image/gif"), (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\x00", "image/tiff"), (b"MM\x00*", "image/tiff"), (b"BM", "image/bmp"),
    (b"8BPS", "image/vnd.adobe.photoshop"), (b"ID3", "audio/mpeg"), (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"), (b"\xff\xfa", "audio/mpeg"), (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"), (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "audio/x-ms-wma"),
)  # fmt: skip
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
# Brands of ISO base media files (ISO/IEC 14496-12) that are not video/mp4.
_BRANDS: Final = {
    b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"qt  ": "video/quicktime", b"heic": "image/heic",
    b"heix": "image/heic", b"mif1": "image/heif", b"avif": "image/avif",
}  # fmt: skip

# Streams of legacy Office files, which LibreOffice reads.
DOC, XLS, PPT = "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
_LEGACY: Final = (("WordDocument", DOC), ("Workbook", XLS), ("Book", XLS), ("PowerPoint Document", PPT))
_OLE_STREAMS: Final = (
    ("EncryptedPackage", "encrypted Office document"),
    ("__substg1.0", "unsupported: Outlook message (.msg); save it as .eml"),
    ("VisioDocument", "unsupported: legacy Visio drawing"),
)

_PLAIN: Final = {
    "md": "text/markdown", "markdown": "text/markdown", "mkd": "text/markdown", "csv": "text/csv",
    "tsv": "text/tab-separated-values", "json": "application/json", "jsonl": "application/json",
    "tex": "text/x-tex", "bib": "text/x-bibtex", "rst": "text/x-rst", "css": "text/css",
    "js": "text/javascript", "py": "text/x-python", "c": "text/x-c", "h": "text/x-c", "java": "text/x-java",
    "yaml": "application/yaml", "yml": "application/yaml",
}  # fmt: skip

_MARC = re.compile(rb"\s{0,8}[\d ]{5}[^\x1d-\x1f]{7}[\d ]{5}[^\x1d-\x1f]{3}[4 ][5 ]")
_MBOX = re.compile(
    r"From \S{1,200} .{0,200}\d\d:\d\d.{0,40}\d{4}.{0,40}\r?\n"
    r"(?:>From .{0,300}\r?\n)?(?:[!-9;-~]{1,80}:|\r?\n)"
)
_HEADER = re.compile(r"([!-9;-~]{1,80}):")
_MAIL_HEADERS: Final = frozenset(
    ("received", "message-id", "return-path", "mime-version", "delivered-to", "from", "to", "subject", "date",
     "cc", "content-type", "reply-to", "in-reply-to", "references", "sender", "x-mailer", "dkim-signature",
     "content-transfer-encoding", "list-id", "x-mozilla-status", "envelope-to")
)  # fmt: skip
_DECISIVE: Final = frozenset(
    ("received", "message-id", "return-path", "mime-version", "from", "delivered-to")
)
_TREC = re.compile(
    r"<DOC(?:\s[^>]{0,200})?>\s{0,20}(?:<[^>]{1,100}>[^<]{0,200}(?:</[^>]{1,100}>)?\s{0,20}){0,4}?<DOC(?:NO|ID)>",
    re.IGNORECASE,
)
_REUTERS = re.compile(r"<REUTERS\s[^>]{0,300}NEWID\s*=|<!DOCTYPE\s+lewis\b", re.IGNORECASE)
_ROOT = re.compile(r"<(?:([A-Za-z_][\w.-]{0,60}):)?([A-Za-z_][\w.-]{0,100})(?=[\s/>])")
_HTML_TAG = re.compile(
    r"<(?:!doctype\s+html|html|head|body|title|meta|link|base|frameset|h[1-6]|p|div|table|center|font|a|b|br|ul|ol|"
    r"dl|pre|img|hr|span|article|section|main|script|style)\b",
    re.IGNORECASE,
)


def extension(name: str) -> str:
    """The ending of the name, in lower case and without its dot."""
    stem, _, ending = name.rpartition(".")
    return ending.lower() if stem and "/" not in ending else ""


def sniff(file: File) -> str:
    """The media type of the content. What cannot be read is an ExtractionError that names it."""
    data = file.data
    if not data.strip(b"\x00\r\n\t "):
        raise ExtractionError(
            "empty file" if not data else "empty file: nothing but white space or zero bytes"
        )
    start = data[:1024].lstrip(b"\xef\xbb\xbf\r\n\t ")
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    if start.startswith(b"{\\rtf"):
        return "application/rtf"
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK00PK\x03\x04")):
        return _zip(file)
    if data.startswith(b"\x1f\x8b"):
        return "application/gzip"
    if data.startswith(b"\x1f\x9d"):
        return "application/x-compress"
    if data.startswith(b"BZh") and data[4:10] == b"1AY&SY":
        return "application/x-bzip2"
    if data.startswith(b"\xfd7zXZ\x00"):
        return "application/x-xz"
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _ole(data)
    if b"\x1e" in data[:200_000] and b"\x1f" in data[:200_000] and _is_marc(data, extension(file.name)):
        return "application/marc"
    text = decode(data[:HEAD])
    if b"%PDF-" in data[:1024] and b"endobj" in data:
        return "application/pdf"  # some junk before the header, as the specification's readers allow
    if found := _text_type(text, extension(file.name)):
        return found
    return _binary(data, text) or _PLAIN.get(extension(file.name), "text/plain")


def _text_type(text: str, ending: str) -> str:
    stripped = text.lstrip("\ufeff\r\n\t ")
    if not stripped.startswith("<"):
        if stripped.startswith("{") and "://jsonfeed.org/version/" in stripped[:2000]:
            return "application/feed+json"
        if _MBOX.match(stripped):
            return "application/mbox"
        if _is_mail(stripped, ending):
            return "message/rfc822"
        # Web pages are served with stray words or template code before the first tag.
        page = ending in ("html", "htm", "xhtml") and _HTML_TAG.search(text)
        return "text/html" if page else ""
    if _REUTERS.search(stripped):
        return "text/sgml"
    if _TREC.search(stripped) and not stripped.startswith("<?xml"):
        return "text/sgml"
    root = _root(stripped)
    declared = stripped.startswith("<?xml")
    if root.lower() == "html":
        return "text/html"
    if root in ("collection", "record") and re.search(
        r"<(?:\w+:)?(?:leader|controlfield|datafield)\b", stripped
    ):
        return "application/marcxml+xml"
    if feed := _feed(root, stripped):
        return feed
    if declared or "xmlns" in stripped[:2000]:
        return "application/xml"
    if _HTML_TAG.match(stripped) or (ending in ("html", "htm") and _HTML_TAG.search(stripped)):
        return "text/html"
    if root and (ending in ("xml", "sgml", "sgm", "tei", "rss", "svg") or f"</{root}>" in stripped):
        return "application/xml"
    return "text/html" if _HTML_TAG.search(stripped[:2000]) else ""


def _feed(root: str, text: str) -> str:
    """The media type of a feed, by its root and namespace."""
    if root == "rss":
        return "application/rss+xml"
    if root == "feed" and ("/2005/Atom" in text or "purl.org/atom/" in text):
        return "application/atom+xml"
    if root == "RDF" and ("purl.org/rss/1.0/" in text or "my.netscape.com/rdf" in text):
        return "application/rdf+xml"
    return ""


def _root(text: str) -> str:
    """The local name of the first element, past declarations, comments and processing instructions."""
    at = 0
    for _ in range(50):
        at = text.find("<", at)
        if at < 0:
            return ""
        if text.startswith("<!--", at):
            end = text.find("-->", at)
        elif text.startswith("<?", at):
            end = text.find("?>", at)
        elif text.startswith("<!", at):
            end = text.find("]>" if "[" in text[at : text.find(">", at) + 1] else ">", at)
        else:
            match = _ROOT.match(text, at)
            return match[2] if match else ""
        if end < 0:
            return ""
        at = end + 1
    return ""


def _is_mail(text: str, ending: str) -> bool:
    seen = set()
    for line in re.split(r"\r?\n(?![ \t])", text, maxsplit=40)[:40]:
        if not line:
            break
        match = _HEADER.match(line)
        if not match:
            return False
        seen.add(match[1].lower())
    known = seen & _MAIL_HEADERS
    return bool(known & _DECISIVE) and len(known) >= (1 if ending in ("eml", "mht", "mhtml", "email") else 3)


def _is_marc(data: bytes, ending: str) -> bool:
    return bool(_MARC.match(data)) or (ending in ("mrc", "marc") and b"\x1d" in data)


def _zip(file: File) -> str:
    archive = ZipArchive(file)
    if "mimetype" in archive:
        kind = archive.read("mimetype")[:200].decode("ascii", "replace").strip()
        if kind == "application/epub+zip" or kind.startswith(ODF):
            return kind.removesuffix("-template")
    if "META-INF/container.xml" in archive and archive.matching(r".*\.opf"):
        return "application/epub+zip"
    if "[Content_Types].xml" in archive:
        types = archive.read("[Content_Types].xml").decode("utf-8", "replace")
        for marker, media_type in (
            ("wordprocessingml", DOCX),
            ("presentationml", PPTX),
            ("spreadsheetml", XLSX),
        ):
            if f"{marker}.document.main" in types or f"{marker}.presentation.main" in types:
                return media_type
            if re.search(rf"{marker}\.(?:template|slideshow|sheet)\.main", types):
                return media_type
        if match := re.search(
            r"ms-(word|powerpoint|excel)\.[\w.]{1,40}macroEnabled(?:Template)?\.main", types
        ):
            return {"word": DOCX, "powerpoint": PPTX, "excel": XLSX}[match[1].lower()]
        if "excel.sheet.binary" in types:
            raise ExtractionError("unsupported: binary Excel workbook (.xlsb); save it as XLSX")
        for folder, media_type in (("word/", DOCX), ("ppt/", PPTX), ("xl/", XLSX)):
            if any(name.startswith(folder) for name in archive.names):
                return media_type
    if "content.xml" in archive and "META-INF/manifest.xml" in archive:
        return ODF + {"ods": "spreadsheet", "odp": "presentation"}.get(extension(file.name), "text")
    raise ExtractionError("unsupported: zip archive; name it as a hierarchy to have its files crawled")


def _ole(data: bytes) -> str:
    for stream, message in _OLE_STREAMS:
        if stream.encode("utf-16-le") in data:
            raise ExtractionError(message)
    for stream, media_type in _LEGACY:
        if stream.encode("utf-16-le") in data:
            return media_type
    raise ExtractionError("unsupported: legacy Office file (OLE)")


def _binary(data: bytes, text: str) -> str:
    """The media type of an image, sound or video; empty for text. Other binary data is an ExtractionError."""
    if data[257:262] == b"ustar":
        raise ExtractionError("unsupported: tar archive; name it as a hierarchy to have its files crawled")
    if found := _container(data):
        return found
    odd = sum(map(len, re.findall(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]+", text)))
    if (odd > 2 and odd * 50 > len(text)) or "\x00" in text:
        for magic, kind in _MEDIA:
            if data.startswith(magic):
                return kind
        for magic, kind in _UNSUPPORTED:
            if data.startswith(magic):
                raise ExtractionError(f"unsupported: {kind}")
        raise ExtractionError("unsupported: unknown binary data")
    if data.startswith(b"GIF8"):
        return "image/gif"
    if data.startswith(b"%!PS"):
        raise ExtractionError("unsupported: PostScript")
    return ""


def _container(data: bytes) -> str:
    """The media type of files whose first bytes name a container, and later ones what is in it."""
    if data[4:8] == b"ftyp" and data[:2] == b"\x00\x00":
        return _BRANDS.get(data[8:12], "video/mp4")
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12], "")
    if data.startswith(b"FORM") and data[8:12] in (b"AIFF", b"AIFC"):
        return "audio/aiff"
    if data.startswith(b"OggS"):
        return "video/ogg" if b"\x80theora" in data[:200] else "audio/ogg"
    return ""
