"""One library: a store and its index, and every question that people ask of them.

    library = Library.open("indlet-data")
    result = library.search('title:"shock wave" date:1955..', model="lm-dirichlet")
    for hit in result: ...

Statistics answer, metadata present (the index ranks, the store shows). A library may be used by many threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakKeyDictionary

from indlet.errors import (
    AmbiguousRecord,
    IndexDamaged,
    QueryError,
    RemoteError,
    SettingsError,
    StoreError,
    UnknownRecord,
)
from indlet.model import JsonObject, Stored
from indlet.service.harvest.source_shape import shape_of
from indlet.service.index import SORTS, Found, Results, Searcher, follow, inference
from indlet.service.index import expression as e
from indlet.service.index.dates import date_number
from indlet.service.index.engines import index_of
from indlet.service.index.values import VALUE_FACETS
from indlet.service.records.stored_policy import policy_for
from indlet.service.search import browse, hits, statistics
from indlet.service.search.browse import ListedValue, ValueList
from indlet.service.search.complete import Completer, Completion
from indlet.service.search.evaluate import Named
from indlet.service.search.hits import Shares
from indlet.service.search.interpret import Meaning
from indlet.service.search.lexer import clean
from indlet.service.search.notes import Note
from indlet.service.search.query_reader import QueryReader, without_positions
from indlet.service.search.rank import MODELS, Model
from indlet.service.search.rank import model as chosen_model
from indlet.service.search.results import Comparison, Explained, Hit, Result, Suggestion, compared
from indlet.service.search.snapshots import Snapshots
from indlet.settings import OriginKey, Settings, Source
from indlet.store import Audience, Origin, Store, View, kept_tables, open_configured
from indlet.text import Analyzer

if TYPE_CHECKING:
    from indlet.service.harvest.progress import Progress

FACETS: Final = ("source", "set", "type", "language", "year", *VALUE_FACETS)
FILTERS: Final = (*FACETS, "date")
MAX_LIMIT: Final = 1_000_000
MAX_OFFSET: Final = 10_000_000
_SIMILAR_TERMS: Final = 25
_NAMED: Final = 200_000  # records whose identifiers are remembered between rankings


@dataclass(slots=True)
class SharedReading:
    """What searches for one query under several models share: the snapshot, and the query's meaning in it."""

    searcher: Searcher
    origins: dict[int, Origin]
    notes: list[str]  # about the index
    meanings: dict[bool, Meaning] = field(default_factory=dict)  # by whether all parts are required
    suggestions: tuple[Suggestion, ...] | None = None


