"""The text of a fetched document, extracted in a separate process, within limits of time and memory.

The content is foreign. A parser that hangs, crashes or uses up memory takes that process along and nothing
else: the document is unreadable, and the run goes on.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import orjson

from indlet.errors import ExtractionError
from indlet.model import Document
from indlet.process import limit_memory, limit_processor_time, start_with_socket
from indlet.settings import Limits

START_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 3
NAME_CHARACTERS: Final = 200
_TEXT, _FAILURE, _READY = b"+", b"-", b"!"


class ExtractedText(NamedTuple):
    """The text of a file, and what its documents say of themselves."""

    text: str
    language: str = ""  # stated in the document; empty if it is not
    media_type: str = ""  # sniffed
    no_text: str = ""  # what the file is where it has no text: an image, scanned pages


Extract = Callable[[bytes, str], ExtractedText]


def extractor(limits: Limits) -> Extract:
    """A function from content and URL to text, or ExtractionError.

    Each thread has its own process, so that no source waits for another's documents.
    """
    mine = threading.local()

    def extract_text(content: bytes, url: str) -> ExtractedText:
        if len(content) > limits.file_bytes:
            raise ExtractionError(f"{url}: larger than {limits.file_bytes} bytes (limits.file_bytes)")
        child: _Child | None = getattr(mine, "child", None)
        if child is None or child.process.poll() is not None:
            child = mine.child = _Child(limits)
        with tempfile.NamedTemporaryFile(prefix="indlet-fetched-") as file:
            file.write(content)
            file.flush()
            return child.text(file.name, file_name(url), url)

    return extract_text


def file_name(url: str) -> str:
    """What a file at a URL would be called."""
    try:
        name = unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        name = ""
    name = "".join(c for c in name if c.isprintable() and c not in "/\\")
    return name[-NAME_CHARACTERS:] or "document"


class _Child:
    """The process that reads documents, from outside. It ends with our end of its socket."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.process, self._socket = start_with_socket("indlet.sidecar.extraction")
        self._socket.send_bytes(pickle.dumps(limits))
        if self._answer(START_SECONDS) != _READY:
            raise ExtractionError("the process that reads fetched documents does not start")

    def text(self, path: str, name: str, url: str) -> ExtractedText:
        with contextlib.suppress(ConnectionError):
            self._socket.send_bytes(f"{path}\n{name}".encode("utf-8", "replace"))
        answer = self._answer(self._limits.seconds + GRACE_SECONDS)
        if answer[:1] == _TEXT:
            return ExtractedText._make(orjson.loads(answer[1:]))
        reason = answer[1:].decode("utf-8", "replace") or "its parser crashed, or took too long"
        raise ExtractionError(f"{url}: {reason}")

    def _answer(self, seconds: float) -> bytes:
        """What it says within the time; nothing, and its end, if it says nothing."""
        try:
            if self._socket.poll(seconds):
                return self._socket.recv_bytes()
        except (EOFError, OSError):
            pass
        self._end()
        return b""

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._socket.close()

    def __del__(self) -> None:  # with the thread whose process it is
        if hasattr(self, "process"):
            self._end()


def main() -> None:
    """The inside: a path and a name come in, text or a reason goes out."""
    from multiprocessing.connection import Connection

    socket = Connection(int(sys.argv[1]))
    limits: Limits = pickle.loads(socket.recv_bytes())  # noqa: S301 - from the process that started this one
    from indlet.provider.extract import extract

    limit_memory(limits.memory_mb)
    socket.send_bytes(_READY)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            path, _, name = socket.recv_bytes().decode().partition("\n")
            limit_processor_time(limits.seconds + 1)
            try:
                answer = _TEXT + orjson.dumps(_join_documents(list(extract(Path(path), name, limits))))
            except ExtractionError as e:
                answer = _FAILURE + str(e).encode("utf-8", "replace")[:2000]
            except Exception as e:  # a parser's bug met by a strange file
                answer = _FAILURE + f"unreadable: {type(e).__name__}: {e}".encode("utf-8", "replace")[:2000]
            socket.send_bytes(answer)
    os._exit(0)


def _join_documents(documents: list[Document]) -> list[str]:
    """The fields of the `ExtractedText` of a file's documents."""
    text = "\n".join(document.text for document in documents).encode("utf-8", "replace").decode()
    first = documents[0]
    return [text, first.language, first.media_type, first.no_text]


if __name__ == "__main__":
    main()
