"""Rich Text Format: the text in its fonts' code pages, and what its info group says.

Read here rather than by a library: real files mix code pages by font, write characters beyond the BMP as two
halves, and hold binary pictures; striprtf lost the text of a tenth of those at hand.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from indlet.errors import LimitExceeded
from indlet.formats.dublin import build_metadata
from indlet.model import Document
from indlet.provider.extract.file import File, Text
from indlet.provider.extract.office import meaningful

GROUPS: Final = 10_000

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n\x00]+"
    r"|([^\\{}\r\n\x00]+)",
    re.DOTALL,
)
# Groups that hold no words of the document, or hold them a second time for programs that know less.
_SILENT: Final = frozenset(
    ("colortbl", "stylesheet", "pict", "objdata", "objclass", "themedata", "colorschememapping",
     "datastore", "generator", "xmlnstbl", "listtable", "listoverridetable", "revtbl", "rsidtbl",
     "latentstyles", "filetbl", "fldinst", "bkmkstart", "bkmkend", "blipuid", "nonshppict",
     "nonesttables", "panose", "falt", "mmathPr", "template", "wgrffmtfilter", "pgptbl", "passwordhash",
     "atnid", "atnauthor", "atnref", "atndate", "atnparent", "userprops", "docvar", "xmlattr", "sp",
     "shprslt", "pntxta", "pntxtb", "pnseclvl", "ftnsep", "ftnsepc", "aftnsep",)
)  # fmt: skip
# Groups with words that stand beside the running text; they follow at its end.
_ASIDE: Final = frozenset(
    ("footnote", "annotation", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr",
     "footerf", "shptxt",)
)  # fmt: skip
_THROUGH: Final = frozenset(
    ("shpinst", "ud", "shppict", "nesttableprops", "pntext", "listtext",)
)  # fmt: skip
_INFO: Final = {
    "title": "title", "subject": "subject", "author": "creator", "keywords": "subject",
    "doccomm": "description", "company": "publisher", "manager": "contributor",
}  # fmt: skip
_CHARACTERS: Final = {
    "par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "nestrow": "\n", "column": "\n",
    "cell": "\t", "nestcell": "\t", "tab": "\t", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘",
    "rquote": "’", "ldblquote": "“", "rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
_CHARSETS: Final = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 255: "cp437",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits and gives back at its end."""

    destination: str = ""  # "" is the body; "-" is nowhere
    skip: int = 1  # how many characters after \u stand in for it
    code_page: str = "cp1252"


