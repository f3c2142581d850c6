"""Worker processes: real ones, killed, starved and hung."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from indlet.errors import IndletError
from indlet.provider.workers import Outcome, ReadingJob, Workers
from indlet.settings import Limits
from indlet.text import Analyzer, Policy

LIMITS = Limits(seconds=20.0, memory_mb=512)
POLICY = Policy()

# Tens of millions of tokens: seconds of work for the reader, in Python, where the alarm is heard.
SLOW_RTF = b"{\\rtf1 " + b"{\\b x}" * 8_000_000


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = []
    for number in range(300):
        path = tmp_path / f"file_{number}.txt"
        path.write_text(
            f"Document number {number} speaks of weaving, looms and the {number} threads they hold."
        )
        made.append(path)
    return made


def jobs(paths: list[Path]) -> Iterator[ReadingJob]:
    return (ReadingJob(path, path, path.name) for path in paths)


def test_every_job_has_its_outcome_and_vectors_are_the_analyzers(files: list[Path]) -> None:
    with Workers(2, LIMITS, POLICY) as workers:
        outcomes = {outcome.tag: outcome for outcome in workers.map(jobs(files))}
        assert len(workers.pids) <= 2
    assert set(outcomes) == set(files)
    analyzer = Analyzer(POLICY)
    for path in files[::50]:
        outcome = outcomes[path]
        assert outcome.failure is None
        assert outcome.digest == hashlib.sha256(path.read_bytes()).hexdigest()
        assert outcome.size == path.stat().st_size
        [document] = outcome.documents
        assert document.vector == analyzer.vector(path.read_text())
        assert document.metadata["title"] == [path.read_text().splitlines()[0]]
        assert document.media_type == "text/plain"


def test_positions_survive_the_journey(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("warp weft warp " * 200)
    policy = replace(POLICY, positions=True)
    with Workers(1, LIMITS, policy) as workers:
        [outcome] = workers.map([ReadingJob(1, path, "a.txt")])
    assert outcome.documents[0].vector == Analyzer(policy).vector(path.read_text())
    assert outcome.documents[0].vector.positions


def test_a_configured_language_beats_the_documents_own(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<html lang='de'><p>the looms are weaving</p>")
    for policy, expected in ((Policy(language="en"), "en"), (POLICY, "de")):
        with Workers(1, LIMITS, policy) as workers:
            [outcome] = workers.map([ReadingJob(1, path, "a.html")])
        assert outcome.documents[0].vector.language == expected
        assert outcome.documents[0].language == "de"


def test_failures_of_files_and_of_parts(tmp_path: Path) -> None:
    missing, strange = tmp_path / "missing", tmp_path / os.fsdecode(b"b\xff.bin")
    strange.write_bytes(bytes(range(256)) * 8)
    partly = tmp_path / "c.mrc"
    good = b"00052cam a2200037 a 4500245001400000\x1e10\x1faTitle one.\x1e\x1d"
    partly.write_bytes(good + b"00026cam a2200025 a 4500 bad\x1d" + good)
    with Workers(1, LIMITS, POLICY) as workers:
        outcomes = {outcome.tag: outcome for outcome in workers.map(jobs([missing, strange, partly]))}
    absent = outcomes[missing].failure
    assert absent is not None
    assert "No such file" in absent.reason
    assert outcomes[missing].digest == ""
    failure = outcomes[strange].failure
    assert failure is not None
    assert failure.reason == "unsupported: unknown binary data"
    assert failure.where == strange.name
    assert outcomes[strange].digest
    assert outcomes[partly].failure is None
    assert [document.key for document in outcomes[partly].documents] == ["1", "3"]
    [part] = outcomes[partly].failures
    assert part.where == "c.mrc#2"
    assert b"bad" in part.raw


def test_jobs_are_drawn_as_they_are_needed(files: list[Path]) -> None:
    drawn = 0

    def counted() -> Iterator[ReadingJob]:
        nonlocal drawn
        for path in files * 40:
            drawn += 1
            yield ReadingJob(path, path, path.name)

    with Workers(2, LIMITS, POLICY) as workers:
        results = workers.map(counted())
        next(results)
        assert drawn < 400
        results.close()  # type: ignore[attr-defined]
        # What was under way is gone, and the next call starts afresh.
        assert len(list(workers.map(jobs(files)))) == len(files)


def test_nothing_to_do() -> None:
    with Workers(2, LIMITS, POLICY) as workers:
        assert list(workers.map([])) == []
        assert workers.pids == ()


def test_a_file_that_takes_too_long(tmp_path: Path, files: list[Path]) -> None:
    slow = tmp_path / "slow.rtf"
    slow.write_bytes(SLOW_RTF)
    with Workers(2, replace(LIMITS, seconds=2, file_bytes=100_000_000), POLICY) as workers:
        outcomes = {outcome.tag: outcome for outcome in workers.map(jobs([*files[:20], slow, *files[20:40]]))}
    assert len(outcomes) == 41
    failure = outcomes[slow].failure
    assert failure is not None
    assert "longer than 2 seconds" in failure.reason
    assert outcomes[slow].digest == hashlib.sha256(SLOW_RTF).hexdigest()
    assert all(outcome.documents for tag, outcome in outcomes.items() if tag != slow)


def test_a_hang_in_foreign_code_is_ended_from_outside(tmp_path: Path, files: list[Path]) -> None:
    """Nested elements keep the HTML parser busy for minutes in C, where no signal handler of Python runs."""
    deep = tmp_path / "deep.html"
    deep.write_bytes(b"<html>" + b"<div>" * 400_000)
    with Workers(2, replace(LIMITS, seconds=2), POLICY) as workers:
        outcomes = {outcome.tag: outcome for outcome in workers.map(jobs([*files[:5], deep, *files[5:10]]))}
    failure = outcomes[deep].failure
    assert failure is not None
    assert "longer than 2 seconds" in failure.reason
    assert sum(bool(outcome.documents) for outcome in outcomes.values()) == 10


def test_a_file_that_eats_memory(tmp_path: Path, files: list[Path]) -> None:
    eater = tmp_path / "eater.xml"
    eater.write_bytes(b"<?xml version='1.0'?><r>" + b"<a b='c'/>" * 2_000_000 + b"</r>")
    with Workers(2, replace(LIMITS, memory_mb=150), POLICY) as workers:
        outcomes = {
            outcome.tag: outcome for outcome in workers.map(jobs([*files[:20], eater, *files[20:40]]))
        }
    failure = outcomes[eater].failure
    assert failure is not None
    assert "memory" in failure.reason
    assert sum(bool(outcome.documents) for outcome in outcomes.values()) == 40


def test_a_killed_worker_costs_no_file(files: list[Path]) -> None:
    with Workers(2, LIMITS, POLICY) as workers:
        outcomes: list[Outcome] = []
        for outcome in workers.map(jobs(files * 4)):
            outcomes.append(outcome)
            if len(outcomes) in (5, 400):
                for pid in workers.pids:
                    os.kill(pid, signal.SIGKILL)
    assert len(outcomes) == len(files) * 4
    assert all(outcome.documents for outcome in outcomes)


def test_a_crashing_file_is_blamed_and_its_neighbours_are_not(tmp_path: Path, files: list[Path]) -> None:
    """A segmentation fault, sent from here whenever a worker is at the file that keeps it busy longest."""
    crasher = tmp_path / "crasher.html"
    crasher.write_bytes(b"<html>" + b"<div>" * 200_000)
    with Workers(1, replace(LIMITS, seconds=300), POLICY) as workers:
        outcomes = {}
        source = jobs([*files[:10], crasher, *files[10:20]])
        deaths = 0
        results = workers.map(source)
        done = threading.Event()

        def killer() -> None:
            nonlocal deaths
            while not done.wait(0.05):
                for pid in workers.pids:
                    # Whoever has worked for a second is at the crasher: the others take no time.
                    try:
                        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    except OSError:
                        continue
                    if int(fields[11]) / os.sysconf("SC_CLK_TCK") > 1.5:
                        os.kill(pid, signal.SIGSEGV)
                        deaths += 1
                        done.wait(0.5)

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            for outcome in results:
                outcomes[outcome.tag] = outcome
        finally:
            done.set()
            thread.join()
    failure = outcomes[crasher].failure
    assert failure is not None
    assert "SIGSEGV" in failure.reason
    assert outcomes[crasher].digest == hashlib.sha256(crasher.read_bytes()).hexdigest()
    assert deaths >= 2
    assert sum(bool(outcome.documents) for outcome in outcomes.values()) == 20


def test_workers_that_cannot_start_say_why(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Workers(1, LIMITS, POLICY) as workers, pytest.raises(IndletError, match="cannot start"):
        list(workers.map(jobs(files[:3])))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    """Whether all have ended; waits for the kernel to close their sockets."""
    until = time.monotonic() + 20
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(alive, pids))


PROGRAM = """
import sys
from pathlib import Path
from indlet.provider.workers import ReadingJob, Workers
from indlet.settings import Limits
from indlet.text import Policy

paths = [Path(path) for path in sys.argv[1:]]
with Workers(2, Limits(), Policy()) as workers:
    def endless():
        while True:
            for path in paths:
                yield ReadingJob(path, path, path.name)
    for number, _ in enumerate(workers.map(endless())):
        if number == 100:
            print(*workers.pids, flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_its_parent(files: list[Path], how: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, *map(str, files[:50])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert pids
        assert all(map(alive, pids))
        parent.send_signal(how)
        complaints = parent.stderr.read()
    assert gone(pids)
    # Ctrl-C shows where the parent was, and nothing of the workers.
    assert complaints.count("Traceback") == (1 if how == signal.SIGINT else 0)


def test_closing_ends_the_workers(files: list[Path]) -> None:
    with Workers(2, LIMITS, POLICY) as workers:
        list(workers.map(jobs(files)))
        pids = list(workers.pids)
    assert pids
    assert gone(pids)
