"""Bytes that no vector ever was: they may be lost, they may not hurt. Kernels do not check bounds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.model import Stored
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.expression import Everything, Phrase, Prefix, Term
from indlet.service.search.rank import MODELS

pieces = st.sampled_from(
    [b"1 ", b"2 a b", b"\n", b" ", b"-5 x", b"99999999999999999999 big", b"a", b"\xff\x1f", b"3", b"\x80"]
)
mess = st.one_of(st.binary(max_size=60), st.lists(pieces, max_size=12).map(b"".join))


@given(
    records=st.lists(
        st.tuples(mess, mess, st.one_of(st.none(), mess), st.integers(-5, 2**40)), min_size=1, max_size=6
    )
)
@settings(max_examples=80, deadline=None)
def test_malformed_vectors_neither_crash_nor_spread(
    records: list[tuple[bytes, bytes, bytes | None, int]], record: Callable[..., Stored]
) -> None:
    with tempfile.TemporaryDirectory() as folder, Engine.open(folder, writable=True) as engine:
        for id, (vector, fields, positions, length) in enumerate(records, 1):
            plain = record(id, id, {"x": 1})
            engine.apply([plain._replace(vector=vector, fields=fields, positions=positions, length=length)])
            engine.commit()
        engine.apply([record(100, 100, None, places={"good": [0, 2], "word": [1]})])
        engine.commit()
        engine.apply([record(1, 101, None)])
        engine.commit()
        engine.merge(everything=True)
        searcher = engine.searcher()
        assert searcher.search(Everything()).total == len(records)
        assert [hit.id for hit in searcher.search(Phrase(("good", "word"))).hits] == [100]
        for model in (kind() for kind in MODELS.values()):
            assert 100 in {hit.id for hit in searcher.search(Term("good"), model, limit=99).hits}
            searcher.search(Prefix(""), model)


def test_frequencies_and_positions_beyond_all_bounds(tmp_path: Path, record: Callable[..., Stored]) -> None:
    far = bytes([*[0x80] * 5, 0x20, 0x81, *[0x80] * 4, 0x20])  # 2^40 and the one after
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply([
            record(1, 1, {"x": 1})._replace(vector=b"2147483647 a\n2147483647 a\n2 a"),
            record(2, 2, {"a": 1}),
            record(3, 3, {"x": 1})._replace(vector=b"1 good word", positions=far),
            record(4, 4, None, places={"good": [0, 2], "word": [1]}),
        ])  # fmt: skip
        engine.commit()
        searcher = engine.searcher()
        assert (searcher.df("a"), searcher.cf("a")) == (2, 2**31)
        assert {hit.id for hit in searcher.search(Term("a")).hits} == {1, 2}
        assert 4 in {hit.id for hit in searcher.search(Phrase(("good", "word"))).hits}


def test_values_with_other_separators_than_one(tmp_path: Path, record: Callable[..., Stored]) -> None:
    vectors = [b"1 \x1fCabc\x01\x01d \x1fCb", b"1 \x1fCb"]
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply([record(n, n, {})._replace(vector=vector) for n, vector in enumerate(vectors, 1)])
        engine.commit()
        found = engine.searcher().search(Everything(), facets=("creator",))
        assert found.facets["creator"] == (("", 2), ("\x01d", 1))


def test_long_terms_and_many_terms(
    tmp_path: Path, record: Callable[..., Stored], naive: Callable[..., object]
) -> None:
    """Tables grow, names of any length are told apart, a document may hold the whole vocabulary."""
    words = {f"{'x' * (i % 40)}{i}": i % 5 + 1 for i in range(20_000)}
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply([record(1, 1, words), record(2, 2, {**words, "y" * 5000: 1})])
        engine.commit()
        searcher = engine.searcher()
        assert searcher.stats().terms == 20_001
        assert {name.decode(): cf for name, df, cf in searcher.vocabulary() if df == 2} == {
            word: 2 * frequency for word, frequency in words.items()
        }
        assert searcher.df("y" * 5000) == 1
