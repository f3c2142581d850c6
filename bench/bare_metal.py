"""The bare-metal recipe of docs/scale.md, run from end to end on loopback, and what users saw of its faults.

    python -m bench.bare_metal [--records 3000] [--rounds 3] [--only search,failover] [--json FILE]

Three search nodes with 512 MB of heap, a PostgreSQL server with a streaming standby, two workers, two web
nodes behind nginx: by the shipped files (deploy/cluster.toml, deploy/nginx.conf), with other addresses. Two
providers give their records; two users search all the time by way of the proxy. A node on the embedded
defaults harvests the same records: its answers are what is right. Then, one after another: a worker is killed
in a harvest; a search node in a search, in a harvest, in publishing; the circuit breaker refuses; the
database is restarted, then lost and its standby promoted, in harvests; a web node is killed. Ends with status
1 if an answer was wrong or a record is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode

from bench.cluster import DEPLOY, Answer, Database, Seen, Users, answer_of, proxy, search_nodes, wait_for
from bench.corpus import fill
from bench.generated import collection, queries
from bench.processes import Node, free_port, indlet

from indlet.errors import StoreError
from indlet.node.job_entries import ask, last_runs
from indlet.service.index.engines import index_of
from indlet.service.pipeline import harvest_all
from indlet.service.search.library import Library
from indlet.settings import Settings
from indlet.settings.file import load
from indlet.store import open_store

TERMS = 40
MORE = 200  # records that each provider gets for a harvest
MODELS = ("bm25", "vsm", "lm-dirichlet", "boolean")


class Cluster:
    """The cluster, its users, and what is right."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, records: int) -> None:
        self.folder, self._stack, self._half = folder, stack, records // 2
        self.providers: list[Node] = []
        self.filled = 0
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(self._end)
        self.queries = [
            {"q": " ".join(words), "model": MODELS[number % len(MODELS)], "limit": "20"}
            for number, words in enumerate(queries(collection(records, TERMS), 16))
        ]

    def set_up(self) -> None:
        for number in (1, 2):
            data = self.folder / f"provider{number}-data"
            fill(data, self._half, TERMS, first=self.filled)
            self.filled += self._half
            provider = Node(self.folder, f"provider{number}", data=data)
            self.providers.append(self._stack.enter_context(provider))
        self.primary, self.standby = Database(self.folder / "db1"), Database(self.folder / "db2")
        for database in (self.primary, self.standby):
            self._stack.callback(database.remove)
        self.primary.create()
        self.standby.follow(self.primary)
        self.nodes = self._stack.enter_context(search_nodes(3))
        self.config = self._settings()
        self.store = self._stack.enter_context(open_store(self._url, local_folder=self.folder / "eyes"))
        self.engine = load(self.config).index
        self.web = [free_port(), free_port()]
        for number in (1, 2):
            self.begin(f"worker{number}")
            self.begin(f"web{number}")
        for port in self.web:
            wait_for(lambda port=port: _answers(port), "a web node")  # type: ignore[misc]
        port, certificate = self._stack.enter_context(proxy(self.folder / "proxy", self.web))
        self.users = Users(port, certificate, self.queries)

    def _settings(self) -> Path:
        """deploy/cluster.toml with addresses of this machine. By two names the providers are two hosts."""
        databases = ",".join(f"127.0.0.1:{each.port}" for each in (self.primary, self.standby))
        text = (DEPLOY / "cluster.toml").read_text()
        [shipped] = [line for line in text.splitlines() if line.startswith("url = [")]
        urls = ", ".join(f'"{node.url}"' for node in self.nodes)
        text = text.replace("indlet@db/", f"indlet@{databases}/").replace(shipped, f"url = [{urls}]")
        self._sources = "".join(
            f'[[source]]\nname = "{name}"\nurl = "http://{host}:{provider.port}/ft-oai"\n'
            for name, host, provider in zip(
                ("one", "two"), ("127.0.0.1", "localhost"), self.providers, strict=True
            )
        )
        path = self.folder / "indlet.toml"
        path.write_text(text + self._sources)
        self._url = load(path).store.url
        return path

    def begin(self, name: str) -> None:
        command = indlet("worker" if name.startswith("worker") else "serve", "--config", self.config)
        command += ["--data", str(self.folder / name)]
        if name.startswith("web"):
            command += ["--port", str(self.web[int(name[-1]) - 1])]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.programs[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        self.programs[name].kill()
        self.programs[name].wait()

    def _end(self) -> None:
        for name in self.programs:
            self.kill(name)

    # What is right

    def reference(self) -> list[Answer]:
        """The answers of the embedded defaults, with the records of the same providers."""
        settings = Settings(data=self.folder / "reference", source=load(self.config).source)
        with Library.open(settings=settings) as library:
            for done in harvest_all(library.store, settings):
                assert done.ok, done
            return [
                answer_of(library.search(query["q"], model=query["model"], limit=20).to_json())
                for query in self.queries
            ]

    def answers(self, port: int) -> list[Answer]:
        """Of one web node, asked again while it refuses: how long it does is what users see."""
        found: list[Answer] = []

        def answered() -> bool:
            with contextlib.suppress(HTTPError):
                for query in self.queries[len(found) :]:
                    address = f"http://127.0.0.1:{port}/api/search?{urlencode(query)}"
                    with urllib.request.urlopen(address, timeout=120) as told:
                        found.append(answer_of(json.loads(told.read())))
            return len(found) == len(self.queries)

        wait_for(answered, "answers of a web node")
        return found

    def records(self) -> int:
        with self.store.read() as view:
            return sum(live for live, _ in view.totals().values())

    def complete(self) -> bool:
        """Whether every record is in the store and in the index."""
        try:
            with self.store.read() as view:
                newest = view.last_seq()
            return (
                self.records() == self.filled
                and index_of(self.store, self.engine).searcher().position == newest
            )
        except StoreError:
            return False

    def check(self, seen: Seen) -> None:
        """Nothing is missing, and both web nodes answer as the node on the defaults does."""
        held = set[str]()
        with self.store.read() as view:
            held.update(one.identifier for one in view.changes())
        wanted = {f"oai:example.org:reports/{number:07d}.pdf" for number in range(self.filled)}
        seen.problems += [f"missing or foreign: {name}" for name in sorted(held ^ wanted)[:5]]
        seen.problems += self.store.check()
        for port in self.web:
            if _answers(port) and (told := self.answers(port)) != self.users.before:
                differ = sum(a != b for a, b in zip(told, self.users.before, strict=True))
                seen.problems.append(f"{differ} answers of a web node differ from the embedded engine's")

    def _shown(self) -> bool:
        return all(self.answers(port) == self.users.after for port in self.web if _answers(port))

    # Faults

    def more_records(self, count: int) -> None:
        """Both providers get records; the answers after the next harvest are worked out."""
        for provider in self.providers:
            fill(provider.data, count, TERMS, first=self.filled)
            self.filled += count
        self.users.after = self.reference()
        for name in ("one", "two"):
            ask(self.store, f"harvest {name}")

    def harvest(self, count: int) -> str:
        """More records, and a worker that harvests them; its name."""
        self.more_records(count)
        wait_for(lambda: bool(self.busy_worker()), "a harvest")
        return self.busy_worker() or "worker1"

    def busy_worker(self) -> str:
        """The worker that harvests."""
        for name in ("worker1", "worker2"):
            for told in Path(f"/proc/{self.programs[name].pid}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    for child in told.read_text().split():
                        if b"harvest_child" in Path(f"/proc/{child}/cmdline").read_bytes():
                            return name
        return ""

    def finished(self, seen: Seen) -> None:
        """What the fault met has come to its end by itself; then all is compared."""
        wait_for(self.complete, seen.fault)
        seen.done_after.append(self.users.since())
        if self.users.after is not None:
            wait_for(self._shown, "web nodes show what was harvested")
            self.users.before, self.users.after = self.users.after, None
        time.sleep(2.0)
        self.check(seen)


def worker_killed(cluster: Cluster, number: int) -> Seen:
    name = cluster.harvest(MORE)
    seen = cluster.users.fault("a worker killed while it harvests")
    cluster.kill(name)
    cluster.finished(seen)
    cluster.begin(name)
    return seen


def killed_in_search(cluster: Cluster, number: int) -> Seen:
    return _search_node_killed(cluster, number, "a search node killed while users search")


def killed_in_harvest(cluster: Cluster, number: int) -> Seen:
    cluster.harvest(MORE)
    return _search_node_killed(cluster, number + 1, "a search node killed while workers harvest")


def killed_in_publishing(cluster: Cluster, number: int) -> Seen:
    cluster.harvest(MORE)
    before = _position(cluster)
    wait_for(lambda: _position(cluster) > before, "the index to be written")
    return _search_node_killed(cluster, number + 2, "a search node killed while the index is published")


def _search_node_killed(cluster: Cluster, number: int, name: str) -> Seen:
    node = cluster.nodes[number % len(cluster.nodes)]
    seen = cluster.users.fault(name)
    node.kill()
    time.sleep(5.0)
    cluster.finished(seen)
    node.start()
    _green(cluster)
    return seen


def breaker_refuses(cluster: Cluster, number: int) -> Seen:
    """With a limit of nearly nothing every request to the cluster is refused (429)."""
    cluster.harvest(MORE)
    seen = cluster.users.fault("search nodes refuse by their circuit breaker for 5 s")
    _limit(cluster, "1%")
    time.sleep(5.0)
    _limit(cluster, None)
    cluster.finished(seen)
    return seen


def database_lost(cluster: Cluster, number: int) -> Seen:
    cluster.harvest(MORE)
    seen = cluster.users.fault("the database lost while workers harvest, its standby promoted after 2 s")
    cluster.primary.stop()
    time.sleep(2.0)  # until somebody notices
    cluster.standby.promote()
    cluster.finished(seen)
    cluster.primary, cluster.standby = cluster.standby, cluster.primary
    shutil.rmtree(cluster.standby.data)
    cluster.standby.follow(cluster.primary)
    return seen


def database_restarted(cluster: Cluster, number: int) -> Seen:
    cluster.harvest(MORE)
    seen = cluster.users.fault("the database stopped at once and started again while workers harvest")
    cluster.primary.stop()
    cluster.primary.start()
    cluster.finished(seen)
    return seen


def web_node_killed(cluster: Cluster, number: int) -> Seen:
    seen, which = cluster.users.fault("a web node killed"), number % 2
    cluster.kill(f"web{which + 1}")
    time.sleep(5.0)
    cluster.begin(f"web{which + 1}")
    wait_for(lambda: _answers(cluster.web[which]), "the web node")
    cluster.finished(seen)
    return seen


FAULTS = {
    "worker": worker_killed,
    "search": killed_in_search,
    "harvest": killed_in_harvest,
    "publish": killed_in_publishing,
    "breaker": breaker_refuses,
    "restart": database_restarted,
    "failover": database_lost,
    "web": web_node_killed,
}


def _position(cluster: Cluster) -> int:
    with contextlib.suppress(StoreError):
        return index_of(cluster.store, cluster.engine).searcher().position
    return -1


def _limit(cluster: Cluster, limit: str | None) -> None:
    body = json.dumps({"transient": {"indices.breaker.total.limit": limit}}).encode()
    url, headers = f"{cluster.nodes[0].url}/_cluster/settings", {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, body, headers, method="PUT"), timeout=60).close()


def _green(cluster: Cluster) -> None:
    def green() -> bool:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(
                f"{cluster.nodes[0].url}/_cluster/health?wait_for_status=green&wait_for_nodes=3&timeout=5s",
                timeout=10,
            ) as told,
        ):
            return not json.loads(told.read())["timed_out"]
        return False

    wait_for(green, "replicas")


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
        return True
    except OSError:
        return False


