"""From what the index found to what is shown: the store's records, and which words made them match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from indlet.errors import UnknownRecord
from indlet.model import FIELD_MARK, KEY_MARKS, Facet, Stored, groups, split_field
from indlet.service.index import Found, Searcher
from indlet.service.index import expression as e
from indlet.service.search.interpret import Meaning
from indlet.service.search.rank import Bm25, DocumentStatistics, Model, QueryTerm
from indlet.service.search.rank import parameters_of as names_of
from indlet.service.search.results import Explained, Hit, Matched, Share, Suggestion, link, shown_date
from indlet.store import Origin, Store
from indlet.text import Analyzer

# A facet's name here -> its name in the index, where it is not the same.
ENGINE_FACETS: Final = {"source": "origin"}
_MOST_NAMES: Final = 3  # of one set, shown together

# Keys stand for whole values: no word of the query is shown for them.
_KEYS: Final = tuple(mark.encode() for mark in KEY_MARKS.values())


@dataclass(slots=True)
class Shares:
    """Which terms of a query a record holds, and how much each adds to its score."""

    searcher: Searcher
    meaning: Meaning
    model: Model
    analyzer: Analyzer
    _terms: dict[str, tuple[QueryTerm, tuple[float, float]]] = field(init=False)
    _names: frozenset[str] = field(init=False)
    _marked: bool = field(init=False)
    _words: AskedWords = field(init=False)

    def __post_init__(self) -> None:
        collection = self.searcher.collection
        self._terms = {
            term.term.decode(): (term, self.model.constants(term, collection))
            for term in self.searcher.query_terms(self.meaning.expression)
            if not term.term.startswith(_KEYS)
        }
        self._names = frozenset(self._terms)
        self._words = AskedWords(self.meaning)
        self._marked = any(FIELD_MARK in name for name in self._terms)

    def of(self, stored: Stored) -> tuple[Matched, ...]:
        """The terms in a record, greatest share first."""
        document = DocumentStatistics(stored.length, 1.0)
        parts: list[tuple[str, int, int, float]] = []
        fields = b""
        if self._marked:
            fields = self.analyzer.described([stored])[0].fields
        for packed in (stored.vector or b"", fields):
            for frequency, terms in groups(packed):
                # A line holds hundreds of terms, hardly ever one of the query's.
                if self._names.isdisjoint(terms):
                    continue
                for name in terms:
                    if (known := self._terms.get(name)) is not None:
                        term, constants = known
                        amount = self.model.contribution(
                            constants, frequency, document, self.searcher.collection
                        )
                        parts.append((name, frequency, term.df, amount))
        total = sum(part[3] for part in parts)
        matched = [
            Matched(
                *split_field(name), self._words.of(name), frequency, df,
                amount / total if total else 1 / len(parts),
            )
            for name, frequency, df, amount in parts
        ]  # fmt: skip
        return tuple(sorted(matched, key=lambda part: (-part.share, part.field, part.term)))


def hits(
    store: Store,
    found: Sequence[Found],
    origins: Mapping[int, Origin],
    analyzer: Analyzer,
    shares: Shares | None = None,
    offset: int = 0,
) -> tuple[Hit, ...]:
    """The records behind what was found. One that was deleted since the index saw it is left out."""
    wanted = dict.fromkeys(number for one in found for number in one.ids)
    with store.read() as view:
        records = view.by_id(list(wanted))
    out = []
    for rank, one in enumerate(found, offset + 1):
        stored = records.get(one.id)
        if stored is None or stored.deleted:
            continue
        has_text, stored = stored.vector is not None, analyzer.completed(stored)
        record = stored.record
        terms = shares.of(stored) if shares is not None else ()
        through = (records[number].origin for number in one.ids if number in records)
        names = tuple(dict.fromkeys(origins[number].name for number in through if number in origins))
        out.append(
            Hit(
                rank=rank,
                id=stored.id,
                identifier=stored.identifier,
                score=one.score,
                source=names[0] if names else "",
                sources=names,
                metadata=record.metadata,
                url=link(record.metadata, record.properties),
                date=shown_date(one.date),
                language=stored.language,
                sets=record.sets,
                datestamp=stored.datestamp,
                length=stored.length,
                terms=terms,
                in_full_text=has_text and _is_beyond_metadata(stored, terms, analyzer),
                properties=record.properties,
            )
        )
    return tuple(out)


def _is_beyond_metadata(stored: Stored, terms: Sequence[Matched], analyzer: Analyzer) -> bool:
    """Whether a term that matched in the text of a record is not in its metadata."""
    wanted = {matched.term for matched in terms if not matched.field}
    if not wanted:
        return False
    described = analyzer.frequencies(stored._replace(vector=None, positions=None))
    return not wanted <= described.keys()


def explained(searcher: Searcher, meaning: Meaning, model: Model, stored: Stored) -> Explained:
    """How a record comes by its score, term by term."""
    told = searcher.explain(meaning.expression, stored.id, model)
    if told is None:
        raise UnknownRecord(f"record {stored.identifier!r} is not in the index yet; ask again in a moment")
    matching = searcher.search(meaning.expression, model, 0, filters=(e.Ids((stored.id,)),)).total
    # Dividing the sum by the norms divides each part of it; what a model adds to the sum stays apart.
    scale = told.score / told.total if model.finishing == "scaled" and told.total else 1.0
    words = AskedWords(meaning)
    shares = tuple(
        Share(
            *split_field(part.term), words.of(part.term), part.frequency, part.df, part.cf,
            part.weight, part.contribution * scale, part.derived,
        )
        for part in told.parts
    )  # fmt: skip
    held = {part.term for part in told.parts}
    terms = searcher.query_terms(meaning.expression)
    missing = ((term, term.term.decode(errors="replace")) for term in terms)
    return Explained(
        identifier=stored.identifier,
        model=model.name,
        parameters=parameters_of(model),
        score=told.score,
        matches=matching > 0,
        shares=shares,
        remainder=0.0 if model.finishing in ("same", "scaled") else told.score - told.total,
        formula=told.adjustment,
        length=told.length,
        average_length=searcher.collection.average,
        records=searcher.collection.documents,
        tokens=searcher.collection.length,
        norm=told.norm,
        query_constants=model.query_constants(terms, searcher.collection),
        all_words=_part_of(searcher, meaning, stored.id),
        missing=tuple(
            Share(*split_field(name), words.of(name), 0, term.df, term.cf, term.weight, 0.0, {})
            for term, name in missing
            if name not in held
        ),
    )


def _part_of(searcher: Searcher, meaning: Meaning, id: int) -> str:
    """In which part of the results a record stands, where those that hold all words come first."""
    if not meaning.first:
        return ""
    return "all" if searcher.search(e.Or(meaning.first), limit=0, filters=(e.Ids((id,)),)).total else "some"


def distinctive_terms(searcher: Searcher, frequencies: Mapping[str, int]) -> list[str]:
    """A record's terms, first those that tell it most apart from the others (tf·idf)."""
    known = searcher.query_terms(e.Or(tuple(e.Term(term) for term in frequencies)))
    idf = {term.term.decode(): Bm25().constants(term, searcher.collection)[1] for term in known}
    return sorted(idf, key=lambda term: (-frequencies[term] * idf[term], term))


