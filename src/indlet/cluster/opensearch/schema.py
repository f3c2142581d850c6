"""How a record becomes a document of the cluster, and the mapping that holds it.

The vector goes in as it is: one field with a term and its frequency for each posting, whose score is that
frequency. Length, norm, date and tie-break lie beside it as exact numbers. Words as keywords serve prefixes;
positions, where they were harvested, have a field of their own. Nothing is left out of `_source`: a cluster
would keep what is left out beside it, and compress both, until the next merges.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

import orjson

from indlet import _core
from indlet.cluster.opensearch.cluster import Json
from indlet.model import SORT_MARKS, VALUE_MARKS, Stored, TermVector, groups
from indlet.service.index.dates import date_number
from indlet.text.accents import without_accents

FACETS: Final = ("origin", "type", "language", "set", "year")
LONGEST_VALUE: Final = 200  # characters of a facet's value; longer ones are cut
LONGEST_TERM: Final = 8000  # characters; of longer ones a digest stands for the rest
MOST: Final = 1 << 24  # frequencies are exact up to here: scores are 32-bit floats
# Positions further apart than this are as good as any: no phrase is so long.
REACH: Final = 50
_FREQUENCY, _NOTHING, _SAME, _ESCAPE = "\x01", "\x02", "\x03", "\x04"
_ODD: Final = re.compile("[\x01-\x04\ud800-\udfff]")
_ODD_BYTES: Final = re.compile(b"[\x01-\x04]")  # of a packed vector, which is UTF-8

_WHOLE: Final = (*VALUE_MARKS.values(), *SORT_MARKS.values())  # before what is no word
_KEYWORD: Final[Json] = {"type": "keyword"}
_NUMBER: Final[Json] = {"type": "long", "index": False}
_LOOKED_UP: Final[Json] = {"type": "long"}


def settings(shards: int) -> Json:
    tokens = {"type": "char_group", "tokenize_on_chars": [" "], "max_token_length": LONGEST_TERM + 100}
    return {
        "settings": {
            "index": {
                "number_of_shards": shards,
                "auto_expand_replicas": "0-1",
                "refresh_interval": "-1",  # what is visible is what was published
                "max_terms_count": 65_536,
                "similarity": {"frequency": {"type": "scripted", "script": {"source": "return doc.freq"}}},
            },
            "analysis": {
                "tokenizer": {"blank": tokens},
                "filter": {
                    "frequency": {"type": "delimited_term_freq", "delimiter": _FREQUENCY},
                    "nothing": {"type": "stop", "stopwords": [_NOTHING]},
                    "same": {
                        "type": "pattern_capture",
                        "preserve_original": False,
                        "patterns": [f"([^{_SAME}]+)"],
                    },
                },
                "analyzer": {
                    "vector": {"type": "custom", "tokenizer": "blank", "filter": ["frequency"]},
                    "places": {"type": "custom", "tokenizer": "blank", "filter": ["nothing", "same"]},
                },
            },
        },
        "mappings": {
            "dynamic": False,
            "properties": _properties(),
        },
    }


def _properties() -> Json:
    return {
        "terms": {
            "type": "text",
            "analyzer": "vector",
            "index_options": "freqs",
            "norms": False,
            "similarity": "frequency",
        },
        "places": {
            "type": "text",
            "analyzer": "places",
            "index_options": "positions",
            "norms": False,
            "position_increment_gap": 2 * REACH,
        },
        "words": {"type": "keyword", "index": False},
        "accents": _KEYWORD,
        "placed": {"type": "boolean"},
        "id": _LOOKED_UP,
        "resource": _LOOKED_UP,
        "group": _LOOKED_UP,
        "ambiguous": {"type": "boolean"},
        "date": _LOOKED_UP,
        "tie": _NUMBER,
        "length": _NUMBER,
        "postings": _NUMBER,
        "norm": {"type": "double", "index": False},
        **{f"order_{name}": {"type": "keyword", "index": False} for name in SORT_MARKS},
        **{f"key_{name}": _KEYWORD for name in FACETS},
        **{f"spelt_{name}": {"type": "keyword", "index": False} for name in FACETS},
    }


def escape_term(term: str) -> str:
    """A term as the cluster knows it: without the marks of our text format, and not too long."""
    if _ODD.search(term):
        term = _ODD.sub(lambda odd: f"{_ESCAPE}{ord(odd[0]):04x}", term)
    if len(term) > LONGEST_TERM:
        rest = blake2b(term.encode(), digest_size=16).hexdigest()
        term = f"{term[:LONGEST_TERM]}{_ESCAPE}{rest}"
    return term


def term_of(name: str) -> str:
    if _ESCAPE not in name:
        return name
    return re.sub(f"{_ESCAPE}([0-9a-f]{{4}})", lambda found: chr(int(found[1], 16)), name)


def document(stored: Stored) -> Json:
    """What the cluster is given of a record that has its vector and the terms of its fields."""
    metadata: dict[str, list[str]] = orjson.loads(stored.metadata) if stored.metadata else {}
    vector = _frequencies(stored.vector)
    every = vector | _frequencies(stored.fields)
    date = date_number(metadata)
    made: Json = {
        "id": stored.id,
        "tie": tie(stored.identifier),
        "length": stored.length,
        "norm": norm(vector.values()),
        "postings": len(every),
        "terms": text(every),
        "words": list(every),
        "placed": stored.positions is not None,
    }
    if stored.positions is not None and stored.vector is not None:
        made["places"] = list(_places(TermVector(stored.vector, stored.length, stored.positions)))
    if stored.resource:
        made["resource"] = stored.resource
    if date:
        made["date"] = date
    if not made["terms"].isascii() and (accents := list(_accents(every))):
        made["accents"] = accents
    marked = [term for term in every if term.startswith("\x1f")]
    for sort, mark in SORT_MARKS.items():
        if (name := next((term for term in marked if term.startswith(mark)), None)) is not None:
            made[f"order_{sort}"] = name
    for name, values in _facets(stored, metadata, date).items():
        kept = list(dict.fromkeys(value[:LONGEST_VALUE] for value in values if value))
        if kept:
            made[f"spelt_{name}"] = kept
            made[f"key_{name}"] = list(dict.fromkeys(key for value in kept for key in keys(name, value)))
    return made


def again(source: Json) -> Json:
    """A document as it was given, of what the cluster kept of it: words are missing in older indices."""
    return source if "words" in source else {**source, "words": list(parse_counts(source["terms"]))}


def tie(identifier: str) -> int:
    """What orders equal scores: a hash of the identifier, as a signed number."""
    return _core.stable_hash(identifier.encode("utf-8", "surrogatepass")) - (1 << 63)


def norm(frequencies: Iterable[int]) -> float:
    """sqrt(Σ (1 + ln tf)²), summed by ascending frequency."""
    counts = Counter(frequencies)
    squares = 0.0
    for frequency in sorted(counts):
        weight = 1.0 + math.log(frequency)
        squares += counts[frequency] * (weight * weight)
    return math.sqrt(squares)


def keys(facet: str, value: str) -> list[str]:
    """Under what a value is found: itself in any case; a set also under those above it."""
    if facet != "set":
        return [value.casefold()]
    parts = value.split(":")
    return [":".join(parts[:depth]).casefold() for depth in range(len(parts), 0, -1)]


def text(frequencies: Mapping[str, int]) -> str:
    return " ".join(
        name if frequency == 1 else f"{name}{_FREQUENCY}{frequency}"
        for name, frequency in frequencies.items()
    )


def parse_counts(text: str) -> dict[str, int]:
    """The reverse of `text`."""
    found: dict[str, int] = {}
    for part in text.split(" ") if text else ():
        name, _, frequency = part.partition(_FREQUENCY)
        found[name] = int(frequency or 1)
    return found


def phrase(terms: tuple[str, ...], offsets: tuple[int, ...]) -> str:
    """A phrase as text of the field of positions: what may stand between is a gap."""
    placed = sorted(zip(offsets, terms, strict=True))
    out: list[str] = []
    before = placed[0][0] - 1
    for place, term in placed:
        out += [_NOTHING] * (place - before - 1)
        out.append(escape_term(term))
        before = place
    return " ".join(out)


def _accents(terms: Iterable[str]) -> Iterator[str]:
    """Words that have accents, each behind itself without them."""
    for term in terms:
        if not term.isascii() and not term.startswith(_WHOLE) and (plain := without_accents(term)) != term:
            yield f"{plain} {term}"


def _frequencies(packed: bytes | None) -> dict[str, int]:
    found: dict[str, int] = {}
    odd = packed and _ODD_BYTES.search(packed)
    for frequency, terms in groups(packed or b""):
        names = map(escape_term, terms) if odd or max(map(len, terms), default=0) > LONGEST_TERM else terms
        found.update(dict.fromkeys(names, min(frequency, MOST)))
    return found


def _places(vector: TermVector) -> Iterator[str]:
    """Tokens by position, as text: gaps are filled; where a gap is wide, another text begins."""
    by_place: dict[int, list[str]] = {}
    for term, places in vector.places().items():
        for place in places:
            by_place.setdefault(place, []).append(escape_term(term))
    run: list[str] = []
    before: int | None = None
    for place in sorted(by_place):
        if before is not None and place - before > REACH:
            yield " ".join(run)
            run = []
        elif before is not None:
            run += [_NOTHING] * (place - before - 1)
        run.append(_SAME.join(by_place[place]))
        before = place
    if run:
        yield " ".join(run)


def _facets(stored: Stored, metadata: Mapping[str, list[str]], date: int) -> Mapping[str, list[str]]:
    return {
        "origin": [str(stored.origin)],
        "type": list(metadata.get("type", ())),
        "language": list(metadata.get("language", ())) or [stored.language],
        "set": stored.sets.split(),
        "year": [f"{date // 10000:04}"] if date // 10000 else [],
    }
