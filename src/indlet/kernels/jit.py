"""The decorator under which every kernel is compiled.

Machine code is cached beside the package, or in the user's cache folder where the package is read-only (numba
looks for both). Where neither can be written the kernels still work: each process then compiles its own.
`nogil` lets searches in threads run side by side. No `fastmath`: scores must be equal bit for bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
T = TypeVar("T")

# Kernels hold parts of each other, but numba asks only whether a kernel's own file has changed: the name
# under which its code is cached therefore tells the state of all. All compiled code is in this folder and
# imports nothing else but the model (tests/house/test_imports.py), so no file can be forgotten.
_HERE: Final = Path(__file__).parent
_STATE: Final = zlib.crc32(
    b"".join(path.read_bytes() for path in (_HERE.parent / "model.py", *sorted(_HERE.glob("*.py"))))
)


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    function.__qualname__ = f"{function.__name__}-{_STATE:08x}"
    try:
        compiled: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        compiled = numba.njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]


def part(function: Callable[P, T]) -> Callable[P, T]:
    """A kernel's part, which becomes one with its callers: a call would cost more than what it does."""
    compiled: Any = numba.njit(nogil=True, forceinline=True)(function)
    return compiled  # type: ignore[no-any-return]
