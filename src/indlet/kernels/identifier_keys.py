"""The keys of identifiers that are written as most are; for what is left out, and `marks`, see `keys`.

`formats.identifiers` is the plain twin.
"""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Hashes, Int, Numbers
from indlet.kernels.blake2b import digest
from indlet.kernels.codec import word
from indlet.kernels.folding import folding, put_folded
from indlet.kernels.jit import kernel, part

# What every key begins with, and what comes next in that of an identifier.
MARK, OF_IDENTIFIER = 0, 1
# The most bytes of an identifier of a scheme and of one without, characters of a key, and of one that goes on
# as a digest.
_LONGEST, _OTHER = 100, 400
_KEY, _CUT = 120, 104


def _number(name: bytes) -> int:
    return int.from_bytes(name, "little")


_OAI, _ARXIV, _ID, _URN = map(_number, (b"oai:", b"arxiv", b"id:", b"urn:"))
_HTTP, _HTTPS, _WWW = map(_number, (b"http://", b"https://", b"www."))
_HDL_HAND, _LE_NET, _ORG, _PATH = map(_number, (b"hdl.hand", b"le.net", b"doi.org/", b"/handle/"))
_DX, _DOT, _HANDLE, _SAID_HDL = map(_number, (b"dx.", b"10.", b"handle", b"hdl"))
_ISBN, _ISSN = map(_number, (b"isbn", b"issn"))
_URL, _HDL, _DOI, _ARX, _IV = map(_number, (b"url:", b"hdl:", b"doi:", b"arxi", b"v:"))
_OAI_ARXIV, _ORG_COLON, _ARXIV_ORG, _ABS = map(_number, (b"oai:arxi", b"v.org:", b"arxiv.or", b"g/abs/"))


@part
def lower(c: np.uint8) -> np.uint8:
    return c + np.uint8(32) if c >= 65 and c <= 90 else c


@part
def letter(c: np.uint8) -> bool:
    """Whether it is a small letter or a digit."""
    return bool((c >= 97 and c <= 122) or (c >= 48 and c <= 57))


@part
def is_at(text: Bytes, at: Int, size: Int, number: Int) -> bool:
    """Whether so many bytes (less than eight) are these."""
    return bool(word(text, at) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)) == np.uint64(number))


@part
def marked(out: Bytes, to: Int, marks: Bytes, mark: Int) -> Int:
    out[to] = marks[MARK]
    out[to + 1] = marks[mark]
    return to + 2


@part
def _named(out: Bytes, to: Int, marks: Bytes, scheme: Int, low: Int, high: Int) -> Int:
    """A key: a scheme of four bytes, and out[low:high]."""
    to = _put(out, marked(out, to, marks, OF_IDENTIFIER), scheme, 4)
    for i in range(low, high):
        out[to] = out[i]
        to += 1
    out[to] = 32
    return to + 1


@part
def _put(out: Bytes, to: Int, number: Int, size: Int) -> Int:
    for i in range(size):
        out[to + i] = np.uint8((number >> (8 * i)) & 0xFF)
    return to + size


@part
def hexed(value: np.uint64, size: Int, out: Bytes, to: Int) -> Int:
    for i in range(2 * size):
        nibble = np.uint8((value >> np.uint64(4 * (i ^ 1))) & np.uint64(15))
        out[to + i] = nibble + np.uint8(48 if nibble < 10 else 87)
    return to + 2 * size


@kernel
def _tailed(out: Bytes, low: Int, high: Int, digits: Int, most: Int) -> bool:
    """Whether out[low:high] is some digits (and, if `digits` is 0, dots after the first), a slash, and
    letters, digits, dots, lines that end in one of the first two.
    """
    at = low
    while at < high and ((out[at] >= 48 and out[at] <= 57) or (digits == 0 and at > low and out[at] == 46)):
        at += 1
    if at - low < max(digits, 1) or at - low > most or at >= high - 1 or out[at] != 47:
        return False
    for i in range(at + 1, high):
        if not (letter(out[i]) or (i < high - 1 and (out[i] == 45 or out[i] == 46 or out[i] == 95))):
            return False
    return True


