"""The kernels of `scan` and `describe`: a page of Dublin Core records, read without an object in between.

`scan` reads the records of a page in the form that nearly all repositories write. Every byte is accounted
for: at the first one that is not of that form it stops, and the tolerant reader takes the page. `describe`
writes what the store keeps of a record.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from indlet.kernels.codec import word
from indlet.kernels.jit import kernel
from indlet.model import DUBLIN_CORE

# How `scan` ends: after the last record; at something else; at another root of metadata.
DONE, OTHER, ROOT = 0, 1, 2
# Columns of a record: its identifier, its datestamp, where its sets end, its flags, its metadata, where its
# elements end, where its vector ends, its length (-1: no vector), its language, where it ends.
IDENTIFIER, STAMP, SETS, FLAGS, RAW, ELEMENTS, PACKED, LENGTH, LANGUAGE, END = 0, 2, 4, 5, 6, 8, 9, 10, 11, 13
COLUMNS: Final = 14
# Columns of an element: its name's number in DUBLIN_CORE, its value, its flags.
NAME, VALUE, MARKS = 0, 1, 3
# Flags of a record.
DELETED, ODD = 1, 2
# Flags of an element: its value is to be cleaned; has references; may have to take another form.
UNCLEAN, REFERENCES, SPECIAL = 1, 2, 4

# What becomes of a record's resource: it has none of its own; it is written; it is to be looked at.
NO_KEY, KEY, LOOK = 0, 1, 2


def _bytes(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8)


_RECORD, _RECORD_END = _bytes("<record>"), _bytes("</record>")
_HEADER, _HEADER_END = _bytes("<header>"), _bytes("</header>")
_GONE = _bytes('<header status="deleted">')
_ID, _ID_END = _bytes("<identifier>"), _bytes("</identifier>")
_DATE, _DATE_END = _bytes("<datestamp>"), _bytes("</datestamp>")
_SET, _SET_END = _bytes("<setSpec>"), _bytes("</setSpec>")
_METADATA, _METADATA_END = _bytes("<metadata>"), _bytes("</metadata>")
_ROOT_END = _bytes("</oai_dc:dc>")
_OPEN, _CLOSE = _bytes("<dc:"), _bytes("</dc:")
_XML_LANG, _XSI_TYPE = _bytes(' xml:lang="'), _bytes(' xsi:type="')
_INDEX = _bytes('<index><terms xmlns="urn:indlet:tf:1.0" length="')
_INDEX_END = _bytes("</terms></index>")
_LANG = _bytes(' lang="')
_LINE, _LINE_END = _bytes('<t f="'), _bytes("</t>")
_TERM, _FREQ = _bytes('<term name="'), _bytes('" freq="')
_AMP, _LT, _GT = _bytes("&amp;"), _bytes("&lt;"), _bytes("&gt;")
_QUOT, _APOS = _bytes("&quot;"), _bytes("&apos;")

# The names of the elements: their first eight bytes as a number, all of them, and where each begins.
_KEYS = np.array([int.from_bytes(name[:8].encode(), "little") for name in DUBLIN_CORE], np.uint64)
_NAMES = _bytes("".join(DUBLIN_CORE))
_BEGINS = np.cumsum([0, *map(len, DUBLIN_CORE)])
_DATE_CODE, _TYPE_CODE, _FORMAT_CODE = (DUBLIN_CORE.index(name) for name in ("date", "type", "format"))
_IDENTIFIER_CODE, _LANGUAGE_CODE = DUBLIN_CORE.index("identifier"), DUBLIN_CORE.index("language")
_MEDIA = _bytes("application/audio/font/image/message/model/multipart/text/video/")
_HTTP, _HTTPS, _WWW = _bytes("http://"), _bytes("https://"), _bytes("www.")
_STATED, _URL, _KIND = _bytes('{"source_datestamp":"'), _bytes('","url":"'), _bytes('","media_type":"')


@kernel
def _starts(text: Any, at: Any, literal: Any) -> Any:
    for i in range(literal.size):  # noqa: SIM110 - a kernel has no generators
        if text[at + i] != literal[i]:
            return False
    return True


@kernel
def _space(text: Any, at: Any) -> Any:
    while text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9:
        at += 1
    return at


@kernel
def _reference(text: Any, at: Any) -> Any:
    """The character that a reference stands for, and its size; 0 if it is none of the five of XML."""
    if _starts(text, at, _AMP):
        return 38, 5
    if _starts(text, at, _LT):
        return 60, 4
    if _starts(text, at, _GT):
        return 62, 4
    if _starts(text, at, _QUOT):
        return 34, 6
    if _starts(text, at, _APOS):
        return 39, 6
    return 0, 0


@kernel
def _plain(text: Any, at: Any) -> Any:
    """Where a text ends that has nothing but printable ASCII in it; -1 if it has anything else."""
    while text[at] != 60:
        c = text[at]
        if c < 33 or c > 126 or c == 38:
            return -1
        at += 1
    return at


@kernel
def _value(text: Any, at: Any) -> Any:
    """Where an element's text ends, and its flags; -1 for what the tolerant reader has to see."""
    marks = 0
    low = at
    before = 32  # a value that begins with a space is as one with two
    while text[at] != 60:
        c = text[at]
        if c <= 32:
            if c == 32:
                if before == 32:
                    marks |= UNCLEAN
            elif c == 9 or c == 10 or c == 13:
                marks |= UNCLEAN
                c = 32
            else:
                return -1, 0
        elif c == 38:
            if _reference(text, at)[1] == 0:
                return -1, 0
            marks |= REFERENCES
        elif c == 62:
            if at - low > 1 and text[at - 1] == 93 and text[at - 2] == 93:
                return -1, 0
        elif c >= 127:
            # Latin letters, dashes and quotation marks beyond ASCII are what they should be; white space,
            # what shows nothing and what else there is in the world is looked at.
            d = text[at + 1]
            if not (
                (c == 0xC2 and d >= 0xA1 and d != 0xAD)
                or (c >= 0xC3 and c <= 0xC9)
                or (c == 0xE2 and d == 0x80 and text[at + 2] >= 0x90 and text[at + 2] <= 0xA6)
                or (c >= 0x80 and c <= 0xBF)  # the rest of a character
            ):
                marks |= UNCLEAN
        before = c
        at += 1
    if before == 32 and at > low:
        marks |= UNCLEAN
    return at, marks


