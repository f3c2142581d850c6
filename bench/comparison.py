"""Two indexes beside each other: what differs in documents, frequencies, lengths, scores and rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from indlet.model import FIELD_MARK
from indlet.service.index import Searcher
from indlet.service.index.expression import Or, Term
from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS, model


def vocabulary(searcher: Searcher) -> dict[str, tuple[int, int]]:
    """df and cf of every term of the documents; those of descriptive fields are the service's own."""
    mark = FIELD_MARK.encode()
    return {name.decode(): (df, cf) for name, df, cf in searcher.vocabulary() if mark not in name}


def compare(
    here: Library,
    there: Library,
    ask: Callable[[list[str]], Iterable[Sequence[str]]],
    models: Iterable[str] = tuple(MODELS),
    key: Callable[[str], str] = str,
) -> tuple[dict[str, Any], dict[str, int]]:
    """How many things differ, by kind; and how large `there` is.

    `ask` gives queries for a vocabulary in the order of df; `key` is what both sides share of an identifier.
    """
    ours, theirs = here.searcher(), there.searcher()
    mine, whole = vocabulary(ours), vocabulary(theirs)
    terms = mine.keys() | whole.keys()
    known = [_lengths(library, key) for library in (here, there)]
    names = known[0].keys() | known[1].keys()
    differing: dict[str, Any] = {
        "documents": len(known[0].keys() ^ known[1].keys()),
        "df": sum(mine.get(t, (0, 0))[0] != whole.get(t, (0, 0))[0] for t in terms),
        "cf": sum(mine.get(t, (0, 0))[1] != whole.get(t, (0, 0))[1] for t in terms),
        "lengths": sum(known[0].get(name) != known[1].get(name) for name in names),
        "scores": dict.fromkeys(models, 0),
        "rankings": dict.fromkeys(models, 0),
    }
    compared = 0
    for asked in ask(sorted(whole, key=lambda t: (-whole[t][0], t))):
        for name in models:
            lists = [_ranked(one, s, asked, name, key) for one, s in ((here, ours), (there, theirs))]
            scores = [dict(one) for one in lists]
            compared += len(scores[1])
            differing["scores"][name] += sum(
                scores[0].get(one) != scores[1].get(one) for one in scores[0].keys() | scores[1].keys()
            )
            differing["rankings"][name] += lists[0] != lists[1]
    return differing, {
        "documents": theirs.collection.documents,
        "terms": len(whole),
        "tokens": theirs.collection.length,
        "postings": sum(df for df, _ in whole.values()),
        "scores_compared": compared,
    }


def total(differing: dict[str, Any]) -> int:
    return sum(sum(v.values()) if isinstance(v, dict) else v for v in differing.values())


def _lengths(library: Library, key: Callable[[str], str]) -> dict[str, int]:
    with library.store.read() as view:
        return {key(stored.identifier): stored.length for stored in view.changes() if not stored.deleted}


def _ranked(
    library: Library, searcher: Searcher, asked: Sequence[str], name: str, key: Callable[[str], str]
) -> list[tuple[str, float]]:
    expression = Or(tuple(Term(term) for term in dict.fromkeys(asked)))
    hits = searcher.search(expression, model(name), 10**6, collapse=False).hits
    with library.store.read() as view:
        records = view.by_id([hit.id for hit in hits])
    return [(key(records[hit.id].identifier), hit.score) for hit in hits]
