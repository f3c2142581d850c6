"""Merging aside: whatever happens while a merge runs, the index is what it would be without the merge."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indlet.errors import IndexDamaged
from indlet.model import Stored
from indlet.service.index.embedded import merge_scheduler
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.merge_scheduler import Merger, merge_once, settle
from indlet.service.index.embedded.searcher import SegmentSearcher as Searcher
from indlet.service.index.expression import Or, Term
from indlet.service.search.rank import MODELS

Make = Callable[..., Stored]
Step = tuple[str, int, dict[str, int] | None]


class Meanwhile(threading.Event):
    """Never set; when a merge looks whether it is, something happens instead. Once."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self._happens: Callable[[], None] | None = happens

    def is_set(self) -> bool:
        happens, self._happens = self._happens, None
        if happens is not None:
            happens()
        return False


document = st.dictionaries(
    st.sampled_from(["a", "b", "ab", "acid", "wing", "日本"]), st.integers(1, 300), max_size=5
)
step = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 9), document),
    st.tuples(st.just("delete"), st.integers(1, 9), st.none()),
    st.tuples(st.sampled_from(["commit", "commit", "flush", "rollback"]), st.just(0), st.none()),
)
steps = st.lists(step, max_size=12)


class Both:
    """An index and a dictionary, taken through the same steps."""

    def __init__(self, folder: str, record: Make, naive: Callable[..., Any]) -> None:
        self.engine = Engine.open(folder, writable=True)
        self.reader = Engine.open(folder)
        self.folder = Path(folder)
        self.record, self.naive = record, naive
        self.pending: dict[int, dict[str, int]] = {}
        self.committed: dict[int, dict[str, int]] = {}
        self.seq = 0

    def take(self, steps: list[Step]) -> None:
        for kind, id, content in steps:
            match kind:
                case "put" | "delete":
                    self.seq += 1
                    self.engine.apply([self.record(id, self.seq, content)])
                    self.pending.pop(id, None)
                    if content is not None:
                        self.pending[id] = content
                case "commit":
                    self.engine.commit()
                    self.committed = dict(self.pending)
                    self.check(self.engine.searcher())
                case "flush":
                    self.engine._flush()
                case "rollback":
                    self.engine.rollback()
                    self.pending = dict(self.committed)

    def check(self, searcher: Searcher) -> None:
        """Statistics and scores of the last commit, exactly."""
        expected = self.naive(self.committed)
        assert searcher.collection == expected.collection
        assert {name.decode(): counts for name, *counts in searcher.vocabulary()} == {
            term: [df, cf] for term, (df, cf) in expected.statistics().items()
        }
        words = {"a": 1.0, "acid": 2.0, "日本": 1.0}
        expression = Or(tuple(Term(word, weight) for word, weight in words.items()))
        for model in (kind() for kind in MODELS.values()):
            hits = searcher.search(expression, model, limit=100).hits
            assert {hit.id: hit.score for hit in hits} == expected.scores(words, model)


