"""Alerts are sent by webhook and e-mail, each once; a source that has fallen silent raises one."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from indlet.errors import RemoteError
from indlet.exchange.notify import tell, watch
from indlet.model import Record
from indlet.settings import Node, Notify, Settings, Source
from indlet.store import Store, desk_sources, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as found:
        yield found


@contextmanager
def serving(server: Any) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class MailHandler(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs to leave a mail."""

    mails: list[bytes]

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                body = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    body += part
                self.mails.append(body)
            self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
            if verb == b"QUIT":
                return


def test_by_mail_each_alert_is_sent_once(store: Store) -> None:
    mails: list[bytes] = []
    handler = type("Handler", (MailHandler,), {"mails": mails})
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)) as port:
        notify = Notify(email=("ops@larc.example.org",), smtp=f"127.0.0.1:{port}")
        settings = Settings(notify=notify)
        assert tell(store, settings) == 0 and not mails
        with store.write() as tx:
            tx.alert("deleted", "import", "oai:lanl:7\nBcc: x@y", "deleted at its source", "delete it")
        assert tell(store, settings) == 1 and tell(store, settings) == 0
        (mail,) = (message_from_bytes(one) for one in mails)
        assert mail["To"] == "ops@larc.example.org" and mail["Subject"] == "indlet: 1 alert"
        text = str(mail.get_payload())
        assert "oai:lanl:7 Bcc: x@y" in text and "to do: delete it" in text and mail["Bcc"] is None
        with store.write() as tx:
            tx.alert("deleted", "import", "oai:lanl:7\nBcc: x@y", "deleted again", "delete it")
        assert tell(store, settings) == 1 and len(mails) == 2


def test_alerts_that_say_the_same_come_as_one_digest_with_titles_and_links(store: Store) -> None:
    mails: list[bytes] = []
    handler = type("Handler", (MailHandler,), {"mails": mails})
    with store.write() as tx:
        tx.put(tx.origin("source", "lanl"), [Record("oai:lanl:1", {"title": ["Flutter of wings"]})])
        for number in range(1, 13):
            tx.alert("changed", "import", f"oai:lanl:{number}", f"oai:lanl:{number} was changed", "import it")
        tx.alert("silent", "lanl", "", "not harvested in full since May", "see whether it answers")
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)) as port:
        notify = Notify(email=("ops@larc.example.org",), smtp=f"127.0.0.1:{port}")
        assert tell(store, Settings(notify=notify, node=Node(base_url="https://larc.example.org"))) == 13
    mail = message_from_bytes(mails[0])
    text = (mail.get_payload(decode=True) or b"").decode()  # type: ignore[union-attr]
    assert text.count("was changed at its origin") == 1 and "12 × " in text and "and 7 more" in text
    assert "Flutter of wings, oai:lanl:1  https://larc.example.org/record?id=oai%3Alanl%3A1" in text
    assert "https://larc.example.org/admin/alerts?kind=changed&source=import" in text
    assert "https://larc.example.org/admin/source?name=lanl" in text


def test_a_failed_run_raises_an_alert_if_that_is_wanted(store: Store) -> None:
    source = Source("http://127.0.0.1:9/", "dead")
    with store.write() as tx:
        origin = tx.origin("source", "dead", source.public())
        tx.note_run(tx.start_run(origin, "harvest"), {"reason": "refused"}, "failed")

    def raised(failed_runs: int) -> list[tuple[str, str]]:
        watch(store, Settings(source=(source,), notify=Notify(failed_runs=failed_runs)))
        with store.read() as view:
            return [(alert.kind, alert.reason) for alert in view.alerts()]

    assert raised(0) == [] and raised(2) == []
    assert raised(1) == [("failed", "its last run failed")]
    with store.write() as tx:
        tx.note_run(tx.start_run(origin, "harvest"), {}, "complete")
    assert raised(1) == []


def test_what_a_webhook_did_not_take_is_sent_again(store: Store) -> None:
    status, bodies = [500, 200], list[Any]()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(json.loads(body))
            self.send_response(status.pop(0))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with store.write() as tx:
        tx.alert("folder", "import", "", "no such folder", "make it")
    with serving(HTTPServer(("127.0.0.1", 0), Hook)) as port:
        settings = Settings(notify=Notify(webhook=f"http://127.0.0.1:{port}/hook/s3cret"))
        with pytest.raises(RemoteError, match="webhook: status 500") as said:
            tell(store, settings)
        assert "s3cret" not in str(said.value), "jobs and the log show it"
        assert tell(store, settings) == 1 and tell(store, settings) == 0
    assert [body["alerts"][0]["kind"] for body in bodies] == ["folder", "folder"]


def test_a_source_that_was_not_harvested_for_long_is_told(store: Store) -> None:
    source = Source("http://lanl.example.org", name="lanl", every="1h")
    settings = Settings(source=(source,))
    with store.write() as tx:
        origin = tx.origin("source", "lanl", source.public())
        tx.state(origin, {"confirmed": "2026-01-01T00:00:00Z"})
    begun = 1767225600.0

    def kinds(hours: float, chosen: Settings = settings) -> list[str]:
        watch(store, chosen, lambda: begun + 3600 * hours)
        with store.read() as view:
            return [alert.kind for alert in view.alerts()]

    assert kinds(1.5) == [] and kinds(2.5) == ["silent"]
    with store.write() as tx:
        tx.state(origin, {"confirmed": "2026-01-01T02:00:00Z"})
    assert kinds(2.5) == []
    assert kinds(9) == ["silent"]
    assert kinds(9, replace(settings, source=(replace(source, every="1d"),))) == []
    nightly = replace(settings, source=(replace(source, every="0 3 * * *"),))
    assert kinds(26, nightly) == [] and kinds(52, nightly) == ["silent"]
    assert kinds(52, replace(settings, source=(replace(source, paused=True),))) == []


def test_a_source_that_never_answered_is_told_also_if_it_was_added_at_the_desk(store: Store) -> None:
    with store.write() as tx:
        started = tx.start_run(tx.origin("source", "afrl", {"url": "http://afrl.example.org"}), "harvest")
        tx.note_run(started, {}, "failed")
        added = {"afrl": {"url": "http://afrl.example.org", "every": "1h"}}
        desk_sources.keep(tx, {"added": added})
    for hours, wanted in ((1, []), (3, ["never harvested in full"])):
        watch(store, Settings(), partial(sum, (time.time(), 3600.0 * hours)))
        with store.read() as view:
            assert [alert.reason for alert in view.alerts()] == wanted
