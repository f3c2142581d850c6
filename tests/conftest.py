"""Says which stores are tested, and starts the server that they need."""

from __future__ import annotations

import os

import pytest
from tests.stores import KIND, SERVER, PostgresServer, on_postgresql

_server = pytest.StashKey[PostgresServer]()


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist inherit the server's address.
    if on_postgresql() and SERVER not in os.environ:
        config.stash[_server] = server = PostgresServer()
        os.environ[SERVER] = server.url


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(_server, None):
        server.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if on_postgresql():
        terminalreporter.write_line(f"stores: PostgreSQL, and SQLite where both are compared ({KIND})")
    else:
        terminalreporter.write_line("stores: SQLite; left out: PostgreSQL (make test-cluster runs it)")
