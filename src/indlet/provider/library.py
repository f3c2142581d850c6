"""The export folder of a catalogue as a record source: each record of each file, in its own format.

A record is told by its file and by what it calls itself there (MARC 001, an ID; a digest of title, creators
and date if it has no name), so a catalogue exports each record to a file that keeps its name, or all of them
to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from indlet.errors import SettingsError
from indlet.formats.translate import format_named
from indlet.model import Record
from indlet.provider.extract.catalogue import Reader
from indlet.provider.hierarchy import Entry, Listing, shown
from indlet.provider.resources import FileTree, Resource, place_of
from indlet.provider.workers import Analysed
from indlet.settings import Access, Hierarchy, LibraryFolder, Settings

LAYOUT: Final = 4  # another number where the same export makes other records: it is then read anew


@dataclass(frozen=True)
class LibrarySource(FileTree):
    """A tree of files that hold records. Files of one name in several formats are not one resource."""

    reader: Reader | None = None
    table: str = ""  # the digest of the library's own table

    @classmethod
    def of(cls, settings: Settings, library: LibraryFolder, policy: str) -> LibrarySource:
        format_named(library.format)  # a mistake is told before the crawl begins
        access = Access(content="private")  # the records are what is given out, not the export's files
        hierarchy = Hierarchy(
            library.read, library.name, title=library.title, rights=library.rights, access=access
        )
        place = replace(place_of(settings, hierarchy, policy), restricted=False)
        reader = Reader(library.format, library.mapping)
        return cls(place, hierarchy, settings.crawl, reader, _digest(library.mapping))

    @property
    def made(self) -> str:
        return f"{self.place.made} {self.reader} {self.table} {LAYOUT}"

    def resources(self, listing: Listing) -> Iterator[Resource]:
        return (Resource(listing.folder, entry.name, (entry,)) for entry in listing.files)

    def records(
        self, resource: Resource, primary: Entry | None, documents: Sequence[Analysed]
    ) -> Iterator[Record]:
        """What the catalogue says, and nothing beside it; `raw` is the record in the catalogue's format."""
        if primary is None:
            return
        sets = (self.place.sets(resource.folder)[-1][0],)
        for document in documents:
            name = self.place.identifier(resource.folder, resource.stem, document.key)
            metadata = {element: list(values) for element, values in document.metadata.items()}
            if self.place.rights and not metadata.get("rights"):
                metadata["rights"] = [self.place.rights]
            properties = {"path": shown(primary.path), "policy": self.place.policy}
            yield Record(name, metadata, document.vector, sets, raw=document.raw, properties=properties)


def _digest(mapping: str) -> str:
    path = Path(mapping)
    if "." not in path.name:
        return ""  # a table that comes with indlet, or none
    try:
        return blake2b(path.read_bytes(), digest_size=6).hexdigest()
    except OSError as e:
        raise SettingsError(f"the table {mapping}: {e.strerror}; name a file that can be read") from e
