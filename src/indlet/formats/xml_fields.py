"""XML as fields and back: an element by its path, its leaves as subfields, attributes as "@name".

A leaf that has a `type` is named with it ("namePart:family"), so that a table can tell such leaves apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final

from lxml import etree

from indlet.formats.record import Field, Fields
from indlet.oai.xml import FORBIDDEN, NAME

# Deeper elements, and more of them, are no description of a work.
DEPTH: Final = 8
ELEMENTS: Final = 20_000


def flatten(root: etree._Element) -> list[Field]:
    """Every element below the root as a field, with all leaves in it as subfields."""
    found: list[Field] = []
    numbers = count()
    for child in root:
        if isinstance(child.tag, str):
            _flatten(child, "", 1, found, numbers)
    return found


def _flatten(
    node: etree._Element, above: str, depth: int, found: list[Field], numbers: count[int]
) -> list[tuple[str, str, int]]:
    """The leaves of an element: path within the element around it, value, number."""
    if depth > DEPTH or len(found) > ELEMENTS:
        raise ValueError(f"nested deeper than {DEPTH} or more than {ELEMENTS} elements")
    name = _local(node)
    path = f"{above}{name}"
    place = len(found)
    found.append(Field(path))
    leaves: list[tuple[str, str, int]] = []
    # Text between elements makes them mark-up of that text.
    mixed = (node.text or "").strip() or any((child.tail or "").strip() for child in node)
    for child in node if not mixed else ():
        if isinstance(child.tag, str):
            leaves += _flatten(child, f"{path}/", depth + 1, found, numbers)
    value = " ".join("".join(map(str, node.itertext())).split()) if mixed else ""
    number = next(numbers)
    attributes = [(f"@{str(key).rpartition('}')[2]}", str(held)) for key, held in node.attrib.items()]
    found[place] = Field(
        path,
        value,
        "",
        tuple((code, text) for code, text, _ in leaves) + tuple(attributes),
        (number, *(each for _, _, each in leaves), *(-1 for _ in attributes)),
    )
    inner = [(f"{name}/{code}", text, each) for code, text, each in leaves]
    if value:
        kind = node.get("type")
        inner.append((f"{name}:{kind}" if kind else name, value, number))
    return inner


def _local(node: etree._Element) -> str:
    return str(node.tag).rpartition("}")[2]


def build_xml(root: etree._Element, namespace: str, fields: Fields, joined: Iterable[str] = ()) -> bytes:
    """The root with an element for each field; fields below one of `joined` share that element.

    What has no name that an element can have is left out.
    """
    shared: dict[str, etree._Element] = {}
    for field in fields:
        *above, last = field.tag.split("/")
        if not all(map(NAME.fullmatch, (*above, last))):
            continue
        node = root
        for depth, name in enumerate(above):
            if depth == 0 and name in joined and name in shared:
                node = shared[name]
                continue
            node = etree.SubElement(node, f"{{{namespace}}}{name}")
            if depth == 0:
                shared[name] = node
        node = etree.SubElement(node, f"{{{namespace}}}{last}")
        node.text = FORBIDDEN.sub("", field.value) or None
        for code, value in field.subfields:
            if code.startswith("@"):
                if NAME.fullmatch(code[1:]):
                    node.set(code[1:], FORBIDDEN.sub("", value))
            elif all(map(NAME.fullmatch, code.partition(":")[0].split("/"))):
                _leaf(node, namespace, code, value)
    return etree.tostring(root)


def _leaf(node: etree._Element, namespace: str, code: str, value: str) -> None:
    path, _, kind = code.partition(":")
    for name in path.split("/"):
        node = etree.SubElement(node, f"{{{namespace}}}{name}")
    node.text = FORBIDDEN.sub("", value)
    if kind:
        node.set("type", FORBIDDEN.sub("", kind))
