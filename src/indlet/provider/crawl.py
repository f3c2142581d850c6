"""What a storage tree holds, compared with what the store knows: only differences come out.

The comparison itself is pure. Size and time (or etag) decide whether a file is looked into at all; if it is,
its digest decides whether anything changed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

from indlet.provider.hierarchy import Entry, Skip, Tree, shown
from indlet.provider.resources import Resource
from indlet.provider.source import RecordSource
from indlet.store import FileState

# How many left-alone paths a run names; all of them are counted.
NAMED = 200
# How many the store keeps, for  indlet failures --left-out.
KEPT = 100_000


class Work(NamedTuple):
    """A resource that is new or not as it was, with what is known of its files (by shown path)."""

    identifier: str
    resource: Resource
    known: Mapping[str, FileState]

    @property
    def gone(self) -> list[str]:
        present = {shown(entry.path) for entry in self.resource.files}
        return [path for path in self.known if path not in present]


@dataclass(frozen=True, slots=True)
class Signature:
    """What unchanged files were read under. Failures are tried anew when the limits or the program change."""

    made: str
    failed: str

    def covers(self, known: FileState) -> bool:
        return known.policy == (self.failed if known.state == "failed" else self.made)


@dataclass
class Survey:
    """What a walk found, beside the work that it yields."""

    files: int = 0
    unchanged: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> how many
    left_out: list[tuple[str, str]] = field(default_factory=list)  # path, reason
    unread: dict[str, str] = field(default_factory=dict)  # folder -> why it could not be listed
    held: set[str] = field(default_factory=set)  # shown paths whose state and records stay as they are
    fresh: list[Work] = field(default_factory=list)  # changed a moment ago: to be looked at again
    first_look: float = 0.0
    # What is known and was not met: by folder, then by shown path.
    unmet: dict[str, dict[str, FileState]] = field(default_factory=dict)
    entries: int = 0
    # Paths that are there, but were known as files of another resource (the node was renamed).
    moved: set[str] = field(default_factory=set)

    def remember(self, known: Iterable[FileState]) -> None:
        """Take in what is known, to be compared with what is met. It may be much: equal words are shared."""
        for path, resource, size, modified, etag, digest, media_type, state, policy in known:
            self.unmet.setdefault(path.rpartition("/")[0], {})[path] = FileState(
                path, resource, size, modified, etag, digest, intern(media_type), intern(state),
                intern(policy),
            )  # fmt: skip

    def known_etag(self, path: str) -> str:
        """The etag under which a file that was not met yet is known; empty if it is not known."""
        name = shown(path)
        file = self.unmet.get(name.rpartition("/")[0], {}).get(name)
        return file.etag if file is not None else ""

    def skip(self, skip: Skip) -> None:
        self.skipped[skip.reason] += 1
        if len(self.left_out) < KEPT:
            self.left_out.append((shown(skip.path), skip.reason))
        if skip.held:
            self.held.add(shown(skip.path))


def survey(
    tree: Tree,
    source: RecordSource,
    signature: Signature,
    settle_seconds: float,
    found: Survey,
    clock: Callable[[], float] = time.time,
) -> Iterator[Work]:
    """The resources that differ from what is known. `found` is filled on the way, and whole at the end."""
    found.first_look = clock()
    for listing in tree.walk():
        for skip in listing.skipped:
            found.skip(skip)
        if listing.error:
            found.unread[listing.folder] = listing.error
        found.files += len(listing.files)
        found.entries += len(listing.files) + len(listing.skipped)
        here = found.unmet.get(shown(listing.folder), {})
        by_resource: dict[str, dict[str, FileState]] = {}
        for path, file in here.items():
            by_resource.setdefault(file.resource, {})[path] = file
        settled = (clock() - settle_seconds) * 1e9
        for resource in source.resources(listing):
            identifier = source.identifier(resource)
            mine = by_resource.get(identifier, {})
            for path in mine:
                del here[path]
            if here:
                found.moved.update(p for e in resource.files if (p := shown(e.path)) in here)
            if mine and (listing.error or not found.held.isdisjoint(mine)):
                # Some of its files may be there without being seen: it stays as it is.
                continue
            if same(resource.files, mine, signature):
                found.unchanged += len(resource.files)
                continue
            work = Work(identifier, resource, mine)
            if any(entry.modified > settled for entry in resource.files):
                found.fresh.append(work)
            else:
                yield work


def same(files: tuple[Entry, ...], known: Mapping[str, FileState], signature: Signature) -> bool:
    """Whether the files are those that are known, by all that can be told without reading them."""
    if len(files) != len(known):
        return False
    for entry in files:
        file = known.get(shown(entry.path))
        if file is None or not unchanged(entry, file) or not signature.covers(file):
            return False
    return len(files) == 1 or in_order(files, known)


def in_order(files: tuple[Entry, ...], known: Mapping[str, FileState]) -> bool:
    """Whether the known primary still is the first choice: under other settings another one may be."""
    for entry in files:
        file = known.get(shown(entry.path))
        if file is None or file.state != "failed":
            return file is not None and file.state == "primary"
    return True


def unchanged(entry: Entry, known: FileState) -> bool:
    """Equal size, and equal etag where the storage gives one, else equal time. A storage that tells neither
    leaves nothing to go by: such a file is read each time."""
    if entry.size != known.size:
        return False
    if entry.etag:
        return entry.etag == known.etag
    return entry.modified == known.modified and entry.modified != -1


def settle(
    tree: Tree,
    found: Survey,
    settle_seconds: float,
    wait: Callable[[float], object],
    clock: Callable[[], float] = time.time,
) -> Iterator[Work]:
    """The works of `found.fresh`, looked at again when they have been quiet for a while.

    A file that is still changing is left alone: a known resource stays as it is, a new one goes without.
    """
    if not found.fresh:
        return
    newest = max(entry.modified for work in found.fresh for entry in work.resource.files) / 1e9
    # A time in the future says nothing about how long the file has been quiet; our own first look does.
    quiet_since = min(newest, found.first_look) if newest > clock() else newest
    pause = quiet_since + settle_seconds - clock()
    if pause > 0:
        wait(min(pause, settle_seconds))
    for work in found.fresh:
        quiet = []
        for entry in work.resource.files:
            again = tree.look(entry)
            if again is not None and (again.size, again.modified) == (entry.size, entry.modified):
                quiet.append(entry)
            else:
                found.skip(Skip(entry.path, "still changing" if again else "vanished meanwhile", held=True))
        if len(quiet) == len(work.resource.files):
            yield work
        elif not work.known and quiet:
            yield work._replace(resource=work.resource._replace(files=tuple(quiet)))


def vanished(found: Survey) -> dict[str, list[str]]:
    """The resources that are known and were not met, with their paths, after a walk to the end.

    Nothing below a folder that could not be listed counts as gone, and nothing that is there but unreadable.
    """
    gone: dict[str, list[str]] = {}
    kept: set[str] = set()
    unread = [shown(folder) for folder in found.unread]
    for folder, files in found.unmet.items():
        if any(not top or folder == top or folder.startswith(f"{top}/") for top in unread):
            continue
        for path, file in files.items():
            gone.setdefault(file.resource, []).append(path)
            if path in found.held or _below_held(folder, found.held):
                kept.add(file.resource)
    return {resource: paths for resource, paths in gone.items() if resource not in kept}


def _below_held(folder: str, held: set[str]) -> bool:
    """Whether a folder lies in one that is there but could not be looked at."""
    while folder:
        if folder in held:
            return True
        folder = folder.rpartition("/")[0]
    return False
