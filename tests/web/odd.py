"""Odd records that look like real ones: for pages that have to bear anything."""

from __future__ import annotations

import random
from collections.abc import Iterator

from indlet.model import Record

LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
TITLES = (
    "Gale warnings and $\\alpha$-decay of $^{12}$C in $\\mathcal{O}(n^2)$ steps",
    f"Gale {LONG} {LONG}",
    "The gale of 1601: " + "x" * 99,
    "Gale <script>alert(1)</script> & \"quotes\" 'and' more",
    "Über die naïve Gale der Müller’schen Mühle",
    "Étude de la gale: réseaux neuronaux",
    "風 gale の研究",
    "gale",
    "A gale that costs $5 or $10",
    "\u202eGale reversed\u202c and zero\u200bwidth",
    "Gale " + "word " * 60,
)
PEOPLE = (
    "Wang, Wei", "Wei Wang", "Wang, W.", LONG, "Ministry of Winds and Weather", "O'Neill, Síle",
    "Müller, Jörg", "王伟", "van der Berg, Jan", "b" * 90,
)  # fmt: skip
SUBJECTS = (
    "Storms",
    "storms",
    "s" * 100,
    "Mathematics > Algebra > Rings",
    "C++",
    "水",
    "http://example.org/" + "u" * 80,
)
SETS = (("winds:storms",), ())
KINDS = ("Journal article", "Thesis", "t" * 90, "Data set", "Conference paper", "")


def odd_records(count: int, seed: int = 3) -> Iterator[Record]:
    chance = random.Random(seed)
    for number in range(count):
        metadata = {
            "title": [f"{chance.choice(TITLES)} {number if number % 3 else ''}"] if number % 50 else [],
            "creator": chance.sample(PEOPLE, chance.randint(0, 4)),
            "subject": chance.sample(SUBJECTS, chance.randint(0, 3)),
            "description": [
                chance.choice((f"https://example.org/{'b' * 99}", "Of gales. " * 30, "$E=mc^2$ " + LONG))
            ],
            "date": [
                "1601" if number == 40 else chance.choice(("2004-05", "2011-11-02", "n.d.", "2019", "2020"))
            ],
            "type": [kind] if (kind := chance.choice(KINDS)) else [],
            "format": [chance.choice(("application/pdf", "text/html", "12 p.", "application/x-" + "f" * 60))],
            "language": [chance.choice(("en", "eng", "de", "fr", "zxx", "l" * 60))],
            "identifier": [
                f"https://example.org/{'a' * chance.randint(1, 120)}/{number}",
                f"doi:10.5555/odd.{number}",
            ],
            "relation": [f"https://example.org/{'r/' * 150}"] if number % 7 == 0 else [],
            "rights": ["©" * 150] if number % 11 == 0 else [],
            "source": [chance.choice(("Journal of Gales", "v" * 120, "ISSN 1234-5679"))],
        }
        name = f"oai:odd:{number}" if number % 5 else f"oai:odd:{number}-{'y' * 150}"
        yield Record(
            name, {k: v for k, v in metadata.items() if v}, sets=("a:" + "c" * 80, *SETS[number % 2])
        )