class Library:
    """Open it with `Library.open`. With `follow` each question first brings the index up to the store."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        follow: bool = True,
        restricted: Mapping[OriginKey, bool] | None = None,
        patience: float | None = None,
    ) -> None:
        """With `restricted` the library is as everybody may see it: it answers as if the other records did
        not exist. It tells of each origin in the settings whether access to it is restricted; one that is
        no longer there keeps the rule under which it was last crawled. Without it all records are shown.

        `patience`: seconds that a question waits for a new state of the index, which is made ready beside it;
        None makes it wait and see the last commit.
        """
        self.store = store
        self._restricted = restricted
        self.settings = settings
        self.analyzer = Analyzer(policy_for(store, settings.analysis))
        # Positions make no difference to what a word becomes.
        self._policies = {replace(self.analyzer.policy, positions=kept).digest for kept in (False, True)}
        self._follow = follow
        self._serves = patience is not None
        self._snapshots = Snapshots(index_of(store, settings.index), self._make_ready, patience)
        self._reader = QueryReader(store, settings.search, self.analyzer)
        # None stands for the snapshot itself: an entry that refers to its own key would keep it for ever.
        self._views: WeakKeyDictionary[Searcher, tuple[tuple[int, ...], Searcher | None]]
        self._views = WeakKeyDictionary()
        self._analysed_by: dict[int, tuple[str, str]] = {}  # by origins: its state, the digest of a policy
        self._counted: WeakKeyDictionary[Searcher, JsonObject] = WeakKeyDictionary()
        self._named: dict[int, Named] = {}
        self.named_limit = _NAMED
        self._called: tuple[Any, Mapping[str, Mapping[str, str]]] | None = None

    @classmethod
    def open(
        cls,
        folder: Path | str | None = None,
        settings: Settings | None = None,
        *,
        create: bool = True,
        follow: bool = True,
    ) -> Self:
        """The library in a data folder; the settings' own folder if none is named."""
        settings = settings or Settings()
        settings = replace(settings, data=Path(folder or settings.data))
        return cls(open_configured(settings, create=create), settings, follow=follow)

    def close(self) -> None:
        self._snapshots.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Keeping up

    def harvest(self, *urls: str, **options: Any) -> list[Progress]:
        """Harvest providers, or the settings' sources if none is named, and make them searchable.

        Options are those of a source in the settings: `set`, `from_`, `until`, `index`, `token` and so on.
        Raises RemoteError if a source could not be harvested completely; what arrived is kept, and the next
        harvest continues from there.
        """
        from indlet.service.pipeline import harvest_all

        if not urls and not self.settings.source:
            raise SettingsError(
                "nothing to harvest: name a provider's address, or enter sources in the settings"
            )
        sources = [Source(url=url, **options) for url in urls] if urls else None
        done = harvest_all(self.store, self.settings, sources)
        troubled = [seen for seen in done if seen.outcome != "complete"]
        if troubled:
            raise RemoteError(
                "; ".join(f"{seen.source}: {seen.outcome}: {seen.reason}" for seen in troubled)
                + "; what came was kept, harvest again to get the rest"
            )
        return done

    def sync(self) -> follow.CaughtUp:
        """Bring the index up to the store; another process that is doing so is waited for."""
        return follow.catch_up_or_wait(self.store, analyzer=self.analyzer, engine=self.settings.index)[0]

    def reindex(self) -> follow.CaughtUp:
        return follow.rebuild(self.store, analyzer=self.analyzer, engine=self.settings.index)

    def searcher(self, notes: list[str] | None = None) -> Searcher:
        """The newest snapshot of the index, as far as it is shown; a damaged index is rebuilt first, and
        `notes` say so.
        """
        return self._shown(self.whole(notes))

    def whole(self, notes: list[str] | None = None) -> Searcher:
        """The same with all records, for those who look after the index."""
        said = notes if notes is not None else []
        if self._follow:
            said += self._caught_up()
        try:
            return self._snapshots.newest()
        except IndexDamaged as damage:
            said.append(Note("index_anew", reason=str(damage).partition(";")[0]))
            follow.rebuild(self.store, analyzer=self.analyzer, engine=self.settings.index)
            return self._snapshots.newest()

    def _shown(self, searcher: Searcher) -> Searcher:
        """A snapshot without the hidden records: worked out once, when it is made ready."""
        hidden = self.hidden()
        if not hidden:
            return searcher
        known = self._views.get(searcher)
        if known is None or known[0] != hidden:
            shown = searcher.without(hidden)
            known = self._views[searcher] = hidden, None if shown is searcher else shown
        return searcher if known[1] is None else known[1]

    def _caught_up(self) -> list[str]:
        """Brings the index up to the store; what is to be said about that."""
        try:
            progress, behind = follow.catch_up_or_wait(
                self.store, analyzer=self.analyzer, engine=self.settings.index
            )
        except StoreError as e:  # what there is can be searched all the same
            return [Note("index_stuck", reason=str(e))]
        notes: list[str] = [Note("index_anew", reason=progress.rebuilt)] if progress.rebuilt else []
        if behind:
            notes.append(Note("index_behind", changes=str(behind)))
        return notes

    def _make_ready(self, searcher: Searcher) -> None:
        """Finds out what every question needs to know of a new snapshot."""
        searcher = self._shown(searcher)
        self._reader.spoken(searcher)
        if self._serves:  # what the first page would have to wait for; a single search computes what it needs
            searcher.make_ready(self.model())
            facets = [hits.ENGINE_FACETS.get(name, name) for name in FACETS]
            searcher.search(e.Everything(), limit=1, sort="author", facets=facets, values=1)
        self._reader.forget_speller()  # it would keep the snapshot before until somebody misspells a word

    # Questions

    def search(
        self,
        text: str,
        *,
        model: str = "",
        parameters: Iterable[str] = (),
        limit: int | None = None,
        offset: int = 0,
        sort: str = "score",
        facets: Iterable[str] = (),
        facet_values: int = 50,
        filters: Mapping[str, Sequence[str]] | None = None,
        languages: Sequence[str] = (),
        plain: bool = False,
        accents: str = "",
        all_words: str = "",
        exact_total: bool = True,
        shared: SharedReading | None = None,
        **named: float,
    ) -> Result:
        """The records that match, best first. `filters` names facets with values, of which a record has one;
        as `-facet`, values of which it has none. `plain` takes the text as words, whatever signs are in it.
        Without `exact_total` the total may be a lower bound, which is quicker.

        Parameters of the model may be named: `mu=500`, `k1=0.9`, `lambda_=0.5`. `accents` and `all_words` are
        as the settings say where they are empty. `shared`: of searches for one query under several models.
        """
        started = time.perf_counter()
        text = text.encode("utf-8", "replace").decode()  # a command line may hold what is no text
        limit = self.settings.search.limit if limit is None else limit
        facets = list(facets)
        _check(limit, offset, sort, facets, filters or {})
        handling = self._reader.handling(accents, all_words)
        ranking = self.model(model, [*parameters, *(f"{n.rstrip('_')}={v}" for n, v in named.items())])
        shared = shared or self._shared_reading()
        notes = list(shared.notes)
        searcher, origins = shared.searcher, shared.origins
        spoken = self._reader.spoken(searcher, languages, filters)

        def read(require_all: bool = False) -> Meaning:
            strict = self._reader.is_strict(ranking, require_all)
            if (meaning := shared.meanings.get(strict)) is None:
                meaning = shared.meanings[strict] = self._reader.meaning(
                    text, ranking, spoken, searcher, origins, handling, filters, plain=plain,
                    require_all=require_all,
                )  # fmt: skip
            return meaning

        def ask(meaning: Meaning) -> Results:
            return searcher.search(
                meaning.expression,
                ranking,
                limit,
                offset,
                filters=meaning.filters,
                sort=sort,
                facets=[hits.ENGINE_FACETS.get(name, name) for name in facets],
                first=meaning.first,
                values=facet_values,
                exact_total=exact_total,
            )

        meaning, any_words = read(), 0
        words = meaning.words
        if sort != "score" and words:
            # By date, a record with one of the words would come before all that hold every one.
            every = read(require_all=True)
            found = ask(every)
            if found.total:
                any_words = searcher.search(meaning.expression, limit=0, filters=meaning.filters).total
                any_words *= any_words > found.total
                meaning = every
            else:
                found, words = ask(meaning), 0
                if found.total:
                    notes.append(Note("some_words"))
        else:
            found = ask(meaning)
        notes += meaning.notes
        if other := [o.name for o in origins.values() if self._analysed_otherwise(o)]:
            notes.append(Note("other_policy", sources=", ".join(other[:3])))
        if searcher.loss and meaning.asked:
            notes.append(Note("pruned", loss=searcher.loss))
        if found.loose and (note := without_positions(searcher, meaning, origins)):
            notes.append(note)
        if shared.suggestions is None:
            shared.suggestions = self._reader.suggestions(searcher, meaning, spoken.every)
        suggestions = shared.suggestions
        shares = Shares(searcher, meaning, ranking, self.analyzer)
        sets = self.set_names() if "set" in facets else {}
        return Result(
            query=text,
            model=ranking.name,
            parameters=hits.parameters_of(ranking),
            total=found.total,
            total_is_exact=found.total_is_exact,
            hits=hits.hits(self.store, found.hits, origins, self.analyzer, shares, offset),
            offset=offset,
            limit=limit,
            sort=sort,
            languages=spoken.every,
            facets={name: hits.facet(name, found.facets, origins, facet_values, sets) for name in facets},
            histogram=hits.histogram(found.facets.get("year", ())),
            notes=tuple(notes),
            suggestions=suggestions,
            corrected=hits.corrected(text, suggestions),
            took_ms=(time.perf_counter() - started) * 1000,
            ahead=found.ahead,
            words=words,
            any_words=any_words,
        )

    def _shared_reading(self) -> SharedReading:
        notes: list[str] = []
        return SharedReading(self.searcher(notes), self._origins(), notes)

    def compare(self, text: str, models: Sequence[str] = tuple(MODELS), **options: Any) -> Comparison:
        """One query under several models on the same index, each by its scores alone."""
        options = {"all_words": "off", "shared": self._shared_reading(), **options}
        return compared([self.search(text, model=model, **options) for model in models])

    def rank(
        self,
        text: str,
        depth: int,
        *,
        model: str = "",
        parameters: Iterable[str] = (),
        languages: Sequence[str] = (),
        plain: bool = True,
    ) -> list[Named]:
        """Identifiers and scores alone, as deep as wanted: for runs and for measuring."""
        ranking = self.model(model, parameters)
        searcher = self.searcher()
        spoken, handling = self._reader.spoken(searcher, languages), self._reader.handling("", "off")
        try:
            # Runs are for measuring models: nothing but their scores orders them.
            meaning = self._reader.meaning(
                text, ranking, spoken, searcher, self._origins(), handling, plain=plain
            )
        except QueryError:
            if plain:
                return []  # a topic of stop words finds nothing
            raise
        hits = searcher.search(meaning.expression, ranking, depth, filters=meaning.filters).hits
        # The records of one topic come again with the next model; a full memory begins again, as in memo.py.
        if len(self._named) >= self.named_limit:
            self._named = {}
        named = self._named
        unknown = [hit.id for hit in hits if hit.id not in named]
        if unknown:
            with self.store.read() as view:
                for stored in view.by_id(unknown).values():
                    names = tuple(map(str, stored.record.metadata.get("identifier", ())))
                    named[stored.id] = Named(stored.identifier, 0.0, names)
        return [named[hit.id]._replace(score=hit.score) for hit in hits if hit.id in named]

    def similar(self, identifier: str, *, source: str = "", limit: int = 10, model: str = "bm25") -> Result:
        """Records like one: asked for by the terms of its vector that tell it most apart (tf·idf)."""
        started = time.perf_counter()
        searcher = self.searcher()
        stored = self.stored(identifier, source)
        ranking = self.model(model)
        frequencies = stored.record.vector.frequencies() if stored.record.vector else {}
        terms = hits.distinctive_terms(searcher, frequencies)[:_SIMILAR_TERMS]
        expression = e.Or(tuple(e.Term(term, float(frequencies[term])) for term in terms))
        others = self._same_resource(stored)
        found = searcher.search(expression, ranking, limit, filters=(e.Not(e.Ids(others)),))
        meaning = Meaning(expression, (), (), ())
        return Result(
            f"like {identifier}",
            ranking.name,
            hits.parameters_of(ranking),
            found.total,
            hits.hits(
                self.store,
                found.hits,
                self._origins(),
                self.analyzer,
                Shares(searcher, meaning, ranking, self.analyzer),
            ),
            0,
            limit,
            "score",
            took_ms=(time.perf_counter() - started) * 1000,
        )

    def explain(
        self,
        text: str,
        identifier: str,
        *,
        source: str = "",
        model: str = "",
        parameters: Iterable[str] = (),
        filters: Mapping[str, Sequence[str]] | None = None,
        languages: Sequence[str] = (),
        plain: bool = False,
        accents: str = "",
        all_words: str = "",
    ) -> Explained:
        """How a record comes by its score for a query, term by term; the query is taken as by `search`."""
        ranking = self.model(model, parameters)
        searcher = self.searcher()
        stored = self.stored(identifier, source)
        spoken = self._reader.spoken(searcher, languages, filters)
        handling = self._reader.handling(accents, all_words)
        meaning = self._reader.meaning(
            text, ranking, spoken, searcher, self._origins(), handling, plain=plain
        )
        return hits.explained(searcher, meaning, ranking, stored)

    def suggest(self, text: str, limit: int = 8) -> list[Completion]:
        """What a half-typed query may become, each with the number of records that then have all its words:
        its last word completed, people, titles. A field before that word is kept, and all that stands before.
        """
        searcher = self.searcher()
        speller, spoken = self._reader.speller(searcher), self._reader.spoken(searcher)
        return Completer(searcher, self.store, speller, spoken.every, self.count_with_all).completions(
            clean(text), limit
        )

    def count_with_all(self, text: str) -> int:
        """How many records have all words of a query."""
        found = self.search(text, limit=0, sort="newest", all_words="first")
        return 0 if any(isinstance(n, Note) and n.code == "some_words" for n in found.notes) else found.total

    def browse(self, facet: str, start: str = "", limit: int = 50) -> ValueList:
        """A part of the list of a facet's values from A to Z, from a beginning on, with their records."""
        if facet not in FACETS:
            raise SettingsError(f"there is no facet {facet!r}: choose from {', '.join(FACETS)}")
        searcher = self.searcher()
        if facet in VALUE_FACETS:
            return browse.of_values(searcher, facet, start, limit)
        return browse.of_counted(facet, self._listed(facet), start, limit)

    def letters(self, facet: str) -> tuple[str, ...]:
        """The letters with which some of a facet's values begin."""
        counted = [] if facet in VALUE_FACETS else self._listed(facet)
        return browse.letters(self.searcher(), facet, counted)

    def _listed(self, facet: str) -> list[ListedValue]:
        counted = self.search("*", limit=0, facets=(facet,), facet_values=MAX_LIMIT).facets[facet]
        shown = ((value, counted.labels.get(value, value), count) for value, count in counted.values)
        return [ListedValue(value, label, browse.order_key(label), count) for value, label, count in shown]

    def record(self, identifier: str, source: str = "") -> Hit:
        """A record as a hit without a query; UnknownRecord if there is none."""
        stored = self.stored(identifier, source)
        found = Found(stored.id, 0.0, date_number(stored.record.metadata), self._same_resource(stored))
        return hits.hits(self.store, [found], self._origins(), self.analyzer)[0]

    def stored(self, identifier: str, source: str = "") -> Stored:
        """The record of that identifier; AmbiguousRecord if sources have different ones and none is named."""
        found = self.namesakes(identifier, source)
        live = [stored for stored in found if not stored.deleted]
        if not live:
            gone = "was deleted by its source" if found else "is not here"
            raise UnknownRecord(f"record {identifier!r} {gone}; search for it, or harvest its source")
        if not one_resource(live):
            names = self._origins()
            raise AmbiguousRecord(identifier, [names[stored.origin].name for stored in live])
        return self.analyzer.completed(live[0])

    def namesakes(self, identifier: str, source: str = "") -> list[Stored]:
        """Every record of an identifier, one of each source that has it: live ones first, then by change."""
        found = list[Stored]()
        with self.store.read() as view:
            hidden = self._hidden(view)  # of this very view: an origin may have been made a moment ago
            left = [o.id for o in view.origins() if o.id not in hidden and source in ("", o.name)]
            while left and (stored := view.get(identifier, left)) is not None:
                found.append(stored)
                left.remove(stored.origin)
        return found

    def copies(self, stored: Stored) -> list[Stored]:
        """The other records that are shown of a record's resource, in the order of their numbers."""
        others = [number for number in self._same_resource(stored) if number != stored.id]
        with self.store.read() as view:
            found = view.by_id(others)
        return [found[number] for number in others if number in found and not found[number].deleted]

    def holders(self, identifier: str) -> list[str]:
        """The names of the sources that have a live record of that identifier."""
        names = self._origins()
        return [names[stored.origin].name for stored in self.namesakes(identifier) if not stored.deleted]

    def frequencies(self, identifier: str, source: str = "") -> dict[str, int]:
        """The terms of a record and how often it has each."""
        vector = self.stored(identifier, source).record.vector
        return vector.frequencies() if vector else {}

    def inferred(self, identifier: str, source: str = "") -> dict[str, list[str]]:
        """Subjects and types that a record lacks, as they are inferred: not what its source says."""
        known = inference.inference_of(self.store, self.settings.index)
        if known is None:
            return {}
        record = self.stored(identifier, source).record
        return known.of(record.metadata, record.vector.frequencies() if record.vector else {})

    def stats(self, everything: bool = True) -> JsonObject:
        """Store and index in numbers. Not `everything`: without what takes reading all of a cluster."""
        searcher = self.searcher()
        counted = self._counted.get(searcher)
        if counted is None or (everything and counted["terms"] is None):
            # The fingerprint walks through the whole vocabulary: once for a snapshot is enough.
            counted = self._counted[searcher] = statistics.of_index(searcher, everything)
        return statistics.of_store(self.store, counted, self._hidden)

    def sources(self) -> list[JsonObject]:
        """Each origin of records with its state: nothing secret."""
        return statistics.sources(self.store, self._hidden)

    def set_names(self, source: str = "") -> Mapping[str, str]:
        """What sets are called, by their setSpecs: by one source, or by all that have such a set."""
        with self.store.read() as view:
            hidden = self._hidden(view)
            key = (view.last_seq(), tuple(view.select(kept_tables.COUNTERS, name="set_names")), hidden)
            called = self._called
            if called is None or called[0] != key:
                shown = {o.id: o.name for o in view.origins() if o.id not in hidden}
                called = self._called = key, hits.set_names(view.set_names(shown), shown)
        return called[1].get(source, {})

    def matching(
        self,
        text: str,
        ids: Sequence[int],
        filters: Mapping[str, Sequence[str]] | None = None,
        *,
        require_all: bool = False,
    ) -> set[int]:
        """Which of these records match a query, or, with `require_all`, have all of its words."""
        ranking, searcher = self.model("bm25"), self.searcher()
        spoken, handling = self._reader.spoken(searcher), self._reader.handling()
        meaning = self._reader.meaning(
            text, ranking, spoken, searcher, self._origins(), handling, filters, require_all=require_all
        )
        chosen = (*meaning.filters, e.Ids(tuple(ids)))
        hits = searcher.search(meaning.expression, ranking, len(ids), filters=chosen, collapse=False).hits
        return {hit.id for hit in hits}

    def hidden(self) -> tuple[int, ...]:
        """The numbers of the origins whose records are not shown."""
        if self._restricted is None:
            return ()
        with self.store.read() as view:
            return self._hidden(view)

    def _hidden(self, view: View) -> tuple[int, ...]:
        if self._restricted is None:
            return ()
        return tuple(origin.id for origin in view.origins() if self._conceals(origin))

    # What a question needs

    def model(self, name: str = "", parameters: Iterable[str] = ()) -> Model:
        return chosen_model(name or self.settings.search.model, parameters)

    def _origins(self) -> dict[int, Origin]:
        """The origins whose records are shown."""
        with self.store.read() as view:
            return {origin.id: origin for origin in view.origins() if not self._conceals(origin)}

    def _conceals(self, origin: Origin) -> bool:
        if self._restricted is None:
            return False
        audience = origin.audience
        if audience in (Audience.SELECTIVE, Audience.GUARDED, Audience.OPERATIONAL):
            return True
        unknown = audience is not Audience.PUBLIC
        learned = (origin.kind, str(origin.settings.get("learned_from", "")))
        return self._restricted.get((origin.kind, origin.name), self._restricted.get(learned, unknown))

    def _analysed_otherwise(self, origin: Origin) -> bool:
        """Whether an origin's records were last analysed by a policy under which words become other terms.

        Every search asks it of every origin: of a state that has not changed, the answer is remembered.
        """
        state, digest = self._analysed_by.get(origin.id, ("", ""))
        if state != origin.state_text:
            digest = _policy_digest(origin)
            self._analysed_by[origin.id] = origin.state_text, digest
        return bool(digest) and digest not in self._policies

    def _same_resource(self, stored: Stored) -> tuple[int, ...]:
        """The record and the others that are shown of its resource."""
        if self.hidden():  # these must not decide what belongs together, and the index knows it without them
            found = self.searcher().search(e.Ids((stored.id,)), limit=1).hits
            return found[0].ids if found else (stored.id,)
        with self.store.read() as view:
            return (stored.id, *(other.id for other in view.same_resource(stored)))


