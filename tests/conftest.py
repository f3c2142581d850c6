"""Says which stores and index engines are tested, and starts the servers that they need."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest
from tests import opensearch_server
from tests.stores import KIND, SERVER, PostgresServer, on_postgresql

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("indlet", deadline=None)
hypothesis.settings.load_profile("indlet")
_server = pytest.StashKey[PostgresServer]()
_node = pytest.StashKey[opensearch_server.OpenSearchNode]()


def pytest_configure(config: pytest.Config) -> None:
    # What a shell starts in the background ignores Ctrl-C; what tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Workers of pytest-xdist inherit the server's address. The node starts while the other server is made.
    if opensearch_server.on_opensearch() and opensearch_server.SERVER not in os.environ:
        config.stash[_node] = node = opensearch_server.OpenSearchNode(wait=False)
        os.environ[opensearch_server.SERVER] = node.url
    if on_postgresql() and SERVER not in os.environ:
        config.stash[_server] = server = PostgresServer()
        os.environ[SERVER] = server.url


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(_server, None):
        server.remove()
    if node := config.stash.get(_node, None):
        node.remove()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if on_postgresql():
        terminalreporter.write_line(f"stores: PostgreSQL, and SQLite where both are compared ({KIND})")
    else:
        terminalreporter.write_line("stores: SQLite; left out: PostgreSQL (make test-cluster runs it)")
    if opensearch_server.on_opensearch():
        terminalreporter.write_line("index engines: embedded, and OpenSearch where both have one contract")
    else:
        terminalreporter.write_line(
            "index engines: embedded; left out: OpenSearch (make test-cluster runs it)"
        )
