"""The embedded engine as the protocol of an index wants it (`service/index/protocol.py`)."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from indlet.model import Stored
from indlet.service.index.embedded import manifest as manifests
from indlet.service.index.embedded.engine import Engine, Pruning
from indlet.service.index.embedded.merge_scheduler import Merger, merge_once, settle
from indlet.service.index.embedded.searcher import SegmentSearcher
from indlet.service.index.protocol import IndexState, Prepared
from indlet.text import Analyzer


class EmbeddedWriter:
    """An engine that is open for writing, and the analysis of what it is given."""

    def __init__(self, engine: Engine, analyzer: Analyzer) -> None:
        self._engine = engine
        self._analyzer = analyzer

    @property
    def position(self) -> int:
        return self._engine.position

    @property
    def applied(self) -> int:
        return self._engine.applied

    @property
    def anew(self) -> bool:
        return self._engine.anew

    def prepare(self, changes: Sequence[Stored]) -> Prepared:
        return Prepared(changes)

    def apply(self, prepared: Prepared) -> int:
        return self._engine.apply(prepared.changes, self._analyzer)

    def commit(self, position: int | None = None, about: Mapping[str, str] | None = None) -> None:
        self._engine.commit(position, None if about is None else dict(about))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()


class EmbeddedIndex:
    """The index in a folder. May be used by many threads."""

    def __init__(self, folder: Path, pruning: tuple[float, int] | None = None) -> None:
        self.folder = folder
        self._pruning = pruning
        self._guard = threading.Lock()
        self._reader: Engine | None = None

    def state(self) -> IndexState:
        manifest = manifests.read(self.folder)
        return IndexState(manifest.position, manifest.extra)

    def version(self) -> Hashable:
        return manifests.stamp(self.folder)

    def searcher(self) -> SegmentSearcher:
        with self._guard:
            if self._reader is None:
                self._reader = Engine.open(self.folder)
            return self._reader.searcher()

    def writer(self, analyzer: Analyzer, anew: bool = False) -> EmbeddedWriter:
        from indlet.service.index.embedded.engine import Engine

        pruning = self._pruning and Pruning(*self._pruning)
        return EmbeddedWriter(Engine.open(self.folder, writable=True, anew=anew, pruning=pruning), analyzer)

    def erase(self) -> None:
        Engine.erase(self.folder)

    def upkeep(self) -> Merger:
        return Merger(self.folder)

    def settle(self, everything: bool = False) -> None:
        if not everything:
            settle(self.folder)
            return
        with suppress(OSError):  # it is complete, if not yet in one piece
            merge_once(self.folder, everything=True)

    def close(self) -> None:
        with self._guard:
            if self._reader is not None:
                self._reader.close()