@dataclass(slots=True)
class _Reader:
    text: Text
    fonts: dict[int, str] = field(default_factory=dict)
    ansi: str = "cp1252"
    default_font: int = 0
    info: dict[str, list[str]] = field(default_factory=dict)
    date: dict[str, int] = field(default_factory=dict)
    state: _State = field(default_factory=_State)
    stack: list[_State] = field(default_factory=list)
    raw: bytearray = field(default_factory=bytearray)
    aside: list[str] = field(default_factory=list)
    to_skip: int = 0
    font: int = 0

    def read(self, source: str) -> None:
        at, opened, starred = 0, False, False
        while match := _TOKEN.match(source, at):
            at = match.end()
            kind = match.lastindex
            if kind == 5:
                self._flush()
                if match[5] == "{":
                    if len(self.stack) >= GROUPS:
                        raise LimitExceeded(f"RTF with more than {GROUPS} groups inside each other")
                    self.stack.append(self.state)
                    opened, starred = True, False
                    continue
                if not self._close():
                    break  # what follows the outermost group is no RTF
            elif kind in (1, 2):
                word, number = match[1], int(match[2]) if match[2] else None
                if word == "bin":
                    at += max(0, number or 0)
                elif opened and self._destination(word, starred):
                    pass
                else:
                    self._control(word, number)
            elif kind == 3:
                self._byte(int(match[3], 16))
            elif kind == 4:
                if match[4] == "*" and opened:
                    starred = True
                    continue
                self._symbol(match[4])
            elif kind == 6:
                self._plain(match[6])
            if kind is not None:
                opened = starred = False
        self._flush()

    def _close(self) -> bool:
        """Whether a group is still open."""
        if self.stack:
            self.state = self.stack.pop()
        self.to_skip = 0
        return bool(self.stack)

    def _destination(self, word: str, starred: bool) -> bool:
        """Whether the word opens a destination, which then is the group's."""
        if self.state.destination == "-":
            return True
        if word in _ASIDE:
            self.aside.append("\n")
            self.state = replace(self.state, destination=word)
        elif word in _THROUGH:
            pass
        elif word in _SILENT:
            self.state = replace(self.state, destination="-")
        elif word in ("info", "fonttbl") or (
            self.state.destination == "info" and (word in _INFO or word[-3:] == "tim")
        ):
            self.state = replace(self.state, destination=word)
            self.info.pop(word, None)  # said again in Unicode: the later one is the better
        elif starred:
            self.state = replace(self.state, destination="-")
        else:
            return False
        return True

    def _control(self, word: str, number: int | None) -> None:
        where = self.state.destination
        if word == "u" and number is not None:
            self._flush()
            self._emit(chr(number % 65536))
            self.to_skip = self.state.skip
        elif word == "uc" and number is not None:
            self.state = replace(self.state, skip=max(0, min(number, 100)))
        elif word == "ansicpg" and number is not None:
            self.ansi = _code_page(number)
            self.state = replace(self.state, code_page=self.ansi)
        elif word == "deff" and number is not None:
            self.default_font = number
        elif word == "f" and number is not None:
            self._flush()
            self.font = number
            if where != "fonttbl":
                self.state = replace(self.state, code_page=self.fonts.get(number, self.ansi))
        elif word == "plain":
            self._flush()
            self.state = replace(self.state, code_page=self.fonts.get(self.default_font, self.ansi))
        elif word == "fcharset" and where == "fonttbl" and number is not None:
            self.fonts[self.font] = _CHARSETS.get(number, self.ansi)
        elif word in ("yr", "mo", "dy") and where in ("creatim", "revtim") and number is not None:
            self.date[word] = number
        elif word in _CHARACTERS:
            self._flush()
            self._emit(_CHARACTERS[word])

    def _symbol(self, symbol: str) -> None:
        if symbol in "\\{}":
            self._plain(symbol)
        elif symbol == "~":
            self._flush()
            self._emit("\u00a0")
        elif symbol == "_":
            self._plain("-")
        elif symbol in "\r\n":
            self._flush()
            self._emit("\n")

    def _byte(self, value: int) -> None:
        if self.to_skip:
            self.to_skip -= 1
        else:
            self.raw.append(value)

    def _plain(self, characters: str) -> None:
        if self.to_skip:
            taken = min(self.to_skip, len(characters))
            self.to_skip -= taken
            characters = characters[taken:]
        # The second byte of a character in an East Asian code page may stand as itself.
        self.raw += characters.encode("latin-1", "replace")

    def _flush(self) -> None:
        if self.raw:
            self._emit(self.raw.decode(self.state.code_page, "replace"))
            self.raw.clear()

    def _emit(self, characters: str) -> None:
        where = self.state.destination
        if not where:
            self.text.add(characters)
        elif where in _ASIDE:
            self.aside.append(characters)
        elif where in _INFO:
            self.info.setdefault(where, []).append(characters)


def extract(file: File) -> Iterator[Document]:
    reader = _Reader(Text(file.limits))
    reader.read(file.data.decode("latin-1"))
    reader.text.add("".join(reader.aside))
    pairs = []
    for name, pieces in reader.info.items():
        value = _whole("".join(pieces))
        if name != "title" or meaningful(value):
            pairs.append((_INFO[name], value))
    if reader.date.get("yr"):
        year, month, day = (reader.date.get(part, 0) for part in ("yr", "mo", "dy"))
        pairs.append(("date", f"{year:04d}-{month:02d}-{day:02d}"))
    yield Document(_whole(str(reader.text)), build_metadata(pairs), file.media_type)


def _whole(text: str) -> str:
    """The text with the halves of characters beyond the BMP joined."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _code_page(number: int) -> str:
    try:
        return codecs.lookup(f"cp{number}").name
    except LookupError:
        return {10000: "mac_roman", 65001: "utf-8"}.get(number, "cp1252")
