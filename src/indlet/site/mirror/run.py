"""A harvest of resources: what a repository's records stand for comes into a folder, and stays in step."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from indlet.datestamps import http_date
from indlet.errors import RemoteError
from indlet.limits import FREE_DISK, require_room
from indlet.site import http_header, oai_didl
from indlet.site.mirror.archive import WarcFile
from indlet.site.mirror.fetch import Fetcher, NotFetched
from indlet.site.mirror.journal import Kept, MirrorJournal
from indlet.site.mirror.page_scan import ListedRecord
from indlet.site.mirror.pages import ListReader
from indlet.site.mirror.paths import inside, path_of
from indlet.site.oai_didl import Component

# Prefixes under which repositories give out DIDL, ours first; DSpace and EPrints use the second.
PREFIXES: Final = ("oai_didl", "didl", "nl_didl")
REQUEST_BYTES: Final = 1 << 16  # what a request costs, in bytes of an answer
Headers = tuple[tuple[str, str], ...]


@dataclass
class Mirrored:
    """What a run did."""

    records: int = 0
    by_value: int = 0
    fetched: int = 0
    unchanged: int = 0
    deleted: int = 0
    bytes: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # identifier -> why


@dataclass
class Glance:
    """What a list of header fields tells of a mirror's files."""

    begun: str = ""
    deleted: list[str] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)  # the same bytes, with their Last-Modified
    changed: list[str] = field(default_factory=list)
    listed_bytes: int = 0
    changed_bytes: int = 0
    broken: bool = False

    @property
    def suffices(self) -> bool:
        """Whether asking for what changed, one by one, costs less than a list of all records with files."""
        one_by_one = len(self.changed) * REQUEST_BYTES + self.changed_bytes
        return not self.broken and (not self.changed or one_by_one < self.listed_bytes)


