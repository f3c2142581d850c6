"""Static pruning: the terms of a document that matter, told from the document alone.

Büttcher & Clarke (CIKM 2006, "A document-centric approach to static index pruning") keep of each document
the share of terms that contribute most to the divergence of the document from its collection: p(t|d) log
p(t|d) / p(t|C). A provider analyses one document at a time and does not know the collections that will be
made of it, so nothing is known of p(t|C): all terms are taken to be equally likely there, and the
contribution then grows with the frequency of a term in its document alone. That is also how Luhn (1958,
"The automatic creation of literature abstracts") tells the significant words of a text, and Lu & Callan
(CIKM 2002, "Pruning long documents for distributed information retrieval") cut documents with small loss.
Among equally frequent terms the longer goes first, for rare words are longer (Zipf 1935), then the one
with the lower code points: the same document always keeps the same terms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import ceil


def summary(frequencies: Mapping[str, int], lead: Collection[str], share: float | None) -> list[str]:
    """The terms of a lead-and-keyword summary: those of a text's beginning, and the keywords of the whole.

    News and abstracts say at the beginning what they are about (Edmundson 1969; Lu & Callan 2002 compare such
    summaries for distributed retrieval); keywords are those that pruning to a `share` keeps, none without.
    """
    keywords = set() if share is None else set(kept(frequencies, share))
    return [term for term in frequencies if term in lead or term in keywords]


def kept(frequencies: Mapping[str, int], share: float) -> list[str]:
    """The terms that stay: the given share of them, rounded up."""
    ranked = sorted(frequencies, key=lambda term: (-frequencies[term], -len(term), term))
    return ranked[: ceil(share * len(ranked))]
