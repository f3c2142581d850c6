"""A process that brings the index up to the store while another one fills the store.

    python -m indlet.service.index.indexer FOLDER POLICY

Indexing is nearly half of the work of a harvest, and threads of one interpreter do not share that out well:
so it goes on in an interpreter of its own, which knows of the store and of nothing else. When its standard
input ends, that is, with whoever started it, it brings the index up to the store and ends too.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from indlet.errors import IndletError
from indlet.service.index import follow
from indlet.store import Store
from indlet.text import Analyzer, Policy

# Changes that are worth a process; and how many must be expected for one to get ready before they are there.
CHANGES: Final = 5_000
LARGE: Final = 20_000


class Indexer:
    """Such a process, from when it is first worth while to the end of the block."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Indexer:
        return self

    def look(self, expected: int = 0) -> None:
        """Start the process if the index is far enough behind, or will be by what is expected."""
        if self._process is None:
            newest, position = follow.lag(self._store)
            if expected >= LARGE or newest - position >= CHANGES:
                command = [sys.executable, "-m", __name__, str(self._store.folder)]
                self._process = subprocess.Popen(
                    [*command, json.dumps(self._policy.to_json())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )

    def __exit__(self, *_: object) -> None:
        """Waits until the index is up to the store."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()


@contextlib.contextmanager
def collector_resting() -> Iterator[None]:
    """Ingest makes many objects and no cycles; the cyclic collector would look at them in vain."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def main(folder: str, policy: str) -> None:
    atexit.register(gc.freeze)  # nobody need look for cycles in what goes with the process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us; that ends our input
    analyzer = Analyzer(Policy.from_json(json.loads(policy)))
    # What is wrong is said by whoever started us, who tries again.
    with (
        contextlib.suppress(IndletError),
        collector_resting(),
        Store.open(Path(folder), create=False) as store,
    ):
        follow.pursue(store, lambda seconds: bool(select.select([sys.stdin], [], [], seconds)[0]), analyzer)


if __name__ == "__main__":
    main(*sys.argv[1:])
