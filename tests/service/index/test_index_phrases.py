"""Phrases against a scan of the token sequences, through deletions and merges."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.model import Stored
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.expression import Phrase

letters = st.sampled_from(["a", "b", "c"])
text = st.lists(letters, min_size=1, max_size=12)
phrase = st.lists(letters, min_size=1, max_size=3)


def occurs(wanted: Sequence[str], offsets: Sequence[int], tokens: Sequence[str]) -> bool:
    return any(
        all(
            0 <= at + o < len(tokens) and tokens[at + o] == word
            for word, o in zip(wanted, offsets, strict=True)
        )
        for at in range(len(tokens))
    )


@given(
    batches=st.lists(st.lists(st.tuples(text, st.booleans()), max_size=5), min_size=1, max_size=3),
    deleted=st.sets(st.integers(1, 12), max_size=3),
    wanted=phrase,
    gap=st.integers(1, 3),
    far=st.sampled_from([0, 200, 70_000]),
)
@settings(max_examples=100, deadline=None)
def test_phrases(
    batches: list[list[tuple[list[str], bool]]],
    deleted: set[int],
    wanted: list[str],
    gap: int,
    far: int,
    record: Callable[..., Stored],
) -> None:
    """`far` shifts the positions, so that they take several bytes; some records come without positions."""
    known: dict[int, tuple[list[str], bool]] = {}
    offsets = tuple(gap * i for i in range(len(wanted)))
    with tempfile.TemporaryDirectory() as folder, Engine.open(folder, writable=True) as engine:
        seq = 0
        for batch in batches:
            for tokens, placed in batch:
                seq += 1
                places = {w: [far + i for i, t in enumerate(tokens) if t == w] for w in tokens}
                change = record(seq, seq, None, places=places, fields={"\x1fta": 1})
                engine.apply([change if placed else change._replace(positions=None)])
                known[seq] = tokens, placed
            engine.commit()
        for id in deleted & set(known):
            seq += 1
            engine.apply([record(id, seq, None)])
            del known[id]
        engine.commit()
        expected = {
            id
            for id, (tokens, placed) in known.items()
            if (occurs(wanted, offsets, tokens) if placed else set(wanted) <= set(tokens))
        }
        for _ in range(2):
            found = engine.searcher().search(Phrase(tuple(wanted), offsets), limit=99)
            assert {hit.id for hit in found.hits} == expected
            assert found.total == len(expected)
            engine.merge(everything=True)
