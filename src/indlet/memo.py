"""Memoization for functions of values that repeat, such as languages and names.

Long values rarely repeat, and a hostile source can send more of them than memory holds: they are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar, cast

SHORT: Final = 200  # characters or bytes

P = ParamSpec("P")
T = TypeVar("T")


class _Memo(dict[Sized, T]):
    """The results of a function by argument; emptied when it is full."""

    def __init__(self, function: Callable[[Sized], T], most: int) -> None:
        self._function, self._most = function, most

    def __missing__(self, value: Sized) -> T:
        made = self._function(value)
        if len(value) <= SHORT:
            if len(self) >= self._most:
                self.clear()
            self[value] = made
        return made


def memoize(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Memoize a function of a string or of bytes (its last argument) for at most `most` short values."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        plain: Callable[..., T] = function
        if function.__code__.co_argcount == 1:  # called for every value of every record
            return cast("Callable[P, T]", _Memo(plain, most).__getitem__)
        known: Callable[..., T] = lru_cache(maxsize=most)(function)

        @wraps(function)
        def look_up(*arguments: Sized) -> T:
            return known(*arguments) if len(arguments[-1]) <= SHORT else plain(*arguments)

        return cast("Callable[P, T]", look_up)

    return decorate
