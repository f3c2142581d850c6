"""The best documents of a segment for a query, without scoring those that provably are not among them.

Documents pass in windows. The documents of each list in the window become a bit set. A term's share in a
score has an upper bound there: by the largest frequency in its blocks, and by the least length or norm of
documents, for each of some classes of these apart. What combinations of terms can reach the worst score that
is kept so far is worked out from these, and set operations then give the few documents that have to be
scored. Where these are many, those in which no term stands twice are held to the lower bounds of such.

Where the total need not be exact, lists whose terms cannot reach that score together are not even decoded:
documents are looked up in them.

Long because the parts share one state, and are compiled as one.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from indlet.kernels.arrays import Bits, Bytes, Floats, Hashes, Int, Numbers, Small
from indlet.kernels.codec import BLOCK, decode_freqs, lowest_bit, ones
from indlet.kernels.jit import kernel, part
from indlet.kernels.list_window import (
    DF,
    FROM,
    HIGH,
    LOW,
    MOST,
    SLOTS,
    STATE,
    TO,
    WIDE,
    WIDTHS,
    WINDOW,
    WORDS,
    PostingLists,
    fill,
    frequency_at,
    look_ahead,
    look_up_frequency,
    mark_repeated,
    number_places,
    open_lists,
)
from indlet.kernels.scoring import (
    BOOLEAN,
    DIRICHLET,
    JELINEK_MERCER,
    PL2,
    VSM,
    Formula,
    beyond,
    finish,
    highest,
    share,
    share_above,
)
from indlet.kernels.top_heap import Heap, offer, put_in_order

CLASSES: Final = 8
_COMBINED: Final = 5  # terms whose combinations are worked out; there are two to that power
# Of the combinations, a bit for each: those that have the first term, the second, and so on.
_WITH: Final = (0xAAAAAAAA, 0xCCCCCCCC, 0xF0F0F0F0, 0xFF00FF00, 0xFFFF0000)
_MEMO: Final = 64  # shares of a term that are kept, where they depend on the frequency alone
_FEW: Final = 16  # postings in a window; to score their documents is less work than to choose
_SEEDS: Final = 64  # documents that are scored first, beyond those that are wanted
_SHORT: Final = 4  # the class that these, and those of the classes before, are of
_SEEDED: Final = 128  # words of bits of a window in which they are looked for
_TOGETHER: Final = 256  # documents that are scored term by term, so that nothing waits for another


class Columns(NamedTuple):
    """What a segment knows of its documents. `limits` are the least lengths of CLASSES of documents,
    ascending, and the largest length of all; `shorter` tells of each class which documents are of it or of
    one before, as bits. `norm_limits` and `smaller` are the same of norms. `norm_codes` tell norms
    roughly, in little room: 1 / norm is at most what `inverse_norms` has for its code.
    """

    lengths: Small
    norms: Floats
    ties: Hashes
    ids: Small
    shorter: Bits
    limits: Numbers
    smaller: Bits
    norm_limits: Floats
    norm_codes: Bytes
    inverse_norms: Floats
    early: Bits  # documents whose tie is in the lowest 64th
    dates: Small


class VisibleDocuments(NamedTuple):
    """Which documents of a segment count: `hidden` do not (empty: none is hidden). Of those of one group
    (`of` tells it, 0 if a document is alone; empty if all are) one does; `grouped` are those that have one,
    `seen` the groups that have been counted.
    """

    hidden: Bits
    of: Numbers
    grouped: Bits
    seen: Bytes


class Scratch(NamedTuple):
    """Room to work in; no kernel that ranks makes an array."""

    numbers: Numbers
    small: Small
    reals: Floats
    words: Bits


def scratch(terms: int) -> Scratch:
    """Room for so many terms."""
    return Scratch(
        np.empty(terms * (2 * SLOTS + WORDS + STATE) + 2 * _TOGETHER + WORDS, np.int64),
        np.empty(terms * SLOTS * BLOCK + BLOCK, np.uint32),
        np.empty(
            WINDOW
            + (1 << _COMBINED)
            + 3 * _TOGETHER
            + 2 * CLASSES
            + 1
            + terms * (2 * CLASSES + 1 + CLASSES * WIDTHS + _MEMO)
        ),
        np.empty((2 * terms + 3) * WORDS, np.uint64),
    )


@part
def _unite(out: Bits, bits: Bits, t: Int, words: Int) -> None:
    for i in range(np.uint64(words)):
        out[i] |= bits[np.uint64(t * WORDS) + i]


@part
def _log2(kind: Int, value: float) -> float:
    """What `share_above` needs of a term's second constant."""
    return math.log2(value) if kind == PL2 and value > 0.0 else 0.0


