"""The operations desk, over HTTP, with a real provider to harvest."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from starlette.testclient import TestClient
from tests.web.nodes import PASSWORD, make_client, settings_for, until

from indlet.model import Failure, Record
from indlet.node.harvests import Harvests
from indlet.node.schedule import Schedule
from indlet.settings import Admin, Harvest, Source
from indlet.store import Store
from indlet.web.admin.show import failure, hexadecimal


class Operator:
    """Somebody at the desk."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        answer = client.post("/admin/sign-in", data={"password": PASSWORD})
        assert answer.status_code == 303 and answer.headers["location"] == "/admin"
        for cookie in answer.headers.get_list("set-cookie"):
            assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/admin" in cookie
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', client.get("/admin").text)[0]

    def act(self, action: str, status: int = 303, **fields: str) -> str:
        answer = self.client.post("/admin/act", data={"action": action, "csrf": self.csrf, **fields})
        assert answer.status_code == status, answer.text
        return answer.text

    def test(self, url: str) -> str:
        answer = self.client.post("/admin/test", data={"csrf": self.csrf, "url": url})
        return self.words(answer)

    def see(self, address: str) -> str:
        return self.words(self.client.get(address))

    @staticmethod
    def words(answer: Any) -> str:
        assert answer.status_code == 200
        root: Any = html.fromstring(answer.text)
        return " ".join(root.text_content().split())


@pytest.fixture
def desk(empty: tuple[Store, TestClient]) -> Iterator[Operator]:
    operator = Operator(empty[1])
    yield operator
    operator.client.app.state.desk.schedule.close()  # type: ignore[attr-defined]


