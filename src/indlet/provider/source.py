"""What a crawl asks of a kind of record source: how what lies in a storage tree becomes records.

A tree of files is one kind (`resources.FileTree`); extensions bring others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from indlet.extension import extensions
from indlet.model import JsonObject, Record
from indlet.provider.extract.file import FileReader
from indlet.provider.hierarchy import Entry, Listing, Tree, named, no_etag, without_password
from indlet.provider.resources import FileTree, Resource, place_of
from indlet.provider.workers import Analysed
from indlet.settings import Access, Hierarchy, Settings


class RecordSource(Protocol):
    """Identifiers, sets and datestamps come from here, and nowhere else."""

    @property
    def made(self) -> str:
        """Changes whenever unchanged files should give other records."""

    @property
    def touch_matters(self) -> bool:
        """Whether a file with new times and the old bytes gives another record."""

    @property
    def reader(self) -> FileReader | None:
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


class CrawlTarget(NamedTuple):
    """Something that is crawled: what the store knows it by, when it is read, and who may see its records."""

    name: str
    root: str
    every: str  # empty: as often as `[crawl]` says
    source: Callable[[str], RecordSource]  # under the policy of this digest
    settings: JsonObject  # as the store keeps them
    access: Access = Access()
    guarded: str = ""  # the origin of its records that are not for everybody
    first: bool = False  # the first step of a round: the others wait for it


def crawl_targets(settings: Settings) -> list[CrawlTarget]:
    """What the settings want to be crawled, in the order of crawls."""
    found = [
        CrawlTarget(
            hierarchy.name,
            without_password(hierarchy.root),
            hierarchy.every,
            partial(_file_tree, settings, hierarchy),
            _kept_settings(hierarchy),
            hierarchy.access,
        )
        for hierarchy in named(settings.hierarchy)
    ]
    return found + [target for extension in extensions() for target in extension.crawl_targets(settings)]


def guarded_name(name: str) -> str:
    """The origin of the records of a crawl target that are not for everybody."""
    return f"{name} (guarded)"


def _file_tree(settings: Settings, hierarchy: Hierarchy, policy: str) -> FileTree:
    return FileTree(place_of(settings, hierarchy, policy), hierarchy, settings.crawl)


def _kept_settings(hierarchy: Hierarchy) -> JsonObject:
    """A hierarchy's settings for the store. Storage options stay out: they hold passwords."""
    kept = asdict(hierarchy)
    del kept["options"]
    return kept | {"access": hierarchy.access.public(), "root": without_password(hierarchy.root)}
