"""What the index takes from a record, and how a batch of records becomes a segment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from indlet.kernels import term_hash
from indlet.model import Stored
from indlet.process import quick_switches
from indlet.service.index.dates import date_number
from indlet.service.index.embedded.array_file import Array, ArrayFile
from indlet.service.index.embedded.manifest import SegmentFile
from indlet.service.index.embedded.positions import lay_out
from indlet.service.index.embedded.postings import Facets, Inverted, Postings, Words, cursors

LONGEST: Final = 200  # characters of a facet's value; longer ones are cut


def noted(stored: Stored) -> tuple[str, str, int]:
    """What facets are made of, see `Facets`: a record's types, its languages, its date."""
    metadata: dict[str, list[str]] = orjson.loads(stored.metadata) if stored.metadata else {}
    languages = "\0".join(metadata.get("language", ())) or stored.language
    return "\0".join(metadata.get("type", ())), languages, date_number(metadata)


def narrow(array: Array) -> Array:
    """The array in the smallest unsigned type of 1, 2 or 4 bytes that holds it."""
    most = int(array.max(initial=0))
    return array.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32)


# The rest (raw, properties …) is let go: it may be larger than all that the index holds.
_KEPT: Final = ("id", "origin", "identifier", "sets", "resource", "positions")
_kept = {name: itemgetter(Stored._fields.index(name)) for name in _KEPT}
_length, _vector, _fields = (
    itemgetter(Stored._fields.index(name)) for name in ("length", "vector", "fields")
)
ID, SEQ, DELETED = (itemgetter(Stored._fields.index(name)) for name in ("id", "seq", "deleted"))
# Documents that are counted together: many, for whoever counts aside waits for the interpreter once or twice.
_TOGETHER: Final = 10_000


@dataclass(slots=True)
class Batch:
    """Records on their way into a segment: the newest version of each.

    Kernels release the GIL: `side` counts the terms of records while others are read.
    """

    side: Executor
    records: dict[int, int] = field(default_factory=dict)  # by their ids, the places of their newest versions
    _columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _KEPT})
    _facets: Facets = field(default_factory=lambda: Facets([], [], []))
    _postings: Postings = field(default_factory=Postings)
    # What waits to be counted: vectors and lengths of documents, bytes of the former.
    _vectors: list[bytes] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)
    _bytes: int = 0
    _counting: Future[None] | None = None

    @property
    def weight(self) -> int:
        """Bytes, more or less, that this takes."""
        return self._postings.weight + self._bytes + 200 * len(self._facets.dates)

    @quick_switches()
    def take(self, changes: Sequence[Stored], words: Words | None = None) -> None:
        """Takes changes in their order: those of deleted records take them out. `words` are of them all."""
        which, place = None, len(self._facets.dates)
        if any(map(DELETED, changes)):
            which = np.flatnonzero([not stored.deleted for stored in changes])
            for stored in changes:
                if stored.deleted:
                    self.records.pop(stored.id, None)
                else:
                    self.records[stored.id] = place
                    place += 1
            changes = [stored for stored in changes if not stored.deleted]
        else:
            self.records.update(zip(map(ID, changes), count(place)))
        if not changes:
            return
        if words is not None:
            self._count()
        fields: Iterable[bytes] = map(_fields, changes)
        if words is not None:
            fields = words.fields if which is None else map(words.fields.__getitem__, which.tolist())
        vectors = [part or b"" for both in zip(map(_vector, changes), fields, strict=True) for part in both]
        self._vectors += vectors
        self._lengths.extend(map(_length, changes))
        self._bytes += sum(map(len, vectors))
        if words is not None or len(self._lengths) >= _TOGETHER:
            self._count(words, which)
        for name, column in self._columns.items():
            column.extend(map(_kept[name], changes))
        if words is None:
            types, languages, dates = self._facets
            for stored in changes:
                own_types, own_languages, date = noted(stored)
                types.append(own_types)
                languages.append(own_languages)
                dates.append(date)
            return
        for name, values in words.facets._asdict().items():
            own: list[Any] = getattr(self._facets, name)
            own.extend(values if which is None else map(values.__getitem__, which.tolist()))

    def clear(self) -> None:
        """Forgets all records."""
        with suppress(Exception):
            self._settle()
        self._vectors, self._lengths, self._bytes = [], [], 0
        self.records = {}
        self._columns = {name: [] for name in _KEPT}
        self._facets = Facets([], [], [])
        self._postings.clear()

    def _count(self, words: Words | None = None, which: Array | None = None) -> None:
        """Counts, aside, what waits for it; `words` are of that."""
        if self._lengths:
            lengths = np.array(self._lengths, np.int64)
            self._settle()
            self._counting = self.side.submit(self._postings.add, self._vectors, lengths, words, which)
            self._vectors, self._lengths, self._bytes = [], [], 0

    def _settle(self) -> None:
        counting, self._counting = self._counting, None
        if counting is not None:
            counting.result()

    @quick_switches()
    def write(self, path: Path) -> SegmentFile:
        """Writes a segment of these records."""
        self._count()
        columns = {**self._columns, **self._facets._asdict()}
        alive = None
        if len(self.records) < len(self._facets.dates):
            places = sorted(self.records.values())
            alive = np.array(places, np.int64)
            columns = {name: [column[place] for place in places] for name, column in columns.items()}
        out = ArrayFile(path)
        try:
            # There is one thread at the side: it has counted before it comes to this.
            lists = self.side.submit(self._postings.inverted, alive)
            dates, values = _facets(columns)
            ties = _hashed([name.encode("utf-8", "surrogatepass") for name in columns["identifier"]])
            self._settle()
            inverted = lists.result()
            _write_lists(out, inverted, columns["positions"])
            write_documents(
                out,
                ids=np.array(columns["id"], np.int64),
                lengths=inverted.lengths,
                norms=inverted.norms,
                ties=ties,
                resources=np.array(columns["resource"], np.int64).view(np.uint64),
                dates=dates,
            )
            names = {name: _write_facet(out, name, *facet) for name, facet in values.items()}
            return out.close({"facets": names, "postings": int(inverted.of.size)})
        except BaseException:
            out.discard()
            raise