@kernel
def _arxiv(out: Bytes, begin: Int, end: Int) -> Int:
    """Where the number begins in what names a paper at arXiv; `end` if it names none, -1 for another form."""
    at = end
    while at > begin and out[at - 1] >= 48 and out[at - 1] <= 57:
        at -= 1
    digits, c = end - at, out[at - 1]
    if digits == 0:
        return np.int64(-1 if c == 102 else end)
    if c == 118 or (c == 47 and digits == 7):
        return np.int64(-1)
    if c != 46 or digits < 4 or digits > 5:
        return np.int64(end)
    number = at - 5
    for i in range(number, at - 1):
        if i < begin or out[i] < 48 or out[i] > 57:
            return np.int64(-1)
    if number - begin == 14 and word(out, begin) == np.uint64(_OAI_ARXIV):
        return number if is_at(out, begin + 8, 6, _ORG_COLON) else np.int64(-1)
    path = number - 14
    if (path == begin + 7 or path == begin + 8) and word(out, path) == np.uint64(_ARXIV_ORG):
        return number if is_at(out, path + 8, 6, _ABS) else np.int64(-1)
    return np.int64(-1)


@kernel
def _other(
    out: Bytes, begin: Int, end: Int, marks: Bytes, scratch: Bytes, sigma: Numbers, iv: Hashes, state: Hashes,
    to: Int,
) -> Int:  # fmt: skip
    """The key of an identifier of no scheme."""
    size = end - begin + 3
    _put(scratch, 0, _ID, 3)
    characters, cut = np.int64(3), size
    for i in range(begin, end):
        if out[i] & 0xC0 != 0x80:
            if characters == _CUT:
                cut = 3 + i - begin
            characters += 1
        scratch[3 + i - begin] = 95 if out[i] == 32 else out[i]
    to = marked(out, to, marks, OF_IDENTIFIER)
    kept = size if characters <= _KEY else cut
    value = digest(scratch, size, 8, sigma, iv, state) if size > kept else np.uint64(0)
    for i in range(kept):
        out[to + i] = scratch[i]
    to += kept
    if size > kept:
        to = hexed(value, 8, out, to)
    out[to] = 32
    return to + 1


@kernel
def identifier(
    text: Bytes, low: Int, high: Int, cases: Hashes, marks: Bytes, scratch: Bytes, sigma: Numbers, iv: Hashes,
    state: Hashes, out: Bytes, to: Int,
) -> Int:  # fmt: skip
    """The keys of an OAI identifier, an address, a handle, a DOI, or of what is none of those.

    Long because each form excludes those before it.
    """
    if high - low > _OTHER:
        return np.int64(-1)
    # In small letters and with single spaces, behind where keys may go.
    begin = to + 2 * _OTHER
    end = begin
    spaced = slash = dotted = handle = arxiv = doubtful = wide = False
    at = np.int64(low)
    while at < high:
        c, step = text[at], np.int64(1)
        if c < 32 or c == 92 or c == 127:
            return np.int64(-1)
        if c != 32:
            if at > low and text[at - 1] == 32 and end > begin:
                out[end] = 32
                end += 1
                spaced = True
            if c < 128:
                out[end] = lower(c)
                end += 1
                slash = slash or c == 47
            else:
                wide = True
                made, step = folding(text, at, cases)
                if (made >> np.uint64(24)) & np.uint64(3) == np.uint64(0):
                    return np.int64(-1)
                end = put_folded(made, out, end)
        at += step
    spaced = spaced or bool(end - begin < high - low)
    for i in range(8):
        out[end + i] = 0
    if end == begin:
        return to
    for i in range(begin, end):
        c = out[i]
        if c == 97:
            arxiv = arxiv or is_at(out, i, 5, _ARXIV)
        elif c == 49:
            dotted = dotted or is_at(out, i, 3, _DOT)
        elif c == 104:
            handle = handle or is_at(out, i, 3, _SAID_HDL) or is_at(out, i, 6, _HANDLE)
        elif c == 105:
            doubtful = doubtful or is_at(out, i, 4, _ISBN) or is_at(out, i, 4, _ISSN)
    oai = is_at(out, begin, 4, _OAI)
    if not (oai or slash or dotted or handle or arxiv or doubtful):
        if (out[begin] >= 48 and out[begin] <= 57) or is_at(out, begin, 4, _URN):
            return np.int64(-1)
        if out[begin] >= 128:
            return np.int64(-1)
        return _other(out, begin, end, marks, scratch, sigma, iv, state, to)
    if wide or spaced or end - begin > _LONGEST:
        return np.int64(-1)
    if arxiv:
        number = _arxiv(out, begin, end)
        if number < 0 or (number == end and dotted):
            return np.int64(-1)
        if number < end:
            to = _put(out, marked(out, to, marks, OF_IDENTIFIER), _ARX, 4)
            to = _put(out, to, _IV, 2)
            for i in range(number, end):
                out[to] = out[i]
                to += 1
            out[to] = 32
            to += 1
            dotted = False
    if oai:
        return _named(out, to, marks, _OAI, begin + 4, end)
    if dotted and is_at(out, begin, 3, _DOT) and _tailed(out, begin + 3, end, 4, 9):
        return _named(out, to, marks, _DOI, begin, end)
    said = not doubtful and is_at(out, begin, 4, _DOI) and is_at(out, begin + 4, 3, _DOT)
    if said and _tailed(out, begin + 7, end, 4, 9):
        return _named(out, to, marks, _DOI, begin + 4, end)
    return _address(out, begin, end, dotted, handle, marks, to)


