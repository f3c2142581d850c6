"""A record's date as an index sorts and filters by it: a number, yyyymmdd (`core/src/dates.rs`)."""

from __future__ import annotations

from indlet import _core
from indlet.model import Metadata


def date_number(metadata: Metadata) -> int:
    """The date of the earliest year, with 00 for what it leaves open; 0 where there is none."""
    return _core.date_number(metadata.get("date", ()))
