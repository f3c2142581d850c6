"""Text to tokens: the same for every language.

1. A soft hyphen at the end of a line joins the two halves of its word. No other hyphen does: "infor-" at a
   line's end is as likely to be the first half of "infor-mation" as of "T-shirt", and a guess is not exact.
2. White space and every ASCII character that is neither letter nor digit separate: "don't" is "don" and "t",
   "T-shirt" is "t" and "shirt". For ASCII text the tokens are therefore ``re.findall("[a-z0-9]+",
   text.lower())``.
3. What lies between is folded: characters without a shape of their own (soft hyphens, joiners, marks of
   direction) vanish; compatible characters become one (NFKC: "ﬁ" is "fi", "Ｗ" is "w"); case goes (Unicode
   case folding: "ß" is "ss"). Accents stay, up to thirty on a letter: they tell words apart, and the
   stemmers want them. A trade mark sign separates, or "Linux™" would become "linuxtm".
4. In that, a token is a run of letters, digits and combining marks that starts with a letter or digit.
   Anything else separates, typographic quotes, dashes and the zero-width space among it.
5. Scripts that are written without spaces between words (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar) give
   overlapping pairs of characters instead, each character with its marks: 情報検索 is 情報, 報検, 検索. A
   character that stands alone is a token. Hangul is among them because its words carry their particles.

A token holds letters, digits and marks only: no white space, no control character, nothing that XML forbids.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import compress, pairwise
from typing import Final

# Every ASCII byte becomes a lower-case letter, a digit, or a space; bytes of longer UTF-8 sequences stay.
_ASCII: Final = bytes(
    byte if byte > 0x7F or chr(byte).isalnum() else 0x20 for byte in bytes(range(256)).lower()
)
_PIECE: Final = re.compile(r"[^\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")

_SOFT_HYPHEN: Final = "\u00ad"
_BROKEN: Final = re.compile("\u00ad(?:\r\n?|\n|\u2028)[ \t]*")

# Default ignorable code points (Unicode, DerivedCoreProperties), less the zero-width space U+200B, which some
# scripts put between words.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_MARKS: Final = frozenset(("Mn", "Mc", "Me"))  # categories
_DOTTED: Final = re.compile("i\u0307+")
_TRADE: Final = re.compile("[\u2120\u2122]")

_UNSPACED: Final = (
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Hangul
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # Kana
    "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u0e01-\u0e46\u0e81-\u0ec6\u0edc-\u0edf\u1780-\u17d3\u17d7\u17dc"  # Thai, Lao, Khmer
    "\u1000-\u103f\u1050-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"  # Myanmar
)


def joined(text: str) -> str:
    """A text whose words are whole where a soft hyphen broke them at the end of a line."""
    return _BROKEN.sub("", text) if _SOFT_HYPHEN in text else text


def split(text: str) -> list[str]:
    """The pieces of a text between white space and ASCII punctuation, ASCII letters in lower case.

    An ASCII piece is a token as it stands; what any other piece holds, `words` tells. Splitting this way
    costs a few nanoseconds a character, and most pieces of a text were seen before.
    """
    # A lone surrogate becomes a question mark, and so a space.
    return text.encode("utf-8", "replace").translate(_ASCII).decode("utf-8").split()


def words(piece: str) -> list[str]:
    """The tokens of one piece, or of any text without a line break in it."""
    if piece.isascii() and piece.isalnum():
        return [piece.lower()]
    word, unspaced, character, _ = _patterns()
    found: list[str] = []
    for run in word.findall(fold(piece).replace("_", " ")):
        # Splitting at a group keeps what it matched, at the odd places.
        for place, part in enumerate(unspaced.split(run)):
            characters = character.findall(part) if place % 2 else ()
            if len(characters) > 1:
                found.extend(map("".join, pairwise(characters)))
            elif part:
                found.append(part)
    return found


def fold(text: str) -> str:
    """A text without case, compatible variants and ignorable characters; folding it again changes nothing."""
    if text.isascii():
        return text.lower()
    text = _TRADE.sub(" ", text)
    piled = _patterns()[3]
    while True:
        folded = unicodedata.normalize("NFKC", piled.sub(r"\1", _IGNORABLE.sub("", text)))
        # Case folding leaves a dot above the i of a Turkish capital: İzmir has to meet izmir. It also takes
        # some Greek letters apart, hence the second normalisation.
        folded = unicodedata.normalize("NFKC", _DOTTED.sub("i", folded.casefold()))
        if folded == text:
            return text
        text = folded


def tokens(text: str) -> list[tuple[int, int, str]]:
    """Each token with the start and end, in the text, of the piece that it comes from."""
    found: list[tuple[int, int, str]] = []
    for piece in _PIECE.finditer(text):
        found.extend((piece.start(), piece.end(), word) for word in words(piece.group()))
    return found


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Patterns of a word, of a stretch of unspaced script in it, of one character of that with its marks, and
    of a pile of marks too high.
    """
    marks = _marks()
    # Not every code point in the ranges is a letter: some are marks, which belong to the letter before.
    character = rf"(?=\w)[{_UNSPACED}][{marks}]*"
    return (
        re.compile(rf"\w[\w{marks}]*"),
        re.compile(rf"((?:{character})+)"),
        re.compile(character),
        # Ordering a pile takes the square of its height; no language stacks more (UAX 15, stream-safe text).
        re.compile(rf"([{marks}]{{30}})[{marks}]+"),
    )


def _marks() -> str:
    """The combining marks of this Python's Unicode, as the inside of a character class.

    Beyond the ranges that are looked through there are variation selectors only, and those are ignorable;
    between them, the letters of Han, Hangul and Tangut, surrogates and private use.
    """
    points = (
        *range(0x300, 0x3400), *range(0xA000, 0xAC00), *range(0xD7A4, 0xD800), *range(0xF900, 0x17000),
        *range(0x18B00, 0x1F000),
    )  # fmt: skip
    marks = compress(points, map(_MARKS.__contains__, map(unicodedata.category, map(chr, points))))
    ranges: list[list[int]] = []
    for point in marks:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
