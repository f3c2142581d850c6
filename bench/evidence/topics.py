"""Effectiveness topic by topic, which is what tests of significance need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import ir_measures
from bench.evidence.material import Judged

from indlet.service.search.evaluate import DEPTH, Named, matcher

RANKED: Final = ("bm25", "vsm", "lm-dirichlet", "lm-jm")
MEASURES: Final = ("MAP", "nDCG@10", "P@10", "R@100")
_KNOWN: Final = {
    "MAP": ir_measures.AP,
    "nDCG@10": ir_measures.nDCG @ 10,
    "P@10": ir_measures.P @ 10,
    "R@100": ir_measures.R @ 100,
}

Ranking = Sequence[Named]
# model -> measure -> topic -> value
ByTopic = dict[str, dict[str, dict[str, float]]]


def by_topic(models: Sequence[str], material: Judged, rank: Callable[[str, str, int], Ranking]) -> ByTopic:
    """Every measure of every model for every topic that has a relevant document."""
    relevant = {one.topic for one in material.judgements if one.grade > 0}
    asked = [topic for topic in material.topics if topic.id in relevant]
    truth = [
        ir_measures.Qrel(one.topic, one.document, one.grade)
        for one in material.judgements
        if one.topic in relevant
    ]
    name = matcher(frozenset(one.document for one in material.judgements))
    found: ByTopic = {}
    for model in models:
        run = [
            ir_measures.ScoredDoc(topic.id, name(record), record.score)
            for topic in asked
            for record in rank(model, topic.text, DEPTH)
        ]
        values: dict[str, dict[str, float]] = {
            label: dict.fromkeys((topic.id for topic in asked), 0.0) for label in _KNOWN
        }
        labels = {measure: label for label, measure in _KNOWN.items()}
        for metric in ir_measures.iter_calc(list(_KNOWN.values()), truth, run):
            values[labels[metric.measure]][metric.query_id] = float(metric.value)
        found[model] = values
    return found


def mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)
