"""A source's vectors under the service's policy.

Frequencies add up. From the words of a text the terms of any policy can be made without the text, so a
milder source loses nothing: the outcome is the one that the service's own analysis of the text would have
had. What a source has stemmed, dropped or cut away does not come back; such a vector is taken as it is,
and the loss is put into words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from indlet.limits import Budget
from indlet.model import TermVector
from indlet.text.analyse import Analyzer, count_vector, place_vector
from indlet.text.policy import Policy
from indlet.text.rules import stop_words


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How a source's policy stands to the service's.

    identical: its vectors serve as they are. milder: `renormalise` makes exactly ours of them. harsher:
    something is gone, and `losses` says what. foreign: we cannot tell how its terms were made.
    """

    kind: Literal["identical", "milder", "harsher", "foreign"]
    losses: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        return self.kind in ("identical", "milder")

    def __str__(self) -> str:
        return f"{self.kind}: {'; '.join(self.losses)}" if self.losses else self.kind


def loss(source: Policy | None, service: Policy) -> Reconciliation:
    """What is lost between a source's policy (None: unknown) and the service's."""
    if source is None:
        return Reconciliation("foreign", ("unknown policy: its terms are analysed as if they were words",))
    losses = list(_losses(source, service))
    if source.rules != service.rules:
        rules = f"other rules of analysis ({source.rules}, here {service.rules}): terms may differ"
        return Reconciliation("foreign", (rules, *losses))
    if losses:
        return Reconciliation("harsher", tuple(losses))
    return Reconciliation("identical" if source.digest == service.digest else "milder")


def renormalise(vector: TermVector, source: Policy | None, analyzer: Analyzer) -> TermVector:
    """The vector under the analyser's policy: exactly, where `loss` says so; as near as can be, elsewhere.

    Tokens that we drop leave the length. Terms of an unknown policy are analysed as if they were words. A
    pruned vector is not pruned again.
    """
    service = analyzer.policy
    if source is not None and source.digest == service.digest:
        return vector
    # Where a text began cannot be told from a vector: what came whole stays whole.
    if service.lead is not None or (source is not None and source.prune is not None):
        service = replace(service, prune=None, lead=None)
    before = vector.frequencies()
    if source is not None and _ruled(source) and source.stem:
        # Its stems stand; its stop words can still be told from them.
        language = vector.language or service.default_language
        stops = stop_words(language) if _ruled(service) and service.stop else frozenset[str]()
        become = {term: [] if term in stops else [term] for term in before}
    else:
        language = analyzer.rules_for(vector.language)
        become = dict(zip(before, analyzer.core.map_words(list(before), language), strict=True))
    if service.positions and vector.positions is not None:
        places: defaultdict[str, list[int]] = defaultdict(list)
        budget = Budget(len(vector.packed) + len(vector.positions))
        for term, found in vector.places().items():
            for made in become[term]:
                budget.charge(len(found))
                places[made] += found
        for found in places.values():
            found.sort()
        length = _length(vector, before.values(), map(len, places.values()))
        return place_vector(places, service, language, length)
    counts: defaultdict[str, int] = defaultdict(int)
    for term, count in before.items():
        for made in become[term]:
            counts[made] += count
    return count_vector(counts, service, language, _length(vector, before.values(), counts.values()))


def _length(vector: TermVector, before: Iterable[int], after: Iterable[int]) -> int:
    """The true length: what pruning took from the terms still counts, what was dropped now does not."""
    return max(vector.length - sum(before), 0) + sum(after)


def _ruled(policy: Policy) -> bool:
    """Whether a policy follows some language; without one it neither stops nor stems."""
    return policy.language != "" and (policy.stop or policy.stem)


def _losses(source: Policy, service: Policy) -> Iterator[str]:
    stopped, stemmed = _ruled(source) and source.stop, _ruled(source) and source.stem
    stops, stems = _ruled(service) and service.stop, _ruled(service) and service.stem
    if stemmed and not stems:
        yield "source already stemmed"
    elif stemmed and source.stemmer != service.stemmer:
        yield f"stemmed by other stemmers ({source.stemmer}, here {service.stemmer})"
    if stopped and not stops:
        yield "stop words dropped"
    elif (stopped or stemmed) and source.stops != service.stops:
        yield "stop words taken from other lists"
    if source.min_length > service.min_length or source.max_length < service.max_length:
        yield f"only tokens of {source.min_length} to {source.max_length} characters kept"
    elif stemmed and (source.min_length, source.max_length) != (service.min_length, service.max_length):
        yield "the lengths of tokens cannot be told from their stems"
    yield from _language_losses(source, service)
    alike = replace(source, positions=service.positions).digest == service.digest
    if source.lead is not None and not alike:
        yield f"summarised: the terms of the first {source.lead:.0%} of each text" + (
            "" if source.prune is None else f", and the {source.prune:.0%} most frequent"
        )
    elif source.prune is not None and not alike:
        yield f"pruned to {source.prune:.0%} of the terms"
    elif service.lead is not None and not alike:
        yield "not summarised as here: all its terms are kept"
    if service.positions and not source.positions:
        yield "positions missing"


def _language_losses(source: Policy, service: Policy) -> Iterator[str]:
    if service.language == "auto":
        if source.language == "":
            yield f"languages not told: all texts count as {service.default_language!r}"
        elif source.language == "auto" and source.default_language != service.default_language:
            yield f"texts that do not tell their language count as {source.default_language!r}"
        elif source.language != "auto":
            # Its vectors state that language for every text, so ours cannot be chosen either.
            yield f"all texts analysed as {source.language!r}, here each in its own language"
    elif source.language != service.language and _ruled(source):
        whose = "each document's language" if source.language == "auto" else repr(source.language)
        yield f"analysed by the rules of {whose}, here {service.language!r}"
