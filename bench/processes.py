"""Running programs, and what they cost: time, processor time, memory."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """A program that has ended. `peak_mb` is the most memory that it and its children held at a time, files
    that they had mapped included."""

    status: int
    seconds: float
    cpu: float  # of the process and the children it waited for
    peak_mb: float  # as seen by looking twenty times a second, as are the
    private_mb: float  # most without mapped files
    output: bytes
    ended: float  # on the machine's monotonic clock


class Failed(Exception):
    """A program that should have ended well did not."""


def indlet(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "indlet", *map(str, arguments)]


def as_installed() -> dict[str, str]:
    """The environment, in which byte code is kept, as it is where a package was installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(command: Iterable[object], *, statuses: tuple[int, ...] = (0,), cwd: Path | None = None) -> Cost:
    """Runs a program to its end; Failed if it ends otherwise than expected."""
    words, environment = [str(part) for part in command], as_installed()
    began = time.perf_counter()
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=environment
    )
    assert process.stdout is not None and process.stderr is not None
    told: list[bytes] = []
    complaints = process.stderr
    listener = threading.Thread(target=lambda: told.append(complaints.read()))
    listener.start()
    watch = _Watch(process.pid)
    output = process.stdout.read()
    listener.join()
    _, status, usage = os.wait4(process.pid, 0)
    seconds, ended = time.perf_counter() - began, time.clock_gettime(time.CLOCK_MONOTONIC)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    peak, private = watch.end()
    if process.returncode not in statuses:
        raise Failed(
            f"{' '.join(words)}: exit status {process.returncode}\n{told[0].decode(errors='replace')}"
        )
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(process.returncode, seconds, cpu, peak, private, output, ended)


class _Watch:
    """Looks at the memory of a process and its children while it runs.

    What the system tells of a process that has ended will not do: it counts what the parent held when it
    started the process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._most = 0.0
        self._private = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            family = [self._pid, *descendants(self._pid)]
            self._private = max(self._private, sum(memory(pid, "RssAnon") for pid in family))
            now = sum(memory(pid, "VmRSS") for pid in family)
            self._most = max(self._most, now, memory(self._pid))

    def end(self) -> tuple[float, float]:
        self._over.set()
        self._thread.join()
        return self._most, self._private


def descendants(pid: int) -> list[int]:
    """The children of a running process, and theirs."""
    try:
        own = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return own + [further for child in own for further in descendants(child)]


class Meter:
    """What passes from its making on: time, processor time of this program, and that of all others."""

    def __init__(self) -> None:
        self._load = os.getloadavg()[0]
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        own = sum(
            sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        # user, nice, system, idle, iowait, irq, softirq, steal; idle and iowait are nobody's
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return time.perf_counter(), own, (sum(ticks) - ticks[3] - ticks[4]) / TICKS

    def read(self) -> dict[str, float]:
        seconds, own, busy = (now - then for now, then in zip(self._now(), self._start, strict=True))
        return {
            "seconds": round(seconds, 1),
            "cpu_seconds": round(own, 1),
            "others_cores": round(max(busy - own, 0) / seconds, 2),
            "load_before": round(self._load, 2),
        }


def cpu_of(pid: int) -> float:
    """Processor seconds that a running process and the children it waited for have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICKS


def cpu_now(pid: int) -> float:
    """Processor seconds that the threads of a running process have used, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def memory(pid: int, kind: str = "VmHWM") -> float:
    """Megabytes, by a name of /proc/PID/status; 0 if the process has gone."""
    try:
        match = re.search(rf"{kind}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(match[1]) / 1024 if match else 0.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Server:
    """A program that serves, while the block is open; `check` is an address that answers when it is up."""

    def __init__(self, command: Iterable[object], check: str) -> None:
        self._command = [str(part) for part in command]
        self.check = check
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def cpu(self) -> float:
        return cpu_of(self.pid)

    def __enter__(self) -> Self:
        # Into a file: a pipe that nobody reads is full after 64 kB of warnings, and then the server waits.
        said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.check, timeout=5).close()
                return self
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self._process.kill()
                    self._process.wait()
                    said.seek(0)
                    told = said.read().decode(errors="replace")
                    raise Failed(f"{' '.join(self._command)} did not come up\n{told}") from None
                time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# As `indlet provide` does: a provider without a portal, which would index the records for itself.
PROVIDER = """
import sys
from pathlib import Path
from indlet.cli.serving import run
from indlet.settings.file import load
run(load(Path(sys.argv[1])), crawl_at_once=False, portal=False)
"""


class Node(Server):
    """A provider as a settings file says, on a port of its own; it crawls only when told."""

    def __init__(
        self, folder: Path, name: str, more: str = "", *, node: str = "", data: Path | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.root = f"http://127.0.0.1:{self.port}"
        self.config = folder / f"{name}.toml"
        self.data = data or folder / f"{name}-data"
        self.config.write_text(
            f'data = "{self.data}"\n[node]\nport = {self.port}\n{node}[crawl]\nsettle_seconds = 0.0\n{more}'
        )
        super().__init__([sys.executable, "-c", PROVIDER, self.config], f"{self.root}/healthz")

    def crawl(self) -> Cost:
        return run(indlet("crawl", "--config", self.config, "--json", "--quiet"))


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