def parameters_of(model: Model) -> dict[str, float]:
    return {name.rstrip("_"): getattr(model, name) for name in names_of(model)}


def facet(
    name: str,
    counted: Mapping[str, Sequence[tuple[str, int]]],
    origins: Mapping[int, Origin],
    most: int,
    set_names: Mapping[str, str] | None = None,
) -> Facet:
    """A facet's most frequent values; sources go by their names, and sets have theirs as labels."""
    values = list(counted.get(ENGINE_FACETS.get(name, name), ()))
    if name == "source":
        values = [
            (origins[int(number)].name if int(number) in origins else number, n) for number, n in values
        ]
    chosen = tuple(sorted(values, key=lambda entry: (-entry[1], entry[0]))[:most])
    named = set_names if name == "set" and set_names else {}
    return Facet(name, chosen, {value: named[value] for value, _ in chosen if value in named})


def set_names(named: Sequence[tuple[int, str, str]], origins: Mapping[int, str]) -> dict[str, dict[str, str]]:
    """For each source the names of its sets by their setSpecs; for "" those of all, where sources that have
    a setSpec in common may call it differently."""
    found: dict[str, dict[str, str]] = {"": {}}
    for number, spec, name in named:
        found.setdefault(origins[number], {})[spec] = name
        known = found[""].get(spec, "")
        if name not in known.split(" / ") and known.count(" / ") < _MOST_NAMES:
            found[""][spec] = f"{known} / {name}" if known else name
    return found


def histogram(years: Sequence[tuple[str, int]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((int(year), count) for year, count in years))


def corrected(text: str, suggestions: Sequence[Suggestion]) -> str:
    """The query with the best suggestion in the place of each unknown word; empty if there is none."""
    out, changed = text, False
    for suggestion in sorted(suggestions, key=lambda s: -s.at):
        end = suggestion.at + len(suggestion.word)
        # A phrase begins with its quotation mark: only words are put in again.
        if out[suggestion.at : end] == suggestion.word:
            out, changed = out[: suggestion.at] + suggestion.instead[0] + out[end:], True
    return out if changed else ""


class AskedWords:
    """The words of a query, by the index terms that they became."""

    def __init__(self, meaning: Meaning) -> None:
        self._asked = meaning.asked
        self._by_term: defaultdict[str, list[int]] = defaultdict(list)
        self._prefixes = [n for n, asked in enumerate(meaning.asked) if asked.prefix]
        for number, asked in enumerate(meaning.asked):
            for term in asked.terms:
                self._by_term[term].append(number)

    def of(self, term: str) -> tuple[str, ...]:
        """The words that an index term answers to, in the order of the query."""
        begun = [n for n in self._prefixes if term.startswith(self._asked[n].prefix)]
        numbers = sorted((*self._by_term.get(term, ()), *begun))
        return tuple(dict.fromkeys(self._asked[n].text for n in numbers))
