"""The inside of a worker process: reads files, extracts, analyses, answers. Text never leaves it.

Started by `workers.py` as ``python -m indlet.provider.worker FD``. It ends when its socket closes, so none is
left behind when the parent is killed. Answers are JSON: a parser that an evil file took over can lie about
that file, but not run code in the parent.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import orjson

from indlet.errors import ExtractionError
from indlet.model import Document, JsonObject
from indlet.process import limit_memory, limit_processor_time
from indlet.provider.extract import parts, read, told_apart
from indlet.provider.extract.file import File, FileReader
from indlet.settings import Limits
from indlet.text import Analyzer, Policy

READY: Final = b"ready"
FLUSH_SECONDS: Final = 0.02
FLUSH_BYTES: Final = 1 << 20
GRACE_SECONDS: Final = 5


class OutOfTime(BaseException):
    """Raised by the alarm. Not an Exception: forgiving parsers swallow those."""


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    limits, policy = pickle.loads(connection.recv_bytes())  # noqa: S301 - from the process that started this one
    analyst = Analyst(limits, policy)
    connection.send_bytes(READY)
    # Parsers write there whatever they please; the parent listened only for a failing start.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    while True:
        try:
            batch = pickle.loads(connection.recv_bytes())  # noqa: S301 - the same
            if not _work(batch, analyst, connection):
                break
        except (EOFError, ConnectionError):
            break
    os._exit(0)  # without tidying up what may be a gigabyte of memory


def _work(
    batch: list[tuple[int, bytes, str, FileReader | None]], analyst: Analyst, connection: Connection
) -> bool:
    """Answers each job of the batch; false where this process had better be replaced."""
    answers: list[bytes] = []
    size, since = 0, time.monotonic()
    for number, path, name, reader in batch:
        answer = analyst.answer(number, Path(os.fsdecode(path)), name, reader)
        answers.append(orjson.dumps(answer))
        size += len(answers[-1])
        tired = answer["tired"]
        now = time.monotonic()
        if size > FLUSH_BYTES or now - since > FLUSH_SECONDS or tired:
            connection.send_bytes(b"\n".join(answers))
            answers, size, since = [], 0, now
        if tired:
            return False
    if answers:
        connection.send_bytes(b"\n".join(answers))
    return True


class Analyst:
    """Turns one file after the other into answers, within the limits."""

    def __init__(self, limits: Limits, policy: Policy) -> None:
        self._limits = limits
        self._analyzer = Analyzer(policy)
        self._analyzer.vector("the rules are loaded before anything is timed")
        # A configured language is the operator's word; a document may only say what is to be found out.
        self._listens = policy.language == "auto"
        signal.signal(signal.SIGALRM, self._alarm)
        limit_memory(limits.memory_mb)

    def _alarm(self, *_: object) -> None:
        raise OutOfTime

    def answer(self, number: int, path: Path, name: str, reader: FileReader | None = None) -> JsonObject:
        answer: JsonObject = {
            "job": number, "digest": "", "size": 0, "documents": [], "failures": [], "failure": "",
            "tired": "",
        }  # fmt: skip
        # The alarm interrupts Python; what hangs in foreign code the kernel ends by SIGXCPU.
        limit_processor_time(self._limits.seconds + GRACE_SECONDS)
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, self._limits.seconds, 1.0)
                self._fill(answer, path, name, reader)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except ExtractionError as error:
            answer["failure"] = str(error)
        except OutOfTime:
            signal.setitimer(signal.ITIMER_REAL, 0)
            answer["failure"] = f"it took longer than {self._limits.seconds:g} seconds (limits.seconds)"
            answer["tired"] = "time"
        except MemoryError:
            answer["failure"] = f"it needs more than {self._limits.memory_mb} MB of memory (limits.memory_mb)"
            answer["tired"] = "memory"
        except RecursionError:
            answer["failure"] = "nested too deeply"
        except Exception as error:  # a parser's bug met by a strange file: named, and the run goes on
            answer["failure"] = f"unreadable: {type(error).__name__}: {error}"
        if answer["failure"]:
            answer["documents"], answer["failures"] = [], []
            answer["failure"] = answer["failure"].encode("utf-8", "replace").decode()[:2000]
        return answer

    def _fill(self, answer: JsonObject, path: Path, name: str, reader: FileReader | None) -> None:
        data = read(path, self._limits)
        answer["digest"] = hashlib.sha256(data).hexdigest()
        answer["size"] = len(data)
        file = File(data, name, self._limits)
        del data
        for part in parts(file) if reader is None else told_apart(reader.parts(file), file):
            if not isinstance(part, Document):
                answer["failures"].append((part.where, part.stage, part.reason, part.raw.decode("latin-1")))
                continue
            language = part.language if self._listens else ""
            vector = self._analyzer.vector(part.text, language)
            places = None if vector.positions is None else vector.positions.decode("latin-1")
            answer["documents"].append((
                part.key, part.metadata, part.media_type, part.language or vector.language,
                vector.packed.decode(), vector.length, places, vector.language, part.no_text,
                part.raw.decode(), part.statements,
            ))  # fmt: skip


if __name__ == "__main__":
    main()
