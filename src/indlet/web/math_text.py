"""Mathematics and TeX in titles and abstracts as text that people can read: `$\\alpha$-decay of $^{12}$C` is
"α-decay of ¹²C". What has no sign of its own stays as it is written, without its backslashes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from indlet.web.markup import LOWERED, RAISED, without_markup

_MOST: Final = 20_000  # characters; longer texts stay as they are
SIGNS: Final = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "varphi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π",
    "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "infty": "∞", "partial": "∂", "nabla": "∇",
    "times": "×", "cdot": "·", "pm": "±", "mp": "∓", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠",
    "approx": "≈", "sim": "∼", "equiv": "≡", "propto": "∝", "to": "→", "rightarrow": "→", "leftarrow": "←",
    "Rightarrow": "⇒", "mapsto": "↦", "in": "∈", "notin": "∉", "subset": "⊂", "subseteq": "⊆", "cup": "∪",
    "cap": "∩", "emptyset": "∅", "forall": "∀", "exists": "∃", "sum": "∑", "prod": "∏", "int": "∫",
    "sqrt": "√", "ell": "ℓ", "hbar": "ℏ", "circ": "∘", "degree": "°", "otimes": "⊗", "oplus": "⊕",
    "ldots": "…", "dots": "…", "cdots": "⋯", "langle": "⟨", "rangle": "⟩", "star": "⋆", "ast": "∗",
    "dagger": "†", "ll": "≪", "gg": "≫", "wedge": "∧", "vee": "∨", "neg": "¬", "quad": " ", "ss": "ß",
    "ae": "æ", "oe": "œ", "o": "ø", "aa": "å", "AA": "Å", "O": "Ø", "l": "ł", "L": "Ł",
    "textendash": "–", "textemdash": "—", "uparrow": "↑", "downarrow": "↓", "leftrightarrow": "↔",
    "perp": "⊥", "parallel": "∥", "odot": "⊙", "bullet": "•", "cong": "≅", "simeq": "≃", "lesssim": "≲",
    "gtrsim": "≳", "setminus": "∖", "Upsilon": "Υ", "vartheta": "ϑ", "aleph": "ℵ", "prime": "′", "mid": "|",
    "longrightarrow": "→", "left": "", "right": "",
}  # fmt: skip
_ACCENTS: Final = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
# What may be mathematics between two dollars ("$3$-uniform"), unlike two sums of money ("$5-$10").
FORMULA_LENGTH: Final = 300
_MATH: Final = re.compile(
    r"\$\$?(?! )([^$]{1,300}?)(?<! )\$\$?|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]", re.DOTALL
)
_TIE: Final = re.compile(r"(?<=[\w$})])~(?=[\w$\\])")  # a space at which no line ends: "$0.4$~eV"
_TOLD: Final = re.compile(r"[$\\]|[_^]\{")
_TELLING: Final = re.compile(r"[\\^_{}=<>]|^[A-Za-z]{1,2}$|^[A-Za-z0-9]+[+\-*/][A-Za-z0-9]+$")
_ACCENTED: Final = re.compile(r"\{?\\([`'^~\"=.])\s*\{?\\?([A-Za-z])\}?\}?|\{?\\([uvHckr])\{([A-Za-z])\}\}?")
_STYLED: Final = re.compile(
    r"\\(?:text|mathrm|mathbf|mathit|mathcal|mathbb|mathsf|mathfrak|textit|textbf|textsc|textrm|texttt|emph|rm|it"
    r"|bf|operatorname|boldsymbol|bar|hat|tilde|vec|overline)\s*(?:\{([^{}]*)\}|(?<=[a-z])\s([A-Za-z])(?![A-Za-z]))"
)
_SWITCHED: Final = re.compile(r"\\(?:rm|it|bf|sf|tt|cal|em|displaystyle|textstyle)(?![A-Za-z])\s*")
_OVER: Final = {"bar": "\u0304", "overline": "\u0304", "hat": "\u0302", "tilde": "\u0303", "vec": "\u20d7"}
_OVERSET: Final = re.compile(
    rf"\\({'|'.join(_OVER)})\s*(?:\{{([A-Za-z])\}}|(?<=[a-z])\s?([A-Za-z])(?![A-Za-z]))"
)
_SCRIPT: Final = re.compile(r"([\^_])(?:\{([^{}]*)\}|(\S))")
_INNERMOST: Final = re.compile(r"([\^_])\{([^{}\\]*)\}()")  # whose commands are replaced already
_FRACTION: Final = re.compile(r"\\t?d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_COMMAND: Final = re.compile(r"\\([A-Za-z]+)(\s?)|\\([^A-Za-z])")


@lru_cache(maxsize=4096)
def readable(text: str) -> str:
    """The text without markup, its mathematics as plain signs; the same text where there is none."""
    parts = (_braceless_formula(part) if is_math else part for part, is_math in pieces(text))
    return " ".join("".join(parts).split())


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces: plain text without markup and TeX, and the TeX of formulas, which is True."""
    text = without_markup(text)
    if not _TOLD.search(text) or len(text) > _MOST:
        yield text, False
        return
    text, at = _ACCENTED.sub(_accented, _TIE.sub(" ", text)), 0
    for found in _MATH.finditer(text):
        if _is_money(found):
            continue
        yield _braceless(text[at : found.start()]), False
        yield found[1] or found[2] or found[3] or "", True
        at = found.end()
    yield _braceless(text[at:]), False


