"""A harvest in a process of its own."""

from __future__ import annotations

from pathlib import Path

from indlet.node.harvest_child import harvest_in_child
from indlet.service.harvest.progress import Progress
from indlet.settings import Settings, Source


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file, not a folder")
    progress = Progress("s")
    harvest_in_child(Settings(data=tmp_path / "data"), Source("http://127.0.0.1:9/oai", name="s"), progress)
    assert progress.outcome == "failed"
    assert progress.reason.startswith(f"{tmp_path / 'data'}: cannot be used as data folder")
    assert not progress.store_lost
