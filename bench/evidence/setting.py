"""What an experiment is given: sizes, seed, data, a place for scratch files; and what it was run on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

# What was found: plain values, as JSON holds them.
Found = dict[str, Any]

SIZES: Final = ("small", "usual", "full")
PACKAGES: Final = (
    "indlet", "numpy", "lxml", "sickle", "oaipmh-scythe", "tantivy", "bm25s", "pyoai", "oai_repo",
    "ir_measures",
)  # fmt: skip

# Name -> the command by which a program tells its version.
PROGRAMS: Final = {
    "metha": ("metha-sync", "-v"),
    "HTTP::OAI": ("perl", "-MHTTP::OAI", "-e", "print $HTTP::OAI::VERSION"),
    "Node": ("node", "--version"),
    "nginx": ("nginx", "-v"),
    "wget": ("wget", "--version"),
    "wrk": ("wrk", "-v"),
    "Xapian": ("/usr/bin/python3", "-c", "import xapian; print(xapian.version_string())"),
    "SQLite": (sys.executable, "-c", "import sqlite3; print(sqlite3.sqlite_version)"),
}

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    size: str
    work: Path
    data: Path | None = None
    seed: int = 1
    corpora: Path | None = None  # where generated corpora are kept for the next run
    parts: tuple[str, ...] = ()  # of an experiment that has several; empty: all
    began: float = field(default_factory=time.monotonic)

    def pick(self, small: T, usual: T, full: T) -> T:
        return {"small": small, "usual": usual, "full": full}[self.size]

    def collection(self, name: str) -> Path | None:
        """The folder of a collection, if it is there."""
        folder = self.data / name if self.data else None
        return folder if folder and folder.is_dir() else None

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:7.1f} s] {text}", file=sys.stderr, flush=True)


def machine() -> dict[str, str]:
    """Processor, memory, system and versions: what figures depend on."""
    return {
        "processor": _first(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(_first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)")),
        "system": f"{platform.system()} {platform.release()}, {_system()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": ", ".join(f"{name} {version}" for name, version in versions().items()),
        "programs": ", ".join(filter(None, (_told(name, *command) for name, command in PROGRAMS.items()))),
    }


def circumstances(kept: dict[str, Any], command: str) -> str:
    """The command of a measurement, when it was taken, and what the machine did besides."""
    busy = (
        f"{kept['cpu_seconds']:,.0f} s of processor time · others kept {kept['others_cores']:.2f} cores busy"
        if "others_cores" in kept
        else f"load before {kept['load_before']}"
    )
    when = kept["taken"][:16].replace("T", " ")
    told = kept.get("command") or f"python -m bench.evidence {command} --size {kept['size']}"
    return (
        f"`{told}` · {when} UTC · "
        + (f"took {kept['seconds']:,.0f} s · " if "seconds" in kept else "")
        + busy
    )


def versions() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _told(name: str, *command: str) -> str:
    """A program and its version; empty if it is not here."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    version = re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr)
    return f"{name} {version[0]}" if version else ""


def _first(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text()) if path.exists() else None
    return match[1] if match else ""


def _memory(kilobytes: str) -> str:
    return f"{int(kilobytes) / 2**20:.0f} GiB" if kilobytes else "unknown"


def _system() -> str:
    return _first(Path("/etc/os-release"), r'PRETTY_NAME="([^"]+)"') or "unknown distribution"
