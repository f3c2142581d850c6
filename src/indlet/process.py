"""How a process of ours is started, and what it does first. No other file starts one.

`start` is the parent's side; `receive_task` and the limits are the child's. A child never
imports from the working directory, which may be a folder of strangers' files: an `orjson.py` there stays a
document. This file stands beside settings.py because provider, service and node all start processes, and may
not import each other.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from indlet.limits import CHILD_MEMORY_MB, MB

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# What no child needs to read in its environment, and what a parser of foreign files must not: the latter has
# neither the database nor the remote hierarchies, whose passwords the drivers take from there.
_SECRET: Final = ("INDLET_TOKEN", "INDLET_ADMIN_PASSWORD", "INDLET_ADMIN_PASSWORD_HASH")
_CREDENTIALS: Final = re.compile(
    "PG|AWS_|AZURE_|GOOGLE_|S3_|INDLET_|.*(PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL|API_?KEY)", re.IGNORECASE
)
# After the parent has gone, a child may put its work away for this long.
ORPHAN_SECONDS: Final = 10.0
# Of mallopt(3): arenas, bytes from which on a block has a mapping of its own, free bytes that are kept. With
# one megabyte less memory is held, but a tenth more time goes into mapping it.
_MALLOPT: Final = {-8: 1, -3: 4 * MB, -1: 8 * MB}
_QUICK_SWITCH: Final = 0.0005  # seconds for which a thread keeps the interpreter from others


def switch_quickly() -> None:
    """For a process that answers requests by threads: whoever serves an application of ours calls it.

    Each statement of SQLite and each kernel gives the interpreter away, and a request of some thirty of them
    waits for it as often: Python's 5 ms where another thread is at work. Searches with all facets beside a
    harvest, on two busy cores: p95 of the API 400 ms with 5 ms, 46 to 106 with this.
    """
    sys.setswitchinterval(_QUICK_SWITCH)


@contextlib.contextmanager
def quick_switches() -> Iterator[None]:
    """The same while a thread works beside another one that runs kernels: after each of these, the other
    waits for the interpreter. 150,000 documents were indexed in 0.87 s so, and in 1.07 with Python's 5 ms.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _QUICK_SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def share_memory() -> None:
    """For a process of several threads that take and release much memory: they share it, where the GNU C
    library would keep for each what it has released; and what is large goes back when it is released, where
    the library would learn to keep it. When these came, a harvest of 400,000 records had taken 556 MB without
    the first, and one of 300,000 took 363 MB without the second and 345 with it.
    """
    import ctypes  # which small work does without

    with contextlib.suppress(AttributeError):  # another library
        for option, value in _MALLOPT.items():
            ctypes.CDLL(None).mallopt(option, value)


def start(
    module: str,
    *arguments: str,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = None,
    descriptors: tuple[int, ...] = (),
    environment: Mapping[str, str] | None = None,
    parser: bool = False,
) -> subprocess.Popen[bytes]:
    """A module of ours as a program in a session of its own: Ctrl-C at the terminal is for the parent.

    One that is a `parser` of foreign files gets no passwords by its environment.
    """
    # Not by multiprocessing: that would import the caller's main module again, or fork its threads.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=descriptors,
        env=child_environment(parser) | dict(environment or {}),
        start_new_session=True,
    )


