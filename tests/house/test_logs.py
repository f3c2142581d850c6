"""A log line is one line without control characters and secrets, as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from indlet import logs
from indlet.provider.serve.request_log import RequestLog
from indlet.settings import Log, Serve, Settings


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """The logging of the tests themselves."""
    root, ours = logging.getLogger(), logging.getLogger("indlet")
    handlers, level, our_level = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


def written(form: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.configure(Log(level, form), stream)
    return stream


@given(st.text())
def test_whatever_is_logged_is_one_harmless_line(text: str) -> None:
    for form in ("text", "json"):
        stream = written(form)
        logs.event("job", logging.INFO, name_=text, n=1)
        logging.getLogger("indlet.web").warning("%s: %s", "/path", text)
        told = stream.getvalue().encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        lines = told.split("\n")
        assert len(lines) == 3 and lines[2] == ""
        assert all(c.isprintable() or c == "�" for line in lines for c in line)
        if form == "json":
            assert json.loads(lines[0])["name_"] == logs._harmless(text)


def test_levels_and_forms() -> None:
    stream = written("text", "warning")
    logs.event("request", logging.INFO, status=200)
    logs.event("job", logging.WARNING, job="harvest a b", outcome="failed", error='no "answer"')
    line = stream.getvalue()
    assert line.count("\n") == 1 and ' WARNING job job="harvest a b" outcome=failed ' in line
    assert 'error="no \\"answer\\""' in line
    stream = written("json", "debug")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("indlet.x").exception("it failed")
    told = json.loads(stream.getvalue())
    assert told["level"] == "error" and told["message"] == "it failed" and "two\nlines" in told["exception"]
    assert told["time"].endswith("Z")


def test_users_and_passwords_of_urls_are_left_out() -> None:
    stream = written("text")
    logs.event("job", logging.INFO, error="https://anna:hush@example.org/oai: 403")
    assert "hush" not in stream.getvalue() and "https://example.org/oai: 403" in stream.getvalue()


def test_a_request_is_told_without_its_query() -> None:
    def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse("twelve bytes", 500 if request.url.path == "/broken" else 200)

    app = Starlette(routes=[Route("/{path:path}", answer)])
    client = TestClient(
        RequestLog(app, Settings(serve=Serve(trusted_proxies=("127.0.0.1",)))), client=("127.0.0.1", 1)
    )
    stream = written("json")
    client.get(
        "/a%1Bb?q=secret",
        headers={
            b"x-forwarded-for": b"192.0.2.7",
            b"user-agent": b"x\x9b31m",
            b"authorization": b"Bearer hush",
        },
    )
    client.get("/broken")
    client.get("/healthz")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["path"] == "/a\x1bb" and first["status"] == 200 and first["bytes"] == 12
    assert first["client"] == "192.0.2.7" and second["level"] == "error" and second["status"] == 500
    assert (
        "secret" not in stream.getvalue()
        and "hush" not in stream.getvalue()
        and "\x9b" not in stream.getvalue()
    )


def test_a_reader_that_stops_reading_stops_nobody() -> None:
    reading, writing = os.pipe()
    handler = logs.NeverWaiting(writing, most=10)
    handler.setFormatter(logs.TextLine())
    log = logging.Logger("indlet.unread")
    log.addHandler(handler)
    for number in range(10_000):  # far more than a pipe holds
        log.warning("%d %s", number, "x" * 100)
    assert b'message="0 x' in os.read(reading, 200)
    os.close(reading)  # whoever waits to write, waits no more
    handler.close()
    os.close(writing)
