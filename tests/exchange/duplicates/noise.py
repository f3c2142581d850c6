"""The same work as another cataloguer would have described it."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

from indlet.model import Metadata

Described = dict[str, list[str]]
Noise = Callable[[Described, random.Random], None]


def typos(record: Described, chance: random.Random) -> None:
    """One slip in every thirty letters of the title, and at times one in a name."""
    for element, every in (("title", 30), ("creator", 60)):
        record[element] = [
            _slips(value, max(len(value) // every, element == "title"), chance)
            for value in record.get(element, [])
        ]


def _slips(value: str, count: int, chance: random.Random) -> str:
    letters = list(value)
    for _ in range(count):
        places = [i for i, c in enumerate(letters[:-1]) if c.isalpha() and letters[i + 1].isalpha()]
        if not places:
            break
        at = chance.choice(places)
        kind = chance.randrange(4)
        if kind == 0:
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
        elif kind == 1:
            del letters[at]
        elif kind == 2:
            letters.insert(at, letters[at])
        else:
            letters[at] = chance.choice(string.ascii_lowercase)
    return "".join(letters)


def truncation(record: Described, chance: random.Random) -> None:
    """A field of a fixed width cut the title."""
    for title in record.get("title", [])[:1]:
        record["title"] = [title[: max(25, int(len(title) * chance.uniform(0.5, 0.8)))]]


def name_forms(record: Described, chance: random.Random) -> None:
    """ "Austen, Jane, 1775-1817" as "Jane Austen" or "Austen, J."."""
    record["creator"] = [_other_form(name, chance) for name in record.get("creator", [])]


def _other_form(name: str, chance: random.Random) -> str:
    family, comma, rest = name.partition(",")
    given = rest.partition(",")[0].strip(" .")
    if not comma or not given or any(c.isdigit() for c in given):
        return name
    return f"{given} {family}" if chance.random() < 0.5 else f"{family.upper()}, {given[0]}."


def other_rules(record: Described, chance: random.Random) -> None:
    """No subtitle, or a statement of responsibility; other dates; no identifiers; the first author only."""
    for title in record.get("title", [])[:1]:
        short = title.partition(" : ")[0]
        by = f" / {record['creator'][0]}" if record.get("creator") else " / edited by various hands"
        record["title"] = [short if len(short) > 15 and chance.random() < 0.5 else title.upper() + by]
    record["date"] = [f"c{value[:4]}." if value[:4].isdigit() else value for value in record.get("date", [])]
    record["creator"] = record.get("creator", [])[:1]
    record.pop("identifier", None)
    record.pop("contributor", None)


KINDS: dict[str, Noise] = {
    "typos": typos,
    "truncation": truncation,
    "name forms": name_forms,
    "other rules": other_rules,
}


def noisy(metadata: Metadata, kind: str, chance: random.Random) -> Described:
    """A record of the same work with one kind of noise, and without what would name it in any catalogue."""
    record = {element: list(values) for element, values in metadata.items()}
    record.pop("identifier", None)
    KINDS[kind](record, chance)
    return {element: values for element, values in record.items() if values}
