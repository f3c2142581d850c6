"""The door of the operations desk."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.web.nodes import HASH, PASSWORD

from indlet.errors import SettingsError
from indlet.settings import Admin, Node, Serve, Settings
from indlet.store import Store
from indlet.web.auth import (
    COOKIE,
    DEVICE,
    Gate,
    Guesser,
    address_of,
    check_password,
    ended_sessions,
    hash_password,
    is_local,
    keep_ended_sessions,
    over_https,
)


def request(peer: str = "127.0.0.1", host: str = "localhost:8080", **headers: str) -> Request:
    raw = {"host": host, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return Request(
        {
            "type": "http", "method": "GET", "path": "/admin", "query_string": b"", "client": (peer, 1),
            "headers": [(k.encode(), v.encode()) for k, v in raw.items()],
        }
    )  # fmt: skip


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def gate(clock: Clock, secret: bytes = b"s" * 32, password_hash: str = HASH) -> Gate:
    return Gate(secret, Settings(admin=Admin(password_hash=password_hash)), clock)


def test_a_password_and_its_hash() -> None:
    assert HASH.startswith("scrypt$") and PASSWORD not in HASH
    assert check_password(PASSWORD, HASH) and not check_password(PASSWORD + "x", HASH)
    assert hash_password("a") != hash_password("a")
    assert check_password("ü" * 600, hash_password("ü" * 600))


@pytest.mark.parametrize(
    "bad", ["", "secret", "md5$1$2$3$4$5", "scrypt$3$8$1$!!$!!", "scrypt$9999999999$8$1$AA$AA"]
)
def test_a_hash_that_is_none_is_told(bad: str) -> None:
    with pytest.raises(SettingsError, match="password_hash"):
        check_password("x", bad)


def test_a_session_lasts_its_time_and_no_longer() -> None:
    clock = Clock()
    door = gate(clock)
    cookie, session = door.open()
    asked = request(cookie=f"{COOKIE}={cookie}")
    found = door.session(asked)
    assert found is not None and found.csrf == session.csrf
    clock.now += 13 * 3600
    assert door.session(asked) is None


def test_a_session_cannot_be_made_up_or_carried_over() -> None:
    clock = Clock()
    door = gate(clock)
    cookie, session = door.open()
    identity, until, signature = cookie.split(".")
    for forged in (
        f"{identity}.{int(until) + 1}.{signature}",
        f"x.{until}.{signature}",
        "a.b.c",
        "",
        "..",
        "é.1.x",
    ):
        assert door.session(request(cookie=f"{COOKIE}={forged}")) is None if forged.isascii() else True
    asked = request(cookie=f"{COOKIE}={cookie}")
    assert gate(clock, secret=b"t" * 32).session(asked) is None
    assert gate(clock, password_hash=hash_password("new")).session(asked) is None
    door.end(session)
    assert door.session(asked) is None


def test_csrf_tokens_belong_to_their_session() -> None:
    door = gate(Clock())
    _, one = door.open()
    _, two = door.open()
    assert door.csrf_matches(one, one.csrf)
    assert (
        not door.csrf_matches(one, two.csrf)
        and not door.csrf_matches(one, "")
        and not door.csrf_matches(one, "é")
    )


def test_all_addresses_of_an_ipv6_network_guess_together() -> None:
    door = gate(Clock())
    one, two = door.guesser(request(), "2001:db8:1:2::1"), door.guesser(request(), "2001:db8:1:2:ffff::9")
    assert one == two != door.guesser(request(), "2001:db8:1:3::1")


STRANGER = Guesser("1.2.3.4")


def test_guessing_is_slowed_down() -> None:
    clock = Clock()
    door = gate(clock)
    for _ in range(5):
        assert door.pause(STRANGER) == 0
        assert not door.sign_in(STRANGER, "wrong")
    for pause in (1, 2, 4, 8, 16, 16):
        assert door.pause(STRANGER) == pause
        assert not door.sign_in(STRANGER, "wrong")
    assert door.pause(Guesser("5.6.7.8")) == 0
    assert door.sign_in(STRANGER, PASSWORD), "late, but not refused"
    assert door.pause(STRANGER) == 0


def test_failures_are_forgotten_in_time() -> None:
    clock = Clock()
    door = gate(clock)
    for _ in range(9):
        door.sign_in(STRANGER, "wrong")
    clock.now += 3601
    assert door.pause(STRANGER) == 0 and not door.sign_in(STRANGER, "wrong")
    assert door.pause(STRANGER) == 0


def test_a_browser_that_signed_in_before_is_counted_by_itself() -> None:
    door = gate(Clock())
    known = request(cookie=f"{DEVICE}={door.new_device()}")
    who = door.guesser(known, "1.2.3.4")
    assert who.is_known
    for _ in range(9):
        door.sign_in(STRANGER, "wrong")
    assert door.pause(STRANGER) > 0 and door.pause(who) == 0
    for forged in ("x.y", "", "." + door.new_device().partition(".")[2]):
        assert door.guesser(request(cookie=f"{DEVICE}={forged}"), "1.2.3.4") == STRANGER


def test_what_was_signed_out_stays_so_after_a_restart(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:

        def opened() -> Gate:
            keep = partial(keep_ended_sessions, store)
            settings = Settings(admin=Admin(password_hash=HASH))
            return Gate(store.secret("sessions"), settings, ended=ended_sessions(store), keep=keep)

        door = opened()
        cookie, session = door.open()
        asked = request(cookie=f"{COOKIE}={cookie}")
        assert opened().session(asked) is not None
        door.end(session)
        assert opened().session(asked) is None


def test_what_one_node_signs_out_is_signed_out_at_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indlet.web.auth._HEAR", 0.0)
    with Store.open(tmp_path) as store:

        def opened() -> Gate:
            keep, others = partial(keep_ended_sessions, store), partial(ended_sessions, store)
            settings = Settings(admin=Admin(password_hash=HASH))
            return Gate(store.secret("sessions"), settings, keep=keep, others=others)

        one, two = opened(), opened()
        signed_in = [one.open() for _ in range(2)]
        asked = [request(cookie=f"{COOKIE}={cookie}") for cookie, _ in signed_in]
        assert [two.session(each) is not None for each in asked] == [True, True]
        one.end(signed_in[0][1])
        assert [two.session(each) is not None for each in asked] == [False, True]
        two.end(signed_in[1][1])
        assert [opened().session(each) for each in asked] == [None, None]


@pytest.mark.parametrize(
    ("public", "host", "secure"),
    [
        ("", "127.0.0.1:8080", False),
        ("https://search.example.org", "search.example.org", True),
        ("https://search.example.org", "127.0.0.1:8080", False),
    ],
)
def test_cookies_are_secure_where_the_browser_came_by_https(public: str, host: str, secure: bool) -> None:
    assert over_https(request(host=host), Settings(node=Node(base_url=public))) == secure


def test_local_means_local() -> None:
    settings = Settings()
    assert is_local(request(), settings)
    assert is_local(request("::1", "[::1]:8080"), settings)
    assert not is_local(request("192.0.2.7"), settings)
    assert not is_local(request(host="evil.example"), settings), "a name pointed at 127.0.0.1"
    assert not is_local(request(x_forwarded_for="192.0.2.7"), settings), "through a proxy on this machine"
    assert not is_local(request(forwarded="for=192.0.2.7"), settings)
    named = replace(settings, node=Node(base_url="https://search.example.org"))
    assert is_local(request(host="search.example.org"), named)


def test_trusted_proxies_are_believed() -> None:
    settings = Settings(serve=Serve(trusted_proxies=("127.0.0.1", "10.0.0.0/8")))
    assert address_of(request(x_forwarded_for="6.6.6.6, 192.0.2.7, 10.1.1.1"), settings) == "192.0.2.7"
    assert address_of(request("192.0.2.9", x_forwarded_for="6.6.6.6"), settings) == "192.0.2.9"
    assert not is_local(request(x_forwarded_for="192.0.2.7"), settings)


def test_all_lines_of_forwarded_addresses_are_one_list() -> None:
    """A requester adds a line of its own before the proxy's: it must not be believed."""
    settings = Settings(serve=Serve(trusted_proxies=("127.0.0.1",)))
    asked = request()
    asked.scope["headers"] += [(b"x-forwarded-for", b"127.0.0.1"), (b"x-forwarded-for", b"192.0.2.7")]
    assert address_of(asked, settings) == "192.0.2.7" and not is_local(asked, settings)
