"""Numbers in sentences."""

from __future__ import annotations


def amount(count: int, noun: str) -> str:
    """A number of something: "1 record", "2,000 records"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
