"""The parts of a cluster on loopback, by docs/scale.md: database and standby, search nodes, proxy, users."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlencode

from bench.processes import free_port
from tests.opensearch_server import OpenSearchNode
from tests.stores import programs

DEPLOY = Path(__file__).parents[1] / "deploy"
NAME = "search.example.org"
Answer = tuple[int, tuple[tuple[str, float], ...]]  # the total; identifiers and scores


class Database:
    """A PostgreSQL server on a port of its own, with fsync, run by an unprivileged user."""

    def __init__(self, folder: Path) -> None:
        self.port, self.data = free_port(), folder / "data"
        self.folder, self._user = folder, "postgres" if os.geteuid() == 0 else None
        folder.mkdir(parents=True)
        if self._user:
            shutil.chown(folder, self._user)

    def run(self, program: str, *arguments: str) -> None:
        path = (programs() / "initdb").resolve().with_name(program)  # Debian links some of them elsewhere
        subprocess.run(
            [str(path), *arguments], check=True, user=self._user, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )  # fmt: skip

    def create(self) -> None:
        """An empty server with the role and the database of the recipe."""
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust")
        self.start()
        self.sql("CREATE ROLE indlet LOGIN")
        self.sql("CREATE ROLE standby LOGIN REPLICATION")
        self.sql("CREATE DATABASE indlet OWNER indlet ENCODING 'UTF8' TEMPLATE template0")

    def follow(self, primary: Database) -> None:
        """Become the standby of a server; commits of that one wait for this one from then on."""
        self.run(
            "pg_basebackup", "-h", "127.0.0.1", "-p", str(primary.port), "-U", "standby",
            "-D", str(self.data), "--write-recovery-conf", "--checkpoint=fast", "--create-slot",
            "--slot=standby",
        )  # fmt: skip
        self.start()
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")

    @property
    def url(self) -> str:
        return f"postgresql://indlet@127.0.0.1:{self.port}/indlet"

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self.folder} "
            "-c max_connections=200"
        )
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", "120", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def promote(self) -> None:
        self.run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def sql(self, command: str) -> None:
        import psycopg

        with psycopg.connect(
            f"postgresql://postgres@127.0.0.1:{self.port}/postgres", autocommit=True
        ) as connection:
            connection.execute(command.encode())

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def search_nodes(count: int, heap: str = "512m") -> Iterator[list[OpenSearchNode]]:
    """A cluster; each node is a process of its own."""
    nodes: list[OpenSearchNode] = []
    try:
        for number in range(1, count + 1):
            seeds = tuple(node.transport for node in nodes)
            nodes.append(OpenSearchNode(heap, number, seeds, wait=False))
        for node in nodes:
            node.wait()
        for node in nodes:  # one that comes back must find the others: all of them are named
            path = node.folder / "config" / "opensearch.yml"
            seeds_of_all = ", ".join(f'"127.0.0.1:{each.transport}"' for each in nodes)
            path.write_text(re.sub(r"(discovery.seed_hosts: ).*", rf"\1[{seeds_of_all}]", path.read_text()))
        yield nodes
    finally:
        for node in nodes:
            node.remove()


@contextlib.contextmanager
def proxy(folder: Path, ports: Sequence[int]) -> Iterator[tuple[int, Path]]:
    """nginx by the shipped file, before several web nodes: its port, and the certificate."""
    folder.mkdir()
    plain, secure = free_port(), free_port()
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    shipped = (DEPLOY / "nginx.conf").read_text()
    servers = "\n    ".join(f"server 127.0.0.1:{port};" for port in ports)
    shipped = shipped.replace("server 127.0.0.1:8080;", servers)
    shipped = re.sub(r"/etc/letsencrypt/\S+fullchain.pem", str(certificate), shipped)
    shipped = re.sub(r"/etc/letsencrypt/\S+privkey.pem", str(key), shipped)
    shipped = re.sub(r".*\[::\].*\n", "", shipped)
    shipped = shipped.replace("listen 80;", f"listen 127.0.0.1:{plain};")
    shipped = shipped.replace("listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;")
    (folder / "site.conf").write_text(shipped)
    rooms = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "server.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''}\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{rooms}include {folder}/site.conf;\n}}\n"
    )
    command = ["nginx", "-c", str(folder / "server.conf"), "-p", str(folder), "-g", "daemon off;"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield secure, certificate
    finally:
        process.terminate()
        process.wait(20)


@dataclass
class Seen:
    """What users saw during one fault; times are seconds from the fault."""

    fault: str
    rounds: int = 1
    right: int = 0
    on_the_way: int = 0  # of a state between what was there before a harvest and after it
    refused: int = 0  # told to come back, or no connection
    wrong: int = 0
    slowest: float = 0.0
    last_refusal: float = 0.0
    said: Counter[str] = field(default_factory=Counter)
    done_after: list[float] = field(default_factory=list)  # until all was harvested and searchable
    problems: list[str] = field(default_factory=list)

    def and_then(self, other: Seen) -> Seen:
        """Both, as one row."""
        return Seen(
            self.fault, self.rounds + other.rounds, self.right + other.right,
            self.on_the_way + other.on_the_way, self.refused + other.refused, self.wrong + other.wrong,
            max(self.slowest, other.slowest), max(self.last_refusal, other.last_refusal),
            self.said + other.said, self.done_after + other.done_after, self.problems + other.problems,
        )  # fmt: skip


class Users:
    """Two people who search by way of the proxy all the time, and know what is right."""

    def __init__(self, port: int, certificate: Path, queries: Sequence[dict[str, str]]) -> None:
        self._port, self._context = port, ssl.create_default_context(cafile=str(certificate))
        self._queries = queries
        self.before: list[Answer] = []
        self.after: list[Answer] | None = None  # while records are on their way
        self.seen = Seen("")
        self._began = time.monotonic()
        self._guard = threading.Lock()
        self._halt = threading.Event()
        self._threads = [threading.Thread(target=self._search, args=(n,), daemon=True) for n in range(2)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._halt.set()
        for thread in self._threads:
            thread.join()

    def fault(self, name: str) -> Seen:
        """From here on, what is seen counts for this fault."""
        with self._guard:
            self.seen, self._began = Seen(name), time.monotonic()
            return self.seen

    def since(self) -> float:
        return time.monotonic() - self._began

    def _search(self, number: int) -> None:
        connection: HTTPSConnection | None = None
        while not self._halt.wait(0.02):
            number = (number + 1) % len(self._queries)
            began, seen = time.monotonic(), self.seen
            try:
                if connection is None:
                    connection = _Here(NAME, self._port, context=self._context, timeout=120)
                status, told = asked(connection, self._queries[number])
            except (OSError, HTTPException) as e:
                connection, status, told = None, 0, type(e).__name__
            with self._guard:
                self._judge(number, seen, status, told, began)

    def _judge(self, number: int, seen: Seen, status: int, told: str | Answer, began: float) -> None:
        seen.slowest = max(seen.slowest, time.monotonic() - began)
        if isinstance(told, str):
            seen.refused += 1
            seen.said[f"{status} {told}"[:160]] += 1
            seen.last_refusal = max(seen.last_refusal, time.monotonic() - self._began)
            return
        least, most = self.before[number], (self.after or self.before)[number]
        if told in (least, most):
            seen.right += 1
        elif self.after is not None and least[0] <= told[0] <= most[0]:
            seen.on_the_way += 1
        else:
            seen.wrong += 1
            seen.problems.append(f"{self._queries[number]}: {told} instead of {least}")


class _Here(HTTPSConnection):
    """By the proxy's name, at this machine."""

    def connect(self) -> None:
        import socket

        plain = socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout)
        context = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(plain, server_hostname=NAME)


def asked(connection: HTTPSConnection, query: dict[str, str]) -> tuple[int, str | Answer]:
    """The answer of the API, or what it says instead."""
    connection.request("GET", f"/api/search?{urlencode(query)}", headers={"Host": NAME})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        told = json.loads(body).get("detail", "") if body.startswith(b"{") else answer.reason
        return answer.status, re.sub(r"\d+", "N", str(told))
    return 200, answer_of(json.loads(body))


def answer_of(told: dict[str, object]) -> Answer:
    hits = told["hits"]
    assert isinstance(hits, list) and isinstance(told["total"], int)
    return told["total"], tuple((hit["identifier"], hit["score"]) for hit in hits)


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 300.0) -> float:
    """Seconds until it is so; RuntimeError if it never is."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() > began + seconds:
            raise RuntimeError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)
    return time.monotonic() - began
