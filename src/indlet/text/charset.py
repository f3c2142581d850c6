"""Character sets by the names that files and servers give them."""

from __future__ import annotations

import codecs
from typing import Final

# Codecs that are no character sets: their time grows with the square of a text's length, or they always fail.
_OTHERS: Final = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")


def charset(name: str) -> str:
    """Python's name of the character set that is meant; empty if it has none for it."""
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return "" if found.replace("_", "-") in _OTHERS else found
