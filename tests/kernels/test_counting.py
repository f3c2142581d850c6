"""Values are counted as the plain way counts them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indlet.kernels.arrays import Numbers, Small
from indlet.kernels.counting import count_once, count_values, turn_round

VALUES = 12
HELD = st.lists(st.lists(st.integers(0, VALUES - 1), max_size=5), min_size=1, max_size=30)


def laid_out(held: list[list[int]]) -> tuple[Numbers, Small]:
    starts = np.concatenate(([0], np.cumsum([len(values) for values in held]))).astype(np.int64)
    return starts, np.array([value for values in held for value in values], np.uint32)


@given(HELD, st.data())
def test_each_value_of_a_document_counts(held: list[list[int]], data: st.DataObject) -> None:
    docs = data.draw(st.lists(st.integers(0, len(held) - 1), unique=True))
    numbers = np.random.default_rng(len(held)).permutation(VALUES).astype(np.uint32)
    starts, codes = laid_out(held)
    counts = np.zeros(VALUES, np.int64)
    count_values(starts, codes, numbers, np.array(docs, np.int64), counts)
    plain = [int(numbers[code]) for doc in docs for code in held[doc]]
    assert counts.tolist() == np.bincount(plain, minlength=VALUES).tolist()


@given(HELD, st.data())
def test_a_value_counts_once_for_a_group(held: list[list[int]], data: st.DataObject) -> None:
    begins = data.draw(st.lists(st.booleans(), min_size=len(held), max_size=len(held)))
    groups = np.cumsum([True, *begins[1:]]).astype(np.int64)
    places = sorted(data.draw(st.sets(st.integers(0, len(held) - 1))))
    starts, numbers = laid_out(held)
    counts = np.zeros(VALUES, np.int64)
    last = np.zeros(VALUES, np.int64)
    count_once(starts, numbers, groups, np.array(places, np.int64), last, counts)
    once = {(int(groups[place]), value) for place in places for value in held[place]}
    assert counts.tolist() == np.bincount([v for _, v in sorted(once)], minlength=VALUES).tolist()


@given(HELD, st.data())
def test_lists_of_documents_become_the_numbers_of_documents(
    lists: list[list[int]], data: st.DataObject
) -> None:
    steps = data.draw(st.lists(st.integers(0, 2), min_size=len(lists), max_size=len(lists)))
    numbers = np.cumsum(steps, dtype=np.int64)
    held = [sorted(set(docs)) for docs in lists]
    bounds, docs = laid_out(held)
    starts, codes = np.zeros(VALUES + 1, np.int64), np.empty(docs.size, np.uint32)
    turn_round(docs, bounds, numbers, starts, np.full(VALUES, -1), codes)
    for doc in range(VALUES):
        own = {int(number) for number, having in zip(numbers, held, strict=True) if doc in having}
        assert codes[starts[doc] : starts[doc + 1]].tolist() == sorted(own)
