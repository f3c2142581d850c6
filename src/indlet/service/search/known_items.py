"""A query that is not about something but names it: an identifier or a title that was pasted whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import orjson

from indlet.formats.identifiers import asked_for, find_cited_keys, key_in, like_a_code
from indlet.service.index import Searcher
from indlet.service.index import expression as e
from indlet.service.index.keys import identifier_terms, title_keys
from indlet.service.index.values import title_orders
from indlet.service.search import query as q
from indlet.service.search.lexer import FIELDS, KEY_FIELDS
from indlet.service.search.notes import Note
from indlet.store import Store

# Schemes whose identifiers nobody types for another reason: the record that has it is all that is wanted.
_CERTAIN: Final = ("doi:", "hdl:", "isbn:", "arxiv:", "oai:", "url:", "id:urn:")
_COMPARED: Final = 200  # records of one title whose spellings are looked at
# A field of words or values, or one of identifiers after an operator: a query, and no reference.
_NAMES: Final = "|".join(name for name, field in FIELDS.items() if field not in KEY_FIELDS)
_QUERY: Final = re.compile(rf"(?<![^\s(+-])(?i:{_NAMES}):[^\s:)]|\b(?:AND|OR|NOT)\s+[(+-]*\w+:[^\s:)]")


@dataclass(frozen=True, slots=True)
class KnownItem:
    """What is known of a query: keys that records have. They go first, or, if certain, are all there is."""

    first: tuple[e.Expression, ...] = ()
    certain: str = ""
    verbatim: bool = False  # no sign in it is one of the query language
    notes: tuple[str, ...] = ()

    def only(self, text: str) -> q.Query | None:
        """The query for the identifier alone, where that is certain."""
        return q.Query(text, q.IdentifierWord("key", self.certain)) if self.certain else None


def known_item(text: str, searcher: Searcher, store: Store) -> KnownItem:
    """What a query names as a whole; nothing where no record has it."""
    stated = [key_in("id", text)] if like_a_code(text) else []  # "J. Phys. A 47, 032002 (2014)"
    named = asked_for(text)
    for key in (*named, *stated, *([] if _QUERY.search(text) else find_cited_keys(text))):
        (term,) = identifier_terms([key])
        if searcher.query_terms(e.Term(term)):
            if key.startswith(_CERTAIN) and key in (*named, *stated):
                return KnownItem(certain=key, notes=(Note("known_item", text=text.strip()),))
            return KnownItem((e.Term(term),), verbatim=True)
    for key in title_keys(text):
        if searcher.query_terms(e.Term(key)):
            # What has the text as its whole title goes before what has it before a colon.
            whole = e.Or(tuple(e.Term(order) for order in title_orders(text)))
            exact = _exact(text, e.Term(key), searcher, store)
            return KnownItem((*exact, e.And((e.Term(key), whole)), e.Term(key)), verbatim=True)
    return KnownItem(verbatim=text.strip()[:4].lower() == "urn:")


def _exact(text: str, title: e.Term, searcher: Searcher, store: Store) -> tuple[e.Expression, ...]:
    """Of several records with a title, those that spell it as the query does; none if all do."""
    found = searcher.search(title, limit=_COMPARED, collapse=False)
    if not 1 < found.total <= _COMPARED:
        return ()
    wanted = " ".join(text.strip('"“” ').split())
    with store.read() as view:
        records = view.by_id([hit.id for hit in found.hits], parts=("metadata",)).values()
    same = tuple(
        stored.id
        for stored in records
        if any(
            " ".join(one.split()) == wanted for one in orjson.loads(stored.metadata or b"{}").get("title", ())
        )
    )
    return (e.Ids(same),) if 0 < len(same) < found.total else ()