class Mirror:
    def __init__(
        self,
        folder: Path,
        lists: ListReader,
        fetcher: Fetcher,
        journal: MirrorJournal,
        *,
        archive: WarcFile | None = None,
        keep_deleted: bool = False,
        report: Callable[[Mirrored], None] = lambda done: None,
    ) -> None:
        self._folder, self._lists, self._fetcher, self._journal = folder, lists, fetcher, journal
        self._archive, self._keep_deleted, self._report = archive, keep_deleted, report
        self._owners = {
            file.path: identifier for identifier, files in journal.state.records.items() for file in files
        }
        self._part = str(journal.own / "part")  # the file that is being written
        self._checked: set[str] = set()  # folders that are there, and inside
        self._later: list[tuple[str, list[Component]]] = []
        if archive is not None:
            journal.also_durable.append(archive.sync)
        self.done = Mirrored()
        self.free_disk = FREE_DISK  # bytes that a file must leave on the disk

    def run(self, url: str, *, full: bool = False) -> Mirrored:
        """Bring the folder to what the repository shows now. `full`: list everything, and drop what is not
        listed any more, as where rights to see it were withdrawn."""
        state = self._journal.state
        if state.base_url not in ("", url):
            raise RemoteError(f"{self._folder}: is a mirror of {state.base_url}; choose another folder")
        offered = self._lists.prefixes()
        prefix = state.prefix or _prefix(url, offered)
        if full or not state.base_url:
            self._journal.progress(base_url=url, prefix=prefix, since="", token="", begun="")
        owed = list(state.owed)
        window = {"from": state.since} if state.since else {}
        glance = None
        if state.records and not state.token and http_header.PREFIX in offered:
            glance = self._glance({"metadataPrefix": http_header.PREFIX, **window})
        if glance is not None and glance.suffices:
            begun, seen = self._by_headers(glance, prefix)
        else:
            begun, seen = self._by_records({"metadataPrefix": prefix, **window})
        for identifier in owed:
            if identifier not in seen and identifier in state.owed:
                self._again(identifier, prefix)
        if full and begun:
            for identifier in [one for one in state.records if one not in seen]:
                self._delete(identifier)
        for identifier, components in self._later:
            self._record(identifier, components, last=True)
        # Nothing has changed: the next harvest starts where this one did.
        self._journal.progress(since=begun or state.since, token="", begun="")
        return self.done

    def _by_records(self, arguments: Mapping[str, str]) -> tuple[str, set[str]]:
        """Take what a list of records holds; its responseDate, and the identifiers that it named."""
        state = self._journal.state
        begun, seen = state.begun if state.token else "", set[str]()
        for page in self._lists.pages("ListRecords", arguments, state.token):
            begun = begun or page.response_date
            for item in page.records:
                seen.add(item.identifier)
                self._item(item)
            for problem in page.problems:
                if problem.where:
                    self._fail(problem.where, problem.reason)
                else:  # nothing that it could be asked for by
                    self.done.failed[f"(record {self.done.records + 1:,} of the list)"] = problem.reason
                    self.done.records += 1
            self._journal.progress(token=page.token, begun=begun)
        return begun, seen

    def _glance(self, arguments: Mapping[str, str]) -> Glance:
        """What changed, by header fields and digests: a touched file need not come again."""
        glance, records = Glance(), self._journal.state.records
        for page in self._lists.pages("ListRecords", arguments):
            glance.begun = glance.begun or page.response_date
            glance.broken |= bool(page.problems)
            for item in page.records:
                if item.deleted:
                    glance.deleted.append(item.identifier)
                    continue
                file = item.components[0] if item.components else Component()
                named, digest = {name.lower(): value for name, value in file.headers}, file.sha256
                length = named.get("content-length", "")
                size = int(length) if length.isdecimal() and len(length) < 20 else 0
                glance.listed_bytes += size
                kept = records.get(item.identifier, [])
                if len(kept) == 1 and digest and kept[0].sha256 == digest:
                    glance.same.append((item.identifier, named.get("last-modified", "")))
                else:
                    glance.changed.append(item.identifier)
                    glance.changed_bytes += size
        return glance

    def _by_headers(self, glance: Glance, prefix: str) -> tuple[str, set[str]]:
        """Take what a glance showed; only what has other bytes is asked for, one by one."""
        for identifier in glance.deleted:
            self._delete(identifier)
        wanted = list(glance.changed)
        for identifier, date in glance.same:
            kept = next(iter(self._journal.state.records.get(identifier, ())), None)
            place = f"{self._folder}/{kept.path}" if kept is not None else ""
            # None: it was named once more, as deleted.
            if kept is None or identifier in self._journal.state.owed:
                wanted.append(identifier)
            elif _is_file_of(place, kept.size) and _dated(place, _timestamp(date)):
                self.done.unchanged += 1
            else:
                wanted.append(identifier)
        self.done.records += len(glance.deleted) + self.done.unchanged
        for identifier in wanted:
            self._again(identifier, prefix)
        return glance.begun, {*glance.deleted, *(one for one, _ in glance.same), *glance.changed}

    def _again(self, identifier: str, prefix: str) -> None:
        """Ask for a record by itself."""
        page = self._lists.ask({"verb": "GetRecord", "identifier": identifier, "metadataPrefix": prefix})
        if any(code == "idDoesNotExist" for code, _ in page.errors):
            self._delete(identifier)
            return
        for item in page.records:
            if item.identifier == identifier:
                self._item(item)
                return
        told = [f"{code}: {reason}" for code, reason in page.errors] + [one.reason for one in page.problems]
        self._fail(identifier, "; ".join(told) or "the answer to GetRecord holds another record, or none")

    def _item(self, item: ListedRecord) -> None:
        self.done.records += 1
        if item.deleted:
            self._delete(item.identifier)
        elif item.components is None:
            self._fail(item.identifier, "a record without metadata")
        else:
            self._record(item.identifier, item.components)
        self._report(self.done)

    def _record(self, identifier: str, components: list[Component], last: bool = False) -> None:
        """Take all files of a record; those that it had before and has no more are removed."""
        before = {file.path: file for file in self._journal.state.records.get(identifier, [])}
        files: list[Kept] = []
        try:
            for number, component in enumerate(components):
                files.append(self._take(identifier, component, number, before))
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as e:
            # A folder stands where a file should be, or the other way round: until what is gone has gone.
            if last:
                self._fail(identifier, f"{e.filename}: {e.strerror}")
            else:
                self._later.append((identifier, components))
            return
        except (NotFetched, ValueError, OSError) as e:
            self._fail(identifier, str(e))
            return
        for path in before.keys() - {file.path for file in files}:
            self._remove(path)
        self._journal.keep(identifier, files)

    def _take(self, identifier: str, component: Component, number: int, before: dict[str, Kept]) -> Kept:
        path = path_of(component.ref, identifier, number)
        place, folder = f"{self._folder}/{path}", path.rpartition("/")[0]
        if folder not in self._checked:
            inside(self._folder, path)
        if self._owners.get(path, identifier) != identifier:
            raise NotFetched(f"{component.ref}: {self._owners[path]} has a file of that name already")
        known = before.get(path)
        if (
            known is not None
            and known.sha256 == component.sha256
            and _is_file_of(place, known.size)
            and _dated(place, _modified(component.headers))
        ):
            self.done.unchanged += 1
            return known
        if folder not in self._checked:
            (self._folder / folder).mkdir(parents=True, exist_ok=True)
            inside(self._folder, path)  # once more, now that its folder is there
            self._checked.add(folder)
        part = self._part
        headers, content = component.headers, component.content
        if component.encoded is not None:
            content = oai_didl.decoded(component.encoded)
        digest = sha256(content).hexdigest() if content is not None else ""
        # Without room for it, a file is a failure, and is asked for again by the next run.
        require_room(self._folder, 0 if content is None else len(content), self.free_disk)
        if content is not None and not _fault(component, len(content), digest):
            _write(part, content)
            size = len(content)
            self.done.by_value += 1
            self.done.bytes += size
        else:
            size, digest, headers = self._fetched(component, part)
        if not _dated(part, _modified(headers)):
            raise NotFetched(f"{path}: its time of modification cannot be set")
        os.rename(part, place)  # noqa: PTH104
        self._journal.changed(place)
        self._owners[path] = identifier
        if self._archive is not None:
            self._archive.add(component.ref or identifier, headers, Path(place))
        return Kept(path, component.ref, size, digest)

    def _fetched(self, component: Component, part: str) -> tuple[int, str, Headers]:
        if not component.ref:
            raise NotFetched("a file that is neither inside its record nor anywhere else")
        found = self._fetcher.fetch(component.ref, Path(part))
        self.done.fetched += 1
        self.done.bytes += found.size
        fault = _fault(component, found.size, found.sha256)
        # A file that changed after its record was made is taken as it is; its record will come again.
        if fault and not _modified(found.headers) > _modified(component.headers):
            raise NotFetched(f"{component.ref}: {fault}")
        return found.size, found.sha256, found.headers

    def _delete(self, identifier: str) -> None:
        files = self._journal.state.records.get(identifier, [])
        for file in files:
            self._remove(file.path)
        if files or identifier in self._journal.state.owed:
            self._journal.keep(identifier, [])
        self.done.deleted += bool(files)

    def _remove(self, path: str) -> None:
        """Remove a file, or move it aside; and the folders that are empty then."""
        self._owners.pop(path, None)
        try:
            place = inside(self._folder, path)
            if self._keep_deleted:
                aside = self._journal.own / "deleted" / path
                aside.parent.mkdir(parents=True, exist_ok=True)
                place.replace(aside)
                self._journal.changed(str(aside))
            else:
                place.unlink(missing_ok=True)
        except (OSError, ValueError):
            return
        self._journal.changed(f"{self._folder}/{path}")
        for folder in place.parents:
            if folder == self._folder:
                break
            self._checked.discard(str(folder.relative_to(self._folder)))
            try:
                folder.rmdir()
            except OSError:
                break

    def _fail(self, identifier: str, reason: str) -> None:
        self.done.failed[identifier] = reason
        self._journal.owe(identifier, reason)


