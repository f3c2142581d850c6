"""Which of two copies of a record to keep, when nodes harvest each other: a pure decision.

The origin decides what is newer; arrival does not. The argument that nodes which decide like this come to
hold exactly what the origins hold is in docs/mesh.md; tests/service/harvest/test_mesh.py plays it at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from indlet.oai.names import FT_PATH, OAI_PATH
from indlet.oai.provenance import Version


class Taken(Enum):
    """What becomes of a copy that has come."""

    KEEP = "keep"
    EQUAL = "equal"  # we have this version
    OLDER = "older"  # we have a newer one
    ECHO = "echo"  # it is ours


class Form(NamedTuple):
    """How good a rendering of its origin's record a copy is; the better one is greater.

    `nearness` is 0 for the form that the origin keeps, less for a translation; `richness` is the format's.
    """

    nearness: int = 0
    richness: int = 0


ORIGINAL: Final = Form()


@dataclass(frozen=True, slots=True)
class Held:
    """A copy that is held already. `digest` tells whether two copies in one form say the same."""

    version: Version
    digest: bytes  # empty: deleted
    form: Form = ORIGINAL


def origin_key(url: str) -> str:
    """What tells repositories apart, however their base URLs are written: a node's two endpoints are one.

    A query is part of a base URL (`oai.php?repository=a`).
    """
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return url.strip()
    path = parts.path.rstrip("/")
    for ending in (FT_PATH, OAI_PATH):
        path = path.removesuffix(ending)
    path = path.replace(f"{FT_PATH}/", f"{OAI_PATH}/")  # a virtual repository
    query = f"?{parts.query}" if parts.query else ""
    return f"{(parts.hostname or '').lower()}{port}{path}{query}"


def direct(
    held: Held | None, datestamp: str, settled: bool, digest: bytes, form: Form = ORIGINAL
) -> tuple[Taken, Version]:
    """A record that its origin itself gives: always what counts, and its version.

    Of one version the better form is kept: the same state in another format is no change of the origin.
    """
    if held is None:
        return Taken.KEEP, Version(0, datestamp, settled)
    known, same = held.version, digest == held.digest
    if datestamp > known.datestamp:
        return Taken.KEEP, Version(known.epoch, datestamp, settled)
    if datestamp < known.datestamp:
        # The origin has gone back in time; a new epoch tells everybody else that this is its later word.
        return (Taken.EQUAL, known) if same else (Taken.KEEP, Version(known.epoch + 1, datestamp, settled))
    if settled and not known.settled:
        return Taken.KEEP, Version(known.epoch, datestamp, True, known.revision)
    if same:
        return Taken.EQUAL, known
    if form != held.form and digest and held.digest:
        return (Taken.KEEP if form > held.form else Taken.EQUAL), known
    # Within the second of its datestamp a record may change again; later, the origin forgot to date a change.
    revision = known.revision + known.settled
    return Taken.KEEP, Version(known.epoch, datestamp, known.settled, revision)


def passed_on(held: Held | None, version: Version, digest: bytes, form: Form = ORIGINAL) -> Taken:
    """A record that another node passes on: kept if its version is later than what is held.

    Copies of one version may be in several forms: the best of them is kept. Two states of one second may have
    one version, too. Their digests decide, so that all nodes choose alike until one of them has asked the
    origin again.
    """
    if held is None or version > held.version:
        return Taken.KEEP
    if version < held.version:
        return Taken.OLDER
    better = (bool(digest), form, digest) > (bool(held.digest), held.form, held.digest)
    return Taken.KEEP if better else Taken.EQUAL
