"""What was made of a value, remembered: values come back, so most are looked up.

Long ones do not come back, and a hostile source can send more of them than memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar, cast

SHORT: Final = 200  # characters or bytes

P = ParamSpec("P")
T = TypeVar("T")


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function of a string or of bytes (its last argument) that remembers so many short ones."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        known: Callable[..., T] = lru_cache(maxsize=most)(function)
        plain: Callable[..., T] = function

        # Called for every value of every record: without a list of arguments where there is one.
        @wraps(function)
        def about(value: Sized) -> T:
            return known(value) if len(value) <= SHORT else plain(value)

        @wraps(function)
        def asked(*arguments: Sized) -> T:
            return known(*arguments) if len(arguments[-1]) <= SHORT else plain(*arguments)

        return cast("Callable[P, T]", about if function.__code__.co_argcount == 1 else asked)

    return decorated
