"""What was made of a value, remembered: values come back, so most are looked up.

Long ones do not come back, and a hostile source can send more of them than memory holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

SHORT: Final = 200  # characters or bytes

P = ParamSpec("P")
T = TypeVar("T")


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function of a string or of bytes (its last argument) that remembers so many short ones."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        known: Callable[..., T] = lru_cache(maxsize=most)(function)

        @wraps(function)
        def asked(*arguments: P.args, **named: P.kwargs) -> T:
            value: Any = arguments[-1]
            return known(*arguments) if len(value) <= SHORT else function(*arguments, **named)

        return asked

    return decorated
