"""The tour: provide, harvest, search, change, and see the change arrive; each step says what it did."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from indlet.demo.stage import Children, Provider
from indlet.errors import IndletError

if TYPE_CHECKING:
    from indlet.service.harvest.progress import Progress
    from indlet.service.search.library import Library
    from indlet.service.search.results import Result

WIDTH = 80
QUERIES = (
    ("salt wind", "words that both collections know"),
    ("Sturmflut OR surge", "one thing, said in German and in English"),
)
PRIVATE_QUERY = "bank AND insurers"
SHOWN, DEPTH = 5, 200
# As many models as a terminal has room for.
_COMPARED = ("bm25", "vsm", "lm-dirichlet", "lm-jm", "boolean")
_SHORT = {"lm-dirichlet": "dirichlet", "lm-jm": "jm"}

# What happens to the collections while the tour watches. None: the file is deleted.
CHANGES: dict[str, str | None] = {
    "orchard/kitchen/marmalade.md": """---
title: Marmalade
author: Kitchen school
date: 2024-01-29
keywords: [marmalade, pectin, oranges]
lang: en
---

# Marmalade

Bitter oranges come for a few weeks in January. The pips and the pith hold the pectin: tied in a cloth, they
soak over night with the shredded peel and boil with it until the peel is soft. Only then comes the sugar, for
in sugar no peel softens any more. A wide pan, a hard boil, a drop on a cold plate.
""",
    "orchard/kitchen/jam-pectin.md": "\nBitter oranges set by themselves: marmalade came first.\n",
    "harbour/navigation/What_radar_sees_in_rain.txt": None,
}
WATCHED = ("marmalade", "radar AND rain")


class Tour:
    def __init__(self, console: Console, providers: Sequence[Provider], children: Children) -> None:
        self.console, self.providers, self.children = console, providers, children
        self.begun = time.monotonic()
        self.step = 0

    def head(self, verb: str, text: str) -> None:
        self.step += 1
        self.console.print()
        self.console.print(
            Text.assemble((f" {self.step}  ", "bold cyan"), (f"{verb:<9}", "bold"), (text, ""))
        )
        self.console.print()

    def put(self, what: RenderableType) -> None:
        self.console.print(Padding(what, (0, 0, 0, 4), expand=False))

    def say(self, text: str, style: str = "") -> None:
        self.put(Text(text, style=style))

    @contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """A moving sign on a terminal; nothing elsewhere."""
        if self.console.is_terminal:
            with self.console.status(Text(text, style="dim"), spinner="dots"):
                yield
        else:
            yield

    def provide(self) -> None:
        self.head("Provide", "two collections, each crawled and served by its owner")
        with self.busy("the providers start, crawl, extract and analyse"):
            for provider in self.providers:
                provider.begin_serving(self.children)
            for provider in self.providers:
                provider.await_serving()
                provider.begin_crawl(self.children)
            found = [provider.await_crawl() for provider in self.providers]
        table = grid("provider", ">files", ">records", ">content", "served at")
        for provider, summary in zip(self.providers, found, strict=True):
            table.add_row(
                provider.title,
                f"{summary['files']:,}",
                f"{summary['records']:,}",
                amount(provider.content_bytes),
                f"{provider.url}/ft-oai",
            )
        self.put(table)
        self.console.print()
        kinds = {path.suffix[1:] for provider in self.providers for path in provider.files()}
        self.say(f"Formats: {', '.join(sorted(kinds))}.")
        self.say("The logbook is private: its statistics are given out, its pages are not.")

    def harvest(self, library: Library) -> list[Progress]:
        self.head("Harvest", "metadata and term statistics travel; the content stays")
        # Datestamps have seconds: begun in the next one, the first harvest is clear of the crawl, and the
        # second harvest need not bring anything again.
        time.sleep(1 - time.time() % 1)
        done = self._harvest(library)
        self._show_harvest(done)
        content = sum(provider.content_bytes for provider in self.providers)
        moved = sum(progress.bytes for progress in done)
        share = f"{moved / content:.0%}"
        self.say(f"{amount(moved)} moved for {amount(content)} of content: {share}, metadata included.")
        return done

    def _harvest(self, library: Library) -> list[Progress]:
        from indlet.service.pipeline import harvest_all

        with self.busy("the service harvests"):
            done = harvest_all(library.store, library.settings, index=False)
        for progress in done:
            if progress.outcome != "complete":
                raise IndletError(f"{progress.source} could not be harvested: {progress.reason}")
        return done

    def _show_harvest(self, done: list[Progress]) -> None:
        table = grid("source", "index format", ">records", ">deletions", ">requests", ">bytes moved")
        for progress in done:
            table.add_row(
                progress.source,
                progress.form.rpartition("+")[2].strip() or progress.form,
                f"{progress.records:,}",
                f"{progress.deleted:,}",
                f"{progress.requests:,}",
                amount(progress.bytes),
            )
        self.put(table)
        self.console.print()

    def index(self, library: Library) -> None:
        self.head("Index", "one index over both, on this machine; queries never leave it")
        with self.busy("indexing"):
            library.sync()
            counted = library.stats()["index"]
        self.say(
            f"{counted['records']:,} records, {counted['terms']:,} terms, {counted['postings']:,} postings: "
            f"searchable after {time.monotonic() - self.begun:.1f} s."
        )

    def search(self, library: Library) -> None:
        self.head("Search", "one index, five retrieval models, chosen per query")
        for query, why in QUERIES:
            self._compare(library, query, why)
        result = library.search(PRIVATE_QUERY, limit=1)
        self._query(PRIVATE_QUERY, "found by statistics, in the private logbook", result)
        for hit in result:
            self.say(f"{hit.title}, {hit.year}")
            self.say(f"{hit.source}; link to its content: {hit.url or 'none is given out'}", "dim")

    def _compare(self, library: Library, query: str, why: str) -> None:
        compared = library.compare(query, _COMPARED, limit=DEPTH)
        self._query(query, why, compared.results[0])
        table = grid("*rank by", "source", *(f">{_SHORT.get(name, name)}" for name in _COMPARED), room=32)
        for hit in compared.results[0].hits[:SHOWN]:
            ranks = next(row.ranks for row in compared.rows if row.hit.identifier == hit.identifier)
            places = (str(rank) if rank else "–" for rank in ranks)
            table.add_row(hit.title, hit.source.partition(" ")[0], *places)
        self.put(table)
        self.console.print()

    def _query(self, query: str, why: str, result: Result) -> None:
        count = f"{result.total:,} record{'s' * (result.total != 1)}"
        self.put(Text.assemble((query, "bold green"), f"  {count}: ", (why, "dim")))

    def change(self, library: Library) -> None:
        self.head("Change", "a document is written, one edited, one deleted at the owners'")
        before = self._totals(library)
        for path, text in CHANGES.items():
            self.say(f"{_change(self.providers[0].home / path, text)}  {path}")
        self.console.print()
        with self.busy("the providers crawl again"):
            for provider in self.providers:
                provider.begin_crawl(self.children)
            found = [provider.await_crawl() for provider in self.providers]
        table = grid("crawled again", ">files", ">unchanged", ">records", ">deletions")
        for provider, summary in zip(self.providers, found, strict=True):
            values = (summary[name] for name in ("files", "unchanged", "records", "deleted"))
            table.add_row(provider.title, *(f"{value:,}" for value in values))
        self.put(table)
        self.console.print()
        self._show_harvest(self._harvest(library))
        library.sync()
        after = self._totals(library)
        table = grid("query", ">before", "*first hit", ">after", "*first hit", room=20)
        for query, was, now in zip(WATCHED, before, after, strict=True):
            firsts = [next((hit.title for hit in result), "–") for result in (was, now)]
            table.add_row(
                Text(query, style="bold green"), f"{was.total}", firsts[0], f"{now.total}", firsts[1]
            )
        self.put(table)
        self.console.print()
        self.say("Three changes, three records: what did not change did not travel.")

    def _totals(self, library: Library) -> list[Result]:
        return [library.search(query, limit=1) for query in WATCHED]


def _change(path: Path, text: str | None) -> str:
    if text is None:
        path.unlink()
        return "deleted"
    if path.exists():
        path.write_text(path.read_text("utf-8") + text, "utf-8")
        return "edited "
    path.write_text(text, "utf-8")
    return "written"


def grid(*columns: str, room: int = 0) -> Table:
    """A table without frames; ">" before a column's name puts it to the right, "*" gives it so much room."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column.lstrip(">*"),
            justify="right" if column[:1] == ">" else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=room if column[:1] == "*" else None,
        )
    return table


def amount(size: int) -> str:
    return f"{size / 1000:,.1f} kB"
