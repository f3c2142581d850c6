"""Jobs come again when they are due, survive their own failures, and end when asked."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from indlet.errors import SettingsError, StoreError
from indlet.node.schedule import Schedule, next_run


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
