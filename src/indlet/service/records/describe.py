"""The records of a scanned page become what the store keeps: byte for byte what `normalise` would make.

What a kernel would have to think about (white space to fold, a value that is said twice, a form that is not
the usual one) is left to `normalise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.kernels import scan as k
from indlet.memo import remembered
from indlet.model import DUBLIN_CORE, Metadata, Packed
from indlet.oai.read import Item
from indlet.service.records.scan import Scanned, unescaped
from indlet.store import fingerprint, resource_hash

# An element's value, by the element's name -> the form that it takes, and whether that is a media type.
Form = Callable[[str, str], tuple[str, bool]]
# A record's identifier, metadata and URL -> what stands for its resource.
Key = Callable[[str, Metadata, str], str]


def packed_records(
    sheet: Scanned, items: Sequence[Item], suffix: bytes, form: Form, key: Key
) -> list[Packed | None]:
    """What each record of a page is to the store; None for one that `normalise` has to look at.

    `suffix` ends the properties.
    """
    elements, count = sheet.elements, len(items)
    text, forms = _forms(sheet, form)
    out = np.empty(6 * text.size + 256 * count + 24 * len(elements), np.uint8)
    cuts, keys = np.empty((count, 3), np.int64), np.empty(count, np.int64)
    k.describe(text, sheet.heads, elements, forms, np.frombuffer(suffix, np.uint8), out, cuts, keys)
    if not count:
        return []
    made = out[: cuts[-1, 2]].tobytes()
    return _rows(sheet, items, made, cuts.tolist(), keys.tolist(), key)


def _rows(
    sheet: Scanned,
    items: Sequence[Item],
    made: bytes,
    bounds: list[list[int]],
    keys: list[int],
    key: Key,
) -> list[Packed | None]:
    out: list[Packed | None] = []
    body, terms = sheet.body, sheet.packed
    low = packed_low = 0
    columns = sheet.heads[:, k.FLAGS : k.LANGUAGE + 2].tolist()
    for place, (item, cut, head) in enumerate(zip(items, bounds, columns, strict=True)):
        described, told, end = cut
        flags, begin, stop, _, high, length, tongue, tongue_end = head
        sets = " ".join(item.sets)
        if flags:
            gone = Packed(item.identifier, 1, sets, "", 0, 0, b"", b"{}", b"{}", b"", None, None)
            out.append(gone if flags & k.DELETED else None)
            low, packed_low = end, high
            continue
        text, properties, raw = made[low:described], made[described:told], body[begin:stop]
        if keys[place] == k.KEY:
            resource = resource_hash(made[told:end].decode())
        elif keys[place] == k.LOOK:
            resource = resource_hash(key(item.identifier, orjson.loads(text), ""))
        else:
            resource = resource_hash(item.identifier)
        vector: bytes | None
        if length >= 0:
            vector, language = terms[packed_low:high], body[tongue:tongue_end].decode()
        else:
            vector, length, language = None, 0, ""
        digest = fingerprint(sets, language, length, resource, text, properties, raw, vector, None)
        row = Packed(
            item.identifier, 0, sets, language, length, resource, digest, text, properties, raw, vector, None
        )
        out.append(row)
        low, packed_low = end, high
    return out


def _forms(sheet: Scanned, form: Form) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The page's text followed by the forms that special values take; and where each of those stands."""
    elements = sheet.elements
    special = np.flatnonzero(elements[:, k.MARKS] & k.SPECIAL)
    if not special.size:
        return sheet.text, np.zeros((1, 3), np.int64)
    forms = np.zeros((len(elements), 3), np.int64)
    made: list[bytes] = []
    at = sheet.text.size
    for e, (name, low, high, _) in zip(special.tolist(), elements[special].tolist(), strict=True):
        value, media = _formed(form, name, sheet.body[low:high])
        if not value:
            place = int(np.searchsorted(sheet.heads[:, k.ELEMENTS], e, "right"))
            sheet.heads[place, k.FLAGS] |= k.ODD
        made.append(value)
        forms[e] = at, at + len(value), media
        at += len(value)
    return np.concatenate((sheet.text, np.frombuffer(b"".join(made) + bytes(64), np.uint8))), forms


@remembered(1 << 14)
def _formed(form: Form, name: int, value: bytes) -> tuple[bytes, bool]:
    found, media = form(DUBLIN_CORE[name], unescaped(value.decode()))
    return found.encode(), media
