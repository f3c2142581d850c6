"""Searches that are followed by e-mail, and feeds as people see them: a real mail server on loopback."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_string
from email.message import Message
from email.policy import default
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.model import Record
from indlet.service.index import follow
from indlet.service.search.saved_searches import SavedSearch, SavedSearches
from indlet.settings import Appearance, Notify, Settings
from indlet.store import Store
from indlet.store.kept_tables import SAVED_SEARCHES
from indlet.web.follow import send_digests
from indlet.web.page import Pages
from indlet.web.portal import Portal

DAY = 86_400
BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


class Mailbox(socketserver.ThreadingTCPServer):
    """As much of SMTP as a client needs to leave a mail."""

    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[Message] = []


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Mailbox)
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = []
                while (text := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(text.decode())
                self.server.mails.append(message_from_string("".join(lines), policy=default))
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with Mailbox() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as store:
        put(store, 1, "Gales and waves")
        yield store


@pytest.fixture
def settings(tmp_path: Path, mailbox: Mailbox) -> Settings:
    notify = Notify(email_from="portal@example.org", smtp=f"127.0.0.1:{mailbox.server_address[1]}")
    return settings_for(tmp_path, portal=Appearance(alerts=True), notify=notify)


def put(store: Store, number: int, title: str) -> None:
    with store.write() as tx:
        tx.put(tx.origin("source", "North"), [Record(f"oai:x:{number}", {"title": [title]})])
    follow.catch_up(store)


def text_of(mail: Message) -> str:
    return str(mail.get_payload(decode=True).decode() if mail.get_payload(decode=True) else "")  # type: ignore[union-attr]


def link_in(mail: Message, what: str) -> str:
    found = re.search(rf"http://127\.0\.0\.1:8080(/follow/{what}\?token=\S+)", text_of(mail))
    assert found is not None
    return found[1]


def digests(store: Store, settings: Settings, client: TestClient) -> None:
    portal = Portal(client.app.state.library, Pages.of(settings), settings.base_url())  # type: ignore[attr-defined]
    send_digests(portal)


def age(store: Store, seconds: float) -> None:
    """Let time pass for every saved search."""
    with store.write() as tx:
        for one in tx.select(SAVED_SEARCHES):
            aged = one._replace(sent=one.sent - seconds, created=one.created - seconds)
            tx.upsert(SAVED_SEARCHES, [aged])


def test_a_search_is_confirmed_sent_and_ended(store: Store, settings: Settings, mailbox: Mailbox) -> None:
    client = make_client(store, settings)
    assert 'href="/follow?q=gales+waves"' in client.get("/?q=gales+waves").text
    form = client.get("/follow?q=gales+waves")
    assert 'type="email"' in form.text
    asked = client.post("/follow?q=gales+waves", data={"email": "reader@example.org", "every": "daily"})
    assert asked.status_code == 200 and "reader@example.org" in asked.text
    (mail,) = mailbox.mails
    assert mail["To"] == "reader@example.org" and mail["From"] == "portal@example.org"
    assert "gales" not in text_of(mail), "whoever asked may have written anything"
    put(store, 2, "More gales and waves")
    age(store, 2 * DAY - 60)
    digests(store, settings, client)
    assert len(mailbox.mails) == 1, "the address is not confirmed"

    confirm = link_in(mail, "confirm")
    assert "reader@example.org" in client.get(confirm).text
    assert client.post(confirm).status_code == 200
    digests(store, settings, client)
    assert len(mailbox.mails) == 1, "nothing is new"
    put(store, 3, "Waves after gales")
    put(store, 4, "Gales alone")
    digests(store, settings, client)
    assert len(mailbox.mails) == 1, "a day has not passed"
    age(store, DAY + 1)
    digests(store, settings, client)
    digest = mailbox.mails[1]
    assert digest["Subject"] == "1 new record: gales waves"
    assert "Waves after gales" in text_of(digest) and "alone" not in text_of(digest)
    assert "http://127.0.0.1:8080/record/oai:x:3?source=North" in text_of(digest)
    assert digest["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"

    stop = link_in(digest, "stop")
    assert f"<http://127.0.0.1:8080{stop}>" == digest["List-Unsubscribe"]
    assert client.get(stop).status_code == 200, "to look at a link ends nothing"
    assert client.post(stop, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert client.get(stop).status_code == 404
    put(store, 5, "Gales and waves again")
    age(store, DAY + 1)
    digests(store, settings, client)
    assert len(mailbox.mails) == 2


def test_nobody_can_be_flooded(store: Store, settings: Settings, mailbox: Mailbox) -> None:
    client = make_client(store, settings)
    for _ in range(3):
        client.post("/follow?q=gales", data={"email": "reader@example.org", "every": "daily"})
    assert len(mailbox.mails) == 1
    for email in ("no address", "a@b", "x@example.org\nBcc: y@example.org", ""):
        assert client.post("/follow?q=gales", data={"email": email, "every": "daily"}).status_code == 200
    foreign = {"origin": "https://elsewhere.example", "sec-fetch-site": "cross-site"}
    other = {"email": "other@example.org", "every": "daily"}
    assert client.post("/follow?q=gales", data=other, headers=foreign).status_code == 400
    assert client.post("/follow?q=gales", content=b"email=" + b"x" * 20_000).status_code == 400
    assert len(mailbox.mails) == 1
    for number in range(100):
        client.post("/follow?q=gales", data={"email": f"r{number}@example.org", "every": "daily"})
    assert len(mailbox.mails) == 60, "in an hour"


def test_links_that_were_not_sent_do_nothing(store: Store, settings: Settings) -> None:
    searches = SavedSearches(store)
    added = searches.add(SavedSearch("", "reader@example.org", "gales", every="weekly"), 1_000_000.0)
    assert added is not None
    client = make_client(store, settings)
    for token in ("", added.id, f"{added.id}.", f"{added.id}.{'0' * 24}", searches.token(added)[:-1]):
        for what in ("confirm", "stop"):
            assert client.get(f"/follow/{what}", params={"token": token}).status_code == 404
            assert client.post(f"/follow/{what}", params={"token": token}).status_code == 404
    assert searches.find(searches.token(added)) == added


def test_what_is_not_confirmed_is_forgotten(store: Store) -> None:
    searches = SavedSearches(store)
    first = searches.add(SavedSearch("", "one@example.org", "gales"), 1_000_000.0)
    assert first is not None
    searches.add(SavedSearch("", "two@example.org", "gales"), 1_000_000.0 + 3 * DAY)
    assert searches.find(searches.token(first)) is None


def test_without_alerts_there_is_no_form(store: Store, settings: Settings) -> None:
    client = make_client(store, replace(settings, portal=Appearance()))
    assert client.get("/follow?q=gales").status_code == 404
    assert "/follow" not in client.get("/?q=gales").text


def test_a_browser_sees_a_page_at_the_address_of_a_feed(client: TestClient) -> None:
    for address in ("/feed.atom", "/feed.rss?q=wave"):
        page = client.get(address, headers=BROWSER)
        assert page.headers["content-type"].startswith("text/html") and "Address of the feed" in page.text
        assert f'value="http://127.0.0.1:8080{address}"' in page.text
        raw = client.get(f"{address}{'&' if '?' in address else '?'}raw=1", headers=BROWSER)
        assert "xml" in raw.headers["content-type"]
        assert "xml" in client.get(address).headers["content-type"]
