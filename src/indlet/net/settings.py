"""How sources are harvested, and a source's URL without its credentials.

Part of settings.py, in a file of its own: a small harvest takes less time than loading all settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

MB = 1024 * 1024
GB = 1024 * MB


@dataclass(frozen=True, slots=True)
class Harvest:
    """How sources are harvested."""

    every: str = "1d"
    reconcile: str = "7d"
    at_once: int = 8
    delay_seconds: float = 0.0
    timeout_seconds: float = 20.0
    stall_seconds: float = 25.0
    retries: int = 6
    backoff_seconds: float = 0.5
    backoff_limit_seconds: float = 300.0
    retry_after_limit_seconds: float = 600.0
    overlap_seconds: int = 2
    window: str = "365d"  # length of the date windows of historical runs
    withhold_share: float = 0.2  # more deletions in one run than this share of a source …
    withhold_records: int = 50  # … and than so many wait for an operator
    response_bytes: int = 256 * MB
    pages: int = 1_000_000
    from_email: str = ""
    user_agent: str = ""  # how requests name this harvester; empty: "indlet/VERSION"
    allow_private: bool = True  # may sources and redirects lead to private networks?
    proxy: str = ""  # HTTP proxy for all requests; the environment's HTTP_PROXY is not used
    disk_bytes: int = 100 * GB  # what the records of one source may take in the store
    fetch_bytes: int = 64 * MB
    compress_loopback: bool = False  # compress also what does not leave this machine


def without_credentials(url: str) -> tuple[str, str, str]:
    """A URL without user and password, and these."""
    scheme, separator, rest = url.partition("://")
    end = min((rest.find(sign) for sign in "/?#" if sign in rest), default=len(rest))
    secret, sign, host = rest[:end].rpartition("@")
    if not separator or not sign:
        return url, "", ""
    user, _, password = secret.partition(":")
    return f"{scheme}://{host}{rest[end:]}", unquote(user), unquote(password)
