"""What is said about records that are served again: where they came from, and which version they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from indlet.model import JsonObject, Stored
from indlet.oai import provenance
from indlet.oai.dates import written
from indlet.oai.provenance import Hop, Stated
from indlet.store import Origin

_REMOVED_HERE: Final = provenance.Version(0, "0001-01-01T00:00:00Z")


def republished(origin: Origin) -> bool:
    """Whether an origin's records, harvested from elsewhere, are served again here."""
    return origin.kind == "source" and bool(origin.settings.get("republish"))


class Provenance:
    """The about containers of records from other repositories; `extended` with their versions."""

    def __init__(self, origins: Iterable[Origin], extended: bool, own: str = "") -> None:
        """`own`: the base URL by which this node's own records are known; empty: nothing is said of them."""
        origins = list(origins)
        # The base URL that was harvested, which a source's settings may give in a shorter form.
        self._urls = {
            o.id: str(o.state.get("url") or o.settings.get("url", "")) for o in origins if republished(o)
        }
        self._extended = extended
        self._own = own
        self._ours = {o.id for o in origins if o.kind == "hierarchy"} if own and extended else set[int]()

    def __bool__(self) -> bool:
        return bool(self._urls or self._ours)

    def about(self, stored: Stored, namespace: str) -> bytes:
        """The containers of a record, each in its element; nothing for one of our own.

        OAI-PMH allows a deleted record none. The extension has its version, so that an old copy from
        elsewhere does not bring it back.
        """
        if stored.origin in self._ours:
            version = provenance.Version(0, written(stored.datestamp))
            stated = Stated(self._own, version, tuple(stored.sets.split()))
            return b"<about>%b</about>" % provenance.write_version(stated)
        url = self._urls.get(stored.origin)
        if url is None or (stored.deleted and not self._extended):
            return b""
        properties: JsonObject = json.loads(stored.properties or b"{}")
        parts = [] if stored.deleted else [provenance.write(_chain(stored, properties, url, namespace))]
        if self._extended:
            own = provenance.own_sets(stored.sets.split())
            version = provenance.version_of(properties)
            if stored.deleted and not version.datestamp:
                # Removed here with its source, which is not the origin's word: older than any copy elsewhere.
                version = _REMOVED_HERE
            stated = Stated(url, version, own)
            parts.append(provenance.write_version(stated))
        return b"".join(b"<about>%b</about>" % part for part in parts)


def _chain(stored: Stored, properties: JsonObject, url: str, namespace: str) -> list[Hop]:
    hops, _ = provenance.read(part.encode() for part in properties.get("about", ()))
    via = properties.get("via") or {"url": url, "datestamp": properties.get("source_datestamp", "")}
    # A record that is passed on is dated when it was harvested: its commit.
    last = Hop(via["url"], stored.identifier, via["datestamp"], namespace, written(stored.datestamp))
    return [last, *hops] if properties.get("via") else [last]
