"""Subjects and types that a record lacks, inferred from its terms: by a classifier that learned from records
that have them, or by a function of the operator's.

What is inferred is no part of a record. It is made on the way into the index, under elements of its own
(`inferred_subject`, `inferred_type`), and again for whoever looks at a record; the store, and with it /oai,
exports and other nodes, never have it. Off unless `index.infer` names elements. A classifier is learned when
the index is made anew; every tenth record is held back to tell how often it is right.
"""

from __future__ import annotations

import gzip
import importlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import orjson

from indlet.errors import SettingsError
from indlet.model import Metadata, Stored
from indlet.store import Audience, Store
from indlet.text import Analyzer

if TYPE_CHECKING:  # loaded where something is inferred
    from indlet.formats.subjects import SubjectClassifier
    from indlet.settings import IndexEngine

DIGEST, MODEL = "inference", "inference-model"  # under which the store keeps what was learned
_EVERYBODY: Final = (Audience.PUBLIC, Audience.FILTERED)
SAMPLE: Final = 20_000  # records that are learned from
_CODES: Final = 300  # that are learned, the most frequent ones
_HELD: Final = 10  # each so manieth is held back
_VALUES: Final = 5  # that are inferred of one record
_LONGEST: Final = 200  # characters of a value
_ODDS: Final = tuple(step / 20 for step in range(41))  # log odds per unit of text, from even on

