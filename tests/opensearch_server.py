"""A real OpenSearch node for tests, assembled from the artifacts that Maven resolves.

With INDLET_TEST_INDEX=opensearch conftest.py starts it; INDLET_TEST_OPENSEARCH is the URL of one that runs
already. OPENSEARCH_VERSION and JAVA choose what runs, ~/.m2/settings.xml where Maven downloads from; what it
resolved is kept in the user's cache folder, or in OPENSEARCH_CACHE.

    python -m tests.opensearch_server COMMAND …    runs a command with a node, whose URL is in its environment
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

KIND = "INDLET_TEST_INDEX"
SERVER = "INDLET_TEST_OPENSEARCH"
SECONDS = 300.0  # that a node may take to answer

NEWER, OLDER = "3.8.0", "2.19.6"  # the latter for Java below 21
LOG4J = "2.25.4"  # as log4j-api, which the server brings
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# A module's folder, its artifact, and its class; in 3.x the classes are called …ModulePlugin.
MODULES = {
    "transport-netty4": ("transport-netty4-client", "org.opensearch.transport.Netty4%sPlugin"),
    "analysis-common": ("analysis-common", "org.opensearch.analysis.common.CommonAnalysis%sPlugin"),
    "lang-painless": ("lang-painless", "org.opensearch.painless.Painless%sPlugin"),
    "reindex": ("reindex-client", "org.opensearch.index.reindex.Reindex%sPlugin"),
}


def on_opensearch() -> bool:
    return os.environ.get(KIND) == "opensearch"


class OpenSearchNode:
    """A node on loopback with a small heap, in a temporary folder, as an unprivileged user."""

    def __init__(
        self, heap: str = "512m", number: int = 1, seeds: tuple[int, ...] = (), *,
        wait: bool = True, quick: bool = True,
    ) -> None:  # fmt: skip
        """`quick` is for tests: it is up sooner, but does not become as fast as it can."""
        self.java, version = _java()
        self.version = os.environ.get("OPENSEARCH_VERSION") or (NEWER if version >= 21 else OLDER)
        self.home = assembled(self.version)
        self.folder = Path(tempfile.mkdtemp(prefix="indlet-os-"))
        self.heap = heap
        self._compiling = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if quick else ["-XX:+UseG1GC"]
        self.port, self.transport = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._number, self._seeds = number, seeds or (self.transport,)
        self._process: subprocess.Popen[bytes] | None = None
        self._configure()
        self.start(wait)

    def start(self, wait: bool = True) -> None:
        old = self.version.startswith("2.")
        options = ["-Djava.security.manager=allow"] if old else ["--enable-native-access=ALL-UNNAMED"]
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [
                str(self.java), f"-Xms{self.heap}", f"-Xmx{self.heap}", *self._compiling,
                f"-Djava.io.tmpdir={self.folder / 'tmp'}", *options,
                "--add-modules", "jdk.incubator.vector", f"-Dopensearch.path.home={self.home}",
                f"-Dopensearch.path.conf={self.folder / 'config'}", "-Dopensearch.distribution.type=tar",
                "-cp", f"{self.home / 'lib'}/*", "org.opensearch.bootstrap.OpenSearch",
            ],
            cwd=self.folder,
            user="nobody" if os.geteuid() == 0 else None,  # it refuses root
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        log.close()
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it answers."""
        until = time.monotonic() + SECONDS
        while not self.answers():
            if self._process is None or self._process.poll() is not None or time.monotonic() > until:
                said = (self.folder / "log").read_text(errors="replace")[-2000:]
                self.remove()
                raise RuntimeError(f"OpenSearch {self.version} did not start: {said}")
            time.sleep(0.2)

    def answers(self) -> bool:
        return answers(self.url)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _configure(self) -> None:
        config = self.folder / "config"
        for name in ("config", "data", "logs", "tmp"):
            (self.folder / name).mkdir()
        seeds = ", ".join(f'"127.0.0.1:{port}"' for port in self._seeds)
        (config / "opensearch.yml").write_text(
            f"cluster.name: indlet-test\nnode.name: n{self._number}\nnetwork.host: 127.0.0.1\n"
            f"http.port: {self.port}\ntransport.port: {self.transport}\n"
            f"path.data: {self.folder / 'data'}\npath.logs: {self.folder / 'logs'}\n"
            f"discovery.seed_hosts: [{seeds}]\ncluster.initial_cluster_manager_nodes: [n1]\n"
            "cluster.routing.allocation.disk.threshold_enabled: false\nnode.processors: 2\n"
        )
        (config / "log4j2.properties").write_text(
            "status = error\nappender.c.type = Console\nappender.c.name = c\n"
            "appender.c.layout.type = PatternLayout\nappender.c.layout.pattern = %d %p %c{1} %m%n\n"
            "rootLogger.level = warn\nrootLogger.appenderRef.c.ref = c\n"
        )
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                shutil.chown(path, "nobody")


