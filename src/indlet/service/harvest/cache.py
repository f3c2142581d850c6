"""Records that go on to others, or came by way of others: each is kept once, in its newest version.

A record's origin is told by its provenance; one without comes from its origin itself. Whatever way it came,
it is kept under the source that is its origin, so that there is one copy of it, which `mesh` chooses.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

import orjson

from indlet.errors import StoreError
from indlet.formats.registry import richness
from indlet.memo import memoize
from indlet.model import JsonObject, Record, Stored
from indlet.oai import provenance
from indlet.oai.identifier import set_spec
from indlet.oai.provenance import FROM, Stated, Version, own_sets, version_of
from indlet.oai.read import Item
from indlet.service.harvest.mesh import Form, Held, Taken, direct, origin_key, passed_on
from indlet.service.harvest.negotiate import source_name
from indlet.settings import Access, Source
from indlet.store import Origin, Store, Transaction, View

Placed = tuple[str, str, Record]  # the name and URL of a record's origin, and what is kept of it
KEPT_AS: Final = "kept_as"  # of an origin whose records another one keeps: the name of that one
ADDRESS_LENGTH: Final = 2000  # characters of what a record calls its origin
_WAIT: Final = 60.0  # seconds for another run to commit the copies that it has


@dataclass(frozen=True, slots=True)
class RecordCopy:
    """A record as it came, and what decides whether it is kept. `stated`: None if its origin gave it."""

    record: Record
    datestamp: str
    settled: bool
    stated: Stated | None
    sets: tuple[str, ...]
    distance: int = 0  # from the form that the origin keeps; see `provenance.distance`

    @property
    def form(self) -> Form:
        return _form(self.record.raw, self.distance)

    @property
    def digest(self) -> bytes:
        record = self.record
        if record.deleted:
            return b""
        vector = record.vector.packed if record.vector is not None else b""
        return _digest(record.raw, vector, self.sets)


@dataclass(frozen=True, slots=True)
class Cache:
    """What one source's records are to this node. `own` is the key of this node's own base URL.

    `republish`: whether what the source passes on from others is served again here.
    """

    store: Store
    name: str
    url: str
    own: str
    republish: bool
    set_spec: str = ""  # by which the source is harvested
    access: Access = field(default_factory=Access)  # rules that hold for the source

    def has_left_set(self, item: Item) -> bool:
        """Whether a deletion says no more than that a record is in other sets now: it names these."""
        return item.deleted and bool(item.sets) and not in_set(self.set_spec, item.sets)

    def is_own(self, item: Item) -> bool:
        """Whether a record is the source's own, and not one that it passes on."""
        _, stated = provenance.read(item.about) if item.about else ((), None)
        return stated is None or origin_key(stated.origin) == origin_key(self.url)

    def copy(self, item: Item, record: Record, response_date: str) -> RecordCopy:
        _, stated = provenance.read(item.about) if item.about else ((), None)
        if stated is not None and not _is_address(stated.origin):
            stated = None  # as good as none: the record is this source's
        sets = stated.sets if stated is not None and stated.sets else item.sets
        # A date of days is settled when the day is over, one of seconds when the second is.
        settled = response_date[: len(item.datestamp)] > item.datestamp
        distance = provenance.distance(item.about) if item.about else 0
        return RecordCopy(record, item.datestamp, settled, stated, own_sets(sets), distance)

    @contextlib.contextmanager
    def placed(self, copies: Sequence[RecordCopy]) -> Iterator[list[Placed]]:
        """(name, URL, record) of the copies that are kept and of their origins, while nobody else decides."""
        with permit_to_decide(self.store), self.store.read() as view:
            yield list(self._decided(view, copies))

    def origin(self, tx: Transaction, view: View, name: str, url: str) -> int:
        """The number of a record's origin, which may be new here; its sets are named.

        A source of the settings stays as these say: what comes by way of others does not republish it. An
        origin that was only met is republished if one of the sources is by way of which its records come, and
        shown to those alone whom a restricted one of them is shown to.
        """
        known = view.origin("source", name)
        about: JsonObject | None = None
        rules: JsonObject = {"access": self.access.public()} if self.access.is_restricted else {}
        met = known.settings if known is not None else {"url": url, "learned_from": self.name}
        if known is None or ("learned_from" in met and rules and "access" not in met):
            republish = bool(met.get("republish")) or self.republish
            about = {**met, "republish": republish, "learned_from": self.name, **rules}
        elif self.republish and "learned_from" in known.settings and not known.settings.get("republish"):
            about = {**known.settings, "republish": True}
        origin = tx.origin("source", name, about)
        tx.name_set(origin, FROM, "by source")
        tx.name_set(origin, set_spec((FROM, name)), name)
        return origin

    def _decided(self, view: View, copies: Sequence[RecordCopy]) -> Iterator[Placed]:
        sources = view.origins("source")
        local = [origin.id for origin in view.origins() if origin.kind != "source"]
        seen: dict[tuple[str, str], Held] = {}  # by this very batch
        for copy in copies:
            name, url = self._origin(view, copy, sources)
            identifier = copy.record.identifier
            if not name or (local and view.get(identifier, local) is not None):
                continue  # an echo: it is ours
            row = next((origin.id for origin in sources if origin.name == name), None)
            held = seen.get((name, identifier)) or (held_copy(view, row, identifier) if row else None)
            if copy.stated is None and copy.record.deleted and held is None:
                passed = self._by_way_of_this(view, identifier, sources)
                if passed is not None:
                    name, url, held = passed
            taken, version = self._version(copy, held, name)
            if taken is Taken.KEEP:
                seen[name, identifier] = Held(version, copy.digest, copy.form)
                yield name, url, self._kept(copy, version, name)

    def _version(self, copy: RecordCopy, held: Held | None, name: str) -> tuple[Taken, Version]:
        if copy.stated is not None:
            version = copy.stated.version
            return passed_on(held, version, copy.digest, copy.form), version
        if name != self.name and held is not None:
            # A deletion that another node passes on without a version: it is later than what that node had.
            known = held.version
            return Taken.KEEP, replace(known, settled=True, revision=known.revision + 1)
        return direct(held, copy.datestamp, copy.settled, copy.digest, copy.form)

    def _origin(self, view: View, copy: RecordCopy, sources: Sequence[Origin]) -> tuple[str, str]:
        """The name and URL of the source that is a record's origin; empty where that is this node."""
        if copy.stated is None:
            return self.name, self.url
        key = origin_key(copy.stated.origin)
        if key == self.own:
            return "", ""
        if key == origin_key(self.url):
            return self.name, self.url
        same = [o for o in sources if origin_key(str(o.settings.get("url", ""))) == key]
        if len(same) > 1:  # sources with different sets: the one that has the record, or will have it
            held = view.get(copy.record.identifier, [o.id for o in same])
            same.sort(
                key=lambda o: (
                    KEPT_AS in o.settings,
                    held is None or o.id != held.origin,
                    not in_set(str(o.settings.get("set", "")), copy.sets),
                )
            )
        if same:
            return same[0].name, copy.stated.origin
        name = source_name(Source(url=copy.stated.origin))
        taken = {origin.name for origin in sources}
        return (f"{name}-{_short(key)}" if name in taken else name), copy.stated.origin

    def _by_way_of_this(
        self, view: View, identifier: str, sources: Sequence[Origin]
    ) -> tuple[str, str, Held] | None:
        """The copy of another origin's record that this source had passed on."""
        for origin in sources:
            stored = view.get(identifier, [origin.id]) if origin.name != self.name else None
            if stored is not None and not stored.deleted:
                properties = orjson.loads(stored.properties)
                if origin_key(properties.get("via", {}).get("url", "")) == origin_key(self.url):
                    return origin.name, str(origin.settings.get("url", "")), _held(stored)
        return None

    def _kept(self, copy: RecordCopy, version: Version, name: str) -> Record:
        record = copy.record
        sets = (*copy.sets, set_spec((FROM, name)))
        properties: JsonObject = {**record.properties, "version": list(_parts(version))}
        if copy.stated is not None or name != self.name:
            properties["via"] = {"url": self.url, "datestamp": copy.datestamp}
            properties["source_datestamp"] = version.datestamp
        if not record.deleted and (copy.distance or "via" in properties):
            properties["distance"] = copy.distance
        return replace(record, sets=tuple(dict.fromkeys(sets)), properties=properties)


