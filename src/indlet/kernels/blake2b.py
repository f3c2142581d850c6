"""The hash function BLAKE2b (RFC 7693). `hashlib.blake2b` is the plain twin."""

from __future__ import annotations

import numpy as np

from indlet.kernels.arrays import Bytes, Hashes, Int, Numbers
from indlet.kernels.codec import word
from indlet.kernels.jit import kernel, part

# Where the words of a block go in each round, and what it starts from.
SIGMA = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    np.int64,
)
IV = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
STATE = 40  # words that it works in: the hash, the state, a block


@part
def _mix(s: Hashes, a: Int, b: Int, c: Int, d: Int, x: np.uint64, y: np.uint64) -> None:
    s[a] += s[b] + x
    v = s[d] ^ s[a]
    s[d] = v >> np.uint64(32) | v << np.uint64(32)
    s[c] += s[d]
    v = s[b] ^ s[c]
    s[b] = v >> np.uint64(24) | v << np.uint64(40)
    s[a] += s[b] + y
    v = s[d] ^ s[a]
    s[d] = v >> np.uint64(16) | v << np.uint64(48)
    s[c] += s[d]
    v = s[b] ^ s[c]
    s[b] = v >> np.uint64(63) | v << np.uint64(1)


@kernel
def digest(data: Bytes, size: Int, length: Int, sigma: Numbers, iv: Hashes, s: Hashes) -> np.uint64:
    """The BLAKE2b hash of data[:size], of eight bytes or less; `s` has room for STATE words."""
    for i in range(8):
        s[i] = iv[i]
    s[0] ^= np.uint64(0x01010000 | length)
    at = np.int64(0)
    while at == 0 or at < size:
        last = at + 128 >= size
        for i in range(16):
            left = size - at - 8 * i
            value = word(data, at + 8 * i) if left > 0 else np.uint64(0)
            if left > 0 and left < 8:
                value &= (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
            s[24 + i] = value
        for i in range(8):
            s[8 + i] = s[i]
            s[16 + i] = iv[i]
        s[20] ^= np.uint64(size if last else at + 128)
        if last:
            s[22] = ~s[22]
        for r in range(12):
            m = r % 10
            for i in range(4):
                x, y = s[24 + sigma[m, 2 * i]], s[24 + sigma[m, 2 * i + 1]]
                _mix(s, 8 + i, 12 + i, 16 + i, 20 + i, x, y)
            for i in range(4):
                x, y = s[24 + sigma[m, 8 + 2 * i]], s[24 + sigma[m, 9 + 2 * i]]
                _mix(s, 8 + i, 12 + (i + 1) % 4, 16 + (i + 2) % 4, 20 + (i + 3) % 4, x, y)
        for i in range(8):
            s[i] ^= s[8 + i] ^ s[16 + i]
        at += 128
    return np.uint64(s[0])
