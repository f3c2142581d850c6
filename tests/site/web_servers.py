"""Real web servers on loopback, run by an unprivileged user with a configuration of their own."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MODULES = Path("/usr/lib/apache2/modules")
# user -> password; the hashes below are Apache's {SHA}, which nginx reads too.
USERS = {"ann": "apple", "bob": "berry"}
_APACHE = """
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {run}/pid
ErrorLog {run}/error.log
DefaultRuntimeDir {run}
Mutex file:{run}
{modules}
TypesConfig /etc/mime.types
{remote}
DocumentRoot {root}
KeepAlive On
<Directory {root}>
  AllowOverride All
  Options +Indexes +Includes +ExecCGI +FollowSymLinks
  Require all granted
</Directory>
{extra}
"""
_NGINX = """
pid {run}/pid;
error_log {run}/error.log;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off;
  {log_format}
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  server {{
    listen 127.0.0.1:{port};
    server_name localhost;
    root {root};
    {remote}
    {extra}
  }}
}}
"""
# What lets rules for addresses see those that the node asks for, as the printed lines say it.
_REMOTE = {
    "apache": "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.1",
    "nginx": "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;",
    "caddy": "",
}
_COMMON = (
    "authn_core authn_file auth_basic authz_core authz_host authz_user mime dir autoindex alias rewrite "
    "include remoteip headers setenvif proxy proxy_http"
)


def available(kind: str) -> bool:
    """Whether this machine has that server."""
    if kind.startswith("apache"):
        return shutil.which("apache2") is not None and MODULES.exists()
    return shutil.which(kind) is not None


def basic(user: str) -> str:
    """What a user's browser would send."""
    return "Basic " + base64.b64encode(f"{user}:{USERS[user]}".encode()).decode()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Web:
    """A server and the folder that it serves."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.root = folder / "htdocs"
        self.run = folder / "run"
        self.root.mkdir(parents=True)
        self.run.mkdir()
        self.passwords = folder / "passwords"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.extra = ""
        self.remote = _REMOTE[kind.partition("-")[0]]
        self.log_format = ""  # of nginx, whose server block cannot hold one
        self.php = False
        self._process: subprocess.Popen[bytes] | None = None
        self.write_passwords(*USERS)

    def write_passwords(self, *users: str) -> None:
        lines = [
            f"{user}:{{SHA}}{base64.b64encode(hashlib.sha1(USERS[user].encode()).digest()).decode()}"
            for user in users
        ]
        self.passwords.write_text("".join(f"{line}\n" for line in lines))

    def write(self, path: str, data: str | bytes = "<p>a wing</p>", at: float = 1_500_000_000) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
        os.utime(place, (at, at))
        return place

    def start(self) -> None:
        config = self.run / "server.conf"
        config.write_text(self._config())
        if self.kind.startswith("apache"):
            command = ["apache2", "-d", str(self.run), "-f", str(config), "-D", "FOREGROUND"]
        elif self.kind == "nginx":
            command = ["nginx", "-c", str(config), "-p", str(self.run), "-g", "daemon off;"]
        else:
            command = ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"]
        user = self._user()
        with (self.run / "stderr").open("wb") as errors:
            self._process = self._started(command, user, errors)
        self._wait()

    def _started(self, command: list[str], user: int | None, errors: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            user=user,
            start_new_session=True,  # Apache ends its whole process group with itself
            env={**os.environ, "HOME": str(self.run), "XDG_DATA_HOME": str(self.run),
                 "XDG_CONFIG_HOME": str(self.run)},
        )  # fmt: skip

    def _user(self) -> int | None:
        """Root lends the server to nobody."""
        if os.geteuid() != 0:
            return None
        nobody = pwd.getpwnam("nobody")
        for place in (self.run, *self.run.iterdir()):
            os.chown(place, nobody.pw_uid, nobody.pw_gid)
        return nobody.pw_uid

    def _wait(self) -> None:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("HEAD", "/")
                connection.getresponse()
                connection.close()
                return
            assert self._process is not None
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        logs = [
            p.read_text(errors="replace") for p in (self.run / "stderr", self.run / "error.log") if p.exists()
        ]
        raise RuntimeError(f"{self.kind} does not start: {' '.join(logs)[-2000:]}")

    def _config(self) -> str:
        places: dict[str, object] = {
            "port": self.port,
            "run": self.run,
            "root": self.root,
            "extra": self.extra,
            "remote": self.remote,
        }
        if self.kind == "nginx":
            return _NGINX.format(log_format=self.log_format, **places)
        if self.kind == "caddy":
            return (
                f"{{\n admin off\n auto_https off\n}}\nhttp://127.0.0.1:{self.port} {{\n root * {self.root}\n"
                f" {self.extra}\n file_server\n}}\n"
            )
        mpm = self.kind.partition("-")[2] or "event"
        names = [f"mpm_{mpm}", *_COMMON.split(), "cgid" if mpm == "event" else "cgi"]
        lines = [f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in names]
        if mpm == "event":
            lines.append(f"ScriptSock {self.run}/cgid.sock")
        if self.php:
            (library,) = MODULES.glob("libphp*.so")
            lines.append(f"LoadModule php_module {library}")
            places["extra"] = f"{self.extra}\nAddHandler application/x-httpd-php .php"
        return _APACHE.format(modules="\n".join(lines), **places)

    def reload(self, extra: str) -> None:
        """The same server under other rules."""
        self.stop()
        self.extra = extra
        self.start()

    @property
    def pid(self) -> int:
        assert self._process is not None, "a server that runs has a process"
        return self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None


@contextlib.contextmanager
def web_server(kind: str) -> Iterator[Web]:
    """A server that is not started yet. Its folder can be read by whoever runs it."""
    folder = Path(tempfile.mkdtemp(prefix="indlet-site-"))
    folder.chmod(0o755)
    web = Web(kind, folder)
    try:
        yield web
    finally:
        web.stop()
        shutil.rmtree(folder, ignore_errors=True)
