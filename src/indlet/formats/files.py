"""Records out of files that hold many: XML an element at a time, whatever stands around the records."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, TypeVar

from lxml import etree

from indlet.formats.record import Broken
from indlet.oai.names import OAI_NAMESPACE
from indlet.text.charset import charset

T = TypeVar("T")

RAW_BYTES: Final = 65_536
PROBLEMS: Final = 1_000  # XML errors after which a file is given up
# A character that XML does not allow is left out of its record, which is whole otherwise.
_FLAWS: Final = ("ERR_INVALID_CHAR", "ERR_UNDECLARED_ENTITY", "WAR_UNDECLARED_ENTITY")
_WRAPPER: Final = f"{{{OAI_NAMESPACE}}}record"  # stands around records in saved answers of a repository
_PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml([^>]{0,200})\?>)?")


def xml_records(
    data: bytes, names: tuple[str, ...], make: Callable[[etree._Element], T]
) -> Iterator[T | Broken]:
    """What each element of these local names makes, and what is broken: records, the end of a cut file.

    A record is taken only if the XML is in order from the end of the one before to its own end. A catalogue
    of a million records needs the memory of one.
    """
    parser = etree.XMLPullParser(
        events=("end",),
        tag=tuple(f"{{*}}{name}" for name in names),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    number, known, flawed = 0, 0, ""
    try:
        for piece in chain(_up_to_ends(_one_root(data, names), names), (None,)):
            if piece is None:
                parser.close()
            else:
                parser.feed(piece)
            log = parser.feed_error_log
            problems = [entry for entry in list(log)[known:] if entry.level_name == "FATAL"]
            known = len(log)
            torn = next((entry.message for entry in problems if entry.type_name not in _FLAWS), "")
            flawed = flawed or next((entry.message for entry in problems), "")
            for _, element in parser.read_events():
                assert isinstance(element, etree._Element)
                if element.tag == _WRAPPER:
                    _forget(element)
                    continue
                number += 1
                if torn:
                    raw = etree.tostring(element)[:RAW_BYTES]
                    yield Broken(number, f"XML that is not well-formed: {torn}", raw)
                else:
                    try:
                        yield make(element)
                    except (ValueError, LookupError) as error:
                        raw = etree.tostring(element)[:RAW_BYTES]
                        yield Broken(number, f"broken XML record: {error}", raw)
                _forget(element)
            if known > PROBLEMS:
                yield Broken(number + 1, f"more than {PROBLEMS} errors of XML; the rest is not read")
                return
    except etree.XMLSyntaxError as error:
        yield Broken(number + 1, f"XML broken after record {number}: {error}")
        return
    if not number:
        yield Broken(1, f"no element {' or '.join(names)} in this file; check its format")
    elif flawed:
        yield Broken(number + 1, f"XML that is not well-formed: {flawed}; more records may be lost")


def _up_to_ends(data: bytes, names: tuple[str, ...]) -> Iterator[bytes]:
    """The data in pieces that end where a record may end, so that errors are known to be before or after."""
    ends = re.finditer(rb"</(?:[\w.-]+:)?(?:%b)\s*>" % "|".join(names).encode(), data)
    start = 0
    for end in chain((found.end() for found in ends), (len(data),)):
        yield data[start:end]
        start = end


def _forget(element: etree._Element) -> None:
    element.clear()
    while (before := element.getprevious()) is not None:
        parent = before.getparent()
        if parent is None:
            break
        parent.remove(before)


def _one_root(data: bytes, names: tuple[str, ...]) -> bytes:
    """The data, within one element where records follow each other without."""
    start = _PROLOGUE.match(data)
    rest = data[start.end() :] if start else data
    alike = "|".join(names).encode()
    if not re.match(rb"\s*<(?:\w+:)?(?:%b)[\s>]" % alike, rest):
        return data
    if len(re.findall(rb"<(?:\w+:)?(?:%b)[\s>]" % alike, rest)) < 2:
        return data
    told = re.search(rb"encoding=[\"']([\w.-]+)", start[1] or b"") if start else None
    if told:
        # Python knows more names of encodings than libxml2.
        with contextlib.suppress(LookupError, UnicodeError):
            rest = rest.decode(charset(told[1].decode("ascii", "replace")), "replace").encode()
    return b"<records>" + rest + b"</records>"


def xml_around(name: str, namespace: str = "") -> tuple[bytes, bytes]:
    """What begins and ends a file of XML records."""
    declared = f' xmlns="{namespace}"' if namespace else ""
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}{declared}>\n'
    return head.encode(), f"</{name}>\n".encode()
