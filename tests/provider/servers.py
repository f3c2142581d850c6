"""Real servers on loopback, each over one folder: FTP, HTTP listings, WebDAV, SFTP, S3."""

from __future__ import annotations

import html
import http.server
import io
import os
import shutil
import socket
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

Server = tuple[str, dict[str, Any]]  # a root and its storage options


@contextmanager
def ftp(folder: Path, mlsd: bool = True) -> Iterator[Server]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it imports asyncore where that still exists
        from pyftpdlib.authorizers import DummyAuthorizer
        from pyftpdlib.handlers import FTPHandler
        from pyftpdlib.ioloop import IOLoop
        from pyftpdlib.servers import FTPServer

    authorizer = DummyAuthorizer()
    authorizer.add_user("reader", "s3cret", str(folder), perm="elr")

    class Handler(FTPHandler):  # type: ignore[misc]
        pass

    if not mlsd:  # as servers from before RFC 3659
        Handler.proto_cmds = {k: v for k, v in FTPHandler.proto_cmds.items() if k not in ("MLSD", "MLST")}
    Handler.authorizer = authorizer
    Handler.unicode_errors = "surrogateescape"  # names are bytes, as with most servers
    loop = IOLoop()
    server = FTPServer(("127.0.0.1", 0), Handler, ioloop=loop)
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            server.serve_forever(timeout=0.02, blocking=False)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"ftp://reader:s3cret@127.0.0.1:{server.socket.getsockname()[1]}/", {}
    finally:
        stop.set()
        thread.join()
        server.close_all()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Timeless(_Quiet):
    """Tells no time, as pages that are made on request do."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword.lower() != "last-modified":
            super().send_header(keyword, value)


class _Nginx(_Quiet):
    """Listings as nginx writes them; `.nolist` in a folder forbids its listing, as servers do."""

    def list_directory(self, path: Any) -> io.BytesIO | None:
        folder = Path(path)
        if (folder / ".nolist").exists():
            self.send_error(403)
            return None
        lines = ["<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n<h1>Index of /</h1><hr><pre>"]
        lines.append('<a href="../">../</a>')
        for place in sorted(folder.iterdir()):
            mark = "/" if place.is_dir() else ""
            name = html.escape(place.name) + mark
            lines.append(
                f'<a href="{quote(os.fsencode(place.name))}{mark}">{name}</a>   15-Nov-2026 03:24   1732038'
            )
        lines.append(
            '<a href="?C=M;O=D">sort</a> <a href="https://nginx.org/">nginx</a></pre><hr></body>\r\n'
        )
        body = "\r\n".join(lines).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)


@contextmanager
def web(folder: Path, handler: type[_Quiet] = _Quiet) -> Iterator[Server]:
    class Handler(handler):  # type: ignore[valid-type, misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, directory=str(folder), **options)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", {}
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def nginx(folder: Path) -> Iterator[Server]:
    with web(folder, _Nginx) as found:
        yield found


@contextmanager
def timeless(folder: Path) -> Iterator[Server]:
    with web(folder, _Timeless) as found:
        yield found


@contextmanager
def webdav(folder: Path) -> Iterator[Server]:
    from cheroot.wsgi import Server as Cheroot
    from wsgidav.wsgidav_app import WsgiDAVApp

    app = WsgiDAVApp(
        {
            "provider_mapping": {"/": {"root": str(folder), "readonly": True}},
            "simple_dc": {"user_mapping": {"*": True}},
            "logging": {"enable": False},
            "verbose": 0,
        }
    )
    server = Cheroot(("127.0.0.1", 0), app, numthreads=2, shutdown_timeout=1)
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield f"webdav://127.0.0.1:{server.bind_addr[1]}/", {}
    finally:
        server.stop()
        thread.join()


@contextmanager
def s3(folder: Path) -> Iterator[Server]:
    """A bucket that holds what the folder held when it was last asked to `sync`."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=url, **keys)
    client.create_bucket(Bucket="papers")
    _SYNC[str(folder)] = lambda: _sync_bucket(client, folder)
    try:
        options: dict[str, Any] = {"key": "key", "secret": "secret", "client_kwargs": {"endpoint_url": url}}
        options["config_kwargs"] = {"retries": {"max_attempts": 0}}
        yield "s3://papers/files", options
    finally:
        client.close()
        server.stop()


