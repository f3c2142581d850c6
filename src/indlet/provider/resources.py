"""Files become resources, and what was found in them becomes records.

Files of one folder whose names differ only in their extension are manifestations of one resource. The
resource's identifier is made of the hierarchy's name, the folder and the stem, so it stays while the primary
manifestation changes.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from indlet.errors import SettingsError
from indlet.formats.metadata import oai_dc
from indlet.model import DUBLIN_CORE, JsonObject, Metadata, Record, merge_metadata
from indlet.oai.identifier import identifier, repository_identifier, set_spec
from indlet.provider.extract.file import FileReader
from indlet.provider.hierarchy import (
    Entry,
    Listing,
    Tree,
    content_root,
    join,
    no_etag,
    open_tree,
    shown,
    web_address,
)
from indlet.provider.workers import Analysed
from indlet.settings import Crawl, Hierarchy, Settings

# Counts up when the same files should give different records.
LAYOUT = 2

# What a value and an element may hold: a title page scanned into a title must not swell every page we serve.
VALUE_CHARACTERS = 10_000
VALUES = 500

# Letters and digits with at least one letter: "ls.1", "draft.02" and "v1.2" are names without an extension.
_EXTENSION = re.compile("[0-9]*[a-z][a-z0-9]{0,7}", re.IGNORECASE | re.ASCII)
# A compressed file is another manifestation of what it holds: "a.sgm.gz" belongs to "a".
_COMPRESSED = frozenset(("gz", "bz2", "xz", "zst", "z"))
# What XML 1.0 cannot carry; lone surrogates are bytes of a name that are not UTF-8.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Resource(NamedTuple):
    """The manifestations of one stem in one folder, the preferred one first."""

    folder: str
    stem: str
    files: tuple[Entry, ...]


def split_name(name: str) -> tuple[str, str]:
    """A name's stem and its extension in small letters: ("a.b", "pdf"), ("x", "tar.gz"), (".profile", "")."""
    stem, _, extension = name.rpartition(".")
    if not stem.strip(".") or not _EXTENSION.fullmatch(extension):
        return name, ""
    extension = extension.lower()
    if extension in _COMPRESSED:
        inner, kind = split_name(stem)
        if kind and kind not in _COMPRESSED:
            return inner, f"{kind}.{extension}"
    return stem, extension


def group(folder: str, files: Iterable[Entry], order: Sequence[str]) -> Iterator[Resource]:
    """The resources of a folder. Extensions that the order does not name come last, by name."""
    places: dict[str, int] = {}
    for place, extension in enumerate(order):
        places.setdefault(extension.lower().lstrip("."), place)
    by_stem: dict[str, list[tuple[int, str, Entry]]] = {}
    for entry in files:
        name = entry.name
        stem, extension = split_name(name)
        rank = places.get(extension.partition(".")[0], len(places))
        by_stem.setdefault(stem, []).append((rank, name, entry))
    for stem, found in by_stem.items():
        if len(found) > 1:
            found.sort()
        yield Resource(folder, stem, tuple(entry for _, _, entry in found))


@dataclass(frozen=True)
class Place:
    """What all records of a hierarchy share."""

    name: str
    repository: str
    url: str  # what a path is appended to; empty where content has no address
    rights: str
    restricted: bool
    title: str
    policy: str

    @cached_property
    def made(self) -> str:
        """Changes whenever unchanged files should give other records."""
        parts = (LAYOUT, self.policy, self.name, self.repository, self.url, self.rights, self.restricted)
        return blake2b(repr(parts).encode(), digest_size=12).hexdigest()

    def identifier(self, folder: str, stem: str, key: str = "") -> str:
        return identifier(self.repository, self.name, join(folder, stem), key)

    def address(self, path: str, key: str = "") -> str:
        """Where a file is on the web. One document among several of it has an address of its own: services
        take records of the same address for the same thing."""
        if not self.url:
            return ""
        within = f"#{quote(key.encode('utf-8', 'surrogatepass'), safe='')}" if key else ""
        return self.url + quote(os.fsencode(path)) + within

    def sets(self, folder: str) -> tuple[tuple[str, str], ...]:
        """(setSpec, name) of the hierarchy and each folder on the way down; the last one is the record's."""
        parts = folder.split("/") if folder else []
        found = [(set_spec([self.name]), self.title)]
        found += [
            (set_spec([self.name, *parts[: depth + 1]]), _clean(part)) for depth, part in enumerate(parts)
        ]
        return tuple(found)


def place_of(settings: Settings, hierarchy: Hierarchy, policy: str) -> Place:
    access = hierarchy.access
    if access.content not in ("public", "private", "elsewhere"):
        raise SettingsError(
            f"hierarchy {hierarchy.name!r}: content is {access.content!r}; "
            "give 'public', 'private' or 'elsewhere'"
        )
    if access.content == "elsewhere" and not hierarchy.base_url:
        raise SettingsError(f"hierarchy {hierarchy.name!r}: content is elsewhere; say where with base_url")
    url = hierarchy.base_url.rstrip("/") or web_address(hierarchy.root)
    if not url and content_root(hierarchy.root) is not None:
        url = f"{settings.base_url()}/content/{quote(hierarchy.name, safe='')}"
    private = access.content == "private"
    return Place(
        name=hierarchy.name,
        repository=repository_identifier(settings),
        url=f"{url}/" if url and not private else "",
        rights=hierarchy.rights or settings.node.rights,
        restricted=private,
        title=hierarchy.title or hierarchy.name,
        policy=policy,
    )


