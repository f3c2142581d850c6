"""What the index takes from a record, and how a batch of records becomes a segment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from indlet.model import Metadata, Stored
from indlet.service.index import tokens
from indlet.service.index.codec import PADDING, encode, room
from indlet.service.index.positions import lay_out
from indlet.service.index.segment import Array, ArrayFile, File

FACETS: Final = ("origin", "type", "language", "set", "year")
LONGEST: Final = 200  # characters of a facet's value; longer ones are cut

_DATE = re.compile(r"\s*(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?(?!\d)")


def date_number(metadata: Metadata) -> int:
    """The first readable date as yyyymmdd, with 00 for what it leaves open; 0 where there is none."""
    for value in metadata.get("date", ()):
        if found := _DATE.match(value):
            year, month, day = (int(part or 0) for part in found.groups())
            if month > 12 or day > 31:
                month = day = 0
            return year * 10000 + month * 100 + day
    return 0


def narrow(array: Array) -> Array:
    """The array in the smallest unsigned type of 1, 2 or 4 bytes that holds it."""
    most = int(array.max(initial=0))
    return array.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32)


@dataclass(slots=True)
class Column:
    """Collects the values of a facet; several per document are allowed."""

    numbers: dict[str, int] = field(default_factory=dict)
    codes: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, values: Sequence[str]) -> None:
        numbers, codes = self.numbers, self.codes
        count = 0
        for value in values if len(values) < 2 else dict.fromkeys(values):
            code = numbers.get(value)
            if code is None:
                if not value:
                    continue
                code = numbers.setdefault(value[:LONGEST], len(numbers) + 1)
            codes.append(code)
            count += 1
        if not count:
            codes.append(0)
        self.counts.append(count or 1)


@dataclass(slots=True)
class Batch:
    """Records on their way into a segment."""

    texts: list[bytes] = field(default_factory=list)
    places: list[bytes | None] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    resources: list[int] = field(default_factory=list)
    dates: list[int] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=lambda: {name: Column() for name in FACETS})
    latest: dict[int, int] = field(default_factory=dict)
    weight: int = 0

    def drop(self, id: int) -> None:
        """Forgets a record: it was deleted after it was added."""
        self.latest.pop(id, None)

    def add(self, stored: Stored) -> None:
        packed = stored.vector or b""
        self.texts += (packed, stored.fields)
        self.places.append(stored.positions)
        self.lengths.append(stored.length if stored.vector is not None else 0)
        self.latest[stored.id] = len(self.ids)
        self.ids.append(stored.id)
        self.names.append(stored.identifier.encode("utf-8", "surrogatepass"))
        self.resources.append(stored.resource)
        metadata: Metadata = orjson.loads(stored.metadata) if stored.metadata else {}
        date = date_number(metadata)
        self.dates.append(date)
        columns = self.columns
        columns["origin"].add((str(stored.origin),))
        columns["type"].add(metadata.get("type", ()))
        columns["language"].add(metadata.get("language") or (stored.language,))
        columns["set"].add(stored.sets.split())
        columns["year"].add((f"{date // 10000:04}",) if date else ())
        self.weight += len(packed) + len(stored.fields) + 200

    def write(self, path: Path) -> File:
        """Writes a segment with the newest version of each record of the batch."""
        keep = sorted(self.latest.values())
        if len(keep) < len(self.ids):
            self._keep(keep)
        text = np.frombuffer(bytearray().join(self.texts), np.uint8)
        ends = np.cumsum([len(part) for part in self.texts], dtype=np.int64)
        postings = int(np.count_nonzero(text == 32))
        of, freqs, begins, norms, names, sizes, df, _ = tokens.tokenise(text, ends, postings)
        order = tokens.ordered(text, names, sizes)
        starts = np.zeros(order.size + 1, np.int64)
        np.cumsum(df[order], out=starts[1:])
        cursors = np.empty(order.size, np.int64)
        cursors[order] = starts[:-1]
        docs, counts = np.empty(of.size, np.uint32), np.empty(of.size, np.uint32)
        tokens.scatter(of, freqs, begins, cursors, docs, counts)

        out = ArrayFile(path)
        try:
            if any(part is not None for part in self.places):
                cursors[order] = starts[:-1]
                lay_out(out, self.places, of, freqs, begins, cursors, starts)
            stream = np.empty(int(room(starts)) + PADDING, np.uint8)
            bounds = np.zeros(order.size, np.int64)
            used = int(encode(docs, counts, starts, stream, bounds))
            stream[used : used + PADDING] = 0
            out.add("stream", stream[: used + PADDING])
            out.add("starts", np.concatenate(([0], bounds[:-1])).astype(np.uint32)[: order.size])
            blob = np.empty(int(sizes.sum()), np.uint8)
            tokens.copied(text, names, sizes, order, blob, bounds)
            write_names(out, blob, bounds)
            write_documents(
                out,
                ids=np.array(self.ids, np.int64),
                lengths=np.minimum(np.array(self.lengths, np.int64), 0xFFFFFFFF).astype(np.uint32),
                norms=norms,
                ties=_hashed(self.names),
                resources=np.array(self.resources, np.int64).view(np.uint64),
                dates=np.array(self.dates, np.uint32),
            )
            facets = {name: write_facet(out, name, column) for name, column in self.columns.items()}
            return out.close({"facets": facets, "postings": int(of.size)})
        except BaseException:
            out.discard()
            raise

    def _keep(self, which: list[int]) -> None:
        fresh = {name: Column() for name in FACETS}
        for name, column in self.columns.items():
            starts = np.concatenate(([0], np.cumsum(column.counts)))
            values = list(column.numbers)
            for i in which:
                codes = column.codes[starts[i] : starts[i + 1]]
                fresh[name].add([values[code - 1] for code in codes if code])
        self.columns = fresh
        self.texts = [part for i in which for part in self.texts[2 * i : 2 * i + 2]]
        for name in ("places", "lengths", "ids", "names", "resources", "dates"):
            values = getattr(self, name)
            setattr(self, name, [values[i] for i in which])


def _hashed(strings: list[bytes]) -> Array:
    out = np.empty(len(strings), np.uint64)
    ends = np.cumsum([len(text) for text in strings], dtype=np.int64)
    tokens.digests(np.frombuffer(bytearray().join(strings), np.uint8), ends, out)
    return out


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


def write_facet(out: ArrayFile, name: str, column: Column) -> list[str]:
    """Writes a facet's codes; gives its values."""
    out.add(f"facet:{name}", narrow(np.array(column.codes, np.int64)))
    if len(column.codes) > len(column.counts):
        starts = np.zeros(len(column.counts) + 1, np.uint32)
        np.cumsum(column.counts, out=starts[1:])
        out.add(f"facets:{name}", starts)
    return list(column.numbers)
