"""The inverted index: exact statistics, several ranking models, snapshots, crash safety."""

from indlet.service.index.engine import Engine
from indlet.service.index.ranking import Found
from indlet.service.index.searcher import Explanation, Results, Searcher, Statistics
from indlet.service.index.warming import warm

__all__ = ["Engine", "Explanation", "Found", "Results", "Searcher", "Statistics", "warm"]