@kernel
def _handle(out: Bytes, host: Int, end: Int) -> Int:
    """Where a handle begins in an address without its scheme; -1 if that is not plain."""
    at, slashes = end, 0
    while at > host and slashes < 2:
        at -= 1
        slashes += out[at] == 47
    if slashes < 2 or not _tailed(out, at + 1, end, 0, _LONGEST):
        return np.int64(-1)
    if at == host + 14 and word(out, host) == np.uint64(_HDL_HAND) and is_at(out, host + 8, 6, _LE_NET):
        return at + 1
    if at - 7 <= host or word(out, at - 7) != np.uint64(_PATH) or out[host] == 47:
        return np.int64(-1)
    for i in range(host, at - 7):
        c = out[i]
        if not (letter(c) or c == 45 or c == 46 or c == 95 or (c == 47 and out[i + 1] != 47)):
            return np.int64(-1)
    return at + 1


@kernel
def _address(out: Bytes, begin: Int, end: Int, dotted: bool, handle: bool, marks: Bytes, to: Int) -> Int:
    """The keys of an address, which may be that of a handle or a DOI."""
    at = begin
    if is_at(out, at, 7, _HTTP):
        at += 7
    elif word(out, at) == np.uint64(_HTTPS):
        at += 8
    else:
        return np.int64(-1)
    host = at
    while at < end and (letter(out[at]) or out[at] == 45 or out[at] == 46):
        at += 1
    if at == host or (at < end and out[at] != 47 and out[at] != 63):
        return np.int64(-1)
    path = at
    while path < end and out[path] != 63:
        path += 1
    for i in range(at, end):
        if out[i] == 35:
            return np.int64(-1)
    if path == end - 1 or (path < end and (dotted or handle)):
        return np.int64(-1)
    doi: Int = np.int64(-1)
    if word(out, host) == np.uint64(_ORG):
        doi = host + 8
    elif is_at(out, host, 3, _DX) and word(out, host + 3) == np.uint64(_ORG):
        doi = host + 11
    if is_at(out, host, 4, _WWW):
        host += 4
    # Without the slashes at the end of the path.
    last = path
    while last > at and out[last - 1] == 47:
        last -= 1
    for i in range(path, end):
        out[last + i - path] = out[i]
    end = last + end - path
    if end == host:
        return np.int64(-1)
    if dotted:
        # What the path ends with belongs to a DOI.
        if doi < 0 or last < path or not is_at(out, doi, 3, _DOT) or not _tailed(out, doi + 3, end, 4, 9):
            return np.int64(-1)
        to = _named(out, to, marks, _DOI, doi, end)
    elif handle:
        begin = _handle(out, host, end)
        if begin < 0:
            return np.int64(-1)
        to = _named(out, to, marks, _HDL, begin, end)
    return _named(out, to, marks, _URL, host, end)
