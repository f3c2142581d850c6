"""Two sites far apart: provider and service in two network namespaces, with delay, loss, little bandwidth.

    sudo INDLET_DATA=… python -m bench.far [--records 2000] [--delays 10,100,300] [--json FILE]

Each site is a network namespace. The wire between them is made long by netem (tc), half of the round trip on
either side; where the kernel has none, by a relay of our own that holds back each packet. The provider serves
Reuters-21578 (or generated texts), the service harvests all anew for each row. Bytes are those that came
to the service's device, headers and repeated packets included. Needs root, `ip` and `tc`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

# Addresses that are set aside for such measurements (RFC 2544); they exist inside the namespaces alone.
HERE, THERE = "198.18.77.1", "198.18.77.2"
PORT: Final = 8080


@dataclass(frozen=True)
class Wire:
    """The way between the sites. `delay`: milliseconds there and back; `loss`: per cent of the packets."""

    delay: int
    loss: float = 0.0
    megabits: float = 0.0  # a second; 0: as fast as the machine is


@dataclass(frozen=True)
class Row:
    wire: Wire
    records_per_page: int
    compression: str
    seconds: float
    bytes: int
    records: int


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]}: {done.stderr[-2000:]}")
    return done.stdout


class Relay:
    """The wire in user space, packet by packet, for kernels without netem: two TUN devices and a thread that
    holds each packet back for as long as it would take."""

    def __init__(self, provider: str, service: str) -> None:
        self.wire = Wire(0)
        self._ends = [_tun(provider, "far0"), _tun(service, "far1")]
        self._waiting: list[list[tuple[float, bytes]]] = [[], []]  # by direction, in the order of arrival
        self._free = [0.0, 0.0]  # when each direction has sent all that it was given
        self._chance = random.Random(1)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for end in self._ends:
            os.close(end)

    def _carry(self) -> None:
        while not self._ended.is_set():
            now = time.monotonic()
            due = [queue[0][0] - now for queue in self._waiting if queue]
            ready, _, _ = select.select(self._ends, [], [], max(0.0, min([*due, 0.05])))
            for end in ready:
                self._take(self._ends.index(end), os.read(end, 65536))
            now = time.monotonic()
            for direction, queue in enumerate(self._waiting):
                while queue and queue[0][0] <= now:
                    with contextlib.suppress(OSError):  # the other device is not up yet
                        os.write(self._ends[1 - direction], queue.pop(0)[1])

    def _take(self, direction: int, packet: bytes) -> None:
        wire, now = self.wire, time.monotonic()
        if self._chance.random() * 100 < wire.loss:
            return
        if wire.megabits:
            begun = max(now, self._free[direction])
            if begun - now > 1.0:  # a second's worth waits at most, as in a router
                return
            now = self._free[direction] = begun + len(packet) * 8 / (wire.megabits * 1e6)
        self._waiting[direction].append((now + wire.delay / 2000, packet))


def _tun(site: str, name: str) -> int:
    """A device that hands packets to us, made in a namespace."""
    with Path(f"/run/netns/{site}").open() as there, Path("/proc/self/ns/net").open() as here:
        os_setns(there.fileno())
        try:
            end = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(
                end, 0x400454CA, struct.pack("16sH", name.encode(), 0x1001)
            )  # TUNSETIFF, IFF_TUN|NO_PI
        finally:
            os_setns(here.fileno())
    return end


def os_setns(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Netem:
    """The wire by the kernel's netem, in both directions."""

    def __init__(self, provider: str, service: str) -> None:
        self._ends = ((provider, "far0"), (service, "far1"))
        run("ip", "link", "add", "far0", "netns", provider, "type", "veth", "peer", "far1", "netns", service)
        self.wire = Wire(0)

    @property
    def wire(self) -> Wire:
        return self._wire

    @wire.setter
    def wire(self, wire: Wire) -> None:
        self._wire = wire
        for site, device in self._ends:
            shape = ["delay", f"{wire.delay / 2:g}ms", "limit", "100000"]
            shape += ["loss", f"{wire.loss:g}%"] if wire.loss else []
            shape += ["rate", f"{wire.megabits:g}mbit"] if wire.megabits else []
            run("ip", "netns", "exec", site, "tc", "qdisc", "replace", "dev", device, "root", "netem", *shape)

    def close(self) -> None:
        pass


@contextlib.contextmanager
def sites(name: str) -> Iterator[tuple[str, str, Relay | Netem]]:
    """Two namespaces with a wire between them, which go away in the end."""
    provider, service = f"{name}-p", f"{name}-s"
    wire: Relay | Netem | None = None
    try:
        for site in (provider, service):
            run("ip", "netns", "add", site)
            run("ip", "-n", site, "link", "set", "lo", "up")
        try:
            wire = Netem(provider, service)
        except RuntimeError:
            subprocess.run(["ip", "-n", provider, "link", "delete", "far0"], check=False, capture_output=True)
            print("this kernel has no netem: packets are held back by a relay of our own", file=sys.stderr)
            wire = Relay(provider, service)
        for site, device, address in ((provider, "far0", HERE), (service, "far1", THERE)):
            run("ip", "-n", site, "address", "add", f"{address}/30", "dev", device)
            run("ip", "-n", site, "link", "set", device, "up")
        yield provider, service, wire
    finally:
        if wire is not None:
            wire.close()
        for site in (provider, service):
            subprocess.run(["ip", "netns", "delete", site], check=False, capture_output=True)


