"""The decorator under which every kernel is compiled.

Machine code is cached beside the package, or in the user's cache folder where the package is read-only (numba
looks for both). Where neither can be written the kernels still work: each process then compiles its own.
`nogil` lets searches in threads run side by side. No `fastmath`: scores must be equal bit for bit. Only
kernels that make arrays count references: where a kernel calls another for each document, to count those to
its arrays took a fifth of the time.
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
    """A function as machine code; it cannot make arrays."""
    return _compiled(function, counts=False)


def allocating_kernel(function: Callable[P, T]) -> Callable[P, T]:
    """A kernel that can make arrays."""
    return _compiled(function, counts=True)


def _compiled(function: Callable[P, T], *, counts: bool) -> Callable[P, T]:
    function.__qualname__ = f"{function.__name__}-{state()}"
    try:
        compiled = _translated(function, cache=True, _nrt=counts)
    except RuntimeError:  # "cannot cache function: no locator available"
        return _translated(function, _nrt=counts)  # type: ignore[no-any-return]
    _share(compiled._cache)
    return compiled  # type: ignore[no-any-return]


def _translated(function: Callable[P, T], **options: bool) -> Any:
    return numba.njit(nogil=True, **options)(function)  # type: ignore[call-overload]


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
    return _translated(function, forceinline=True, _nrt=False)  # type: ignore[no-any-return]
