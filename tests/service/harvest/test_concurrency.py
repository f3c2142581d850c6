"""Whose turn it is among sources, as pure logic: the clock is a list of one number."""

from __future__ import annotations

from indlet.service.harvest.concurrency import STILL_SECONDS, WAITED_FOR, RunQueue
from indlet.service.harvest.progress import Progress


def turns(names: str, at_once: int) -> tuple[RunQueue, list[Progress], list[float]]:
    runs, now = [Progress(name) for name in names], [0.0]
    return RunQueue(runs, at_once, lambda: now[0]), runs, now


def test_each_run_is_done_once_in_its_order() -> None:
    order, _, _ = turns("abc", 2)
    assert [order.take() for _ in range(4)] == [0, 1, 2, None]


def test_a_source_that_is_named_twice_has_its_turns_one_after_the_other() -> None:
    order, _, _ = turns("aab", 3)
    assert [order.take() for _ in range(3)] == [0, 2, None]
    assert not order.more_workers()
    order.done(0)
    assert order.take() == 1


def test_silent_sources_do_not_hold_up_others() -> None:
    order, runs, now = turns("abcd", 2)
    assert (order.take(), order.take(), order.more_workers()) == (0, 1, False)
    now[0] += STILL_SECONDS
    runs[1].pages += 1
    assert order.more_workers(), "one of two is still"
    assert order.take() == 2
    assert not order.more_workers(), "two are moving"
    now[0] += STILL_SECONDS / 2
    assert not order.more_workers()


def test_there_is_an_end_to_how_many_are_waited_for() -> None:
    order, _, now = turns("".join(map(chr, range(97, 117))), 1)
    taken = [order.take()]
    while order.more_workers() or now[0] < 100:
        now[0] += STILL_SECONDS
        if order.more_workers():
            taken.append(order.take())
    assert len(taken) == WAITED_FOR