# A segment that came of a merge is merged again, and dropped by a commit meanwhile.
@example(
    rounds=[
        ([("put", 1, {})], [("put", 2, {"a": 1})]),
        ([], []),
        ([("put", 1, {})], [("delete", 2, None), ("commit", 0, None)]),
    ]
)
# The same, and nothing else was to be merged.
@example(
    rounds=[
        ([("put", 1, {})], [("put", 2, {"a": 1})]),
        ([], []),
        ([("delete", 1, None)], [("put", 1, {}), ("delete", 2, None), ("commit", 0, None)]),
    ]
)
@given(rounds=st.lists(st.tuples(steps, steps), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_changes_while_a_merge_runs_is_in_the_merged_index(
    rounds: list[tuple[list[Step], list[Step]]], record: Make, naive: Callable[..., Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        both = Both(folder, record, naive)
        for before, during in rounds:
            both.take([*before, ("commit", 0, None)])
            old = both.reader.searcher()
            counted = old.fingerprint()
            # At the swap changes may be committed, flushed, or merely applied.
            happened = Meanwhile(partial(both.take, during))
            merge_once(both.folder, everything=True, halt=happened)
            happened.is_set()  # no merge was worth while, or it had no terms
            both.check(both.reader.searcher())
            assert old.fingerprint() == counted
        both.take([("commit", 0, None)])
        both.engine.merge(everything=True)
        both.check(both.engine.searcher())
        assert len(list(both.folder.glob("*.idx"))) <= 1
        both.engine.close()


def filled(folder: Path, record: Make, sizes: list[int]) -> Engine:
    """An index of as many segments as there are sizes; every record holds "all" and a word of its own."""
    engine = Engine.open(folder, writable=True)
    seq = 0
    for size in sizes:
        engine.apply(record(seq + i, seq + i, {"all": 1, f"w{seq + i}": 2}) for i in range(1, size + 1))
        seq += size
        engine.commit()
    return engine


def test_all_records_of_a_merge_may_go_while_it_runs(tmp_path: Path, record: Make) -> None:
    engine = filled(tmp_path, record, [3, 3, 2])

    def delete(first: int, last: int) -> Callable[[], None]:
        def happens() -> None:
            engine.apply(record(id, 10 + id, None) for id in range(first, last + 1))
            engine.commit()

        return happens

    assert merge_once(
        tmp_path, everything=True, halt=Meanwhile(delete(1, 4))
    )  # a whole segment, half of another
    searcher = Engine.open(tmp_path).searcher()
    assert (len(searcher.segments), searcher.df("all"), searcher.cf("w4")) == (1, 4, 0)
    assert not merge_once(tmp_path, everything=True, halt=Meanwhile(delete(5, 8)))  # nothing is left to swap
    assert Engine.open(tmp_path).searcher().segments == ()
    engine.close()
    Engine.open(tmp_path, writable=True).close()
    assert list(tmp_path.glob("*.idx")) == []


def test_a_merge_of_an_index_that_was_made_anew_is_forgotten(tmp_path: Path, record: Make) -> None:
    filled(tmp_path, record, [3, 3]).close()

    def make_anew() -> None:
        with Engine.open(tmp_path, writable=True, anew=True) as engine:
            engine.apply([record(1, 1, {"new": 1})])
            engine.commit()

    assert not merge_once(tmp_path, everything=True, halt=Meanwhile(make_anew))
    searcher = Engine.open(tmp_path).searcher()
    assert (searcher.df("new"), searcher.df("all")) == (1, 0)
    assert len(list(tmp_path.glob("*.idx"))) == 1


def test_one_merge_at_a_time_and_the_writer_leaves_its_file_alone(tmp_path: Path, record: Make) -> None:
    engine = filled(tmp_path, record, [3, 3])
    other: list[bool] = []

    def happens() -> None:
        other.append(merge_once(tmp_path, everything=True))
        engine.apply([record(9, 9, {"all": 1})])
        engine.commit()
        engine.apply([record(10, 10, {"all": 1})])
        engine.rollback()

    assert merge_once(tmp_path, everything=True, halt=Meanwhile(happens))
    assert other == [False]
    assert Engine.open(tmp_path).searcher().df("all") == 7
    engine.verify()
    engine.close()


def test_a_merge_that_is_halted_leaves_nothing(tmp_path: Path, record: Make) -> None:
    filled(tmp_path, record, [3, 3]).close()
    before = {file.name for file in tmp_path.iterdir()}
    halt = threading.Event()
    halt.set()
    assert not merge_once(tmp_path, everything=True, halt=halt)
    assert {file.name for file in tmp_path.iterdir()} == before


def test_a_merge_that_finds_no_room_is_left_for_another_day(tmp_path: Path, record: Make) -> None:
    filled(tmp_path, record, [2] * merge_scheduler.TIER).close()
    before = {file.name for file in tmp_path.iterdir()}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # no file may grow beyond this
    try:
        settle(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {file.name for file in tmp_path.iterdir()} == before
    settle(tmp_path)
    searcher = Engine.open(tmp_path).searcher()
    assert (len(searcher.segments), searcher.df("all")) == (1, 2 * merge_scheduler.TIER)


def test_of_segments_too_large_for_one_as_many_are_merged_as_fit(tmp_path: Path, record: Make) -> None:
    with filled(tmp_path, record, [2] * merge_scheduler.TIER) as engine:
        segments = engine.searcher().segments
        assert merge_scheduler.due(segments) == sorted(segments, key=lambda segment: segment.file.size)
        sizes = [segment.file.size for segment in merge_scheduler.due(segments)]
        assert len(merge_scheduler.due(segments, largest=sum(sizes[:5]) + 1)) == 5
        assert merge_scheduler.due(segments, largest=sizes[0] + 1) == []


def test_a_missing_segment_is_damage_and_ends_no_merger(tmp_path: Path, record: Make) -> None:
    filled(tmp_path, record, [2, 2]).close()
    next(tmp_path.glob("seg-*")).unlink()
    with pytest.raises(IndexDamaged, match="is missing"):
        merge_once(tmp_path, everything=True)
    settle(tmp_path)


def test_a_merger_does_all_that_is_due_and_ends_when_told(tmp_path: Path, record: Make) -> None:
    engine = filled(tmp_path, record, [1] * merge_scheduler.TIER)
    merger = Merger(tmp_path)
    merger.wake()
    while len(Engine.open(tmp_path).searcher().segments) > 1:
        merger.wake()
    # The writer that had the segments open goes on.
    engine.apply([record(1, 100, None)])
    engine.commit()
    assert engine.searcher().df("all") == merge_scheduler.TIER - 1
    assert len(engine.searcher().segments) == 1
    merger.close()
    engine.close()
    Merger(tmp_path).close()  # one that never had anything to do


KILLED = """
    import sys, threading
    from pathlib import Path
    from indlet.service.index.embedded.merge_scheduler import merge_once

    class Waits(threading.Event):
        def is_set(self):
            print("merging", flush=True)
            sys.stdin.read()

    merge_once(Path(sys.argv[1]), everything=True, halt=Waits())
"""


def test_killed_in_a_merge(tmp_path: Path, record: Make) -> None:
    folder, script = tmp_path / "index", tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    engine = filled(folder, record, [5, 5, 5])
    with subprocess.Popen(
        [sys.executable, str(script), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"merging\n"
        # The writer and readers do not wait for it.
        engine.apply([record(1, 20, None), record(2, 21, {"all": 7})])
        engine.commit()
        assert not engine.merge(everything=True)
        assert Engine.open(folder).searcher().cf("all") == 20
        assert len(list(folder.glob("merge-*"))) == 1
        child.send_signal(signal.SIGKILL)
    expected = engine.searcher().fingerprint()
    engine.close()
    with Engine.open(folder, writable=True) as again:
        assert list(folder.glob("merge-*")) == []
        assert again.searcher().fingerprint() == expected
        assert again.merge(everything=True)
        assert again.searcher().fingerprint() == expected


def test_readers_see_whole_commits_while_merges_swap(tmp_path: Path, record: Make) -> None:
    """Each commit deletes a record and adds two, so that position, total and df move in step."""
    over = threading.Event()
    wrong: list[tuple[int, int, int]] = []

    def read() -> None:
        reader = Engine.open(tmp_path)
        while not over.is_set():
            searcher = reader.searcher()
            found = searcher.search(Term("all"), limit=1).total
            if not found == searcher.df("all") == searcher.position // 3 + (searcher.position > 0):
                wrong.append((searcher.position, found, searcher.df("all")))

    def join() -> None:
        while not over.is_set():
            merge_once(tmp_path, everything=True)

    source = random.Random(1)
    with Engine.open(tmp_path, writable=True) as engine:
        engine.commit(position=0, extra={"made": 1})
        threads = [threading.Thread(target=read), threading.Thread(target=join)]
        for thread in threads:
            thread.start()
        live, seq = [0], 0
        engine.apply([record(0, 0, {"gone": 1})])
        for _ in range(150):
            gone = live.pop(source.randrange(len(live)))
            engine.apply([record(gone, seq + 1, None)])
            engine.apply(record(seq + i, seq + i, {"all": 1, f"w{seq % 7}": 1}) for i in (2, 3))
            live += [seq + 2, seq + 3]
            seq += 3
            engine.commit()
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert Engine.open(tmp_path).searcher().df("all") == len(live) == 151
