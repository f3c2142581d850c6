"""Known items: the rank of the record that somebody looks for by title, identifier, or author and year.

    python -m bench.known_items PLACE [--records 1000] [--seed 1] [--misses] [--json FILE]

PLACE is the data folder of a node, or a folder or a tar file of ListRecords responses with a folder for each
repository; their records go into one store, as a harvest would put them. For records drawn at random the
title is pasted whole (where the portal shows it without TeX or HTML, so too), and each identifier as stated
and in the other forms that people paste. Three figures are told of each: the mean reciprocal rank of the
very record (or of the hit that it is part of, if several sources hold its resource); the same where records
that cannot be told from it by what was pasted count as equal (those with the same title, the same identifier,
or by the same author in the same year); and "alone", the first for what was pasted of records that have no
equal.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple

from indlet.errors import IndletError
from indlet.formats import identifiers, people
from indlet.model import Record
from indlet.oai.read import read
from indlet.service.index.dates import date_number
from indlet.service.index.keys import title_keys
from indlet.service.records.normalise import Normaliser, resource_key
from indlet.service.search.library import Library
from indlet.service.search.results import Hit
from indlet.store.sqlite.store import FILE_NAME
from indlet.text import Analyzer
from indlet.web.math_text import readable

DEPTH = 20
Told = tuple[str, str]  # a source and an identifier


class Item(NamedTuple):
    """A record to look for, and whose it is."""

    source: str
    record: Record


class Rank(NamedTuple):
    """What was pasted for a record, its rank (0: not found), that of the first which is as good, and whether
    there is another that is as good."""

    text: str
    wanted: str
    rank: int
    equal: int
    shared: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("place", type=Path)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misses", action="store_true", help="print each that was not first")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    node = (given.place / FILE_NAME).is_file()
    with tempfile.TemporaryDirectory() as name, Library.open(given.place if node else Path(name)) as library:
        held = list(stored(library) if node else filled(library, pages(given.place)))
        library.sync()
        drawn = random.Random(given.seed).sample(held, min(given.records, len(held)))
        result: dict[str, object] = {
            "held": len(held),
            "drawn": len(drawn),
            "attainable by title": attainable(held, drawn),
        }
        for kind, ranks in measured(library, drawn).items():
            result[kind] = told(ranks)
            if given.misses:
                for one in ranks:
                    if one.rank != 1:
                        print(f"{kind}\t{one.rank}\t{one.equal}\t{one.wanted}\t{one.text}", file=sys.stderr)
    written = json.dumps(result, indent=2)
    print(written)
    if given.json:
        given.json.write_text(written + "\n", encoding="utf-8")


def pages(place: Path) -> Iterator[tuple[str, bytes]]:
    """(repository, response) for each XML file."""
    if place.is_dir():
        for path in sorted(place.rglob("*.xml")):
            yield path.parent.name, path.read_bytes()
        return
    with tarfile.open(place) as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            if member.name.endswith(".xml") and (file := archive.extractfile(member)):
                yield Path(member.name).parent.name, file.read()


def stored(library: Library) -> Iterator[Item]:
    """The records of a node."""
    with library.store.read() as view:
        names = {origin.id: origin.name for origin in view.origins()}
        for one in view.changes(parts=("metadata", "properties")):
            if not one.deleted:
                yield Item(names[one.origin], one.record)


def filled(library: Library, found: Iterator[tuple[str, bytes]]) -> Iterator[Item]:
    """What was put into the store: each record once, deleted and unreadable ones left out."""
    records: dict[Told, Record] = {}
    normaliser = Normaliser(Analyzer())
    for source, body in found:
        try:
            items = read(body).items
        except IndletError:
            continue
        for item in items:
            try:
                record = normaliser.record(item)
            except IndletError:
                continue
            if not record.deleted:
                records[source, record.identifier] = record
    by_source: dict[str, list[Record]] = defaultdict(list)
    for (source, _), record in records.items():
        by_source[source].append(record)
    for source, some in by_source.items():
        with library.store.write() as tx:
            tx.put(tx.origin("source", source), some)
        yield from (Item(source, record) for record in some)


def attainable(held: Sequence[Item], drawn: Sequence[Item]) -> float:
    """The mean reciprocal rank by title where records of one title come first, in an order by chance."""
    counts = Counter(map(_first_title, held))
    found = [counts[title] for item in drawn if (title := _first_title(item))]
    shares = [sum(1 / rank for rank in range(1, n + 1)) / n for n in found]
    return round(sum(shares) / max(len(shares), 1), 4)


def _first_title(item: Item) -> str:
    return "".join(title_keys(next(iter(item.record.metadata.get("title", ())), "")))


def measured(library: Library, drawn: Sequence[Item]) -> dict[str, list[Rank]]:
    kinds = ("title", "title as shown", "identifier", "author and year")
    found: dict[str, list[Rank]] = {kind: [] for kind in kinds}
    for item in drawn:
        titles = item.record.metadata.get("title", ())
        if titles and (key := title_keys(titles[0])):
            found["title"].append(ranked(library, titles[0], item, _has_title(key)))
            if (shown := readable(titles[0])) != titles[0]:
                found["title as shown"].append(ranked(library, shown, item, _has_title(key)))
        stated = item.record.metadata.get("identifier", ())
        for value in dict.fromkeys((item.record.identifier, *stated)):
            for form in pasted(value):
                found["identifier"].append(ranked(library, form, item, _has_identifier(value)))
        creators, date = item.record.metadata.get("creator", ()), date_number(item.record.metadata)
        if creators and date and '"' not in creators[0]:
            text = f'creator:"{creators[0]}" date:{date // 10000:04}'
            equal = _is_by(creators[0], f"{date // 10000:04}")
            found["author and year"].append(ranked(library, text, item, equal))
    return found


def _has_title(key: Sequence[str]) -> Callable[[Hit], bool]:
    return lambda hit: any(title_keys(title) == key for title in hit.metadata.get("title", ()))


def _has_identifier(value: str) -> Callable[[Hit], bool]:
    keys = set(identifiers.keys_of(value))
    return lambda hit: any(
        keys & set(identifiers.keys_of(one)) for one in (hit.identifier, *hit.metadata.get("identifier", ()))
    )


def _is_by(name: str, year: str) -> Callable[[Hit], bool]:
    keys = set(people.query_keys(name))

    def by(hit: Hit) -> bool:
        names = [each for one in hit.creators for each in people.names(one)]
        return hit.year == year and any(keys & set(people.record_keys(each)) for each in names)

    return by


def pasted(value: str) -> list[str]:
    """An identifier as it is stated, and in the other forms that people have it in."""
    forms = [value]
    for key in identifiers.keys_of(value):
        scheme, _, name = key.partition(":")
        if len(key) >= 100:
            continue  # cut
        if scheme == "doi":
            quoted = name.replace("/", "%2F", 1)
            forms += [name, f"doi:{name}", f"DOI: {name.upper()}", f"https://doi.org/{quoted}"]
        elif scheme == "hdl":
            forms += [name, f"hdl:{name}", f"https://hdl.handle.net/{name}"]
        elif scheme == "isbn":
            forms += [name, f"ISBN {name}", f"{name[:3]}-{name[3:12]}-{name[12:]}"]
        elif scheme == "arxiv":
            forms += [name, f"arXiv:{name}v2", f"https://arxiv.org/abs/{name}"]
        elif scheme == "url":
            forms += [name, f"https://{name}", f"http://www.{name}" if "?" in name else f"http://www.{name}/"]
            forms.append(unescape(name))
    return list(dict.fromkeys(forms))


def ranked(library: Library, text: str, item: Item, equal: Callable[[Hit], bool]) -> Rank:
    try:
        hits = library.search(text, limit=DEPTH).hits
    except IndletError:
        hits = ()
    very = next((hit.rank for hit in hits if _is(hit, item)), 0)
    as_good = next((hit.rank for hit in hits if _is(hit, item) or equal(hit)), 0)
    shared = any(equal(hit) and not _is(hit, item) for hit in hits)
    return Rank(text, item.record.identifier, very, as_good, shared)


def _is(hit: Hit, item: Item) -> bool:
    """Whether a hit is a record, or holds it beside one of another source that has the same resource."""
    if item.source not in (hit.sources or (hit.source,)):
        return False
    if hit.identifier == item.record.identifier:
        return True
    resources = {resource_key(one.identifier, one.metadata) for one in (hit, item.record)}
    return hit.source != item.source and len(resources) == 1


def told(ranks: Sequence[Rank]) -> dict[str, float]:
    alone = [one.rank for one in ranks if not one.shared]
    return {
        "asked": len(ranks),
        "first": sum(one.rank == 1 for one in ranks),
        "reciprocal_rank": _mean([one.rank for one in ranks]),
        "equal_first": sum(one.equal == 1 for one in ranks),
        "equal_reciprocal_rank": _mean([one.equal for one in ranks]),
        "alone": len(alone),
        "alone_reciprocal_rank": _mean(alone),
    }


def _mean(ranks: Sequence[int]) -> float:
    return round(sum(1 / rank for rank in ranks if rank) / max(len(ranks), 1), 4)


if __name__ == "__main__":
    main()
