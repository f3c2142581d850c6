"""A new index is made beside the old one: who searches meanwhile has the old one, or is told."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indlet.errors import IndexBusy, IndexDamaged
from indlet.model import Record, TermVector
from indlet.service.index import engines, follow
from indlet.service.index.embedded import manifest
from indlet.service.index.embedded.engine import Engine
from indlet.service.search.library import Library
from indlet.store import Store, View
from indlet.store.sqlite.store import SqliteStore
from indlet.text import Analyzer, Policy


class Interrupted(Exception):
    pass


def put(store: Store, words: dict[str, int]) -> None:
    """A record for each word, which holds it so many times; 0 deletes it."""
    with store.write() as tx:
        origin = tx.origin("source", "s")
        live = {word: count for word, count in words.items() if count}
        vectors = {word: TermVector.of({word: count, "all": 1}) for word, count in live.items()}
        tx.put(origin, [Record(f"oai:s:{word}", {}, vector) for word, vector in vectors.items()])
        tx.delete(origin, [f"oai:s:{word}" for word in words if word not in live])


def clean(store: Store) -> str:
    """The fingerprint of an index without a history."""
    with tempfile.TemporaryDirectory() as folder, Engine.open(folder, writable=True) as engine:
        with store.read() as view:
            engine.apply(view.changes(), Analyzer(Policy()))
        engine.commit(extra={})
        return engine.searcher().fingerprint()


def seen(store: Store) -> str:
    """What another process would find: a fingerprint, or that the index is damaged."""
    try:
        return Engine.open(engines.folder(store)).searcher().fingerprint()
    except IndexDamaged:
        return "damaged"


def damage(store: Store) -> None:
    """Breaks a segment in its middle, if there is one."""
    for file in sorted(engines.folder(store).glob("*.idx"))[:1]:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.unlink()  # another file: who has the old one open keeps it
        file.write_bytes(data)


words = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1, max_size=5)
rebuilding = st.tuples(
    st.sampled_from(["catch up", "damage and catch up", "rebuild"]),
    st.lists(words, max_size=4),  # what is stored while it goes on
    st.one_of(st.none(), st.integers(0, 4)),  # when it is interrupted, if it is
)


class Meanwhile:
    """Told of each piece that was applied: looks at the index as others do, stores more, and may end it."""

    def __init__(self, store: Store, anew: bool, more: list[dict[str, int]], end: int | None) -> None:
        self.store, self.more, self.left = store, iter(more), end
        self.old = seen(store) if anew else None

    def __call__(self, applied: int) -> None:
        if self.left == 0:
            raise Interrupted
        self.left = None if self.left is None else self.left - 1
        if self.old is not None and seen(self.store) != self.old:
            # It changed at one moment, with the last piece, to what is complete.
            assert seen(self.store) == clean(self.store)
        put(self.store, next(self.more, {"a": 1}))


@given(first=words, steps=st.lists(st.tuples(words, rebuilding), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_readers_have_the_old_index_until_they_have_the_new_one(
    first: dict[str, int], steps: list[tuple[dict[str, int], tuple[str, list[dict[str, int]], int | None]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(folder) as store:
        put(store, first)
        follow.catch_up(store)
        for more, (kind, during, end) in steps:
            put(store, more)
            if kind.startswith("damage"):
                damage(store)
            before = seen(store)
            meanwhile = Meanwhile(store, kind == "rebuild" or before == "damaged", during, end)
            try:
                if kind == "rebuild":
                    follow.rebuild(store, meanwhile, chunk=3)
                else:
                    follow.catch_up(store, meanwhile, chunk=3)
            except Interrupted:
                assert meanwhile.old is None or seen(store) in (before, clean(store))
            files = {file.name for file in engines.folder(store).glob("*.idx")}
            assert files == manifest.read(engines.folder(store)).files()
        follow.catch_up(store)
        if seen(store) == "damaged":  # nothing was new, and so nobody looked
            follow.rebuild(store)
        assert seen(store) == clean(store)


def test_a_search_while_the_index_is_made_anew(make_shelf: Callable[..., Library]) -> None:
    library = make_shelf()
    before = library.stats()["index"]["fingerprint"]
    found: list[int] = []

    def report(applied: int) -> None:
        with Library.open(library.store.local_folder, follow=False) as reader:
            found.append(reader.search("boundary").total)
            assert reader.stats()["index"]["fingerprint"] == before

    follow.rebuild(library.store, report, library.analyzer, chunk=1, engine=library.settings.index)
    assert found == [3] * 6
    assert library.stats()["index"]["segments"] == 1


def test_a_damaged_index_that_another_process_makes_anew_is_not_searched(
    make_shelf: Callable[..., Library],
) -> None:
    library = make_shelf()
    library.sync()
    damage(library.store)
    heard: list[int] = []

    def report(applied: int) -> None:
        if applied < 5:
            heard.append(applied)
            with Library.open(library.store.local_folder, follow=False) as reader, pytest.raises(IndexBusy):
                reader.search("boundary")

    put(library.store, {"zebra": 1})
    progress = follow.catch_up(library.store, report, 1, library.analyzer, engine=library.settings.index)
    assert "checksum" in progress.rebuilt
    assert heard == [1, 2, 3, 4]
    assert library.search("zebra").total == 1
    assert library.search("boundary").total == 3


REBUILDS = """
    import sys
    from indlet.service.index import follow
    from indlet.store import Store, View

    def report(applied):
        print(applied, flush=True)
        sys.stdin.read()

    with Store.open(sys.argv[1]) as store:
        follow.rebuild(store, report, chunk=2)
