"""The index: what it is (`protocol`), what it is asked (`expression`), how it follows the store (`follow`).

Engines have a folder each; `engines.index_of` opens the one that goes with a store.
"""

from indlet.service.index.protocol import (
    SORTS,
    Explanation,
    Found,
    Index,
    IndexState,
    IndexWriter,
    NearTerm,
    Part,
    Prepared,
    Results,
    Searcher,
    Statistics,
    Upkeep,
    Value,
)

__all__ = [
    "SORTS", "Explanation", "Found", "Index", "IndexState", "IndexWriter", "NearTerm", "Part", "Prepared",
    "Results", "Searcher", "Statistics", "Upkeep", "Value",
]  # fmt: skip
