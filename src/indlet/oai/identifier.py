"""Names that are valid whatever a path holds: oai-identifiers and setSpecs. Each means one thing only."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from indlet.errors import SettingsError
from indlet.settings import Settings

# oai-identifier.xsd: a domain name with at least one dot, each label starting with a letter.
_REPOSITORY = re.compile(r"[a-zA-Z][a-zA-Z0-9\-]*(\.[a-zA-Z][a-zA-Z0-9\-]*)+")
_LABEL = re.compile(r"[a-z][a-z0-9\-]*")
LOCAL: Final = "localhost.localdomain"

# Characters of a path that stay: legal in an oai-identifier, and harmless in a query string that a client
# forgot to encode. Everything else becomes %XX of its UTF-8 bytes.
_PATH_SAFE: Final = "/!*'(),:@"
_SET_KEPT = re.compile(rb"[A-Za-z0-9\-_.~*'()]")


def repository_identifier(settings: Settings) -> str:
    """The domain part of this node's identifiers: as configured, else from the public root's host.

    A host without a domain becomes one below `localdomain`, because the form asks for a dot. `LOCAL` says
    that nothing is configured: see `provider/identity.py`.
    """
    root = _public_root(settings.base_url())
    if stated := settings.node.repository:
        if not _REPOSITORY.fullmatch(stated):
            raise SettingsError(
                f"node.repository {stated!r} is no domain name with a dot; use one like 'library.example.org'"
            )
        return stated
    host = (root.hostname or "").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        if address.is_loopback or address.is_unspecified:
            return LOCAL
        return f"ip-{re.sub(r'[.:]', '-', address.exploded)}.localdomain"
    if host in ("", "localhost"):
        return LOCAL
    if not host.isascii():
        host = host.encode("idna").decode()
    labels = [part if _LABEL.fullmatch(part) else f"x{part}" for part in host.split(".") if part]
    return ".".join(labels) if len(labels) > 1 else f"{labels[0]}.localdomain"


def _public_root(url: str) -> SplitResult:
    with contextlib.suppress(ValueError):
        root = urlsplit(url)
        if root.scheme in ("http", "https") and root.hostname and not (root.query or root.fragment):
            return root
    raise SettingsError(
        f"the base URL {url!r} cannot be a node's public root; "
        "use one like 'https://library.example.org' or 'https://example.org/library'"
    )


def identifier(repository: str, hierarchy: str, path: str, key: str = "") -> str:
    """The identifier of a resource at a path below a hierarchy; `key` names one document among several there.

    `;` stands only before a key, `/` only between the parts of a path: no two resources share a name.
    """
    local = f"{quote(_bytes(hierarchy), safe='')}/{quote(_bytes(path), safe=_PATH_SAFE)}"
    return f"oai:{repository}:{local}" + (f";{quote(_bytes(key), safe='')}" if key else "")


def encoded(name: str) -> str:
    """What an identifier of ours was before it was decoded once too often.

    Best effort: a `;` is taken for the one before a key.
    """
    local, mark, key = name.rpartition(";")
    if not mark:
        return quote(_bytes(name), safe=_PATH_SAFE)
    return f"{quote(_bytes(local), safe=_PATH_SAFE)};{quote(_bytes(key), safe='')}"


def set_spec(parts: Iterable[str]) -> str:
    """The setSpec of a folder: its names, outermost first, as a colon path.

    A setSpec knows no `%`: a byte that it cannot hold becomes `!` and two hexadecimal digits.
    """
    return ":".join(_set_part(part) for part in parts)


def set_name(spec: str) -> str:
    """The folder's own name that a setSpec ends with."""
    last = spec.rpartition(":")[2]
    return unquote(last.replace("%", "%25").replace("!", "%"), errors="replace") if last != "!" else ""


def _set_part(name: str) -> str:
    if not name:
        return "!"
    return "".join(chr(byte) if _SET_KEPT.match(bytes((byte,))) else f"!{byte:02X}" for byte in _bytes(name))


def _bytes(name: str) -> bytes:
    """UTF-8; a file name that is not Unicode (surrogate escapes) gives the bytes that it has on disk."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")
