"""Segments on disk: shorter forms of frequencies and columns, and indexes from before there were any."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from indlet.kernels.codec import BLOCK, LESS, PADDING, SPARSE, WIDTH, decode, encode, room
from indlet.model import Stored
from indlet.service.index.embedded.array_file import ArrayFile, read_arrays
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.merge_scheduler import tidy
from indlet.service.index.embedded.searcher import SegmentSearcher
from indlet.service.index.expression import Or, Term
from indlet.service.rank import MODELS

SHARES = {"every": 0.99, "most": 0.7, "half": 0.5, "some": 0.2, "few": 0.03, "once": 0.002}
DOCUMENTS = 900
# Made by `fill`, when frequencies and columns had no shorter forms.
FIRST_FORMAT = Path(__file__).parent / "fixtures/first-format.zip"
QUERIES = (
    "every few",
    "half some word7",
    "once most",
    "every",
    "word1 word2 word3",
    "few some half most every",
)


def _content(source: random.Random) -> dict[str, int]:
    return {
        term: source.choice([1, 1, 1, 1, 1, 1, 2, 2, 3, 17])
        for term, share in SHARES.items()
        if source.random() < share
    } | {f"word{source.randrange(300)}": source.choice([1, 2, 300])}


def fill(engine: Engine, record: Callable[..., Stored]) -> None:
    """Two commits; the second replaces and deletes documents of the first."""
    source = random.Random(11)
    for id in range(1, DOCUMENTS + 1):
        engine.apply([record(id, id, _content(source), resource=id % 50, origin=id % 3 + 1)])
    engine.commit()
    for seq, id in enumerate(source.sample(range(1, DOCUMENTS), 120), DOCUMENTS + 1):
        engine.apply([record(id, seq, _content(source) if id % 2 else None, origin=id % 3 + 1)])
    engine.commit()


def answers(searcher: SegmentSearcher) -> list[object]:
    found: list[object] = [searcher.fingerprint(), searcher.terms("", 20), searcher.terms("word")]
    for model in MODELS.values():
        for query in QUERIES:
            expression = Or(tuple(map(Term, query.split())))
            exact = searcher.search(expression, model(), 7, 2)
            quick = searcher.search(expression, model(), 7, 2, exact_total=False)
            assert quick.hits == exact.hits
            found.append((exact.total, exact.hits))
    return found


def versions(folder: Path) -> set[bytes]:
    return {path.read_bytes()[-8:] for path in folder.glob("*.idx")}


def test_an_index_of_the_first_format_answers_the_same_before_and_after_a_merge(
    tmp_path: Path, record: Callable[..., Stored]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    zipfile.ZipFile(FIRST_FORMAT).extractall(old)
    with Engine.open(new, writable=True) as engine:
        fill(engine, record)
        expected = answers(engine.searcher())
    assert versions(old) == {b"indlet-1"}
    assert versions(new) == {b"indlet-2"}
    assert sum(path.stat().st_size for path in new.glob("*.idx")) < sum(
        path.stat().st_size for path in old.glob("*.idx")
    )
    with Engine.open(old) as engine:
        assert answers(engine.searcher()) == expected
    tidy(old, everything=True)
    assert versions(old) == {b"indlet-2"}
    with Engine.open(old) as engine:
        assert len(engine.searcher().segments) == 1
        assert answers(engine.searcher()) == expected


@pytest.mark.parametrize(
    ("array", "stored"),
    [
        (np.arange(7, 1007, dtype=np.uint32), 1000),
        (np.array([5] * 1000, np.uint64), 0),
        (np.array([0] * 1000, np.uint8), 0),
        (np.array([20_010_203, 20_010_100] * 500, np.uint32), 1000),
        (np.array([-3, 4, -3] * 300, np.int64), 900),
        (np.array([0, 2**64 - 1] * 400, np.uint64), 6400),
        (np.array([-(2**63), 2**63 - 1], np.int64), 16),
        (np.array([2**63, 2**63 + 70_000, 2**63], np.uint64), 12),
        (np.array([9], np.uint32), 0),
        (np.array([], np.uint32), 0),
        (np.array([1.5, 1.5]), 16),
        (np.array([3, 200, 1], np.uint8), 3),
    ],
)
def test_columns_come_back_as_they_were(tmp_path: Path, array: NDArray[np.generic], stored: int) -> None:
    out = ArrayFile(tmp_path / "file")
    out.add("array", array)
    file = out.close({})
    found, _ = read_arrays(tmp_path, file)
    assert found["array"].dtype == array.dtype
    assert found["array"].tolist() == array.tolist()
    assert found["array"].flags.writeable
    assert file.size < stored + 150  # the directory


def test_posting_lists_come_back_as_they_were() -> None:
    source = np.random.default_rng(3)
    lists = []
    for _ in range(300):
        count = int(source.choice([1, 2, 60, BLOCK, BLOCK + 1, 700]))
        most = int(source.choice([2, 30, 3_000_000 // count]))  # gaps of 1 to 22 bits
        docs = np.cumsum(source.integers(1, most, count)) - 1
        choices = [[1], [1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1, 3], [1, 2, 3, 4], [1] * 30 + [900, 2**31]]
        lists.append((docs, source.choice(choices[source.integers(len(choices))], count)))
    starts = np.cumsum([0, *(docs.size for docs, _ in lists)])
    joined = [np.concatenate(parts).astype(np.uint32) for parts in zip(*lists, strict=True)]
    out, ends = np.zeros(int(room(starts)) + PADDING, np.uint8), np.zeros(len(lists), np.int64)
    encode(joined[0], joined[1], starts, np.full(3_000_000, 50, np.uint32), out, ends)
    seen = set()
    for (docs, freqs), begin in zip(lists, [0, *ends.tolist()][:-1], strict=True):
        held = np.empty(docs.size, np.uint32), np.empty(docs.size, np.uint32)
        assert decode(out, begin, *held, 0) == docs.size
        assert held[0].tolist() == docs.tolist()
        assert held[1].tolist() == freqs.tolist()
        if docs.size == BLOCK:  # 2-byte df, then cf
            at = begin + 2
            while out[at] >= 0x80:
                at += 1
            how = int(out[at + 2])
            seen.add(how & (SPARSE | LESS))
            assert how & WIDTH == int(freqs.max() - 1).bit_length()
    assert seen == {0, SPARSE, SPARSE | LESS}


def test_terms_of_a_prefix_are_the_most_frequent_of_all_segments(
    tmp_path: Path, record: Callable[..., Stored]
) -> None:
    with Engine.open(tmp_path, writable=True) as engine:
        fill(engine, record)
        searcher = engine.searcher()
    assert len(searcher.segments) > 1
    every = [(name.decode(), df, cf) for name, df, cf in searcher.vocabulary()]
    for prefix in ("", "w", "word1", "word12", "zzz", "e"):
        wanted = sorted((-df, name.encode(), cf) for name, df, cf in every if name.startswith(prefix))
        listed = [(name.decode(), -df, cf) for df, name, cf in wanted]
        for limit in (None, 0, 1, 3, 50, 1000):
            assert searcher.terms(prefix, limit) == listed[:limit]
