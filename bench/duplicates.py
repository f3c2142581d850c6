"""Precision, recall and seconds of the search for duplicates, on MARC records with injected duplicates.

    INDLET_DATA=… python -m bench.duplicates [--records 72000] [--share 0.1] [--least 0.8] [--json FILE]
    INDLET_DATA=… python -m bench.duplicates --known [--json FILE]

Two libraries share out the real records below INDLET_DATA/marc (a folder, or marc.tar.gz there), each record
once, and of equal titles one: the others are editions and duplicates of which nobody said so. Of a share of
the first library's records the second has a copy as another cataloguer would have made it, without
identifiers (tests/exchange/duplicates/noise.py). Where more `--records` are asked for than exist, more are
put together from words, names and years of the real ones, which measures time and says little of
precision. Every pair that was not injected counts as wrong. Term vectors are those of the metadata.

`--known`: no copy is injected. Two records with one number of the Library of Congress or of OCLC that do not
say the same are known to describe one work; each goes to another library, without identifiers. Titles without
a word in common are told apart: test records that reuse a number, and texts that lost their escape sequences.
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
from tests.exchange.duplicates.noise import KINDS, Described, noisy

from indlet.exchange.duplicates.features import described
from indlet.exchange.duplicates.pairs import LEAST, Pair, pairs
from indlet.formats.iso2709 import Marc, iso2709_records
from indlet.formats.metadata import marc21
from indlet.model import Stored
from indlet.text import Analyzer

KNOWN = "a word in common"  # in the titles


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


def known_pairs(data: Path) -> list[tuple[Described, Described]]:
    """Two descriptions of each work that two different records name by one number, without identifiers."""
    by_number: dict[str, list[Described]] = {}
    for content in marc_files(data):
        for record in iso2709_records(content):
            if not isinstance(record, Marc) or record.leader[6:7] == "z":
                continue
            metadata = {name: list(values) for name, values in marc21.dublin_core(record).items()}
            metadata.pop("identifier", None)
            if not described("", metadata).words:
                continue
            for number in {*record_numbers(record)}:
                found = by_number.setdefault(number, [])
                if metadata not in found:
                    found.append(metadata)
    pairs = {str(two): (one, two) for one, two, *_ in (f for f in by_number.values() if len(f) > 1)}
    return list(pairs.values())


def record_numbers(record: Marc) -> Iterator[str]:
    for field in record.fields:
        if field.tag == "010":
            yield from (f"LCCN {value.split('/')[0].strip()}" for value in field.select("a"))
        elif field.tag == "035":
            yield from (
                f"OCLC {value[7:].strip('ocmn ')}" for value in field.select("a") if "(OCoLC)" in value
            )


def known_works(data: Path, analyzer: Analyzer) -> tuple[list[Stored], dict[tuple[int, int], str]]:
    """Both records of each known pair, among the other real ones; and the pairs."""
    known = known_pairs(data)
    titles = {described("", one).title for pair in known for one in pair}
    others = [one for one in real_records(data) if described("", one).title not in titles]

    def words(one: Described) -> set[str]:
        return set(described("", one).words)

    both = [one for pair in known for one in pair]
    records = [stored(n + 1, n % 2, one, analyzer) for n, one in enumerate([*both, *others])]
    kinds = {
        (2 * n + 1, 2 * n + 2): KNOWN if not words(one).isdisjoint(words(two)) else "no word in common"
        for n, (one, two) in enumerate(known)
    }
    return records, kinds


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


def with_copies(
    data: Path, options: argparse.Namespace, analyzer: Analyzer
) -> tuple[list[Stored], dict[tuple[int, int], str], int]:
    """Records of two libraries with injected copies, those pairs, and how many records are real."""
    chance = random.Random(options.seed)
    real = real_records(data)
    chance.shuffle(real)
    base = [*real, *made_up(real, max(options.records - len(real), 0), chance)][: options.records or None]
    # Titles of some length: of "Poems" nobody can tell a copy.
    own = [n for n, one in enumerate(base[: len(real)]) if n % 2 == 0 and len(described("", one).words) > 2]
    chosen = chance.sample(own, int(len(own) * options.share))
    kinds = {n: list(KINDS)[i % len(KINDS)] for i, n in enumerate(chosen)}
    records = [stored(n + 1, n % 2, one, analyzer) for n, one in enumerate(base)]
    records += [
        stored(len(base) + n + 1, 1, noisy(base[n], kind, chance), analyzer) for n, kind in kinds.items()
    ]
    injected = {(n + 1, len(base) + n + 1): kind for n, kind in kinds.items()}
    return records, injected, len(real)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=0, help="in all; 0: the real ones alone")
    parser.add_argument("--known", action="store_true", help="works that two real records describe")
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--least", type=float, default=LEAST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", type=int, default=0, help="print so many wrong pairs")
    options = parser.parse_args()
    if not (place := os.environ.get("INDLET_DATA")):
        sys.exit("set INDLET_DATA to the folder of the collections")
    if options.known:
        records, wanted = known_works(Path(place) / "marc", Analyzer())
        real = len(records)
    else:
        records, wanted, real = with_copies(Path(place) / "marc", options, Analyzer())
    vectors = {one.id: one.vector for one in records}
    results = []
    for used in (True, False):
        begun, used_before = time.perf_counter(), time.process_time()
        found = pairs(
            (one._replace(vector=None) for one in records),
            (lambda ids: {n: vectors[n] for n in ids}) if used else None,
            least=options.least,
        )
        seconds = time.perf_counter() - begun, time.process_time() - used_before
        results.append(report(found, wanted, used, len(records), real, seconds, options))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def report(
    found: list[Pair], injected: dict[tuple[int, int], str], used: bool, records: int, real: int,
    seconds: tuple[float, float], options: argparse.Namespace,
) -> dict[str, object]:  # fmt: skip
    told = {(min(p.first.id, p.second.id), max(p.first.id, p.second.id)): p for p in found}
    right = told.keys() & injected.keys()
    kinds = Counter(injected.values())
    by_kind = Counter(injected[pair] for pair in right)
    result: dict[str, object] = {
        "records": records, "real": real, "injected": len(injected), "vectors": used, "least": options.least,
        "found": len(told), "precision": round(len(right) / max(len(told), 1), 4),
        "recall": round(len(right) / max(len(injected), 1), 4),
        "by_kind": dict(kinds),
        "recall_by_kind": {kind: round(by_kind[kind] / n, 3) for kind, n in kinds.items()},
        "seconds": round(seconds[0], 2), "processor_seconds": round(seconds[1], 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip
    print(json.dumps(result))
    for wrong in [told[pair] for pair in told if pair not in injected][: options.show]:
        print(wrong.score, wrong.reasons, wrong.first.title, wrong.second.title, sep=" | ")
    return result


if __name__ == "__main__":
    main()
