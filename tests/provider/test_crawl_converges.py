"""After any sequence of events, crawls in between have led to what one clean crawl gives.

Only what a file held that cannot be read now stays, until the file can be read again or goes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.stores import store_in

from indlet.provider.pipeline import crawl
from indlet.provider.workers import Workers
from indlet.settings import Crawl, Hierarchy, Node, Settings
from indlet.store import Store

names = st.sampled_from(["a", "b", "sub/a", "sub/deep/c"])
endings = st.sampled_from([".txt", ".html", ".pdf", ".sgml", ".zzz", ""])
texts = st.sampled_from(
    [
        "a wing",
        "a tail and a wing",
        "<html><title>T</title><body>rudder</body></html>",
        "%PDF-1.7 broken",
        "<DOC>\n<DOCNO>D1</DOCNO>\n<TEXT>\none\n</TEXT>\n</DOC>\n<DOC>\n<DOCNO>D2</DOCNO>\n<TEXT>\ntwo\n</TEXT>\n</DOC>",
        "<DOC>\n<DOCNO>D2</DOCNO>\n<TEXT>\ntwo again\n</TEXT>\n</DOC>",
    ]
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("write"), names, endings, texts),
        st.tuples(st.just("touch"), names, endings),
        st.tuples(st.just("remove"), names, endings),
        st.tuples(st.just("clear"), st.sampled_from(["sub", "sub/deep"])),
        st.tuples(st.just("crawl")),
    ),
    max_size=25,
)


def happen(root: Path, event: tuple[str, ...], now: int) -> None:
    kind, *rest = event
    if kind == "clear":
        shutil.rmtree(root / rest[0], ignore_errors=True)
        return
    place = root / (rest[0] + rest[1])
    if place.is_dir():
        return
    if kind == "write":
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(rest[2])
        os.utime(place, (now, now))
    elif kind == "touch" and place.exists():
        os.utime(place, (now, now))
    elif kind == "remove":
        place.unlink(missing_ok=True)


def contents(store: Store) -> dict[str, Any]:
    """Live records without the times of their files, which a touch does not bring up to date."""
    with store.read() as view:
        origin = view.origins()[0].id
        return {
            "records": {
                s.identifier: (
                    s.vector,
                    {k: v for k, v in s.record.metadata.items() if k != "date"},
                    {k: v for k, v in s.record.properties.items() if k != "modified"},
                )
                for s in view.page(1000)
                if not s.deleted
            },
            "files": [(f.path, f.resource, f.size, f.modified, f.state) for f in view.files(origin)],
            "failures": [(f.where, f.stage) for f in view.failures()],
        }


@settings(max_examples=40, deadline=None)
@given(events)
@example([("write", "a", ".txt", "%PDF-1.7 broken"), ("crawl",), ("write", "a", ".html", "a wing")])
def test_any_sequence_of_events(workers: Workers, sequence: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "docs"
        root.mkdir()
        chosen = Settings(
            node=Node(repository="docs.example.org"),
            hierarchy=(Hierarchy(str(root)),),
            crawl=Crawl(settle_seconds=0),
        )
        with store_in(Path(scratch) / "grown") as grown, store_in(Path(scratch) / "clean") as clean:
            for number, event in enumerate(sequence):
                if event[0] == "crawl":
                    crawl(grown, chosen, workers=workers)
                else:
                    happen(root, event, 1_500_000_000 + number)
            crawl(grown, chosen, workers=workers)
            crawl(clean, replace(chosen), workers=workers)
            found, wanted = contents(grown), contents(clean)
            failed = {resource for _, resource, _, _, state in wanted["files"] if state == "failed"}
            kept = {i for i in found["records"].keys() - wanted["records"] if i.partition(";")[0] in failed}
            found["records"] = {i: r for i, r in found["records"].items() if i not in kept}
            assert found == wanted
            (again,) = crawl(grown, chosen, workers=workers)
            assert (again.read, again.records, again.deleted) == (0, 0, 0)
