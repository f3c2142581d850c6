"""Jobs come again when they are due, survive their own failures, and end when asked."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from indlet.errors import SettingsError, StoreError, StoreUnavailable
from indlet.node.schedule import SOON, STEP_PATIENCE, Schedule, Step, Work, next_run


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_when_a_job_is_due() -> None:
    now = at("2026-01-01T12:34:56")
    assert next_run("15m", now) == now + 900
    assert next_run("1d", now) == now + 86400
    assert next_run("0.001s", now) == now + 1
    assert next_run("0 3 * * *", now) == at("2026-01-02T03:00:00")
    assert next_run("*/10 * * * *", now) == at("2026-01-01T12:40:00")


@pytest.mark.parametrize("every", ["soon", "5", "-1h", "0s", "99 * * * *", "* * *", "0 0 30 2 *"])
def test_what_is_no_schedule(every: str) -> None:
    with pytest.raises(SettingsError):
        next_run(every, 0.0)


def test_a_mistake_is_told_when_it_is_made() -> None:
    with Schedule() as schedule, pytest.raises(SettingsError):
        schedule.add("crawl", "soon", lambda stop: None)


def test_a_job_that_fails_comes_again() -> None:
    runs = threading.Semaphore(0)
    count = 0

    def job(stop: threading.Event) -> None:
        nonlocal count
        count += 1
        runs.release()
        raise StoreError("busy") if count == 1 else ValueError("broken")

    with Schedule() as schedule:
        schedule.add("job", "1s", job, at_once=True)
        for _ in range(3):
            assert runs.acquire(timeout=10)


def test_where_no_thread_can_be_started_the_scheduler_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, done = threading.Event(), threading.Event()
    start = threading.Thread.start

    def no_room_at_first(thread: threading.Thread) -> None:
        if thread.name == "job late" and not refused.is_set():
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_room_at_first)
    monkeypatch.setattr("indlet.node.schedule.SOON", 0.01)
    with Schedule() as schedule:
        schedule.add("late", "1d", lambda stop: done.set(), at_once=True)
        assert done.wait(10) and refused.is_set()


def test_a_run_that_lost_the_store_goes_on_soon() -> None:
    def job(stop: threading.Event) -> None:
        raise StoreUnavailable("the database was restarted")

    schedule = Schedule(clock=lambda: 1000.0)
    schedule.add("long", "1d", job)
    schedule.add("short", "3s", job)
    for name in ("long", "short"):
        schedule.run_now(name)
    for row in schedule.jobs():
        assert row.thread is not None
        row.thread.join()
    assert [row.due for row in schedule.jobs()] == [1000.0 + SOON, 1003.0]


def test_a_run_that_loses_the_store_each_time_comes_less_and_less_often() -> None:
    problems: list[Exception | None] = [StoreUnavailable("no room for more connections")] * 3
    problems += [None, StoreUnavailable("it was restarted")]

    def job(stop: threading.Event) -> None:
        if (problem := problems.pop(0)) is not None:
            raise problem

    schedule, rests = Schedule(clock=lambda: 1000.0), list[float]()
    schedule.add("j", "1d", job)
    while problems:
        schedule.run_now("j")
        (row,) = schedule.jobs()
        assert row.thread is not None
        row.thread.join()
        rests.append((row.due or 0.0) - 1000.0)
    assert rests == [SOON, 2 * SOON, 4 * SOON, 86_400.0, SOON]


def test_leaving_stops_a_running_job_and_waits_for_it() -> None:
    begun, ended = threading.Event(), threading.Event()

    def job(stop: threading.Event) -> None:
        begun.set()
        stop.wait()
        ended.set()

    with Schedule() as schedule:
        schedule.add("once", "", job, at_once=True)
        schedule.add("never", "", job)
        assert begun.wait(10)
    assert ended.is_set()


def test_the_table_tells_how_each_job_stands() -> None:
    now = at("2026-01-01T12:00:00")
    schedule = Schedule(lambda: now)
    ended = threading.Event()

    def fail(stop: threading.Event) -> None:
        ended.set()
        raise StoreError("no room")

    schedule.add("good", "1h", lambda stop: None, last=now - 600, succeeded=now - 600)
    schedule.add("bad", "1h", fail)
    schedule.add("at rest", "1h", fail, paused=True, at_once=True)
    good, bad, rest = schedule.jobs()
    assert good.due == now + 3000 and bad.due == now + 3600 and rest.state == "paused"
    assert schedule.due() == []
    assert schedule.run_now("bad") and bad.thread is not None
    bad.thread.join(10)
    assert (bad.state, bad.error, bad.runs, bad.succeeded) == ("failed", "no room", 1, None)
    assert bad.to_json()["next_run"] == "2026-01-01T13:00:00Z"
    schedule.pause("at rest", paused=False)
    assert schedule.due() == ["at rest"]
    schedule.wake("good")
    assert schedule.due() == ["good", "at rest"]


def test_a_clock_that_is_set_back_stops_no_job() -> None:
    runs = threading.Semaphore(0)
    clock = [at("2030-01-01T00:00:00")]
    with Schedule(lambda: clock[0]) as schedule:
        schedule.add("job", "1d", lambda stop: runs.release())
        clock[0] = at("2026-01-01T00:00:00")
        schedule.wake("no such job")
        schedule.add("other", "1d", lambda stop: None)  # has the schedule look
        until = threading.Event()
        while (due := schedule.jobs()[0].due) is None or due > clock[0] + 86400:
            assert not until.wait(0.01)
        clock[0] += 86401
        schedule.add("another", "1d", lambda stop: None)
        assert runs.acquire(timeout=10)


def test_a_job_never_runs_twice_at_once() -> None:
    begun = threading.Semaphore(0)

    def job(stop: threading.Event) -> None:
        begun.release()
        stop.wait()

    with Schedule() as schedule:
        schedule.add("job", "1s", job, at_once=True)
        assert begun.acquire(timeout=10)
        assert not schedule.run_now("job")
        schedule.pause("job", paused=True)  # ends the run
        thread = schedule.jobs()[0].thread
        assert thread is not None
        thread.join(10)
        assert schedule.jobs()[0].state == "paused" and not begun.acquire(timeout=0.1)


def test_the_steps_of_a_round_keep_their_order() -> None:
    begun: list[str] = []
    names = ("read", "harvest", "write")
    go_on = {name: threading.Event() for name in names}
    started = {name: threading.Event() for name in names}

    def step(name: str) -> Work:
        def work(stop: threading.Event) -> None:
            begun.append(name)
            started[name].set()
            go_on[name].wait(30)

        return work

    with Schedule() as schedule:
        other = threading.Event()
        schedule.add("read", "1d", step("read"), at_once=True, step=Step.READ)
        schedule.add("harvest", "1d", step("harvest"), at_once=True, step=Step.HARVEST)
        schedule.add("write", "1d", step("write"), at_once=True, step=Step.WRITE)
        schedule.add("index", "1d", lambda stop: other.set(), at_once=True)
        assert other.wait(10)  # what is no step waits for nothing
        for number, name in enumerate(names, 1):
            assert started[name].wait(10)
            assert begun == list(names[:number])
            go_on[name].set()


def test_somebody_may_start_a_step_at_any_time() -> None:
    written, go_on = threading.Event(), threading.Event()
    with Schedule() as schedule:
        schedule.add("harvest", "1d", lambda stop: go_on.wait(30), at_once=True, step=Step.HARVEST)
        schedule.add("write", "1d", lambda stop: written.set(), at_once=True, step=Step.WRITE)
        assert schedule.run_now("write")
        assert written.wait(10)
        go_on.set()


def test_a_step_does_not_wait_for_ever() -> None:
    now = [1000.0]
    schedule = Schedule(clock=lambda: now[0])
    written, go_on = threading.Event(), threading.Event()
    with schedule:
        schedule.add("harvest", "1d", lambda stop: go_on.wait(30), at_once=True, step=Step.HARVEST)
        schedule.add("write", "1d", lambda stop: written.set(), at_once=True, step=Step.WRITE)
        assert not written.wait(0.2)
        now[0] += STEP_PATIENCE
        schedule.wake("harvest")  # the scheduler looks
        assert written.wait(10)
        go_on.set()


def test_a_step_waits_for_nothing_that_came_due_after_it() -> None:
    now = [1000.0]
    written = threading.Event()
    with Schedule(clock=lambda: now[0]) as schedule:
        schedule.add("write", "1h", lambda stop: written.set(), step=Step.WRITE)
        now[0] += 3601
        schedule.add("harvest", "1d", lambda stop: None, step=Step.HARVEST, paused=True, at_once=True)
        schedule.wake("harvest")
        assert written.wait(10)
