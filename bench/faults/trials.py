"""One trial: an activity is disturbed in a forked child, done again undisturbed, and the laws are checked.

Runs in a process that has the shim (shim.py); children inherit everything that is imported and compiled.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench.faults import power, shim
from bench.faults.activities import Activity, state

from indlet.errors import IndletError

KINDS = ("kill", "torn write", "full disk", "power cut", "clock set back", "read-only folder")
HUNG_SECONDS = 60.0
_NOBODY = 65534


class Trials:
    """The trials of one activity, from one state."""

    def __init__(self, place: Path, name: str, activity: Activity) -> None:
        self._place, self._activity = place / name, activity
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir(parents=True)
        # Once here, so that the children find everything imported and compiled.
        warm = self._place / "warm"
        activity.prepare(warm)
        activity.run(warm)
        state(warm)
        self._base, self._data, self._shadow = (self._place / part for part in ("base", "data", "shadow"))
        told = self._forked(lambda: activity.prepare(self._base))
        assert not told, told
        self._expected = self._place / "expected"
        shutil.copytree(self._base, self._data)
        told = self._forked(self._clean)
        assert not told, told
        self.changes = int((self._place / "changes").read_text())

    def _clean(self) -> None:
        """What an undisturbed run comes to, and how many changes of files it makes."""
        shim.watch(self._data)
        shim.plan(0, -1)
        self._activity.run(self._data)
        (self._place / "changes").write_text(str(shim.changes()))
        self._expected.write_text(repr(state(self._data)))

    def trial(self, kind: str, chance: random.Random) -> str:
        """What was found wrong; empty if nothing was."""
        shutil.rmtree(self._data)
        shutil.copytree(self._base, self._data)
        after, part = chance.randint(1, max(self.changes, 1)), chance.randint(0, 255)
        if kind == "power cut":
            power.remember(self._data, self._shadow)
        said = self._forked(lambda: self._disturbed(kind, after, part))
        if kind == "power cut":
            power.cut(self._data, self._shadow, chance)
        said = said or self._forked(self._recovered)
        return f"{kind} at change {after} of {self.changes}: {said}" if said else ""

    def _disturbed(self, kind: str, after: int, part: int) -> None:
        if kind == "read-only folder":
            self._read_only()
        shim.watch(self._data, self._shadow if kind == "power cut" else None)
        modes = {
            "kill": (shim.KILL, 0), "torn write": (shim.TORN, part), "power cut": (shim.TORN, part),
            "full disk": (shim.FULL, 0), "clock set back": (shim.CLOCK, part * 40),
            "read-only folder": (0, 0),
        }  # fmt: skip
        shim.plan(modes[kind][0], after, modes[kind][1])
        try:
            self._activity.run(self._data)
        except (IndletError, OSError):
            # Told in due form. Whoever asked sees an error, and the next run does the rest.
            if kind == "clock set back":
                raise

    def _read_only(self) -> None:
        for place in (self._data, *self._data.rglob("*")):
            place.chmod(0o555 if place.is_dir() else 0o444)
        if os.geteuid() == 0:
            for place in self._place.parents:
                if place.stat().st_uid == 0 and place != Path("/"):
                    place.chmod(place.stat().st_mode | 0o055)
            os.setuid(_NOBODY)

    def _recovered(self) -> None:
        shim.plan(0, -1)
        for place in (self._data, *self._data.rglob("*")):
            place.chmod(0o700 if place.is_dir() else 0o600)
        self._activity.run(self._data)
        if repr(state(self._data)) != self._expected.read_text():
            raise AssertionError("records or index are not those of an undisturbed run")

    def _forked(self, work: Callable[[], None]) -> str:
        """What a child has to say that does some work; nothing where all went well, or it was killed."""
        told = self._place / "told"
        told.unlink(missing_ok=True)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                work()
                code = 0
            except BaseException:
                descriptor = os.open(told, os.O_WRONLY | os.O_CREAT, 0o666)
                os.write(descriptor, traceback.format_exc().encode()[-3000:])
            finally:
                os._exit(code)
        until = time.monotonic() + HUNG_SECONDS
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return f"hung for {HUNG_SECONDS:g} s"
            time.sleep(0.005)
        status = ended[1]
        if told.exists():
            return told.read_text()
        return "" if os.WIFSIGNALED(status) or not status else f"ended with status {status}"
