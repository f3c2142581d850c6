"""A kernel that Python runs does what the compiled one does, number for number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.kernels import interpreted, jit, state
from indlet.kernels.codec import lowest_bit, ones
from indlet.kernels.interpreted import Unsigned
from indlet.kernels.jit import Kernel, kernel
from indlet.model import Record, TermVector
from indlet.service.rank import MODELS
from indlet.service.search.library import FACETS, Library

WORDS = ("salt", "wind", "appl", "harbour", "réseau", "沙漠", "a" * 40)
GERMAN = "Die Reise durch das Land und was wir dort sahen"
MASK = 2**64 - 1


def records(many: int) -> list[Record]:
    """Some with vectors, with positions or without, and some that are analysed on the way into the index."""
    found = []
    for n in range(many):
        words = [WORDS[(n * k + k) % len(WORDS)] for k in range(1, 3 + n % 9)] + [f"w{n % 40}", f"only{n}"]
        metadata = {
            "title": [" ".join(words)], "creator": [f"Name, {chr(65 + n % 26)}."],
            "date": [str(1900 + n % 90)],
            "description": [GERMAN if n % 3 else "The sea and the wind"],
        }  # fmt: skip
        places = {word: [k for k, w in enumerate(words) if w == word] for word in words}
        vector = TermVector.of_positions(places) if n % 2 else None
        if vector and n % 4 == 1:
            vector = TermVector(vector.packed, vector.length, language="en")
        found.append(Record(f"oai:x:{n}", metadata, vector, ("a",)))
    return found


def answers(folder: Path) -> tuple[list[bytes], list[Any]]:
    """The index that is made of the records, file by file, and what it answers."""
    with Library.open(folder) as library:
        for name, many in (("one", 160), ("two", 30)):
            with library.store.write() as tx:
                tx.put(tx.origin("source", name, {}), records(many))
            library.sync()
        with library.store.write() as tx:
            tx.delete(1, [f"oai:x:{n}" for n in range(0, 160, 7)])
        library.sync()
        files = sorted(p for p in (folder / "index").iterdir() if p.suffix == ".idx")
        found: list[Any] = []
        for model in MODELS:
            for query in ("salt wind", "w3 harbour réseau", "salt AND wind NOT w4", "wind only17 only8"):
                result = library.search(query, model=model, facets=FACETS, limit=20)
                found.append((result.total, result.facets, [(h.identifier, h.score) for h in result]))
        for query in ('"salt wind"', "wi*", "title:harbour date:1910..1950", "creator:Name"):
            newest = library.search(query, sort="newest")
            found.append([(hit.identifier, hit.score) for hit in newest])
        found.append(library.search("hrbour").suggestions)
        found.append(library.explain("salt wind", "oai:x:1", source="one").score)
        return [p.read_bytes() for p in files], found


def test_an_index_and_its_answers_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = answers(tmp_path / "compiled")
    monkeypatch.setattr(Kernel, "__call__", Kernel.by_python)
    python = answers(tmp_path / "python")
    assert python[0] == compiled[0]
    assert python[1] == compiled[1]


@kernel
def calculated(a: Any, b: Any, n: int, out: Any) -> int:
    """What kernels do with numbers without a sign."""
    x, y = a[0], b[0]
    out[0], out[1], out[2] = x + y, x - y, x * y
    out[3], out[4], out[5], out[6] = x & y, x | y, x ^ y, ~x
    out[7], out[8] = x << np.uint64(n), x >> np.uint64(n)
    out[9], out[10] = np.uint64(ones(x)), np.uint64(lowest_bit(x | np.uint64(1 << 40)))
    return int(np.int64(x))


NUMBERS = st.integers(0, MASK) | st.sampled_from([0, 1, 2**63, 2**63 - 1, MASK])


@given(x=NUMBERS, y=NUMBERS, n=st.integers(0, 63))
@settings(max_examples=100, deadline=None)
def test_numbers_without_a_sign_wrap_around(x: int, y: int, n: int) -> None:
    a, b = np.array([x], np.uint64), np.array([y], np.uint64)
    compiled, python = np.zeros(11, np.uint64), np.zeros(11, np.uint64)
    assert calculated(a, b, n, compiled) == Kernel.by_python(calculated, a, b, n, python)  # type: ignore[arg-type]
    assert compiled.tolist() == python.tolist()


def test_items_are_kept_as_their_array_can_hold_them() -> None:
    for kind in (np.uint8, np.int32, np.uint32, np.int64, np.uint64):
        array = np.zeros(1, kind)
        for value in (0, -1, 2**31, 2**32 + 7, Unsigned(MASK)):
            interpreted.Array(array)[0] = value
            assert array[0] == np.array([value & MASK], np.uint64).astype(kind)[0]


def test_a_word_that_is_not_all_in_its_array_is_an_error() -> None:
    array = interpreted.Array(np.arange(12, dtype=np.uint8))
    array.put_word(4, array.word(0))
    assert array.word(4) == int.from_bytes(range(8), "little")
    for at in (5, 12, -8):
        with pytest.raises(IndexError):
            array.word(at)
        with pytest.raises(IndexError):
            array.put_word(at, 0)


FIRST = """
import sys, time
from indlet.service.search.library import Library
with Library.open(sys.argv[1]) as library:
    print(library.search("salt wind").total, "numba" in sys.modules)
"""


def test_nobody_waits_for_a_compiler(tmp_path: Path) -> None:
    """The first index and the first search of a fresh installation are made without one."""
    with Library.open(tmp_path / "data") as library, library.store.write() as tx:
        tx.put(tx.origin("source", "one", {}), records(50))
    # A folder in which the compiler of another process is at work, as far as anybody can tell.
    cache = tmp_path / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    there = subprocess.run(
        [sys.executable, "-c", "from indlet.kernels import state; print(state.folder())"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    with state.alone(Path(there) / ".kernels-compiling.lock"):
        told = subprocess.run(
            [sys.executable, "-c", FIRST, str(tmp_path / "data")],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
    total, compiler = told.stdout.split()
    assert int(total) > 10
    assert compiler == "False"


def test_large_work_waits_and_long_work_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(state, "_compiles", False)
    monkeypatch.setattr(state, "_compiler", lambda: None)
    asked: list[str] = []
    monkeypatch.setattr(Kernel, "_compiled", lambda self, _: asked.append(self.__name__))
    monkeypatch.setattr(jit, "_keep", lambda name, machine: None)

    def summed(numbers: Any) -> int:
        total = 0
        for i in range(numbers.size):
            total += numbers[i]
        return int(total)

    made: Any = Kernel(summed, _nrt=False)
    assert made(np.arange(10)) == 45
    assert made(np.arange(10, dtype=np.int32)) == 45
    assert not asked
    with pytest.raises(AttributeError):  # there is no machine code to link
        made(np.zeros(1 << 20))
    assert asked == ["summed"]
    made._patience = 0.0
    with pytest.raises(AttributeError):
        made(np.arange(10))
    assert asked == ["summed"] * 2