def tell(seen: Seen) -> None:
    after = ", ".join(f"{one:.1f}" for one in seen.done_after)
    print(
        f"| {seen.fault} | {seen.rounds} | {seen.right} | {seen.on_the_way} | {seen.refused} | "
        f"{seen.wrong} | {seen.last_refusal:.1f} | {seen.slowest:.1f} | {after} |",
        flush=True,
    )
    for said, count in seen.said.most_common(5):
        print(f"    {count} times: {said}", file=sys.stderr, flush=True)
    for problem in seen.problems[:5]:
        print(f"    PROBLEM {problem}", file=sys.stderr, flush=True)


def scenario(
    cluster: Cluster, faults: Sequence[str], rounds: int, keep: Callable[[list[Seen]], None]
) -> list[Seen]:
    began = time.monotonic()
    print(
        "| fault | rounds | right | on the way | refused | wrong | last refusal, s | slowest, s | done, s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    wait_for(cluster.complete, "the first harvest")
    first = Seen("none: the first harvest", done_after=[time.monotonic() - began])
    cluster.users.before = cluster.reference()
    cluster.check(first)
    tell(first)
    cluster.users.start()
    quiet = cluster.users.fault("none: users search")
    time.sleep(10.0)
    cluster.check(quiet)
    tell(quiet)
    found: dict[str, Seen] = {}
    for number in range(rounds):
        for name in faults:
            seen = FAULTS[name](cluster, number)
            cluster.users.fault("between")
            tell(seen)
            found[name] = found[name].and_then(seen) if name in found else seen
            keep([first, quiet, *found.values()])
    cluster.users.stop()
    return [first, quiet, *found.values()]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # everything ends with this process
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--records", type=int, default=3000)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--only", default=",".join(FAULTS))
    options.add_argument("--json", type=Path)
    options.add_argument("--keep", type=Path, help="a folder for everything, which stays")
    given = options.parse_args()
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="indlet-metal-")))
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        cluster = Cluster(folder, stack, given.records)
        cluster.set_up()
        keep = partial(_keep, given.json, cluster)
        found = scenario(cluster, given.only.split(","), given.rounds, keep)
        failed = {name: run.error for name, run in last_runs(cluster.store).items() if run.error}
    print()
    for seen in found:
        tell(seen)
    print(f"jobs whose last run failed: {failed}")
    sys.exit(1 if any(seen.wrong or seen.problems for seen in found) else 0)


def _keep(path: Path | None, cluster: Cluster, found: list[Seen]) -> None:
    told = {
        "records": cluster.filled,
        "search": cluster.nodes[0].version,
        "load": round(os.getloadavg()[0], 1),
        "faults": [{**vars(seen), "said": dict(seen.said)} for seen in found],
    }
    if path:
        path.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