def in_set(spec: str, sets: Sequence[str]) -> bool:
    """Whether a record of these sets is in the set that a source is harvested by (empty: everything)."""
    return not spec or any(one == spec or one.startswith(f"{spec}:") for one in sets)


@memoize(1 << 10)
def _is_address(origin: str) -> bool:
    """Whether what a record calls its origin can stand for a source."""
    try:
        return len(origin) <= ADDRESS_LENGTH and bool(source_name(Source(url=origin)))
    except ValueError:
        return False


def address_of(store: Store, name: str, said: str, asked: str) -> str:
    """The base URL that a source is known by: what it says in Identify, unless another source has that.

    Or it could speak in the name of that one, and delete what came by way of it.
    """
    with store.read() as view:
        others = [o for o in view.origins("source") if o.name != name and "removed" not in o.state]
    taken = {origin_key(str(o.settings.get("url", ""))) for o in others if "learned_from" not in o.settings}
    return said if said and origin_key(said) not in taken else asked


@contextlib.contextmanager
def permit_to_decide(store: Store) -> Iterator[None]:
    """The only permit to decide between copies: two runs may bring the same record."""
    until = time.monotonic() + _WAIT
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(store.job("copies"))
                break
            except StoreError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        yield


def held_copy(view: View, origin: int, identifier: str) -> Held | None:
    """The copy that is held of an origin's record. A deletion that waits for an operator counts as done."""
    if waiting := view.withheld(origin, [identifier]):
        return Held(version_of(waiting[0].detail.get("properties", {})), b"")
    stored = view.get(identifier, [origin])
    return _held(stored) if stored is not None else None


def _held(stored: Stored) -> Held:
    properties: JsonObject = orjson.loads(stored.properties or b"{}")
    return Held(version_of(properties), digest_of(stored), form_of(stored, properties))


def form_of(stored: Stored, properties: JsonObject) -> Form:
    """The form of a stored copy."""
    return _form(
        stored.raw, 0 if stored.deleted else provenance.distance_of(properties)
    )  # a deletion has none


def _form(raw: bytes, distance: int) -> Form:
    return Form(-distance, richness(raw))


def digest_of(stored: Stored) -> bytes:
    """What tells whether two copies of a record say the same."""
    if stored.deleted:
        return b""
    return _digest(stored.raw, stored.vector or b"", own_sets(stored.sets.split()))


def _digest(raw: bytes, vector: bytes, sets: Iterable[str]) -> bytes:
    return blake2b(b"\0".join((raw, vector, " ".join(sorted(sets)).encode())), digest_size=12).digest()


def _parts(version: Version) -> tuple[int, str, bool, int]:
    return version.epoch, version.datestamp, version.settled, version.revision


def _short(key: str) -> str:
    return blake2b(key.encode(), digest_size=3).hexdigest()