@kernel
def _usual(text: Any, code: Any, low: Any, high: Any, languages: Any) -> Any:
    """Whether a date, language or format has the form already that it should have."""
    size = high - low
    if code == _DATE_CODE:
        if size != 4 and size != 7 and size != 10:
            return False
        for i in range(size):
            c = text[low + i]
            if i == 4 or i == 7:
                if c != 45:
                    return False
            elif c < 48 or c > 57:
                return False
        if text[low] == 48:
            return False
        if size >= 7:
            month = 10 * (text[low + 5] - 48) + text[low + 6] - 48
            if month < 1 or month > 12:
                return False
        if size == 10:
            day = 10 * (text[low + 8] - 48) + text[low + 9] - 48
            return day >= 1 and day <= 31
        return True
    if code == _LANGUAGE_CODE:
        if size != 2:
            return False
        a, b = np.int64(text[low]) - 97, np.int64(text[low + 1]) - 97
        return a >= 0 and a < 26 and b >= 0 and b < 26 and languages[26 * a + b] != 0
    if code == _FORMAT_CODE:
        slash = low
        while slash < high and text[slash] >= 97 and text[slash] <= 122:
            slash += 1
        if slash == high or text[slash] != 47 or slash + 1 == high:
            return False
        for i in range(slash + 1, high):
            c = text[i]
            if not (
                (c >= 97 and c <= 122) or (c >= 48 and c <= 57) or c == 43 or c == 45 or c == 46 or c == 95
            ):
                return False
        # What is often meant otherwise is short: image/jpg, text/pdf, application/x-pdf.
        if text[high - 1] == 102:
            return size == 15 and text[high - 4] == 47 and text[low] == 97  # application/pdf
        if text[high - 1] == 103 and text[high - 2] == 112:
            return False
        return _known_media(text, low, slash + 1)
    return False


