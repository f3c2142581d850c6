"""A crawl that is killed at any instant is completed by the next: the store is that of an undisturbed one."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.stores import command_options, store_in

from indlet.errors import StoreError


def tree(root: Path, files: int) -> None:
    rng = random.Random(7)
    words = [f"word{n}" for n in range(300)]
    for number in range(files):
        place = root / f"folder{number % 5}" / f"file{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        if number % 20 == 3:
            place = place.with_suffix(".pdf")
            place.write_bytes(b"%PDF-1.4 broken")
        elif number % 20 == 5:
            place = place.with_suffix(".sgml")
            docs = (
                f"<DOC>\n<DOCNO>D{n}</DOCNO>\n<TEXT>\n{rng.choice(words)}\n</TEXT>\n</DOC>" for n in range(5)
            )
            place.write_text("\n".join(docs))
        else:
            place.write_text(" ".join(rng.choices(words, k=60)))
        os.utime(place, (1_500_000_000, 1_500_000_000))


def crawl(root: Path, data: Path) -> subprocess.Popen[bytes]:
    options = [*command_options(data), "--workers", "1", "--base-url", "http://node.example"]
    command = [sys.executable, "-m", "indlet", "crawl", str(root), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def contents(data: Path) -> dict[str, Any]:
    """Everything that a crawl leaves, without what only the clock or the order of work decides."""
    with store_in(data, create=False) as store, store.read() as view:
        (origin,) = view.origins()
        return {
            "records": sorted((s.record.identifier, s[5], *s[6:]) for s in view.page(100_000)),
            "files": list(view.files(origin.id)),
            "failures": [f[1:4] for f in view.failures()],
            "sets": view.sets(),
        }


FILES = 1600
RECORDS = FILES * 18 // 20 + FILES // 20 * 5


def kept(data: Path) -> int:
    """How many records a store holds already, while another process writes it."""
    try:
        with store_in(data, create=False) as store, store.read() as view:
            return view.count()
    except StoreError:
        return 0


def test_killed_again_and_again(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    tree(root, FILES)
    begun = time.monotonic()
    assert crawl(root, tmp_path / "clean").wait() == 3
    duration = time.monotonic() - begun
    expected = contents(tmp_path / "clean")
    assert len(expected["records"]) == RECORDS
    assert len(expected["failures"]) == FILES // 20

    rng = random.Random(os.urandom(4))
    for _ in range(6):
        process = crawl(root, tmp_path / "killed")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=rng.uniform(0.1, 1.0) * duration)
        process.kill()
        process.wait()
    assert crawl(root, tmp_path / "killed").wait() == 3
    assert contents(tmp_path / "killed") == expected

    # What had changed and gone when the process was killed is no less complete.
    changed = root / "folder1" / "file1.txt"
    changed.write_text("other words")
    os.utime(changed, (1_600_000_000, 1_600_000_000))
    (root / "folder2" / "file2.txt").unlink()
    process = crawl(root, tmp_path / "killed")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=rng.uniform(0.1, 0.5))
    process.kill()
    process.wait()
    for data in ("clean", "killed"):
        assert crawl(root, tmp_path / data).wait() == 3
    assert contents(tmp_path / "killed") == contents(tmp_path / "clean")


def interrupted(root: Path, data: Path) -> tuple[int, int]:
    """How many records a crawl had kept when it was interrupted, and its status."""
    process = crawl(root, data)
    while process.poll() is None and not kept(data):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.02)
    seen = kept(data)
    process.send_signal(signal.SIGINT)
    return seen, process.wait(timeout=30)


def test_ctrl_c_keeps_what_was_read(tmp_path: Path) -> None:
    # A crawl may be over before the signal comes: then a larger one is interrupted.
    for files in (FILES, 4 * FILES, 16 * FILES):
        root, data = tmp_path / f"docs{files}", tmp_path / f"data{files}"
        tree(root, files)
        seen, status = interrupted(root, data)
        if status != 3:
            break
    records = RECORDS * files // FILES
    assert status == 130
    assert seen <= kept(data) < records
    assert crawl(root, data).wait() == 3
    assert kept(data) == records
