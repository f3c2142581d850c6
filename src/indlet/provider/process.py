"""One worker process as its parent holds it: started, spoken to over a socket, ended, its death explained."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final, Self

from indlet.process import start_with_socket

# One thread each: the workers already are as many as wanted, and threads reserve address space.
_SINGLE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(slots=True)
class Process:
    """A running `indlet.provider.worker` and our end of its socket."""

    child: subprocess.Popen[bytes]
    connection: Connection

    @classmethod
    def start(cls, greeting: bytes) -> Self:
        """A new one, which is told its limits and policy by the greeting."""
        child, connection = start_with_socket(
            "indlet.provider.worker", stderr=subprocess.PIPE, environment=_SINGLE
        )
        process = cls(child, connection)
        process.send(greeting)
        return process

    @property
    def pid(self) -> int:
        return self.child.pid

    def send(self, message: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):  # it died: whoever listens will see that
            self.connection.send_bytes(message)

    def kill(self) -> None:
        self.child.kill()

    def hang_up(self) -> None:
        """Closes our end: an idle worker then ends by itself."""
        self.connection.close()

    def hush(self) -> None:
        """Listens no longer to its standard error: once ready, it writes nothing of interest there."""
        if self.child.stderr is not None:
            self.child.stderr.close()

    def ended(self) -> tuple[int, str]:
        """Its exit status and the last line it wrote before it was ready; kills it if it lingers."""
        self.hang_up()
        try:
            code = self.child.wait(2.0)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self.child.wait()
        stderr = self.child.stderr
        if stderr is None or stderr.closed:
            return code, ""
        with stderr:
            lines = stderr.read().decode("utf-8", "replace").strip().splitlines()
        return code, lines[-1] if lines else ""


def death(code: int, seconds: float) -> str:
    """Why a worker with this exit status died, as a reason for a failure."""
    if code == -signal.SIGXCPU:
        return f"it took longer than {seconds:g} seconds of processor time (limits.seconds)"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"its parser crashed, or ran out of memory: killed by {name}"
    return f"its parser ended the worker (exit status {code})"
