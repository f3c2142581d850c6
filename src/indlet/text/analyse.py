"""Text to terms, by a policy."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil
from typing import Final

from indlet.model import FIELD_MARKS, Metadata, Stored, TermVector, pack
from indlet.text.language import code, detect_pieces, sample
from indlet.text.policy import Policy
from indlet.text.prune import kept, summary
from indlet.text.rules import LANGUAGES, stemmer, stop_words
from indlet.text.tokens import joined, split, words

FIELDS: Final = ("title", "creator", "contributor", "subject", "description", "publisher")
# What is searched of a record that came without a vector, in the order in which it is read.
SEARCHED: Final = ("title", "description", "subject", "creator")

# Stands for a token that was dropped; no token can be equal to it.
LOST: Final = "."
# Pieces kept for each language: at some 150 bytes each a lexicon stays below 30 MB.
_PIECES: Final = 200_000
# Longer pieces hardly ever come back.
_LONG_PIECE: Final = 100
# Texts are analysed in blocks, so that the pieces of a large one never are in memory together.
_BLOCK: Final = 1 << 20
# Where a text can be cut without cutting a token: scripts without spaces have stops all the same.
_GAP: Final = re.compile(r"[\s!-/:-@\[-`{-~、。，！？；：]")


class Lexicon(dict[str, str]):
    """What each piece of text becomes in one language: its tokens' terms, joined by spaces, "." for one
    dropped.

    It fills itself, and starts again when it is full. A dictionary that joins strings keeps the work on a
    known piece out of the interpreter, and nearly all pieces are known.
    """

    def __init__(self, policy: Policy, language: str) -> None:
        self._stops = stop_words(language)
        self._drop = self._stops if policy.stop else frozenset[str]()
        self._stem = stemmer(language) if policy.stem else None
        self._lengths = range(policy.min_length, policy.max_length + 1)

    def __missing__(self, piece: str) -> str:
        terms = " ".join(map(self.term, words(piece)))
        if len(piece) <= _LONG_PIECE:
            if len(self) >= _PIECES:
                self.clear()
            self[piece] = terms
        return terms

    def terms(self, pieces: Iterable[str], plain: bool = False) -> Iterable[str]:
        """The terms of pieces in their order, "." for each token that was dropped.

        `plain` says that the pieces are ASCII: then each is one token, and nothing is to be taken apart.
        """
        terms = map(self.__getitem__, pieces)
        return terms if plain else " ".join(terms).split()

    def term(self, token: str) -> str:
        """The term that a token becomes, or "." if it becomes none."""
        if token in self._drop or len(token) not in self._lengths:
            return LOST
        if self._stem is None or token in self._stops:
            return token
        return self._stem.one(token)

    def many(self, tokens: list[str]) -> list[str]:
        """`term` of each token, at once."""
        lengths, drop, stops = self._lengths, self._drop, self._stops
        stems = tokens if self._stem is None else self._stem.many(tokens)
        # Most tokens that are new are neither stop words nor of an unusual length.
        if (
            tokens
            and stops.isdisjoint(tokens)
            and min(map(len, tokens)) in lengths
            and max(map(len, tokens)) in lengths
        ):
            return list(stems)
        return [
            LOST if token in drop or len(token) not in lengths else token if token in stops else stem
            for token, stem in zip(tokens, stems, strict=True)
        ]


class Analyzer:
    """Makes terms of texts by one policy. Keep it: it is fast because it remembers.

    A policy that names a language holds for every text. Under "auto" the text itself says what language it
    is in; where it does not, what is stated about it counts, and then the policy's default. Statements come
    second because they mislead: of 103 harvested records that stated Turkish, the text of 68 read as English.
    Only a language of which we know no function words can be taken for a neighbour, and has to be believed.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._lexicons: dict[str, Lexicon] = {}

    def vector(self, text: str, language: str = "") -> TermVector:
        """A text's terms with their frequencies; its length counts the tokens that became terms.

        `language` is what is stated about the text, in any usual form ("de", "ger", "de-AT").
        """
        text = joined(text)
        if len(text) > _BLOCK:
            language = self._language(text, language)
            lexicon = self.lexicon(language)
            stream = (
                term for block in _blocks(text) for term in lexicon.terms(split(block), block.isascii())
            )
            return self._made(stream, language)
        pieces = split(text)
        language = self._language(text, language, pieces)
        return self._made(self.lexicon(language).terms(pieces, text.isascii()), language)

    def completed(self, stored: Stored) -> Stored:
        """The record with its vector: one that came without has that of its metadata, which is kept nowhere.

        Such a vector follows from the metadata and the policy.
        """
        if stored.vector is not None or stored.deleted:
            return stored
        metadata = json.loads(stored.metadata or b"{}")
        made = self.vector(searched(metadata), next(iter(metadata.get("language", ())), ""))
        return stored._replace(
            language=made.language, length=made.length, vector=made.packed, positions=made.positions
        )

    def frequencies(self, stored: Stored) -> dict[str, int]:
        """The terms of a record, of its metadata where it came without a vector."""
        return TermVector(self.completed(stored).vector or b"").frequencies()

    def terms(self, text: str, language: str = "") -> list[str]:
        """A text's terms in their order, for a query; a language that is given is taken at its word."""
        pieces = split(joined(text))
        rules = self.rules_for(code(language)) if language else self._language(text, "", pieces)
        return [term for term in self.lexicon(rules).terms(pieces) if term != LOST]

    def term(self, word: str, language: str = "") -> tuple[str, ...]:
        """What one word becomes: no term if it is dropped, several if we split what others join."""
        lexicon = self.lexicon(self.rules_for(language))
        return tuple(term for term in lexicon.terms(split(word)) if term != LOST)

    def fields(self, metadata: Metadata, language: str = "") -> bytes:
        """The packed vector of the terms of descriptive metadata, each marked with its field
        (see `model.FIELD_MARKS`).

        The language is the one given, else the one they are in, else the one that they state.
        """
        texts = {name: "\n".join(values) for name in FIELDS if (values := metadata.get(name))}
        if not language:
            stated = next(filter(None, map(code, metadata.get("language", ()))), "")
            language = self._language("\n".join(texts.values()), stated)
        lexicon = self.lexicon(self.rules_for(language))
        # In the order of names and then of terms, the packed form is put together without a look at it.
        groups: dict[int, list[str]] = {}
        for name in sorted(texts):
            text = texts[name]
            terms = [t for t in lexicon.terms(split(joined(text)), text.isascii()) if t != LOST]
            mark = FIELD_MARKS[name]
            by_count: dict[int, Iterable[str]] = {1: terms} if terms else {}
            if len(set(terms)) != len(terms):
                found = Counter(terms)
                by_count = {n: [t for t, c in found.items() if c == n] for n in set(found.values())}
            for count, alike in by_count.items():
                groups.setdefault(count, []).append(mark + f" {mark}".join(sorted(alike)))
        return "\n".join([f"{count} {' '.join(groups[count])}" for count in sorted(groups)]).encode()

    def rules_for(self, language: str) -> str:
        """The language by whose rules a text is treated that is in the given language."""
        policy = self.policy
        return policy.language if policy.language != "auto" else language or policy.default_language

    def lexicon(self, language: str) -> Lexicon:
        # Languages without rules share a lexicon.
        known = language if language in LANGUAGES else ""
        found = self._lexicons.get(known)
        return self._lexicons.setdefault(known, Lexicon(self.policy, known)) if found is None else found

    def _language(self, text: str, stated: str, pieces: Sequence[str] | None = None) -> str:
        if self.policy.language != "auto":
            return self.policy.language
        stated = code(stated) if stated else ""
        if stated and not stop_words(stated):
            return stated
        taken = sample(text)
        if pieces is None or len(taken) != len(text):
            pieces = split(taken)
        return detect_pieces(taken, pieces, stated) or stated or self.policy.default_language

    def _made(self, terms: Iterable[str], language: str) -> TermVector:
        lead: Collection[str] | None = None
        if self.policy.lead is not None:
            terms = list(terms)
            lead = set(terms[: ceil(self.policy.lead * len(terms))])
        if not self.policy.positions:
            return counted(Counter(terms), self.policy, language, lead=lead)
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, term in enumerate(terms):
            places[term].append(place)
        return placed(places, self.policy, language, lead=lead)


