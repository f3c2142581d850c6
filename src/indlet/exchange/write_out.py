"""Local write: records of other libraries, as files that a catalogue imports in its own format.

A task follows the store's change feed. Files have stable names, appear whole, and are left alone where their
bytes would be the same. What was written commits with how far the task is; killed in between, it writes the
same bytes again. A folder that cannot be written stops its task and no other: nothing is passed over.

A task whose settings or tables changed, and a historical run, go through the whole feed again. What such a
pass finds up to the position reached before (`WritePlace.reached`) did not change at its source, and raises
no alert about a record.
"""

from __future__ import annotations

import errno
import re
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

import orjson

from indlet.durable import sync, write_whole
from indlet.exchange.duplicates.same_works import same_as_ours
from indlet.exchange.marc_originals import MarcOriginals
from indlet.exchange.subject_learning import learned_subjects
from indlet.exchange.subject_translation import mark_inferred, subject_translation
from indlet.exchange.translate import format_named, on_top, own_table
from indlet.exchange.write_check import check_task
from indlet.exchange.write_state import RaisedAlert, WriteBatch, WritePlace, Written, settings_digest
from indlet.formats import CommonRecord, MetadataFormat, common_record
from indlet.formats.crosswalk import UNWRITTEN, Crosswalk, Lost
from indlet.formats.dublin import year
from indlet.formats.registry import ROOTS, Roots, known_roots
from indlet.model import Stored
from indlet.oai.dates import written
from indlet.oai.provenance import own_sets, state_at_origin
from indlet.provider.echoes import echo_key_of_file
from indlet.service.harvest.cache import KEPT_AS
from indlet.settings import Settings, Write
from indlet.store import FileState, Origin, Store, kept_tables
from indlet.text import Analyzer, Policy

KIND: Final = "write"
_BATCH: Final = 200
_TOGETHER: Final = 5000  # records in one file
_PARTS: Final = ("metadata", "properties", "raw")
_UNSAFE = re.compile(r"[^\w.,=@+-]+")
_ELEMENT = re.compile(r"[.\[]")  # what follows an element: a refinement or a scheme
_TITLE: Final = 300  # characters
_PART_BYTES: Final = 120
_MEND: Final = "mend the record at its source, or the table of [[write]]"
_REMEDIES: Final = {
    errno.ENOENT: "make the folder, or correct [[write]]",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room on its disk"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "give the right to write"),
}
_GONE: Final = "deleted"  # the state of a file whose record was deleted at its source, and which stays
_SHORTEN: Final = f'{_MEND}; format = "marcxml" has no limits of length'


def write_out(store: Store, settings: Settings, *, historical: bool = False) -> list[Written]:
    """Every task of the settings, one after the other; `historical`: all records, not what changed."""
    roots = known_roots(settings)
    return [WriteTask(store, task, roots).run(threading.Event(), historical) for task in settings.write]