def received(service: str) -> int:
    found = json.loads(run("ip", "-n", service, "-j", "-s", "link", "show", "far1"))
    return int(found[0]["stats64"]["rx"]["bytes"])


def configured(folder: Path, records_per_page: int = 500, compression: str = "zstd") -> Path:
    """The provider's settings."""
    offered = [] if compression == "none" else [compression]
    path = folder / "indlet.toml"
    path.write_text(
        f'data = "{folder / "data"}"\n[node]\nhost = "{HERE}"\nport = {PORT}\n'
        f'base_url = "http://{HERE}:{PORT}"\nadmin_email = ["a@example.org"]\n'
        f"[serve]\nrecords_per_page = {records_per_page}\ncompression = {json.dumps(offered)}\n"
        f'[[hierarchy]]\nroot = "{folder / "texts"}"\nname = "texts"\n'
    )
    return path


@contextlib.contextmanager
def serving(site: str, folder: Path, records_per_page: int, compression: str) -> Iterator[str]:
    """A provider of the crawled store in its namespace; its address."""
    command = ["ip", "netns", "exec", site, sys.executable, "-m", "indlet", "serve", "--no-portal"]
    process = subprocess.Popen(
        [*command, "--config", str(configured(folder, records_per_page, compression))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            asked = ["ip", "netns", "exec", site, sys.executable, "-c", _LISTENS.format(HERE, PORT)]
            if subprocess.run(asked, check=False).returncode == 0:
                break
            if process.poll() is not None:
                raise SystemExit("the provider did not start")
            time.sleep(0.2)
        yield f"http://{HERE}:{PORT}/ft-oai"
    finally:
        process.terminate()
        process.wait(30)


_LISTENS: Final = "import socket, sys; s = socket.socket(); sys.exit(s.connect_ex(('{}', {})))"


def harvested(site: str, url: str, folder: Path) -> tuple[float, int]:
    """Seconds and records of a full harvest in a namespace, in a fresh store; indexing is not part of it."""
    data = folder / "harvested"
    shutil.rmtree(data, ignore_errors=True)
    command = ["ip", "netns", "exec", site, sys.executable, "-c", _HARVEST, url, str(data)]
    told = json.loads(run(*command).splitlines()[-1])
    return float(told["seconds"]), int(told["records"])


_HARVEST: Final = """
import json, sys, time
from pathlib import Path
from indlet.service.pipeline import harvest_all
from indlet.settings import Settings, Source
from indlet.store import Store
with Store.open(Path(sys.argv[2])) as store:
    begun = time.perf_counter()
    (done,) = harvest_all(store, Settings(), [Source(sys.argv[1])], index=False)
    seconds = time.perf_counter() - begun
    with store.read() as view:
        count = view.count()
    assert done.outcome == "complete", done
print(json.dumps({"seconds": seconds, "records": count}))
"""


def texts(folder: Path, records: int) -> None:
    """Stories of Reuters-21578, one a file; generated ones where INDLET_DATA does not have them."""
    from bench.evidence.material import reuters

    named = os.environ.get("INDLET_DATA")
    found = reuters(Path(named) / "reuters21578" if named else None, records, 1)
    print(f"{records:,} stories of {found.name}", file=sys.stderr)
    folder.mkdir()
    for number, story in enumerate(found.stories):
        (folder / f"{number:06}.sgm").write_text(story.sgml, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--delays", default="10,100,300")
    parser.add_argument("--pages", default="50,500")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("tc"):
        raise SystemExit("network namespaces need root, ip and tc")
    wires = [Wire(int(delay)) for delay in given.delays.split(",")]
    pages = [int(size) for size in given.pages.split(",")]
    plan = [(w, size, coding) for w in wires for size in pages for coding in ("none", "gzip", "zstd")]
    hard = [Wire(100, loss=1.0), Wire(100, megabits=2.0), Wire(300, loss=1.0, megabits=2.0)]
    plan += [(wire, pages[-1], coding) for wire in hard for coding in ("none", "zstd")]
    rows: list[Row] = []
    name = f"indlet-{os.getpid()}"
    with tempfile.TemporaryDirectory() as place, sites(name) as (provider, service, between):
        folder = Path(place)
        texts(folder / "texts", given.records)
        run(sys.executable, "-m", "indlet", "crawl", "--config", str(configured(folder)), "-q")
        print("| there and back | loss | bandwidth | records a page | coding | bytes | seconds |")
        print("| ---: | ---: | ---: | ---: | --- | ---: | ---: |")
        for wire, size, coding in plan:
            with serving(provider, folder, size, coding) as url:
                between.wire = wire
                before = received(service)
                seconds, records = harvested(service, url, folder)
                rows.append(Row(wire, size, coding, seconds, received(service) - before, records))
            one = rows[-1]
            assert one.records == given.records, one
            rate = f"{wire.megabits:g} Mbit/s" if wire.megabits else "–"
            print(
                f"| {wire.delay} ms | {wire.loss:g} % | {rate} | {size} | {coding} | {one.bytes:,} "
                f"| {one.seconds:.1f} |",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
