"""On which database a test's stores are: SQLite, or with INDLET_TEST_STORE=postgresql a PostgreSQL server.

conftest.py starts that server, in a temporary folder, on a socket of its own; or INDLET_TEST_POSTGRESQL is
the URL of one that runs already, whose role may create schemas: each folder of a test has its own there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from indlet.store import Store, open_store

KIND = "INDLET_TEST_STORE"
SERVER = "INDLET_TEST_POSTGRESQL"


def on_postgresql() -> bool:
    return os.environ.get(KIND) == "postgresql"


def store_url(folder: Path | str, postgresql: bool | None = None) -> str:
    """What opens the store that belongs to a folder."""
    if not (on_postgresql() if postgresql is None else postgresql):
        return str(folder)
    import psycopg

    schema = "t_" + blake2b(str(Path(folder).absolute()).encode(), digest_size=8).hexdigest()
    server = os.environ[SERVER]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{server}{'&' if '?' in server else '?'}options={quote(f'-c search_path={schema}')}"


def store_in(folder: Path | str, **options: Any) -> Store:
    """The store that belongs to a folder; what is derived from it goes to that folder."""
    return open_store(store_url(folder), local_folder=Path(folder), **options)


def command_options(folder: Path) -> list[str]:
    """What tells a command to use the store that belongs to a folder."""
    options = ["--data", str(folder)]
    if on_postgresql():
        config = folder.with_name(f"{folder.name}.toml")
        config.write_text(f'[store]\nurl = "{store_url(folder)}"\n')
        options += ["--config", str(config)]
    return options


class PostgresServer:
    """A server of its own, as an unprivileged user, reached by a socket in its folder."""

    _made: ClassVar[Path | None] = None  # a data folder to copy: making one takes seconds

    def __init__(self, *options: str, data: str = "") -> None:
        """`data`: the folder of a server that does not run, to begin with a copy of it."""
        self.folder = _temporary()
        self._programs = programs()
        self._options = options
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        if PostgresServer._made is None:
            PostgresServer._made = self._initialised()
        subprocess.run(["cp", "-a", data or str(PostgresServer._made), self._data], check=True)
        self.start()

    def _initialised(self) -> Path:
        folder = _temporary()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        if self._user:
            shutil.chown(folder, self._user)
        made = folder / "data"
        self._run("initdb", "-D", str(made), "-U", "indlet", "-E", "UTF8", "--locale=C", "-A", "trust", "-N")
        return made

    @property
    def url(self) -> str:
        return f"postgresql://indlet@/postgres?host={self.folder}"

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        options = [
            f"-c unix_socket_directories={self.folder}",
            "-c listen_addresses=",
            "-c max_connections=200",
        ]
        # A killed process loses nothing without fsync; only a power cut would.
        given = " ".join([*options, "-c fsync=off", *self._options])
        self._run("pg_ctl", "-D", self._data, "-w", "-l", str(self.folder / "log"), "-o", given, "start")

    def standby(self) -> PostgresServer:
        """Another server that follows this one, which has to be stopped meanwhile."""
        signal, primary = self.folder / "data" / "standby.signal", f"host={self.folder} user=indlet"
        signal.touch()
        if self._user:
            shutil.chown(signal, self._user)
        made = PostgresServer(f"-c primary_conninfo='{primary}'", data=self._data)
        signal.unlink()
        return made

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )


def _temporary() -> Path:
    """A folder in memory where there is one: a schema is a hundred files, and tests make hundreds."""
    memory = Path("/dev/shm")
    usable = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 << 30
    return Path(tempfile.mkdtemp(prefix="indlet-pg-", dir=memory if usable else None))


def programs() -> Path:
    """The folder of PostgreSQL's programs, the newest of several."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if not versions:
        raise RuntimeError("PostgreSQL is not installed here: apt-get install postgresql, or set " + SERVER)
    return versions[-1].parent
