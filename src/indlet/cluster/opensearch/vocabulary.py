"""The terms of a snapshot and their exact statistics: df is a count, cf a sum of scores (frequencies).

Both are fetched once and cached with the snapshot.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from indlet import _core
from indlet.cluster.opensearch.cluster import Json, pieces, total
from indlet.cluster.opensearch.matching import EVERYTHING
from indlet.cluster.opensearch.schema import escape_term, parse_counts, term_of
from indlet.cluster.opensearch.snapshot import Snapshot
from indlet.model import FIELD_MARK
from indlet.service.index.protocol import NearTerm

_AT_ONCE: Final = 200  # terms of one request
_MOST: Final = 65_000  # terms of a beginning that the cluster counts in one answer
_FEW: Final = 500  # terms that a spelled-out beginning has as a rule
_SUGGESTED: Final = 5000  # neighbours of a word: of more, the nearest and most frequent
_REMEMBERED: Final = 100_000
_LONGEST_SUGGESTION: Final = 100  # bytes of a word whose neighbours are looked for


class ClusterVocabulary:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[str, tuple[int, int]] = {}
        self._guard = threading.Lock()

    def statistics(self, terms: Sequence[str]) -> list[tuple[int, int]]:
        """df and cf of terms."""
        known = {term: self._known[term] for term in terms if term in self._known}
        for piece in pieces((term for term in dict.fromkeys(terms) if term not in known), _AT_ONCE):
            sums: Json = {"size": 0, "aggs": {"cf": {"sum": {"script": {"source": "_score"}}}}}
            answers = self._snapshot.search_many(
                [(sums, {"term": {"terms": escape_term(term)}}) for term in piece]
            )
            for term, answer in zip(piece, answers, strict=True):
                cf = answer["aggregations"].get("cf", {}).get("value") or 0
                known[term] = total(answer), int(cf)
        with self._guard:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known |= known
        return [known[term] for term in terms]

    def terms(self, prefix: str, limit: int | None) -> list[tuple[str, int, int]]:
        """Those that begin so: the `limit` most frequent ones, most frequent first."""
        picked = sorted(
            self.counted_in(None, prefix).items(),
            key=lambda entry: (-entry[1], entry[0].encode("utf-8", "surrogatepass")),
        )
        if limit is None and len(picked) > _MOST:  # too many to ask for each
            start = prefix.encode("utf-8", "surrogatepass")
            every = sorted((-df, name, cf) for name, df, cf in self.every() if name.startswith(start))
            return [(name.decode(errors="replace"), -df, cf) for df, name, cf in every]
        names = [term for term, _ in picked[:limit]]
        return [(term, *told) for term, told in zip(names, self.statistics(names), strict=True)]

    def every(self) -> Iterator[tuple[bytes, int, int]]:
        """All terms with df and cf, in the order of bytes: every document is read."""
        df: Counter[str] = Counter()
        cf: Counter[str] = Counter()
        for hit in self._snapshot.each(EVERYTHING, (), ("terms",)):
            frequencies = parse_counts(hit["_source"]["terms"])
            df.update(frequencies.keys())
            cf.update(frequencies)
        for name, term in sorted((term_of(name).encode("utf-8", "surrogatepass"), name) for name in df):
            yield name, df[term], cf[term]

    @cached_property
    def size(self) -> int:
        """How many terms there are: every document is read, once for each page of terms."""
        return sum(1 for _ in self._page_terms(EVERYTHING))

    def near(self, word: str, edits: int) -> list[NearTerm]:
        """Terms within `edits` edits of bytes, chosen from those within as many edits of letters, which the
        cluster suggests."""
        if len(word) > _LONGEST_SUGGESTION:
            return []
        # Of what is so short that nothing of it need be left, the cluster proposes nothing.
        proposed = self._short(len(word) + edits) if len(word) <= 2 * edits else self._suggest(word, edits)
        own = [term for term in (word, *proposed) if _field_mark(term) == _field_mark(word)]
        distances = _distances(word, own, edits)
        statistics = self.statistics(list(distances))
        return [
            NearTerm(term, distance, df)
            for (term, distance), (df, _) in zip(distances.items(), statistics, strict=True)
            if df
        ]

    def _short(self, longest: int) -> list[str]:
        """Terms of at most `longest` letters."""
        told = self._count(f".{{0,{longest}}}", EVERYTHING)
        if told is not None:
            return list(told)
        return [term for name, _ in self._page_terms(EVERYTHING) if len(term := term_of(name)) <= longest]

    def _suggest(self, word: str, edits: int) -> list[str]:
        asked = {
            "field": "terms",
            "size": _SUGGESTED,
            "shard_size": _SUGGESTED,
            "suggest_mode": "always",
            "max_edits": min(edits, 2),
            "prefix_length": 0,
            "min_word_length": 1,
            "max_inspections": 100,
            "min_doc_freq": 0,
            "max_term_freq": 1e9,
            "accuracy": 0.0,
            "string_distance": "damerau_levenshtein",
            "analyzer": "keyword",
        }
        told = self._snapshot.search(
            {"size": 0, "suggest": {"near": {"text": escape_term(word), "term": asked}}}, EVERYTHING
        )
        found = told.get("suggest", {}).get("near", ())
        return [term_of(option["text"]) for entry in found for option in entry["options"]]

    def accented(self, plain: str) -> list[str]:
        each = {
            "terms": {
                "field": "accents",
                "include": f"{_literal(plain)} .*",
                "size": 1000,
                "shard_size": 1000,
            }
        }
        told = self._snapshot.search(
            {"size": 0, "aggs": {"each": each}}, {"prefix": {"accents": f"{plain} "}}
        )
        buckets = told["aggregations"].get("each", {"buckets": []})["buckets"]
        return [term_of(bucket["key"].partition(" ")[2]) for bucket in buckets]

    def counted_in(self, match: Json | None, prefix: str) -> dict[str, int]:
        """The terms that begin so with how many of the matching documents have each; None matches all."""
        name = escape_term(prefix)
        query = match or ({"prefix": {"terms": name}} if name else EVERYTHING)
        found = self._count(f"{_literal(name)}.*" if name else "", query)
        return found if found is not None else {term_of(key): df for key, df in self._page_terms(query, name)}

    def counted_at_once(self, prefix: str) -> dict[str, int] | None:
        """The terms that begin so with their df; None if they are too many for one answer."""
        name = escape_term(prefix)
        return self._count(f"{_literal(name)}.*", {"prefix": {"terms": name}})

    def counted_by_beginning(self, prefixes: Sequence[str]) -> list[dict[str, int]]:
        """For each prefix the terms that begin so with their df."""
        found: list[dict[str, int]] = []
        for piece in pieces(prefixes, _AT_ONCE):
            names = list(map(escape_term, piece))
            asked = [(_counting(f"{_literal(name)}.*", _FEW), {"prefix": {"terms": name}}) for name in names]
            for prefix, answer in zip(piece, self._snapshot.search_many(asked), strict=True):
                terms = _counts(answer)
                found.append(self.counted_in(None, prefix) if terms is None else terms)
        return found

    def terms_from(
        self, bound: str, prefix: str, size: int, backwards: bool = False
    ) -> Iterator[tuple[str, int]]:
        """The terms from a bound on that begin so, or those before it, with their df; `size` at a time."""
        name, start = escape_term(prefix), escape_term(bound)
        after = start if backwards else _before(start)
        for term, df in self._page_terms({"prefix": {"terms": name}}, name, after, size, backwards):
            yield term_of(term), df

    def _page_terms(
        self, query: Json, start: str = "", after: str = "", size: int = 0, backwards: bool = False
    ) -> Iterator[tuple[str, int]]:
        """All terms of the matching documents that begin so, as the cluster names them, with their df."""
        by_name = {"terms": {"field": "words", "order": "desc" if backwards else "asc"}}
        pages: Json = {"size": min(size or _MOST, _MOST), "sources": [{"value": by_name}]}
        if start:  # terms come in the order of their bytes
            pages["after"] = {"value": after or _before(start)}
        while True:
            answer = self._snapshot.search({"size": 0, "aggs": {"each": {"composite": pages}}}, query)
            each = answer["aggregations"].get("each", {"buckets": []})
            for bucket in each["buckets"]:
                name = bucket["key"]["value"]
                if not name.startswith(start):
                    return
                yield name, bucket["doc_count"]
            if "after_key" not in each:
                return
            pages["after"] = each["after_key"]

    def _count(self, pattern: str, query: Json) -> dict[str, int] | None:
        return _counts(self._snapshot.search(_counting(pattern), query))


def _counting(pattern: str, most: int = 0) -> Json:
    """What counts the terms of the matching documents that are so. A cluster reserves memory for `most`."""
    size = min(most or _MOST, _MOST)
    each: Json = {"field": "words", "size": size, "shard_size": size}
    if pattern:
        each["include"] = pattern
    return {"size": 0, "aggs": {"each": {"terms": each}}}


def _counts(answer: Json) -> dict[str, int] | None:
    """The terms and their counts; None if not all of them are there."""
    found = answer["aggregations"].get("each", {"buckets": [], "sum_other_doc_count": 0})
    if found["sum_other_doc_count"]:
        return None
    return {term_of(bucket["key"]): bucket["doc_count"] for bucket in found["buckets"]}


def _before(text: str) -> str:
    """A text shortly before this one in the order of bytes."""
    last = ord(text[-1])
    ahead = 0xD7FF if last == 0xE000 else last - 1  # no surrogate
    return text[:-1] + (chr(ahead) + chr(0x10FFFF) if last else "")


def _literal(text: str) -> str:
    """A text as a regular expression of Lucene that means itself."""
    return re.sub(r'([.?+*|{}\[\]()"\\#@&<>~^$-])', r"\\\1", text)


def _field_mark(term: str) -> str:
    """What marks a term as one of a field; empty for the text."""
    return term[:2] if term.startswith(FIELD_MARK) else ""


def _distances(word: str, terms: Sequence[str], edits: int) -> dict[str, int]:
    """How many edits of bytes each term is away, for those that are near enough."""
    names = [term.encode("utf-8", "surrogatepass") for term in dict.fromkeys(terms)]
    near = _core.words_near(word.encode("utf-8", "surrogatepass"), names, edits)
    return {names[place].decode(errors="replace"): distance for place, distance in near}
