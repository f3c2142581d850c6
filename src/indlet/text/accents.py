"""Letters without their accents: how words are compared where accents are not to count."""

from __future__ import annotations

import unicodedata
from typing import Final

# Letters that Unicode does not take apart.
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"}
)


def without_accents(text: str) -> str:
    """A text in which Latin and Greek letters have no accents; other scripts stay as they are.

    Beyond these two, marks make other letters: и is not й, and a vowel sign is no ornament.
    """
    if text.isascii():
        return text
    out: list[str] = []
    plain = False
    for c in unicodedata.normalize("NFD", text.translate(_LETTERS)):
        if not unicodedata.combining(c):
            plain = c < "\u0400" or "\u1e00" <= c < "\u2000"
        elif plain:
            continue
        out.append(c)
    return unicodedata.normalize("NFC", "".join(out))