def one_resource(live: Sequence[Stored]) -> bool:
    """Whether records of one identifier all stand for one resource, so that any of them may be shown."""
    return len({stored.resource or -number for number, stored in enumerate(live, 1)}) < 2


def _policy_digest(origin: Origin) -> str:
    """The digest of the policy by which an origin's records were last analysed; empty if unknown."""
    if origin.kind == "hierarchy":
        return str(origin.state.get("policy", ""))
    shape = shape_of(origin.state)
    return shape.own_policy if shape else ""


def _check(
    limit: int, offset: int, sort: str, facets: Sequence[str], filters: Mapping[str, Sequence[str]]
) -> None:
    if not 0 <= limit <= MAX_LIMIT:
        raise SettingsError(f"limit is {limit}: give a number from 0 to {MAX_LIMIT}")
    if not 0 <= offset <= MAX_OFFSET:
        raise SettingsError(f"offset is {offset}: give a number from 0 to {MAX_OFFSET}")
    if sort not in SORTS:
        raise SettingsError(f"sort is {sort!r}: choose one of {', '.join(SORTS)}")
    wanted = [name.removeprefix("-") for name in filters]
    for kind, names, known in (("facet", facets, FACETS), ("filter", wanted, FILTERS)):
        for name in names:
            if name not in known:
                raise SettingsError(f"there is no {kind} {name!r}: choose from {', '.join(known)}")
