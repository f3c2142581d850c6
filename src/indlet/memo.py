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


class _Memo(dict[Sized, T]):
    """What a function made of values. A look-up is one of a dictionary; a full one begins anew."""

    def __init__(self, function: Callable[[Sized], T], most: int) -> None:
        self._function, self._most = function, most

    def __missing__(self, value: Sized) -> T:
        made = self._function(value)
        if len(value) <= SHORT:
            if len(self) >= self._most:
                self.clear()
            self[value] = made
        return made


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function of a string or of bytes (its last argument) that remembers so many short ones."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        plain: Callable[..., T] = function
        if function.__code__.co_argcount == 1:  # called for every value of every record
            return cast("Callable[P, T]", _Memo(plain, most).__getitem__)
        known: Callable[..., T] = lru_cache(maxsize=most)(function)

        @wraps(function)
        def asked(*arguments: Sized) -> T:
            return known(*arguments) if len(arguments[-1]) <= SHORT else plain(*arguments)

        return cast("Callable[P, T]", asked)

    return decorated
