"""Codes and names of languages. Which language a text is in, the core tells (`core/src/text/language.rs`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from indlet._core import language_code
from indlet.memo import memoize

# Both written forms of Norwegian have one set of rules.
_RULES: Final = {"nb": "no", "nn": "no"}


@cache
def _bibliographic() -> dict[str, str]:
    """The ISO 639-2 code (the bibliographic one) of each language."""
    found: dict[str, str] = {}
    text = Path(__file__).with_name("languages.tsv").read_text("utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            two, terminological, older, _ = line.split("\t")
            found[two] = older if older and older not in ("scr", "scc") else terminological
    return found


def marc_language(value: str) -> str:
    """The code of three letters that library catalogues use (ISO 639-2/B); the value if there is none."""
    return _bibliographic().get(value, value)


@memoize(4096)
def code(name: str) -> str:
    """The language by whose rules a text is analysed: as `language_code` has it, if ISO 639-1 knows it.

    Rules and statistics of a text are kept by codes of two letters: one of three letters is no language here.
    """
    found = language_code(name)
    return _RULES.get(found, found) if len(found) == 2 else ""


__all__ = ["code", "language_code", "marc_language"]
