"""Where the file of a URL lies below a mirror's folder: never outside it, whatever the URL says."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

OWN: Final = ".indlet-mirror"  # our own folder in the mirror's
LONGEST: Final = 255  # bytes of a name, on nearly every file system
DEEPEST: Final = 100
INDEX: Final = "index.html"  # the file of a URL that ends in a slash, as wget calls it
_UNFIT = re.compile(rb"[\x00-\x1f\x7f/]")


def path_of(url: str, identifier: str = "", number: int = 0) -> str:
    """The relative path for a URL, by host and path; for a file without one, by its record's identifier."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "ftp") or not parts.hostname:
        digest = sha256(f"{identifier}\n{number}\n{url}".encode("utf-8", "replace")).hexdigest()[:16]
        name = quote(identifier.encode("utf-8", "replace"), safe="")[:200]
        return f"records/{name}-{digest}"
    host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    segments = [segment for segment in parts.path.split("/") if segment]
    if parts.path.endswith("/") or not segments:
        segments.append(INDEX)
    names = [_name(segment) for segment in segments]
    if parts.query:
        names[-1] = _fitting(f"{names[-1]}?{quote(parts.query, safe='=&%')}")
    if len(names) > DEEPEST:
        names = [sha256(parts.path.encode("utf-8", "replace")).hexdigest()]
    return "/".join((_name(quote(host, safe=":.-_")), *names))


@lru_cache(4096)  # hosts and folders come again and again
def _name(segment: str) -> str:
    """A segment's own name where a file can bear it; otherwise as it stands in the URL, made harmless."""
    raw = unquote_to_bytes(segment)
    if raw in (b"", b".", b"..") or _UNFIT.search(raw) or raw == OWN.encode():
        return _fitting("".join(f"%{byte:02X}" for byte in raw) if len(raw) < 80 else quote(raw, safe=""))
    return _fitting(os.fsdecode(raw))


def _fitting(name: str) -> str:
    raw = os.fsencode(name)
    if len(raw) <= LONGEST:
        return name
    return f"{os.fsencode(name)[:180].decode('utf-8', 'ignore')}-{sha256(raw).hexdigest()[:16]}"


def inside(folder: Path, path: str) -> Path:
    """The place below the folder; ValueError if it would lie elsewhere, by whatever links are there."""
    relative = Path(path)
    place = folder / relative
    root = folder.resolve()
    if relative.is_absolute() or ".." in relative.parts or not place.parent.resolve().is_relative_to(root):
        raise ValueError(f"{relative} leads out of {folder}")
    return place
