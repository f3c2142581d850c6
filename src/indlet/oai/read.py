"""Any repository's answer becomes a `Page`: tolerant of what can be repaired, strict about what is missing.

A page that was cut off raises; a record that cannot be read costs that record and becomes a `Problem`;
whatever was mended is counted in `repairs`. Elements are known by their local names, for many a repository
gets the namespace wrong.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from lxml import etree

from indlet.errors import BadResponse
from indlet.limits import Budget
from indlet.oai import markup
from indlet.oai.canonical import as_it_came, canonical
from indlet.oai.names import FT_NAMESPACE, OAI_NAMESPACE
from indlet.oai.read_repair import decoded, repaired, without_doctype

if TYPE_CHECKING:
    from indlet.model import TermVector


class MetadataPart(NamedTuple):
    """A record's metadata: in canonical form; what they say by the names of their elements, as JSON; and,
    where these could be told at once, the record's properties as JSON and the number of its resource."""

    raw: bytes
    described: bytes
    properties: bytes = b""
    resource: int = 0


class Item(NamedTuple):
    """A record of a list, or a header alone.

    The tolerant reader gives elements. A faster one gives what they say: `part` for `metadata`, `vector` for
    `index_part`, `source` for `whole`.
    """

    identifier: str
    datestamp: str
    sets: tuple[str, ...] = ()
    deleted: bool = False
    metadata: etree._Element | None = None
    index_part: etree._Element | None = None
    about: tuple[bytes, ...] = ()
    whole: etree._Element | None = None  # the record's element, with all that it holds
    part: MetadataPart | None = None
    vector: TermVector | None = None
    source: tuple[bytes, int, int] | None = None  # a page, and from where to where the record stands there
    budget: Budget | None = None  # of the response that it came with
    policy: str = ""  # digest that the index part names, where it is not the one that was expected


class Problem(NamedTuple):
    """A record that could not be read."""

    where: str
    reason: str
    raw: bytes


@dataclass(slots=True)
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
    root: etree._Element | None = None
    budget: Budget = field(default_factory=lambda: Budget(0))


class Truncated(BadResponse):
    """The answer stops before its end."""


_VERBS: Final = {
    "identify": "Identify", "listrecords": "ListRecords", "listidentifiers": "ListIdentifiers",
    "getrecord": "GetRecord", "listsets": "ListSets", "listmetadataformats": "ListMetadataFormats",
    "listindexformats": "ListIndexFormats",
}  # fmt: skip
# Before version 2.0 each verb had a root and a namespace of its own.
_FORMER = re.compile(
    rb"<((?:[\w.-]{1,100}:)?(?:Identify|GetRecord|List\w{1,30}))\b"
    rb"""[^>]{0,1000}["']http://www\.openarchives\.org/OAI/1\.[01]/OAI_"""
)
_TAG_NAME = re.compile(rb"[^\s>]{1,200}")
# What goes with each record that is read or kept alone: declarations of the elements around it.
CONTEXT_BYTES: Final = 1 << 16


def read(body: bytes, charset: str = "") -> Page:
    """The page that a body holds."""
    if not body.strip():
        raise BadResponse("an empty answer")
    budget = Budget(len(body))
    body, repairs = decoded(body, charset)
    if body.count(b"<") > markup.TAGS:
        raise BadResponse(f"an answer with more than {markup.TAGS} tags")
    if markup.is_html(body):
        raise BadResponse("an HTML page instead of an OAI-PMH response")
    body, more = without_doctype(body)
    repairs += more
    body = _trimmed(_as_now(body), repairs)
    root = parsed(body)
    if root is None:
        # Where a document type was, an entity that is left stands for something we will not look for.
        body, more = repaired(body, foreign_entities="document type removed" not in repairs)
        repairs += more
        body, more = without_doctype(body)  # one that the repair has brought to light
        repairs += more
        root = parsed(body)
    page = Page(repairs=repairs, budget=budget)
    if root is not None:
        _fill(page, root)
    else:
        _salvage(page, body)
    return page


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


def _fill(page: Page, root: etree._Element) -> None:
    page.root = root
    namespace = str(root.tag).rpartition("}")[0].removeprefix("{")
    page.extended = namespace == FT_NAMESPACE
    if namespace not in (OAI_NAMESPACE, FT_NAMESPACE):
        page.repairs["missing namespaces"] += 1
    for node in root:
        name = local_name(node)
        if name == "responseDate":
            page.response_date = text_of(node)
        elif name == "error":
            page.errors.append((node.get("code", "").strip(), text_of(node)))
        elif verb := _VERBS.get(name.lower()):
            page.verb = verb
            if sum(len(p or "") + len(uri) for p, uri in node.nsmap.items()) > CONTEXT_BYTES:
                raise BadResponse(f"declarations of namespaces of more than {CONTEXT_BYTES} bytes")
            if verb in ("ListRecords", "ListIdentifiers", "GetRecord", "ListSets"):
                _list(page, node)
        elif name.lower() == "resumptiontoken":
            page.repairs["misplaced resumption tokens"] += 1
            _token(page, node)


