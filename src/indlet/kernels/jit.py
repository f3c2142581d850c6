"""The decorator under which every kernel is compiled.

Machine code is cached beside the package, or in the user's cache folder where the package is read-only (numba
looks for both). Where neither can be written the kernels still work: each process then compiles its own.
`nogil` lets searches in threads run side by side. No `fastmath`: scores must be equal bit for bit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

from indlet.kernels.state import alone, state

P = ParamSpec("P")
T = TypeVar("T")


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    function.__qualname__ = f"{function.__name__}-{state()}"
    try:
        compiled: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        compiled = numba.njit(nogil=True)(function)
    else:
        _share(compiled._cache)
    return compiled  # type: ignore[no-any-return]


def _share(cache: Any) -> None:
    """Processes that compile at the same time keep what each has made: numba numbers files by what it finds,
    and two would take one number. A full disk costs the next process its time, not this one its answer.
    """
    save = cache.save_overload

    def saved(*arguments: Any) -> None:
        with contextlib.suppress(OSError), alone(Path(cache.cache_path) / ".kernels.lock"):
            save(*arguments)

    cache.save_overload = saved


def part(function: Callable[P, T]) -> Callable[P, T]:
    """A kernel's part, which becomes one with its callers: a call would cost more than what it does."""
    compiled: Any = numba.njit(nogil=True, forceinline=True)(function)
    return compiled  # type: ignore[no-any-return]
