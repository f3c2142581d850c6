"""What PostgreSQL and its driver raise, as errors of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from indlet.errors import StoreError, StoreUnavailable

BUSY_SECONDS = 60
_AGAIN = "what had been committed is there; run again"
# SQLSTATE, or the class that its first two characters are -> what to say and to do.
_UNAVAILABLE = {
    "08": f"the connection was lost; {_AGAIN}",
    "57P": f"the server was stopped or restarted; {_AGAIN}",
    "53300": "has no room for more connections; raise max_connections, or run fewer processes",
    "40": f"another transaction or the recovery of a standby was in the way; {_AGAIN}",
    "25006": "takes no changes now, it is a standby or read-only; name the primary in [store] url",
    "55P03": f"another process kept it locked for {BUSY_SECONDS} s; stop that one and retry",
}
_REFUSED = {
    "53100": "the server's disk is full; nothing was lost, free some room and run again",
    "53200": "the server has no memory left; nothing was lost, give it more and run again",
    "54000": "an identifier or a path is too long for an index of PostgreSQL, which takes some 2,700 bytes; "
    "leave that record out, or keep the store in SQLite",
    "42501": "the role of [store] url may not do that; grant it the right, or make it the schema's owner",
    "XX001": "the server found damaged data; restore it from a backup",
    "XX002": "the server found a damaged index; REINDEX, or restore from a backup",
}


@contextlib.contextmanager
def explain_errors(place: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as e:
        if (told := ours(e, place)) is None:
            raise
        raise told from e


def ours(error: psycopg.Error, place: str) -> StoreError | None:
    """The error of ours that says this; None for what only a fault of the program can cause."""
    state = error.sqlstate or ""
    said = str(error).strip().partition("\n")[0]
    for kind, table in ((StoreUnavailable, _UNAVAILABLE), (StoreError, _REFUSED)):
        for length in (5, 3, 2):
            if state[:length] in table:
                return kind(f"{place}: {table[state[:length]]} ({said})")
    if isinstance(error, psycopg.IntegrityError | psycopg.ProgrammingError | psycopg.DataError):
        return None
    if not state:  # there was no server to give one
        return StoreUnavailable(f"{place}: cannot be reached: {said}; start it, or correct [store] url")
    return StoreError(f"{place}: {said}")
