"""What a start tag of a page means: asked once for each tag in each context, kept in a table for the kernel.

A context is what surrounds an element: what the element around it is, the namespaces that are declared, and
those that the canonical form has declared. lxml reads the tag, so that it means here what it means to
`oai.read`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from lxml import etree

from indlet.formats.dublin import element_of
from indlet.kernels import scan as k
from indlet.model import DUBLIN_CORE
from indlet.oai.read import local_name, parsed

# Tags that are kept, and bytes of them: a table starts again when it has more.
MANY: Final = 1 << 13
_BYTES: Final = 1 << 22

_DECLARED = re.compile(rb' xmlns(?::([^=]*))?="([^"]*)"')
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_XML: Final = "http://www.w3.org/XML/1998/namespace"
# What stands in what, by local names in lower case.
_IN_RECORD: Final = {"header": k.HEADER, "metadata": k.METADATA, "index": k.INDEX, "about": k.ABOUT}
_IN_HEADER: Final = {"identifier": k.IDENTIFIER, "datestamp": k.DATESTAMP, "setspec": k.SET}
_COPIED: Final = {
    k.METADATA: k.PART, k.PART: k.INSIDE, k.INSIDE: k.INSIDE,
    k.ABOUT: k.ABOUT_PART, k.ABOUT_PART: k.ABOUT_INSIDE, k.ABOUT_INSIDE: k.ABOUT_INSIDE,
}  # fmt: skip
_LEAVES: Final = frozenset({*_IN_HEADER.values(), k.INDEX})

Namespaces = tuple[tuple[str, str], ...]


class Context(NamedTuple):
    """What surrounds an element. Prefixes stand with their namespaces; the default one is the empty one."""

    role: int
    declared: Namespaces
    written: Namespaces = ()


class TagMeaning(NamedTuple):
    """What a start tag is, its canonical form, and the context of what stands within it."""

    role: int
    canonical: bytes
    inside: Context
    code: int


_REFUSED: Final = TagMeaning(k.REFUSE, b"", Context(k.REFUSE, ()), -1)


class TagTable:
    """The tags that are known, for one thread."""

    def __init__(self) -> None:
        self._contexts: dict[Context, int] = {}
        self._known: list[Context] = []
        self.tags = k.Tags(
            np.zeros(4 * MANY, np.int64), np.zeros(MANY, k.TAG), np.zeros(_BYTES + 8, np.uint8)
        )
        self._count = self._filled = 0
        self.seed = secrets.randbits(62)

    def begin(self, declared: Mapping[str | None, str]) -> None:
        """Get ready for a page whose list declares these namespaces."""
        root = Context(k.LIST, _sorted({prefix or "": uri or "" for prefix, uri in declared.items()}))
        # The list's own context always is the first.
        if self._known[:1] != [root] or self._count > MANY // 2 or self._filled > _BYTES // 2:
            self.__init__()  # type: ignore[misc]
            self._number(root)

    def _number(self, context: Context) -> int:
        number = self._contexts.get(context)
        if number is None:
            number = self._contexts[context] = len(self._known)
            self._known.append(context)
        return number

    def learn(self, tag: bytes, context: int, hashed: int) -> bool:
        """Enter a tag; False if there is no room for it, which means that the page is full of rare ones."""
        meaning = understood(tag, self._known[context])
        size = len(tag) + len(meaning.canonical)
        if self._count == MANY or self._filled + size > _BYTES:
            return False
        tags, begin = self.tags, self._filled
        end = begin + len(tag)
        tags.text[begin : begin + size] = np.frombuffer(tag + meaning.canonical, np.uint8)
        name = len(re.split(rb"[\s/>]", tag, maxsplit=1)[0])
        tags.rows[self._count] = (
            context, begin, end, hashed, name, meaning.role, self._number(meaning.inside), end, begin + size,
            meaning.code, 0,
        )  # fmt: skip
        self._filled += size
        self._count += 1
        slot = hashed & (tags.slots.size - 1)
        while tags.slots[slot]:
            slot = (slot + 1) & (tags.slots.size - 1)
        tags.slots[slot] = self._count
        return True


def understood(tag: bytes, around: Context) -> TagMeaning:
    """What a start tag (less its brackets) means in a context, by the rules of `oai.read`."""
    if tag.startswith(b"?"):  # whose quotation marks mean nothing: elements may stand between them
        return _REFUSED
    declared = dict(around.declared)
    outer = "".join(
        f" xmlns{':' + prefix if prefix else ''}={_quoted(uri)}"
        for prefix, uri in around.declared
        if uri and uri != _XML
    )
    root = parsed(f"<x{outer}>".encode() + b"<%b/></x>" % tag)
    if root is None or len(root) != 1:
        return _REFUSED
    node = root[0]
    declared |= {prefix or "": uri or "" for prefix, uri in node.nsmap.items()}
    # Relative namespaces have no canonical form, and lxml writes that of others as they are.
    if any(not _ABSOLUTE.match(uri) or "&" in uri or "<" in uri for uri in declared.values() if uri):
        return _REFUSED
    role = _role(node, around.role)
    if around.role not in _COPIED:
        return TagMeaning(role, b"", Context(role, _sorted(declared)), -1)
    canonical, written = _canonical(node, dict(around.written))
    name = element_of(local_name(node)) if role == k.INSIDE else ""
    code = DUBLIN_CORE.index(name) if name else -1
    return TagMeaning(role, canonical, Context(role, _sorted(declared), _sorted(written)), code)


def _role(node: etree._Element, around: int) -> int:
    name = local_name(node).lower()
    if around in _COPIED:
        return _COPIED[around]
    if around in _LEAVES or around == k.REFUSE:
        return k.REFUSE
    if around == k.LIST:
        return k.RECORD if name == "record" and not node.get("status") else k.REFUSE
    if around in (k.HEADER, k.GONE):
        return _IN_HEADER.get(name, k.IGNORED)
    if around != k.RECORD:
        return k.IGNORED
    role = _IN_RECORD.get(name, k.IGNORED)
    status = node.get("status", "") if role == k.HEADER else ""
    if status.strip().lower() in ("deleted", "delete"):
        return k.GONE if status == "deleted" else k.REFUSE
    return role


def _canonical(node: etree._Element, written: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """The start tag in exclusive canonical form, given what is declared around it there."""
    alone = etree.tostring(node, method="c14n", exclusive=True, with_tail=False)
    start = alone[: alone.rindex(b"</")]
    out, at = list[bytes](), start.find(b" ") if b" " in start else len(start) - 1
    out.append(start[:at])
    if not str(node.tag).startswith("{") and written.get(""):
        out.append(b' xmlns=""')
        written[""] = ""
    while found := _DECLARED.match(start, at):
        prefix, uri = (found[1] or b"").decode(), found[2].decode()
        if written.get(prefix) != uri:
            out.append(found[0])
            written[prefix] = uri
        at = found.end()
    return b"".join([*out, start[at:]]), written


def _quoted(uri: str) -> str:
    return '"' + uri.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;") + '"'


def _sorted(namespaces: Mapping[str, str]) -> Namespaces:
    return tuple(sorted(namespaces.items()))
