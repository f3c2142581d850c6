"""The statistical model of py3langid, mapped into memory (Lui & Baldwin 2012, "langid.py: an off-the-shelf
language identification tool").

The model comes compressed, and takes half a second of a processor to unpack. It is unpacked once, into files
beside this module or in the user's cache folder, and mapped from there: only what a text touches is read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ARRAYS: Final = ("weights", "priors", "classes", "moves", "rows", "features")


class LanguageModel(NamedTuple):
    """Naive Bayes over byte sequences, which an automaton finds: from a state, by a byte, to the next one."""

    weights: NDArray[np.float32]  # of each feature, for each class
    priors: NDArray[np.float32]
    classes: NDArray[np.str_]
    moves: NDArray[np.uint32]
    rows: NDArray[np.int64]  # where the moves of a state begin
    features: NDArray[np.int64]  # that a state stands for, or -1


# The weights of the features that an automaton meets in texts, added up: a row for each text, by classes.
Weigh = Callable[[LanguageModel, Sequence[bytes]], NDArray[np.float32]]
# The language that a text most probably is in, and how probable that is.
Classified = tuple[str, float]


def weighed(model: LanguageModel, texts: Sequence[bytes]) -> NDArray[np.float32]:
    moves, rows, features = model.moves.data, model.rows.data, model.features.data
    out = np.zeros((len(texts), len(model.classes)), np.float32)
    for number, text in enumerate(texts):
        state, met = 0, Counter[int]()
        for byte in text:
            state = moves[rows[state] + byte]
            if features[state] >= 0:
                met[features[state]] += 1
        if met:
            counts = np.array(list(met.values()), np.float32)
            out[number] = np.log1p(counts) @ model.weights[list(met)]
    return out


def classify(text: str) -> Classified:
    return classify_all([text])[0]


def classify_all(texts: Sequence[str], by: Weigh = weighed) -> list[Classified]:
    """The language of each text."""
    known = model()
    octets = list(map(_prepared, texts))
    scores = by(known, octets)
    scores += np.where(scores.any(1, keepdims=True), known.priors, np.float32(0))
    # The softmax is calibrated across lengths by the root of the length.
    scores *= (1.0 / np.sqrt([[len(text) or 1] for text in octets])).astype(np.float32).reshape(-1, 1)
    np.exp(scores - scores.max(1, keepdims=True), out=scores)
    scores /= scores.sum(1, keepdims=True)
    for first, again in _aliases():
        scores[:, first] += scores[:, again]
        scores[:, again] = 0.0
    labels: list[str] = known.classes[scores.argmax(1)].tolist()
    return list(zip(labels, scores.max(1).tolist(), strict=True))


def _prepared(text: str) -> bytes:
    if text.isupper():
        text = text.lower()
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")


@cache
def _aliases() -> list[tuple[int, int]]:
    """Classes of one label: a language in two scripts."""
    first: dict[str, int] = {}
    labels = model().classes.tolist()
    return [(first[label], n) for n, label in enumerate(labels) if first.setdefault(label, n) != n]


@cache
def model() -> LanguageModel:
    from py3langid.langid import MODEL_DIR, MODEL_FILE

    source = MODEL_DIR / MODEL_FILE
    facts = source.stat()
    name = f"langid-32-{facts.st_size}-{facts.st_mtime_ns}"
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError):
            return _mapped(folder / name)
    parts = _unpacked(source)
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError):
            _keep(folder / name, parts)
            return _mapped(folder / name)
    return LanguageModel(*(parts[name] for name in _ARRAYS))


def _folders() -> tuple[Path, Path]:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(__file__).parent / "__pycache__", Path(home) / "indlet"


def _mapped(folder: Path) -> LanguageModel:
    return LanguageModel(
        *(np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)) for name in _ARRAYS)
    )


def _unpacked(source: Path) -> dict[str, NDArray[Any]]:
    from py3langid.modelio import load_model

    weights, priors, classes, moves, rows, features = load_model(source)
    arrays = (
        # Twice the bytes, of which a text touches few, to numbers that processors multiply as they stand.
        np.asarray(weights, np.float32), priors, np.array(classes), np.asarray(moves),
        np.asarray(rows, np.int64) << 8, np.array(features, np.int64),
    )  # fmt: skip
    return dict(zip(_ARRAYS, arrays, strict=True))


def _keep(folder: Path, parts: dict[str, NDArray[Any]]) -> None:
    """Writes the parts into a folder that is there as a whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, part in parts.items():
            np.save(beside / f"{name}.npy", part, allow_pickle=False)
        beside.rename(folder)  # fails if another process was first, which is as good
    finally:
        shutil.rmtree(beside, ignore_errors=True)
