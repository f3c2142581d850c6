"""Nothing lost, nothing half-done, nothing damaged served."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from indlet.errors import IndexDamaged, StoreError
from indlet.model import Stored
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.expression import Term

Make = Callable[..., Stored]


def fill(folder: Path, record: Make, first: int, last: int) -> None:
    with Engine.open(folder, writable=True) as engine:
        engine.apply(record(i, i, {"all": 1, f"w{i}": 2}) for i in range(first, last))
        engine.commit()


def test_a_deletion_is_seen_by_the_next_snapshot_only(tmp_path: Path, record: Make) -> None:
    fill(tmp_path, record, 1, 11)
    with Engine.open(tmp_path, writable=True) as engine, Engine.open(tmp_path) as reader:
        before = reader.searcher()
        assert before.search(Term("all"), facets=("creator", "year")).total == 10
        engine.apply([record(1, 11, None), record(2, 12, {"all": 3})])
        engine.commit()
        after = reader.searcher()
        assert (after.df("all"), after.cf("all"), after.df("w1")) == (9, 11, 0)
        assert (before.df("all"), before.cf("all"), before.df("w1")) == (10, 10, 1)


def test_a_snapshot_does_not_move(tmp_path: Path, record: Make) -> None:
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply(record(i, i, {"all": 1}) for i in range(1, 11))
        engine.commit()
        before = engine.searcher()
        reader = Engine.open(tmp_path)
        reading = reader.searcher()
        engine.apply([record(1, 11, None), record(20, 12, {"all": 1}), record(21, 13, {"all": 5})])
        assert engine.searcher() is before
        engine.commit()
        engine.merge(everything=True)
        for old in (before, reading):
            assert old.search(Term("all"), limit=99).total == 10
            assert old.df("all") == 10
        for new in (engine.searcher(), reader.searcher()):
            assert new.search(Term("all"), limit=99).total == 11
            assert new.cf("all") == 15
            assert new.position == 13


def test_one_writer(tmp_path: Path) -> None:
    with Engine.open(tmp_path, writable=True) as engine:
        with pytest.raises(StoreError, match="being written by another"):
            Engine.open(tmp_path, writable=True)
        with pytest.raises(StoreError, match="being written by another"):
            Engine.erase(tmp_path)
        reader = Engine.open(tmp_path)
        with pytest.raises(StoreError, match="writable=True"):
            reader.commit()
        engine.commit()
    Engine.open(tmp_path, writable=True).close()


def test_what_the_owner_keeps_with_a_commit(tmp_path: Path, record: Make) -> None:
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply([record(1, 7, {"a": 1})])
        engine.commit(extra={"policy": "abc"})
        engine.commit(position=9)
    again = Engine.open(tmp_path)
    assert (again.position, again.extra) == (9, {"policy": "abc"})


@pytest.mark.parametrize("where", [0.0, 0.3, 0.6, 0.99])
def test_a_flipped_bit_is_detected(tmp_path: Path, record: Make, where: float) -> None:
    fill(tmp_path, record, 1, 50)
    with Engine.open(tmp_path, writable=True) as engine:
        engine.apply([record(3, 60, None)])
        engine.commit()
    for file in [*tmp_path.glob("*.idx"), tmp_path / "manifest.json"]:
        whole = file.read_bytes()
        data = bytearray(whole)
        data[int(len(data) * where)] ^= 0x10
        file.write_bytes(data)
        with pytest.raises(IndexDamaged, match="indlet reindex"):
            Engine.open(tmp_path)
        file.write_bytes(whole)
    assert Engine.open(tmp_path).searcher().df("all") == 48


def test_verify_reads_again_what_was_read_before(tmp_path: Path, record: Make) -> None:
    fill(tmp_path, record, 1, 50)
    engine = Engine.open(tmp_path)
    engine.verify()
    (file,) = tmp_path.glob("seg-*.idx")
    about = file.stat()
    data = bytearray(file.read_bytes())
    data[99] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))  # damage by the disk leaves no date
    with pytest.raises(IndexDamaged, match="indlet reindex"):
        engine.verify()


def test_a_commit_of_nothing_writes_nothing(tmp_path: Path, record: Make) -> None:
    fill(tmp_path, record, 1, 5)
    before = (tmp_path / "manifest.json").stat()
    with Engine.open(tmp_path, writable=True) as engine:
        engine.commit()
        engine.commit(position=2)
    assert (tmp_path / "manifest.json").stat() == before


@pytest.mark.parametrize("damage", ["missing", "short", "empty"])
def test_a_missing_or_torn_segment_is_detected_and_rebuilt(tmp_path: Path, record: Make, damage: str) -> None:
    fill(tmp_path, record, 1, 50)
    (file,) = tmp_path.glob("seg-*.idx")
    if damage == "missing":
        file.unlink()
    else:
        os.truncate(file, 0 if damage == "empty" else file.stat().st_size - 1)
    with pytest.raises(IndexDamaged, match="indlet reindex"):
        Engine.open(tmp_path, writable=True)
    Engine.erase(tmp_path)
    fill(tmp_path, record, 1, 50)
    assert Engine.open(tmp_path).searcher().df("all") == 49


def test_what_was_emptied_beneath_a_writer_is_not_taken_for_whole(tmp_path: Path, record: Make) -> None:
    fill(tmp_path, record, 1, 5)
    with Engine.open(tmp_path, writable=True) as engine:
        for file in [*tmp_path.glob("*.idx"), tmp_path / "manifest.json"]:
            file.unlink()
        engine.apply([record(9, 9, {"all": 1})])
        with pytest.raises(IndexDamaged, match="another process"):
            engine.commit()
        assert engine.position == 0
    fill(tmp_path, record, 1, 6)
    assert Engine.open(tmp_path).searcher().df("all") == 5


def test_files_of_an_unfinished_commit_are_swept(tmp_path: Path, record: Make) -> None:
    fill(tmp_path, record, 1, 5)
    (tmp_path / "seg-99999999-0001.idx").write_bytes(b"half")
    (tmp_path / "merge-99999999-0001.idx").write_bytes(b"half")
    (tmp_path / "manifest.json.new").write_bytes(b"half")
    with Engine.open(tmp_path, writable=True) as engine:
        (segment,) = tmp_path.glob("*.idx")
        names = {file.name for file in tmp_path.iterdir()}
        assert names == {segment.name, "manifest.json", "lock", "turn", "merging"}
        engine.apply([record(9, 9, {"b": 1})])
        engine._flush()
        engine.rollback()
        assert len(list(tmp_path.glob("seg-*"))) == 1
        assert engine.position == 4


FULL = """
    import resource, sys
    from indlet.model import Stored, pack
    from indlet.service.index.embedded.engine import Engine

    def change(seq):
        vector = pack({"all": 1, f"w{seq}": 2})
        return Stored(seq, seq, 1, f"oai:x:{seq}", 0, 0, "", "", 3, 0, b"{}", b"", b"", vector, None, b"")

    engine = Engine.open(sys.argv[1], writable=True)
    engine.apply(change(seq) for seq in range(1, 10))
    engine.commit()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    for room in (0, 100, 5000):  # no byte may be written beyond: in the segment, its directory, a manifest
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            engine.apply(change(seq) for seq in range(10, 2000))
            engine.commit()
        except OSError:
            print("full", engine.position, engine.searcher().df("all"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    engine.apply(change(seq) for seq in range(engine.position + 1, 2000))
    engine.commit()
    print("then", engine.position, engine.searcher().df("all"))
    engine.verify()
"""


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    script = tmp_path / "full.py"
    script.write_text(textwrap.dedent(FULL))
    command = [sys.executable, str(script), str(tmp_path / "index")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["full 9 9"] * 3 + ["then 1999 1999"]


# A writer that commits, and merges aside, for ever. What it does depends only on the position it finds.
WRITER = """
    import json, sys
    from indlet.model import Stored, pack
    from indlet.service.index.embedded.engine import Engine
    from indlet.service.index.embedded import merge_scheduler as merging

    def change(seq):
        id = seq * 7919 % 61 + 1
        deleted = seq % 5 == 0
        content = {"all": 1, f"w{seq % 17}": seq % 3 + 1, f"only{seq}": 1}
        return Stored(id, seq, 1, f"oai:x:{id}", 0, int(deleted), "", "", sum(content.values()), 0, b"{}",
                      b"", b"", None if deleted else pack(content), None, b"")

    if __name__ == "__main__":
        merging.TIER = 3  # merge often
        engine = Engine.open(sys.argv[1], writable=True)
        merger = merging.Merger(sys.argv[1])
        last = int(sys.argv[2])
        print("ready", flush=True)
        while engine.position < last:
            start = engine.position
            engine.apply(change(seq) for seq in range(start + 1, min(start + 1 + start % 23 + 5, last + 1)))
            engine.commit()
            merger.wake()
            print(engine.position, flush=True)
        merger.close()
"""


def test_killed_at_any_instant_it_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    script = tmp_path / "writer.py"
    script.write_text(textwrap.dedent(WRITER))
    source = random.Random(5)
    folder = tmp_path / "index"
    last, killed = 6000, 0
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, str(script), str(folder), str(last)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            seen = 0
            for _ in range(source.randint(1, 12)):
                seen = int(writer.stdout.readline() or 0) or seen
            # Not at a moment of the writer's choosing: it goes on working while the signal travels.
            threading.Event().wait(source.random() * 0.01)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            killed += writer.returncode == -signal.SIGKILL
        after = Engine.open(folder)
        assert after.position >= seen
        assert after.searcher().fingerprint() == written(script, tmp_path / "clean", after.position)
    assert killed
    assert written(script, folder, last) == written(script, tmp_path / "clean", last)


def written(script: Path, folder: Path, last: int) -> str:
    """The fingerprint of an index caught up to a position in one undisturbed commit."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("writer", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if folder.name == "clean":
        Engine.erase(folder)
    with Engine.open(folder, writable=True) as engine:
        engine.apply(module.change(seq) for seq in range(engine.position + 1, last + 1))
        engine.commit()
        return engine.searcher().fingerprint()


READER = """
    import sys
    from indlet.service.index.embedded.engine import Engine
    from indlet.service.index.expression import Term
    engine = Engine.open(sys.argv[1])
    print("ready", flush=True)
    seen = 0
    while seen < int(sys.argv[2]):
        searcher = engine.searcher()
        assert searcher.position >= seen
        seen = searcher.position
        # Every commit holds as many records as its position says, whatever files come and go.
        assert searcher.search(Term("all"), limit=3).total == searcher.df("all") == seen
    print("done")
"""


def test_a_reader_in_another_process_sees_whole_commits_only(tmp_path: Path, record: Make) -> None:
    script = tmp_path / "reader.py"
    script.write_text(textwrap.dedent(READER))
    folder = tmp_path / "index"
    fill(folder, record, 1, 2)
    with subprocess.Popen([sys.executable, str(script), str(folder), "60"], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"ready\n"
        for i in range(2, 61):
            fill(folder, record, i, i + 1)
        assert reader.communicate(timeout=60)[0] == b"done\n"
        assert reader.returncode == 0


def test_threads_search_one_snapshot(tmp_path: Path, record: Make) -> None:
    fill(tmp_path, record, 1, 400)
    searcher = Engine.open(tmp_path).searcher()
    expected = searcher.search(Term("all"), limit=50)
    answers: list[bool] = []

    def work() -> None:
        answers.extend(searcher.search(Term("all"), limit=50) == expected for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 200
