"""What an index is, whichever engine keeps it: a follower of the store writes it, and it answers questions.

Everything that passes through is a plain value: expressions and models in, numbers and names out. Nobody
outside an engine's own folder knows how it keeps them. `Searcher` has more methods than our other protocols:
it is every question that the rooms below ask, and each engine has to answer all of them.
"""

from __future__ import annotations

from collections.abc import Collection as Collected
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from indlet.model import Stored

if TYPE_CHECKING:  # who writes an index need not load what questions are made of
    from indlet.service.index.expression import Expression
    from indlet.service.search.rank import Collection, Model, QueryTerm
    from indlet.text import Analyzer

SORTS: Final = ("score", "newest", "oldest", "title", "author")


class Found(NamedTuple):
    """A hit: the record's id in the store, its score, its date, and all records of its resource, itself
    first.
    """

    id: int
    score: float
    date: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """`total` counts all that match, `hits` are the page asked for, `facets` count values over all that
    match.

    `loose` tells that a phrase was matched as a conjunction in records whose positions are not known.
    `ahead` counts the hits, of all pages, that match one of the expressions that go first.
    `total_is_exact` tells whether `total` is all, or at least that many match.
    """

    total: int
    hits: tuple[Found, ...]
    facets: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    loose: bool = False
    ahead: int = 0
    total_is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """One term's share in a score, and the values of signs that the model derives for it."""

    term: str
    frequency: int
    df: int
    cf: int
    weight: float
    contribution: float
    derived: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a score came about: the parts are added in this order, then `adjustment` says what the model did to
    the sum. `score` is the very number that the search gives."""

    id: int
    score: float
    length: int
    norm: float
    parts: tuple[Part, ...]
    total: float
    adjustment: str


@dataclass(frozen=True, slots=True)
class Statistics:
    """The index in numbers: how it is stored (`bytes`, `segments`, `deleted`) and what it holds."""

    documents: int
    terms: int | None  # None: not counted, for that takes reading every document
    postings: int
    length: int
    bytes: int
    segments: int
    deleted: int
    position: int


class NearTerm(NamedTuple):
    """A term of the vocabulary, how many edits it is away from another word, and its document frequency."""

    term: str
    edits: int
    df: int


class Value(NamedTuple):
    """A value of a facet: what tells it from others, and how most records spell it."""

    key: str
    label: str


class Searcher(Protocol):
    """One committed state, which never changes. Statistics and scores are exact, and do not depend on layout.

    `search` and `explain` rank by BM25 where no model is given.
    """

    @property
    def position(self) -> int:
        """The last change of the store that it knows."""

    @property
    def collection(self) -> Collection: ...

    @property
    def loss(self) -> str:
        """What is left out of the index, in words; empty where nothing is."""

    def search(
        self,
        expression: Expression,
        model: Model | None = None,
        limit: int = 10,
        offset: int = 0,
        *,
        filters: Sequence[Expression] = (),
        sort: str = "score",
        facets: Sequence[str] = (),
        collapse: bool = True,
        first: Sequence[Expression] = (),
        values: int = 50,
        exact_total: bool = True,
    ) -> Results:
        """The matching documents, best first; records of one resource are one hit if `collapse` is on.

        Where the order is by score, those that match the first expression of `first` come before those that
        match the second, and so on; the others come last. Of facets with any number of values (creator,
        subject, format) the most frequent `values` are counted. Without `exact_total` the total may be a
        lower bound, which the results then say: documents that cannot be on the page need not be counted.
        """

    def explain(self, expression: Expression, id: int, model: Model | None = None) -> Explanation | None:
        """How a record's score came about; None if the index does not hold the record."""

    def query_terms(self, expression: Expression) -> list[QueryTerm]:
        """The terms that count for a score and that some record holds, with df and cf, in canonical order."""

    def terms(self, prefix: str = "", limit: int | None = None) -> list[tuple[str, int, int]]:
        """Terms that begin so with their df and cf: the `limit` most frequent ones, most frequent first."""

    def listed(self, facet: str, start: str, limit: int, backwards: bool = False) -> list[Value]:
        """The values of a facet with any number of them in the order of their keys: `limit` from a key on;
        backwards, the last ones before it.
        """

    def vocabulary(self) -> Iterator[tuple[bytes, int, int]]:
        """Every term with its df and cf, in the order of bytes."""

    def near(self, word: str, edits: int) -> list[NearTerm]:
        """Terms of its field at most so many edits of bytes away from a word, in no particular order."""

    def accented(self, plain: str) -> list[str]:
        """The terms that are this one but for their accents."""

    def stats(self, everything: bool = True) -> Statistics:
        """Not `everything`: without what takes reading every document of a large index."""

    def fingerprint(self) -> str:
        """A digest of all statistics: equal for equal content, whatever the engine and its layout."""

    def without(self, origins: Collected[int]) -> Searcher:
        """This state as if the records of these origins did not exist: every answer and every statistic is
        that of an index which never held them; itself if there are none.
        """

    def make_ready(self, model: Model | None = None) -> None:
        """Works out what every question needs to know, so that the first one need not."""


class Prepared(NamedTuple):
    """Changes for a writer, and what it has worked out of them ahead, which is its own affair."""

    changes: Sequence[Stored]
    worked_out: object = None


class IndexWriter(Protocol):
    """The one writer of an index; it belongs to one thread, except for `prepare`."""

    @property
    def position(self) -> int:
        """The last change that is committed."""

    @property
    def applied(self) -> int:
        """The last change that was applied, committed or not."""

    @property
    def anew(self) -> bool:
        """Whether the next commit puts a new index in the place of the one that is there."""

    def prepare(self, changes: Sequence[Stored]) -> Prepared:
        """Analyses changes; another thread may do so while the writer applies those before."""

    def apply(self, prepared: Prepared) -> int:
        """Takes changes in the order of the feed, seen after `commit`; gives their number."""

    def commit(self, position: int | None = None, about: Mapping[str, str] | None = None) -> None:
        """Makes everything applied so far durable and visible, with what the owner wants to know of it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """Lets another write; what was not committed is forgotten."""


class IndexState(NamedTuple):
    """The last change that is committed, and what the owner said of the index then."""

    position: int
    about: Mapping[str, str]


class Upkeep(Protocol):
    """What an engine has to do now and then (merges, for one), done by a thread beside its owner."""

    def wake(self) -> None:
        """Something may be due."""

    def close(self) -> None: ...


class Index(Protocol):
    """An index as a whole. Reading raises IndexDamaged where it cannot be served."""

    def state(self) -> IndexState: ...

    def version(self) -> Hashable:
        """What changes with every commit; cheap to ask."""

    def searcher(self) -> Searcher:
        """The newest committed state; the same object until it changes."""

    def writer(self, analyzer: Analyzer, anew: bool = False) -> IndexWriter:
        """The right to write; IndexBusy if another has it. `analyzer` makes the terms of metadata.

        With `anew` it begins with an empty index: readers keep the old one until the first commit.
        """

    def erase(self) -> None:
        """Empties the index, damaged or not."""

    def upkeep(self) -> Upkeep: ...

    def settle(self, everything: bool = False) -> None:
        """Does now what `upkeep` would do; `everything` also what is not due yet."""

    def close(self) -> None: ...
