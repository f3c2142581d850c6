"""Precision, recall and seconds of the search for duplicates, on MARC records with injected duplicates.

    INDLET_DATA=… python -m bench.duplicates [--records 72000] [--share 0.1] [--least 0.8] [--json FILE]

Two libraries share out the real records below INDLET_DATA/marc (a folder, or marc.tar.gz there), each record
once, and of equal titles one: the others are editions and duplicates of which nobody said so. Of a share of
the first library's records the second has a copy as another cataloguer would have made it, without
identifiers (tests/service/duplicates/noise.py). Where more `--records` are asked for than there are, the rest
is put together from words, names and years of the real ones, which measures time and says little of
precision. Every pair that was not injected counts as wrong. Term vectors are those of the metadata.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
from tests.service.duplicates.noise import KINDS, Described, noisy

from indlet.formats.iso2709 import Marc, iso2709_records
from indlet.formats.metadata import marc21
from indlet.model import Stored
from indlet.service.duplicates.features import described
from indlet.service.duplicates.pairs import LEAST, Pair, pairs
from indlet.text import Analyzer


def marc_files(data: Path) -> Iterator[bytes]:
    endings = (".mrc", ".marc")
    for path in sorted(data.rglob("*")):
        if path.suffix in endings:
            yield path.read_bytes()
        elif path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                for member in sorted(archive.getmembers(), key=lambda m: m.name):
                    if member.name.endswith(endings) and (file := archive.extractfile(member)):
                        yield file.read()


def real_records(data: Path) -> list[Described]:
    """Descriptions of works with a title and an author or year; one for each title, number and ISBN."""
    found: list[Described] = []
    seen: set[object] = set()
    for content in marc_files(data):
        for record in iso2709_records(content):
            if isinstance(record, Marc) and record.leader[6:7] != "z":  # authorities describe no work
                metadata = {name: list(values) for name, values in marc21.dublin_core(record).items()}
                one = described("", metadata)
                names = {one.title, record.control("001").strip(), *one.keys} - {""}
                if one.words and (one.names or one.years) and seen.isdisjoint(names):
                    found.append(metadata)
                seen |= names
    return found


def made_up(real: list[Described], count: int, chance: random.Random) -> Iterator[Described]:
    words = [word for one in real for word in one["title"][0].split() if len(word) > 2]
    names = [name for one in real for name in one.get("creator", ())] or ["Nobody, N."]
    for _ in range(count):
        title = " ".join(chance.choices(words, k=chance.randint(3, 12)))
        yield {"title": [title], "creator": [chance.choice(names)], "date": [str(chance.randint(1920, 2020))]}


def stored(number: int, library: int, metadata: Described, analyzer: Analyzer) -> Stored:
    form = orjson.dumps(metadata)
    flat = Stored(
        number,
        number,
        library,
        f"oai:{library}:{number}",
        0,
        0,
        "",
        "",
        0,
        0,
        form,
        b"{}",
        b"",
        None,
        None,
        b"",
    )
    return analyzer.completed(flat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=0, help="in all; 0: the real ones alone")
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--least", type=float, default=LEAST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=int, default=0, help="print so many wrong pairs")
    options = parser.parse_args()
    if not (place := os.environ.get("INDLET_DATA")):
        sys.exit("set INDLET_DATA to the folder of the collections")
    chance = random.Random(options.seed)
    real = real_records(Path(place) / "marc")
    chance.shuffle(real)
    base = [*real, *made_up(real, max(options.records - len(real), 0), chance)][: options.records or None]
    # Titles of some length: of "Poems" nobody can tell a copy.
    own = [n for n, one in enumerate(base[: len(real)]) if n % 2 == 0 and len(described("", one).words) > 2]
    chosen = chance.sample(own, int(len(own) * options.share))
    kinds = {n: list(KINDS)[i % len(KINDS)] for i, n in enumerate(chosen)}
    analyzer = Analyzer()
    records = [stored(n + 1, n % 2, one, analyzer) for n, one in enumerate(base)]
    records += [
        stored(len(base) + n + 1, 1, noisy(base[n], kind, chance), analyzer) for n, kind in kinds.items()
    ]
    injected = {(n + 1, len(base) + n + 1): kind for n, kind in kinds.items()}
    vectors = {one.id: one.vector for one in records}
    for used in (True, False):
        begun, used_before = time.perf_counter(), time.process_time()
        found = pairs(
            (one._replace(vector=None) for one in records),
            (lambda ids: {n: vectors[n] for n in ids}) if used else None,
            least=options.least,
        )
        report(
            found,
            injected,
            used,
            len(records),
            len(real),
            (time.perf_counter() - begun, time.process_time() - used_before),
            options,
        )


def report(
    found: list[Pair], injected: dict[tuple[int, int], str], used: bool, records: int, real: int,
    seconds: tuple[float, float], options: argparse.Namespace,
) -> None:  # fmt: skip
    told = {(min(p.first.id, p.second.id), max(p.first.id, p.second.id)): p for p in found}
    right = told.keys() & injected.keys()
    kinds = Counter(injected.values())
    by_kind = Counter(injected[pair] for pair in right)
    result = {
        "records": records, "real": real, "injected": len(injected), "vectors": used, "least": options.least,
        "found": len(told), "precision": round(len(right) / max(len(told), 1), 4),
        "recall": round(len(right) / max(len(injected), 1), 4),
        "recall_by_kind": {kind: round(by_kind[kind] / n, 3) for kind, n in kinds.items()},
        "seconds": round(seconds[0], 2), "processor_seconds": round(seconds[1], 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip
    print(json.dumps(result))
    if options.json:
        with options.json.open("a") as out:
            out.write(json.dumps(result) + "\n")
    for wrong in [told[pair] for pair in told if pair not in injected][: options.show]:
        print(wrong.score, wrong.reasons, wrong.first.title, wrong.second.title, sep=" | ")


if __name__ == "__main__":
    main()
