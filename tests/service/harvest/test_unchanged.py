"""Equal is unchanged, though some pages are repaired before they are read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.hostile.misbehaving import Fault, Provider, Rec, Reply, Request
from tests.stores import store_in

from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store

COUNT = 400
# Metadata of many forms: the declarations at the root or at each element, empty and repeated ones, comments.
FORMS = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/">\n<dc:title>Wing {0}</dc:title>\r\n<dc:date/>'
    "<dc:description>{1}</dc:description></oai_dc:dc>",
    '<dc xmlns="http://purl.org/dc/elements/1.1/"><!-- new --><title  xml:lang="en">Wing {0}</title>'
    "<description><![CDATA[{1} & more]]></description></dc>",
)


def records() -> list[Rec]:
    """Records of some days; the last ones of today, which an incremental run asks for again."""
    text = "the air that is over the wings of a bird, " * 60
    out = []
    for n in range(COUNT):
        day = "2024-06-01" if n > COUNT - 100 else f"2024-05-{1 + n // 50:02d}"
        out.append(Rec(f"oai:x.org:{n:03d}", day, metadata=FORMS[n % 2].format(n, text), sets=("a",)))
    return out


def to_repair(every: int) -> Fault:
    """Every so manieth page needs a repair."""
    seen = 0

    def fault(request: Request, reply: Reply) -> Reply:
        nonlocal seen
        if request.verb == "ListRecords":
            seen += 1
            if seen % every == 0:
                reply.body = re.sub(rb"(Wing \d+)", rb"\1 &nbsp;", reply.body)
            else:
                reply.body = re.sub(rb"(Wing \d+)", "\\1 \u00a0".encode(), reply.body)
        return reply

    return fault


@pytest.mark.parametrize("every", [10**9, 3])
def test_a_second_run_over_the_same_records_changes_nothing(tmp_path: Path, every: int) -> None:
    source = Provider(records(), to_repair(every), granularity="YYYY-MM-DD", page=20)
    with source as provider, store_in(tmp_path) as store:
        first = run(store, provider.url, RunOptions())
        assert (first.records, first.changed) == (COUNT, COUNT)
        with store.read() as view:
            before = [(s.identifier, s.seq, s.datestamp, s.raw) for s in view.changes()]
        for full in (True, False):
            progress = run(store, provider.url, RunOptions(full=full))
            assert progress.records >= 50
            assert progress.changed == 0
        with store.read() as view:
            assert [(s.identifier, s.seq, s.datestamp, s.raw) for s in view.changes()] == before


def run(store: Store, url: str, options: RunOptions) -> Progress:
    (progress,) = harvest_all(
        store, Settings(harvest=Harvest()), [Source(url, name="repo")], options=options, index=False
    )
    assert progress.outcome == "complete"
    return progress
