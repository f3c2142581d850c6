"""Who goes on from the responseDate of the last harvest's first page misses nothing, while all changes."""

from __future__ import annotations

import random
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

from lxml import etree
from tests.provider.serve.conftest import Provider
from tests.stores import store_in

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.oai.xml import element
from indlet.settings import Serve, Settings
from indlet.store import Store

Held = dict[str, str]  # identifier -> title; empty for a deleted record


def harvest(url: str, held: Held, since: str) -> str:
    """Bring `held` up to date; the responseDate from which to go on."""
    arguments = {"verb": "ListRecords", "metadataPrefix": "oai_dc"} | ({"from": since} if since else {})
    started = ""
    while arguments:
        with urllib.request.urlopen(f"{url}/oai?{urlencode(arguments)}", timeout=30) as response:
            root = etree.fromstring(response.read())
        started = started or root.findtext("{*}responseDate") or ""
        for record in root.iter("{*}record"):
            held[record.findtext(".//{*}identifier") or ""] = record.findtext(".//{*}title") or ""
        token = root.findtext(".//{*}resumptionToken")
        arguments = {"verb": "ListRecords", "resumptionToken": token} if token else {}
    return started


def test_nothing_is_missed_while_everything_changes(
    tmp_path: Path, running: Callable[[Store, Settings], str]
) -> None:
    source, done = random.Random(7), threading.Event()
    with store_in(tmp_path) as store:
        url = running(store, Settings(serve=Serve(records_per_page=7)))

        def change() -> None:
            version = 0
            while not done.is_set():
                with store.write() as tx:
                    origin = tx.origin("hierarchy", "h")
                    for _ in range(source.randint(1, 5)):
                        version += 1
                        name = f"oai:x.org:{source.randint(0, 80)}"
                        if source.random() < 0.2:
                            tx.delete(origin, [name])
                        else:
                            metadata = {"title": [str(version)]}
                            tx.put(origin, [Record(name, metadata, raw=oai_dc.write(metadata))])

        writer = threading.Thread(target=change)
        writer.start()
        held: Held = {}
        try:
            since, seconds = "", set[str]()
            while len(seconds) < 4:  # so many times the clock has turned between harvests, or within one
                since = harvest(url, held, since)
                seconds.add(since)
        finally:
            done.set()
            writer.join()
        harvest(url, held, since)
        with store.read() as view:
            assert held == {s.identifier: _title(s.raw) for s in view.page(1000)}


def _title(raw: bytes) -> str:
    return oai_dc.FORMAT.read(element(raw)).simple()["title"][0] if raw else ""


def test_answers_are_dated_by_the_clock_that_dates_records(
    tmp_path: Path, running: Callable[[Store, Settings], str]
) -> None:
    """A web node whose own clock is ahead must not promise what the store has not dated yet."""
    with store_in(tmp_path, clock=lambda: 1_000_000_000.0) as store:
        url = running(store, Settings())
        with urllib.request.urlopen(f"{url}/oai?verb=Identify", timeout=30) as response:
            root = etree.fromstring(response.read())
    assert root.findtext("{*}responseDate") == "2001-09-09T01:46:40Z"


def test_a_clock_that_is_set_back_hides_no_change_of_a_hierarchy(filled: Provider) -> None:
    """Nothing is dated before an answer that did not show it; also by a node that was started since."""
    since = filled.ask(verb="ListRecords", metadataPrefix="oai_dc").findtext("{*}responseDate") or ""
    filled.clock.now -= 3600
    filled.configure(filled.settings)
    filled.put([filled.record(1, ("papers:a",), "another wing")])
    filled.delete([filled.name(2)])
    assert filled.listed("/ft-oai", verb="ListRecords", metadataPrefix="oai_dc", indexPrefix="tf_basic",
                         from_=since) == [filled.name(1), filled.name(2)]  # fmt: skip


def test_an_answer_does_not_wait_for_a_writer(filled: Provider) -> None:
    filled.ask(verb="ListRecords", metadataPrefix="oai_dc")
    filled.configure(filled.settings)
    with filled.store.write() as tx:
        tx.put(tx.origin("hierarchy", "papers"), [filled.record(99)])
        with ThreadPoolExecutor(1) as other:
            answer = other.submit(filled.ask, verb="ListRecords", metadataPrefix="oai_dc")
            assert len(filled.found(answer.result(30), "identifier")) == 10
