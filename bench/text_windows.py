"""Documents cut out of real texts, as many as wanted: windows of Reuters-21578, Cranfield and CACM.

The texts lie below INDLET_DATA. Small words are left out and the others stemmed, as an index does. Windows
begin evenly spread over all texts, and overlap; their lengths are log-normal, their order is drawn.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path

import numpy as np
import Stemmer
from bench.evidence.material import reuters
from bench.generated import FREQUENT, SPREAD, Collection

TYPICAL = 4.2  # the logarithm of the median length


def _texts(data: Path) -> list[str]:
    found = [story.text for story in reuters(data / "reuters21578", 21_578, 1).stories]
    for name in ("cranfield", "cacm"):
        with gzip.open(data / name / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
            found += [f"{told['title']} {told['text']}" for told in map(json.loads, lines)]
    return found


def windows(data: Path, count: int, seed: int = 5) -> Collection:
    """So many windows, held as arrays."""
    words = " ".join(_texts(data)).lower()
    left_out = set(FREQUENT)
    kept = [word for word in re.findall(r"[a-z]+|[0-9]+", words) if word not in left_out]
    stems = Stemmer.Stemmer("porter").stemWords(kept)
    names, numbers = np.unique(np.array(stems), return_inverse=True)
    source = random.Random(seed)
    starts = [number * numbers.size // count for number in range(count)]
    source.shuffle(starts)
    cut = [numbers[at : at + max(5, int(source.lognormvariate(TYPICAL, SPREAD)))] for at in starts]
    owners = np.repeat(np.arange(count), [part.size for part in cut])
    pairs, frequencies = np.unique(owners * names.size + np.concatenate(cut), return_counts=True)
    ends = np.cumsum(np.bincount(pairs // names.size, minlength=count))
    return Collection(
        names.tolist(), (pairs % names.size).astype(np.int32), frequencies.astype(np.int32), ends
    )
