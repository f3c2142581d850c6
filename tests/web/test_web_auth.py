"""The door of the operations desk."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.requests import Request
from tests.web.nodes import HASH, PASSWORD

from indlet.errors import SettingsError
from indlet.settings import Admin, Node, Serve, Settings
from indlet.web.auth import COOKIE, Gate, check_password, client_address, hash_password, is_local


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


def test_guessing_is_slowed_down() -> None:
    clock = Clock()
    door = gate(clock)
    for _ in range(5):
        assert door.must_wait("1.2.3.4") == 0
        assert not door.sign_in("1.2.3.4", "wrong")
    assert door.must_wait("1.2.3.4") == 60
    assert not door.sign_in("1.2.3.4", PASSWORD), "not even with the right one"
    assert door.must_wait("5.6.7.8") == 0
    clock.now += 61
    assert not door.sign_in("1.2.3.4", "wrong")
    assert door.must_wait("1.2.3.4") == 120
    clock.now += 121
    assert door.sign_in("1.2.3.4", PASSWORD)
    assert door.must_wait("1.2.3.4") == 0


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
    assert client_address(request(x_forwarded_for="6.6.6.6, 192.0.2.7, 10.1.1.1"), settings) == "192.0.2.7"
    assert client_address(request("192.0.2.9", x_forwarded_for="6.6.6.6"), settings) == "192.0.2.9"
    assert not is_local(request(x_forwarded_for="192.0.2.7"), settings)
