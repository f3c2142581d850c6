"""The arrays that kernels take and give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Small = NDArray[np.uint32]  # numbers of documents, frequencies, lengths
Places = NDArray[np.int64] | NDArray[np.uint32]
Hashes = NDArray[np.uint64]
Bits = NDArray[np.uint64]  # a flag for each document, 64 in a number, from the lowest bit up
Floats = NDArray[np.float64]
Int = int | np.int64