def _list(page: Page, container: etree._Element) -> None:
    for node in container:
        name = local_name(node).lower()
        if name == "record":
            _record(page, node)
        elif name == "header":
            _add(page, node, node, None, None, ())
        elif name == "resumptiontoken":
            _token(page, node)
        elif name == "responsedate":  # here and in the next branch: OAI-PMH 1
            page.response_date = page.response_date or text_of(node)
        elif name == "identifier" and page.verb == "ListIdentifiers" and text_of(node):
            page.items.append(Item(text_of(node), "", deleted=node.get("status") == "deleted"))


def _token(page: Page, node: etree._Element) -> None:
    page.token = text_of(node) or page.token or ""  # of two, the one that leads on
    if (size := _number(node.get("completeListSize"))) is not None:
        page.size = size
    if (cursor := _number(node.get("cursor"))) is not None:
        page.cursor = cursor


def _number(value: str | None) -> int | None:
    digits = (value or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 15 else None


def _record(page: Page, node: etree._Element) -> None:
    header = metadata = index = None
    abouts = list[etree._Element]()
    for child in node:
        name = local_name(child).lower()
        if name == "header":
            header = child
        elif name == "metadata":
            if metadata is not None:
                page.repairs["records with metadata twice: the first taken"] += 1
                continue
            inside = [c for c in child if isinstance(c.tag, str)]
            metadata = inside[0] if inside else None
            if len(inside) > 1 and not len(inside[0]):
                metadata = child  # what should be in one element stands there without it
                page.repairs["metadata without an element around them"] += 1
            if metadata is None and (metadata := _written_as_text(child)) is not None:
                page.repairs["metadata written as text"] += 1
        elif name == "index":
            index = next((c for c in child if isinstance(c.tag, str)), None)
        elif name == "about":
            abouts += [c for c in child if isinstance(c.tag, str)]
    try:
        about = tuple([canonical(c, page.budget) for c in abouts])
    except BadResponse as e:
        named = (text_of(c) for c in (() if header is None else header) if _is_identifier(c))
        page.problems.append(Problem(next(named, ""), str(e), as_it_came(node, page.budget)))
        return
    _add(page, node, header, metadata, index, about)


def _is_identifier(node: etree._Element) -> bool:
    return local_name(node).lower() == "identifier"


def _written_as_text(container: etree._Element) -> etree._Element | None:
    """The element that a container's text spells out, escaped or in a CDATA section."""
    text = (container.text or "").strip()
    if not text.startswith("<"):
        return None
    body, _ = without_doctype(text.encode("utf-8", "replace"))
    return parsed(body)


def _add(
    page: Page,
    node: etree._Element,
    header: etree._Element | None,
    metadata: etree._Element | None,
    index: etree._Element | None,
    about: tuple[bytes, ...],
) -> None:
    identifier = datestamp = ""
    sets = list[str]()
    for child in header if header is not None else ():
        name = local_name(child).lower()
        if name == "identifier":
            identifier = text_of(child)
        elif name == "datestamp":
            datestamp = text_of(child)
        elif name == "setspec" and (spec := "".join(text_of(child).split())):
            sets.append(spec)
    if not identifier:
        page.problems.append(Problem("", "a record without identifier", as_it_came(node, page.budget)))
        return
    status = header.get("status", "") if header is not None else ""
    if not status and node.get("status"):
        status = node.get("status", "")
        if page.root is None or page.root.get("version") != "1":
            page.repairs["status of a record beside its header"] += 1
    deleted = status.strip().lower() in ("deleted", "delete")
    if deleted and status != "deleted":
        page.repairs["spelling of status"] += 1
    about_it = (identifier, datestamp, tuple(dict.fromkeys(sets)), deleted)
    page.items.append(Item(*about_it, metadata, index, about, whole=node, budget=page.budget))


def _salvage(page: Page, body: bytes) -> None:
    """Record by record: what is not well-formed costs its record, and the frame must be sound."""
    opening = markup.root_tag(body)
    records = markup.records(body) if opening else []
    if not records or len(opening) > CONTEXT_BYTES:
        raise BadResponse("not well-formed XML, and no single record in it can be told apart")
    pieces, last = list[bytes](), 0
    for begin, end in records:
        pieces.append(body[last:begin])
        last = end
    pieces.append(body[last:])
    frame = parsed(b"".join(pieces))
    if frame is None:
        raise BadResponse("not well-formed XML outside its records")
    name = _TAG_NAME.match(opening, 1)
    closing = b"</" + (name[0] if name else b"") + b">"
    _fill(page, frame)
    page.repairs["pages taken record by record"] += 1
    for begin, end in records:
        piece = body[begin:end]
        try:
            page.budget.charge(len(opening) + len(piece))
            alone = parsed(opening + piece + closing)
            reason = "" if alone is not None else f"not well-formed XML{_fault(opening + piece + closing)}"
        except BadResponse as e:
            alone, reason = None, str(e)
        if alone is None:
            where = html.unescape(markup.identifier(piece).decode("utf-8", "replace"))
            page.problems.append(Problem(where, reason, piece))
        else:
            _record(page, alone[0])


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
    "as_it_came",
    "canonical",
    "local_name",
    "read",
    "text_of",
]
