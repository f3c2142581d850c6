"""UTC datestamps as they travel: `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`, compared and divided as such."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from indlet.memo import memoize

# Where a source does not tell its earliest datestamp, or a first page its date.
BEGINNING: Final = "1900-01-01"
END: Final = "2100-01-01"
_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|z|[+-]\d\d:?\d\d)?)?$"
)
_USUAL = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:\d\dZ)?")
# RFC 9110, section 5.6.7: the form that every server writes today.
_IMF_DATE = re.compile(
    r"[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"


def parse(value: str) -> datetime | None:
    """The moment that a datestamp names; days begin at midnight, and what has no zone is taken as UTC."""
    match = _FORM.match(value.strip())
    if match is None:
        return None
    year, month, day_, hour, minute, second, zone = match.groups()
    try:
        found = datetime(
            int(year),
            int(month),
            int(day_),
            int(hour or 0),
            int(minute or 0),
            min(int(second or 0), 59),
            tzinfo=UTC,
        )
        if zone and zone not in "Zz":
            sign = -1 if zone[0] == "-" else 1
            found -= sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    except (ValueError, OverflowError):
        return None
    return found


def well_formed(value: str) -> bool:
    """Whether a datestamp is written as the protocol wants it."""
    if usual := _USUAL.fullmatch(value):  # days come back
        return _is_day(usual[1])
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", value)) and parse(value) is not None


@memoize(4096)
def _is_day(value: str) -> bool:
    return parse(value) is not None


def timed(value: str) -> bool:
    """Whether a datestamp tells more than its day. Midnight is what becomes of a mere date."""
    return len(value) == 20 and value[10:] != "T00:00:00Z" and well_formed(value)


def write(moment: datetime, seconds: bool) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if seconds else "%Y-%m-%d").rjust(20 if seconds else 10, "0")


def like(value: str, seconds: bool) -> str:
    """The datestamp in the given granularity; itself where it cannot be read."""
    found = parse(value)
    return value if found is None else write(found, seconds)


def day(value: str) -> str:
    return value[:10]


def before(value: str, other: str) -> bool:
    """Whether both are datestamps, and one is before the other."""
    first, second = parse(value), parse(other)
    return first is not None and second is not None and first < second


def next_day(value: str) -> str:
    found = parse(value)
    try:
        return value if found is None else write(found + timedelta(days=1), False)
    except OverflowError:
        return value


def beside(value: str) -> tuple[str, str]:
    """The datestamps before and after one, in the same granularity; empty where there are none."""
    found, seconds = parse(value), len(value) > 10
    granule = timedelta(seconds=1) if seconds else timedelta(days=1)
    try:
        return (
            ("", "") if found is None else (write(found - granule, seconds), write(found + granule, seconds))
        )
    except OverflowError:
        return "", ""


def middle(since: str, until: str) -> tuple[str, str] | None:
    """The last granule of the earlier half and the first of the later one; None if there are not two."""
    first, last = parse(since), parse(until)
    if first is None or last is None or len(since) != len(until):
        return None
    seconds = len(since) > 10
    granule = timedelta(seconds=1) if seconds else timedelta(days=1)
    count = (last - first) // granule
    if count < 1:
        return None
    end = first + granule * ((count - 1) // 2)
    return write(end, seconds), write(end + granule, seconds)


def earlier(value: str, seconds: bool, overlap_seconds: float) -> str:
    """Where the next harvest begins: an overlap before the last one, and whole granules only."""
    found = parse(value)
    if found is None:
        return ""
    try:
        found -= timedelta(seconds=overlap_seconds if seconds else max(overlap_seconds, 86400))
    except OverflowError:  # a clock that was never set: 0001-01-01
        return ""
    return write(found, seconds)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header, which holds seconds or a date; None if it holds neither."""
    if not value:
        return None
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text[:20])
    moment = http_date(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def http_date(value: str | None) -> datetime | None:
    """The moment that an HTTP header such as Date names."""
    if found := _IMF_DATE.fullmatch(value or ""):
        day_, month, year, hour, minute, second = found.groups()
        with suppress(ValueError):
            number = _MONTHS.index(month) // 3 + 1
            return datetime(int(year), number, int(day_), int(hour), int(minute), int(second), tzinfo=UTC)
    from email.utils import parsedate_to_datetime  # takes longer to load than a page takes to come

    try:
        moment = parsedate_to_datetime(value or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
