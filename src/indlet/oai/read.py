"""A response becomes a `Page`: tolerant of what can be repaired, strict about what is missing.

The core reads what is well-formed (`core/src/page`). What is not is repaired, and then read by the core: a
page that was cut off raises, a record that cannot be repaired costs that record and becomes a `Problem`, and
every repair is counted in `repairs`.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from lxml import etree

from indlet import _core
from indlet.errors import BadResponse
from indlet.limits import Budget
from indlet.model import Packed, TermVector
from indlet.oai import markup
from indlet.oai.canonical import canonical
from indlet.oai.names import OAI_NAMESPACE
from indlet.oai.read_repair import decoded, repaired, without_doctype


class Item(NamedTuple):
    """A record of a list, or a header alone."""

    identifier: str
    datestamp: str
    sets: tuple[str, ...] = ()
    deleted: bool = False
    packed: Packed | None = None  # as its metadata and vector come, read by the names of the elements
    root: str = ""  # the name of the metadata's element, as lxml writes it
    index_part: bytes | None = None  # one that only the reader of its format understands
    about: tuple[bytes, ...] = ()
    policy: str = ""  # digest that the index part names
    source: tuple[bytes, int, int] = (b"", 0, 0)  # a page, and from where to where the record is in it
    budget: Budget | None = None  # of the response that it came with

    @property
    def vector(self) -> TermVector | None:
        """The vector that came in canonical form."""
        made = self.packed
        if made is None or made.vector is None:
            return None
        return TermVector(made.vector, made.length, None, made.language)

    @property
    def raw(self) -> bytes:
        """The record as it came, to be kept with its failure."""
        page, begin, end = self.source
        return page[begin:end]


class Problem(NamedTuple):
    """A record that could not be read."""

    where: str
    reason: str
    raw: bytes


@dataclass
class Page:
    """One response. `token` is None where there was no such element, empty where the list has ended."""

    response_date: str = ""
    verb: str = ""
    items: list[Item] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    token: str | None = None
    cursor: int | None = None
    size: int | None = None
    extended: bool = False
    policies: frozenset[str] = frozenset()  # digests that index parts name, but for the one expected
    repairs: Counter[str] = field(default_factory=Counter)
    budget: Budget = field(default_factory=lambda: Budget(0))
    body: bytes = b""  # well-formed
    is_repaired: bool = False  # what is read is not what came

    @cached_property
    def root(self) -> etree._Element | None:
        """The tree of the response, for verbs that are asked once."""
        return parsed(self.body) if self.body else None


class Truncated(BadResponse):
    """The answer stops before its end."""


# Before version 2.0 each verb had a root and a namespace of its own.
_FORMER = re.compile(
    rb"<((?:[\w.-]{1,100}:)?(?:Identify|GetRecord|List\w{1,30}))\b"
    rb"""[^>]{0,1000}["']http://www\.openarchives\.org/OAI/1\.[01]/OAI_"""
)
_TAG_NAME = re.compile(rb"[^\s>]{1,200}")
# What goes with each record that is read alone: declarations of the elements around it.
CONTEXT_BYTES: Final = 1 << 16


def read(body: bytes, charset: str = "") -> Page:
    """The page that a body holds."""
    if not body.strip():
        raise BadResponse("an empty answer")
    budget = Budget(len(body))
    body, repairs = decoded(body, charset)
    if b"\r" in body:  # XML 1.0, 2.11
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (page := _read(body, budget, repairs)) is not None:
        return page
    problems = list[Problem]()
    for mended in _mend(body, budget, repairs, problems):
        if (page := _read(mended, budget, repairs)) is not None:
            page.problems += problems
            page.is_repaired = True
            return page
    raise BadResponse("XML that nests too deep, or declares namespaces that are none or too many")


def _read(body: bytes, budget: Budget, repairs: Counter[str]) -> Page | None:
    """The page of a body that is well-formed."""
    found = _core.read_page(body, budget.left)
    if found is None:
        return None
    date, verb, extended, token, cursor, size, errors, more, problems, rows, spent = found
    budget.left -= spent
    repairs.update(more)
    items = [
        Item(
            identifier, datestamp, sets, deleted, None if packed is None else Packed._make(packed), root,
            index, abouts, policy, (body, begin, end), budget,
        )
        for identifier, datestamp, sets, deleted, packed, root, index, abouts, policy, begin, end in rows
    ]  # fmt: skip
    failed = [Problem(where, reason, body[begin:end]) for where, reason, begin, end in problems]
    return Page(
        date, verb, items, failed, errors, token, cursor, size, extended,
        repairs=repairs, budget=budget, body=body,
    )  # fmt: skip


