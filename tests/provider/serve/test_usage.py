"""What requesters harvested is known after a restart, and bounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.stores import store_in

from indlet.provider.serve.repository import OaiAnswer
from indlet.provider.serve.responses import ForeignBytes
from indlet.provider.serve.usage import EVERY, NAME, Count, Usage

DAY = 1_700_000_000.0  # 2023-11-14


def answer(records: int = 10, verb: str = "ListRecords") -> OaiAnswer:
    return OaiAnswer(ForeignBytes(b""), verb=verb, prefix="oai_dc", records=records)


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    first = Usage(tmp_path)
    first.count(DAY, False, answer(), 500, "Harvester/1")
    first.count(DAY, False, answer(), 500, "Harvester/1")
    first.count(DAY, True, answer(3), 80, "Other/2")
    first.save()
    second = Usage(tmp_path)
    assert second.counts() == first.counts()
    second.count(DAY, False, answer(1), 1, "Harvester/1")
    assert second.counts()[0] == (
        ("2023-11-14", "/oai", "ListRecords", "oai_dc", "Harvester/1"),
        (3, 21, 1001),
    )
    assert Usage(tmp_path).counts() == first.counts()  # not saved yet
    second.save()
    assert Usage(tmp_path).counts() == second.counts()


def test_processes_that_count_at_once_add_up(tmp_path: Path) -> None:
    one, two = Usage(tmp_path), Usage(tmp_path)
    for usage, times in ((one, 3), (two, 4)):
        for _ in range(times):
            usage.count(DAY, False, answer(), 100, "Same")
    one.save()
    two.save()
    one.save()
    assert [count for _, count in Usage(tmp_path).counts()] == [Count(7, 70, 700)]
    assert [count for _, count in two.counts()] == [Count(7, 70, 700)]


def test_nodes_that_share_a_store_count_into_it(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        one, two = Usage(store), Usage(store)
        for usage, times in ((one, 3), (two, 4)):
            for _ in range(times):
                usage.count(DAY, False, answer(), 100, "Same")
            usage.save()
        assert [count for _, count in Usage(store).counts()] == [Count(7, 70, 700)]
        assert not (tmp_path / NAME).exists()


def test_counts_are_written_now_and_then(tmp_path: Path) -> None:
    usage = Usage(tmp_path)
    usage.count(DAY, False, answer(), 1, "A")
    usage.count(DAY + EVERY - 1, False, answer(), 1, "A")
    assert not (tmp_path / NAME).exists()
    usage.count(DAY + EVERY, False, answer(), 1, "A")
    while not (tmp_path / NAME).exists():
        pass  # a thread is at it
    assert Usage(tmp_path).counts()[0][1].requests == 3


def test_the_longest_unseen_is_forgotten(tmp_path: Path) -> None:
    usage = Usage(tmp_path, most=5)
    for number in range(8):
        usage.count(DAY, False, answer(), 1, f"agent {number}")
        usage.count(DAY, False, answer(), 1, "steady")
        usage.save()
    names = [kind.agent for kind, _ in Usage(tmp_path).counts()]
    assert names == ["steady", "agent 7", "agent 6", "agent 5", "agent 4"]
    assert len(json.loads((tmp_path / NAME).read_text())) == 5


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[1]",
        '[["a"]]',
        "null",
        '[["d", "/oai", "", "", "x", 1, 2, -3]]',
        '[["d", "/oai", 5, "", "x", 1, 2, 3]]',
    ],
)
def test_a_file_that_is_not_ours_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / NAME).write_text(content)
    usage = Usage(tmp_path)
    assert usage.counts() == []
    usage.count(DAY, False, answer(), 1, "A")
    usage.save()
    assert len(Usage(tmp_path).counts()) == 1


def test_what_cannot_be_written_is_kept(tmp_path: Path) -> None:
    usage = Usage(tmp_path / "later")
    usage.count(DAY, False, answer(), 1, "A")
    usage.save()
    assert usage.counts()[0][1].requests == 1
    (tmp_path / "later").mkdir()
    usage.save()
    assert Usage(tmp_path / "later").counts() == usage.counts()