_SYNC: dict[str, Callable[[], None]] = {}


def sync(folder: Path) -> None:
    """Bring a server that keeps a copy up to date with the folder."""
    _SYNC.get(str(folder), lambda: None)()


def _sync_bucket(client: Any, folder: Path) -> None:
    there = {
        item["Key"]: item["Size"] for item in client.list_objects_v2(Bucket="papers").get("Contents", ())
    }
    here = {f"files/{p.relative_to(folder)}": p for p in folder.rglob("*") if p.is_file()}
    for key in there.keys() - here.keys():
        client.delete_object(Bucket="papers", Key=key)
    for key, path in here.items():
        body = path.read_bytes()
        if key not in there or client.get_object(Bucket="papers", Key=key)["Body"].read() != body:
            client.put_object(Bucket="papers", Key=key, Body=body)


@contextmanager
def sftp(folder: Path) -> Iterator[Server]:
    import paramiko

    key = paramiko.RSAKey.generate(2048)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    stop = threading.Event()
    transports: list[Any] = []

    def run() -> None:
        while not stop.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            transport = paramiko.Transport(client)
            transport.add_server_key(key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _sftp_files(folder))
            transport.start_server(server=_sftp_login())
            transports.append(transport)

    thread = threading.Thread(target=run)
    thread.start()
    port = listener.getsockname()[1]
    known = Path(tempfile.mkdtemp()) / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} ssh-rsa {key.get_base64()}\n")
    login = {"username": "reader", "password": "s3cret", "known_hosts": str(known)}
    try:
        yield f"sftp://127.0.0.1:{port}/", login
    finally:
        shutil.rmtree(known.parent)
        stop.set()
        thread.join()
        listener.close()
        for transport in transports:
            transport.close()


def _sftp_login() -> Any:
    import paramiko

    class Login(paramiko.ServerInterface):  # type: ignore[misc]
        def check_auth_password(self, username: str, password: str) -> int:
            ok = (username, password) == ("reader", "s3cret")
            return int(paramiko.AUTH_SUCCESSFUL if ok else paramiko.AUTH_FAILED)

        def check_channel_request(self, kind: str, chanid: int) -> int:
            return int(paramiko.OPEN_SUCCEEDED)

    return Login()


def _sftp_files(folder: Path) -> Any:
    import paramiko

    class Files(paramiko.SFTPServerInterface):  # type: ignore[misc]
        def _path(self, path: str) -> Path:
            return folder / str(self.canonicalize(path)).lstrip("/")

        def list_folder(self, path: str) -> Any:
            try:
                found = []
                for place in self._path(path).iterdir():
                    attributes = paramiko.SFTPAttributes.from_stat(place.lstat())
                    attributes.filename = place.name
                    found.append(attributes)
                return found
            except OSError as e:
                return paramiko.SFTPServer.convert_errno(e.errno)

        def stat(self, path: str) -> Any:
            try:
                return paramiko.SFTPAttributes.from_stat(self._path(path).stat())
            except OSError as e:
                return paramiko.SFTPServer.convert_errno(e.errno)

        lstat = stat

        def open(self, path: str, flags: int, attr: Any) -> Any:
            try:
                file = self._path(path).open("rb")
            except OSError as e:
                return paramiko.SFTPServer.convert_errno(e.errno)
            handle = paramiko.SFTPHandle(flags)
            handle.readfile = file
            return handle

    return Files


SERVERS = {
    "ftp": ftp,
    "old-ftp": partial(ftp, mlsd=False),
    "http": web,
    "timeless": timeless,
    "nginx": nginx,
    "webdav": webdav,
    "s3": s3,
    "sftp": sftp,
}