def _mend(body: bytes, budget: Budget, repairs: Counter[str], problems: list[Problem]) -> Iterator[bytes]:
    """The body after one more repair at a time, until it is taken. `repairs` and `problems` grow with it."""
    if body.count(b"<") > markup.TAGS:
        raise BadResponse(f"an answer with more than {markup.TAGS} tags")
    if markup.is_html(body):
        raise BadResponse("an HTML page instead of an OAI-PMH response")
    body, more = without_doctype(body)
    repairs += more
    body = _trimmed(_as_now(body), repairs)
    yield body
    if (root := parsed(body)) is not None:
        yield etree.tostring(root, encoding="utf-8")
        return
    # Where a document type was, an entity that is left stands for something we will not look for.
    body, more = repaired(body, foreign_entities="document type removed" not in repairs)
    repairs += more
    body, more = without_doctype(body)  # one that the repair has brought to light
    repairs += more
    yield body
    if (root := parsed(body)) is None:
        body = _salvage(body, budget, problems)
        repairs["pages taken record by record"] += 1
        yield body
        root = parsed(body)
    if root is not None:
        yield etree.tostring(root, encoding="utf-8")


def _as_now(body: bytes) -> bytes:
    """An answer of OAI-PMH 1.0 or 1.1 within the root that it would have today."""
    former = _FORMER.search(body, 0, 4096)
    if former is None or markup.root_tag(body, 4096):
        return body
    end = body.rfind(b"</" + former[1])
    if end < 0:
        raise Truncated("the answer stops before its end")
    end = body.find(b">", end) + 1
    opening = f'<OAI-PMH xmlns="{OAI_NAMESPACE}" version="1">'.encode()
    return opening + body[former.start() : end] + b"</OAI-PMH>"


def _trimmed(body: bytes, repairs: Counter[str]) -> bytes:
    """The body up to the end of its root; without that end it is torn."""
    end = markup.root_end(body)
    if end < 0:
        if markup.root_tag(body):
            raise Truncated("the answer stops before its end")
        if body.lstrip()[:1] == b"<":
            raise BadResponse(f"not an OAI-PMH response: it starts {body[:80]!r}")
        raise BadResponse(f"not XML: it starts {body[:80]!r}")
    if body[end:].strip():
        repairs["garbage after the document"] += 1
    return body[:end]


def parsed(body: bytes) -> etree._Element | None:
    if markup.has_doctype(body):
        return None
    # huge_tree lifts the limit of 10 MB for a text node. What it would also lift, the guard against expanding
    # entities, has nothing to guard: there is no document type. The body itself is bounded by the client.
    parser = etree.XMLParser(
        encoding="utf-8",  # whatever it declares: a document type must not hide in another encoding
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    return root


def local_name(node: etree._Element) -> str:
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def text_of(node: etree._Element | None) -> str:
    return "" if node is None else "".join(node.itertext()).strip()  # type: ignore[arg-type]


def _salvage(body: bytes, budget: Budget, problems: list[Problem]) -> bytes:
    """The body with those of its records that are well-formed. The frame around them must be sound."""
    opening = markup.root_tag(body)
    records = markup.records(body) if opening else []
    if not records or len(opening) > CONTEXT_BYTES:
        raise BadResponse("not well-formed XML, and no single record in it can be told apart")
    frame, last = list[bytes](), 0
    for begin, end in records:
        frame.append(body[last:begin])
        last = end
    if parsed(b"".join([*frame, body[last:]])) is None:
        raise BadResponse("not well-formed XML outside its records")
    name = _TAG_NAME.match(opening, 1)
    closing = b"</" + (name[0] if name else b"") + b">"
    out = list[bytes]()
    for before, (begin, end) in zip(frame, records, strict=True):
        piece = body[begin:end]
        out.append(before)
        try:
            budget.charge(len(opening) + len(piece))
            alone = parsed(opening + piece + closing)
            reason = "" if alone is not None else f"not well-formed XML{_fault(opening + piece + closing)}"
        except BadResponse as e:
            alone, reason = None, str(e)
        if alone is None:
            where = html.unescape(markup.identifier(piece).decode("utf-8", "replace"))
            problems.append(Problem(where, reason, piece))
        else:
            out.append(piece)
    return b"".join([*out, body[last:]])


def _fault(body: bytes) -> str:
    try:
        etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except (etree.XMLSyntaxError, ValueError) as e:
        return f": {e}"
    return ""


__all__ = [
    "Item",
    "Page",
    "Problem",
    "Truncated",
    "canonical",
    "local_name",
    "parsed",
    "read",
    "text_of",
]