@kernel
def _highest(
    kind: Int, a: float, b: float, p0: float, p3: float, asked: float, limits: Numbers, norm_limits: Floats,
    tabled: Floats, most: Int, known: Floats, at: Int,
) -> None:  # fmt: skip
    """Upper bounds of what a term adds to a final score, of documents of each class, in which it stands at
    most so often; they are put into `known` from `at` on. `tabled` has what the table has for the limits.
    """
    found, log2_b = 1.0, _log2(kind, b)
    weight = a * (1.0 + math.log(float(most))) / asked if kind == VSM else 0.0
    for among in range(CLASSES):
        if kind == VSM:
            found = weight / norm_limits[among]
        elif kind != BOOLEAN:
            found = highest(
                kind, a, b, log2_b, p0, p3, float(most), limits[among], tabled[among], limits[CLASSES],
                tabled[CLASSES],
            )  # fmt: skip
        known[at + among] = found


@part
def _share(
    kind: Int, a: float, b: float, p0: float, p3: float, frequency: Int, length: Int, tabled: float,
    memo: Floats, at: Int,
) -> float:  # fmt: skip
    """As `share`; a logarithm of the frequency is worked out once, and kept in `memo` from `at` on."""
    if kind != DIRICHLET or frequency >= _MEMO:
        return share(kind, a, b, p0, p3, float(frequency), length, tabled)
    found: float = memo[at + frequency]
    if found == -np.inf:
        found = memo[at + frequency] = share(kind, a, b, p0, p3, float(frequency), length, tabled)
    return found


@part
def _by_frequency(table: Floats, frequency: Int) -> float:
    """What the table of the vector space model has."""
    return table[frequency] if frequency < table.size else beyond(VSM, 0.0, 0.0, 0.0, frequency)


@part
def _reaches(bound: float, worst: float) -> bool:
    return bool(bound + 1e-9 * (abs(bound) + 1.0) >= worst)  # room for rounding


@part
def _family(bounds: Floats, first: Int, terms: Int, rest: float, least: float, sums: Floats) -> np.uint64:
    """The combinations of terms whose documents can reach the least score, if all that is not known (`rest`)
    is at its best; a bit for each combination, whose own bits tell its terms. The bounds begin at `first`.
    """
    sums[0] = rest
    family = np.uint64(rest >= least)
    for t in range(terms):
        size = np.int64(1) << t
        for chosen in range(size):
            total = sums[chosen] + bounds[first + t]
            sums[size + chosen] = total
            family |= np.uint64(total >= least) << np.uint64(size + chosen)
    return family


@part
def _least(family: np.uint64) -> np.uint64:
    """Of a family of combinations, those that are in it but not with one of their terms left out."""
    larger = np.uint64(0)
    for t in range(_COMBINED):
        larger |= (family & ~np.uint64(_WITH[t])) << np.uint64(1 << t)
    return family & ~larger


@part
def _choose(
    bits: Bits, combination: np.uint64, within: Bits, shift: np.uint64, words: Int, out: Bits
) -> None:
    """Adds the documents of a class that hold all terms of a combination; the class begins at `shift`."""
    if combination == np.uint64(0):
        for i in range(np.uint64(words)):
            out[i] |= within[shift + i]
        return
    one = lowest_bit(combination) * np.uint64(WORDS)
    combination &= combination - np.uint64(1)
    two = lowest_bit(combination) * np.uint64(WORDS) if combination else one
    combination &= combination - np.uint64(1)
    if combination & (combination - np.uint64(1)) == np.uint64(0):
        three = lowest_bit(combination) * np.uint64(WORDS) if combination else one
        for i in range(np.uint64(words)):
            out[i] |= bits[one + i] & bits[two + i] & bits[three + i] & within[shift + i]
        return
    for i in range(np.uint64(words)):
        both = bits[one + i] & bits[two + i] & within[shift + i]
        left = combination
        while left and both:
            both &= bits[lowest_bit(left) * np.uint64(WORDS) + i]
            left &= left - np.uint64(1)
        out[i] |= both