def _prefix(url: str, offered: Sequence[str]) -> str:
    prefix = next((prefix for prefix in PREFIXES if prefix in offered), "")
    if not prefix:
        raise RemoteError(
            f"{url}: offers no DIDL ({', '.join(PREFIXES)}), so its resources cannot be mirrored; "
            "--list names its identifiers"
        )
    return prefix


def _field(headers: Iterable[tuple[str, str]], wanted: str) -> str:
    for name, value in headers:
        if name.lower() == wanted:
            return value
    return ""


def _fault(component: Component, size: int, digest: str) -> str:
    """What is wrong with bytes, by what their record says of them; empty if nothing is."""
    stated = _field(component.headers, "content-length")
    if stated.isdecimal() and int(stated) != size:
        return f"{size:,} bytes, where its record says {int(stated):,}"
    if component.sha256 and digest != component.sha256:
        return f"its SHA-256 is {digest}, where its record says {component.sha256}"
    return ""


def _modified(headers: Iterable[tuple[str, str]]) -> float:
    return _timestamp(_field(headers, "last-modified"))


@lru_cache(1024)  # files that were made together have one
def _timestamp(date: str) -> float:
    moment = http_date(date)
    return -1.0 if moment is None else moment.timestamp()


def _dated(place: str, modified: float) -> bool:
    """Give a file the time that its server gave it; whether that could be done."""
    try:
        if modified >= 0:
            os.utime(place, (modified, modified))
    except OSError:  # it is gone by now, or somebody else's
        return False
    return True


def _write(place: str, content: bytes) -> None:
    """As Path.write_bytes, with half as many calls to the system: a site has thousands of files."""
    file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        written = os.write(file, content)
        while written < len(content):
            written += os.write(file, memoryview(content)[written:])
    finally:
        os.close(file)


def _is_file_of(place: str, size: int) -> bool:
    try:
        found = os.lstat(place)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size
