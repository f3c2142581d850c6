"""What a crawl asks of a kind of record source: how what lies in a storage tree becomes records.

A tree of files is one kind (`resources.FileTree`), the files of a web server another (`site.source`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from indlet.model import Record
from indlet.provider.extract.catalogue import Reader
from indlet.provider.hierarchy import Entry, Listing, Tree, no_etag
from indlet.provider.resources import Resource
from indlet.provider.workers import Analysed


class RecordSource(Protocol):
    """Identifiers, sets and datestamps come from here, and nowhere else."""

    @property
    def made(self) -> str:
        """Changes whenever unchanged files should give other records."""

    @property
    def touch_matters(self) -> bool:
        """Whether a file with new times and the old bytes gives another record."""

    @property
    def reader(self) -> Reader | None:
        """How its files are read; None where each is read as what it is."""

    def open(self, exclude: tuple[Path, ...], known_etag: Callable[[str], str] = no_etag) -> Tree:
        """The storage; HierarchyError if it cannot be reached. `exclude`: folders of our own data.
        `known_etag`: gives the etag that a path had in the last crawl, or nothing."""

    def resources(self, listing: Listing) -> Iterator[Resource]:
        """What the files of a folder are."""

    def identifier(self, resource: Resource) -> str:
        """The resource's own; each of its records has this one, or this one, `;` and a key."""

    def sets(self, resource: Resource) -> Iterable[tuple[str, str]]:
        """(setSpec, name) of the sets that its records are in, and of those above them."""

    def records(
        self, resource: Resource, primary: Entry | None, documents: Sequence[Analysed]
    ) -> Iterator[Record]:
        """The records of a resource. `primary` is the file that gave the documents; None if none did."""

    def datestamp(self, resource: Resource) -> int | None:
        """The second that its records should be dated; None for that of the commit."""
