"""What is said about records that are served again: where they came from, and which version they are."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from typing import Final

from indlet.model import JsonObject, Stored
from indlet.oai import provenance
from indlet.oai.dates import period, written
from indlet.oai.provenance import Hop, Stated
from indlet.store import Origin

_REMOVED_HERE: Final = provenance.Version(0, "0001-01-01T00:00:00Z")


def republished(origin: Origin) -> bool:
    """Whether an origin's records, harvested from elsewhere, are served again here."""
    return origin.kind == "source" and bool(origin.settings.get("republish"))


class Provenance:
    """The about containers of records from other repositories; `extended` with their versions."""

    def __init__(
        self, origins: Iterable[Origin], extended: bool, own: str = "", former: Container[int] = ()
    ) -> None:
        """`own`: the base URL by which this node's own records are known; empty: nothing is said of them.
        `former`: origins that were served again until now; others may have their records from elsewhere.
        """
        origins = list(origins)
        # The base URL that was harvested, which a source's settings may give in a shorter form.
        self._urls = {
            o.id: str(o.state.get("url") or o.settings.get("url", ""))
            for o in origins
            if republished(o) or (o.kind == "source" and o.id in former)
        }
        self.extended = extended
        self._own = own
        self._ours = {o.id for o in origins if o.kind == "hierarchy"} if own and extended else set[int]()

    def __bool__(self) -> bool:
        return bool(self._urls or self._ours)

    def about(self, stored: Stored, namespace: str, translated: bool = False) -> bytes:
        """The containers of a record, each in its element; nothing for one of our own in its own form.

        OAI-PMH allows a deleted record none. The extension has its version, so that an old copy from
        elsewhere does not bring it back.
        """
        url = self._urls.get(stored.origin)
        parts: list[bytes] = []
        if url is None:
            if stored.origin in self._ours:
                version = provenance.Version(0, written(stored.datestamp))
                stated = Stated(self._own, version, tuple(stored.sets.split()))
                parts.append(provenance.write_version(stated))
            if translated and self.extended:
                parts.append(provenance.write_translation(provenance.BY_ORIGIN))
            return b"".join(b"<about>%b</about>" % part for part in parts)
        if stored.deleted and not self.extended:
            return b""
        properties: JsonObject = json.loads(stored.properties or b"{}")
        distance = provenance.distance_of(properties) + provenance.ON_THE_WAY * translated
        if not stored.deleted:
            parts.append(provenance.write(_chain(stored, properties, url, namespace, translated)))
            if distance and self.extended:
                parts.append(provenance.write_translation(distance))
        if self.extended:
            own = provenance.own_sets(stored.sets.split())
            version = provenance.version_of(properties)
            if stored.deleted and not version.datestamp:
                # Removed here with its source, which is not the origin's word: older than any copy elsewhere.
                version = _REMOVED_HERE
            stated = Stated(url, version, own)
            parts.append(provenance.write_version(stated))
        return b"".join(b"<about>%b</about>" % part for part in parts)


def _chain(stored: Stored, properties: JsonObject, url: str, namespace: str, altered: bool) -> list[Hop]:
    hops, _ = provenance.read(part.encode() for part in properties.get("about", ()))
    via = properties.get("via") or {"url": url, "datestamp": properties.get("source_datestamp", "")}
    # A record that is passed on is dated when it was harvested: its commit.
    when = written(stored.datestamp)
    # Some sources (an entry of a feed without a date) give none that the schema allows.
    datestamp = via["datestamp"] if period(via["datestamp"]) else when
    last = Hop(via["url"], stored.identifier, datestamp, namespace, when, altered)
    return [last, *hops] if properties.get("via") else [last]
