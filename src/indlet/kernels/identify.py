"""Which resource a record stands for, and its properties as the JSON in which they are stored.

For records that are written as most are; the others are left to Python. The plain twins are
`service.records.normalise.resource_key`, `Normaliser._about` and `formats.dublin.doi`.
"""

from __future__ import annotations

import numpy as np

from indlet.kernels.blake2b import IV, SIGMA, STATE, digest
from indlet.kernels.describe import json_room, json_string
from indlet.kernels.jit import allocating_kernel, kernel
from indlet.kernels.scan import DONE, FULL, Bytes, Numbers, Rows, as_int, starts, write

# The longest key of a resource, in bytes, and the longest identifier in which a DOI is looked for.
_LONGEST = 1000


def _bytes(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


_HTTP, _HTTPS, _WWW = _bytes("http://"), _bytes("https://"), _bytes("www.")
_DOI, _ORG, _TEN = _bytes("doi:"), _bytes("doi.org/"), _bytes("10.")
_DATED, _URL = _bytes('{"source_datestamp":'), _bytes(',"url":')
_MEDIA = _bytes(',"media_type":')


@kernel
def _said(text: Bytes, at: int, literal: Bytes) -> bool:
    """Whether small or capital letters are these."""
    for i in range(literal.size):
        c = as_int(text[at + i])
        if (c + 32 if c >= 65 and c <= 90 else c) != literal[i]:
            return False
    return True


@kernel
def _doi(text: Bytes, low: int, high: int) -> tuple[int, int]:
    """Where the DOI of an identifier stands: it ends at 0 if there is none, at -1 if Python must look."""
    ten = False
    for at in range(low, high):
        ten = ten or (text[at] == 49 and at + 3 <= high and starts(text, at, _TEN))
    if not ten:
        return 0, 0
    for at in range(low, high):
        if text[at] >= 128 or high - low > _LONGEST:
            return 0, -1
    for begin in range(low, high):
        at = begin
        if begin > low or text[begin] != 49:
            if _said(text, begin, _ORG):
                at += _ORG.size
            elif _said(text, begin, _DOI):
                at += _DOI.size
                while text[at] == 32:
                    at += 1
            else:
                continue
        if at + 3 > high or not starts(text, at, _TEN):
            continue
        end = at + 3
        while end < high and text[end] >= 48 and text[end] <= 57:
            end += 1
        if end - at < 7 or end - at > 12 or end + 1 >= high or text[end] != 47 or text[end + 1] == 32:
            continue
        while end < high and text[end] != 32:
            end += 1
        while text[end - 1] in (46, 44, 59, 34, 39):
            end -= 1
        return at, end
    return 0, 0


@kernel
def _address(text: Bytes, low: int, high: int, key: Bytes) -> int:
    """Writes the key of a URL; gives its size: 0 for that of a whole site, -1 for one that Python must
    look at.
    """
    at = low + (8 if text[low + 4] == 115 else 7)
    host = at
    while at < high and (
        (text[at] >= 97 and text[at] <= 122) or (text[at] >= 45 and text[at] <= 57 and text[at] != 47)
    ):
        at += 1
    if at in (host, high) or text[at] != 47 or high - low > _LONGEST:
        return -1
    if at - host > _WWW.size and starts(text, host, _WWW):
        host += _WWW.size
    for i in range(at, high):
        if text[i] == 63 or text[i] == 35:
            return -1
    while high > at and text[high - 1] == 47:
        high -= 1
    if high == at:
        return 0
    size = write(key, 0, _HTTP)
    for i in range(host, high):
        key[size] = text[i]
        size += 1
    return size


@kernel
def _is_plain(text: Bytes, low: int, high: int) -> bool:
    """Whether a header's element says what stands there, letter by letter."""
    for at in range(low, high):
        c = text[at]
        if c < 32 or c == 38 or c == 60:
            return False
    return bool(
        low > 0 and high > low and high - low <= _LONGEST and text[low] > 32 and text[low] < 128
        and text[high - 1] > 32 and text[high - 1] < 128
    )  # fmt: skip


@kernel
def _key(
    page: Bytes, head: Rows, values: Rows, span: tuple[int, int], code: int, text: Bytes, lows: Numbers,
    highs: Numbers, key: Bytes,
) -> tuple[int, int]:  # fmt: skip
    """Writes the key of a record's resource: its size, or -1; and which value is its URL, or -1."""
    url = size = as_int(-1)
    for i in range(span[0], span[1]):
        if values[i].code != code:
            continue
        if url < 0 and (starts(text, lows[i], _HTTP) or starts(text, lows[i], _HTTPS)):
            url = i
        begin, end = _doi(text, lows[i], highs[i]) if size < 0 else (0, 0)
        if end < 0:
            return -1, url
        if end > 0:
            size = write(key, 0, _DOI)
            for at in range(begin, end):
                c = text[at]
                key[size] = c + 32 if c >= 65 and c <= 90 else c
                size += 1
    if size < 0 and url >= 0:
        size = _address(text, lows[url], highs[url], key)
        if size < 0:
            return -1, url
    if size <= 0:
        size = as_int(0)
        for at in range(head.identifier, head.identifier_end):
            key[size] = page[at]
            size += 1
    return size, url


@allocating_kernel
def identified(
    page: Bytes, heads: Rows, values: Rows, text: Bytes, lows: Numbers, highs: Numbers, lines: Numbers,
    media: Bytes, codes: tuple[int, int], out: Bytes, ends: Numbers, resources: Numbers,
) -> int:  # fmt: skip
    """Writes the properties of each record, and where they end: nowhere for one that Python must look at;
    and the number of its resource. DONE, or FULL if `out` is too small, and the call can be repeated with a
    larger one. `media` tells which lines (`describe.gathered`) are media types; `codes`
    are the elements format and identifier.
    """
    key, state = np.empty(_LONGEST + 200, np.uint8), np.empty(STATE, np.uint64)
    first = to = as_int(0)
    for record in range(heads.size):
        head, last = heads[record], heads[record].values
        size = url = as_int(-1)
        plain = _is_plain(page, head.identifier, head.identifier_end) and not head.nested
        if plain and _is_plain(page, head.datestamp, head.datestamp_end):
            size, url = _key(page, head, values, (first, last), codes[1], text, lows, highs, key)
        if size >= 0:
            if out.size - to < json_room(head.datestamp, head.datestamp_end):
                return FULL
            to = write(out, to, _DATED)
            to = json_string(page, head.datestamp, head.datestamp_end, out, to)
            if url >= 0:
                if out.size - to < json_room(lows[url], highs[url]):
                    return FULL
                to = json_string(text, lows[url], highs[url], out, write(out, to, _URL))
            for i in range(first, last):
                if values[i].code == codes[0] and lines[i] >= 0 and media[lines[i]] != 0:
                    if out.size - to < json_room(lows[i], highs[i]):
                        return FULL
                    to = json_string(text, lows[i], highs[i], out, write(out, to, _MEDIA))
                    break
            out[to] = 125
            to += 1
            hashed, swapped = digest(key, size, 8, SIGMA, IV, state), np.uint64(0)
            for i in range(8):
                swapped |= (hashed >> np.uint64(8 * i) & np.uint64(255)) << np.uint64(56 - 8 * i)
            resources[record] = np.int64(swapped) if swapped != np.uint64(0) else 1
        ends[record] = to
        first = last
    return DONE
