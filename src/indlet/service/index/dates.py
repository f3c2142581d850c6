"""A record's date as an index sorts and filters by it: a number, yyyymmdd."""

from __future__ import annotations

import re

from indlet.formats.dublin import year
from indlet.memo import remembered
from indlet.model import Metadata

_YEAR_1000 = 1000_0000
_DATE = re.compile(r"\s*(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?(?!\d)")


@remembered(1 << 16)
def _date(value: str) -> int:
    if len(value) == 10 and value[4] == value[7] == "-":  # as nearly all are written
        digits = value.replace("-", "")
        if digits.isascii() and digits.isdigit() and len(digits) == 8:
            return int(digits) if digits[4:6] <= "12" and digits[6:] <= "31" else int(digits[:4]) * 10000
    found = _DATE.match(value)
    if not found:
        return 0
    years, month, day = (int(part or 0) for part in found.groups())
    return years * 10000 + (month * 100 + day if month <= 12 and day <= 31 else 0)


def date_number(metadata: Metadata) -> int:
    """The date of the earliest year as yyyymmdd, with 00 for what it leaves open; else a year in the words
    of a cataloguer; 0 where there is none.

    Of several dates the earliest is the work's own: DSpace states first when it came into the repository.
    But 0001-01-01 is what programs write where they know none.
    """
    values = metadata.get("date", ())
    found = [number for number in map(_date, values) if number]
    if not found:
        return min(filter(None, map(year, values)), default=0) * 10000  # "c. 1890", "[1887?]"
    if len(found) == 1:
        return found[0]
    credible = [number for number in found if number >= _YEAR_1000] or found
    earliest = min(credible) // 10000
    return next(number for number in credible if number // 10000 == earliest)
