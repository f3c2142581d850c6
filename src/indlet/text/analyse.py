"""Text to terms, by a policy. The work is done in `core/src/text/analyzer.rs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from indlet import _core
from indlet.model import Stored, TermVector, pack
from indlet.text.policy import Policy
from indlet.text.rules import LANGUAGES, stemmer, stop_words

# What is searched of a record that came without a vector, in the order in which it is read, as in the core
# (`core/src/index/records.rs`).
SEARCHED: Final = ("title", "description", "subject", "creator")


class Analyzer:
    """Makes terms of texts by one policy. Keep it: it is fast because it remembers. Threads may share it.

    A policy that names a language holds for every text. Under "auto" the text itself says what language it
    is in; where it does not, what is stated about it counts, and then the policy's default.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()

    @cached_property
    def core(self) -> _core.TextAnalyzer:
        policy = self.policy
        return _core.TextAnalyzer(
            language=policy.language, default_language=policy.default_language, stop=policy.stop,
            stem=policy.stem, positions=policy.positions, prune=policy.prune, lead=policy.lead,
            min_length=policy.min_length, max_length=policy.max_length,
            stops=[(language, sorted(stop_words(language))) for language in LANGUAGES],
            stemmer=stemmer(), model=_language_model,
        )  # fmt: skip

    def vector(self, text: str, language: str = "") -> TermVector:
        """A text's terms with their frequencies; its length counts the tokens that became terms.

        `language` is what is stated about the text, in any usual form ("de", "ger", "de-AT").
        """
        return TermVector(*self.core.vector(text, language))

    def completed(self, stored: Stored) -> Stored:
        """The record with its vector: one that came without has that of its metadata, which is kept nowhere.

        Such a vector follows from the metadata and the policy.
        """
        if stored.vector is not None or stored.deleted:
            return stored
        vector, length, positions, language = self.core.metadata_vector(stored.metadata)
        return stored._replace(language=language, length=length, vector=vector, positions=positions)

    def described(self, changes: Sequence[Stored]) -> list[Stored]:
        """Changes with their vectors, and with the terms of their fields and keys, which are made here and
        kept in the index alone.
        """
        live = [stored for stored in changes if not stored.deleted]
        made = iter(self.core.describe([stored_row(stored) for stored in live]))
        return [stored if stored.deleted else _with_terms(stored, next(made)) for stored in changes]

    def frequencies(self, stored: Stored) -> dict[str, int]:
        """The terms of a record, of its metadata where it came without a vector."""
        return TermVector(self.completed(stored).vector or b"").frequencies()

    def terms(self, text: str, language: str = "") -> list[str]:
        """A text's terms in their order, for a query; a language that is given is taken at its word."""
        return self.core.terms(text, language)

    def term(self, word: str, language: str = "") -> tuple[str, ...]:
        """What one word becomes: no term if it is dropped, several if we split what others join."""
        return tuple(self.core.term(word, language))

    def sequence(self, text: str, language: str) -> list[str | None]:
        """The terms of a text that is in a language, in their order; None for a token that was dropped."""
        return self.core.sequence(text, self.rules_for(language))

    def rules_for(self, language: str) -> str:
        """The language by whose rules a text is treated that is in the given language."""
        policy = self.policy
        return policy.language if policy.language != "auto" else language or policy.default_language


def _language_model() -> _core.LanguageModel | None:
    from indlet.text.langid import model  # most texts do not need it

    return model()


def stored_row(stored: Stored) -> _core.StoredRow:
    return (
        stored.identifier, stored.length, stored.language, stored.metadata, stored.vector, stored.positions,
    )  # fmt: skip


def _with_terms(stored: Stored, made: _core.Described) -> Stored:
    vector, length, positions, language, fields = made
    return stored._replace(
        vector=vector, length=length, positions=positions, language=language, fields=fields
    )


def detect(text: str, stated: str = "") -> str:
    """The ISO 639-1 code of a text's language; empty where the text does not tell, or where it leaves a doubt
    and tells nothing against the language that is stated.
    """
    return _detector().core.detect(text, stated)


def _detector() -> Analyzer:
    global _shared
    _shared = _shared or Analyzer(Policy())
    return _shared


_shared: Analyzer | None = None


def count_vector(counts: Mapping[str, int], policy: Policy, language: str, length: int) -> TermVector:
    """A vector of frequencies, pruned if the policy says so."""
    if policy.prune is not None:
        kept = _core.most_telling(list(counts.items()), policy.prune)
        counts = {term: counts[term] for term in kept}
    return TermVector(pack(counts), length, None, language)


def place_vector(
    places: Mapping[str, Sequence[int]], policy: Policy, language: str, length: int
) -> TermVector:
    """The same with positions."""
    if policy.prune is not None:
        kept = _core.most_telling([(term, len(found)) for term, found in places.items()], policy.prune)
        places = {term: places[term] for term in kept}
    return TermVector.of_positions(places, length, language)
