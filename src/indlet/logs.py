"""What a serving node tells of requests, jobs and acts at the desk: one line each, as text or as JSON.

A line holds no control character, whatever came from outside, and no user or password of a URL. Queries are
not in it: what people look for is their own.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import re
import threading
from datetime import UTC, datetime
from typing import Final, TextIO

from indlet.settings import Log

_STDERR: Final = 2
_LONGEST: Final = 2000  # characters of one value
_PLAIN: Final = re.compile(r"[\w./:@+*,;~-]+", re.ASCII)
# The user and the password of a URL within a text.
_IN_URL: Final = re.compile(r"(://)[^\s/?#@\"'<>\\]{1,500}@")

Value = str | int | float | bool | None


def event(name: str, level: int, **fields: Value) -> None:
    """Log an event by its name, with its fields."""
    logging.getLogger(f"indlet.{name}").log(level, name, extra={"fields": fields})


def is_enabled(level: int) -> bool:
    """Whether events of a level are written anywhere."""
    return logging.getLogger("indlet").isEnabledFor(level)


def configure(log: Log, stream: TextIO | None = None) -> None:
    """Write what is logged, of that level and above, to standard error, or at once to a stream."""
    handler = logging.StreamHandler(stream) if stream else NeverWaiting(_STDERR)
    handler.setFormatter(JsonLine() if log.format == "json" else TextLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # of what others have to say
    logging.getLogger("indlet").setLevel(log.level.upper())


class NeverWaiting(logging.Handler):
    """Lines are written by a thread: whoever stops reading them does not stop the node.

    Where `most` lines wait, more are counted instead, and the count is written when there is room.
    """

    def __init__(self, descriptor: int, most: int = 10_000) -> None:
        super().__init__()
        self._descriptor = descriptor  # not a stream, which a thread that waits would keep locked
        self._lines: queue.Queue[str | None] = queue.Queue(most)
        self._lost = 0
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._lost += 1
        except Exception:
            self.handleError(record)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            rest = f"{line}\n".encode("utf-8", "backslashreplace")
            with contextlib.suppress(OSError):  # closed
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            lost, self._lost = self._lost, 0
            if lost:
                event("log", logging.WARNING, left_out=lost, reason="nobody read what was written")

    def close(self) -> None:
        """What waits is written, if that takes no longer than a second. At the end of the process, too."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=1)
        self._writer.join(1)
        super().close()


def _parts(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, Value]:
    """What a line says: time, level and name first."""
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    parts: dict[str, Value] = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
    fields = getattr(record, "fields", None)
    if isinstance(fields, dict):
        parts |= {"event": record.getMessage(), **fields}
    else:
        parts |= {"event": "message", "from": record.name, "message": record.getMessage()}
    if record.exc_info:
        parts["exception"] = formatter.formatException(record.exc_info)
    return {name: _harmless(value) for name, value in parts.items()}


def _harmless(value: Value) -> Value:
    return _IN_URL.sub(r"\1", value[:_LONGEST]) if isinstance(value, str) else value


class JsonLine(logging.Formatter):
    """One object, ASCII alone: every control character is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_parts(record, self))


class TextLine(logging.Formatter):
    """Time, level, event, and name=value for the rest; what is not a plain word is quoted and escaped."""

    def format(self, record: logging.LogRecord) -> str:
        parts = _parts(record, self)
        head = f"{parts.pop('time')} {str(parts.pop('level')).upper():<7} {parts.pop('event')}"
        return " ".join((head, *(f"{name}={_format_value(value)}" for name, value in parts.items())))


def _format_value(value: Value) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value):
            return value
        quoted = json.dumps(value, ensure_ascii=False)
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in quoted)
    return json.dumps(value)
