"""Datestamps: UTC, to the second or to the day, as the protocol writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

GRANULARITY = "YYYY-MM-DDThh:mm:ssZ"
_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Period(NamedTuple):
    """The seconds, first and last, that a datestamp stands for."""

    first: int
    last: int
    day: bool


@lru_cache(maxsize=8192)
def written(seconds: int) -> str:
    """`2024-05-01T12:30:00Z`."""
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def period(value: str) -> Period | None:
    """What a `from` or `until` argument means; None where it is no datestamp."""
    if not _FORM.fullmatch(value):
        return None
    day = len(value) == 10
    try:
        moment = datetime.fromisoformat(value + "T00:00:00Z" if day else value)
    except ValueError:
        return None
    first = (moment - _EPOCH) // timedelta(seconds=1)
    return Period(first, first + 86399 if day else first, day)
