"""Rich Text Format, by striprtf; title, authors and date from its info group."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from indlet.errors import ExtractionError
from indlet.formats.dublin import described
from indlet.model import Document
from indlet.provider.extract.file import File, Text
from indlet.provider.extract.office import meaningful

_INFO: Final = {
    "title": "title", "subject": "subject", "author": "creator", "keywords": "subject",
    "doccomm": "description", "company": "publisher", "manager": "contributor",
}  # fmt: skip
_TIME = re.compile(r"\{\\(?:creatim|revtim)\\yr(\d{1,4})\\mo(\d{1,2})\\dy(\d{1,2})")
_ANSI = re.compile(r"\\ansicpg(\d{3,5})")
# Pictures and embedded objects are hexadecimal: nothing to read, and most of the bytes of large files.
_HEX = re.compile(r"[0-9A-Fa-f\s]{512,}")


def extract(file: File) -> Iterator[Document]:
    from striprtf import striprtf

    to_text: Callable[..., str] = striprtf.rtf_to_text
    source = file.data.decode("latin-1")
    page = _ANSI.search(source[:2000])
    encoding = _code_page(page[1]) if page else "cp1252"

    def plain(markup: str) -> str:
        try:
            return str(to_text(markup, encoding=encoding, errors="replace"))
        except (
            ValueError,
            LookupError,
            IndexError,
            KeyError,
            TypeError,
            AttributeError,
            UnicodeError,
        ) as error:
            raise ExtractionError(f"broken RTF: {error}") from error

    body = plain(_HEX.sub(" ", source))
    text = Text(file.limits)
    text.add(body)
    pairs = []
    info = source.find("{\\info")
    if info >= 0:
        group = _group(source, info)
        for name, element in _INFO.items():
            at = group.find("{\\" + name)
            if at >= 0 and not group[at + len(name) + 2 : at + len(name) + 3].isalpha():
                value = plain("{\\rtf1\\ansi " + _group(group, at).replace("\\" + name, "", 1) + "}").strip()
                if element != "title" or meaningful(value):
                    pairs.append((element, value))
        if time := _TIME.search(group):
            pairs.append(("date", f"{int(time[1]):04d}-{int(time[2]):02d}-{int(time[3]):02d}"))
    yield Document(str(text), described(pairs), file.media_type)


def _code_page(number: str) -> str:
    import codecs

    try:
        return codecs.lookup("cp" + number).name
    except LookupError:
        return {"10000": "mac_roman", "65001": "utf-8"}.get(number, "cp1252")


def _group(text: str, start: int) -> str:
    """The group that opens at `start`, braces included, at most 20,000 characters of it."""
    depth = 0
    end = min(len(text), start + 20_000)
    at = start
    while at < end:
        character = text[at]
        if character == "\\":
            at += 1
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return text[start : at + 1]
        at += 1
    return text[start:end]
