"""A small invented collection: generic reports that no person wrote, enough to make searching interesting."""

from __future__ import annotations

import random
from collections.abc import Iterator

from indlet.model import Record
from indlet.store import Store
from indlet.text import Analyzer, Policy

TOPICS = {
    "harvesting metadata": "protocol repository harvester datestamp resumption token provider record",
    "shock waves": "aerofoil boundary layer supersonic pressure wing flow shock wave turbulence tunnel drag",
    "digital preservation": "archive format migration emulation checksum obsolescence storage copy trust",
    "full-text retrieval": "index query ranking term frequency document relevance probability vector",
    "river ecology": "sediment catchment species flood water quality habitat invertebrate nutrient discharge",
    "opera production": "stage libretto score singer orchestra rehearsal premiere scenery voice conductor",
    "soil chemistry": "nitrogen carbon acid moisture clay nutrient crop fertiliser sample laboratory",
    "railway timetables": "train line station delay passenger capacity network schedule interval junction",
}
GERMAN = "Bibliothek Katalog Archiv Sammlung Bestand Nutzung Speicher Dokument Verzeichnis Suche Leser"
TYPES = ("Technical report", "Journal article", "Thesis", "Book", "Dataset")
GROUPS = (
    "Working Group A",
    "Working Group B",
    "Field Station North",
    "Reading Room Committee",
    "Test Laboratory",
)
SOURCES = ("North Library", "Technical Reports", "Stadtarchiv")


def records(count: int = 200, seed: int = 7) -> Iterator[tuple[int, Record]]:
    """(number of the source, record): the same ones for the same seed."""
    chance = random.Random(seed)
    analyzer = Analyzer(Policy())
    topics = list(TOPICS.items())
    for number in range(count):
        german = number % 9 == 4
        topic, words = topics[number % len(topics)]
        vocabulary = GERMAN.split() if german else words.split()
        said = [chance.choice(vocabulary) for _ in range(chance.randint(60, 240))]
        if not german:
            said += topic.split() * chance.randint(1, 6)
        one, two = chance.choice(vocabulary), chance.choice(vocabulary)
        title = f"{topic.capitalize()}: {one} and {two}, part {number}"
        if german:
            title = f"Bericht über {one} und {two}, Teil {number}"
        year = 1960 + int(62 * chance.random() ** 0.6)
        source = 2 if german else number % 2
        language = "de" if german else "en"
        sentence = " ".join(chance.choice(vocabulary) for _ in range(28))
        address = f"https://files.example.org/{source}/report-{number}"
        metadata = {
            "title": [title],
            "creator": [chance.choice(GROUPS)] + ([chance.choice(GROUPS)] if number % 5 == 0 else []),
            "subject": [topic if not german else "Bestandserschließung", chance.choice(vocabulary)],
            "description": [f"On {sentence}. It covers {topic} in {1 + number % 4} parts."],
            "publisher": [SOURCES[source]],
            "date": [f"{year}-{1 + number % 12:02}-{1 + number % 28:02}"],
            "type": [TYPES[number % len(TYPES)]],
            "language": [language],
            "identifier": [f"{address}.pdf", f"TR-{1000 + number}"],
            "rights": ["Statistics public, content at its owner"],
        }
        copies = [
            {
                "url": f"{address}.pdf",
                "media_type": "application/pdf",
                "size": 90_000 + number * 731,
                "primary": True,
            }
        ]
        if number % 3 == 0:
            copies.append(
                {
                    "url": f"{address}.html",
                    "media_type": "text/html",
                    "size": 9_000 + number,
                    "primary": False,
                }
            )
        properties = {
            "url": f"{address}.pdf",
            "media_type": "application/pdf",
            "manifestations": copies,
            "restricted": number % 11 == 3,
            "source_datestamp": "2026-11-01T09:30:00Z",
        }
        vector = analyzer.vector(" ".join([*said, sentence, title]), language)
        yield (
            source,
            Record(
                identifier=f"oai:{('north', 'reports', 'stadt')[source]}.example.org:{1000 + number}",
                metadata=metadata,
                vector=vector,
                sets=(f"topic:{number % len(topics)}", "reports"),
                properties=properties,
            ),
        )


def fill(store: Store, count: int = 200) -> None:
    """Put the collection into a store, with a deletion, a failure and a short journal for each source."""
    from indlet.model import Failure

    with store.write() as tx:
        origins = [
            tx.origin("source", name, {"url": f"http://127.0.0.1:9/{i}/oai", "every": "1d"})
            for i, name in enumerate(SOURCES)
        ]
        found: list[list[Record]] = [[], [], []]
        for source, record in records(count):
            found[source].append(record)
        for origin, part in zip(origins, found, strict=True):
            tx.put(origin, part)
    with store.write() as tx:
        for origin, part in zip(origins, found, strict=True):
            tx.delete(origin, [part[-1].identifier])
            tx.state(
                origin,
                {
                    "format": "oai_dc+tf_compact", "reconciliation": "identical", "loss": [],
                    "granularity": "second", "deleted_record": "persistent", "repairs": {"retried: later": 2},
                },
            )  # fmt: skip
            for n in range(6):
                run = tx.start_run(origin, "harvest")
                tx.note_run(
                    run,
                    {
                        "records": len(part) // (n + 1), "deleted": n % 2, "changed": len(part) // (n + 2),
                        "bytes": 40_000 // (n + 1), "seconds": 0.4 + n / 10, "requests": 3 + n,
                    },
                    "complete",
                )  # fmt: skip
        tx.fail(
            origins[1],
            Failure("oai:reports.example.org:9999", "harvest", "no title", b"<dc>\x00\xffbad</dc>"),
        )
        tx.fail(
            origins[1],
            Failure("oai:reports.example.org:9998", "harvest", "unclosed", b"<oai_dc:dc><dc:title>"),
        )