@kernel
def _known_media(text: Any, low: Any, high: Any) -> Any:
    """Whether text[low:high], up to a slash, is one of the top-level media types."""
    at = 0
    while at < _MEDIA.size:
        i = 0
        while text[low + i] == _MEDIA[at + i] and _MEDIA[at + i] != 47:
            i += 1
        if text[low + i] == 47 and _MEDIA[at + i] == 47 and low + i + 1 == high:
            return True
        while _MEDIA[at] != 47:
            at += 1
        at += 1
    return False


@kernel
def _vector(text: Any, at: Any, out: Any, to: Any, head: Any) -> Any:
    """Reads an index part from `at` on, and writes its packed vector; gives where both end, or -1."""
    at += _INDEX.size
    low = at
    length = np.int64(0)
    while text[at] >= 48 and text[at] <= 57 and at - low < 9:
        length = 10 * length + text[at] - 48
        at += 1
    if at == low or text[at] != 34:
        return -1, to
    at += 1
    head[LENGTH] = length
    head[LANGUAGE] = head[LANGUAGE + 1] = at
    if _starts(text, at, _LANG):
        at += _LANG.size
        head[LANGUAGE] = at
        while (text[at] >= 97 and text[at] <= 122) or text[at] == 45:
            at += 1
        head[LANGUAGE + 1] = at
        if text[at] != 34:
            return -1, to
        at += 1
    if text[at] != 62:
        return -1, to
    at += 1
    begin = to
    while _starts(text, at, _LINE):
        at += _LINE.size
        if to > begin:
            out[to] = 10
            to += 1
        while text[at] >= 48 and text[at] <= 57:
            out[to] = text[at]
            to += 1
            at += 1
        if text[at] != 34 or text[at + 1] != 62:
            return -1, to
        at += 2
        out[to] = 32
        to += 1
        while text[at] != 60:
            c, step = np.int64(text[at]), 1
            if c == 38:
                c, step = _reference(text, at)
            if c < 32 or (step == 1 and (c == 34 or c == 62 or c == 127)):
                return -1, to
            out[to] = c
            to += 1
            at += step
        if not _starts(text, at, _LINE_END):
            return -1, to
        at += _LINE_END.size
    line = np.int64(-1)
    while _starts(text, at, _TERM):
        at += _TERM.size
        low = at
        while text[at] != 34:
            c = text[at]
            if c <= 32 or c == 60 or c == 62 or c == 38 or c == 127:
                return -1, to
            at += 1
        high = at
        if high == low or not _starts(text, at, _FREQ):
            return -1, to
        at += _FREQ.size
        digits = at
        frequency = np.int64(0)
        while text[at] >= 48 and text[at] <= 57 and at - digits < 10:
            frequency = 10 * frequency + text[at] - 48
            at += 1
        if at == digits or text[at] != 34 or text[at + 1] != 47 or text[at + 2] != 62:
            return -1, to
        if frequency != line:
            if to > begin:
                out[to] = 10
                to += 1
            for i in range(digits, at):
                out[to] = text[i]
                to += 1
            line = frequency
        out[to] = 32
        to += 1
        for i in range(low, high):
            out[to] = text[i]
            to += 1
        at += 3
    if not _starts(text, at, _INDEX_END):
        return -1, to
    return at + _INDEX_END.size, to


