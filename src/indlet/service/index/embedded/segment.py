"""A segment as the manifest knows it, opened by the core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from indlet import _core
from indlet.errors import IndexDamaged
from indlet.service.index.embedded.manifest import REMEDY, SegmentFile


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment with its deletions up to a commit."""

    file: SegmentFile
    deletions: SegmentFile | None
    core: _core.Segment

    @property
    def documents(self) -> int:
        """Live documents."""
        return self.core.documents

    @property
    def deleted(self) -> int:
        return self.core.size - self.core.documents

    @property
    def bytes(self) -> int:
        return self.file.size + (self.deletions.size if self.deletions else 0)

    def without(self, docs: list[int], folder: Path, name: str) -> Segment:
        """This segment with these documents deleted as well; writes the new deletions."""
        written = self.core.write_deletions(docs, folder / name)
        return self.with_deletions(SegmentFile(name, *written), folder)

    def with_deletions(self, file: SegmentFile | None, folder: Path) -> Segment:
        """This segment with the deletions of that file instead of its own; itself if these are the same."""
        if file == self.deletions:
            return self
        path, written = (None, None) if file is None else (folder / file.name, (file.size, file.checksum))
        with explain_damage():
            return Segment(self.file, file, self.core.with_deletions(path, written))


class explain_damage:
    """Adds the remedy to what the core says of a damaged file."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, IndexDamaged) and REMEDY not in str(error):
            raise IndexDamaged(f"{error}; {REMEDY}") from error


def open_segment(folder: Path, file: SegmentFile, deletions: SegmentFile | None = None) -> Segment:
    """Raises FileNotFoundError if a file has gone, IndexDamaged if it is not as it was written."""
    with explain_damage():
        core = _core.Segment.open(folder / file.name, (file.size, file.checksum))
    return Segment(file, None, core).with_deletions(deletions, folder)
