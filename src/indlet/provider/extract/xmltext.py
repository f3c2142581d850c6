"""XML of any vocabulary: all of its text, and the descriptions of the vocabularies we know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from indlet.formats.dublin import build_metadata, element_of
from indlet.model import Document
from indlet.oai.read import local_name
from indlet.provider.extract.file import File, Text, parse_xml
from indlet.text.language import language_code

_DC: Final = (
    "http://purl.org/dc/elements/1.1/",
    "http://purl.org/dc/terms/",
    "http://purl.org/dc/elements/1.0/",
)
_XML_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"

# Root element -> (element, path) in ElementPath, any namespace. The first title found is the title.
_KNOWN: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "TEI": (
        ("title", "{*}teiHeader/{*}fileDesc/{*}titleStmt/{*}title"),
        ("creator", "{*}teiHeader/{*}fileDesc/{*}titleStmt/{*}author"),
        ("contributor", "{*}teiHeader/{*}fileDesc/{*}titleStmt/{*}editor"),
        ("publisher", "{*}teiHeader/{*}fileDesc/{*}publicationStmt/{*}publisher"),
        ("date", "{*}teiHeader/{*}fileDesc/{*}publicationStmt/{*}date"),
        ("rights", "{*}teiHeader/{*}fileDesc/{*}publicationStmt/{*}availability"),
        ("subject", "{*}teiHeader/{*}profileDesc/{*}textClass/{*}keywords//{*}term"),
    ),
    "article": (
        ("title", "{*}front/{*}article-meta/{*}title-group/{*}article-title"),  # JATS
        ("title", "{*}info/{*}title"), ("title", "{*}articleinfo/{*}title"), ("title", "{*}title"),  # DocBook
        ("creator", "{*}front/{*}article-meta/{*}contrib-group/{*}contrib/{*}name"),
        ("creator", "{*}info//{*}author"), ("creator", "{*}articleinfo//{*}author"),
        ("description", "{*}front/{*}article-meta/{*}abstract"), ("description", "{*}info/{*}abstract"),
        ("subject", "{*}front/{*}article-meta/{*}kwd-group/{*}kwd"),
        ("source", "{*}front/{*}journal-meta//{*}journal-title"),
        ("publisher", "{*}front/{*}journal-meta//{*}publisher-name"),
        ("identifier", "{*}front/{*}article-meta/{*}article-id"),
        ("date", "{*}front/{*}article-meta/{*}pub-date"), ("date", "{*}info/{*}pubdate"),
        ("date", "{*}info/{*}date"), ("date", "{*}articleinfo/{*}pubdate"),
    ),
    "book": (
        ("title", "{*}info/{*}title"), ("title", "{*}bookinfo/{*}title"), ("title", "{*}title"),
        ("creator", "{*}info//{*}author"), ("creator", "{*}bookinfo//{*}author"),
        ("publisher", "{*}info/{*}publisher"), ("date", "{*}info/{*}pubdate"),
        ("date", "{*}bookinfo/{*}pubdate"),
    ),
    "mods": (
        ("title", "{*}titleInfo"), ("creator", "{*}name"), ("subject", "{*}subject/{*}topic"),
        ("description", "{*}abstract"), ("description", "{*}note"),
        ("publisher", "{*}originInfo/{*}publisher"),
        ("date", "{*}originInfo/{*}dateIssued"), ("date", "{*}originInfo/{*}dateCreated"),
        ("language", "{*}language/{*}languageTerm"), ("identifier", "{*}identifier"),
        ("identifier", "{*}location/{*}url"), ("coverage", "{*}subject/{*}geographic"),
        ("rights", "{*}accessCondition"), ("type", "{*}genre"),
    ),
    "rss": (("title", "{*}channel/{*}title"), ("description", "{*}channel/{*}description"),
            ("language", "{*}channel/{*}language"), ("date", "{*}channel/{*}pubDate")),
    "feed": (("title", "{*}title"), ("description", "{*}subtitle"), ("creator", "{*}author/{*}name"),
             ("date", "{*}updated")),
    "FictionBook": (
        ("title", "{*}description/{*}title-info/{*}book-title"),
        ("creator", "{*}description/{*}title-info/{*}author"),
        ("language", "{*}description/{*}title-info/{*}lang"),
    ),
}  # fmt: skip
_KNOWN_AS: Final = {
    "TEI.2": "TEI",
    "teiCorpus": "TEI",
    "modsCollection": "mods",
    "section": "book",
    "chapter": "book",
}
_GENERIC: Final = (("title", "{*}title"), ("title", "{*}head/{*}title"), ("title", ".//{*}title"),
                   ("creator", "{*}author"), ("creator", "{*}creator"), ("date", "{*}date"))  # fmt: skip


def extract(file: File) -> Iterator[Document]:
    root = parse_xml(file.data)
    pairs = dublin_core(root) or _vocabulary(root)
    language = language_code(root.get(_XML_LANG) or root.get("lang") or "")
    if language and not any(element == "language" for element, _ in pairs):
        pairs.append(("language", language))
    text = Text(file.limits)
    flow(root, text)
    yield Document(str(text), build_metadata(pairs), file.media_type, language=language)


def dublin_core(root: etree._Element) -> list[tuple[str, str]]:
    """The Dublin Core elements of the first element that has any as children; none where there is no such."""
    holder = None
    for namespace in _DC:
        first = next(root.iter(f"{{{namespace}}}*"), None)
        if first is not None:
            holder = first.getparent()
            break
    if holder is None:
        return []
    pairs = []
    for child in holder:
        is_term = isinstance(child.tag, str) and child.tag.startswith(tuple(f"{{{space}" for space in _DC))
        if is_term and (element := element_of(local_name(child))):
            pairs.append((element, content(child)))
    return pairs


def content(node: etree._Element) -> str:
    """All text inside the element."""
    return "".join(map(str, node.itertext()))


def _vocabulary(root: etree._Element) -> list[tuple[str, str]]:
    name = local_name(root)
    name = _KNOWN_AS.get(name, name)
    if name == "mods" and (inner := root.find("{*}mods")) is not None:
        root = inner
    pairs: list[tuple[str, str]] = []
    for element, path in _KNOWN.get(name, _GENERIC):
        if element == "title" and any(found == "title" for found, _ in pairs):
            continue
        for node in root.iterfind(path):
            value = " ".join(" ".join(str(piece).split()) for piece in node.itertext() if piece.strip())
            if value:
                pairs.append((element, value))
                if element == "title":
                    break
            if len(pairs) > 1000:
                return pairs
    return pairs


def flow(root: etree._Element, text: Text, skip: frozenset[str] = frozenset()) -> None:
    """Adds the text of the tree. An element inside running text joins its neighbours, any other separates."""
    mixed: list[bool] = []
    skipping = 0
    for event, node in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(node.tag, str):
            if event == "end" and not skipping:
                text.add(node.tail)
            continue
        skipped = bool(skip) and node.tag in skip
        if event == "start":
            skipping += skipped
            mixed.append(_is_mixed(node))
            if not skipping:
                if len(mixed) < 2 or not mixed[-2]:
                    text.add("\n")
                text.add(node.text)
        else:
            mixed.pop()
            skipping -= skipped
            if not skipping and mixed:
                text.add(node.tail if node.tail else ("" if mixed[-1] else "\n"))


def _is_mixed(node: etree._Element) -> bool:
    if node.text and not node.text.isspace():
        return True
    return any(child.tail and not child.tail.isspace() for child in node)