def start_with_socket(
    module: str, *, stderr: int | IO[bytes] = subprocess.DEVNULL, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], Connection]:
    """A parser whose only argument is the descriptor of a socket, and our end of that socket."""
    from multiprocessing.connection import Pipe  # most processes that start one need no socket

    ours, theirs = Pipe(duplex=True)
    try:
        place = theirs.fileno()
        child = start(
            module, str(place), stderr=stderr, descriptors=(place,), environment=environment, parser=True
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return child, ours


def run_program(command: Sequence[str], folder: Path, seconds: float) -> bytes:
    """What a program of others prints, run in a folder of its own: OSError says why there is nothing.

    It ends after `seconds` by itself (`timeout` of coreutils), should we be killed meanwhile. The limits of
    memory of the calling process hold for it too.
    """
    timeout = shutil.which("timeout")
    guarded = [timeout, "-k", "1", f"{max(seconds, 0.1):.1f}", *command] if timeout else list(command)
    environment = child_environment(parser=True) | {"HOME": str(folder), "TMPDIR": str(folder)}
    child = subprocess.Popen(
        guarded, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder,
        env=environment, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + seconds
    try:
        printed, _ = child.communicate(timeout=seconds + 2)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{Path(command[0]).name} took longer than {seconds:.0f} seconds") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    # `timeout` ends by its own SIGKILL where the program does not heed SIGTERM.
    if child.returncode in (124, 137) or (child.returncode == -signal.SIGKILL and time.monotonic() >= until):
        raise TimeoutError(f"{Path(command[0]).name} took longer than {seconds:.0f} seconds")
    if child.returncode:
        raise OSError(f"{Path(command[0]).name} ended with status {child.returncode}")
    return printed


def child_environment(parser: bool = False) -> dict[str, str]:
    """Our environment without secrets, and without relative folders to import from."""
    found = {
        name: value
        for name, value in os.environ.items()
        if name not in _SECRET and not (parser and _CREDENTIALS.match(name))
    }
    folders = [f for f in found.pop("PYTHONPATH", "").split(os.pathsep) if Path(f).is_absolute()]
    if folders:
        found["PYTHONPATH"] = os.pathsep.join(folders)
    return found | {"PYTHONSAFEPATH": "1"}


def send_task(child: subprocess.Popen[bytes], task: object) -> None:
    """Tells a child what to do; its `receive_task` returns it."""
    assert child.stdin is not None
    try:
        child.stdin.write(pickle.dumps(task))
        child.stdin.flush()
    except BrokenPipeError:  # it died: whoever waits for it will see that
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()  # or a later close would try to write the rest


def lower_priority(pid: int = 0) -> None:
    """Requests come first: a process (0: this one) gets a tenth of a core that the serving process wants too.

    A parent does it to its child: what a child imports before it could do so takes some tenths of a second.
    """
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    if hasattr(os, "SCHED_BATCH"):  # and does not preempt it when it wakes up
        with contextlib.suppress(OSError):
            os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))


# In the child


def receive_task() -> Any:
    """What the parent sent by `send_task`; from here on the child may allocate so much memory and no more."""
    limit_data(CHILD_MEMORY_MB)
    return pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent wrote it


def stop_event() -> threading.Event:
    """Set by SIGTERM, and when the parent has ended; a child that then does not end is ended."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def watch() -> None:
        # The parent's end of the pipe closes however it ends. A buffered read would hold a lock at exit.
        while os.read(sys.stdin.fileno(), 4096):
            pass
        stop.set()
        time.sleep(ORPHAN_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
    return stop


def limit_data(megabytes: int) -> None:
    """This process may allocate so much memory, the files that it maps apart, and leaves no core file.

    For one that maps an index or a store, whose size is no measure of what it does.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = megabytes * MB
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextlib.contextmanager
def limited_data(megabytes: int) -> Iterator[None]:
    """The same while something is done that others can make large; then the limit is as before."""
    before, core = resource.getrlimit(resource.RLIMIT_DATA), resource.getrlimit(resource.RLIMIT_CORE)
    limit_data(megabytes)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
        resource.setrlimit(resource.RLIMIT_CORE, core)


def limit_memory(megabytes: int) -> None:
    """This process may take so much more address space than it has now, and leaves no core file."""
    used = 1 << 30
    with contextlib.suppress(OSError):  # no /proc
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    ceiling = used + megabytes * MB
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_processor_time(seconds: float) -> None:
    """From now on so many seconds of processor time; then the kernel ends this process by SIGXCPU."""
    spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(spent + seconds), hard))
