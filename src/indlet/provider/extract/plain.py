"""Plain text and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from indlet.formats.dublin import build_metadata
from indlet.model import Document
from indlet.provider.extract.decode import decode
from indlet.provider.extract.file import File, Text

_FRONT: Final = {
    "title": "title", "subtitle": "description", "author": "creator", "authors": "creator", "date": "date",
    "keywords": "subject", "tags": "subject", "categories": "subject", "subject": "subject",
    "lang": "language",
    "language": "language", "abstract": "description", "description": "description", "summary": "description",
    "license": "rights", "rights": "rights", "publisher": "publisher", "doi": "identifier",
}  # fmt: skip
HEAD: Final = 10_000  # characters within which a text file has its title
FIRST_LINES: Final = 20
TITLE: Final = 200  # characters
_FENCED = re.compile(r"\ufeff?---[ \t]*\r?\n")
_FENCE_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+([^\n]{1,500})$|^([^\s#>*+|`~=-][^\n]{0,300})\n(?:={3,}|-{3,})[ \t]*$", re.MULTILINE
)
_MARKUP = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,1000}\)|[*_`]{1,3}|\{#[\w-]{1,80}\}|[ \t]#+[ \t]*$")
_TEX = re.compile(
    r"\\(title|author|date)\s{0,20}(?:\[[^\]]{0,200}\])?\s{0,20}\{([^{}]{1,500}(?:\{[^{}]{0,200}\}[^{}]{0,300}){0,5})\}"
)


def extract(file: File) -> Iterator[Document]:
    text = decode(file.data)
    Text(file.limits).add(text)
    pairs: list[tuple[str, str]] = []
    language = ""
    if file.media_type == "text/markdown":
        pairs, text = _markdown(text)
    elif file.media_type == "text/x-tex":
        pairs = _tex(text[:100_000])
    elif file.media_type in ("text/plain", "text/x-rst"):
        pairs = _first_line(text[:HEAD])
    metadata = build_metadata(pairs)
    if found := metadata.get("language"):
        language = found[0] if len(found[0]) <= 3 else ""
    yield Document(text, metadata, file.media_type, language=language)


def _first_line(text: str) -> list[tuple[str, str]]:
    """The first line that has a letter, as a title; none if it is too long to be one."""
    for line in text.lstrip("\ufeff").splitlines()[:FIRST_LINES]:
        words = " ".join(line.split())
        if any(letter.isalpha() for letter in words):
            return [("title", words)] if len(words) <= TITLE else []
    return []


def _markdown(text: str) -> tuple[list[tuple[str, str]], str]:
    pairs: list[tuple[str, str]] = []
    if match := _FENCED.match(text):
        end = _FENCE_END.search(text, match.end(), match.end() + 20_000)
        if end:
            pairs = _front_matter(text[match.end() : end.start()])
            text = text[end.end() :]
    if not any(element == "title" for element, _ in pairs):
        heading = _HEADING.search(text[:20_000].replace("\r\n", "\n"))
        if heading:
            pairs.append(("title", _MARKUP.sub(r"\1", heading[1] or heading[2])))
    return pairs, text


def _front_matter(block: str) -> list[tuple[str, str]]:
    """The pairs of a YAML (or TOML-like) head: scalars, [inline, lists] and lists of dashed lines."""
    pairs: list[tuple[str, str]] = []
    element = ""
    for line in block.splitlines():
        if match := re.match(r"([A-Za-z][\w-]{0,40})\s*[:=]\s*(.*)$", line):
            element = _FRONT.get(match[1].lower(), "")
            value = match[2].strip()
            if element and value not in ("", "|", ">", "|-", ">-"):
                values = value[1:-1].split(",") if value[:1] == "[" and value[-1:] == "]" else [value]
                if element == "subject" and len(values) == 1:
                    values = value.split(",")
                pairs.extend((element, item.strip().strip("\"'")) for item in values)
        elif element and (match := re.match(r"\s*-\s+(?:name:\s*)?(.+)$", line)):
            pairs.append((element, match[1].strip().strip("\"'")))
        elif element and line[:1] in " \t" and line.strip() and element != "creator":
            pairs.append((element, line.strip()))
    return _folded(pairs)


def _folded(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A block scalar came line by line: a title and a description are one value each."""
    out: dict[str, str] = {}
    rest = []
    for element, value in pairs:
        if element in ("title", "description"):
            out[element] = f"{out[element]} {value}" if element in out else value
        else:
            rest.append((element, value))
    return [*out.items(), *rest]


def _tex(text: str) -> list[tuple[str, str]]:
    pairs = []
    for name, value in _TEX.findall(text):
        words = re.sub(r"\\[A-Za-z]+\*?|[{}~]", " ", value)
        for item in re.split(r"\\and\b", value) if name == "author" else [words]:
            plain = re.sub(r"\\[A-Za-z]+\*?|[{}~\\]", " ", item)
            pairs.append(({"title": "title", "author": "creator", "date": "date"}[name], plain))
    return pairs