# A record's metadata and the frequencies of its terms -> values of elements.
Infer = Callable[[Metadata, Mapping[str, int]], Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Learned:
    """What one element came to: records learned from, values told apart, and how often a held-back record's
    were right (precision) and found (recall), where values count whose log odds are above `least`."""

    records: int
    values: int
    precision: float
    recall: float
    least: float


@dataclass(frozen=True, slots=True)
class Inference:
    elements: tuple[str, ...]
    classifiers: Mapping[str, tuple[SubjectClassifier, float]]
    function: Infer | None = None

    def of(self, metadata: Metadata, frequencies: Mapping[str, int]) -> dict[str, list[str]]:
        """The values of each element that the metadata lack, under the element's name."""
        lacking = [name for name in self.elements if not metadata.get(name)]
        if not lacking:
            return {}
        if self.function is not None:
            found = _asked(self.function, metadata, frequencies)
        else:
            found = {
                name: self.classifiers[name][0].classify(frequencies, self.classifiers[name][1])
                for name in lacking
                if name in self.classifiers
            }
        # A record has one type, and any number of subjects.
        kept = {name: list(found.get(name, ()))[: 1 if name == "type" else _VALUES] for name in lacking}
        return {name: values for name, values in kept.items() if values}

    def marked(self, changes: Sequence[Stored], analyzer: Analyzer) -> list[Stored]:
        """Changes on their way into the index, with what is inferred of them under names of its own."""
        return [stored if stored.deleted else self._marked(stored, analyzer) for stored in changes]

    def _marked(self, stored: Stored, analyzer: Analyzer) -> Stored:
        metadata: dict[str, list[str]] = orjson.loads(stored.metadata or b"{}")
        if all(metadata.get(name) for name in self.elements):
            return stored
        found = self.of(metadata, analyzer.frequencies(stored))
        if not found:
            return stored
        more = {f"inferred_{name}": values for name, values in found.items()}
        return stored._replace(metadata=orjson.dumps(metadata | more))


def identity(store: Store, engine: IndexEngine) -> str:
    """What tells an inference from every other; empty where nothing is inferred."""
    if not engine.infer:
        return ""
    with store.read() as view:
        learned = engine.infer_function or str(view.meta(DIGEST) or "")
    return f"{' '.join(engine.infer)} {learned}"


def inference_of(store: Store, engine: IndexEngine) -> Inference | None:
    """What the settings ask to infer, by what was learned; None where nothing is asked for."""
    if not engine.infer:
        return None
    if engine.infer_function:
        return Inference(engine.infer, {}, _function(engine.infer_function))
    with store.read() as view:
        kept = view.meta(MODEL)
    return Inference(engine.infer, _classifiers(bytes(kept)) if kept else {})


def _classifier() -> type[SubjectClassifier]:
    from indlet.formats.subjects import SubjectClassifier

    return SubjectClassifier


@lru_cache(2)
def _classifiers(kept: bytes) -> dict[str, tuple[SubjectClassifier, float]]:
    new = _classifier()
    return {
        name: (new.from_json(form), least)
        for name, (form, least) in json.loads(gzip.decompress(kept)).items()
    }


@lru_cache(8)
def _function(name: str) -> Infer:
    module, _, function = name.partition(":")
    try:
        found: Infer = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as e:
        raise SettingsError(f"index.infer_function: {name!r} cannot be imported: {e}; install it") from e
    return found


def _asked(function: Infer, metadata: Metadata, frequencies: Mapping[str, int]) -> dict[str, list[str]]:
    """What the operator's function says; nothing where it fails, for one record must not stop an index."""
    try:
        said = function(metadata, frequencies)
        return {
            name: [value[:_LONGEST] for value in values if isinstance(value, str) and value.strip()]
            for name, values in said.items()
        }
    except Exception:
        logging.getLogger("indlet").warning("index.infer_function failed for a record", exc_info=True)
        return {}


def learn(store: Store, analyzer: Analyzer, engine: IndexEngine) -> dict[str, Learned]:
    """Learns, from records that everybody may see, what `index.infer` names; keeps it in the store."""
    if not engine.infer or engine.infer_function:
        return {}
    sample = _sample(store, analyzer, engine.infer)
    told, forms = {}, {}
    for name in engine.infer:
        coded = [(terms, codes[name]) for terms, codes in sample if codes[name]]
        known = {
            code for code, _ in Counter(code for _, codes in coded for code in set(codes)).most_common(_CODES)
        }
        coded = [(terms, [code for code in codes if code in known]) for terms, codes in coded]
        told[name] = _held_back(coded, one=name == "type")
        classifier = _classifier()()
        classifier.learn(coded)
        forms[name] = [classifier.to_json(), told[name].least]
    kept = gzip.compress(json.dumps(forms, sort_keys=True).encode(), 6, mtime=0)
    with store.write() as tx:
        tx.meta(MODEL, kept)
        tx.meta(DIGEST, blake2b(kept, digest_size=8).hexdigest())
    return told


def _sample(
    store: Store, analyzer: Analyzer, elements: Sequence[str]
) -> list[tuple[dict[str, int], dict[str, list[str]]]]:
    """The terms and values of at most `SAMPLE` records, spread over the store, without words that one has."""
    found: list[tuple[dict[str, int], dict[str, list[str]]]] = []
    spread: Counter[str] = Counter()
    with store.read() as view:
        public = {o.id for o in view.origins() if o.audience in _EVERYBODY}
        step = 1 + sum(view.totals().get(number, (0, 0))[0] for number in public) // SAMPLE
        for stored in view.changes(parts=("metadata", "vector")):
            if stored.deleted or stored.origin not in public or stored.id % step:
                continue
            metadata: dict[str, list[str]] = orjson.loads(stored.metadata or b"{}")
            codes = {
                name: [v for v in metadata.get(name, ()) if len(v) <= _LONGEST][:50] for name in elements
            }
            if any(codes.values()):
                found.append((analyzer.frequencies(stored), codes))
                spread.update(found[-1][0].keys())
    return [({t: f for t, f in terms.items() if spread[t] > 1}, codes) for terms, codes in found]


def _held_back(coded: Sequence[tuple[dict[str, int], list[str]]], one: bool) -> Learned:
    """How a classifier does on every tenth record, if the others teach it: at the odds where it does best.

    Best is by F½, which counts precision twice as much as recall: a wrong subject is worse than none.
    """
    classifier = _classifier()()
    classifier.learn(pair for number, pair in enumerate(coded) if number % _HELD)
    scored = [
        (classifier.scores(terms)[: 1 if one else _VALUES], set(codes)) for terms, codes in coded[::_HELD]
    ]
    wanted = sum(len(codes) for _, codes in scored)
    values = len({code for _, codes in coded for code in codes})
    best, found = 0.0, Learned(len(coded), values, 0.0, 0.0, _ODDS[0])
    for least in _ODDS:
        right = sum(score > least and code in codes for scores, codes in scored for code, score in scores)
        said = sum(score > least for scores, _ in scored for _, score in scores)
        f = 1.25 * right / (said + 0.25 * wanted) if right else 0.0
        if f > best:
            best, found = f, Learned(len(coded), values, right / said, right / wanted, least)
    return found
