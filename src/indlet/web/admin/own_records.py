"""Records that this node speaks for, found by words: its own, and those of sources that it has adopted."""

from __future__ import annotations

from typing import Final

from indlet.errors import IndletError
from indlet.service.search.library import Library
from indlet.service.search.results import Hit

_SHOWN: Final = 20
_LONGEST: Final = 500  # characters of a query


def find_own(library: Library, words: str) -> tuple[list[Hit], str]:
    """Live records that may be marked as deleted, best first; why there are none, where the search fails."""
    words = words.strip()[:_LONGEST]
    if not words:
        return [], ""
    with library.store.read() as view:
        own = [o.name for o in view.origins() if o.kind == "hierarchy" or "adopted" in o.state]
    if not own:
        return [], ""
    try:
        return list(library.search(words, plain=True, limit=_SHOWN, filters={"source": own}).hits), ""
    except IndletError as e:
        return [], str(e)