@kernel
def scan(
    text: Any, at: Any, root: Any, languages: Any, heads: Any, sets: Any, elements: Any, packed: Any,
    used: Any,
) -> Any:  # fmt: skip
    """Reads records from `at` on; gives where it stopped, and why.

    `text` ends in 64 zero bytes; `packed` is as large, and the tables have a row for each record, set and
    element that can be in it. `root` is how the metadata of a record begins. `used` counts records, sets,
    elements and bytes of vectors, and comes back with those read; at another root, it says where that is.
    """
    records, many_sets, many, filled = used[0], used[1], used[2], used[3]
    while True:
        at = _space(text, at)
        used[0], used[1], used[2], used[3] = records, many_sets, many, filled
        if not _starts(text, at, _RECORD):
            return at, DONE
        begin = at
        head = heads[records]
        head[FLAGS] = 0
        head[LENGTH] = -1
        at = _space(text, at + _RECORD.size)
        if _starts(text, at, _HEADER):
            at += _HEADER.size
        elif _starts(text, at, _GONE):
            at += _GONE.size
            head[FLAGS] = DELETED
        else:
            return begin, OTHER
        at = _space(text, at)
        if not _starts(text, at, _ID):
            return begin, OTHER
        at += _ID.size
        head[IDENTIFIER] = at
        at, marks = _value(text, at)
        if at < 0 or at == head[IDENTIFIER] or not _starts(text, at, _ID_END):
            return begin, OTHER
        head[IDENTIFIER + 1] = at
        at = _space(text, at + _ID_END.size)
        if not _starts(text, at, _DATE):
            return begin, OTHER
        at += _DATE.size
        head[STAMP] = at
        at = _plain(text, at)
        if at < 0 or not _starts(text, at, _DATE_END):
            return begin, OTHER
        for i in range(head[STAMP], at):
            if text[i] == 34 or text[i] == 92:
                return begin, OTHER
        head[STAMP + 1] = at
        at = _space(text, at + _DATE_END.size)
        while _starts(text, at, _SET):
            at += _SET.size
            sets[many_sets, 0] = at
            at = _plain(text, at)
            if at < 0 or at == sets[many_sets, 0] or not _starts(text, at, _SET_END):
                return begin, OTHER
            sets[many_sets, 1] = at
            many_sets += 1
            at = _space(text, at + _SET_END.size)
        head[SETS] = many_sets
        if not _starts(text, at, _HEADER_END):
            return begin, OTHER
        at = _space(text, at + _HEADER_END.size)
        head[RAW] = head[RAW + 1] = at
        if head[FLAGS] == 0:
            if not _starts(text, at, _METADATA):
                return begin, OTHER
            at = _space(text, at + _METADATA.size)
            if root.size == 0 or not _starts(text, at, root):
                used[4] = at
                return begin, ROOT
            head[RAW] = at
            at += root.size
            while True:
                at = _space(text, at)
                if not _starts(text, at, _OPEN):
                    break
                at += _OPEN.size
                low = at
                while text[at] >= 97 and text[at] <= 122:
                    at += 1
                size = at - low
                key = word(text, low)
                if size < 8:
                    key &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
                code = 0
                while code < _KEYS.size and (_KEYS[code] != key or _BEGINS[code + 1] - _BEGINS[code] != size):
                    code += 1
                if code == _KEYS.size:
                    return begin, OTHER
                for i in range(8, size):
                    if text[low + i] != _NAMES[_BEGINS[code] + i]:
                        return begin, OTHER
                # A language or a type tells nothing that is kept apart.
                if _starts(text, at, _XML_LANG) or _starts(text, at, _XSI_TYPE):
                    at += _XML_LANG.size
                    while text[at] != 34:
                        if text[at] < 32 or text[at] > 126 or text[at] == 60 or text[at] == 38:
                            return begin, OTHER
                        at += 1
                    at += 1
                if text[at] == 32:
                    at += 1
                if text[at] == 47 and text[at + 1] == 62:
                    at += 2
                    continue
                if text[at] != 62:
                    return begin, OTHER
                at += 1
                first = at
                at, marks = _value(text, at)
                if at < 0 or not _starts(text, at, _CLOSE):
                    return begin, OTHER
                last = at
                at += _CLOSE.size
                for i in range(size):
                    if text[at + i] != text[low + i]:
                        return begin, OTHER
                at += size
                if text[at] != 62:
                    return begin, OTHER
                at += 1
                if last == first:
                    continue
                special = code == _TYPE_CODE
                if code in (_DATE_CODE, _FORMAT_CODE, _LANGUAGE_CODE):
                    special = not _usual(text, code, first, last, languages)
                elements[many, NAME] = code
                elements[many, VALUE] = first
                elements[many, VALUE + 1] = last
                elements[many, MARKS] = marks | SPECIAL if special else marks
                if marks & UNCLEAN:
                    head[FLAGS] |= ODD
                many += 1
            if not _starts(text, at, _ROOT_END):
                return begin, OTHER
            at += _ROOT_END.size
            head[RAW + 1] = at
            at = _space(text, at)
            if not _starts(text, at, _METADATA_END):
                return begin, OTHER
            at = _space(text, at + _METADATA_END.size)
            if _starts(text, at, _INDEX):
                at, filled = _vector(text, at, packed, filled, head)
                if at < 0:
                    return begin, OTHER
                at = _space(text, at)
        head[ELEMENTS] = many
        head[PACKED] = filled
        if not _starts(text, at, _RECORD_END):
            return begin, OTHER
        at += _RECORD_END.size
        head[END] = at
        records += 1


