"""Crawls of servers that limit requests, that swap files, and that take the crawl for somebody else."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest
from tests.site.conftest import Make
from tests.site.test_site_crawl import OLD, PAGE
from tests.site.web_servers import MODULES, Web, available, web_server

from indlet.errors import SettingsError
from indlet.provider.pipeline import crawl
from indlet.settings import Site
from indlet.site.ask import outward_address
from indlet.site.tree import COMPARE_DAYS

LIMIT = "limit_req_zone $server_name zone=z:1m rate={rate}r/s;"
USE = "limit_req zone=z burst=100 nodelay; limit_req_status {status};"


@pytest.mark.parametrize("status", [403, 503])
def test_a_server_that_limits_bursts_loses_no_record(make: Make, status: int) -> None:
    if not available("nginx"):
        pytest.skip("no nginx here: apt-get install nginx-light")
    with web_server("nginx") as web:
        for number in range(300):
            web.write(f"{number % 7}/{number}.bin", f"{number}")
        web.start()
        bench = make(web, extract=False)
        assert bench.crawl().records == 300
        web.log_format = LIMIT.format(rate=400)
        web.reload(USE.format(status=status))
        web.write("new.bin", "new", at=time.time() - 5)
        summary = bench.crawl()
        assert (summary.outcome, summary.deleted, summary.withheld) == ("complete", 0, 0)
        assert len(bench.listed()) == 301
        assert not bench.listed("site (guarded)")


@pytest.mark.parametrize("how", ["over ::1", "without RemoteIP"])
def test_what_a_server_gives_to_its_own_machine_is_not_public(apache: Web, make: Make, how: str) -> None:
    """A server that does not believe the address that it is told takes the crawl for a local client."""
    apache.write("a.html")
    apache.write("local/l.html")
    apache.write("local/.htaccess", "Require local\n")
    server = ""
    if how == "over ::1":
        apache.extra = f"Listen [::1]:{apache.port}"
        server = f"http://[::1]:{apache.port}"
    else:
        apache.remote = ""
    apache.start()
    bench = make(apache, server=server)
    bench.crawl()
    assert set(bench.listed()) == {"a.html"}
    client = bench.serve()
    for user in ("", "ann"):
        assert client.harvested(user=user) == {"/a.html"}
    assert client.harvested(user="ann", address="203.0.113.9") == {"/a.html"}


def test_a_server_that_tells_addresses_apart_is_believed(apache: Web, make: Make) -> None:
    apache.write("a.html")
    apache.write("status.html")
    apache.write(".htaccess", "<Files status.html>\nRequire local\n</Files>\n")
    apache.start()
    bench = make(apache)
    bench.crawl()
    assert set(bench.listed()) == {"a.html"}
    assert set(bench.listed("site (guarded)")) == {"status.html"}


def test_another_file_of_the_same_length_and_time_is_not_taken_for_this_one(apache: Web, make: Make) -> None:
    apache.write("a.html", "<p>inside</p>", at=OLD)
    apache.write("b.html", "<p>public</p>", at=OLD)
    apache.extra = f"Alias /a.html {apache.root}/b.html"
    apache.start()
    bench = make(apache)
    summary = bench.crawl()
    assert set(bench.listed()) == {"b.html"}
    assert "other bytes" in dict(summary.named)["a.html"]


def test_an_alias_that_gives_another_file_later_is_noticed_within_some_days(
    apache: Web, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    apache.write("a.html", "<p>inside</p>", at=OLD)
    apache.write("b.html", "<p>public</p>", at=OLD)
    apache.start()
    bench = make(apache)
    bench.crawl()
    assert set(bench.listed()) == {"a.html", "b.html"}
    apache.stop()
    apache.extra = f"Alias /a.html {apache.root}/b.html"
    apache.start()
    begun = time.time()
    for day in range(COMPARE_DAYS):
        with monkeypatch.context() as later:
            later.setattr(time, "time", lambda now=begun + 86400 * day: now)
            summary = bench.crawl()
        if set(bench.listed()) == {"b.html"}:
            break
    assert set(bench.listed()) == {"b.html"}
    assert "other bytes" in dict(summary.named)["a.html"]


def test_output_that_changes_at_equal_length_is_a_change(make: Make) -> None:
    if not available("apache") or not list(MODULES.glob("libphp*.so")):
        pytest.skip("no PHP for Apache here: apt-get install libapache2-mod-php")
    with web_server("apache-prefork") as web:
        web.php = True
        web.write("hello.php", "<?php header('Content-Type: image/x-dice'); readfile('../run/said');", at=OLD)
        (web.run / "said").write_text("12345")
        web.start()
        bench = make(web, dynamic=True)
        bench.crawl()
        before = bench.listed()["hello.php"]
        (web.run / "said").write_text("54321")
        bench.crawl()
        after = bench.listed()["hello.php"]
        assert after["seq"] > before["seq"]
        assert after["sha256"] != before["sha256"]
        assert bench.crawl().idle


def test_a_time_in_the_future_is_no_change_at_each_crawl(web: Web, make: Make) -> None:
    web.write("a.bin", "x")
    ahead = time.time() + 100_000
    os.utime(web.root / "a.bin", (ahead, ahead))
    web.start()
    bench = make(web)
    bench.crawl()
    before = bench.listed()
    until = int(time.time()) + 1
    while time.time() < until:  # Apache states the second of its answer
        time.sleep(0.01)
    assert bench.crawl().records == 0
    assert bench.listed() == before


def test_a_url_belongs_to_one_site(apache: Web, make: Make) -> None:
    apache.write("a.html")
    apache.write("docs/b.html")
    apache.start()
    bench = make(apache)
    outer = bench.settings.site[0]
    inner = Site(str(apache.root / "docs"), f"{apache.url}/docs/", name="docs")
    settings = replace(bench.settings, site=(outer, inner))
    crawl(bench.store, settings, workers=bench._workers)
    assert set(bench.listed("site")) == {"a.html"}
    assert set(bench.listed("docs")) == {"docs/b.html"}
    with pytest.raises(SettingsError, match="two sites have the url"):
        crawl(bench.store, replace(settings, site=(outer, replace(outer, name="x"))), workers=bench._workers)


def test_pages_that_redirect_say_where(apache: Web, make: Make) -> None:
    apache.write("a.html", PAGE)
    apache.extra = "RewriteEngine On\nRewriteRule ^ https://localhost%{REQUEST_URI} [R=301,L]"
    apache.start()
    (reason,) = [reason for path, reason in make(apache).crawl().named if path == "a.html"]
    assert reason.endswith("it redirects to https://localhost")


outward = pytest.mark.skipif(not outward_address("http://127.0.0.1"), reason="no address but loopback here")


@outward
@pytest.mark.parametrize("rule", ["Require local", "Require ip 127.0.0.1", "Require ip {outward}"])
@pytest.mark.parametrize("believes", [True, False])
def test_rules_of_the_server_itself_hold_whether_or_not_it_believes_addresses(
    apache: Web, make: Make, rule: str, believes: bool
) -> None:
    """The node cannot read these rules; it connects from loopback and from its outward address."""
    for path in ("a.html", "own/b.html"):
        apache.write(path)
    rule = rule.format(outward=outward_address(apache.url))
    apache.extra = f"<Directory {apache.root}/own>\n{rule}\n</Directory>\n"
    if not believes:
        apache.remote = ""
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    assert bench.crawl().outcome == "complete"
    client = bench.serve()
    assert client.harvested() == {"/a.html"}
    assert client.harvested(user="ann") == {"/a.html"}
    assert set(bench.listed()) == {"a.html"}


@outward
def test_a_user_gets_nothing_that_only_this_machine_may_have(apache: Web, make: Make) -> None:
    for path in ("a.html", "both/b.html", "users/c.html"):
        apache.write(path)
    login = f'AuthType Basic\nAuthName "staff"\nAuthUserFile {apache.passwords}\n'
    apache.extra = (
        f"<Directory {apache.root}/both>\n{login}<RequireAll>\nRequire local\nRequire valid-user\n"
        f"</RequireAll>\n</Directory>\n<Directory {apache.root}/users>\n{login}Require valid-user\n"
        "</Directory>\n"
    )
    apache.remote = ""
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    assert bench.crawl().outcome == "complete"
    client = bench.serve()
    assert client.harvested() == {"/a.html"}
    assert client.harvested(user="ann") == {"/a.html", "/users/c.html"}
