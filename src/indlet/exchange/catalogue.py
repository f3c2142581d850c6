"""The export folder of a catalogue as a record source: each record of each file, in its own format.

A record is told by its file and by what it calls itself there (MARC 001, an ID; a digest of title, creators
and date if it has no name), so a catalogue exports each record to a file that keeps its name, or all of them
to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final

from indlet.exchange.catalogue_file import Reader
from indlet.exchange.translate import format_named, own_table
from indlet.formats.registry import STATEMENTS
from indlet.model import JsonObject, Record
from indlet.provider.echoes import CLAIM, origin_identifier
from indlet.provider.hierarchy import Entry, Listing, Tree, no_etag, shown
from indlet.provider.resources import FileTree, Resource, place_of
from indlet.provider.source import CrawlTarget
from indlet.provider.workers import Analysed
from indlet.settings import Access, Hierarchy, LibraryFolder, Settings

# A catalogue exports again and again: how often its folder is read where no interval is set.
EVERY: Final = "1h"
LAYOUT: Final = 6  # another number where the same export makes other records: it is then read again


@dataclass(frozen=True)
class LibrarySource(FileTree):
    """A tree of files that hold records. Files of one name in several formats are not one resource."""

    reader: Reader | None = None
    tables: str = ""  # digests of the tables that are files

    @classmethod
    def of(cls, settings: Settings, library: LibraryFolder, policy: str) -> LibrarySource:
        access = Access(content="private")  # the records are what is given out, not the export's files
        hierarchy = Hierarchy(
            library.read, library.name, title=library.title, rights=library.rights, access=access
        )
        place = replace(place_of(settings, hierarchy, policy), restricted=False)
        reader = Reader(library.format, library.mapping)
        tables = f"{_digest(library.mapping)} {_digest(library.format.removeprefix('table:'))}"
        return cls(place, hierarchy, settings.crawl, reader, tables)

    @property
    def made(self) -> str:
        return f"{self.place.made} {self.reader} {self.tables} {LAYOUT}"

    def open(self, exclude: tuple[Path, ...], known_etag: Callable[[str], str] = no_etag) -> Tree:
        """The export folder. SettingsError if the format or a table is wrong: then nothing is read."""
        if self.reader is not None:
            metadata = format_named(self.reader.format)
            if self.reader.mapping:
                own_table(self.reader.mapping, metadata)
        return super().open(exclude)

    def resources(self, listing: Listing) -> Iterator[Resource]:
        return (Resource(listing.folder, entry.name, (entry,)) for entry in listing.files)

    def records(
        self, resource: Resource, primary: Entry | None, documents: Sequence[Analysed]
    ) -> Iterator[Record]:
        """What the catalogue says, and nothing beside it; `raw` is the record in the catalogue's format."""
        if primary is None:
            return
        sets = (self.place.sets(resource.folder)[-1][0],)
        metadata_format = format_named(self.reader.format if self.reader else "marc21")
        for document in documents:
            name = self.place.identifier(resource.folder, resource.stem, document.key)
            metadata = {element: list(values) for element, values in document.metadata.items()}
            if self.place.rights and not metadata.get("rights"):
                metadata["rights"] = [self.place.rights]
            properties: JsonObject = {"path": shown(primary.path), "policy": self.place.policy}
            if document.statements:
                properties[STATEMENTS] = document.statements
            if claim := origin_identifier(document.raw, metadata_format, self.place.repository):
                properties[CLAIM] = claim
            yield Record(name, metadata, document.vector, sets, raw=document.raw, properties=properties)


def _digest(table: str) -> str:
    """Of a table that is a file; empty for one that comes with indlet, and for none."""
    try:
        return blake2b(Path(table).read_bytes(), digest_size=6).hexdigest() if table else ""
    except OSError:
        return ""


def crawl_targets(settings: Settings) -> list[CrawlTarget]:
    """The export folders of catalogues: the first step of a library's round."""
    return [
        CrawlTarget(
            library.name,
            library.read,
            library.every or settings.crawl.every or EVERY,
            partial(LibrarySource.of, settings, library),
            {"root": library.read, "format": library.format, "access": library.access.public()},
            library.access,
            first=True,
        )
        for library in settings.library
    ]
