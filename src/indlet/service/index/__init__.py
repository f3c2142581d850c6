"""The inverted index: exact statistics, several ranking models, snapshots, crash safety."""

from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.ranking import Found
from indlet.service.index.embedded.searcher import Explanation, Results, Searcher, Statistics
from indlet.service.index.embedded.warming import warm

__all__ = ["Engine", "Explanation", "Found", "Results", "Searcher", "Statistics", "warm"]
