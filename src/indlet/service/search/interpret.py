"""What a query means to the index: its words analysed by the service's policy, its filters resolved.

A query's word has no language, and the index holds the stems of every language in it: the word becomes the
distinct stems that it has under the languages asked for, alternatives that each score as a term of their own.
A word of several tokens counts as several words where any of them may match (a run of words); where all must
(AND, +, NOT, everything in the boolean model), each of its tokens must be there.

Records in a language that drops a token as a stop word were indexed without it. Among words that must all be
there, the token is not asked of these records, as long as another part is. A group in parentheses is a query
of its own: it stands for the records that it finds alone, whether it is combined with others or excluded.

Languages that few records are in take part too, but only with words that no frequent one drops (or else "the"
would be a rare and telling word of French), and with their own records: "graphene" is "graph" in Danish, but
finds no English record about graphs. A word without quotation marks also stands for the same word with other
accents, as far as the index has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Final, NamedTuple

from indlet.errors import QueryError
from indlet.formats.identifiers import key_in, keys_of
from indlet.model import FIELD_MARKS
from indlet.service.index import Searcher
from indlet.service.index import expression as e
from indlet.service.index.keys import identifier_terms, person_terms
from indlet.service.search import query as q
from indlet.service.search.combine import (
    Forms,
    all_of,
    any_of,
    asked_of_all,
    bound,
    closed,
    dropping_all,
    in_languages,
    kept,
    one_of,
)
from indlet.service.search.lexer import clean, date_range
from indlet.service.search.notes import Note
from indlet.text import LANGUAGES, Analyzer, code
from indlet.text.accents import without_accents
from indlet.text.tokens import split, words

# A language is frequent if this share of the records is in it.
SPOKEN: Final = 0.05
# Words from which on records that hold all of them come before those that hold some.
MANY_WORDS: Final = 2
# Fields of identifiers that are called otherwise than their schemes.
_SCHEMES: Final = {"handle": "hdl"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A word, phrase or prefix of the query with the index terms that it became; none for a stop word."""

    text: str
    field: str
    terms: tuple[str, ...]
    prefix: str = ""  # what the index's terms are to begin with
    at: int = 0


@dataclass(frozen=True, slots=True)
class Meaning:
    """What to ask the index for, what to filter it by, what became of each word, and what goes first."""

    expression: e.Expression
    filters: tuple[e.Expression, ...]
    asked: tuple[Asked, ...]
    notes: tuple[str, ...]
    first: tuple[e.Expression, ...] = ()
    words: int = 0  # different words and phrases that `first` requires


