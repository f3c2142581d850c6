"""Subjects of one library in the codes of another, by the four methods of TRI: validity and cost.

    INDLET_DATA=… python -m bench.evidence.subjects

The stories of Reuters that have topics are split into two libraries. One codes them finely (the topics), the
other coarsely (14 fields, each of several topics). Each library's records get the codes of the other by every
method, and these are compared with what that library's cataloguers would have given. The paper (Liu et al.,
section 4.2) announces this comparison and does not print it.

A pairwise table is what somebody makes who looks at a sample of records that both libraries hold: a row for
each pair of codes that occurs in at least half of the records with the first. The unified scheme is one of
five broad fields. Text gives no codes: a subject counts as right if its words are the other library's label.
"""

from __future__ import annotations

import gzip
import html
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from indlet.formats.subjects import SubjectClassifier, SubjectTable, through
from indlet.text import Analyzer, Policy

FIELDS: Final = {
    "grains": "grain wheat corn barley oat rye sorghum rice",
    "oilseeds": "oilseed soybean sunseed rapeseed cottonseed groundnut linseed castorseed copra-cake",
    "oils": "veg-oil soy-oil palm-oil sun-oil rape-oil coconut-oil groundnut-oil palmkernel cotton-oil "
    "lin-oil",
    "meals": "meal-feed soy-meal sun-meal rape-meal lin-meal tapioca",
    "livestock": "livestock carcass hog l-cattle f-cattle pork-belly",
    "softs": "sugar coffee cocoa cotton orange tea rubber lumber wool potato plywood jute",
    "precious": "gold silver platinum palladium",
    "metals": "copper zinc lead tin nickel alum iron-steel strategic-metal",
    "energy": "crude nat-gas gas fuel heat jet naphtha propane pet-chem",
    "currencies": "money-fx dlr yen dmk stg can austdlr saudriyal nzdlr sfr lit dfl rand",
    "interest": "interest money-supply reserves instal-debt",
    "output": "gnp ipi jobs income housing wpi cpi lei retail inventories cpu bop trade",
    "companies": "earn acq", "ships": "ship",
}  # fmt: skip
COMMON: Final = {
    "farm": "grains oilseeds oils meals livestock softs", "mines": "precious metals", "energy": "energy",
    "economy": "currencies interest output", "business": "companies ships",
}  # fmt: skip
SAMPLE: Final = 500
_STORY = re.compile(r"<REUTERS.*?</REUTERS>", re.DOTALL)


@dataclass(frozen=True)
class Coded:
    fine: tuple[str, ...]
    coarse: tuple[str, ...]
    terms: dict[str, int]


def stories(folder: Path) -> list[Coded]:
    field_of = {topic: name for name, topics in FIELDS.items() for topic in topics.split()}
    analyzer = Analyzer(Policy(language="en"))
    found = []
    for path in sorted((folder / "reuters21578").glob("reut2-*.sgm.gz")):
        text = gzip.decompress(path.read_bytes()).decode("latin-1")
        for story in _STORY.findall(text):
            topics = re.search(r"<TOPICS>(.*?)</TOPICS>", story, re.DOTALL)
            fine = [t for t in re.findall(r"<D>(.*?)</D>", topics[1] if topics else "") if t in field_of]
            if not fine:
                continue
            body = story.partition("<TEXT")[2].partition(">")[2].partition("</TEXT>")[0]
            plain = html.unescape(re.sub(r"<[^<>]{1,80}>", " ", body))
            coarse = tuple(dict.fromkeys(field_of[t] for t in fine))
            found.append(Coded(tuple(fine), coarse, analyzer.vector(plain, "en").frequencies()))
    return found