def test_without_a_password_the_desk_is_shut(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        client = make_client(store, replace(settings_for(tmp_path), admin=Admin()))
        for address in ("/admin", "/admin/store", "/admin/sign-in"):
            answer = client.get(address)
            assert answer.status_code == 403 and "indlet init --ask-password" in answer.text
        assert client.post("/admin/act", data={"action": "rebuild"}).status_code == 403
        assert client.post("/admin/sign-in", data={"password": ""}).status_code == 403


def test_from_elsewhere_the_desk_does_not_exist(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        settings = settings_for(tmp_path)
        stranger = make_client(store, settings, address="192.0.2.7")
        assert stranger.get("/admin").status_code == 404
        assert stranger.post("/admin/sign-in", data={"password": PASSWORD}).status_code == 404
        assert stranger.post("/admin/act", data={"action": "rebuild"}).status_code == 404
        opened = replace(settings, admin=replace(settings.admin, public=True))
        assert make_client(store, opened, address="192.0.2.7").get("/admin").status_code == 303


def test_signing_in_and_out(empty: tuple[Store, TestClient]) -> None:
    _, client = empty
    answer = client.get("/admin/store")
    assert answer.status_code == 303 and "next=%2Fadmin%2Fstore" in answer.headers["location"]
    assert client.post("/admin/sign-in", data={"password": "wrong"}).status_code == 403
    asked = client.post("/admin/sign-in", data={"password": PASSWORD, "next": "https://evil.example/"})
    assert asked.headers["location"] == "/admin"
    operator = Operator(client)
    client.post("/admin/sign-out", data={"csrf": "wrong"})
    assert client.post("/admin/sign-out", data={"csrf": operator.csrf}).status_code == 303
    assert client.get("/admin").status_code == 303


def test_wrong_passwords_slow_down_and_never_lock_out(empty: tuple[Store, TestClient]) -> None:
    _, client = empty
    for _ in range(6):
        assert client.post("/admin/sign-in", data={"password": "wrong"}).status_code == 403
    begun = time.monotonic()
    answer = client.post("/admin/sign-in", data={"password": PASSWORD})
    assert answer.status_code == 303 and time.monotonic() - begun > 2.0


def test_acts_need_the_token_and_the_same_origin(desk: Operator) -> None:
    for fields in ({}, {"csrf": "x"}):
        assert desk.client.post("/admin/act", data={"action": "rebuild", **fields}).status_code == 403
    good = {"action": "rebuild", "csrf": desk.csrf}
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert desk.client.post("/admin/act", data=good, headers=foreign).status_code == 403
    assert desk.client.get("/admin/act").status_code == 405
    desk.act("no-such-thing", 400)


def test_a_source_from_test_to_removal(
    desk: Operator, slow_provider: str, empty: tuple[Store, TestClient]
) -> None:
    store, client = empty
    tested = desk.test(slow_provider)
    assert (
        "Slow Repository" in tested
        and "tf_compact" in tested
        and "term statistics can be harvested" in tested
    )
    desk.act("add", url=slow_provider, name="slow", now="1")
    running = desk.client.app.state.desk.harvests.running  # type: ignore[attr-defined]
    until(lambda: "slow" in running() and running()["slow"].records > 0)
    assert "running" in desk.see("/admin") and "running" in desk.see("/admin/source?name=slow")
    desk.act("pause", name="slow")
    until(lambda: not running())
    assert "paused" in desk.see("/admin")
    with store.read() as view:
        partly = sum(live for live, _ in view.totals().values())
    assert 0 < partly < 64
    desk.act("resume", name="slow")
    desk.act("harvest", name="slow")
    until(lambda: not running())
    seen = desk.see("/admin/source?name=slow")
    assert "complete" in seen and "same as ours" in seen and "oai_dc+tf_compact" in seen
    with store.read() as view:
        assert sum(live for live, _ in view.totals().values()) == 64
    until(
        lambda: (
            "quincunx" in client.get("/?q=quincunx").text and "64 records" in client.get("/?q=quincunx").text
        )
    )
    assert "Next run" in seen and "Over time" in seen
    assert "choose whether" in desk.act("remove", 409, name="slow")
    assert "Delete its 64 records." in desk.see("/admin/source?name=slow")
    desk.act("remove", name="slow", records="delete")
    assert "slow" not in desk.see("/admin").replace("slow_", "")
    assert "No records found" in client.get("/?q=quincunx").text


def test_a_full_harvest_lists_everything_again(desk: Operator, slow_provider: str) -> None:
    harvests = desk.client.app.state.desk.harvests  # type: ignore[attr-defined]
    # An incremental harvest reaches back a little: the records must be older than that.
    old_enough = time.time() + Harvest().overlap_seconds + 1
    until(lambda: time.time() > old_enough)
    desk.act("add", url=slow_provider, name="slow", now="1")
    until(lambda: not harvests.running())
    desk.act("harvest", name="slow")
    until(lambda: not harvests.running())
    desk.act("full", name="slow")
    until(lambda: not harvests.running())
    with harvests._store.read() as view:
        records = [run.detail["records"] for run in view.runs()]
    assert records[0] == 64 and records[1] < 64 and records[2] == 64


def test_mistakes_are_told_in_place(desk: Operator, slow_provider: str) -> None:
    assert "give an http or https address" in desk.act("add", 400, url="gopher://x")
    assert "is no interval" in desk.act("add", 400, url=slow_provider, every="sometimes")
    desk.act("add", url="http://127.0.0.1:9/", name="dead")
    assert "already" in desk.act("add", 400, url="http://127.0.0.1:9/", name="dead")
    assert "cannot be harvested" in desk.test("http://127.0.0.1:9/oai")
    desk.act("harvest", 409, name="unknown")
    assert desk.client.get("/admin/source?name=unknown").status_code == 404


def test_a_dead_source_fails_alone_and_says_why(desk: Operator) -> None:
    harvests = desk.client.app.state.desk.harvests  # type: ignore[attr-defined]
    desk.act("add", url="http://127.0.0.1:9/", name="dead", now="1")
    until(lambda: not harvests.running())
    assert "failed" in desk.see("/admin") and "127.0.0.1:9" in desk.see("/admin/source?name=dead")


def test_store_and_index_are_checked_and_rebuilt(desk: Operator, empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    with store.write() as tx:
        tx.put(tx.origin("source", "s"), [Record("oai:s:1", {"title": ["T"]})])
    office = desk.client.app.state.desk  # type: ignore[attr-defined]
    for action, said in (
        ("rebuild", "1 change applied"),
        ("check", "store: ok; index: ok, 1 record in both"),
    ):
        desk.act(action)
        until(lambda: not office.acts.upkeep.busy())
        assert said in desk.see("/admin/store")


def test_every_job_is_shown_and_told_as_json(desk: Operator) -> None:
    schedule = desk.client.app.state.desk.schedule  # type: ignore[attr-defined]
    desk.act("add", url="http://127.0.0.1:9/", name="dead", every="2h")
    schedule.add("notify", "0 3 * * *", lambda stop: None)
    desk.act("harvest", name="dead")
    until(lambda: all(job.started is None for job in schedule.jobs()))
    seen = desk.see("/admin/jobs")
    assert "harvest dead failed 2h" in seen and "127.0.0.1:9" in seen and "notify waiting 0 3 * * *" in seen
    jobs = {job["name"]: job for job in desk.client.get("/admin/jobs.json").json()["jobs"]}
    dead = jobs["harvest dead"]
    assert dead["kind"] == "harvest" and dead["state"] == "failed" and "127.0.0.1:9" in dead["error"]
    assert dead["last_success"] is None and dead["next_run"] > dead["last_run"]
    desk.act("pause", name="dead")
    jobs = {job["name"]: job for job in desk.client.get("/admin/jobs.json").json()["jobs"]}
    assert jobs["harvest dead"]["state"] == "paused"
    desk.client.cookies.clear()
    assert desk.client.get("/admin/jobs.json").status_code == 303


def test_what_the_desk_decided_outlives_a_restart(tmp_path: Path) -> None:
    settings = replace(settings_for(tmp_path), source=(Source("http://one.example/oai", "one"),))
    with Store.open(tmp_path) as store:
        first = Harvests(store, settings, Schedule(), lambda: None)
        first.add(Source("http://two.example/oai", "two", every="1h", token="t"))
        first.pause("one", paused=True)
        again = Harvests(store, settings, Schedule(), lambda: None)
        again.plan()
        assert again.sources()["one"].paused and again.sources()["two"].token == "t"
        assert again.due() == ["two"]
        again.pause("two", paused=True)
        assert again.due() == []
        with store.read() as view:
            assert all("token" not in o.settings for o in view.origins())
        with store.write() as tx:
            for kind in ("silent", "twice"):
                tx.alert(kind, "two", "", "not harvested", "see to it")
        again.remove("two", records=True)
        assert set(again.sources()) == {"one"}
        with store.read() as view:
            assert view.alerts(acknowledged=True) == []


def test_failures_show_their_bytes(desk: Operator, empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    with store.write() as tx:
        origin = tx.origin("source", "bad", {"url": "http://bad.example/oai"})
        tx.fail(origin, Failure("oai:bad:1", "harvest", "no title", b"<dc>\x00\xff<script>alert(1)</script>"))
        tx.fail(origin, Failure("oai:bad:2", "harvest", "unclosed", b"<dc:title>Gr\xc3\xbc\xc3\x9fe"))
    seen = desk.see("/admin/source?name=bad")
    assert "3c 64 63 3e 00 ff" in seen and "<dc:title>Grüße" in seen
    assert "<script>alert" not in desk.client.get("/admin/source?name=bad").text


def test_a_run_that_still_owes_records_says_how_many(desk: Operator, empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    with store.write() as tx:
        for name, owed in (("owing", 1200), ("whole", 0)):
            origin = tx.origin("source", name, {"url": f"http://{name}.example/oai"})
            run = tx.start_run(origin, "harvest")
            tx.note_run(run, {"records": 9, "owed": owed}, "complete")
    missing = '<span class="small">1,200 records still missing</span>'
    owing = f'<span class="badge restricted">complete</span> {missing}'
    seen = desk.client.get("/admin").text
    assert owing in seen and '<span class="badge good">complete</span>' in seen
    seen = desk.client.get("/admin/source?name=owing").text
    assert owing in seen and '<td class="stamp">complete, 1,200 records still missing</td>' in seen
    assert "records owed" not in desk.client.get("/admin/source?name=whole").text


def test_hexadecimal_says_all() -> None:
    assert hexadecimal(b"abc\x00") == f"000000  {'61 62 63 00':<47}  abc·"
    with_cut = failure_of(b"x" * 9000)
    assert with_cut["cut"] and len(str(with_cut["raw"])) == 4000


def failure_of(raw: bytes) -> dict[str, object]:
    from indlet.store import StoredFailure

    return failure(StoredFailure(1, "w", "s", "r", raw, 0))


def test_the_provider_side(desk: Operator, empty: tuple[Store, TestClient]) -> None:
    store, _ = empty
    with store.write() as tx:
        tree = tx.origin("hierarchy", "papers", {"root": "/srv/papers"})
        tx.fail(tree, Failure("a/b.pdf", "extract", "encrypted"))
        tx.fail(tree, Failure("a/c.pdf", "extract", "broken"))
        run = tx.start_run(tree, "crawl")
        tx.note_run(run, {"files": 12, "reason": ""}, "complete")
    seen = desk.see("/admin/provider")
    assert "papers" in seen and "/srv/papers" in seen and "pdf 2" in seen and "encrypted" in seen
