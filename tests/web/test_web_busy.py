"""A node whose threads all have something to do."""

from __future__ import annotations

import threading
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from indlet.settings import Settings
from indlet.store import Store
from indlet.web.app import application


def test_a_node_without_a_free_thread_says_that_it_lives(tmp_path: Path) -> None:
    started, gate, let_go = threading.Semaphore(0), threading.Event(), list[bool]()

    def slow(request: Request) -> Response:
        started.release()
        let_go.append(gate.wait(20))
        return PlainTextResponse("done")

    async def threads(request: Request) -> Response:
        return PlainTextResponse(str(int(current_default_thread_limiter().total_tokens)))

    with Store.open(tmp_path) as store:
        app = application(store, Settings(data=tmp_path), follow=False)
        app.router.routes[:0] = [Route("/slow", slow), Route("/threads", threads)]
        with TestClient(app) as client:
            readers = [
                threading.Thread(target=client.get, args=("/slow",))
                for _ in range(int(client.get("/threads").text))
            ]
            for reader in readers:
                reader.start()
            for _ in readers:
                assert started.acquire(timeout=20)
            assert client.get("/healthz").status_code == 200
            gate.set()
            for reader in readers:
                reader.join(20)
    assert len(let_go) == len(readers) == 12
    assert all(let_go), "it was said while they were at it"
