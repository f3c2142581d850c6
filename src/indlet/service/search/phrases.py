"""Phrases in metadata: the index finds who holds the words, the metadata tell who holds them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from indlet.formats.people import names
from indlet.model import Stored
from indlet.text import SEARCHED, Analyzer

# Records whose metadata are read for one phrase: more would make a question wait.
VERIFIED: Final = 5_000
VERIFIED_WHOLE: Final = 2_000  # where all of the metadata are read


def holds(analyzer: Analyzer, stored: Stored, field: str, phrase: str, languages: Sequence[str]) -> bool:
    """Whether a value of a field holds the phrase, word by word; a stop word in it stands for any word.

    Without a field, one of the values that are searched does. A record that came with the statistics of its
    full text may hold the phrase there.
    """
    if not field and stored.vector is not None:
        return True
    metadata = orjson.loads(stored.metadata or b"{}")
    values = [value for name in ([field] if field else SEARCHED) for value in metadata.get(name, ())]
    if field in ("creator", "contributor"):
        values = [name for value in values for name in names(value)]
    own = analyzer.completed(stored).language
    for language in (own,) if own else languages:
        wanted = analyzer.sequence(phrase, language)
        while wanted and wanted[-1] is None:
            wanted.pop()
        while wanted and wanted[0] is None:
            wanted.pop(0)
        if wanted and any(_holds(analyzer.sequence(value, language), wanted) for value in values):
            return True
    return False


def _holds(terms: Sequence[str | None], wanted: Sequence[str | None]) -> bool:
    size = len(wanted)
    return any(
        all(asked in (None, term) for asked, term in zip(wanted, terms[at : at + size], strict=True))
        for at in range(len(terms) - size + 1)
        if terms[at] == wanted[0]
    )