def pairwise(sample: Sequence[tuple[Sequence[str], Sequence[str]]]) -> SubjectTable:
    together: Counter[tuple[str, str]] = Counter()
    alone: Counter[str] = Counter()
    for one, other in sample:
        for code in one:
            alone[code] += 1
            together.update((code, to) for to in other)
    rows: dict[str, list[str]] = {}
    for (code, to), count in together.items():
        if 2 * count >= alone[code]:
            rows.setdefault(code, []).append(to)
    return SubjectTable({code: tuple(to) for code, to in rows.items()})


def inverted(groups: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {member: (name,) for name, members in groups.items() for member in members.split()}


def compared(
    given: Callable[[Coded], Sequence[str]], truth: Callable[[Coded], Sequence[str]], records: Iterable[Coded]
) -> tuple[float, float, float]:
    """Precision and recall over all codes, and milliseconds a record."""
    right = told = wanted = count = 0
    spent = 0.0
    for record in records:
        start = time.process_time()
        codes = set(given(record))
        spent += time.process_time() - start
        meant = set(truth(record))
        right, told, wanted = right + len(codes & meant), told + len(codes), wanted + len(meant)
        count += 1
    return right / max(told, 1), right / max(wanted, 1), 1000 * spent / max(count, 1)


def measured(data: Path) -> list[dict[str, object]]:
    """A row for each direction and method."""
    records = stories(data)
    random.Random(1).shuffle(records)
    half = len(records) // 2
    coded, other = records[:half], records[half:]
    return [
        *_direction("coarse to fine", coded, other, lambda r: r.coarse, lambda r: r.fine),
        *_direction("fine to coarse", coded, other, lambda r: r.fine, lambda r: r.coarse),
    ]


def _direction(
    name: str,
    coded: Sequence[Coded],
    other: Sequence[Coded],
    source: Callable[[Coded], Sequence[str]],
    target: Callable[[Coded], Sequence[str]],
) -> Iterator[dict[str, object]]:
    """`coded` records have source codes and get those of the target; `other` records have target codes."""
    sample, rest = coded[:SAMPLE], coded[SAMPLE:]
    table = pairwise([(source(r), target(r)) for r in sample])
    fine_to_coarse = inverted(FIELDS)
    to_common = inverted(COMMON)
    up = {fine: to_common[field[0]] for fine, field in fine_to_coarse.items()} | to_common
    known = {code for r in other for code in target(r)}
    down: dict[str, list[str]] = {}
    for code in sorted(known):
        down.setdefault(up[code][0], []).append(code)
    first = SubjectTable({code: up[code] for r in coded for code in source(r)})
    unified = through(first, SubjectTable({code: tuple(to) for code, to in down.items()}))
    start = time.process_time()
    classifier = SubjectClassifier()
    classifier.learn((r.terms, target(r)) for r in other)
    learned = time.process_time() - start
    for method, given, cost in (
        ("unified", lambda r: unified.codes(source(r)), f"{first.rows} + {len(known)} rows by hand"),
        (
            "pairwise",
            lambda r: table.codes(source(r)),
            f"{table.rows} rows, from {SAMPLE} records coded twice",
        ),
        (
            "automatic",
            lambda r: classifier.classify(r.terms),
            f"{learned:.1f} s to learn {len(other):,} records",
        ),
        ("text", source, f"{len(first.mapped)} labels"),
    ):
        precision, recall, spent = compared(given, target, rest)
        yield {
            "direction": name, "method": method, "precision": round(precision, 4), "recall": round(recall, 4),
            "milliseconds": round(spent, 4), "cost": cost, "records": len(rest),
        }  # fmt: skip


def main() -> None:
    place = os.environ.get("INDLET_DATA", "")
    if not place:
        sys.exit("set INDLET_DATA to the folder of the collections")
    print("precision, recall, ms a record; cost")
    for row in measured(Path(place)):
        print(
            f"{row['direction']}  {row['method']:<10} {row['precision']:6.3f} {row['recall']:6.3f} "
            f"{row['milliseconds']:8.3f}   {row['cost']}"
        )


if __name__ == "__main__":
    main()
