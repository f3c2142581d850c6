"""Jobs at the desk: each can be started, and so can a whole round, in its order."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.web.nodes import PASSWORD, until

from indlet.node.schedule import Schedule, Step
from indlet.store import Store

Desk = tuple[Schedule, TestClient, str, list[str]]


@pytest.fixture
def desk(empty: tuple[Store, TestClient]) -> Iterator[Desk]:
    _, client = empty
    assert client.post("/admin/sign-in", data={"password": PASSWORD}).status_code == 303
    (csrf, *_) = re.findall(r'name="csrf" value="([^"]+)"', client.get("/admin").text)
    done: list[str] = []
    schedule: Schedule = client.app.state.desk.schedule  # type: ignore[attr-defined]
    schedule.add("write import", "1h", lambda stop: done.append("write import"), step=Step.WRITE)
    schedule.add("crawl larc", "1h", lambda stop: done.append("crawl larc"), step=Step.READ)
    schedule.start()
    yield schedule, client, csrf, done
    schedule.close()


def act(desk: Desk, action: str, name: str = "") -> int:
    return desk[1].post("/admin/act", data={"action": action, "csrf": desk[2], "name": name}).status_code


def test_each_step_can_be_started(desk: Desk) -> None:
    _, client, _, done = desk
    page = client.get("/admin/jobs").text
    assert page.count('value="run"') == 2 and 'value="round"' in page
    assert act(desk, "run", "write import") == 303
    until(lambda: done == ["write import"])
    assert act(desk, "run", "crawl larc") == 303
    until(lambda: done == ["write import", "crawl larc"])
    assert act(desk, "run", "index") == 409
    assert act(desk, "run", "no such job") == 409
    assert "started" in client.get("/admin/log").text


def test_a_round_is_done_in_its_order(desk: Desk) -> None:
    assert act(desk, "round") == 303
    until(lambda: len(desk[3]) == 2)
    assert desk[3] == ["crawl larc", "write import"]


def test_a_job_that_runs_is_not_started_again(desk: Desk) -> None:
    go_on = threading.Event()
    desk[0].add("write slow", "1h", lambda stop: go_on.wait(30), at_once=True, step=Step.WRITE)
    until(lambda: any(job.started for job in desk[0].jobs()))
    assert act(desk, "run", "write slow") == 409
    go_on.set()