@kernel
def _select(
    bits: Bits, bounds: Floats, first: Int, terms: Int, decoded: Int, least: float, added: Floats,
    sums: Floats, within: Bits, offset: np.uint64, words: Int, out: Bits,
) -> None:  # fmt: skip
    """Sets the bits of the documents of the window that can reach the least score.

    From the last class to the first, more combinations can; a class has the documents of those before. What
    holds a combination that was met, or more terms, is chosen.
    """
    for i in range(words):
        out[i] = np.uint64(0)
    each = np.uint64(within.size // CLASSES)
    family, combined = np.uint64(0), min(decoded, np.int64(_COMBINED))
    for among in range(CLASSES - 1, -1, -1):
        rest = added[among]
        for t in range(combined, terms):
            rest += bounds[first + among * terms + t]
        wider = _family(bounds, first + among * terms, combined, rest, least, sums)
        fresh = _least(wider) & ~family if wider != family else np.uint64(0)
        while fresh:
            _choose(bits, lowest_bit(fresh), within, np.uint64(among) * each + offset, words, out)
            fresh &= fresh - np.uint64(1)
        family = wider


@part
def _size(bits: Bits, words: Int) -> Int:
    total = np.int64(0)
    for i in range(words):
        total += np.int64(ones(bits[i]))
    return total


@part
def _counted(
    bits: Bits, terms: Int, base: Int, words: Int, hidden: Bits, of: Numbers, grouped: Bits, seen: Bytes,
    found: Bits,
) -> Int:  # fmt: skip
    """Sets the bits of documents that hold any of the terms and are not hidden; gives how many count."""
    for i in range(words):
        found[i] = np.uint64(0)
    for t in range(terms):
        _unite(found, bits, t, words)
    first, live = np.uint64(base >> 6), np.int64(0)
    if hidden.size:
        for i in range(np.uint64(words)):
            found[i] &= ~hidden[first + i]
    for i in range(words):
        live += np.int64(ones(found[i]))
    if of.size:
        for i in range(words):
            left = found[i] & grouped[first + np.uint64(i)]
            while left:
                group = of[base + 64 * i + np.int64(lowest_bit(left))]
                live -= seen[group]
                seen[group] = 1
                left &= left - np.uint64(1)
    return live


@kernel
def _add_up(
    kind: Int, first: Floats, second: Floats, p: Floats, table: Floats, stream: Bytes, lengths: Small,
    state: Numbers, docs: Small, freqs_at: Numbers, ways: Numbers, terms: Int, base: Int, count: Int,
    sums: Floats, freqs: Small, memo: Floats, roughly: bool,
) -> None:  # fmt: skip
    """The sums of all documents in the window over the terms that are decoded; or little more, `roughly`."""
    for i in range(count):
        sums[i] = 0.0
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    for t in range(terms):
        low, high = state[t * STATE + LOW], state[t * STATE + HIGH]
        log2_b = _log2(kind, second[t])
        while low < high:
            slot = low >> 7
            end = min(high, (slot + 1) * BLOCK)
            if ways[slot] < 0:
                freqs[0] = freqs_at[slot]
            else:
                decode_freqs(stream, freqs_at[slot], end - slot * BLOCK, ways[slot], freqs, np.int64(0))
            for i in range(low, end):
                doc = np.int64(docs[i])
                length = np.int64(0) if kind == VSM else np.int64(lengths[doc])
                key = np.int64(freqs[i - slot * BLOCK]) if kind == VSM else length
                tabled = table[key] if key < table.size else beyond(kind, p0, p1, p2, key)
                frequency = np.int64(freqs[i - slot * BLOCK])
                if roughly:
                    sums[doc - base] += share_above(
                        kind, first[t], second[t], log2_b, float(frequency), length, tabled
                    )
                else:
                    sums[doc - base] += _share(
                        kind, first[t], second[t], p0, p3, frequency, length, tabled, memo, t * _MEMO
                    )
            low = end


@part
def _drop(sums: Floats, added: float, worst: float, words: Int, chosen: Bits) -> Int:
    """Leaves those of the chosen documents whose sums can reach the worst score; gives how many."""
    kept = np.int64(0)
    for i in range(words):
        left = chosen[i]
        while left:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            if _reaches(sums[64 * i + np.int64(lowest_bit(bit))] + added, worst):
                kept += 1
            else:
                chosen[i] ^= bit
    return kept


@part
def _at_best(
    kind: Int, size: float, constant: float, total: float, rest: float, tabled: float, norm: float
) -> float:
    """The score of a document with that sum so far, if it gets all of the rest."""
    if kind == VSM:
        return finish(kind, size, constant, total, tabled, norm) + rest
    return finish(kind, size, constant, total + rest, tabled, norm)


@kernel
def _most(
    bits: Bits, terms: Int, words: Int, wanted: Int, within: Bits, offset: np.uint64, found: Bits, out: Bits
) -> None:
    """Sets the bits of some of the documents that hold most terms, more than are wanted if there are: of the
    short ones if these are enough.
    """
    shift = np.uint64(_SHORT * (within.size // CLASSES)) + offset
    twice, thrice, short_twice, short_thrice = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for again in range(2):
        total = np.int64(0)
        for i in range(words):
            one, two, three = np.uint64(0), np.uint64(0), np.uint64(0)
            if i < _SEEDED or (total if again else twice) < wanted:
                for t in range(terms):
                    own = bits[t * WORDS + i] & found[i]
                    three |= two & own
                    two |= one & own
                    one |= own
            short = within[shift + np.uint64(i)]
            if again == 0:
                twice += np.int64(ones(two))
                thrice += np.int64(ones(three))
                short_twice += np.int64(ones(two & short))
                short_thrice += np.int64(ones(three & short))
                continue
            if thrice >= wanted:
                one = three & short if short_thrice >= wanted else three
            elif twice >= wanted:
                one = two & short if short_twice >= wanted else two
            out[i] = one if total <= wanted + _SEEDS else np.uint64(0)
            total += np.int64(ones(one))


@kernel
def _sure(
    formula: Formula, columns: Columns, worst: float, stream: Bytes, state: Numbers, docs: Small,
    freqs_at: Numbers, ways: Numbers, bits: Bits, bounds: Floats, known: Floats, by_limit: Floats,
    added: Floats, combinations: Floats, terms: Int, decoded: Int, base: Int, words: Int, held: Int,
    found: Bits, chosen: Bits, repeated: Bits,
) -> bool:  # fmt: skip
    """Sets the bits of those found that can reach the worst score that is kept; gives whether those in which
    no term stands twice were held to the bounds of such. Then `repeated` tells of the others, and after that
    of those in which the first term does, the second, and so on.
    """
    kind, first_of, second_of, query_constants, p, _ = formula
    within = columns.smaller if kind == VSM else columns.shorter
    offset, once = np.uint64(base >> 6), np.int64((CLASSES + 1) * terms)
    least = worst - 1e-8 * (abs(worst) + 1.0)  # room for rounding
    _select(
        bits, bounds, np.int64(0), terms, decoded, least, added, combinations, within, offset, words, chosen
    )
    for i in range(np.uint64(words)):
        chosen[i] &= found[i]
    # Nanoseconds, more or less: where norms decide, a document is soon left out.
    if _size(chosen, words) * (25 if kind == VSM else 50) <= 300 + 2 * held:
        return False
    for i in range(words):
        repeated[i] = np.uint64(0)
    for t in range(terms):
        at, varied = WIDTHS * CLASSES * t, t < decoded and state[t * STATE + WIDE] > 0
        if varied:
            own = repeated[(t + 1) * WORDS :]
            for i in range(words):
                own[i] = np.uint64(0)
            mark_repeated(stream, state, docs, freqs_at, ways, t, base, own)
            _unite(repeated, repeated, t + 1, words)
            if known[at] < 0.0:
                _highest(
                    kind, first_of[t], second_of[t], p[0], p[3], query_constants[0], columns.limits,
                    columns.norm_limits, by_limit, np.int64(1), known, at,
                )  # fmt: skip
        for among in range(CLASSES):
            highest_here = bounds[among * terms + t]
            bounds[once + among * terms + t] = known[at + among] if varied else highest_here
    for i in range(np.uint64(words)):
        found[i] = chosen[i]
    _select(bits, bounds, once, terms, decoded, least, added, combinations, within, offset, words, chosen)
    for i in range(np.uint64(words)):
        chosen[i] = found[i] & (chosen[i] | repeated[i])
    return True


@part
def _add_shares(
    kind: Int, first_of: Floats, second_of: Floats, p0: float, p3: float, table: Floats, stream: Bytes,
    lengths: Small, state: Numbers, freqs_at: Numbers, ways: Numbers, bits: Bits, places: Numbers,
    memo: Floats, terms: Int, base: Int, picks: Numbers, hits: Numbers, count: Int, by_length: Floats,
    totals: Floats, roughly: bool,
) -> None:  # fmt: skip
    """Adds to the sums of some documents what they get for the terms that are decoded; or little more,
    `roughly`.
    """
    one = np.uint64(1)
    for t in range(terms):
        holding = np.int64(0)
        for j in range(count):
            hits[holding] = j
            holding += np.int64((bits[t * WORDS + (picks[j] >> 6)] >> np.uint64(picks[j] & 63)) & one)
        alone, log2_b = state[t * STATE + DF] == 1, _log2(kind, second_of[t])
        for k in range(holding):
            j = hits[k]
            at, below = t * WORDS + (picks[j] >> 6), (one << np.uint64(picks[j] & 63)) - one
            frequency = state[t * STATE + MOST]
            if not alone:
                place = places[at] + np.int64(ones(bits[at] & below))
                frequency = frequency_at(stream, freqs_at, ways, place)
            length = np.int64(0) if kind == VSM else np.int64(lengths[base + picks[j]])
            if roughly:
                totals[j] += share_above(
                    kind, first_of[t], second_of[t], log2_b, float(frequency), length, by_length[j]
                )
            else:
                tabled = _by_frequency(table, frequency) if kind == VSM else by_length[j]
                totals[j] += _share(
                    kind, first_of[t], second_of[t], p0, p3, frequency, length, tabled, memo, t * _MEMO
                )


@kernel
def _score(
    formula: Formula, columns: Columns, heap: Heap, size: Int, of: Numbers, stream: Bytes, state: Numbers,
    docs: Small, freqs_at: Numbers, ways: Numbers, bits: Bits, terms: Int, decoded: Int, base: Int,
    words: Int, chosen: Bits, repeated: Bits, closer: Int, bounds: Floats, many: bool, sums: Floats,
    places: Numbers, memo: Floats, picks: Numbers, room: Floats,
) -> Int:  # fmt: skip
    """Offers the chosen documents of the window to the heap; gives its size.

    Long because what is found out of some documents is used step by step.
    """
    kind, first_of, second_of, query_constants, p, table = formula
    lengths, norms, ties, ids, dates = (
        columns.lengths, columns.norms, columns.ties, columns.ids, columns.dates
    )  # fmt: skip
    norm_limits, norm_codes, inverse_norms = columns.norm_limits, columns.norm_codes, columns.inverse_norms
    scores, heap_ties, heap_ids, heap_dates, groups = heap
    p0, p1, p2, p3, asked, constant = p[0], p[1], p[2], p[3], query_constants[0], query_constants[1]
    hits, totals, by_length, norm_of = picks[_TOGETHER:], room, room[_TOGETHER:], room[2 * _TOGETHER :]
    holding = picks[2 * _TOGETHER :]  # the words that have bits: most have none, as no processor can foresee
    full, one, used = size == scores.size, np.uint64(1), np.int64(0)
    for word in range(words):
        holding[used] = word
        used += np.int64(chosen[word] != np.uint64(0))
    i, left = np.int64(0), chosen[holding[0]]
    while True:
        count = np.int64(0)
        while i < used and count < _TOGETHER:
            while left and count < _TOGETHER:
                picks[count] = 64 * holding[i] + np.int64(lowest_bit(left))
                left &= left - one
                count += 1
            if left == np.uint64(0):
                i += 1
                left = chosen[holding[i]] if i < used else left
        if count == 0:
            return size
        for j in range(count):
            totals[j], by_length[j], norm_of[j] = 0.0, 0.0, 1.0
            if kind != BOOLEAN and kind != VSM:
                length = np.int64(lengths[base + picks[j]])
                by_length[j] = table[length] if length < table.size else beyond(kind, p0, p1, p2, length)
            if many:
                totals[j] = sums[picks[j]]
        if full and kind in (VSM, DIRICHLET) and not many:
            # A document's own norm or length gives a closer bound than its class.
            kept = np.int64(0)
            for j in range(count):
                place = picks[j]
                at, bit = place >> 6, np.uint64(place & 63)
                rest = bounds[CLASSES * terms + decoded] if decoded < terms else 0.0
                for t in range(decoded):
                    # Of a term that was not looked at, both bounds are the same.
                    once = np.int64(~(repeated[(t + 1) * WORDS + at] >> bit) & one)
                    rest += bounds[once * closer + t] * float((bits[t * WORDS + at] >> bit) & one)
                if kind == VSM:
                    rest *= norm_limits[0] * inverse_norms[norm_codes[base + place]]
                else:
                    rest = finish(kind, asked, constant, rest, by_length[j], 1.0)
                picks[kept], by_length[kept] = place, by_length[j]
                kept += np.int64(_reaches(rest, scores[0]))
            count = kept
        if full and kind in (JELINEK_MERCER, PL2) and not many:
            # Logarithms take time: most documents need not be scored exactly.
            _add_shares(
                kind, first_of, second_of, p0, p3, table, stream, lengths, state, freqs_at, ways, bits,
                places, memo, decoded, base, picks, hits, count, by_length, totals, True,
            )  # fmt: skip
            rest = bounds[CLASSES * terms + decoded] if decoded < terms else 0.0
            kept = np.int64(0)
            for j in range(count):
                total = finish(kind, asked, constant, totals[j] + rest, by_length[j], 1.0)
                totals[j] = 0.0
                picks[kept], by_length[kept] = picks[j], by_length[j]
                kept += np.int64(_reaches(total, scores[0]))
            count = kept
        if kind != BOOLEAN and not many:
            _add_shares(
                kind, first_of, second_of, p0, p3, table, stream, lengths, state, freqs_at, ways, bits,
                places, memo, decoded, base, picks, hits, count, by_length, totals, False,
            )  # fmt: skip
        if kind == VSM:
            rest = bounds[CLASSES * terms + decoded] if decoded < terms else 0.0
            kept = np.int64(0)
            for j in range(count):  # by what is told roughly of a norm, few have to be fetched
                total = totals[j] * inverse_norms[norm_codes[base + picks[j]]] / asked + rest
                picks[kept], totals[kept] = picks[j], totals[j]
                kept += np.int64(not full or _reaches(total, scores[0]))
            count = kept
            for j in range(count):
                norm_of[j] = norms[base + picks[j]]
        kept = np.int64(0)
        for j in range(count):
            doc, total, norm, tabled = base + picks[j], totals[j], norm_of[j], by_length[j]
            for t in range(decoded, terms):
                rest = bounds[CLASSES * terms + t]
                if full and not _reaches(
                    _at_best(kind, asked, constant, total, rest, tabled, norm), scores[0]
                ):
                    break
                if state[t * STATE + WIDE] >= 0:
                    frequency = look_up_frequency(stream, state, docs, freqs_at, ways, t, doc)
                    if frequency > 0:
                        length = np.int64(0) if kind == VSM else np.int64(lengths[doc])
                        total += _share(
                            kind, first_of[t], second_of[t], p0, p3, frequency, length,
                            _by_frequency(table, frequency) if kind == VSM else tabled, memo, t * _MEMO,
                        )  # fmt: skip
            totals[kept], picks[kept] = finish(kind, asked, constant, total, tabled, norm), picks[j]
            kept += np.int64(not full or totals[kept] >= scores[0])
        for j in range(kept):  # what is fetched from memory here does not wait for what the heap does
            doc = base + picks[j]
            hits[0] ^= np.int64(ties[doc]) ^ np.int64(ids[doc]) ^ np.int64(dates[doc])
        for j in range(kept):
            doc, score = base + picks[j], totals[j]
            if size == scores.size and (
                score < scores[0] or (score == scores[0] and ties[doc] > heap_ties[0])
            ):
                continue
            group = of[doc] if of.size else np.int64(0)
            size = offer(
                scores, heap_ties, heap_ids, heap_dates, groups, size, score, ties[doc],
                np.int64(ids[doc]), np.int64(dates[doc]), group,
            )  # fmt: skip


@kernel
def best(
    formula: Formula, lists: PostingLists, columns: Columns, shown: VisibleDocuments, heap: Heap, size: Int,
    last: bool, exact: bool, scratch: Scratch,
) -> tuple[Int, Int, bool]:  # fmt: skip
    """Offers the documents that are not hidden and hold any of the terms to the heap; after the `last`
    segment, this is put in order, best first.

    Long because it is one loop: every step reads and moves the same cursors.

    Equal scores rank by tie, then by id, lowest first. Gives the number of those documents, the heap's size,
    and whether the number is all of them: it is if it has to be `exact`.
    """
    kind, first_of, second_of, query_constants, p, table = formula
    stream, starts = lists
    lengths, _, _, _, _, limits, _, norm_limits, _, _, early, _ = columns
    hidden, of, grouped, seen = shown
    scores, heap_ties, _, _, _ = heap
    terms = starts.size
    p0, p1, p2, p3, asked, constant = p[0], p[1], p[2], p[3], query_constants[0], query_constants[1]
    numbers, docs, reals, words_of = scratch
    slots = terms * SLOTS
    freqs_at, ways, places = numbers[:slots], numbers[slots : 2 * slots], numbers[2 * slots :]
    state = places[terms * WORDS :]
    picks = state[terms * STATE :]
    freqs = docs[slots * BLOCK :]
    bits, found = words_of[: terms * WORDS], words_of[terms * WORDS :]
    chosen, repeated = found[WORDS:], found[2 * WORDS :]
    # Of the window: bounds for each class of documents, and for the first the sums from each term on.
    sums, combinations = reals[:WINDOW], reals[WINDOW : WINDOW + (1 << _COMBINED)]
    added, by_limit = reals[WINDOW + (1 << _COMBINED) :], reals[WINDOW + (1 << _COMBINED) + CLASSES :]
    # From `once` on, of documents in which no term stands more than once.
    once = np.int64((CLASSES + 1) * terms)
    bounds, known = by_limit[CLASSES + 1 :], by_limit[CLASSES + 1 + (2 * CLASSES + 1) * terms :]
    memo = known[CLASSES * WIDTHS * terms :]
    room = memo[_MEMO * terms :]
    for i in range(CLASSES):
        added[i] = 0.0  # what `finish` adds at most to sums
    for i in range(CLASSES + 1):
        length = limits[i]
        by_limit[i] = table[length] if length < table.size else beyond(kind, p0, p1, p2, length)
        if i < CLASSES and kind in (DIRICHLET, JELINEK_MERCER):
            added[i] = finish(kind, asked, constant, 0.0, by_limit[i], 1.0)
    open_lists(stream, starts, state, docs, freqs_at, ways)
    for i in range(CLASSES * WIDTHS * terms):
        known[i] = -1.0
    if kind == DIRICHLET:
        for i in range(_MEMO * terms):
            memo[i] = -np.inf
    live, every, limit = np.int64(0), True, np.int64(0)
    while limit < lengths.size:
        base, limit = limit, min(limit + WINDOW, np.int64(lengths.size))
        words = (limit - base + 63) >> 6
        full = size == scores.size
        worst = scores[0] if full and size > 0 else -np.inf
        essential, touched, rest = np.int64(0), False, 0.0
        for t in range(terms - 1, -1, -1):
            look_ahead(stream, state, t * STATE, base, limit)
            wide = state[t * STATE + WIDE]
            at = (WIDTHS * t + wide) * CLASSES
            if wide >= 0:
                touched = True
                if known[at] < 0.0:
                    most = min(np.int64(1) << wide, state[t * STATE + MOST])
                    _highest(
                        kind, first_of[t], second_of[t], p0, p3, asked, limits, norm_limits, by_limit, most,
                        known, at,
                    )  # fmt: skip
            for among in range(CLASSES):
                bounds[among * terms + t] = known[at + among] if wide >= 0 else 0.0
            rest += bounds[t]
            bounds[CLASSES * terms + t] = rest
            # The first class has the highest bounds.
            if essential == 0 and _reaches(rest + added[0], worst):
                essential = np.int64(t + 1)
        if not touched:
            continue
        decoded, held = np.int64(0), np.int64(0)
        while decoded < terms:
            s = decoded * STATE
            if (
                decoded >= essential
                and not exact
                and kind != BOOLEAN
                and held < state[s + TO] - state[s + FROM]
            ):
                break  # to look up so few documents is less work
            fill(stream, state, docs, freqs_at, ways, bits, decoded, base, limit)
            held += state[s + HIGH] - state[s + LOW]
            decoded += 1
        for t in range(decoded, terms):
            every = every and state[t * STATE + WIDE] < 0
        if decoded == 0:
            continue
        live += _counted(bits, decoded, base, words, hidden, of, grouped, seen, found)
        if full and (size == 0 or essential == 0):
            continue
        offset = np.uint64(base >> 6)
        tried = False
        while True:
            full = size == scores.size
            close = False
            if kind == BOOLEAN and (heap_ties[0] >> np.uint64(58) == np.uint64(0) if full else not tried):
                for i in range(np.uint64(words)):
                    chosen[i] = found[i] & early[offset + i]
            elif kind != BOOLEAN and full and held > _FEW:
                close = _sure(
                    formula, columns, scores[0], stream, state, docs, freqs_at, ways, bits, bounds, known,
                    by_limit, added, combinations, terms, decoded, base, words, held, found, chosen, repeated,
                )  # fmt: skip
            elif kind != BOOLEAN and not full and not tried:
                within = columns.smaller if kind == VSM else columns.shorter
                _most(bits, decoded, words, scores.size - size, within, offset, found, chosen)
            else:
                for i in range(np.uint64(words)):
                    chosen[i] = found[i]
            picked: Int = _size(chosen, words)
            # Nanoseconds, more or less: to work out a share, to find one, to clear the sums.
            many = kind != BOOLEAN and bool(picked * (25 + 8 * decoded) > ((limit - base) >> 2) + held * 8)
            if many:
                _add_up(
                    kind, first_of, second_of, p, table, stream, lengths, state, docs, freqs_at, ways,
                    decoded, base, limit - base, sums, freqs, memo,
                    full and kind in (JELINEK_MERCER, PL2),
                )  # fmt: skip
                if full and kind in (JELINEK_MERCER, PL2):
                    rest = finish(kind, asked, constant, 0.0, 0.0, 1.0)
                    rest += bounds[CLASSES * terms + decoded] if decoded < terms else 0.0
                    picked, many = _drop(sums, rest, scores[0], words, chosen), False
            if picked > 0 and kind != BOOLEAN and not many:
                number_places(bits, state, decoded, words, places)
            if picked > 0:
                size = _score(
                    formula, columns, heap, size, of, stream, state, docs, freqs_at, ways, bits, terms,
                    decoded, base, words, chosen, repeated, once if close else np.int64(0), bounds, many,
                    sums, places, memo, picks, room,
                )  # fmt: skip
            if full or tried:
                break
            tried = True
            for i in range(np.uint64(words)):
                found[i] &= ~chosen[i]
    if last:
        put_in_order(heap, size)
    return live, size, every