@kernel
def _put(text: Any, low: Any, high: Any, marks: Any, quoted: Any, out: Any, to: Any) -> Any:
    """Copies a value, without references; as the inside of a JSON string if `quoted`."""
    while low < high:
        c = text[low]
        if c == 38 and marks & REFERENCES:
            meant, size = _reference(text, low)
            c = np.uint8(meant)
            low += size - 1
        if quoted and (c == 34 or c == 92):
            out[to] = 92
            to += 1
        out[to] = c
        to += 1
        low += 1
    return to


@kernel
def _write(out: Any, to: Any, literal: Any) -> Any:
    for i in range(literal.size):
        out[to + i] = literal[i]
    return to + literal.size


@kernel
def _key(text: Any, low: Any, high: Any, out: Any, to: Any) -> Any:
    """Writes the address of a resource in its plainest form; -1 if that has to be looked at."""
    at = low + (8 if _starts(text, low, _HTTPS) else 7)
    if _starts(text, at, _WWW):
        at += 4
    slash = at
    while slash < high and text[slash] != 47:
        c = text[slash]
        if not ((c >= 97 and c <= 122) or (c >= 48 and c <= 57) or c == 45 or c == 46):
            return -1
        slash += 1
    if slash in (at, high):
        return -1
    for i in range(slash, high):
        if text[i] == 63 or text[i] == 35:
            return -1
    while high > slash and text[high - 1] == 47:
        high -= 1
    if high == slash:
        return -1
    to = _write(out, to, _HTTP)
    for i in range(at, high):
        out[to] = text[i]
        to += 1
    return to


