"""HTML in metadata as text that people can read: `<i>In Vivo</i>` and `f&uuml;r` without their signs.

Nothing here makes text safe: whoever writes HTML escapes it there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape
from typing import Final

RAISED: Final = dict(zip("0123456789+-=()nia", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵃ", strict=True))
LOWERED: Final = dict(zip("0123456789+-=()aeoxhklmnpst", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓₕₖₗₘₙₚₛₜ", strict=True))
_MOST: Final = 20_000  # characters; longer texts stay as they are
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_INLINE: Final = "a|abbr|b|big|cite|code|em|font|i|italic|q|s|scp|small|span|strong|tt|u|var"
_BLOCK: Final = "blockquote|center|div|h[1-6]|li|ol|p|pre|table|tbody|td|th|tr|ul"
_SCRIPT: Final = re.compile(r"<(su[bp])>([^<>]{0,100})</\1>", re.IGNORECASE)
_TAG: Final = re.compile(
    rf"<(/?)((?:jats:)?(?:{_INLINE}|{_BLOCK}|br|hr|sub|sup|sec|title))(?:\s[^<>]{{0,500}})?/?>", re.IGNORECASE
)
_SPACED: Final = re.compile(rf"(?:jats:)?(?:{_BLOCK}|br|hr|sec|title)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def without_markup(text: str) -> str:
    """The text without tags of HTML and JATS, its entities as characters; the same text where there are none.

    A tag counts if the text ends it somewhere: the mean momentum <p> is none.
    """
    if ("<" not in text and "&" not in text) or len(text) > _MOST:
        return text
    plain = _ENTITY.sub(lambda found: unescape(found[0]).replace("\xad", ""), text)
    if "<" in plain:
        ended = {found[2].lower() for found in _TAG.finditer(plain) if found[1]} | {"br", "hr"}
        plain = _SCRIPT.sub(_scripted, plain)

        def shown(found: re.Match[str]) -> str:
            name = found[2].lower()
            return found[0] if name not in ended else " " if _SPACED.fullmatch(name) else ""

        plain = _TAG.sub(shown, plain)
    return text if plain == text else " ".join(plain.split())


def _scripted(found: re.Match[str]) -> str:
    signs = RAISED if found[1].lower() == "sup" else LOWERED
    return "".join(map(signs.__getitem__, found[2])) if all(c in signs for c in found[2]) else found[2]
