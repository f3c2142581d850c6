"""What waits to be committed, and a commit that runs aside while the next page is read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from indlet.model import Failure, Record


@dataclass(slots=True)
class Pending:
    """What has come and is not committed."""

    records: list[Record] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)


class Aside:
    """A call in a thread of its own; `join` raises what it raised."""

    def __init__(self, call: Callable[..., None], *arguments: Any) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call, arguments), name="harvest-commit")
        self._thread.start()

    def _run(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            call(*arguments)
        except BaseException as e:
            self._error = e

    def join(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error
