"""`indlet sidecar`: a plan, then statistics at /ft-oai beside a repository, and nothing else."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from tests.sidecar.platforms import ArXiv, DSpace6, Kind, items, repository
from tests.site.web_servers import available, free_port, web_server

from indlet.sidecar.command import sidecar


def test_a_plan_says_what_will_be_done(tmp_path: Path) -> None:
    with repository(DSpace6) as server:
        done = CliRunner().invoke(
            sidecar, [server.url, "--data", str(tmp_path), "--delay", "0", "--plan"], catch_exceptions=False
        )
    assert done.exit_code == 0
    assert "platform    DSpace 6" in done.output
    assert re.search(r"sample +\d of 10 records with a document \(found by: xoai \d\)", done.output)
    assert "naming files: xoai, ore, mets" in done.output
    assert re.search(
        r"expected +\d\.\d requests and \d+ (bytes|kB) for each record; in all about", done.output
    )
    assert "/bitstream/1721.1/" in done.output
    assert not list(tmp_path.iterdir())


@contextmanager
def running(*arguments: str, port: int = 0) -> Iterator[str]:
    """A sidecar on that port, or a free one; gives its root."""
    command = [sys.executable, "-m", "indlet", "sidecar", *arguments, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(r" at (http://\S+?)/$", line.strip()):
                    yield found[1]
                    break
            else:
                raise AssertionError("it has not started")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def wait_for(url: str, word: str) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        answer = httpx.get(url).text
        if word in answer:
            return answer
        time.sleep(0.3)
    raise AssertionError(f"{word} is not at {url}")


def test_a_sidecar_serves_statistics_and_nothing_else(tmp_path: Path) -> None:
    with ArXiv(items(3, (Kind.OPEN,))) as server, running(
        server.url, "--data", str(tmp_path), "--delay", "0", "--email", "library@example.org"
    ) as root:  # fmt: skip
        listed = f"{root}/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_compact"
        answer = wait_for(listed, "zebra00003x")
        assert "oai:arxiv:3" in answer and server.url in answer  # its provenance
        identify = httpx.get(f"{root}/ft-oai?verb=Identify").text
        assert "Full-text statistics of arxiv" in identify and "on its behalf" in identify
        assert httpx.get(f"{root}/oai?verb=Identify").status_code == 404
        assert httpx.get(f"{root}/").status_code == 404
        assert "library@example.org" in server.requests[-1].headers["User-Agent"]


@pytest.mark.parametrize("kind", ["nginx", "apache-event", "caddy"])
def test_a_documented_recipe_mounts_it_below_the_host_of_the_repository(kind: str, tmp_path: Path) -> None:
    if not available(kind):
        pytest.skip(f"no {kind} here: apt-get install apache2 nginx-light caddy")
    docs = (Path(__file__).parents[2] / "docs" / "sidecar.md").read_text()
    recipe = re.search(rf"```{kind.partition('-')[0]}\n(.*?)```", docs, re.S)
    assert recipe is not None
    port = free_port()
    with web_server(kind) as web, ArXiv(items(2, (Kind.OPEN,))) as server:
        web.extra, web.remote = recipe[1].replace("127.0.0.1:8090", f"127.0.0.1:{port}"), ""
        web.write("a.html", "the repository itself")
        web.start()
        base = f"{web.url}/index"
        options = ("--data", str(tmp_path), "--delay", "0", "--base-url", base)
        with running(server.url, *options, port=port):
            listed = f"{base}/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix=tf_compact"
            assert f">{base}/ft-oai</request>" in wait_for(listed, "zebra00002x")
            assert f"<baseURL>{base}/ft-oai</baseURL>" in httpx.get(f"{base}/ft-oai?verb=Identify").text
            assert httpx.get(f"{base}/oai?verb=Identify").status_code == 404
            assert httpx.get(f"{web.url}/a.html").text == "the repository itself"
