"""What a query means to a library: its languages, its words, its phrases, and what else may have been meant.

`interpret.py` knows the rules; here they meet the records: which languages these are in, which sources there
are, whether a phrase stands in a text, how a misspelt word is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from indlet.errors import SettingsError
from indlet.limits import MISSPELT_WORDS, VERIFIED_RECORDS
from indlet.service.harvest.source_shape import shape_of
from indlet.service.index import Searcher
from indlet.service.index import expression as e
from indlet.service.search import query
from indlet.service.search.interpret import Interpreter, Meaning, Spoken, languages_in
from indlet.service.search.known_items import KnownItem, known_item
from indlet.service.search.notes import Note
from indlet.service.search.phrases import VERIFIED, VERIFIED_WHOLE, holds
from indlet.service.search.rank import Model
from indlet.service.search.results import Suggestion
from indlet.service.search.suggest import Speller
from indlet.settings import Search
from indlet.store import Origin, Store
from indlet.text import LANGUAGES, Analyzer, code

# How accents are taken, and what becomes of records that lack some words of a longer query.
ACCENTS: Final = ("fold", "exact")
ALL_WORDS: Final = ("first", "off")
_MOST_NAMED: Final = 8  # sources in a note
_LOOKED_UP: Final = 16  # words of a query of which it is told whether any record holds them
# A phrase in a field, the records that it is looked for in, and by the rules of which languages.
_Phrase = tuple[str, str, e.Expression, tuple[str, ...]]


class Handling(NamedTuple):
    """How a query is taken: accents folded or not, records with all words first or not."""

    fold_accents: bool
    all_words: bool


@dataclass(slots=True)
class _Verification:
    """How many records may still be read to verify the phrases of one query, and what there is to say."""

    left: int = VERIFIED_RECORDS
    notes: list[str] = field(default_factory=list)


class QueryReader:
    """Reads queries for one library; what it has found out about a snapshot goes with that."""

    def __init__(self, store: Store, settings: Search, analyzer: Analyzer) -> None:
        self._store, self._settings, self._analyzer = store, settings, analyzer
        self._speller: Speller | None = None
        self._spoken: WeakKeyDictionary[Searcher, Spoken] = WeakKeyDictionary()
        self._verified: WeakKeyDictionary[Searcher, dict[_Phrase, e.Expression]] = WeakKeyDictionary()

    def spoken(
        self,
        searcher: Searcher,
        asked: Sequence[str] = (),
        filters: Mapping[str, Sequence[str]] | None = None,
    ) -> Spoken:
        """By whose rules a query is analysed: as asked for, as the filters say, as set, or those that the
        records are in.
        """
        if self._analyzer.policy.language != "auto":
            return Spoken((self._analyzer.policy.language,))
        if isinstance(asked, str):  # a sequence too, of letters
            asked = (asked,) if asked else ()
        asked = asked or _codes((filters or {}).get("language", ()))
        if named := tuple(asked) or self._settings.languages:
            for name in named:
                if code(name) not in LANGUAGES:
                    raise SettingsError(
                        f"there are no rules for the language {name!r}: give ISO 639-1 codes such as en,de"
                    )
            return Spoken(tuple(dict.fromkeys(map(code, named))))
        found = self._spoken.get(searcher)
        if found is None:
            found = self._spoken[searcher] = languages_in(searcher, self._analyzer.policy.default_language)
        return found

    def handling(self, accents: str = "", all_words: str = "") -> Handling:
        """As asked for, or as the settings say."""
        settings = self._settings
        accents, all_words = accents or settings.accents, all_words or settings.all_words
        for name, value, known in (
            ("accents", accents, ACCENTS),
            ("all_words", all_words, ALL_WORDS),
        ):
            if value not in known:
                raise SettingsError(f"{name} is {value!r}: choose one of {', '.join(known)}")
        return Handling(accents == "fold", all_words == "first")

    def is_strict(self, ranking: Model, require_all: bool) -> bool:
        """Whether a record must match all parts of a query."""
        return ranking.name == "boolean" or require_all

    def meaning(
        self,
        text: str,
        ranking: Model,
        spoken: Spoken,
        searcher: Searcher,
        origins: Mapping[int, Origin],
        handling: Handling,
        filters: Mapping[str, Sequence[str]] | None = None,
        *,
        plain: bool = False,
        require_all: bool = False,
    ) -> Meaning:
        """What a query asks the index. `origins`: those that are shown; `plain`: the text is words, whatever
        signs are in it; `require_all`: words side by side must all be there.
        """
        known = KnownItem() if plain else known_item(text, searcher, self._store)
        reader = query.plain if plain or known.verbatim else query.parse
        asked = known.only(text) or reader(text, self._settings.max_clauses)
        names: dict[str, list[int]] = {}
        for origin in origins.values():
            for name in {origin.name, str(origin.settings.get("url", ""))} - {""}:
                names.setdefault(name.casefold(), []).append(origin.id)
        strict = self.is_strict(ranking, require_all)
        verification = _Verification()
        meaning = Interpreter(
            self._analyzer, spoken.frequent, names, strict, spoken.rare,
            searcher.accented if handling.fold_accents else None,
            lambda field, phrase, among: self._holding(searcher, field, phrase, among, spoken, verification),
        ).meaning(asked, filters, known.first)  # fmt: skip
        first = (*known.first, *(meaning.first if handling.all_words else ()))
        return replace(
            meaning,
            expression=e.Or((*known.first, meaning.expression)) if known.first else meaning.expression,
            filters=meaning.filters,
            notes=(*meaning.notes, *known.notes, *verification.notes),
            first=first,
            words=meaning.words if handling.all_words else 0,
        )

    def _holding(
        self,
        searcher: Searcher,
        field: str,
        phrase: str,
        among: e.Expression,
        spoken: Spoken,
        verification: _Verification,
    ) -> e.Expression:
        """The records among those of an expression of which `phrases.holds` is true."""
        known, every = self._verified.get(searcher), spoken.every
        if known is None or len(known) > 1000:
            known = self._verified[searcher] = {}
        # By the languages too: what one reader asks under others must not decide what the next one finds.
        key = (field, phrase, among, every)
        if key not in known:
            most = min(VERIFIED if field else VERIFIED_WHOLE, verification.left)
            found = searcher.search(among, limit=most, collapse=False)
            if found.total > most:
                problem = "too_many_to_verify" if field else "too_many_texts"
                verification.notes.append(Note(problem, most=most, phrase=phrase, field=field))
                return among
            with self._store.read() as view:
                records = view.by_id([hit.id for hit in found.hits]).values()
            verification.left -= found.total
            known[key] = e.Ids(tuple(s.id for s in records if holds(self._analyzer, s, field, phrase, every)))
        return known[key]

    def suggestions(
        self, searcher: Searcher, meaning: Meaning, spoken: Sequence[str]
    ) -> tuple[Suggestion, ...]:
        """Other words for those of the query that no record holds."""
        found, misspelt = [], 0
        for asked in meaning.asked[:_LOOKED_UP]:
            if misspelt == MISSPELT_WORDS:
                break
            if asked.prefix or not asked.terms or searcher.query_terms(_any_of(asked.terms)):
                continue
            misspelt += 1
            speller = self.speller(searcher)
            instead = tuple(speller.corrections(asked.terms[0], asked.text, spoken, asked.field))
            if instead:
                found.append(Suggestion(asked.text, asked.at, instead))
        return tuple(found)

    def speller(self, searcher: Searcher) -> Speller:
        speller = self._speller
        if speller is None or speller.searcher is not searcher:
            speller = self._speller = Speller(searcher, self._store, self._analyzer)
        return speller

    def forget_speller(self) -> None:
        self._speller = None


def without_positions(searcher: Searcher, meaning: Meaning, origins: Mapping[int, Origin]) -> Note | None:
    """In which sources a phrase was exact, and in which it meant all of its words, of what was found."""

    def named(condition: e.Expression) -> str:
        chosen = (*meaning.filters, condition)
        told = searcher.search(
            meaning.expression, limit=0, filters=chosen, facets=("origin",), collapse=False
        )
        known = [
            origins[int(number)].name
            for number, _ in told.facets["origin"]
            if int(number) in origins and not _without_text(origins[int(number)])
        ]
        return ", ".join(known[:_MOST_NAMED]) + (" …" if len(known) > _MOST_NAMED else "")

    exact, loose = named(e.Positioned()), named(e.Not(e.Positioned()))
    if not loose:
        return None
    return Note("loose_some", exact=exact, loose=loose) if exact else Note("loose", loose=loose)


def _codes(values: Sequence[str]) -> tuple[str, ...]:
    """The languages that a filter names, if there are rules for all of them."""
    found = tuple(dict.fromkeys(map(code, (values,) if isinstance(values, str) else values)))
    return found if all(name in LANGUAGES for name in found) else ()


def _any_of(terms: Iterable[str]) -> e.Expression:
    return e.Or(tuple(map(e.Term, terms)))


def _without_text(origin: Origin) -> bool:
    """Whether a source gives metadata alone, in which a phrase is looked up."""
    shape = shape_of(origin.state) if origin.kind == "source" else None
    return shape is not None and not shape.index_prefix and not shape.fulltext