@kernel
def describe(
    text: Any, heads: Any, elements: Any, forms: Any, suffix: Any, out: Any, cuts: Any, keys: Any
) -> None:
    """Writes of each record that is neither deleted nor odd: its metadata as JSON up to cuts[r, 0], its
    properties up to cuts[r, 1], its resource up to cuts[r, 2]. Some turn out to be odd here.

    forms[e] are the bounds, in the text, of the form that a special value takes; nothing is to be empty.
    `suffix` ends the properties.
    """
    to = np.int64(0)
    for r in range(heads.shape[0]):
        low = heads[r - 1, ELEMENTS] if r > 0 else np.int64(0)
        high = heads[r, ELEMENTS]
        keys[r] = NO_KEY
        present = 0
        url: Any = np.int64(-1)
        media: Any = np.int64(-1)
        if heads[r, FLAGS] == 0:
            for e in range(low, high):
                code = elements[e, NAME]
                again = present >> code & 1
                present |= 1 << code
                if again:
                    if elements[e, MARKS] & (REFERENCES | SPECIAL):
                        heads[r, FLAGS] |= ODD
                    size = elements[e, VALUE + 1] - elements[e, VALUE]
                    for k in range(low, e):
                        if elements[k, NAME] == code:
                            if elements[k, MARKS] & (REFERENCES | SPECIAL):
                                heads[r, FLAGS] |= ODD
                            if elements[k, VALUE + 1] - elements[k, VALUE] == size:
                                i = 0
                                while (
                                    i < size and text[elements[k, VALUE] + i] == text[elements[e, VALUE] + i]
                                ):
                                    i += 1
                                if i == size:
                                    heads[r, FLAGS] |= ODD  # said twice
            if high - low > 200:
                heads[r, FLAGS] |= ODD
        if heads[r, FLAGS] != 0:
            cuts[r, 0] = cuts[r, 1] = cuts[r, 2] = to
            continue
        # The metadata.
        out[to] = 123
        to += 1
        for code in range(_KEYS.size):
            if not present >> code & 1:
                continue
            if out[to - 1] != 123:
                out[to] = 44
                to += 1
            out[to] = 34
            to += 1
            for i in range(_BEGINS[code], _BEGINS[code + 1]):
                out[to] = _NAMES[i]
                to += 1
            out[to], out[to + 1], out[to + 2] = 34, 58, 91
            to += 3
            for e in range(low, high):
                if elements[e, NAME] != code:
                    continue
                if out[to - 1] != 91:
                    out[to] = 44
                    to += 1
                out[to] = 34
                marks = elements[e, MARKS]
                first, last = elements[e, VALUE], elements[e, VALUE + 1]
                if marks & SPECIAL:
                    first, last = forms[e, 0], forms[e, 1]
                    marks = 0
                begin = to
                to = _put(text, first, last, marks, True, out, to + 1)
                out[to] = 34
                to += 1
                if code == _IDENTIFIER_CODE:
                    if url < 0 and (_starts(text, first, _HTTP) or _starts(text, first, _HTTPS)):
                        url = e
                        keys[r] = max(keys[r], LOOK if marks else KEY)
                    for i in range(first, last - 2):
                        if text[i] == 49 and text[i + 1] == 48 and text[i + 2] == 46:
                            keys[r] = LOOK
                elif (
                    code == _FORMAT_CODE
                    and media < 0
                    and (not elements[e, MARKS] & SPECIAL or forms[e, 2] != 0)
                ):
                    media = begin
            out[to] = 93
            to += 1
        out[to] = 125
        to += 1
        cuts[r, 0] = to
        # The properties.
        to = _write(out, to, _STATED)
        to = _put(text, heads[r, STAMP], heads[r, STAMP + 1], 0, False, out, to)
        if url >= 0:
            to = _write(out, to, _URL)
            to = _put(
                text, elements[url, VALUE], elements[url, VALUE + 1], elements[url, MARKS], True, out, to
            )
        if media >= 0:
            to = _write(out, to, _KIND)
            i = media + 1
            while out[i] != 34:
                out[to] = out[i]
                to += 1
                i += 1
        out[to] = 34
        to += 1
        to = _write(out, to, suffix)
        cuts[r, 1] = to
        # The resource.
        if keys[r] == KEY:
            end = _key(text, elements[url, VALUE], elements[url, VALUE + 1], out, to)
            if end < 0:
                keys[r] = LOOK
            else:
                to = end
        cuts[r, 2] = to
