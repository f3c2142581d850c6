"""How likely two records describe one work, and why.

Each field that both records have is evidence for or against, in bits: the logarithm of how much more often
such an agreement (or difference) is seen among records of one work than among others (Fellegi & Sunter 1969).
The sum of all evidence, less the rarity of duplicates, becomes a score from 0 to 1. It orders pairs, and is
no measured probability. A field that one record lacks tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Final, NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

from indlet.exchange.duplicates.features import Features
from indlet.model import groups

# Bits, set by hand and checked with bench/duplicates.py.
_RARE: Final = -8.0  # that two records of one block are of one work
_TITLE: Final = 9.0  # equal titles of some length
_OTHER_TITLE: Final = -9.0
_NAME, _OTHER_NAME = 4.0, -5.0
_YEAR, _NEAR_YEAR, _OTHER_YEAR = 2.0, -1.0, -5.0
_KEY, _REPORT, _OTHER_REPORT = 9.0, 10.0, -7.0
_OTHER_KEY: Final = {"doi": -3.0, "isbn": -4.0, "arxiv": -4.0}
SAME_TEXT: Final = 5.0
_OTHER_TEXT: Final = -5.0
_TEXT: Final = 300  # terms from which on a vector is that of a text
_REPLACED: Final = 0.2  # what a replaced word takes from the similarity of titles
_CUT_TITLE: Final = 12  # letters that a cut title must have kept
_LONG_TITLE: Final = 30  # letters from which on an equal title is hardly chance
_TERMS: Final = 20  # of a vector; fewer tell no text
_PREFILTER: Final = 55.0  # per cent of letters that titles must share to be looked at closely


class TextSimilarity(NamedTuple):
    """The cosine of two term vectors, and how many terms the shorter one has."""

    cosine: float
    terms: int


class Score(NamedTuple):
    """From 0 to 1, and the evidence in words, strongest first."""

    score: float
    reasons: tuple[str, ...]


def may_match(one: Features, other: Features) -> bool:
    """Whether a close look is worth it: a quick test that most candidates fail."""
    if not (one.keys.isdisjoint(other.keys) and one.reports.isdisjoint(other.reports)):
        return True
    if not one.title or not other.title:
        return False
    shorter = min(len(one.title), len(other.title))
    return (
        fuzz.ratio(one.title[: shorter + 10], other.title[: shorter + 10], score_cutoff=_PREFILTER) > 0
        or fuzz.token_sort_ratio(one.title, other.title, score_cutoff=_PREFILTER) > 0
    )


def score(one: Features, other: Features, text: TextSimilarity | None = None) -> Score:
    """The same whichever record comes first. `text`: the similarity of their term vectors, if it is known."""
    if (other.words, other.proper, other.names) < (one.words, one.proper, one.names):
        one, other = other, one  # words and names are matched in turn: always from the same side
    titles = _title(one, other)
    if text and text.terms < _TEXT and text.cosine > 0.5 and sum(weight for weight, _ in titles) < _TITLE / 2:
        text = None  # short vectors are mostly words of the titles, which differ
    evidence = [*titles, *_names(one, other), *_years(one, other), *_keys(one, other), *_text(text)]
    bits = _RARE + sum(weight for weight, _ in evidence)
    reasons = [reason for _, reason in sorted(evidence, key=lambda item: (-abs(item[0]), item[1]))]
    return Score(round(1 / (1 + 2.0**-bits), 4), tuple(reasons))


Evidence = list[tuple[float, str]]


def _title(one: Features, other: Features) -> Evidence:
    if not one.words or not other.words:
        return []
    alike, cut = title_similarity(one, other)
    length = min(len(one.title), len(other.title))
    most = _TITLE * min(length / _LONG_TITLE, 1.0) ** 0.5
    if alike > 0.6:
        # From half of the bits at .8 to all at 1; nothing below .6.
        weight = most * (alike - 0.6) / 0.4
        return [(weight, "same title" if alike == 1 and not cut else f"similar title ({alike:.2f})")]
    return [(_OTHER_TITLE * (0.6 - alike) / 0.6, f"different title ({alike:.2f})")]


def title_similarity(one: Features, other: Features) -> tuple[float, bool]:
    """How much of the titles is the same words, from 0 to 1, and whether one was taken for the other's start.

    Words count by their length. Misspelt words are the same ones; numbers are not ("Part 1", "Part 2").
    """
    if one.words == other.words:
        return 1.0, False
    if one.title.replace(" ", "") == other.title.replace(" ", ""):
        return 0.99, False  # "on line", "online"
    whole = _same_words(one.words, other.words)
    short, long = sorted((one, other), key=lambda record: (len(record.title), record.title))
    count, letters = len(short.words), len(short.title)
    if not (2 < count <= len(long.words) and letters > _CUT_TITLE):
        return whole, False
    # A cut title, or one without its subtitle. A small number in what is missing tells of a part of the work.
    most = 0.95 if letters > _LONG_TITLE - 8 or count == long.proper else 0.85
    start = min(_same_words(short.words, long.words[:count], cut=True), most)
    start -= 0.2 if any(word.isdigit() and len(word) < 4 for word in long.words[count:]) else 0.0
    return (start, True) if start > whole else (whole, False)


def _same_words(one: Sequence[str], other: Sequence[str], *, cut: bool = False) -> float:
    mine, theirs = list(one), list(other)
    for word in one:
        if word in theirs:
            mine.remove(word)
            theirs.remove(word)
    if cut and one[-1] in mine and other[-1] in theirs and other[-1].startswith(one[-1]):
        mine.remove(one[-1])  # the last word of a cut title
        theirs.remove(other[-1])
    lost = replaced = 0.0
    for word in list(mine):
        near = min(theirs, key=lambda w: (OSA.distance(word, w), w), default="")
        if near and _misspelt(word, near):
            mine.remove(word)
            theirs.remove(near)
            lost += 0.25 * _weight(word)
    if any(map(_telling, mine)) and any(map(_telling, theirs)):
        # A word for another ("… Norway", "… Sweden") tells two works; cataloguers add words or omit them.
        replaced = _REPLACED
    total = sum(map(_weight, one)) + sum(map(_weight, other))
    lost += sum(map(_weight, mine)) + sum(map(_weight, theirs))
    return max(1.0 - lost / total - replaced, 0.0)


def _misspelt(one: str, other: str) -> bool:
    """Whether two words may be one with a slip of the pen. Numbers are what they are."""
    if any(c.isdigit() for c in one + other):
        return False
    short, long = sorted((len(one), len(other)))
    if short > 2 and (one.startswith(other) or other.startswith(one)) and long - short <= 2:
        return True
    if long < 4:
        return False
    if long < 5 and short == long and sorted(one) != sorted(other):
        return False  # "land", "sand": of short words a letter for another makes a word
    return OSA.distance(one, other) <= (1 if long < 8 else 2)


def _telling(word: str) -> bool:
    return len(word) > 3 or word.isdigit()


def _weight(word: str) -> float:
    # A number decides which part or year of a series it is.
    return 12.0 if word.isdigit() else float(min(len(word), 8)) if _telling(word) else 1.0


def _names(one: Features, other: Features) -> Evidence:
    if not one.names or not other.names:
        return []
    few, many = sorted((one.names, other.names), key=len)
    best = [max(_same_name(name, their) for their in many) for name in few]
    share = sum(best) / len(best)
    if share >= 0.5:
        return [(_NAME * share, "same authors" if share == 1 else "similar authors")]
    if max(best) >= 0.75:  # one of several: others list editors and institutions, too
        return [(_NAME / 2, "an author in common")]
    return [(_OTHER_NAME * (1 - share), "different authors")]


def _same_name(one: tuple[str, str], other: tuple[str, str]) -> float:
    if one == other:
        return 1.0
    return max(_same_order(one, other), 0.9 * _same_order(one, (other[1], other[0])))


def _same_order(one: tuple[str, str], other: tuple[str, str]) -> float:
    (family, given), (their_family, their_given) = one, other
    if not family or not their_family:
        return 0.0
    if family == their_family:
        alike = 1.0
    elif min(len(family), len(their_family)) > 3 and (
        OSA.distance(family, their_family) == 1
        or family.endswith(their_family)  # "La Roncière, Charles de", "De La Roncière, Charles"
        or their_family.endswith(family)
    ):
        alike = 0.85
    else:
        return 0.0
    if not given or not their_given:
        return alike * 0.8
    if given == their_given:
        return alike
    if given[0] == their_given[0] and 1 in (len(given), len(their_given)):
        return alike * 0.9
    return alike * (0.8 if _misspelt(given, their_given) else 0.3)


def _years(one: Features, other: Features) -> Evidence:
    if not one.years or not other.years:
        return []
    apart = min(abs(mine - theirs) for mine in one.years for theirs in other.years)
    if apart == 0:
        return [(_YEAR, "same year")]
    return [(_NEAR_YEAR if apart == 1 else _OTHER_YEAR, f"years {apart} apart")]


def _keys(one: Features, other: Features) -> Evidence:
    found: Evidence = []
    if common := one.keys & other.keys:
        found.append((_KEY, f"same identifier {min(common)}"))
    else:
        for scheme, weight in _OTHER_KEY.items():
            start = f"{scheme}:"
            if all(any(key.startswith(start) for key in keys) for keys in (one.keys, other.keys)):
                found.append((weight, f"different {scheme}"))
    if same := one.reports & other.reports:
        # "TR-17" is a number of many series; a long one is of one.
        longest = max(same, key=lambda number: (len("".join(number)), number))
        weight = min(4 + 0.5 * len("".join(longest)), _REPORT)
        found.append((weight, f"same number {' '.join(longest)}"))
    elif {series for series, _ in one.reports} & {series for series, _ in other.reports}:
        found.append((_OTHER_REPORT, "different numbers of one series"))
    return found


def _text(text: TextSimilarity | None) -> Evidence:
    if text is None:
        return []
    # Few terms are those of title and subjects, which were counted already; many are those of a full text.
    weight = min(sqrt(text.terms / _TEXT), 1.0)
    if text.cosine >= 0.5:
        return [(SAME_TEXT * weight * (text.cosine - 0.5) / 0.5, f"similar text ({text.cosine:.2f})")]
    return [(_OTHER_TEXT * weight * (0.5 - text.cosine) / 0.5, f"different text ({text.cosine:.2f})")]


def text_similarity(one: bytes | None, other: bytes | None) -> TextSimilarity | None:
    """The cosine of two packed term vectors, of roots of frequencies; None if it would tell nothing.

    That is where a vector is missing or very short, or one is of a text and the other of its description.
    """
    if not one or not other:
        return None
    mine, theirs = _unpacked(one), _unpacked(other)
    few, many = sorted((len(mine), len(theirs)))
    if few < _TERMS or many > 4 * few:
        return None
    product = fsum(sqrt(mine[term] * theirs[term]) for term in mine.keys() & theirs.keys())
    cosine = product / sqrt(sum(mine.values()) * sum(theirs.values()))
    return TextSimilarity(min(cosine, 1.0), few)


def _unpacked(packed: bytes) -> Mapping[str, int]:
    return {term: frequency for frequency, terms in groups(packed) for term in terms}
