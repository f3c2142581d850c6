"""How the parts of a query are combined: all of them, any of them, and stop words among them.

Records in a language that drops a token as a stop word were indexed without it. Among parts that must all be
there, the token is not asked of these records, as long as another part is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from indlet.service.index import expression as e


class Forms(NamedTuple):
    """What a token becomes: its distinct terms under the frequent languages, which of these drop it, and the
    terms that it has in other languages, which find records in these alone."""

    terms: list[str]
    dropped: list[str]
    bound: Mapping[str, Sequence[str]] = {}

    @property
    def every(self) -> list[str]:
        return [*self.terms, *self.bound]

    @property
    def parts(self) -> list[e.Expression]:
        return [*map(e.Term, self.terms), *(bound(e.Term(t), names) for t, names in self.bound.items())]


def kept(parts: Iterable[e.Expression | None]) -> list[e.Expression]:
    return [part for part in parts if part is not None]


def one_of(forms: Forms) -> e.Expression:
    return e.Or(tuple(forms.parts), tuple(forms.dropped)) if forms.dropped else any_of(forms.parts)


def bound(part: e.Expression, languages: Sequence[str]) -> e.Expression:
    """What a part finds among the records in these languages."""
    return e.And((part, in_languages(languages)))


def asked_of_all(
    required: Sequence[e.Expression], besides: Sequence[e.Expression] = ()
) -> list[e.Expression]:
    """The required parts: a token is not asked of records in a language that drops it, if another part is."""
    required = _flat(required)
    every = dropping_all((*required, *besides))
    return [
        e.Or((*part.parts, *in_languages(left).parts), tuple(every))
        if isinstance(part, e.Or) and (left := [name for name in part.dropped if name not in every])
        else part
        for part in required
    ]


def dropping_all(parts: Sequence[e.Expression]) -> list[str]:
    """The languages that drop all parts as stop words; what is excluded is nothing that is asked."""
    drops = [
        part.dropped if isinstance(part, e.Or) else () for part in _flat(parts) if not isinstance(part, e.Not)
    ]
    return [name for name in dict.fromkeys(chain(*drops)) if all(name in names for names in drops)]


def in_languages(languages: Sequence[str]) -> e.Or:
    return e.Or(tuple(e.Filter("language", name) for name in languages))


def closed(parts: Sequence[e.Expression]) -> e.Expression | None:
    """All parts, as what they find alone: what stands around them changes nothing of it."""
    return all_of([_plain(part) for part in _flat(parts)])


def _plain(part: e.Expression) -> e.Expression:
    """A part as the index knows it."""
    if isinstance(part, e.Not):
        return e.Not(_plain(part.part))
    return e.Or(part.parts) if isinstance(part, e.Or) else part


def _flat(parts: Iterable[e.Expression]) -> list[e.Expression]:
    return [leaf for part in parts for leaf in (part.parts if isinstance(part, e.And) else (part,))]


def all_of(parts: Sequence[e.Expression]) -> e.Expression | None:
    flat = _flat(parts)
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else e.And(tuple(flat))


def any_of(parts: Sequence[e.Expression]) -> e.Expression:
    """One of the parts; terms that are asked for twice become one of twice the weight."""
    weights: dict[str, float] = {}
    others: list[e.Expression] = []
    for part in parts:
        for leaf in part.parts if isinstance(part, e.Or) else (part,):
            if isinstance(leaf, e.Term):
                weights[leaf.term] = weights.get(leaf.term, 0.0) + leaf.weight
            else:
                others.append(leaf)
    flat = [*(e.Term(term, weight) for term, weight in weights.items()), *others]
    return flat[0] if len(flat) == 1 else e.Or(tuple(flat))