def records(
    place: Place, resource: Resource, primary: Entry, documents: Sequence[Analysed]
) -> Iterator[Record]:
    """The records of a resource: one for each document that its primary manifestation holds."""
    sets = (place.sets(resource.folder)[-1][0],)
    modified = moment(primary.modified)
    taken: set[str] = set()
    for document in documents:
        # A key that repeats is told apart by how often it was seen before.
        key, count = document.key, 1
        while key in taken:
            count += 1
            key = f"{document.key}~{count}"
        taken.add(key)
        name = place.identifier(resource.folder, resource.stem, key)
        metadata = _metadata(place, resource, primary, document, name, key)
        properties: JsonObject = {
            "path": shown(primary.path),
            "media_type": document.media_type,
            "size": primary.size,
            "modified": modified,
            "restricted": place.restricted,
            "policy": place.policy,
            "manifestations": [_manifestation(place, entry, primary, document) for entry in resource.files],
        }
        if document.no_text:
            properties["no_text"] = document.no_text
        if place.url:
            properties["url"] = place.address(primary.path, key)
        raw = document.raw or oai_dc.write(metadata)
        yield Record(name, metadata, document.vector, sets, raw=raw, properties=properties)


@dataclass(frozen=True)
class FileTree:
    """A tree of files as a record source: stems are resources, folders are sets, commits are datestamps."""

    place: Place
    hierarchy: Hierarchy
    settings: Crawl

    touch_matters = False  # a record follows from the bytes of its file
    reader: FileReader | None = None

    @property
    def made(self) -> str:
        return self.place.made

    def open(self, exclude: tuple[Path, ...], known_etag: Callable[[str], str] = no_etag) -> Tree:
        return open_tree(self.hierarchy, self.settings, exclude)

    def resources(self, listing: Listing) -> Iterator[Resource]:
        return group(listing.folder, listing.files, self.settings.order)

    def identifier(self, resource: Resource) -> str:
        return self.place.identifier(resource.folder, resource.stem)

    def sets(self, resource: Resource) -> tuple[tuple[str, str], ...]:
        return self.place.sets(resource.folder)

    def records(
        self, resource: Resource, primary: Entry | None, documents: Sequence[Analysed]
    ) -> Iterator[Record]:
        return records(self.place, resource, primary, documents) if primary else iter(())

    def datestamp(self, resource: Resource) -> None:
        return None


def moment(nanoseconds: int) -> str:
    """A file's time in ISO 8601, UTC; empty if it is not known or beyond the calendar."""
    if nanoseconds < 0:
        return ""
    try:
        return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""


def media_type(name: str) -> str:
    """What the extension alone says; of a manifestation that was not read."""
    return _TYPES.guess_type(name)[0] or "application/octet-stream"


# Python's own table, not the machine's: records must not differ between machines.
_TYPES = mimetypes.MimeTypes()


def _manifestation(place: Place, entry: Entry, primary: Entry, document: Analysed) -> JsonObject:
    """Of a manifestation other than the primary no time is told: when it is touched, the record stays."""
    chosen = entry is primary
    found: JsonObject = {
        "path": shown(entry.path),
        "media_type": document.media_type if chosen else media_type(entry.name),
        "size": entry.size,
        "primary": chosen,
    }
    if place.url:
        found["url"] = place.address(entry.path)
    return found


def _metadata(
    place: Place, resource: Resource, primary: Entry, document: Analysed, name: str, key: str
) -> dict[str, list[str]]:
    found = clean_metadata(document.metadata)
    others = [place.address(entry.path) for entry in resource.files if entry is not primary]
    language = document.language or document.vector.language
    defaults = {
        "title": f"{_readable(resource.stem)} {_clean(document.key)}".strip(),
        "type": "Text",
        "language": language,
    }
    mechanical = {element: [value] for element, value in defaults.items() if value and not found.get(element)}
    ours: dict[str, list[str]] = {
        "identifier": [place.address(primary.path, key) or name],
        "format": [document.media_type],
        "relation": [url for url in others if url],
        # In the words of OpenAIRE's vocabulary, so that a service can mark it.
        "rights": [place.rights] * bool(place.rights)
        + ["info:eu-repo/semantics/restrictedAccess"] * place.restricted,
    }
    return merge_metadata(ours, found, mechanical)


def clean_metadata(metadata: Metadata) -> dict[str, list[str]]:
    """What an extractor found, within bounds and fit for XML."""
    return {
        element: values
        for element in DUBLIN_CORE
        if (values := [v for value in list(metadata.get(element, ()))[:VALUES] if (v := _clean(value))])
    }


def _clean(value: str) -> str:
    value = _ILLEGAL.sub("\ufffd", value.strip())
    return value if len(value) <= VALUE_CHARACTERS else value[: VALUE_CHARACTERS - 1] + "…"


def _readable(stem: str) -> str:
    return _clean(re.sub(r"[\s_]+", " ", stem)) or "untitled"