def _accented(found: re.Match[str]) -> str:
    sign, letter = (found[1], found[2]) if found[1] else (found[3], found[4])
    return unicodedata.normalize("NFC", letter + _ACCENTS[sign])


def _is_money(found: re.Match[str]) -> bool:
    """Whether two dollars stand before sums of money rather than around a formula."""
    inner = found[1] or ""
    may_be = " " in inner or found.string[found.end() : found.end() + 1].isdigit()
    return bool(found[1]) and may_be and not _TELLING.search(inner)


def _braceless_formula(tex: str) -> str:
    return _plain(tex).replace("{", "").replace("}", "")


def _braceless(text: str) -> str:
    """Outside of mathematics: `\\emph{x}` and `{NASA}` without their signs."""
    if "\\" in text or "_{" in text or "^{" in text:
        text = _plain(text)
    return re.sub(r"\{([^{}]{0,200})\}", r"\1", text)


def _plain(text: str) -> str:
    text = _COMMAND.sub(lambda found: _command(found) if found[1] in SIGNS else found[0], text)
    for _ in range(8):  # one in another
        before = text
        text = _OVERSET.sub(lambda found: (found[2] or found[3]) + _OVER[found[1]], text)
        text = _FRACTION.sub(r"\1/\2", _STYLED.sub(lambda found: found[1] or found[2] or "", text))
        text = _INNERMOST.sub(_scripted, text)
        if text == before:
            break
    text = _COMMAND.sub(_command, _SWITCHED.sub("", text))
    return unicodedata.normalize("NFC", _SCRIPT.sub(_scripted, text))


def _command(found: re.Match[str]) -> str:
    if not found[1]:
        return _escaped(found[3])
    sign = SIGNS.get(found[1], found[1])
    return sign if len(sign) == 1 and sign.isalpha() else sign + found[2]


def _escaped(sign: str) -> str:
    return "" if sign in "()[]!" else " " if sign in ",;:" or sign.isspace() else sign


def _scripted(found: re.Match[str]) -> str:
    inner = (found[2] if found[2] is not None else found[3]).strip()
    table = RAISED if found[1] == "^" else LOWERED
    if inner and all(c in table for c in inner):
        return "".join(table[c] for c in inner)
    if found[1] == "^" and inner in ("∘", "°", "*", "∗", "′"):
        return "°" if inner == "∘" else inner
    return f"{found[1]}{inner}" if len(inner) < 2 else f"{found[1]}({inner})"
