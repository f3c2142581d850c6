"""A body as it came becomes UTF-8 that an XML parser takes. Every repair is counted by its kind."""

from __future__ import annotations

import codecs
import html
import re
from collections import Counter
from typing import Final

from indlet._core import is_utf8
from indlet.errors import BadResponse
from indlet.oai import markup

_DECLARATION = re.compile(rb"<\?xml\b[^>]{0,1000}?\?>")
_ENCODING = re.compile(rb"""encoding\s{0,20}=\s{0,20}["']\s{0,20}([A-Za-z0-9._:-]{1,100})""")
# Before the declaration may stand whatever a careless template or a debug line left there.
_START = re.compile(rb"<(?:\?xml|[A-Za-z_!])")
_TRUE_START = re.compile(rb"<\?xml\b|<(?:[\w.-]{1,100}:)?OAI-PMH\b")
# An entity that stands for a few plain characters, and for no other entity.
_ENTITY = re.compile(
    rb"<!ENTITY\s{1,20}([A-Za-z_][\w.-]{0,99})\s{1,20}"
    rb"""(?:"([^"&<%]{0,200})"|'([^'&<%]{0,200})')\s{0,20}>"""
)
_NAMED_REFERENCE = re.compile(rb"&([A-Za-z_][\w.-]{0,99});")
# A character beyond the first 65,536 as two halves of three bytes each, as Java writes it.
_TWO_HALVES = re.compile(b"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_CONTROLS: Final = bytes(range(9)) + b"\x0b\x0c" + bytes(range(14, 32))
_NONCHARACTERS = re.compile(b"\xef\xbf[\xbe\xbf]|\xed[\xa0-\xbf][\x80-\xbf]")
_REFERENCE = re.compile(rb"&(#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});|&")
# What may not stand where it stands, and what is put in its place.
_MISPLACED: Final = (
    (re.compile(rb"<(?![A-Za-z_/!?])"), b"&lt;", "bare less-than signs"),
    (re.compile(rb"\]\]>"), b"]]&gt;", "bare ends of CDATA sections"),
    # A file with its prologue, put into the answer as it was. (What begins with a look back is found slowly.)
    (re.compile(rb"<\?xml(?<!\A.{5})\s[^<>]{0,500}\?>", re.DOTALL), b"", "declarations within the document"),
    (re.compile(rb"<!DOCTYPE\s[^<>\[\]]{0,500}>", re.IGNORECASE), b"", "declarations within the document"),
)
_PREFIXES = (
    re.compile(rb"</?([A-Za-z_][\w.-]{0,99}):"),
    re.compile(rb"\s([A-Za-z_][\w.-]{0,99}):[\w.-]{1,100}\s{0,20}="),
)
_DECLARED_PREFIX = re.compile(rb"xmlns:([A-Za-z_][\w.-]{0,99})")
_ROOT = re.compile(rb"<[A-Za-z_][\w.:-]{0,200}")
# How far into a body its start is looked for behind marked-up noise.
NOISE: Final = 1 << 16
# What servers put into a header without a thought.
_USUAL: Final = ("", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "latin-1", "windows-1252")
_PREDEFINED: Final = {b"amp", b"lt", b"gt", b"quot", b"apos"}
_KNOWN_PREFIXES: Final = {
    b"xsi": b"http://www.w3.org/2001/XMLSchema-instance",
    b"oai_dc": b"http://www.openarchives.org/OAI/2.0/oai_dc/",
    b"dc": b"http://purl.org/dc/elements/1.1/",
    b"dcterms": b"http://purl.org/dc/terms/",
    b"oai": b"http://www.openarchives.org/OAI/2.0/",
    b"xlink": b"http://www.w3.org/1999/xlink",
    b"rdf": b"http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    b"marc": b"http://www.loc.gov/MARC21/slim",
    b"mods": b"http://www.loc.gov/mods/v3",
}


def decoded(body: bytes, charset: str = "") -> tuple[bytes, Counter[str]]:
    """The body as UTF-8, without byte order mark, noise before its start, or a false declaration."""
    repairs: Counter[str] = Counter()
    if body[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        body = body.decode("utf-32", "replace").encode("utf-8", "replace")
        repairs["wrong encoding"] += 1
    elif body[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
        repairs["wrong encoding"] += 1
    elif body[:2] in (b"\0<", b"<\0"):  # the same without its mark
        body = body.decode("utf-16-be" if body[0] == 0 else "utf-16-le", "replace").encode("utf-8", "replace")
        repairs["wrong encoding"] += 1
    elif body[:3] == codecs.BOM_UTF8:
        body = body[3:]
    start = _START.search(body, 0, 4096)
    if start and start[0] != b"<?xml" and (true := _TRUE_START.search(body, start.start(), NOISE)):
        start = true  # warnings of a server may well be marked up
    if start and start.start():
        if body[: start.start()].strip():
            repairs["noise before the document"] += 1
        else:
            repairs["white space before the declaration"] += 1
        body = body[start.start() :]
    declaration = _DECLARATION.match(body)
    declared = _declared(declaration[0]) if declaration else ""
    text_encoding = declared or charset.lower()
    if declared == "utf-8" and charset.lower() not in _USUAL:
        text_encoding = charset.lower()  # should it not be UTF-8 after all
    if declaration and declared not in ("utf-8", ""):
        # The declaration goes: from here on the bytes are UTF-8.
        body = body[declaration.end() :].lstrip()
    if body.isascii():
        return body, repairs
    if not is_utf8(body):
        body, kind = _other(body, text_encoding)
        if kind:
            repairs[kind] += 1
    elif (declared or charset.lower()) not in ("", "utf-8", "utf8"):
        repairs["wrong encoding"] += 1  # it says otherwise, but it is UTF-8
    return body, repairs


def without_doctype(body: bytes) -> tuple[bytes, Counter[str]]:
    """The body without a document type: nothing is fetched, and of entities only plain ones are expanded."""
    repairs: Counter[str] = Counter()
    declared: dict[bytes, bytes] = {}
    kept, last = list[bytes](), 0
    for begin, end, kind in markup.prolog(body):
        if kind == markup.DOCTYPE and end >= 0:
            repairs["document type removed"] += 1
            declared |= {name: a or b for name, a, b in _ENTITY.findall(body, begin, end)}
            kept.append(body[last:begin])
            last = end
    if not last:
        return body, repairs
    body = b"".join([*kept, body[last:]])
    for name in _PREDEFINED:
        declared.pop(name, None)
    if declared:
        size = sum(len(declared.get(m[1], b"")) for m in _NAMED_REFERENCE.finditer(body))
        if 0 < size < len(body):
            repairs["entities expanded"] += 1
            body = _NAMED_REFERENCE.sub(lambda m: declared.get(m[1], m[0]), body)
    return body, repairs


def without_controls(body: bytes) -> tuple[bytes, Counter[str]]:
    """The body without characters that XML 1.0 does not have."""
    repairs: Counter[str] = Counter()
    clean, others = body.translate(None, _CONTROLS), 0
    if b"\xef\xbf" in clean or b"\xed" in clean:
        clean, others = _NONCHARACTERS.subn(b"", clean)
    if len(clean) != len(body):
        repairs["control characters"] += len(body) - len(clean) - 2 * others
    return clean, repairs


def repaired(body: bytes, foreign_entities: bool = False) -> tuple[bytes, Counter[str]]:
    """The body after every repair of its text that loses nothing; for one that was not well-formed.

    With `foreign_entities`, references to what nobody declared are taken for text: AT&T; and its like.
    """
    body, repairs = without_controls(body)
    body, malformed = markup.without_comments(body)
    if malformed:
        repairs["malformed comments"] += malformed
    if body.count(b"&") > markup.TAGS:
        raise BadResponse(f"not well-formed, with more than {markup.TAGS} references: too many to repair")
    pieces = markup.by_cdata(body)  # references mean nothing in CDATA sections
    for i in range(0, len(pieces), 2):
        piece = _references(pieces[i], repairs, foreign_entities)
        for pattern, instead, kind in _MISPLACED:
            piece, count = pattern.subn(instead, piece)
            if count:
                repairs[kind] += count
        pieces[i] = piece
    return _with_namespaces(b"".join(pieces), repairs), repairs


def _declared(declaration: bytes) -> str:
    found = _ENCODING.search(declaration)
    if found is None:
        return ""
    name = found[1].decode().lower()
    return "utf-8" if name in ("utf-8", "utf8", "us-ascii", "ascii") else name


def _other(body: bytes, encoding: str) -> tuple[bytes, str]:
    """Not UTF-8: what it says it is, if it says so; otherwise each stray byte is read as Windows-1252."""
    from indlet.text.charset import charset as python_charset  # most answers are UTF-8

    if encoding not in ("", "utf-8", "utf8") and (name := python_charset(encoding)):
        try:
            return body.decode("cp1252" if name == "iso8859-1" else name, "replace").encode(), ""
        except (LookupError, UnicodeError):
            pass
    body = _TWO_HALVES.sub(
        lambda m: (
            m[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode()
        ),
        body,
    )
    text = body.decode("utf-8", "surrogateescape").translate(_STRAY)
    return text.encode("utf-8", "replace"), "invalid UTF-8"


# Bytes that are not UTF-8, as "surrogateescape" marks them, in Windows-1252.
_STRAY: Final = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}


def _references(body: bytes, repairs: Counter[str], foreign: bool) -> bytes:
    def fixed(match: re.Match[bytes]) -> bytes:
        name = match[1]
        if name is None:
            repairs["bare ampersands"] += 1
            return b"&amp;"
        if name in _PREDEFINED:
            return match[0]
        if name.startswith(b"#"):
            number = int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:])
            if number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0xFFFE:
                return match[0]
            if 0x10000 <= number < 0x110000:
                return match[0]
            repairs["control characters"] += 1
            return b""
        meant = html.unescape(match[0].decode())
        if meant != match[0].decode():
            repairs["undeclared entities"] += 1
            return meant.encode()
        if foreign:
            repairs["bare ampersands"] += 1
            return b"&amp;" + match[0][1:]
        # An entity of a document type that is gone: kept, so that its record fails and says so.
        return match[0]

    return _REFERENCE.sub(fixed, body)


def _with_namespaces(body: bytes, repairs: Counter[str]) -> bytes:
    """The root declares whatever prefix is used and nowhere declared."""
    root = _ROOT.search(body)
    if root is None:
        return body
    used: set[bytes] = set()
    for pattern in _PREFIXES:
        for match in pattern.finditer(body):
            used.add(match[1])
            if len(used) > markup.PREFIXES:
                return body
    declared = {match[1] for match in _DECLARED_PREFIX.finditer(body)}
    missing = sorted(used - declared - {b"xml", b"xmlns"})
    if not missing:
        return body
    repairs["missing namespaces"] += len(missing)
    declarations = b"".join(
        b' xmlns:%b="%b"' % (p, _KNOWN_PREFIXES.get(p, b"urn:undeclared:" + p)) for p in missing
    )
    return body[: root.end()] + declarations + body[root.end() :]
