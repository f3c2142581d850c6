"""Phrases in metadata: the index finds who holds the words, the metadata tell who holds them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from indlet.formats.people import names
from indlet.model import Stored
from indlet.text import SEARCHED, Analyzer
from indlet.text.analyse import LOST
from indlet.text.tokens import joined, split

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
    pieces = split(joined(phrase))
    for language in (own,) if own else languages:
        lexicon = analyzer.lexicon(analyzer.rules_for(language))
        wanted = list(lexicon.terms(pieces))
        while wanted and wanted[-1] == LOST:
            wanted.pop()
        while wanted and wanted[0] == LOST:
            wanted.pop(0)
        if wanted and any(_holds(list(lexicon.terms(split(joined(value)))), wanted) for value in values):
            return True
    return False


def _holds(terms: Sequence[str], wanted: Sequence[str]) -> bool:
    size = len(wanted)
    return any(
        all(asked in (LOST, term) for asked, term in zip(wanted, terms[at : at + size], strict=True))
        for at in range(len(terms) - size + 1)
        if terms[at] == wanted[0]
    )
