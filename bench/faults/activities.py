"""What is disturbed: crawl, harvest, commit, merge, reindex, migration; each from a given state."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.processes import Node

from indlet.errors import IndletError
from indlet.model import Record, TermVector
from indlet.provider.pipeline import crawl
from indlet.service.index import follow
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.merge_scheduler import merge_once
from indlet.service.index.engines import folder
from indlet.service.pipeline import harvest_all
from indlet.settings import Crawl, Harvest, Hierarchy, Settings, Source
from indlet.settings import Node as NodeSettings
from indlet.store import Store, packed
from indlet.store.sqlite.migrations import first_schema

WORDS = [f"word{n}" for n in range(400)]


@dataclass(frozen=True)
class Activity:
    prepare: Callable[[Path], None]  # makes the state to begin with
    run: Callable[[Path], None]
    indexed: bool = True  # whether the index is compared afterwards, once it has caught up


def records(count: int, first: int = 0, seed: int = 5) -> list[Record]:
    chance = random.Random(seed + first)
    made = []
    for number in range(first, first + count):
        terms = dict.fromkeys(chance.sample(WORDS, 12), 1 + number % 3)
        metadata = {"title": [f"Record {number}"], "date": [str(1950 + number % 70)]}
        made.append(Record(f"oai:x:{number}", metadata, TermVector.of(terms), (f"s:{number % 5}",)))
    return made


def fill(store: Store, batches: int, size: int, index: bool = False) -> None:
    """So many transactions; every third changes and deletes some of what was there."""
    for batch in range(batches):
        with store.write() as tx:
            origin = tx.origin("hierarchy", "x")
            tx.put(origin, records(size, batch * size))
            if batch % 3 == 2:
                tx.put(origin, records(size // 4, (batch - 1) * size, seed=6))
                tx.delete(origin, [f"oai:x:{n}" for n in range((batch - 2) * size, (batch - 2) * size + 5)])
        if index:
            follow.catch_up(store)


def _prepare_commit(data: Path) -> None:
    with Store.open(data) as store:
        fill(store, 2, 60, index=True)
        for batch in range(2, 6):
            with store.write() as tx:
                tx.put(tx.origin("hierarchy", "x"), records(60, batch * 60))
                tx.delete(tx.origin("hierarchy", "x"), [f"oai:x:{batch}"])


def _commit(data: Path) -> None:
    with Store.open(data) as store:
        follow.catch_up(store, chunk=50)


def _prepare_merge(data: Path) -> None:
    with Store.open(data) as store:
        fill(store, 9, 40, index=True)


def _merge(data: Path) -> None:
    with Store.open(data) as store:
        merge_once(folder(store), everything=True)


def _reindex(data: Path) -> None:
    with Store.open(data) as store:
        follow.rebuild(store, chunk=80)


def _prepare_migration(data: Path) -> None:
    """A store of the first release."""
    data.mkdir(parents=True)
    with sqlite3.connect(data / "store.sqlite") as connection:
        first_schema(connection)
        connection.execute("INSERT INTO origins (kind, name) VALUES ('source', 's')")
        for number, record in enumerate(records(300), 1):
            row = packed(record)
            vector = record.vector
            assert vector is not None
            connection.execute(
                "INSERT INTO records VALUES (?, ?, 1, ?, 1000, 0, 's', 'en', ?, 0, ?, ?, ?, ?, ?, NULL, ?)",
                (number, number, record.identifier, vector.length, row.digest, b'{"title":["W"]}', b"{}",
                 b"<x/>", vector.packed, b""),
            )  # fmt: skip
        connection.execute("INSERT INTO meta VALUES ('seq', 300)")
        connection.execute("INSERT INTO ticks VALUES (1000, 300)")
        connection.execute("PRAGMA user_version = 1")
    connection.close()


def _open(data: Path) -> None:
    with Store.open(data) as store, store.write() as tx:
        tx.put(tx.origin("source", "s"), records(5, 1000))


def _crawling(files: Path) -> Activity:
    settings = Settings(
        node=NodeSettings(base_url="http://node.example"),  # identifiers are made of it
        hierarchy=(Hierarchy(str(files), name="files"),),
        crawl=Crawl(settle_seconds=0.0, workers=1),
    )

    def run(data: Path) -> None:
        with Store.open(data) as store:
            crawl(store, settings)

    return Activity(lambda data: Store.open(data).close(), run)


def _harvesting(url: str) -> Activity:
    settings = Settings(harvest=Harvest(retries=1, backoff_seconds=0.05))

    def run(data: Path) -> None:
        with Store.open(data) as store:
            [progress] = harvest_all(store, settings, [Source(url, name="there")], index=False)
            if progress.outcome != "complete":
                raise IndletError(progress.reason or progress.outcome)

    return Activity(lambda data: Store.open(data).close(), run)


def provider(place: Path) -> Node:
    """A node that is harvested; to be entered."""
    data = place / "provider-data"
    with Store.open(data) as store:
        fill(store, 6, 60)
    (place / "provided").mkdir()
    more = f'[serve]\nrecords_per_page = 40\n[[hierarchy]]\nroot = "{place / "provided"}"\nname = "x"\n'
    return Node(place, "provider", more, data=data)


def activities(place: Path, url: str) -> dict[str, Activity]:
    files = place / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    chance = random.Random(3)
    for number in range(60):
        (files / f"{number}.txt").write_text(" ".join(chance.choices(WORDS, k=40)))
    return {
        "harvest": _harvesting(url),
        "commit": Activity(_prepare_commit, _commit),
        "merge": Activity(_prepare_merge, _merge),
        "reindex": Activity(_prepare_merge, _reindex),
        "migration": Activity(_prepare_migration, _open),
        "crawl": _crawling(files),
    }


def state(data: Path) -> tuple[object, object]:
    """What the laws compare: the records, and what the index says of every term once it has caught up."""
    with Store.open(data) as store:
        with store.read() as view:
            found = list(view.changes())
            rows = sorted((s.identifier, s.deleted, s.sets, s.vector, s.metadata) for s in found)
            dates = [s.datestamp for s in sorted(found, key=lambda s: s.seq)]
        assert dates == sorted(dates), "datestamps go back along the list"
        assert len({s.seq for s in found}) == len(found), "a number of the change feed was given twice"
        follow.catch_up(store)
        with Engine.open(folder(store)) as engine:
            engine.verify()
            terms = sorted(engine.searcher().terms())
    return rows, terms