@dataclass(slots=True)
class Interpreter:
    """Gives trees their meaning. `origins` are the sources' numbers by each of their names, in lower case.

    With `strict`, words side by side must all be there: what the boolean model makes of them. `others` are
    the languages of few records, `accented` gives the terms that are a plain one but for their accents, and
    `holding` the records whose metadata hold a phrase in a field (or, without one, may hold it in the text),
    among those that an expression finds.
    """

    analyzer: Analyzer
    languages: Sequence[str]
    origins: Mapping[str, Sequence[int]]
    strict: bool = False
    others: Sequence[str] = ()
    accented: Callable[[str], Sequence[str]] | None = None
    holding: Callable[[str, str, e.Expression], e.Expression] | None = None
    _asked: list[Asked] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)

    def meaning(
        self,
        query: q.Query,
        filters: Mapping[str, Sequence[str]] | None = None,
        known: Sequence[e.Expression] = (),
    ) -> Meaning:
        """What to ask the index. If nothing is left of the query but stop words, that is the known item that
        it names ("The Who"); QueryError if there is none.
        """
        self._asked, self._notes = [], list(query.notes)
        found = self._node(query.tree, strict=self.strict) or (any_of(known) if known else None)
        if found is None:
            raise self._all_stopped(query)
        if all(isinstance(part, e.Not) for part in (found.parts if isinstance(found, e.And) else (found,))):
            self._notes.append(Note("only_excludes"))
        chosen = tuple(self.chosen(name, values) for name, values in (filters or {}).items() if values)
        asked, notes = tuple(self._asked), tuple(dict.fromkeys(self._notes))
        return Meaning(found, chosen, asked, notes, *self._all_words(query.tree))

    def _all_words(self, tree: q.Node) -> tuple[tuple[e.Expression, ...], int]:
        """What holds all the words of a plain query of several, and how many these are."""
        if self.strict or not isinstance(tree, q.QueryRun):
            return (), 0
        words = [
            item for item in tree.items if isinstance(item.node, q.Word | q.QueryPhrase) and not item.sign
        ]
        different = {item.node for item in words}
        if len(different) < MANY_WORDS:
            return (), 0
        found = self._run(words, strict=True, excluded=True)
        return ((found,), len(different)) if isinstance(found, e.And) else ((), 0)

    def chosen(self, name: str, values: Iterable[str]) -> e.Expression:
        """The records that have one of these values in a facet, or, for `-facet`, none of them; `date` takes
        ranges, as in a query.
        """
        values = (values,) if isinstance(values, str) else values
        if name.startswith("-"):
            return e.Not(self.chosen(name[1:], values))
        if name == "date":
            return any_of([_dated(value) for value in values])
        return any_of([self._filter(q.QueryFilter(name, value)) for value in values])

    def _node(self, node: q.Node, *, strict: bool, excluded: bool = False) -> e.Expression | None:
        match node:
            case q.Word():
                return self._word(node, strict=strict, excluded=excluded)
            case q.QueryPhrase():
                return self._phrase(node, excluded=excluded)
            case q.QueryFilter():
                return self._filter(node)
            case q.IdentifierWord():
                return self._known(node)
            case q.QueryDates(low, high):
                return e.Dates(low, high)
            case q.QueryEverything():
                return e.Everything()
            case q.QueryRun(items):
                return self._run(items, strict=strict, excluded=excluded)
            case q.All(nodes):
                parts = [self._node(part, strict=self._whole(part), excluded=excluded) for part in nodes]
                return closed(asked_of_all(kept(parts)))
            case q.AnyOf(nodes):
                parts = [self._node(part, strict=self.strict, excluded=excluded) for part in nodes]
                return closed([any_of(kept(parts))]) if kept(parts) else None

    def _run(self, items: Sequence[q.QueryItem], *, strict: bool, excluded: bool) -> e.Expression | None:
        wanted: list[e.Expression] = []
        required: list[e.Expression] = []
        barred: list[e.Expression] = []
        filters: dict[str, list[e.Expression]] = {}
        for item in items:
            must = item.sign == "+" or strict
            whole = self._whole(item.node) if item.sign else strict
            part = self._node(item.node, strict=whole, excluded=excluded or item.sign == "-")
            if part is None:
                continue
            if item.sign == "-":
                barred.append(part)
            elif isinstance(item.node, q.QueryFilter | q.QueryDates | q.IdentifierWord) and item.sign == "":
                # Like ticked boxes: one of the values of a facet, in each facet.
                name = "date" if isinstance(item.node, q.QueryDates) else item.node.field
                filters.setdefault(name, []).append(part)
            else:
                (required if must else wanted).append(part)
        conditions = [any_of(parts) for parts in filters.values()]
        unasked = dropping_all(required)
        required = asked_of_all(required, [*conditions, *wanted])
        if required and wanted:
            others = e.Not(in_languages(unasked)) if unasked else e.Everything()
            required.append(any_of([*wanted, others]))
        elif wanted:
            required.append(any_of(wanted))
        return closed([*required, *conditions, *map(e.Not, barred)])

    def _whole(self, node: q.Node) -> bool:
        """Whether all of what is required or excluded is meant: a whole word, but any word of a group."""
        return self.strict or isinstance(node, q.Word)

    def _word(self, word: q.Word, *, strict: bool, excluded: bool) -> e.Expression | None:
        pieces = split(word.text)
        if word.prefix and any(words(piece) for piece in pieces):
            return self._prefix(word, pieces, strict=strict, excluded=excluded)
        groups = self._alternatives(pieces, word.field)
        if not excluded:
            # What is a stop word to some is no misspelling of another word.
            terms = tuple(
                dict.fromkeys(term for group in groups if not group.dropped for term in group.every)
            )
            self._asked.append(Asked(word.text, word.field, terms, at=word.at))
        if strict:
            return all_of(asked_of_all([one_of(group) for group in groups]))
        return any_of([part for group in groups for part in group.parts]) if groups else None

    def _prefix(
        self, word: q.Word, pieces: list[str], *, strict: bool, excluded: bool
    ) -> e.Expression | None:
        """Terms that begin so, and the word's own stems: "flying*" has to find what "flying" finds."""
        *before, last = (token for piece in pieces for token in words(piece))
        beginning = FIELD_MARKS.get(word.field, "") + last
        stems = self._alternatives([last], word.field)
        groups = self._alternatives(before, word.field)
        if not excluded:
            every = tuple(term for group in (*groups, *stems) for term in group.every)
            self._asked.append(Asked(word.text + "*", word.field, every, beginning, word.at))
        parts = [one_of(group) for group in groups]
        parts.append(any_of([e.Prefix(beginning), *(part for group in stems for part in group.parts)]))
        return all_of(asked_of_all(parts)) if strict else any_of(parts)

    def _known(self, node: q.IdentifierWord) -> e.Expression:
        """A record by one of its identifiers."""
        if node.field == "key":
            found = [node.value]
        elif node.field == "identifier":
            found = [*keys_of(node.value), key_in("id", node.value), key_in("oai", node.value)]
        else:
            found = [key_in(_SCHEMES.get(node.field, node.field), node.value)]
        terms = identifier_terms(dict.fromkeys(filter(None, found)))
        if not terms:
            self._notes.append(Note("no_such_form", field=node.field, value=node.value))
        self._asked.append(Asked(f"{node.field}:{node.value}", "identifier", tuple(terms), at=node.at))
        return any_of([e.Term(term) for term in terms])

    def _person(self, phrase: q.QueryPhrase) -> e.Expression | None:
        """The records of a person: by the keys of the name, or where the name holds the phrase."""
        if phrase.field not in ("creator", "contributor") or len(words(phrase.text)) < 2:
            return None
        terms = person_terms(phrase.field, phrase.text)
        self._asked.append(Asked(phrase.text, phrase.field, tuple(terms), at=phrase.at))
        found: list[e.Expression] = [e.Term(term) for term in terms]
        if self.holding is not None:
            mark = FIELD_MARKS[phrase.field]
            forms = [
                all_of([e.Term(mark + t) for t in self.analyzer.term(phrase.text, name)])
                for name in (*self.languages, *self.others)
            ]
            found.append(self.holding(phrase.field, phrase.text, any_of(kept(forms))))
        return any_of(found)

    def _phrase(self, phrase: q.QueryPhrase, *, excluded: bool) -> e.Expression | None:
        if (person := self._person(phrase)) is not None:
            return person
        variants: dict[tuple[str, ...], e.Expression] = {}
        rare: dict[tuple[str, ...], list[str]] = {}
        for language in (*self.languages, *self.others):
            found = self.analyzer.sequence(phrase.text, language)
            placed = [(place, term) for place, term in enumerate(found) if term is not None]
            terms = tuple(FIELD_MARKS.get(phrase.field, "") + term for _, term in placed)
            if terms in rare:
                rare[terms].append(language)
            if not terms or terms in variants:
                continue
            if language in self.others and (not phrase.field or len(terms) == 1):
                rare[terms] = [language]
            if phrase.field:
                variants[terms] = all_of([e.Term(term) for term in dict.fromkeys(terms)]) or e.Everything()
            elif len(terms) == 1:
                variants[terms] = e.Term(terms[0])
            else:
                first = placed[0][0]
                variants[terms] = e.Phrase(terms, tuple(place - first for place, _ in placed))
        if not excluded:
            every = tuple(dict.fromkeys(term for terms in variants for term in terms))
            self._asked.append(Asked(phrase.text, phrase.field, every, at=phrase.at))
        if not variants:
            return None
        any_form = any_of([bound(v, rare[t]) if t in rare else v for t, v in variants.items()])
        if phrase.field and self.holding is not None and any(len(terms) > 1 for terms in variants):
            return e.And((any_form, self.holding(phrase.field, phrase.text, any_form)))
        if not phrase.field and self.holding is not None and any(len(terms) > 1 for terms in variants):
            # Where the text is the metadata, these tell what no positions do.
            unplaced = e.And((any_form, e.Not(e.Positioned())))
            held = self.holding("", phrase.text, unplaced)
            return e.And((any_form, e.Or((e.Positioned(), held))))
        return any_form

    def _filter(self, node: q.QueryFilter) -> e.Expression:
        if node.field == "source":
            numbers = self.origins.get(node.value.casefold(), ())
            if not numbers:
                self._notes.append(Note("no_source", name=node.value))
            return any_of([e.Filter("origin", str(number)) for number in numbers])
        if node.field == "language":
            return any_of(
                [e.Filter("language", v) for v in dict.fromkeys((node.value, code(node.value))) if v]
            )
        return e.Filter(node.field, node.value)

    def _alternatives(self, pieces: list[str], field: str) -> list[Forms]:
        """For each token its distinct terms under the languages; one that all of them drop is left out."""
        mark, found = FIELD_MARKS.get(field, ""), list[Forms]()
        for own, rare in zip(
            self._forms(pieces, self.languages), self._forms(pieces, self.others), strict=False
        ):
            terms = self._written([mark + term for term in dict.fromkeys(own) if term is not None])
            dropped = [name for name, term in zip(self.languages, own, strict=True) if term is None]
            if terms:
                found.append(Forms(terms, dropped, {} if dropped else self._bound(terms, mark, rare)))
        return found

    def _bound(self, terms: Sequence[str], mark: str, rare: Sequence[str | None]) -> dict[str, list[str]]:
        """The other terms that a token has in languages of few records, each with these languages."""
        other: dict[str, list[str]] = {}
        for name, term in zip(self.others, rare, strict=bool(rare)):
            if term is not None and mark + term not in terms:
                other.setdefault(mark + term, []).append(name)
        found: dict[str, list[str]] = {}
        for term, names in other.items():
            for written in self._written([term]):
                if written not in terms:
                    found.setdefault(written, []).extend(names)
        return found

    def _forms(self, pieces: list[str], languages: Sequence[str]) -> Iterable[tuple[str | None, ...]]:
        """For each token its terms, one for each language."""
        if not languages:
            return repeat(())
        text = " ".join(pieces)
        return zip(*(self.analyzer.sequence(text, name) for name in languages), strict=True)

    def _written(self, terms: list[str]) -> list[str]:
        """The terms, and those of the index that differ from them by accents alone."""
        if self.accented is None:
            return terms
        plain = dict.fromkeys(map(without_accents, terms))
        return list(dict.fromkeys((*terms, *plain, *(t for p in plain for t in self.accented(p)))))

    def _all_stopped(self, query: q.Query) -> QueryError:
        asked = list(dict.fromkeys(word.text for word in q.words_of(query.tree)))
        shown = ", ".join(f"“{word}”" for word in asked[:5]) + (" …" if len(asked) > 5 else "")
        at = next((word.at for word in q.words_of(query.tree)), 0)
        return QueryError(Note("all_stopped", words=shown), clean(query.text), at)


class Spoken(NamedTuple):
    """The languages that a query is analysed by: those of a good part of the records, and of few."""

    frequent: tuple[str, ...]
    rare: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[str, ...]:
        return (*self.frequent, *self.rare)


def languages_in(searcher: Searcher, default: str) -> Spoken:
    """The languages that records are in, most frequent first; where none is frequent, the default is."""
    counted = searcher.search(e.Everything(), limit=0, facets=("language",), collapse=False)
    least = SPOKEN * searcher.collection.documents
    found: dict[str, int] = {}
    for value, count in counted.facets["language"]:
        if (name := code(value)) in LANGUAGES:
            found[name] = found.get(name, 0) + count
    frequent = tuple(name for name, count in found.items() if count >= least) or (default,)
    return Spoken(frequent, tuple(name for name in found if name not in frequent))


def _dated(value: str) -> e.Expression:
    return e.Dates(*date_range(value))
