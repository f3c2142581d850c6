"""A root becomes a storage, by its scheme; or an error that says what is missing."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from indlet.errors import HierarchyError, MissingExtra, SettingsError
from indlet.model import JsonMapping, JsonObject
from indlet.provider.archive import ArchiveTree
from indlet.provider.hierarchy import archive_kind, explain, local_root, without_password
from indlet.provider.storage import FRESH, Ftp, Http, Storage, Webdav

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

EXTRAS = {"http": "http", "https": "http", "webdav": "webdav", "webdavs": "webdav", "dav": "webdav",
          "davs": "webdav", "sftp": "sftp", "ssh": "sftp", "s3": "s3", "s3a": "s3"}  # fmt: skip
ANSWER_SECONDS = 900.0  # for one answer of a web or WebDAV server, in all
# As FRESH: paramiko is handed every option that fsspec does not take out, and refuses its second one.
PARAMIKO_FRESH = {"skip_instance_cache": True}


def connect(root: str, options: JsonMapping) -> Storage:
    """The storage behind a root; raises HierarchyError if it cannot be reached."""
    protocol = root.rpartition("::")[2].partition("://")[0]
    shown = without_password(root)
    try:
        return _connect(root, options)
    except ImportError as e:
        raise MissingExtra(f"{shown} ({e})", EXTRAS.get(protocol, "all")) from e
    except (HierarchyError, SettingsError, MissingExtra) as e:
        raise type(e)(f"{shown}: {e}") if isinstance(e, HierarchyError) else e from e
    except Exception as e:
        raise HierarchyError(f"{shown}: cannot be reached: {explain(e)}; nothing was deleted") from e


def _connect(root: str, options: JsonMapping) -> Storage:
    head, _, inner = root.partition("::") if local_root(root) is None else (root, "", "")
    kind = head.partition("://")[0]
    if inner and kind in ("zip", "tar"):
        mine = options.get(urlsplit(inner).scheme, options)
        return ArchiveTree(kind, inner, head.partition("://")[2].strip("/"), lambda: _opened(inner, mine))
    if not inner and (kind := archive_kind(urlsplit(root).path if "://" in root else root)):
        return ArchiveTree(kind, root, "", lambda: _opened(root, options))
    parts = urlsplit(root)
    scheme = parts.scheme
    if scheme in ("ftp", "ftps"):
        return Ftp(lambda: _ftp(root, options))
    if scheme in ("http", "https"):
        return Http(lambda: _http(root, options))
    if scheme in ("webdav", "webdavs", "dav", "davs"):
        return Webdav(lambda: _webdav(root, options))
    if scheme in ("sftp", "ssh"):
        return Storage(lambda: _sftp(root, options))
    storage = Storage(lambda: _other(root, options))
    storage.parallel = scheme in ("s3", "s3a")
    return storage


def _opened(root: str, options: JsonMapping) -> tuple[IO[bytes], Callable[[], None]]:
    """An archive file, opened for reading anywhere in it, and what closes its connection."""
    local = local_root(root)
    if local is not None:
        return local.open("rb"), lambda: None
    scheme = urlsplit(root).scheme
    makers = {"ftp": _ftp, "ftps": _ftp, "http": _http, "https": _http, "webdav": _webdav, "webdavs": _webdav,
              "sftp": _sftp, "ssh": _sftp}  # fmt: skip
    fs, key = makers.get(scheme, _other)(root, options)
    file = fs.open(key, "rb")
    try:
        file.seek(-1, io.SEEK_END)
        file.read(1)
        file.seek(0)
    except Exception:
        # A server that gives a file from its beginning only: take a copy.
        with contextlib.suppress(Exception):
            file.close()
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the storage
        fs.get_file(key, file)
        file.seek(0)
    return file, lambda: Storage.close(_Shell(fs))


class _Shell(Storage):
    def __init__(self, fs: AbstractFileSystem) -> None:
        self._fs = fs


def _ftp(root: str, options: JsonMapping) -> tuple[AbstractFileSystem, str]:
    from fsspec.implementations.ftp import FTPFileSystem

    parts = urlsplit(root)
    given = {
        "host": parts.hostname,
        "port": parts.port or 21,
        "username": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "tls": parts.scheme == "ftps",
    }
    fs = FTPFileSystem(**{**given, **options, **FRESH, "encoding": "latin-1"})
    return fs, unquote_to_bytes(parts.path or "/").decode("latin-1")


def _http(root: str, options: JsonMapping) -> tuple[AbstractFileSystem, str]:
    from aiohttp import ClientTimeout
    from fsspec.implementations.http import HTTPFileSystem

    timeout = ClientTimeout(total=ANSWER_SECONDS, sock_connect=30, sock_read=60)
    client = {"timeout": timeout, **options.get("client_kwargs", {})}
    rest = {key: value for key, value in options.items() if key != "client_kwargs"}
    return HTTPFileSystem(encoded=True, client_kwargs=client, **rest, **FRESH), root


def _webdav(root: str, options: JsonMapping) -> tuple[AbstractFileSystem, str]:
    from webdav4.fsspec import WebdavFileSystem

    parts = urlsplit(root)
    scheme = "https" if parts.scheme.endswith("s") else "http"
    host = parts.netloc.rpartition("@")[2]
    given: JsonObject = {"timeout": 60, "event_hooks": answer_deadline(ANSWER_SECONDS)}
    if parts.username:
        given["auth"] = (unquote(parts.username), unquote(parts.password or ""))
    fs = WebdavFileSystem(f"{scheme}://{host}{parts.path}", **{**given, **options}, skip_instance_cache=True)
    return fs, ""


def answer_deadline(seconds: float) -> dict[str, list[Callable[..., None]]]:
    """Hooks for httpx, whose timeouts are for single reads: TimeoutError if a body takes longer in all."""
    import httpx

    class Timed(httpx.SyncByteStream):
        def __init__(self, stream: httpx.SyncByteStream, until: float) -> None:
            self._stream, self._until = stream, until

        def __iter__(self) -> Iterator[bytes]:
            for data in self._stream:
                if time.monotonic() > self._until:
                    raise TimeoutError(f"an answer takes more than {seconds:g} s")
                yield data

        def close(self) -> None:
            self._stream.close()

    def bound(answer: httpx.Response) -> None:
        assert isinstance(answer.stream, httpx.SyncByteStream)
        answer.stream = Timed(answer.stream, time.monotonic() + seconds)

    return {"response": [bound]}


def _sftp(root: str, options: JsonMapping) -> tuple[AbstractFileSystem, str]:
    """SFTP from a server whose key is known: fsspec alone would talk to whoever answers."""
    import paramiko
    from fsspec.implementations.sftp import SFTPFileSystem

    class CheckedConnection(SFTPFileSystem):  # type: ignore[misc]
        def _connect(self) -> None:
            self.client = paramiko.SSHClient()
            self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
            self.client.load_system_host_keys()
            if known := options.get("known_hosts"):
                self.client.load_host_keys(str(known))
            self.client.connect(self.host, **self.ssh_kwargs)
            self.ftp = self.client.open_sftp()

    rest = {key: value for key, value in options.items() if key != "known_hosts"}
    given = {**CheckedConnection._get_kwargs_from_urls(root), **rest}
    try:
        fs = CheckedConnection(**given, **PARAMIKO_FRESH)
    except (paramiko.BadHostKeyException, paramiko.SSHException, OSError) as e:
        if isinstance(e, paramiko.BadHostKeyException) or "known_hosts" in str(e):
            raise HierarchyError(
                f"the server's key is not the known one: {e}; check it, then add it to ~/.ssh/known_hosts or "
                "to the file that the option known_hosts names; nothing was deleted"
            ) from e
        raise
    return fs, CheckedConnection._strip_protocol(root)


def _other(root: str, options: JsonMapping) -> tuple[AbstractFileSystem, str]:
    from fsspec.core import url_to_fs

    try:
        fs, key = url_to_fs(root, **{**options, **FRESH})
    except ValueError as e:
        if "rotocol" in str(e):
            raise SettingsError(f"{root}: {e}; known are ftp, http, https, webdav, sftp, s3, zip, tar") from e
        raise
    return fs, str(key)
