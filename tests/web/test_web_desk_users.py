"""Several people at the desk: users and roles, a proxy that names them, and the log of what they did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient
from tests.web.nodes import HASH, PASSWORD, make_client, settings_for

from indlet.cli import cli
from indlet.errors import SettingsError
from indlet.settings import Admin, Serve, Settings, User
from indlet.settings.file import from_mapping
from indlet.store import Store
from indlet.store.kept_tables import DESK_LOG, StoredAct
from indlet.web.admin.desk_log import KEPT, DeskLog
from indlet.web.auth import Session, hash_password

OTHER = hash_password("reader's own")
USERS = (
    User("rita", "reader", OTHER),
    User("otto", "operator", HASH),
    User("anna", "admin", HASH),
    User("paul"),
)
# What each act needs, and what it is given.
ACTS: dict[str, tuple[str, dict[str, str]]] = {
    "harvest": ("operator", {"name": "s"}),
    "full": ("operator", {"name": "s"}),
    "pause": ("operator", {"name": "s"}),
    "resume": ("operator", {"name": "s"}),
    "harvest_all": ("operator", {"show": "new"}),
    "pause_all": ("operator", {"q": "s"}),
    "resume_all": ("operator", {}),
    "retry": ("operator", {"name": "s", "identifier": "oai:x:1"}),
    "retry_group": ("operator", {"name": "s", "group": "harvest: broken"}),
    "check": ("operator", {}),
    "acknowledge": ("operator", {"name": "1"}),
    "acknowledge_all": ("operator", {"kind": "", "until": "0"}),
    "run": ("operator", {"name": "crawl"}),
    "round": ("operator", {}),
    "keep": ("operator", {"name": "s"}),
    "same": ("operator", {"name": "oai:x:1 oai:y:1"}),
    "different": ("operator", {"name": "oai:x:1 oai:y:1"}),
    "later": ("operator", {"name": "oai:x:1 oai:y:1"}),
    "open": ("operator", {"name": "oai:x:1 oai:y:1"}),
    "withdraw": ("operator", {"name": "oai:x:1"}),
    "restore": ("operator", {"name": "oai:x:1"}),
    "release": ("admin", {"name": "s"}),
    "rebuild": ("admin", {}),
    "add": ("admin", {"url": "http://127.0.0.1:9/", "name": "new"}),
    "edit": ("admin", {"name": "s", "every": "2h"}),
    "reset": ("admin", {"name": "s"}),
    "remove": ("admin", {"name": "s"}),
}


@contextmanager
def node(folder: Path, address: str = "127.0.0.1", **changes: object) -> Iterator[tuple[Store, TestClient]]:
    settings = replace(settings_for(folder), user=USERS, **changes)  # type: ignore[arg-type]
    with Store.open(folder) as store:
        with store.write() as tx:
            tx.origin("source", "s", {"url": "http://127.0.0.1:9/"})
        client = make_client(store, settings, address)
        yield store, client
        client.app.state.desk.schedule.close()  # type: ignore[attr-defined]


def seat(client: TestClient, user: str, password: str = PASSWORD) -> str:
    """Sign somebody in; their CSRF token."""
    client.cookies.clear()
    answer = client.post("/admin/sign-in", data={"user": user, "password": password})
    assert answer.status_code == 303, answer.text
    return str(re.findall(r'name="csrf" value="([^"]+)"', client.get("/admin").text)[0])


def test_each_signs_in_with_their_own_password(tmp_path: Path) -> None:
    with node(tmp_path) as (_, client):
        assert 'name="user"' in client.get("/admin/sign-in").text
        for user, password in (
            ("rita", PASSWORD),
            ("paul", ""),
            ("nobody", PASSWORD),
            ("anna", "reader's own"),
        ):
            answer = client.post("/admin/sign-in", data={"user": user, "password": password})
            assert answer.status_code == 403 and "do not belong together" in answer.text
        for user, password in (
            ("rita", "reader's own"),
            ("anna", PASSWORD),
            ("", PASSWORD),
            ("admin", PASSWORD),
        ):
            seat(client, user, password)
            assert f"{user or 'admin'}," in client.get("/admin").text


def test_a_role_may_do_its_acts_and_no_others(tmp_path: Path) -> None:
    ranks = ("reader", "operator", "admin")
    with node(tmp_path) as (_, client):
        known = client.app.state.desk.acts.roles()  # type: ignore[attr-defined]
        assert known == {act: role for act, (role, _) in ACTS.items()}
        for user, role, password in (("rita", "reader", "reader's own"), ("otto", "operator", PASSWORD)):
            csrf = seat(client, user, password)
            for address in ("/admin", "/admin/source?name=s", "/admin/store", "/admin/jobs", "/admin/log"):
                page = client.get(address)
                assert page.status_code == 200
                shown = set(re.findall(r'name="action" value="(\w+)"', page.text))
                assert all(ranks.index(known[act]) <= ranks.index(role) for act in shown), (address, shown)
            for act, (needed, fields) in ACTS.items():
                if ranks.index(needed) > ranks.index(role):
                    answer = client.post("/admin/act", data={"action": act, "csrf": csrf, **fields})
                    assert answer.status_code == 403 and "You may not do that" in answer.text, act
            if role == "reader":
                tested = client.post("/admin/test", data={"csrf": csrf, "url": "http://127.0.0.1:9/"})
                assert tested.status_code == 403
        assert (
            client.post("/admin/act", data={"action": "pause", "csrf": csrf, "name": "s"}).status_code == 303
        )


def test_a_session_ends_with_the_user_or_their_password(tmp_path: Path) -> None:
    with node(tmp_path / "a") as (store, client):
        seat(client, "otto")
        cookie = client.cookies["indlet_session"]
        settings = replace(settings_for(tmp_path / "a"), user=USERS)
        for users, status in (
            (USERS, 200),
            ((), 303),
            ((User("otto", "operator", OTHER),), 303),
            ((User("otto", "operator"),), 303),
        ):
            again = make_client(store, replace(settings, user=users))
            again.cookies["indlet_session"] = cookie
            assert again.get("/admin").status_code == status
        forged = cookie.replace(
            cookie.partition("~")[2].partition(".")[0], "YW5uYQ"
        )  # "anna", of the same password
        again = make_client(store, settings)
        again.cookies["indlet_session"] = forged
        assert again.get("/admin").status_code == 303


def behind_proxy(**admin: object) -> dict[str, Any]:
    return {
        "serve": Serve(trusted_proxies=("127.0.0.1",)),
        "admin": Admin(public=True, user_header="Remote-User", **admin),  # type: ignore[arg-type]
    }


def test_a_trusted_proxy_says_who_sits_there(tmp_path: Path) -> None:
    with node(tmp_path, **behind_proxy()) as (_, client):
        seen = client.get("/admin", headers={"remote-user": "otto", "x-forwarded-for": "192.0.2.7"})
        assert "otto, operator" in seen.text and "Sign out" not in seen.text
        page = client.get("/admin/source?name=s", headers={"remote-user": "otto"}).text
        csrf = re.findall(r'name="csrf" value="([^"]+)"', page)[0]
        act = {"action": "pause", "name": "s", "csrf": csrf}
        assert client.post("/admin/act", data=act, headers={"remote-user": "otto"}).status_code == 303
        assert client.post("/admin/act", data=act, headers={"remote-user": "anna"}).status_code == 403, (
            "hers is another"
        )
        assert (
            client.post("/admin/act", data=act).status_code == 303
            and "sign-in" in client.post("/admin/act", data=act).headers["location"]
        )
        for unknown in ("nobody", "", "admin", "otto\x01", "o" * 101):
            assert client.get("/admin", headers={"remote-user": unknown}).status_code != 200
        twice = client.get("/admin", headers=[("remote-user", "anna"), ("remote-user", "otto")])
        assert twice.status_code == 303, "who wrote which?"
        paul = client.get("/admin", headers={"remote-user": "paul"})
        assert "paul, reader" in paul.text


def test_nobody_else_says_who_sits_there(tmp_path: Path) -> None:
    with node(tmp_path, "192.0.2.9", **behind_proxy()) as (_, client):
        for headers in ({"remote-user": "anna"}, {"remote-user": "anna", "x-forwarded-for": "127.0.0.1"}):
            assert client.get("/admin", headers=headers).status_code == 303


@pytest.mark.parametrize("role", ["", "reader"])
def test_a_proxy_alone_needs_no_password(tmp_path: Path, role: str) -> None:
    with node(tmp_path, **behind_proxy(header_role=role)) as (store, _):
        settings = replace(settings_for(tmp_path), **behind_proxy(header_role=role))
        client = make_client(store, settings)
        assert client.get("/admin").status_code == 403
        answer = client.get("/admin", headers={"remote-user": "somebody"})
        assert answer.status_code == (200 if role else 403)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"admin": {"user_header": "Remote-User"}}, "trusted_proxies"),
        ({"user": [{"name": "admin"}]}, "cannot be called"),
        ({"user": [{"name": "a"}, {"name": "a"}]}, "two entries"),
        ({"user": [{"name": "a", "role": "king"}]}, "role is one of"),
        ({"user": [{"name": "a\nb"}]}, "no name"),
        ({"admin": {"header_role": "king"}}, "header_role"),
        ({"log": {"level": "loud"}}, "log.level"),
    ],
)
def test_doubtful_users_are_refused_at_the_start(raw: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        from_mapping(raw)


def test_who_did_what_is_kept_and_shown(tmp_path: Path) -> None:
    with node(tmp_path) as (_, client):
        csrf = seat(client, "otto")
        client.post("/admin/act", data={"action": "pause", "csrf": csrf, "name": "s"})
        client.post("/admin/act", data={"action": "pause", "csrf": csrf, "name": "<b>\x9b31mgone"})
        csrf = seat(client, "anna")
        client.post(
            "/admin/act", data={"action": "edit", "csrf": csrf, "name": "s", "every": "3h", "token": "hush"}
        )
        page = client.get("/admin/log").text
        assert "anna" in page and "s: every=3h, token" in page and "hush" not in page and "<b>" not in page
        assert "not done" in page and "there is no source called" in page
        client.post("/admin/sign-out", data={"csrf": csrf})
    told = CliRunner().invoke(cli, ["log", "--data", str(tmp_path)])
    lines = told.output.splitlines()
    assert [line.split("  ")[1].partition(" ")[0] for line in lines] == [
        "anna",
        "anna",
        "anna",
        "otto",
        "otto",
        "otto",
    ]
    assert "sign-out" in lines[0] and "NOT DONE" in lines[3] and "\x9b" not in told.output
    assert "hush" not in told.output and "(operator, 127.0.0.1)" in lines[-1]


def test_the_log_is_bounded(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        log = DeskLog(store, clock=lambda: 1.0)
        for number in range(3):
            log.add("pause", Session("i", 0, "c"), "127.0.0.1", f"source {number}")
        assert [entry.what for entry in log.entries(2)] == ["source 2", "source 1"]
        with store.write() as tx:
            old = (StoredAct(n, 1.0, "u", "admin", "", "pause", "old", "done") for n in range(KEPT))
            tx.upsert(DESK_LOG, old)
        log.add("pause", Session("i", 0, "c"), "", "the newest")
        assert len(log.entries()) == KEPT and log.entries(1)[0].what == "the newest"


def test_users_are_added_and_taken_out_by_a_command(tmp_path: Path) -> None:
    path, secret = tmp_path / "indlet.toml", tmp_path / "secret"
    path.write_text('[node]\nname = "x"\n\n# kept\n[admin]\npublic = true\n')
    secret.write_text("s3cret\n")
    runner = CliRunner()

    def run(*arguments: str, status: int = 0) -> Settings:
        done = runner.invoke(cli, ["password", "--config", str(path), *arguments])
        assert done.exit_code == status or done.exception, done.output
        from indlet.settings.file import load

        return load(path)

    settings = run("anna", "--role", "operator", "--password-file", str(secret))
    assert [(u.name, u.role) for u in settings.user] == [("anna", "operator")]
    assert "s3cret" not in path.read_text() and path.stat().st_mode & 0o077 == 0
    settings = run("paul", "--no-password")
    assert [(u.name, u.role, bool(u.password_hash)) for u in settings.user][1] == ("paul", "reader", False)
    settings = run("anna", "--role", "admin", "--password-file", str(secret))
    assert {(u.name, u.role) for u in settings.user} == {("anna", "admin"), ("paul", "reader")}
    settings = run("anna", "--remove")
    assert [u.name for u in settings.user] == ["paul"] and "# kept" in path.read_text()
    assert settings.node.name == "x" and settings.admin.public
    assert isinstance(
        runner.invoke(cli, ["password", "-c", str(path), "eve", "--remove"]).exception, SettingsError
    )
