"""Content codings: what the requester accepts, and the bytes so coded."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from typing import Final

import brotli  # type: ignore[import-untyped]
import zstandard

from indlet.errors import SettingsError

# Levels were chosen on 500 generated records with tf_compact, 1.4 MB: zstd 3 makes 631 bytes of a record
# in 5.6 ms, zstd 5 605 in 11.7; brotli 4 598 in 18, brotli 5 573 in 31; gzip 4 689 in 17, gzip 6 651 in 49.

# Smaller bodies cost more in headers and time than they save.
SMALLEST: Final = 512


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(body)


def _brotli(body: bytes) -> bytes:
    return bytes(brotli.compress(body, quality=4, lgwin=22))


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=4, mtime=0)


CODERS: Final[dict[str, Callable[[bytes], bytes]]] = {"zstd": _zstd, "br": _brotli, "gzip": _gzip}


def checked(codings: Iterable[str]) -> tuple[str, ...]:
    """The codings in the order of preference, if all are known."""
    chosen = tuple(codings)
    for coding in chosen:
        if coding not in CODERS:
            raise SettingsError(
                f"serve.compression: {coding!r} is not known; choose from {', '.join(CODERS)}"
            )
    return chosen


def negotiated(accept: str | None, offered: Iterable[str]) -> str:
    """The coding to use: the requester's best, ours where it is indifferent; "identity" if in doubt.

    Without the header nothing is coded (OAI-PMH 2.0, section 3.1.3).
    """
    if not accept:
        return "identity"
    weights = dict(_weights(accept))
    anything = weights.get("*", 0.0)
    # x-gzip is gzip's older name (RFC 9110, section 8.4.1.3).
    if "x-gzip" in weights:
        weights.setdefault("gzip", weights["x-gzip"])
    best = max(
        ((weights.get(coding, anything), -place, coding) for place, coding in enumerate(offered)),
        default=None,
    )
    # A plain body is always acceptable, and wanted where it is weighed above the coded ones.
    if best is None or best[0] <= 0 or best[0] < weights.get("identity", 0.0):
        return "identity"
    return best[2]


def _weights(accept: str) -> Iterable[tuple[str, float]]:
    for item in accept.split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = min(max(float(parameter[2:]), 0.0), 1.0)
                except ValueError:
                    weight = 0.0
        if name:
            yield name, weight
