"""What can go wrong with a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Trouble = Literal[
    "unreachable",  # no connection
    "silent",  # no connection, no byte, or next to none for too long
    "interrupted",  # reset or cut off
    "later",  # 429 or 503: the remote asks for time
    "broken",  # another 5xx, or a body that cannot be used
    "large",  # more than we take: the same again would be no smaller
    "unsuitable",  # 400, 413, 414, 422: not like this
    "refused",  # 401, 403, 404 …
    "token",  # badResumptionToken
    "argument",  # badArgument
    "nothing",  # noRecordsMatch
    "fatal",  # another OAI-PMH error
]


@dataclass(frozen=True, slots=True)
class Failed:
    """A request brought no page."""

    trouble: Trouble
    reason: str = ""
    retry_after: float | None = None
    spellings: int = 1  # in how many ways the token that was sent can be written
    response_date: str = ""
