"""Records out of files that hold many: XML an element at a time, whatever stands around the records."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from lxml import etree

from indlet.formats.record import Broken
from indlet.oai.names import OAI_NAMESPACE
from indlet.text.charset import charset

T = TypeVar("T")

RAW_BYTES: Final = 65_536
_WRAPPER: Final = f"{{{OAI_NAMESPACE}}}record"  # stands around records in saved answers of a repository
_PROLOGUE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml([^>]{0,200})\?>)?")


def xml_records(
    data: bytes, names: tuple[str, ...], make: Callable[[etree._Element], T]
) -> Iterator[T | Broken]:
    """What each element of these local names makes; those that are broken, and the end of a torn file.

    A catalogue of a million records needs the memory of one.
    """
    number = 0
    events = etree.iterparse(
        io.BytesIO(_one_root(data, names)),
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
    try:
        for _, element in events:
            if element.tag == _WRAPPER:
                _forget(element)
                continue
            number += 1
            try:
                yield make(element)
            except (ValueError, LookupError) as error:
                yield Broken(number, f"broken XML record: {error}", etree.tostring(element)[:RAW_BYTES])
            _forget(element)
    except etree.XMLSyntaxError as error:
        yield Broken(number + 1, f"XML broken after record {number}: {error}")
        return
    if not number:
        yield Broken(1, f"no element {' or '.join(names)} in this file; check its format")
    elif problem := next((entry.message for entry in events.error_log if entry.level_name == "FATAL"), ""):
        yield Broken(number + 1, f"XML that is not well-formed: {problem}; more records may be lost")


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
