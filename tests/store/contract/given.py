"""What the contract tests begin with."""

from __future__ import annotations

from typing import Any, Protocol

from indlet.model import Record, Stored, TermVector
from indlet.store import Store


class Make(Protocol):
    def __call__(self, name: str = "data", **options: Any) -> Store:
        """The store of that name, opened once more."""


class Clock:
    """A clock that the test moves."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def record(name: str, text: str = "wing air", sets: tuple[str, ...] = ("a:b",)) -> Record:
    vector = TermVector.of(dict.fromkeys(text.split(), 1))
    return Record(f"oai:x.org:{name}", {"title": [name]}, vector, sets, raw=b"<dc/>", resource=name)


def listed(store: Store, **where: object) -> list[Stored]:
    with store.read() as view:
        return view.page(1000, **where)  # type: ignore[arg-type]
