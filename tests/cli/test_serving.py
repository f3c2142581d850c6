"""What a node says when it begins to serve."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stores import store_in

from indlet.cli.serving import _announce, _plan_crawls, bind
from indlet.exchange.alerts import alerts
from indlet.node.schedule import Schedule
from indlet.provider.pipeline import crawl_groups
from indlet.settings import Crawl, Hierarchy, LibraryFolder, Node, Settings


@pytest.mark.parametrize("public", ["", "https://reports.example.org/indlet"])
def test_a_node_says_where_it_listens(capsys: pytest.CaptureFixture[str], public: str) -> None:
    whole = Settings(
        node=Node(host="127.0.0.1", port=0, base_url=public), hierarchy=(Hierarchy("/srv/papers"),)
    )
    bound, settings = bind(whole)
    bound.close()
    _announce(settings, searched=True)
    said = capsys.readouterr().out
    here = f"http://127.0.0.1:{settings.node.port}"
    assert f"indlet harvest {public or here}/ft-oai" in said
    assert (f"listens   {here}/" in said) == bool(public)
    assert f"search    {public or here}/" in said and "indlet password" in said
    _announce(replace(settings, hierarchy=()), searched=True)
    assert "oai" not in capsys.readouterr().out  # nothing is advertised that does not answer


def test_each_hierarchy_has_its_interval_and_its_lane() -> None:
    settings = Settings(
        crawl=Crawl(every="1d"),
        hierarchy=(
            Hierarchy("/srv/a"),
            Hierarchy("/srv/b", every="15m"),
            Hierarchy("ftp://far.example.org/c"),
            Hierarchy("zip::https://far.example.org/d.zip", name="d", every="0 3 * * *"),
        ),
        library=(LibraryFolder("lib", "/srv/export"),),
    )
    found = crawl_groups(settings)
    assert [(g.names, g.every) for g in found] == [
        (("lib",), "1d"),
        (("a",), "1d"),
        (("b",), "15m"),
        (("c",), "1d"),
        (("d",), "0 3 * * *"),
    ]
    assert found[0].lane == found[1].lane == found[2].lane and len({g.lane for g in found}) == 3
    in_turn = crawl_groups(replace(settings, crawl=Crawl(every="1d", side_by_side=False)))
    assert len({g.lane for g in in_turn}) == 1 and in_turn[1].names == ("a", "c")
    (exports, _) = crawl_groups(Settings(library=settings.library, hierarchy=(Hierarchy("/srv/a"),)))
    assert exports.every == "1h"  # exports are read again and again, though nothing says how often


def test_a_missing_export_folder_is_an_alert_and_a_failed_job(tmp_path: Path) -> None:
    settings = Settings(
        data=tmp_path / "data",
        crawl=Crawl(workers=1, settle_seconds=0.0),
        library=(LibraryFolder("larc", str(tmp_path / "export")),),
    )
    with store_in(tmp_path / "data") as store, Schedule() as schedule:
        _plan_crawls(settings, schedule, at_once=True)

        def run_once() -> str:
            (job,) = schedule.jobs()
            runs = job.runs
            schedule.wake(job.name)
            deadline = time.monotonic() + 60
            while job.runs == runs and time.monotonic() < deadline:
                time.sleep(0.05)
            assert job.runs > runs
            return job.error

        assert "export" in run_once()
        assert [(alert.kind, alert.record) for alert in alerts(store)] == [("folder", "larc")]
        (tmp_path / "export").mkdir()
        assert run_once() == "" and not list(alerts(store))


@pytest.fixture
def stalled() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a server that takes connections and answers nothing, and what makes it hang up."""
    held: list[socket.socket] = []
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def accept() -> None:
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    held.append(server.accept()[0])
            for one in held:
                one.close()

        thread = threading.Thread(target=accept)
        thread.start()

        def hang_up() -> None:
            ended.set()
            thread.join()

        yield f"http://127.0.0.1:{server.getsockname()[1]}/", hang_up
        hang_up()


def test_a_slow_server_delays_no_other(tmp_path: Path, stalled: tuple[str, Callable[[], None]]) -> None:
    address, hang_up = stalled
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.txt").write_text("wings")
    settings = Settings(
        data=tmp_path / "data",
        crawl=Crawl(workers=1, settle_seconds=0.0),
        hierarchy=(
            Hierarchy(address, name="slow", every="1d"),
            Hierarchy(str(tmp_path / "papers"), name="papers", every="1s"),
        ),
    )

    def until(seen: str) -> None:
        """Waits for a text to be found by the local crawl, while the other stands still."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with store.read() as view:
                if any(seen in s.identifier for s in view.page(9)):
                    return
            time.sleep(0.05)
        raise AssertionError(f"{seen} was not found")

    with store_in(tmp_path / "data") as store, Schedule() as schedule:
        _plan_crawls(settings, schedule, at_once=True)
        schedule.start()
        until("papers/a")
        (tmp_path / "papers" / "b.txt").write_text("more")
        until("papers/b")
        states = {job.name: job for job in schedule.jobs()}
        assert states["crawl slow"].state == "running" and states["crawl slow"].runs == 0
        hang_up()
