"""A query that is not about something but names it: an identifier or a title that was pasted whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from indlet.formats.identifiers import asked_for
from indlet.service.index import Searcher
from indlet.service.index import expression as e
from indlet.service.index.keys import identifier_terms, title_keys
from indlet.service.search import query as q
from indlet.service.search.notes import Note

# Schemes whose identifiers nobody types for another reason: the record that has it is all that is wanted.
_CERTAIN: Final = ("doi:", "hdl:", "isbn:", "arxiv:", "oai:", "url:")


@dataclass(frozen=True, slots=True)
class KnownItem:
    """What is known of a query: keys that records have. They go first, or, if certain, are all there is."""

    first: tuple[e.Expression, ...] = ()
    certain: str = ""
    titled: bool = False
    notes: tuple[str, ...] = ()

    def only(self, text: str) -> q.Query | None:
        """The query for the identifier alone, where that is certain."""
        return q.Query(text, q.IdentifierWord("key", self.certain)) if self.certain else None


def known_item(text: str, searcher: Searcher) -> KnownItem:
    """What a query names as a whole; nothing where no record has it."""
    if ":" not in text or " " not in text.strip() or text.strip()[:4].lower() in ("doi:", "isbn", "hdl:"):
        for key in asked_for(text):
            (term,) = identifier_terms([key])
            if searcher.query_terms(e.Term(term)):
                if key.startswith(_CERTAIN):
                    return KnownItem(certain=key, notes=(Note("known_item", text=text.strip()),))
                return KnownItem((e.Term(term),))
    titled = [e.Term(key) for key in title_keys(text)]
    if titled and searcher.query_terms(titled[0]):
        return KnownItem(tuple(titled), titled=True)
    return KnownItem()
