"""What ships in deploy/ works: a node starts as the unit says, nginx, Apache and Caddy stand in front of it,
a backup is taken while it serves, and systemd finds no fault."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote, urlencode

import click
import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.site.web_servers import MODULES, available, free_port

from indlet.cli import cli
from indlet.settings.file import load
from indlet.store import open_store
from indlet.web.auth import hash_password

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "search.example.org"
PASSWORD = "open sesame"
IDENTIFIER = f"oai:{NAME}:papers/deep/report"
SETTINGS = f"""
data = "elsewhere"
[node]
port = {{port}}
base_url = "https://{NAME}"
[serve]
trusted_proxies = ["127.0.0.1"]
[crawl]
workers = 1
settle_seconds = 0.0
[admin]
public = true
user_header = "Remote-User"
header_role = "admin"
password_hash = "{{hash}}"
[[hierarchy]]
root = "papers"
"""


@dataclass(frozen=True)
class Node:
    port: int
    data: Path
    settings: Path
    log: Path

    def logged(self, path: str) -> dict[str, object]:
        """What the node's log tells of the last request for a path."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
            for line in reversed(lines):
                if line.get("event") == "request" and line["path"] == path:
                    return dict(line)
            time.sleep(0.05)
        raise AssertionError(f"no line of {path}: {self.log.read_text()[-2000:]}")


def command_of_unit(settings: Path, data: Path) -> list[str]:
    """What the shipped unit starts, with this installation and these folders."""
    line = re.search(r"^ExecStart=(.+)$", (DEPLOY / "indlet.service").read_text(), re.MULTILINE)
    assert line is not None
    words = line[1].split()
    given = {
        "/opt/indlet/bin/indlet": "",
        "/etc/indlet/indlet.toml": str(settings),
        "/var/lib/indlet": str(data),
    }
    assert set(given) <= set(words)
    return [sys.executable, "-m", "indlet", *(given.get(word, word) for word in words[1:])]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    (folder / "papers" / "deep").mkdir(parents=True)
    (folder / "papers" / "deep" / "report.txt").write_text("A report on zeppelins\n\nZeppelins float.\n")
    found = Node(free_port(), folder / "data", folder / "indlet.toml", folder / "log")
    found.settings.write_text(SETTINGS.format(port=found.port, hash=hash_password(PASSWORD)))
    with found.log.open("wb") as log:
        process = subprocess.Popen(
            command_of_unit(found.settings, found.data), stderr=log, stdout=subprocess.DEVNULL, cwd=folder
        )
        try:
            _wait(found.port, process)
            until = time.monotonic() + 60
            while _get(found.port, f"/record/{quote(IDENTIFIER, safe='')}")[0] != 200:
                assert time.monotonic() < until and process.poll() is None, found.log.read_text()[-2000:]
                time.sleep(0.1)
            yield found
        finally:
            process.terminate()
            assert process.wait(40) == 0


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on {port}")


