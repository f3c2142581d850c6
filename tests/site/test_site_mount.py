"""`indlet site` as people run it: beside a real server that mounts it by the printed lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.site.conftest import Make
from tests.site.web_servers import Web, available, basic, free_port, web_server

from indlet.site.ask import outward_address
from indlet.site.mount import snippet

OFFICE = "203.0.113.9"


@pytest.fixture(params=["apache-event", "nginx", "caddy"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Web]:
    kind = request.param
    if not available(kind):
        pytest.skip(f"no {kind} here: apt-get install apache2 nginx-light caddy")
    with web_server(kind) as web:
        port = free_port()
        printed = _indlet("site", "--print", kind.partition("-")[0], "--port", str(port))
        assert printed == snippet(kind.partition("-")[0], "127.0.0.1", port)
        web.extra, web.remote = printed, ""
        web.write("a.html", "<p>wings</p>")
        web.write("guarded/g.html", "<p>guarded wings</p>")
        web.write("office/o.html", "<p>office wings</p>")
        _guard(web)
        web.start()
        command = [sys.executable, "-m", "indlet", "site", str(web.root), "--url", web.url, "--data",
                   str(tmp_path / "data"), "--port", str(port), "--base-url", f"{web.url}/modoai",
                   "--every", ""]  # fmt: skip
        node = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment()
        )
        try:
            _wait(f"{web.url}/modoai/oai?verb=ListIdentifiers&metadataPrefix=oai_dc")
            yield web
        finally:
            node.terminate()
            assert node.wait(20) == 0


def _guard(web: Web) -> None:
    if web.kind == "caddy":
        web.extra += "\nrespond /guarded/* 403\nrespond /office/* 403\n"
    elif web.kind == "nginx":
        web.extra += f'\nlocation /guarded/ {{ auth_basic "x"; auth_basic_user_file {web.passwords}; }}\n'
        web.extra += f"location /office/ {{ allow {OFFICE}; deny all; }}\n"
    else:
        web.write(
            "guarded/.htaccess",
            f"AuthType Basic\nAuthName x\nAuthUserFile {web.passwords}\nRequire valid-user\n",
        )
        web.write("office/.htaccess", f"Require ip {OFFICE}\n")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("INDLET_")}


def _indlet(*arguments: str) -> str:
    command = [sys.executable, "-m", "indlet", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=_environment()).stdout


def _wait(url: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = httpx.get(url, timeout=60)  # a proxy waits for the node to start
        if answer.status_code == 200 and "<header>" in answer.text:
            return
        time.sleep(0.1)
    raise AssertionError(f"{url}: no record within a minute")


def test_a_server_is_harvested_through_itself(mounted: Web) -> None:
    base = f"{mounted.url}/modoai/oai"
    assert f"<baseURL>{base}</baseURL>" in httpx.get(f"{base}?verb=Identify").text
    lists = f"{base}?verb=ListIdentifiers&metadataPrefix=oai_dc"
    assert "guarded" not in httpx.get(lists).text
    if mounted.kind != "caddy":
        assert (
            f"{mounted.url}/guarded/g.html" in httpx.get(lists, headers={"Authorization": basic("ann")}).text
        )
        # Rules for addresses see that of the client, by way of server, node and server.
        assert "office" not in httpx.get(lists).text
        assert f"{mounted.url}/office/o.html" in httpx.get(lists, headers={"X-Forwarded-For": OFFICE}).text
    schema = httpx.get(f"{mounted.url}/modoai/schema/http_header.xsd")
    assert schema.status_code == 200
    # The base URL of the paper: the mount itself.
    root = f"{mounted.url}/modoai"
    assert f"<baseURL>{root}</baseURL>" in httpx.get(f"{root}?verb=Identify").text
    assert f"<baseURL>{root}</baseURL>" in httpx.post(root, data={"verb": "Identify"}).text
    listed = httpx.get(f"{root}?verb=ListIdentifiers&metadataPrefix=oai_dc").text
    assert f"{mounted.url}/a.html" in listed and f">{root}</request>" in listed
    assert "<html" in httpx.get(root).text
    assert httpx.get(f"{mounted.url}/modoais?verb=Identify").status_code == 404


def test_the_lines_are_printed_for_any_path() -> None:
    address = "https://www.example.org/mod_oai"
    assert 'ProxyPass "/mod_oai" ' in _indlet("site", "--print", "apache", "--base-url", address)
    assert "location ~ ^/mod_oai(/|$)" in _indlet("site", "--print", "nginx", "--base-url", f"{address}/")


@pytest.mark.parametrize("mounted", ["nginx"], indirect=True)
def test_the_records_of_a_site_are_searched_like_any_others(mounted: Web, tmp_path: Path) -> None:
    _indlet("harvest", f"{mounted.url}/modoai/ft-oai", "--data", str(tmp_path / "service"))
    found = _indlet("search", "wings", "--data", str(tmp_path / "service"))
    assert f"{mounted.url}/a.html" in found
    assert "guarded" not in found


def test_documented_lines_are_the_printed_ones() -> None:
    text = (Path(__file__).parents[2] / "docs" / "site.md").read_text()
    for server in ("apache", "nginx"):
        lines = [line for line in snippet(server, "127.0.0.1", 8080).splitlines() if not line.startswith("#")]
        block = re.search(rf"```{server}\n(.*?)```", text, re.S)
        assert block is not None
        assert block[1].splitlines() == lines


@pytest.mark.parametrize("kind", ["apache-event", "nginx"])
def test_documented_lines_keep_crawls_out_of_the_access_log(kind: str, make: Make) -> None:
    if not available(kind):
        pytest.skip(f"no {kind} here: apt-get install apache2 nginx-light")
    text = (Path(__file__).parents[2] / "docs" / "site.md").read_text()
    name = kind.partition("-")[0]
    outward = outward_address("http://127.0.0.1") or "192.0.2.10"
    lines = re.findall(rf"```{name}\n(.*?)```", text, re.S)[1].replace("192.0.2.10", outward).splitlines()
    with web_server(kind) as web:
        log = web.run / "access.log"
        used = re.sub(r"\S+/access\.log", str(log), lines[1])
        if name == "nginx":
            web.log_format, web.extra = lines[0], used
        else:
            web.extra = f'LogFormat "%h %r" combined\n{lines[0]}\n{used}'
        web.write("a.html")
        web.start()
        assert make(web).crawl().records == 1
        httpx.get(f"{web.url}/a.html")
        web.stop()
        found = log.read_text()
        assert "GET /a.html" in found
        assert "HEAD /a.html" not in found
        assert found.count("a.html") == 1


def test_what_was_left_out_is_listed_and_all_of_a_site_is_forgotten(tmp_path: Path) -> None:
    if not available("apache"):
        pytest.skip("no apache2 here: apt-get install apache2")
    with web_server("apache-event") as web:
        web.write("a.html")
        web.write("b.php", "<?php")
        web.start()
        settings = tmp_path / "indlet.toml"
        settings.write_text(f'[[site]]\nroot = "{web.root}"\nurl = "{web.url}"\nname = "site"\n')
        _indlet("crawl", "--config", str(settings), "-q")
        told = _indlet("failures", "--config", str(settings), "--left-out")
        assert told.startswith("site: b.php: a handler's source")
        web.write("c.html")
        web.write(".htaccess", "<Files c.html>\nRequire all denied\n</Files>\n")
        _indlet("crawl", "--config", str(settings), "-q")
        assert "2 records deleted" in _indlet("crawl", "--config", str(settings), "--forget", "site")
