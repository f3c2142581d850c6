"""Words from the vocabulary: near a misspelt one, or beginning like an unfinished one.

The index knows stems, people write words. A stem is spelt out by looking at the metadata of some records
that hold it: the word there that has this stem is shown. Where there is none, a correction shows the stem;
completions leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from indlet import _core
from indlet.model import FIELD_MARK, FIELD_MARKS, Metadata, split_field
from indlet.service.index import NearTerm, Searcher
from indlet.service.index.expression import Or, Term
from indlet.store import Store
from indlet.text import Analyzer, fold, tokens

# A word of more characters is nothing that anybody misspelt.
LONGEST: Final = 40
# Records whose metadata are read to spell a stem out.
_WITNESSES: Final = 8
_SPELT_BY: Final = ("title", "subject", "description", "creator", "publisher")
_REMEMBERED: Final = 50_000
_NEAR_REMEMBERED: Final = 1_000


class Speller:
    """Suggestions from one snapshot of the index. Keep it as long as the snapshot: it remembers spellings."""

    def __init__(self, searcher: Searcher, store: Store, analyzer: Analyzer) -> None:
        self.searcher = searcher
        self._store = store
        self._analyzer = analyzer
        self._words: dict[str, dict[str, int]] = {}
        self._near: dict[tuple[str, int], list[NearTerm]] = {}

    def near(self, term: str, field: str = "", limit: int = 3) -> list[tuple[str, int]]:
        """Terms near one that no record holds, with their df: few edits first, then the frequent ones."""
        bare, _ = split_field(term)
        if not 3 <= len(bare) <= LONGEST:
            return []
        most = 1 if len(bare) < 6 else 2
        mark = FIELD_MARKS.get(field, "")
        best = {
            found.term: found
            for found in self._all_near(mark + bare, most)
            if found.term.startswith(mark) and FIELD_MARK not in found.term[len(mark) :]
        }
        # People seldom get the first letter wrong.
        order = sorted(
            best, key=lambda name: (best[name].edits, name[len(mark)] != bare[0], -best[name].df, name)
        )
        return [(name, best[name].df) for name in order[:limit]]

    def _all_near(self, term: str, most: int) -> list[NearTerm]:
        """Found once for a snapshot: the whole vocabulary is read for it, and models are compared by the same
        query.
        """
        found = self._near.get((term, most))
        if found is None:
            if len(self._near) >= _NEAR_REMEMBERED:
                self._near.clear()
            found = self._near[term, most] = self.searcher.near(term, most)
        return found

    def beginning(
        self, text: str, languages: Sequence[str], limit: int = 8, field: str = ""
    ) -> list[tuple[str, int]]:
        """Words that begin so, in a field or anywhere, with the number of records that hold them, the most
        frequent first.
        """
        words = [word for _, _, word in tokens(text)]
        if not words or len(words[-1]) < 2:
            return []
        found: dict[str, int] = {}
        mark = FIELD_MARKS.get(field, "")
        for term, df, _ in self.searcher.terms(mark + words[-1], 4 * limit):
            # A stem that no title or description spells out is no word to propose.
            if FIELD_MARK not in term[len(mark) :] and (spelt := self.spelt(term, languages, "")):
                found[spelt] = max(df, found.get(spelt, 0))
        return sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))[:limit]

    def corrections(
        self, term: str, word: str, languages: Sequence[str], field: str = "", limit: int = 3
    ) -> list[str]:
        """Words for one that no record holds: few edits first, then the frequent ones. `term` is what the
        word became. Words with a shorter stem are found by that: "gravitatonal" is near "gravitational", but
        its term is far from "gravit".
        """
        folded = fold(word)
        if not 3 <= len(folded) <= LONGEST:
            return []
        most = 1 if len(folded) < 6 else 2
        found: dict[str, tuple[int, bool, int, str]] = {}
        for near, df in self.near(term, field, limit):
            spelt = self._nearest(near, folded, languages)
            found[spelt] = (_edits(folded, spelt, most), spelt[:1] != folded[0], -df, spelt)
        mark = FIELD_MARKS.get(field, "")
        prefixes = [mark + folded[:length] for length in range(max(3, len(folded) // 2), len(folded))]
        for known in self.searcher.query_terms(Or(tuple(map(Term, prefixes)))):
            for spelt in self._spellings(known.term.decode().removeprefix(mark), languages):
                edits = _edits(folded, spelt, most)
                if edits <= most:
                    found.setdefault(spelt, (edits, spelt[:1] != folded[0], -known.df, spelt))
        return sorted(found, key=lambda spelt: found[spelt])[:limit]

    def spelt(self, term: str, languages: Sequence[str], otherwise: str | None = None) -> str:
        """A word as people write it that has this term; `otherwise`, or the term, where no metadata tell."""
        bare, _ = split_field(term)
        counts = self._spellings(bare, languages)
        if counts:
            return min(counts, key=lambda word: (-counts[word], len(word), word))
        return bare if otherwise is None else otherwise

    def _nearest(self, term: str, word: str, languages: Sequence[str]) -> str:
        """The word of a term that is nearest to another word."""
        bare, _ = split_field(term)
        counts = self._spellings(bare, languages)
        return min(counts, key=lambda one: (_edits(word, one, 4), -counts[one], one)) if counts else bare

    def _spellings(self, term: str, languages: Sequence[str]) -> dict[str, int]:
        """The words that have a term, counted in the metadata of some records that hold it."""
        known = self._words.get(term)
        if known is None:
            if len(self._words) >= _REMEMBERED:
                self._words.clear()
            known = self._words[term] = self._read(term, languages)
        return known

    def _read(self, term: str, languages: Sequence[str]) -> dict[str, int]:
        asked = Or(tuple(Term(FIELD_MARKS[field] + term) for field in _SPELT_BY))
        hits = self.searcher.search(asked, limit=_WITNESSES, collapse=False).hits
        with self._store.read() as view:
            records = view.by_id([hit.id for hit in hits])
        counts: dict[str, int] = {}
        for stored in records.values():
            own = self._analyzer.completed(stored).language
            for word in _words(stored.record.metadata):
                if any(term in self._analyzer.term(word, name) for name in (own, *languages)):
                    counts[word] = counts.get(word, 0) + 1
        return counts


def _edits(one: str, other: str, most: int) -> int:
    """How many edits of bytes two words are apart; one more than `most` if that is exceeded."""
    found = _core.words_near(one.encode(), [other.encode()], most)
    return found[0][1] if found else most + 1


def _words(metadata: Metadata) -> Iterator[str]:
    values: Iterable[str] = (value for field in _SPELT_BY for value in metadata.get(field, ()))
    for value in values:
        for _, _, word in tokens(value[:5000]):
            yield word