"""


@pytest.mark.parametrize("wound", [False, True])
def test_killed_while_it_makes_the_index_anew(tmp_path: Path, wound: bool) -> None:
    data, script = tmp_path / "data", tmp_path / "rebuilds.py"
    script.write_text(textwrap.dedent(REBUILDS))
    with Store.open(data) as store:
        put(store, {"a": 1, "b": 2, "c": 3})
        follow.catch_up(store)
        if wound:
            damage(store)
        before = seen(store)
        with subprocess.Popen(
            [sys.executable, str(script), str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"2\n"
            with pytest.raises(IndexBusy):
                follow.rebuild(store)
            put(store, {"b": 0, "d": 1})
            assert seen(store) == before
            child.send_signal(signal.SIGKILL)
        assert seen(store) == before
        progress = follow.catch_up(store)
        assert progress.applied == (4 if wound else 2)
        assert seen(store) == clean(store)


class Overtaken(SqliteStore):
    """After each look at it, another process stores and indexes something more. A few times."""

    left = 5

    @contextlib.contextmanager
    def read(self) -> Iterator[View]:
        with super().read() as view:
            yield view
        if self.left:
            self.left -= 1
            with Store.open(self.local_folder) as other:
                put(other, {f"new{self.left}": 1})
                with contextlib.suppress(IndexBusy):
                    follow.catch_up(other)


def test_an_index_that_went_on_meanwhile_is_not_ahead_of_its_store(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, {"a": 1})
        follow.catch_up(store)
        put(store, {"b": 1})
    with Overtaken(tmp_path, time.time) as store:
        assert follow.catch_up(store).rebuilt == ""
        assert seen(store) == clean(store)


def test_a_damaged_index_is_not_replaced_by_half_of_a_new_one_while_the_store_fills(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, {"a": 1, "b": 2, "c": 3})
        follow.catch_up(store)
        damage(store)
        left = iter("defg")

        def ended(seconds: float) -> bool:
            assert seen(store) == "damaged"
            word = next(left, "")
            put(store, {word: 1} if word else {})
            return not word

        follow.pursue(store, ended, Analyzer(Policy()), every=1)
        assert seen(store) == clean(store)
