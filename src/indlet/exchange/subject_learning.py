"""The subjects of this node's own records, for records of others that have none in our scheme."""

from __future__ import annotations

from collections import deque
from typing import Final

import orjson

from indlet.formats.subjects import SubjectClassifier
from indlet.store import Store
from indlet.text import Analyzer

_SAMPLE: Final = 20_000  # records that subjects are learned from


def learned_subjects(store: Store, analyzer: Analyzer) -> SubjectClassifier:
    """The subjects of our own records, learned from their terms: of the latest, where there are many."""
    kept = deque[tuple[dict[str, int], list[str]]](maxlen=_SAMPLE)
    with store.read() as view:
        ours = {origin.id for origin in view.origins() if origin.kind not in ("source", "write")}
        for stored in view.changes(parts=("metadata", "vector")):
            if stored.deleted or stored.origin not in ours:
                continue
            if codes := orjson.loads(stored.metadata).get("subject"):
                kept.append((analyzer.frequencies(stored), codes))
    classifier = SubjectClassifier()
    classifier.learn(kept)
    return classifier
