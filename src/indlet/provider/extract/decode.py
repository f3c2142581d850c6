"""Bytes to text, whatever their encoding; nothing here raises UnicodeDecodeError."""

from __future__ import annotations

import codecs
import re
from typing import Final

from indlet.text.charset import charset

_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

SAMPLE: Final = 8192

# charset-normalizer weighs these; each more costs time and false finds.
_CANDIDATES: Final = [
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r", "mac_roman",
    "cp437", "cp850", "cp866", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "iso2022_jp",
]  # fmt: skip

_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})["']|<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]{2,40})""",
    re.IGNORECASE,
)


def declared_encoding(data: bytes) -> str:
    """What an XML declaration or an HTML meta element near the beginning says; empty if nothing."""
    match = _DECLARED.search(data[:4096])
    return (match[1] or match[2]).decode("ascii") if match else ""


def decode(data: bytes, declared: str = "") -> str:
    """The text of the bytes: by byte order mark, as UTF-8 if it is that, as declared, else by statistics."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, "replace")
    if wide := _without_mark(data):
        return data.decode(wide, "replace")
    if b"\x1b$" in data[:SAMPLE] or b"\x1b(" in data[:SAMPLE]:
        try:
            return data.decode("iso2022_jp")
        except UnicodeDecodeError:
            pass
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if declared and (text := _as(data, declared)) is not None:
        return text
    text = data.decode("utf-8", "replace")
    lost = text.count("\ufffd")
    if lost * 20 <= sum(map(len, re.findall(r"[^\x00-\x7f]+", text))):
        return text  # UTF-8 with a few bad bytes
    return data.decode(_guess(data), "replace")


def _as(data: bytes, encoding: str) -> str | None:
    name = charset(encoding)
    # What calls itself Latin-1 or ASCII is in practice windows-1252, as the HTML standard has it. A document
    # without a byte order mark that claims UTF-16 was read here as bytes: the claim is wrong.
    if name in ("iso8859-1", "ascii"):
        name = "cp1252"
    if not name or name.startswith(("utf-7", "utf-8", "utf-16", "utf-32")):
        return None
    try:
        return data.decode(name, "replace")
    except (UnicodeError, LookupError, ValueError):  # LookupError: a codec that is not text, such as hex
        return None


def _without_mark(data: bytes) -> str:
    """UTF-16 or UTF-32 without a byte order mark, told by where its zero bytes lie."""
    head = data[:1024]
    if b"\x00" not in head or len(head) < 8:
        return ""
    size = len(head) // 4
    zeros = [head[offset::4][:size].count(0) for offset in range(4)]
    most = 0.7 * size
    if zeros[1] > most and zeros[2] > most and zeros[3] > most and zeros[0] < 0.1 * size:
        return "utf-32-le"
    if zeros[0] > most and zeros[1] > most and zeros[2] > most and zeros[3] < 0.1 * size:
        return "utf-32-be"
    odd, even = zeros[1] + zeros[3], zeros[0] + zeros[2]
    if odd > 2 * most and even < 0.1 * size:
        return "utf-16-le"
    if even > 2 * most and odd < 0.1 * size:
        return "utf-16-be"
    return ""


def _guess(data: bytes) -> str:
    """The likeliest legacy encoding, by a sample around the first bytes beyond ASCII."""
    first = next((match.start() for match in re.finditer(rb"[\x80-\xff]", data)), 0)
    sample = data[max(0, first - 512) : first + SAMPLE]
    high = len(re.findall(rb"[\x80-\xff]", sample))
    if high < 12 or high * 50 < len(sample):
        return "cp1252"  # a few accented letters in Western text; too little for statistics
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_CANDIDATES, steps=4, chunk_size=1024).best()
    return best.encoding if best is not None else "cp1252"
