"""The decorator under which every kernel is compiled.

Machine code is cached beside the package, or in the user's cache folder where the package is read-only (numba
looks for both). Where neither can be written the kernels still work: each process then compiles its own.
`nogil` lets searches in threads run side by side. No `fastmath`: scores must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numba.core.errors

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    try:
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # "cannot cache function: no locator available"
        return numba.njit(nogil=True)(function)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """A kernel's part: compiled into its callers, never cached alone."""
    return numba.njit(nogil=True, inline="never")(function)  # type: ignore[no-any-return]