def _get(port: int, path: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", path, headers={"Host": NAME})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)]),
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder / "cert.pem", folder / "key.pem"


def configured(kind: str, run: Path, ports: tuple[int, int], node: Node, tls: tuple[Path, Path]) -> list[str]:
    """The command that runs a server by the shipped file, moved to free ports and this certificate."""
    names = {"nginx": "nginx.conf", "apache": "apache.conf", "caddy": "Caddyfile"}
    shipped = (DEPLOY / names[kind]).read_text().replace("127.0.0.1:8080", f"127.0.0.1:{node.port}")
    shipped = re.sub(r"/etc/letsencrypt/\S+fullchain.pem", str(tls[0]), shipped)
    shipped = re.sub(r"/etc/letsencrypt/\S+privkey.pem", str(tls[1]), shipped)
    config, site = run / "server.conf", run / "site.conf"
    if kind == "nginx":
        shipped = re.sub(r".*\[::\].*\n", "", shipped)
        shipped = shipped.replace("listen 80;", f"listen 127.0.0.1:{ports[0]};")
        shipped = shipped.replace("listen 443 ssl;", f"listen 127.0.0.1:{ports[1]} ssl;")
        temporary = "".join(
            f"{what}_temp_path {run}/{what};\n"
            for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config.write_text(
            # Folders of tests are their user's alone.
            f"{'user root;' if os.geteuid() == 0 else ''}\npid {run}/pid;\n"
            f"error_log {run}/error.log;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{temporary}include {site};\n}}\n"
        )
        command = ["nginx", "-c", str(config), "-p", str(run), "-g", "daemon off;"]
    elif kind == "apache":
        shipped = shipped.replace("*:80>", f"127.0.0.1:{ports[0]}>").replace(
            "*:443>", f"127.0.0.1:{ports[1]}>"
        )
        modules = [
            "mpm_event",
            "authz_core",
            "authz_host",
            "alias",
            "ssl",
            "socache_shmcb",
            "proxy",
            "proxy_http",
            "headers",
        ]
        loaded = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in modules)
        config.write_text(
            f"ServerName {NAME}\nListen 127.0.0.1:{ports[0]}\nListen 127.0.0.1:{ports[1]}\n"
            f"PidFile {run}/pid\nErrorLog {run}/error.log\nDefaultRuntimeDir {run}\n"
            f"Mutex file:{run}\n{loaded}Include {site}\n"
        )
        command = ["apache2", "-d", str(run), "-f", str(config), "-D", "FOREGROUND"]
    else:
        shipped = shipped.replace(
            f"{NAME} {{\n", f"https://{NAME}:{ports[1]} {{\n\tbind 127.0.0.1\n\ttls {tls[0]} {tls[1]}\n", 1
        )
        options = ("admin off", f"http_port {ports[0]}", f"https_port {ports[1]}", "default_bind 127.0.0.1")
        shipped = f"{{\n{chr(10).join(options)}\n}}\n{shipped}"
        command = ["caddy", "run", "--config", str(site), "--adapter", "caddyfile"]
    site.write_text(shipped)
    return command


@contextmanager
def in_front(kind: str, run: Path, node: Node, tls: tuple[Path, Path]) -> Iterator[tuple[int, int]]:
    if not available(kind):
        pytest.skip(f"no {kind} on this machine: make servers, as root, brings it")
    ports = (free_port(), free_port())
    command = configured(kind, run, ports, node, tls)
    environment = {**os.environ, "HOME": str(run), "XDG_DATA_HOME": str(run), "XDG_CONFIG_HOME": str(run)}
    with (run / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=errors, stderr=errors, env=environment, start_new_session=True
        )
    try:
        try:
            _wait(ports[1], process)
        except AssertionError:
            raise AssertionError("".join(p.read_text() for p in run.glob("*err*"))[-3000:]) from None
        yield ports
    finally:
        process.terminate()
        process.wait(20)


class Visitor:
    """Somebody who comes by https, and looks whose certificate it is."""

    def __init__(self, port: int, certificate: Path) -> None:
        self.port, self.context = port, ssl.create_default_context(cafile=str(certificate))

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        with closing(http.client.HTTPConnection(NAME)) as connection:
            connection.sock = self.context.wrap_socket(plain, server_hostname=NAME)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Host": NAME, **named})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()


@pytest.mark.parametrize("kind", ["nginx", "apache", "caddy"])
def test_a_proxy_in_front_by_the_shipped_file(
    kind: str, tmp_path: Path, node: Node, certificate: tuple[Path, Path]
) -> None:
    with in_front(kind, tmp_path, node, certificate) as (plain, tls):
        visitor = Visitor(tls, certificate[0])
        status, headers, body = visitor.ask("/")
        assert status == 200 and b"indlet" in body and headers["Strict-Transport-Security"]
        _, _, body = visitor.ask("/oai?verb=Identify")
        assert f"<baseURL>https://{NAME}/oai</baseURL>".encode() in body
        # An identifier's slash stays what it is.
        status, _, body = visitor.ask(f"/record/{quote(IDENTIFIER, safe='')}")
        assert status == 200 and b"<title>A report" in body
        # Nobody says for themselves who they are, or where they come from.
        status, headers, _ = visitor.ask("/admin", Remote_User="admin", X_Forwarded_For="203.0.113.9")
        assert status == 303 and "sign-in" in headers["Location"]
        assert node.logged("/admin")["client"] == "127.0.0.1"
        form = urlencode({"password": PASSWORD, "user": "admin"}).encode()
        posted = {"Content_Type": "application/x-www-form-urlencoded", "Origin": f"https://{NAME}"}
        status, headers, _ = visitor.ask("/admin/sign-in", "POST", form, **posted)
        assert status == 303 and "Secure" in headers["Set-Cookie"]
        # Announcing too much is enough to be refused, but Apache begins to read.
        much = b"x" * 2_000_000 if kind == "apache" else None
        assert visitor.ask("/oai", "POST", much, Content_Length="2000000", **posted)[0] == 413
        assert visitor.ask("/metrics")[0] == 200, "from this machine"
        status, _ = _get(plain, "/?q=a")
        assert status in (301, 308)


def test_nginx_signs_people_in_and_names_them_as_documented(
    tmp_path: Path, node: Node, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (DEPLOY.parent / "docs" / "operate.md").read_text()
    (rule,) = (one for one in re.findall(r"```nginx\n(.*?)```", guide, re.DOTALL) if "auth_basic" in one)
    users = tmp_path / "users"
    users.write_text(f"anna:{{SHA}}{base64.b64encode(hashlib.sha1(b'apple').digest()).decode()}\n")
    changed = tmp_path / "deploy"
    shutil.copytree(DEPLOY, changed)
    text = (changed / "nginx.conf").read_text()
    rule = rule.replace("/etc/nginx/indlet.users", str(users))
    (changed / "nginx.conf").write_text(
        text.replace("    # Without a path here", f"{rule}\n    # Without a path here")
    )
    monkeypatch.setattr(sys.modules[__name__], "DEPLOY", changed)
    run = tmp_path / "run"
    run.mkdir()
    with in_front("nginx", run, node, certificate) as (_, tls):
        visitor = Visitor(tls, certificate[0])
        assert visitor.ask("/admin", Remote_User="admin")[0] == 401
        basic = "Basic " + base64.b64encode(b"anna:apple").decode()
        status, _, body = visitor.ask("/admin", Authorization=basic, Remote_User="admin")
        assert status == 200 and b"anna, administrator" in body


def test_a_node_that_serves_is_backed_up_and_comes_back(node: Node, tmp_path: Path) -> None:
    run = CliRunner().invoke
    place = ["--config", str(node.settings), "--data", str(node.data)]
    done = run(cli, ["backup", str(tmp_path / "b"), *place])
    assert done.exit_code == 0, done.output
    assert run(cli, ["restore", str(tmp_path / "b"), "--data", str(tmp_path / "new")]).exit_code == 0
    with (
        open_store(node.data) as old,
        open_store(tmp_path / "new") as new,
        old.read() as one,
        new.read() as two,
    ):
        mine, theirs = (
            [(s.identifier, s.seq, s.datestamp, s.record) for s in v.changes()] for v in (one, two)
        )
        assert mine == theirs and len(mine) == 1
    found = run(cli, ["search", "zeppelins", "--data", str(tmp_path / "new"), "--json"])
    assert IDENTIFIER in found.output
    checked = run(cli, ["check", "--offline", "--json", *place])
    assert {f["status"] for f in json.loads(checked.output)} <= {"ok", "warning"} and checked.exit_code == 0


def test_the_log_of_a_service_is_json_alone(node: Node) -> None:
    _get(node.port, "/healthz")
    _get(node.port, "/?q=secret+wish")
    node.logged("/")
    told = [json.loads(line) for line in node.log.read_text().splitlines()]
    assert {"request", "job", "crawl"} <= {line["event"] for line in told}
    assert "secret" not in node.log.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
@pytest.mark.parametrize("unit", ["indlet.service", "indlet-backup.service", "indlet-backup.timer"])
def test_systemd_finds_no_fault_in_a_unit(unit: str, tmp_path: Path) -> None:
    for path in DEPLOY.glob("indlet*.*"):
        installed = shutil.which("indlet", path=str(Path(sys.executable).parent)) or "/bin/true"
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/indlet/bin/indlet", installed))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    ours = [line for line in done.stderr.splitlines() if "indlet" in line]
    assert not ours and done.returncode == 0, done.stderr


def test_the_container_starts_what_the_command_line_knows() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    command = json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[-1])
    known = CliRunner().invoke(cli, ["serve", "--help"]).output
    assert command[0] == "serve" and all(word in known for word in command if word.startswith("--"))
    assert all(
        (DEPLOY.parent / name).exists()
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
        for name in line.split()
    )


def test_the_container_is_built_and_run(tmp_path: Path) -> None:
    engine = next(filter(None, map(shutil.which, ("docker", "podman"))), None)
    if engine is None or subprocess.run([engine, "info"], capture_output=True, timeout=30).returncode:
        pytest.skip("no container engine runs on this machine")
    build = [engine, "build", "--quiet", "--file", str(DEPLOY / "Containerfile"), str(DEPLOY.parent)]
    image = subprocess.run(build, capture_output=True, text=True, timeout=900, check=True).stdout.strip()
    port = free_port()
    run = [engine, "run", "--rm", "--detach", "--publish", f"127.0.0.1:{port}:8080", image]
    name = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                assert _get(port, "/healthz") == (200, b"ok\n")
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError("it did not answer")
    finally:
        subprocess.run([engine, "stop", name], capture_output=True, timeout=60)


def test_the_cluster_of_the_compose_file_has_commands_and_settings_that_exist() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours = {name: each for name, each in services.items() if each["image"] == "indlet"}
    assert sorted(ours) == ["web1", "web2", "worker1", "worker2"]
    for each in ours.values():
        name, *options = each["command"]
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, options)
        assert each["volumes"] == ["./cluster.toml:/etc/indlet.toml:ro"]
    settings = load(DEPLOY / "cluster.toml")
    assert not settings.node.jobs and settings.index.engine == "opensearch"
    hosts = [url.partition("://")[2].partition(":")[0] for url in settings.index.url]
    assert set(hosts) == {name for name in services if name.startswith("search")}
