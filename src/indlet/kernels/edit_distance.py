"""Terms of a vocabulary near a misspelt word (`Searcher.near`)."""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Int, Numbers, Small
from indlet.kernels.jit import allocating_kernel


@allocating_kernel
def near(
    names: Bytes, bounds: Small, df: Numbers, word: Bytes, most: int, found: Numbers, distances: Numbers
) -> Int:
    """Fills in the terms that documents hold at most `most` edits from a word, and their distances, as far as
    there is room; gives how many there are.

    An edit puts in, takes out or changes a byte, or swaps two neighbours (optimal string alignment).
    """
    size = word.size
    width = size + 1
    rows = np.empty((3, width), np.int64)
    count = 0
    for t in range(bounds.size - 1):
        low = np.int64(bounds[t])
        length = np.int64(bounds[t + 1]) - low
        if df[t] == 0 or abs(length - size) > most:
            continue
        for j in range(width):
            rows[0, j] = j
        close = True
        for i in range(1, length + 1):
            here, above, before = i % 3, (i - 1) % 3, (i - 2) % 3
            rows[here, 0] = i
            least = i
            byte = names[low + i - 1]
            for j in range(1, width):
                cost = 0 if byte == word[j - 1] else 1
                value = min(rows[above, j] + 1, rows[here, j - 1] + 1, rows[above, j - 1] + cost)
                if i > 1 and j > 1 and byte == word[j - 2] and names[low + i - 2] == word[j - 1]:
                    value = min(value, rows[before, j - 2] + 1)
                rows[here, j] = value
                least = min(least, value)
            if least > most:
                close = False
                break
        if close and rows[length % 3, size] <= most:
            if count < found.size:
                found[count] = t
                distances[count] = rows[length % 3, size]
            count += 1
    return count
