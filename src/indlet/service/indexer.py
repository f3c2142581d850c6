"""A process that brings the index up to the store while another one fills the store.

    python -m indlet.service.indexer FOLDER POLICY

Indexing is a fifth of the work of a harvest, and two threads of one interpreter do not share it out: so it
goes on in an interpreter of its own, which knows of the store and of nothing else. It ends when its standard
input does, that is, with whoever started it.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from indlet.errors import IndletError
from indlet.service import follow
from indlet.store import Store
from indlet.text import Analyzer, Policy

# Changes that are worth a segment of their own, and how often to look for them.
CHANGES: Final = 25_000
SECONDS: Final = 0.25


class Indexer:
    """Such a process, from when it is first worth while to the end of the block."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Indexer:
        return self

    def look(self) -> None:
        """Start the process if the index is far enough behind."""
        if self._process is None:
            newest, position = follow.lag(self._store)
            if newest - position >= CHANGES:
                command = [sys.executable, "-m", __name__, str(self._store.folder)]
                self._process = subprocess.Popen(
                    [*command, json.dumps(self._policy.to_json())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()


def main(folder: str, policy: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us; that ends our input
    analyzer = Analyzer(Policy.from_json(json.loads(policy)))
    with Store.open(Path(folder), create=False) as store:
        while not select.select([sys.stdin], [], [], SECONDS)[0]:
            newest, position = follow.lag(store)
            if newest - position >= CHANGES:
                try:
                    follow.catch_up(store, analyzer=analyzer)
                except IndletError:
                    return  # it is tried again by whoever started us, and what is wrong is said there


if __name__ == "__main__":
    main(*sys.argv[1:])