def searched(metadata: Metadata, fields: Sequence[str] = SEARCHED) -> str:
    """What is searched of a record that came without a vector, or the text of other fields."""
    return "\n".join([value for name in fields for value in metadata.get(name, ())])


def counted(
    counts: dict[str, int],
    policy: Policy,
    language: str,
    length: int | None = None,
    lead: Collection[str] | None = None,
) -> TermVector:
    """A vector of frequencies, pruned if the policy says so; takes the dictionary for its own.

    `lead`: the terms of the text's beginning, where these are kept anyway.
    """
    counts.pop(LOST, None)
    if length is None:
        length = sum(counts.values())
    if (stay := _staying(counts, policy, lead)) is not None:
        counts = {term: counts[term] for term in stay}
    return TermVector(pack(counts), length, None, language)


def _staying(counts: dict[str, int], policy: Policy, lead: Collection[str] | None) -> list[str] | None:
    """The terms that a policy keeps; None: all."""
    if lead is not None:
        return summary(counts, lead, policy.prune)
    return None if policy.prune is None else kept(counts, policy.prune)


def placed(
    places: dict[str, list[int]],
    policy: Policy,
    language: str,
    length: int | None = None,
    lead: Collection[str] | None = None,
) -> TermVector:
    """The same with positions."""
    places.pop(LOST, None)
    counts = {term: len(found) for term, found in places.items()}
    if length is None:
        length = sum(counts.values())
    if (stay := _staying(counts, policy, lead)) is not None:
        places = {term: places[term] for term in stay}
    return TermVector.of_positions(places, length, language)


def _blocks(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        gap = _GAP.search(text, start + _BLOCK)
        end = gap.start() if gap else len(text)
        yield text[start:end]
        start = end
