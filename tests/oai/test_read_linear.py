"""Reading foreign bytes costs time in proportion to their number, whatever they are."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from lxml import etree

from indlet.errors import BadResponse
from indlet.formats.files import xml_records
from indlet.net import client
from indlet.oai import answers, markup, read, read_repair
from indlet.oai.describe import is_email
from indlet.oai.names import OAI_NAMESPACE
from indlet.service.harvest import fetch_page
from indlet.text.charset import charset

HEAD = f'<?xml version="1.0"?><OAI-PMH xmlns="{OAI_NAMESPACE}">'.encode()
TAIL = b"</OAI-PMH>"
MODULES: tuple[ModuleType, ...] = (markup, read, read_repair, answers, client, fetch_page)


class Counted(bytes):
    """Bytes that count how many of them are looked at."""

    visited = 0

    def find(self, *arguments: object) -> int:
        found = bytes.find(self, *arguments)  # type: ignore[arg-type]
        start = arguments[1] if len(arguments) > 1 else 0
        end = arguments[2] if len(arguments) > 2 and arguments[2] is not None else len(self)
        assert isinstance(start, int) and isinstance(end, int)
        self.visited += (found if found >= 0 else min(end, len(self))) - start + 1
        return found


# Forms that would cost quadratic or exponential time, by the number of their parts.
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "empty comments before the root": lambda n: b"<?xml?>" + b"<!---->" * n,
    "unclosed comments": lambda n: HEAD + b"<!--" * n,
    "unclosed comments before the root": lambda n: b"<!--" * n + HEAD,
    "comments within a document type": lambda n: b"<!DOCTYPE a [" + b"<!--" * n,
    "instructions within a document type": lambda n: b"<!DOCTYPE a [" + b"<?" * n,
    "quotes within a document type": lambda n: b"<!DOCTYPE a [" + b"\"'" * n + b"'",
    "an unclosed document type": lambda n: b"<!DOCTYPE a [" + b"<!ENTITY " * n,
    "nested document types": lambda n: b"<!DOCTYPE a [" * n,
    "unclosed instructions": lambda n: HEAD + b"<?" * n,
    "unclosed declarations": lambda n: HEAD + b"<?xml " * n,
    "unclosed CDATA sections": lambda n: HEAD + b"<![CDATA[" * n,
    "CDATA sections and comments": lambda n: HEAD + b"<![CDATA[<!--" * n + b"-->" * n,
    "unclosed records": lambda n: HEAD + b"<record>" * n + TAIL,
    "records without an end of their tag": lambda n: HEAD + b"<record " * n,
    "records closed by another prefix": lambda n: HEAD + b"<a:record></b:record>" * n + TAIL,
    "records closed at the end": lambda n: HEAD + b"<record " * n + b"></record>" + TAIL,
    "closing tags with much space": lambda n: HEAD + (b"</record" + b" " * 100) * n,
    "a record in a record": lambda n: HEAD + b"<record>" * n + b"</record>" * n + TAIL,
    "unclosed roots": lambda n: b"<OAI-PMH " * n,
    "closing roots with much space": lambda n: HEAD + (b"</OAI-PMH" + b" " * 100) * n,
    "identifiers with much space": lambda n: HEAD + b"<record><identifier>" + b" " * n + b"x</record>" + TAIL,
    "bare less-than signs": lambda n: b"<" * n,
    "bare ampersands": lambda n: HEAD + b"&" * n + TAIL,
    "brackets": lambda n: HEAD + b"]]>" * n + TAIL,
    "white space": lambda n: b" " * n + HEAD + b" " * n,
    "names without end": lambda n: HEAD + b"<" + b"a" * n + b" " + b"b" * n,
    "stray bytes": lambda n: HEAD + b"\xff\xe2\x82" * n + TAIL,
    "entities that nobody uses": lambda n: b"<!DOCTYPE a [%b]>" % b"".join(
        b'<!ENTITY e%d "x">' % i for i in range(n)) + HEAD + b"&e;" * n + TAIL,
    "prefixes that nobody declares": lambda n: HEAD + b"".join(
        b"<p%d:a/>" % i for i in range(n)) + b"<" + TAIL,
    "declarations of namespaces": lambda n: HEAD[:-1] + b"".join(
        b' xmlns:p%d="u"' % i for i in range(n)) + b"><ListRecords>"
        + b"<record/>" * n + b"</ListRecords>" + TAIL,
    "a broken page under a long root": lambda n: HEAD[:-1] + b' a="%b">' % (b"x" * 20 * n) + b"<ListRecords>"
        + b"<record><a></b></record>" * n + b"</ListRecords>" + TAIL,
    "nested elements": lambda n: HEAD + b"<a>" * n + b"</a>" * n + TAIL,
    "attributes": lambda n: HEAD[:-1] + b"".join(b' a%d="u"' % i for i in range(n)) + b">" + TAIL,
}  # fmt: skip

SCANNERS: dict[str, Callable[[bytes], object]] = {
    "without_comments": markup.without_comments,
    "by_cdata": markup.by_cdata,
    "prolog": lambda body: list(markup.prolog(body)),
    "is_html": markup.is_html,
    "records": markup.records,
    "root_tag": markup.root_tag,
    "root_end": markup.root_end,
    "identifier": markup.identifier,
}


def visited(scan: Callable[[bytes], object], body: bytes) -> int:
    counted = Counted(body)
    with contextlib.suppress(BadResponse):
        scan(counted)
    return counted.visited


@pytest.mark.parametrize("scanner", SCANNERS)
@pytest.mark.parametrize("form", HOSTILE)
def test_twice_the_bytes_are_twice_the_steps(form: str, scanner: str) -> None:
    once, twice = HOSTILE[form](1000), HOSTILE[form](2000)
    steps = [visited(SCANNERS[scanner], body) for body in (once, twice)]
    assert steps[1] <= 2.3 * max(steps[0], len(once))
    assert steps[1] <= 20 * len(twice)


@pytest.mark.parametrize("form", HOSTILE)
def test_a_hostile_megabyte_is_read_or_refused(form: str) -> None:
    """The old expressions took hours, or did not end, for some of these."""
    size = len(HOSTILE[form](1000)) / 1000
    try:
        page = read.read(HOSTILE[form](int((1 << 20) / size)))
    except BadResponse:
        return
    assert len(page.items) + len(page.problems) < 1 << 20


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_no_pattern_can_match_more_than_some_bytes(module: ModuleType) -> None:
    """What a pattern tries at one place is then bounded, and what it costs in all is linear."""
    found = [value for value in vars(module).values() if isinstance(value, re.Pattern)]
    found += [entry[0] for entry in getattr(module, "_MISPLACED", ())]
    for pattern in found:
        assert re._parser.parse(pattern.pattern).getwidth()[1] <= 1600, pattern  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_patterns_are_made_once_where_the_test_before_sees_them(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    assert node.value.id != "re" or node.attr in ("Match", "Pattern"), ast.unparse(function)


LAUGHS = b'<!ENTITY a0 "lol">' + b"".join(
    b'<!ENTITY a%d "%b">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 9)
)
LIST = (
    b"<ListRecords><record><header><identifier>oai:x:%b</identifier><datestamp>2024-05-01</datestamp></header>"
    b'<metadata><dc a="&a8;">&a8;</dc></metadata></record></ListRecords>'
)
FRAME = f'<OAI-PMH xmlns="{OAI_NAMESPACE}" b="&a8;">'.encode()


@pytest.mark.parametrize(
    "prologue",
    [
        b"<!DOCTYPE x [%b]>",
        b"<!-- <a --><!DOCTYPE x [%b]>",
        b"<?a <a ?><!DOCTYPE x [%b]>",
        b"<!-- -- --><!DOCTYPE x [%b]>",
        b"<!DOCTYPE y><!DOCTYPE x [%b]>",
        b"<!\x01DOCTYPE x [%b]>",
        b"<!DOCTYPE y><!\x01DOCTYPE x [%b]>",
        b"<!DOC<!DOCTYPE y>TYPE x [%b]>",
        b"<!DOCTYPE y ']' [<!-- ]> --> <?b ]> ?> \"]>\" %b]>",
        b"<!doctype x [%b]>",
    ],
)
def test_no_document_type_comes_to_the_parser(prologue: bytes) -> None:
    body = (
        b'<?xml version="1.0"?>' + prologue.replace(b"%b", LAUGHS) + FRAME + LIST.replace(b"%b", b"1") + TAIL
    )
    try:
        page = read.read(body)
    except BadResponse:
        return
    assert page.root is not None
    assert len(etree.tostring(page.root)) < 20 * len(body)
    assert sum(len(item.packed.raw) for item in page.items if item.packed is not None) < 20 * len(body)


def test_a_document_type_in_another_encoding_is_not_seen() -> None:
    """Where the declaration escapes us, the parser must not follow it."""
    hidden = (b"<!DOCTYPE x [%b]>" % LAUGHS + FRAME + LIST + TAIL).decode().encode("utf-7")
    for declaration in (b"<?xml version='>' encoding='utf-7'?>", b"<?xml version='1.0' encoding='utf-7' ?>"):
        with pytest.raises(BadResponse):
            read.read(declaration + hidden)


def test_a_comment_that_holds_a_tag_does_not_hide_a_document_type() -> None:
    body = b"<?xml version='1.0'?><!-- <a --><!DOCTYPE x SYSTEM 'file:///etc/passwd'>" + HEAD[21:]
    page = read.read(body + b"<responseDate>2024-05-01</responseDate>" + TAIL)
    assert page.repairs["document type removed"] == 1
    assert page.response_date == "2024-05-01"


def test_an_email_that_would_backtrack_for_ever() -> None:
    assert is_email("a@b.c") and is_email("a@b@c.d.e") and is_email("@@a.b")
    for other in ("", "a", "@a.b", "a@b", "a@.b", "a@b.", "a b@c.d", "a@b.c ", "a@" + "a." * 100_000 + " "):
        assert not is_email(other)


def test_a_page_in_what_is_no_character_set_is_read_at_once() -> None:
    """Decoding Punycode takes time with the square of its length: 160 kB took seconds."""
    assert [
        charset(name) for name in ("punycode", "idna", "undefined", "unicode_escape", "a\0b", "none")
    ] == [""] * 6
    assert charset("Latin1") == "iso8859-1" and charset("KOI8-R") == "koi8-r"
    body = b'<?xml version="1.0" encoding="punycode"?><OAI-PMH>\xff' + b"a" * 500_000 + b"-" + b"a" * 500_000
    with pytest.raises(BadResponse):
        read.read(body)
    text = b'<?xml version="1.0" encoding="idna"?><record>\xff</record><record>b</record>'
    assert list(xml_records(text, ("record",), lambda element: element.text))[1] == "b"


def test_what_is_kept_of_broken_records_has_a_limit() -> None:
    """Each would be kept with the declarations around it."""
    declared = b"urn:" + b"y" * 60_000
    body = b'<ListRecords xmlns:x="%b">%b</ListRecords>' % (declared, b"<record/>" * 5000)
    page = read.read(b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">%b</OAI-PMH>' % body)
    assert len(page.problems) == 5000
    assert sum(len(problem.raw) for problem in page.problems) <= 20 * len(body) + 2_000_000


def test_about_parts_have_a_limit() -> None:
    declared = b"urn:" + b"y" * 60_000
    header = b"<header><identifier>oai:x:%d</identifier><datestamp>2024-01-01</datestamp></header>"
    records = [
        b"<record>" + header % n + b"<about><a>" + b"<x:a/>" * (n * 1000) + b"</a></about></record>"
        for n in range(2)
    ]
    body = b'<ListRecords xmlns:x="%b">%b</ListRecords>' % (declared, b"".join(records))
    page = read.read(b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">%b</OAI-PMH>' % body)
    assert [item.identifier for item in page.items] == ["oai:x:0"]
    assert [problem.where for problem in page.problems] == ["oai:x:1"]
