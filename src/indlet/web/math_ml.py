"""TeX in titles and abstracts as MathML: `$\\frac{a}{b}$` becomes a fraction that a browser draws.

The common part of TeX is read. Metadata is hostile, so the result consists of known elements without
attributes, and its depth and size are limited; a library for all of TeX would have to be guarded against
links and styles. A formula with anything else in it is shown as plain text (`math_text.readable`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from markupsafe import Markup, escape

from indlet.web.math_text import FORMULA_LENGTH, SIGNS, pieces, readable

_DEEPEST: Final = 12
_PIECE: Final = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
# fmt: off
_FUNCTIONS: Final = frozenset((
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log",
    "ln", "lg", "exp", "lim", "limsup", "liminf", "max", "min", "sup", "inf", "det", "dim", "ker", "deg",
    "gcd", "arg", "hom", "Pr", "tr", "rank", "mod",
))
_UPRIGHT: Final = frozenset((
    "text", "textrm", "textit", "textbf", "textsc", "texttt", "textsf", "emph", "mathrm", "mathbf", "mathit",
    "mathsf", "mathtt", "operatorname", "rm", "bf", "it", "mbox", "hbox", "boldsymbol", "bm",
))
# fmt: on
_LETTERS: Final = {"mathbb": 0x1D538, "mathcal": 0x1D49C, "mathscr": 0x1D49C, "mathfrak": 0x1D504}
# Letters of these alphabets that Unicode had before it had the alphabets.
_EARLIER: Final = {
    0x1D538: dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True)),
    0x1D49C: dict(zip("BEFHILMR", "ℬℰℱℋℐℒℳℛ", strict=True)),
    0x1D504: dict(zip("CHIRZ", "ℭℌℑℜℨ", strict=True)),
}
_ABOVE: Final = {
    "bar": "¯", "overline": "¯", "hat": "^", "widehat": "^", "tilde": "~", "widetilde": "~", "vec": "→",
    "dot": "˙", "ddot": "¨",
}  # fmt: skip
_SPACES: Final = frozenset(("\\,", "\\;", "\\:", "\\!", "\\ ", "\\quad", "\\qquad", "~", "\\left", "\\right"))
_SPACES_ONLY: Final = re.compile(r"\s+")


class _Unknown(Exception):
    """The formula holds something that is not read here."""


@lru_cache(maxsize=4096)
def with_math(text: str) -> Markup:
    """The text as HTML, its formulas as MathML."""
    return Markup("").join(_formula(part) if is_math else escape(part) for part, is_math in pieces(text))


def _formula(tex: str) -> Markup:
    try:
        if len(tex) > FORMULA_LENGTH:
            raise _Unknown
        return Markup("<math>{}</math>").format(_Parser(_PIECE.findall(tex)).row())
    except _Unknown:
        return escape(readable(f"${tex}$"))


class _Parser:
    """Reads the pieces of one formula from left to right."""

    def __init__(self, found: Sequence[str]) -> None:
        self._pieces = found
        self._at = 0
        self._depth = 0

    def row(self, end: str = "") -> Markup:
        """The elements up to a closing sign, which is passed over, or up to the end."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unknown
        found: list[Markup] = []
        while (piece := self._next()) != end:
            if piece == "":
                raise _Unknown  # never closed
            if piece.isspace() or piece in _SPACES:
                continue
            if piece in ("^", "_", "'"):
                found.append(self._script(piece, found.pop() if found else Markup("<mrow></mrow>")))
            else:
                found.append(self._element(piece))
        self._depth -= 1
        return Markup("").join(found)

    def _next(self) -> str:
        if self._at == len(self._pieces):
            return ""
        self._at += 1
        return self._pieces[self._at - 1]

    def _peek(self) -> str:
        while self._at < len(self._pieces) and self._pieces[self._at].isspace():
            self._at += 1
        return self._pieces[self._at] if self._at < len(self._pieces) else ""

    def _argument(self) -> Markup:
        """The next element or group, as one element."""
        self._peek()
        piece = self._next()
        if piece in ("", "}", "^", "_"):
            raise _Unknown
        return self._element(piece)

    def _element(self, piece: str) -> Markup:
        if piece == "{":
            return Markup("<mrow>{}</mrow>").format(self.row("}"))
        if piece in ("}", "&", "#", "$", "%"):
            raise _Unknown
        if piece[0].isdigit():
            return Markup("<mn>{}</mn>").format(piece)
        if piece[0] != "\\":
            return _letter(piece) if piece.isalpha() else Markup("<mo>{}</mo>").format(piece)
        return self._command(piece[1:])

    def _command(self, name: str) -> Markup:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            return Markup("<mfrac>{}{}</mfrac>").format(self._argument(), self._argument())
        if name == "sqrt":
            return self._root()
        if name in _UPRIGHT:
            return Markup("<mtext>{}</mtext>").format(self._text())
        if name in _LETTERS:
            return _letter("".join(_alphabet_letter(_LETTERS[name], letter) for letter in self._text()))
        if name in _ABOVE:
            return Markup("<mover>{}<mo>{}</mo></mover>").format(self._argument(), _ABOVE[name])
        if name in _FUNCTIONS:
            return _letter(name)
        if (sign := SIGNS.get(name, "")) != "":
            return _letter(sign) if sign.isalpha() else Markup("<mo>{}</mo>").format(sign)
        if len(name) == 1 and name in "{}%&#_$|":
            return Markup("<mo>{}</mo>").format(name)
        raise _Unknown

    def _root(self) -> Markup:
        if self._peek() != "[":
            return Markup("<msqrt>{}</msqrt>").format(self._argument())
        self._next()
        degree = self.row("]")
        return Markup("<mroot>{}<mrow>{}</mrow></mroot>").format(self._argument(), degree)

    def _text(self) -> str:
        """The characters of an argument: letters, digits, signs; one within another is not read."""
        if self._peek() != "{":
            piece = self._next()
            if len(piece) != 1 or not piece.isalnum():
                raise _Unknown
            return piece
        self._next()
        found = []
        while (piece := self._next()) != "}":
            if piece == "" or piece[0] in "\\{^_$":
                raise _Unknown
            found.append(piece)
        return _SPACES_ONLY.sub("\u00a0", "".join(found))

    def _script(self, sign: str, base: Markup) -> Markup:
        """A base with its superscript and subscript, in either order."""
        parts = {sign: Markup("<mo>′</mo>") if sign == "'" else self._argument()}
        if sign != "'" and self._peek() in ("^", "_") and self._peek() != sign:
            other = self._next()
            parts[other] = self._argument()
        if "'" in parts:
            parts["^"] = parts["'"]
        if len(parts) == 2 and "_" in parts:
            return Markup("<msubsup>{}{}{}</msubsup>").format(base, parts["_"], parts["^"])
        if "_" in parts:
            return Markup("<msub>{}{}</msub>").format(base, parts["_"])
        return Markup("<msup>{}{}</msup>").format(base, parts["^"])


def _letter(text: str) -> Markup:
    return Markup("<mi>{}</mi>").format(text)


def _alphabet_letter(first: int, letter: str) -> str:
    if not ("A" <= letter <= "Z" or "a" <= letter <= "z"):
        return letter
    if letter.islower():
        return chr(first + 26 + ord(letter) - ord("a")) if first != 0x1D49C else letter
    return _EARLIER[first].get(letter) or chr(first + ord(letter) - ord("A"))