def _write_lists(out: ArrayFile, inverted: Inverted, positions: Sequence[bytes | None]) -> None:
    if any(part is not None for part in positions):
        lay_out(
            out,
            positions,
            inverted.of,
            inverted.freqs,
            inverted.begins,
            cursors(inverted.order, inverted.starts),
            inverted.starts,
        )
    out.add("stream", inverted.stream)
    out.add("starts", inverted.bounds.astype(np.uint32))
    write_names(out, inverted.names, inverted.name_ends)


def _hashed(strings: list[bytes]) -> Array:
    out = np.empty(len(strings), np.uint64)
    sizes = np.fromiter(map(len, strings), np.int64, len(strings))
    term_hash.digests(np.frombuffer(bytearray().join(strings), np.uint8), np.cumsum(sizes), out)
    return out


def _facets(columns: Mapping[str, Sequence[Any]]) -> tuple[Array, dict[str, tuple[list[str], Array]]]:
    """The records' dates; and for each facet the different combinations of values, and each record's."""
    when = np.array(columns["dates"], np.uint32)
    years, year = np.unique(when // 10000, return_inverse=True)
    origins, origin = np.unique(np.array(columns["origin"], np.int64), return_inverse=True)
    sets, each = _combinations(columns["sets"])
    return when, {
        "origin": ([str(number) for number in origins.tolist()], origin),
        "type": _combinations(columns["types"]),
        "language": _combinations(columns["languages"]),
        "set": ([name.replace(" ", "\0") for name in sets], each),
        "year": ([f"{number:04}" if number else "" for number in years.tolist()], year),
    }


def _combinations(keys: Sequence[str]) -> tuple[list[str], Array]:
    numbers: dict[str, int] = {}
    which = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return list(numbers), which


def _write_facet(out: ArrayFile, name: str, combinations: list[str], which: Array) -> list[str]:
    """Writes a facet's codes; gives its values."""
    numbers: dict[str, int] = {}
    codes: list[list[int]] = []
    for combination in combinations:
        cut = dict.fromkeys(value[:LONGEST] for value in combination.split("\0") if value)
        codes.append([numbers.setdefault(value, len(numbers) + 1) for value in cut] or [0])
    if all(len(each) == 1 for each in codes):
        out.add(f"facet:{name}", narrow(np.array([each[0] for each in codes], np.int64)[which]))
        return list(numbers)
    counts = np.array([len(each) for each in codes], np.int64)[which]
    out.add(f"facet:{name}", narrow(np.array([code for each in which for code in codes[each]], np.int64)))
    out.add(f"facets:{name}", np.concatenate(([0], np.cumsum(counts))).astype(np.uint32))
    return list(numbers)


def write_names(out: ArrayFile, blob: Array, ends: Array) -> None:
    out.add("names", blob)
    out.add("bounds", np.concatenate(([0], ends)).astype(np.uint32))


def write_documents(
    out: ArrayFile, ids: Array, lengths: Array, norms: Array, ties: Array, resources: Array, dates: Array
) -> None:
    out.add("id", narrow(ids) if ids.max(initial=0) < 1 << 32 else ids)
    out.add("length", lengths)
    out.add("norm", norms)
    out.add("tie", ties)
    out.add("resource", resources)
    out.add("date", dates)