class WriteTask:
    """One folder that is kept up to what others have."""

    def __init__(self, store: Store, task: Write, roots: Roots = ROOTS) -> None:
        """`roots`: the formats in which others' originals can be read."""
        check_task(task)
        self._store, self._task, self._roots = store, task, roots
        self._format: MetadataFormat = format_named(task.format)
        self._table: Crosswalk = on_top(task.mapping, self._format.crosswalk(()), self._format)
        own = own_table(task.mapping, self._format) if task.mapping else None
        self._originals = MarcOriginals(self._format, own, self._table)
        self._subjects = subject_translation(task.subjects, task.subject_method)
        self._analyzer = Analyzer(Policy())
        self._folder = Path(task.folder)
        self._name = str(self._folder)
        self._made = settings_digest(task)
        self._same_as_ours: frozenset[str] = frozenset()

    def run(self, stop: threading.Event, historical: bool = False) -> Written:
        """Bring the folder up to the store; interrupted, the next run goes on from there."""
        done, remedy = Written(self._name), ""
        with self._store.job(f"write-{blake2b(self._name.encode(), digest_size=6).hexdigest()}"):
            with self._store.write() as tx:
                origin = tx.origin(KIND, self._name, {"format": self._task.format})
            with self._store.read() as view:
                place = WritePlace.of(view.state(origin))
                killed = [run for run in view.runs(origin, 1) if run.outcome == "running"]
            made = self._made
            if self._task.duplicates == "skip":  # what is decided changes what is selected
                self._same_as_ours, decided = same_as_ours(self._store)
                made = f"{made} {decided}"
            if historical or place.made != made:
                place.start_over()
                place.made = made
            with self._store.write() as tx:
                for run_before in killed:  # the permit is ours, so that run is over
                    tx.note_run(run_before.id, run_before.detail, "interrupted")
                run = tx.start_run(origin, KIND)
                tx.state(origin, asdict(place))
            try:
                if killed:
                    self._remove_drafts()
                self._follow(origin, place, stop, done)
            except OSError as e:
                done.reason = (
                    f"{e.filename or self._folder}: {e.strerror}; nothing is lost, the next run goes on"
                )
                remedy = _REMEDIES.get(e.errno or 0, "see to the folder and its disk")
            with self._store.write() as tx:
                detail = {"files": done.files, "unchanged": done.unchanged, "deleted": done.deleted,
                          "failed": done.failed, "reason": done.reason}  # fmt: skip
                tx.note_run(run, detail, "failed" if done.reason else "complete")
                if done.reason:
                    tx.alert("folder", self._name, "", done.reason, remedy)
                else:
                    tx.resolve_alerts("folder", self._name, [""])
        return done

    def _remove_drafts(self) -> None:
        """Remove what a killed run left half written."""
        for draft in self._folder.rglob(".*.part"):
            if draft.name.endswith((f"{self._format.suffix}.part", ".deleted.part")):
                draft.unlink(missing_ok=True)

    def _follow(self, origin: int, place: WritePlace, stop: threading.Event, done: Written) -> None:
        if not self._folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder", self._name)
        with self._store.read() as view:
            known = {state.resource: state for state in view.files(origin)}
            # Whether somebody has deleted these in the catalogue: they may come back.
            imported_no_more = {
                alert.record: alert.acknowledged is not None
                for alert in view.alerts(acknowledged=True)
                if (alert.kind, alert.source) == ("deleted", self._name)
            }
        learns = self._task.subject_method == "learned"
        parts = (*_PARTS, "vector") if learns else _PARTS
        most = _TOGETHER if self._task.files == "run" else _BATCH
        while not stop.is_set():
            with self._store.read() as view:
                changes = list(view.changes(place.position, most, parts=parts))
                sources = {o.id: o for o in view.origins("source")}
            names = _names(sources.values())
            if not changes:
                return
            if learns and self._subjects is not None:  # once a run, and only if there is something to write
                self._subjects = replace(
                    self._subjects, learned=learned_subjects(self._store, self._analyzer)
                )
                learns = False
            batch = WriteBatch()
            for stored in changes:
                source = sources.get(stored.origin)
                if source is None:
                    continue
                before = known.get(stored.identifier)
                if stored.deleted or not self._wanted(stored, names[source.id]):
                    if before is None or before.state == _GONE:
                        continue
                    if self._elsewhere(stored, names):
                        continue
                    self._drop(stored, source, before, place, batch, done)
                    known.pop(stored.identifier, None)
                    continue
                deleted = imported_no_more.pop(stored.identifier, None)
                state = self._put(stored, source, before, deleted, place, batch, done)
                if state is not None:
                    batch.rows.append(state)
                    if before is not None and before.path != state.path:
                        batch.gone.append(before.path)
                        (self._folder / before.path).unlink(missing_ok=True)
                        _tombstone(self._folder / before.path).unlink(missing_ok=True)
                    known[stored.identifier] = state
            place.position = changes[-1].seq
            self._commit(origin, place, batch, done)

    def _commit(self, origin: int, place: WritePlace, batch: WriteBatch, done: Written) -> None:
        head, tail = self._format.around
        for path, packed in batch.together.items():
            _replace(self._folder / path, b"".join((head, *packed, tail)))
            done.files += 1
        if batch.together:  # killed before the commit, the next run writes these files again
            place.number += 1
        raised = {(alert.kind, alert.record) for alert in batch.raised}
        with self._store.write() as tx:
            tx.drop_files(origin, batch.gone)
            tx.put_files(origin, batch.rows)
            written = filter(all, batch.echo_keys.items())
            tx.upsert(kept_tables.WRITTEN_ECHOES, [kept_tables.WrittenEcho(*one) for one in written])
            for kind in ("deleted", "translation"):
                over = [
                    s.resource for s in batch.rows if s.state != _GONE and (kind, s.resource) not in raised
                ]
                tx.resolve_alerts(kind, self._name, over)
            for alert in batch.raised:
                tx.alert(alert.kind, self._name, alert.record, alert.reason, alert.remedy)
            if batch.again or batch.dropped:
                place.again, place.dropped = place.again + batch.again, place.dropped + batch.dropped
                said = f"[[write]], its tables or decisions changed: {place.again:,} files were written again"
                said += f", {place.dropped:,} records are no longer selected" if place.dropped else ""
                remedy = "import the folder again" + (
                    "; delete in the catalogue what is no longer selected" if place.dropped else ""
                )
                tx.alert("rewritten", self._name, "", said, remedy)
            tx.state(origin, asdict(place))

    def _elsewhere(self, stored: Stored, names: Mapping[int, Sequence[str]]) -> bool:
        """Whether another source has the record alive and is selected: then that one keeps its file."""
        with self._store.read() as view:
            copies = (view.get(stored.identifier, [origin]) for origin in names if origin != stored.origin)
            return any(
                copy is not None and not copy.deleted and self._wanted(copy, names[copy.origin])
                for copy in copies
            )

    def _wanted(self, stored: Stored, names: Sequence[str]) -> bool:
        if stored.identifier in self._same_as_ours:
            return False
        specs = stored.sets.split()
        for chosen in self._task.from_ if names else ():
            name, _, spec = chosen.partition(":")
            if name not in ("*", *names):
                continue
            if not spec or any(s == spec or s.startswith(f"{spec}:") for s in specs):
                return True
        return False

    def _put(
        self,
        stored: Stored,
        source: Origin,
        before: FileState | None,
        deleted: bool | None,
        place: WritePlace,
        batch: WriteBatch,
        done: Written,
    ) -> FileState | None:
        """Write a record's file. `deleted`: it was deleted before, and whether somebody has seen to that."""
        try:
            data, raised = self._data(stored)
        except ValueError as e:
            done.failed += 1
            reason = f"cannot be written as {self._task.format}: {e}"
            remedy = _SHORTEN if self._task.format in ("marc21", "marc8") else _MEND
            batch.raised.append(RaisedAlert("translation", stored.identifier, reason, remedy))
            return None
        batch.raised += raised
        batch.echo_keys[echo_key_of_file(data, self._format, self._table)] = stored.identifier
        path, version = self._path(stored, source), state_at_origin(orjson.loads(stored.properties or b"{}"))
        digest = blake2b(data, digest_size=16).hexdigest()
        file, when, shown = self._folder / path, written(stored.datestamp), path
        same = before is not None and before.path == path and before.digest == digest
        # A catalogue imports what is new in its folder: what was deleted there has to be written again.
        if self._task.files == "run" and (same and not deleted):
            done.unchanged += 1
        elif self._task.files == "run":
            shown = self._path(stored, source, f"run-{place.number:06d}")
            head, tail = self._format.around
            batch.together.setdefault(shown, []).append(data[len(head) : len(data) - len(tail)])
        elif not deleted and ((same and file.exists()) or _same(file, data)):
            done.unchanged += 1
        else:
            _replace(file, data)
            done.files += 1
        if before is None or before.state == _GONE:
            _tombstone(file).unlink(missing_ok=True)  # it is back
            if deleted or (before is not None and not same):
                said = f"deleted before, and given again by its source {source.name} on {when}; {shown} was "
                remedy = "import it again in the catalogue"
                batch.raised.append(
                    RaisedAlert("returned", stored.identifier, f"{said}written again", remedy)
                )
        elif not same and stored.seq <= place.reached:
            batch.again += 1
        elif not same:
            said = f"changed at its source {source.name} on {when}; {shown} was written again"
            if version and before.etag == version:
                said = f"not changed at its source {source.name}, but here in a better form since {when}; "
                said += f"{shown} was written again"
            remedy = "import it again in the catalogue"
            batch.raised.append(RaisedAlert("changed", stored.identifier, said, remedy))
        return FileState(
            path, stored.identifier, len(data), int(time.time()), version, digest, self._task.format, KIND,
            _title(stored),
        )  # fmt: skip

    def _data(self, stored: Stored) -> tuple[bytes, list[RaisedAlert]]:
        """A record in the catalogue's format, and what of it is lacking there that ought not to be."""
        record = CommonRecord.of(orjson.loads(stored.metadata), stored.identifier, written(stored.datestamp))
        original = record = common_record(stored.raw, record, self._roots, stored.properties)
        lost, raised, packed = list[Lost](), list[RaisedAlert](), b""
        if self._subjects is not None:
            terms = self._analyzer.frequencies(stored) if self._subjects.learned else {}
            record = mark_inferred(self._subjects.translated(record, terms), self._table)
        if (whole := self._originals.fields(stored.raw, original, record)) is not None:
            try:
                packed = self._format.pack(whole)
            except ValueError as e:
                reason = f"translated to {self._task.format}, not written whole: {e}"
                raised.append(RaisedAlert("translation", stored.identifier, reason, _SHORTEN))
        packed = packed or self._format.pack(self._table.write(record, lost))
        unwritten = Counter(_ELEMENT.split(x.where, maxsplit=1)[0] for x in lost if x.reason == UNWRITTEN)
        said = Counter(statement.element for statement in record.statements)
        head, tail = self._format.around
        missing = [element for element in self._task.required if said[element] <= unwritten[element]]
        if missing:
            reason = f"written as {self._task.format} without {', '.join(missing)}"
            raised.append(RaisedAlert("translation", stored.identifier, reason, _MEND))
        return head + packed + tail, raised

    def _path(self, stored: Stored, source: Origin, name: str = "") -> str:
        """Where a record is written; `name`: of the file of many records that it is part of."""
        metadata = orjson.loads(stored.metadata)
        found = next(filter(None, map(year, metadata.get("date", ()))), None)
        local = stored.identifier.rpartition(":")[2] or stored.identifier
        # Two identifiers may look alike once they are made safe.
        short = blake2b(stored.identifier.encode(), digest_size=4).hexdigest()
        places = {
            "source": _safe(source.name), "year": str(found or "undated"),
            "set": _safe(next(iter(own_sets(stored.sets.split())), "none")),
            "name": name or f"{_safe(local)}-{short}",
        }  # fmt: skip
        parts = [_safe(part) for part in self._task.path.format(**places).split("/") if part.strip(". ")]
        return "/".join(parts) + self._format.suffix

    def _drop(
        self,
        stored: Stored,
        source: Origin,
        before: FileState,
        place: WritePlace,
        batch: WriteBatch,
        done: Written,
    ) -> None:
        """Deal with the file of a record that is deleted at its source, or no longer selected."""
        file, when = self._folder / before.path, written(stored.datestamp)
        done.deleted += 1
        if self._task.deletions == "remove":
            file.unlink(missing_ok=True)
        elif self._task.deletions == "file":
            tombstone = {"identifier": stored.identifier, "deleted": when}
            _replace(_tombstone(file), orjson.dumps(tombstone) + b"\n")
        if self._task.deletions == "remove" or not stored.deleted:
            batch.gone.append(before.path)
        else:
            batch.rows.append(before._replace(state=_GONE))
        if not stored.deleted and stored.seq <= place.reached:
            batch.dropped += 1
        elif self._task.deletions != "remove":
            what = "deleted at its source" if stored.deleted else "no longer among what [[write]] selects of"
            said = f"{what} {source.name} on {when}"
            said += f"; {before.path} was written from it" if self._task.files == "record" else ""
            batch.raised.append(RaisedAlert("deleted", stored.identifier, said, "delete it in the catalogue"))


def _title(stored: Stored) -> str:
    """Kept with the file, in place of a policy: a deleted record has no title any more."""
    return str(next(iter(orjson.loads(stored.metadata).get("title", ())), ""))[:_TITLE]


def _tombstone(place: Path) -> Path:
    return place.with_name(f"{place.name}.deleted")


def _names(sources: Collection[Origin]) -> dict[int, list[str]]:
    """What each source is called: its own name, and those of the sources whose records it keeps."""
    kept_as = [(o.name, o.settings.get(KEPT_AS)) for o in sources]
    return {o.id: [o.name, *(name for name, keeper in kept_as if keeper == o.name)] for o in sources}


def _safe(text: str) -> str:
    """A name that is one part of a path, whatever it was before."""
    found = _UNSAFE.sub("_", text).strip("._") or "_"
    return found.encode()[:_PART_BYTES].decode("utf-8", "ignore")


def _same(place: Path, data: bytes) -> bool:
    try:
        return place.stat().st_size == len(data) and place.read_bytes() == data
    except OSError:
        return False


def _replace(place: Path, data: bytes) -> None:
    made = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    for folder in made:  # the store will say that the file is there: so must the disk after a power cut
        sync(folder.parent)
    write_whole(place, data, 0o644)
