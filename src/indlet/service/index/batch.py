"""What the index takes from a record, and how a batch of records becomes a segment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

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


@lru_cache(1 << 16)
def _date(value: str) -> int:
    found = _DATE.match(value)
    if not found:
        return 0
    year, month, day = (int(part or 0) for part in found.groups())
    return year * 10000 + (month * 100 + day if month <= 12 and day <= 31 else 0)


def date_number(metadata: Metadata) -> int:
    """The first readable date as yyyymmdd, with 00 for what it leaves open; 0 where there is none."""
    for value in metadata.get("date", ()):
        if number := _date(value):
            return number
    return 0


def narrow(array: Array) -> Array:
    """The array in the smallest unsigned type of 1, 2 or 4 bytes that holds it."""
    most = int(array.max(initial=0))
    return array.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32)


# The rest (raw, properties …) is let go: it may be larger than all that the index holds.
_KEPT: Final = (
    "id", "origin", "identifier", "sets", "language", "length", "resource", "metadata", "vector", "positions",
    "fields",
)  # fmt: skip
_kept = itemgetter(*map(Stored._fields.index, _KEPT))
ID, SEQ, _deleted = (itemgetter(Stored._fields.index(name)) for name in ("id", "seq", "deleted"))
_HEAVY: Final = [itemgetter(Stored._fields.index(name)) for name in ("vector", "fields", "metadata")]


@dataclass(slots=True)
class Batch:
    """Records on their way into a segment: the newest version of each."""

    records: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    weight: int = 0

    def take(self, changes: Sequence[Stored]) -> None:
        """Takes changes in their order; those of deleted records take them out."""
        if any(map(_deleted, changes)):
            for stored in changes:
                if stored.deleted:
                    self.records.pop(stored.id, None)
                else:
                    self.records[stored.id] = _kept(stored)
        else:
            self.records.update(zip(map(ID, changes), map(_kept, changes), strict=True))
        heavy = chain.from_iterable(map(part, changes) for part in _HEAVY)
        self.weight += sum(map(len, filter(None, heavy)))

    def write(self, path: Path) -> File:
        """Writes a segment of these records."""
        records = list(self.records.values())
        fields = {name: list(map(itemgetter(place), records)) for place, name in enumerate(_KEPT)}
        texts = [
            part or b"" for pair in zip(fields["vector"], fields["fields"], strict=True) for part in pair
        ]
        out = ArrayFile(path)
        try:
            # Kernels let go of the interpreter: the postings are sorted while the columns are read.
            with ThreadPoolExecutor(1) as side:
                lengths = np.clip(np.array(fields["length"], np.int64), 0, 0xFFFFFFFF).astype(np.uint32)
                lists = side.submit(_invert, texts, lengths)
                dates, facets = _facets(fields)
                ties = _hashed([name.encode("utf-8", "surrogatepass") for name in fields["identifier"]])
                inverted = lists.result()
            _write_lists(out, inverted, fields["positions"])
            write_documents(
                out,
                ids=np.array(fields["id"], np.int64),
                lengths=lengths,
                norms=inverted.norms,
                ties=ties,
                resources=np.array(fields["resource"], np.int64).view(np.uint64),
                dates=dates,
            )
            values = {name: _write_facet(out, name, *facet) for name, facet in facets.items()}
            return out.close({"facets": values, "postings": int(inverted.of.size)})
        except BaseException:
            out.discard()
            raise


@dataclass(frozen=True, slots=True)
class _Inverted:
    """A batch's postings: `of` and `freqs` as they came, `stream` as they are stored."""

    of: Array
    freqs: Array
    begins: Array
    order: Array
    starts: Array
    stream: Array
    bounds: Array
    names: Array
    name_ends: Array
    norms: Array


def _invert(texts: list[bytes], lengths: Array) -> _Inverted:
    sizes = _sizes(texts)
    text = np.frombuffer(bytearray().join([*texts, bytes(16)]), np.uint8)
    most = int(sizes.max(initial=0)) // 2 + 1  # a term takes two bytes at least
    bound = text.size // 2
    of, freqs, begins, norms, names, widths, df = tokens.tokenise(text, np.cumsum(sizes), bound, most)
    order = tokens.ordered(text, names, widths)
    starts = np.zeros(order.size + 1, np.int64)
    np.cumsum(df[order], out=starts[1:])
    cursors = np.empty(order.size, np.int64)
    cursors[order] = starts[:-1]
    docs, counts = np.empty(of.size, np.uint32), np.empty(of.size, np.uint32)
    tokens.scatter(of, freqs, begins, cursors, docs, counts)
    stream = np.empty(int(room(starts)) + PADDING, np.uint8)
    ends = np.zeros(order.size, np.int64)
    used = int(encode(docs, counts, starts, lengths, stream, ends))
    stream[used : used + PADDING] = 0
    bounds = np.concatenate(([0], ends[:-1]))[: order.size]
    blob, name_ends = np.empty(int(widths.sum()), np.uint8), np.empty(order.size, np.int64)
    tokens.copied(text, names, widths, order, blob, name_ends)
    stream = stream[: used + PADDING]
    return _Inverted(of, freqs, begins, order, starts, stream, bounds, blob, name_ends, norms)


def _write_lists(out: ArrayFile, inverted: _Inverted, positions: Sequence[bytes | None]) -> None:
    if any(part is not None for part in positions):
        cursors = np.empty(inverted.order.size, np.int64)
        cursors[inverted.order] = inverted.starts[:-1]
        lay_out(out, positions, inverted.of, inverted.freqs, inverted.begins, cursors, inverted.starts)
    out.add("stream", inverted.stream)
    out.add("starts", inverted.bounds.astype(np.uint32))
    write_names(out, inverted.names, inverted.name_ends)


def _sizes(texts: Sequence[bytes]) -> Array:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _hashed(strings: list[bytes]) -> Array:
    out = np.empty(len(strings), np.uint64)
    tokens.digests(np.frombuffer(bytearray().join(strings), np.uint8), np.cumsum(_sizes(strings)), out)
    return out


def _facets(fields: Mapping[str, Sequence[Any]]) -> tuple[Array, dict[str, tuple[list[str], Array]]]:
    """The records' dates; and for each facet the different combinations of values, and each record's."""
    # Strings, not tuples: a million containers would set the garbage collector going.
    types, languages, dates = [], [], []
    for data, language in zip(fields["metadata"], fields["language"], strict=True):
        metadata: dict[str, list[str]] = orjson.loads(data) if data else {}
        types.append("\0".join(metadata.get("type", ())))
        languages.append("\0".join(metadata.get("language", ())) or language)
        dates.append(date_number(metadata))
    when = np.array(dates, np.uint32)
    years, year = np.unique(when // 10000, return_inverse=True)
    origins, origin = np.unique(np.array(fields["origin"], np.int64), return_inverse=True)
    sets, each = _combinations(fields["sets"])
    return when, {
        "origin": ([str(number) for number in origins.tolist()], origin),
        "type": _combinations(types),
        "language": _combinations(languages),
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