def answers(url: str) -> bool:
    try:
        health = f"{url}/_cluster/health?wait_for_status=yellow"
        with urllib.request.urlopen(health, timeout=5) as told:
            return bool(told.status == 200)
    except OSError:
        return False


@cache
def awaited(url: str) -> str:
    """The same URL, once its node answers: conftest.py does not wait for it."""
    until = time.monotonic() + SECONDS
    while not answers(url):
        if time.monotonic() > until:
            raise RuntimeError(f"the OpenSearch node at {url} did not answer within {SECONDS:.0f} s")
        time.sleep(0.2)
    return url


def assembled(version: str) -> Path:
    """The home of a node, made once: the server's jars, and a folder for each module with what it adds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "indlet"
    kept = Path(os.environ.get("OPENSEARCH_CACHE") or cache) / f"opensearch-{version}"
    if (kept / "complete").exists():
        return _readable(kept)
    if not shutil.which("mvn"):
        raise RuntimeError(f"OpenSearch has to be resolved by Maven: apt-get install maven, or set {SERVER}")
    with tempfile.TemporaryDirectory() as work:
        made = Path(work) / "home"
        for name in ("bin", "config", "logs", "plugins"):
            (made / name).mkdir(parents=True)
        server = [("org.opensearch", "opensearch"), ("org.opensearch", "opensearch-plugin-classloader")]
        if not version.startswith("2."):
            server.append(("org.opensearch", "opensearch-agent-bootstrap"))
        wanted = [(*each, version) for each in server] + [("org.apache.logging.log4j", "log4j-core", LOG4J)]
        _resolve(Path(work) / "server", wanted, made / "lib")
        shared = {jar.name for jar in (made / "lib").iterdir()}
        for name, (artifact, kind) in MODULES.items():
            folder = made / "modules" / name
            _resolve(Path(work) / name, [("org.opensearch.plugin", artifact, version)], folder)
            for jar in folder.iterdir():
                if jar.name in shared or re.search(r"quic.*(osx|windows)", jar.name):
                    jar.unlink()
            _describe(folder, name, kind, version)
        (made / "complete").touch()
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(made, kept)
    return _readable(kept)


def _readable(home: Path) -> Path:
    """For an unprivileged user, who may not enter root's own folders: a copy that he can read."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o005 == 0o005 for parent in (home, *home.parents)):
        return home
    copy = Path(tempfile.gettempdir()) / f"indlet-{home.name}"
    if not (copy / "complete").exists():
        shutil.copytree(home, copy, dirs_exist_ok=True)
        subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
    return copy


def _resolve(work: Path, artifacts: Sequence[tuple[str, ...]], into: Path) -> None:
    wanted = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(name)}</artifactId>"
        f"<version>{escape(version)}</version></dependency>"
        for group, name, version in artifacts
    )
    work.mkdir()
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>indlet.test</groupId><artifactId>node</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
    )
    command = ["mvn", "-B", "-q", "-f", str(work / "pom.xml"), PLUGIN, "-DincludeScope=runtime"]
    done = subprocess.run([*command, f"-DoutputDirectory={into}"], capture_output=True, text=True)
    if done.returncode:
        said = done.stdout[-2000:]
        raise RuntimeError(f"Maven could not resolve OpenSearch; set {SERVER} to a node that runs:\n{said}")


def _describe(folder: Path, name: str, kind: str, version: str) -> None:
    """What the published modules lack: a descriptor; and for 2.x the permissions of their code."""
    old = version.startswith("2.")
    lines = {
        "name": name, "description": name, "version": version, "opensearch.version": version,
        "java.version": "11" if old else "21", "classname": kind % ("" if old else "Module"),
    }  # fmt: skip
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    (folder / "plugin-descriptor.properties").write_text(text)
    if old:
        (folder / "plugin-security.policy").write_text("grant { permission java.security.AllPermission; };\n")


def _java() -> tuple[Path, int]:
    """The newest Java of those named or installed."""
    if named := os.environ.get("JAVA"):
        return Path(named), _java_version(Path(named))
    places = [*Path("/usr/lib/jvm").glob("*/bin/java")]
    if home := os.environ.get("JAVA_HOME"):
        places.append(Path(home) / "bin/java")
    if found := shutil.which("java"):
        places.append(Path(found))
    versions = [(version, place) for place in places if (version := _java_version(place))]
    if not versions:
        raise RuntimeError(f"OpenSearch needs Java: apt-get install openjdk-17-jre-headless, or set {SERVER}")
    version, place = max(versions)
    return place, version


def _java_version(java: Path) -> int:
    command = [str(java), "-XshowSettings:properties", "-version"]
    told = subprocess.run(command, capture_output=True, text=True).stderr
    found = re.search(r"java\.specification\.version = (\d+)", told)
    return int(found[1]) if found else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    node = OpenSearchNode()
    try:
        sys.exit(subprocess.call(sys.argv[1:], env={**os.environ, SERVER: node.url}))
    finally:
        node.remove()
