"""Historical runs: everything, in date windows; interrupted, the next one goes on where it was."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile import misbehaving as m
from tests.stores import store_in

from indlet import datestamps as dates
from indlet.errors import SettingsError
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.service.harvest.run_state import Window
from indlet.service.harvest.windows import MOST, history
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.settings.file import from_mapping
from indlet.store import Store

QUICK = Harvest(retries=1, backoff_seconds=0.01, backoff_limit_seconds=0.02, window="5d")
HISTORICAL = RunOptions(historical=True)


def harvest(
    store: Store, source: Source, options: RunOptions | None = None, halt: threading.Event | None = None
) -> Progress:
    (done,) = harvest_all(store, Settings(harvest=QUICK), [source], options=options, index=False, halt=halt)
    return done


def windows(provider: m.Provider) -> list[tuple[str, str]]:
    """From and until of the lists that were begun."""
    return [
        (r.arguments.get("from", ""), r.arguments.get("until", ""))
        for r in provider.requests
        if r.verb == "ListRecords" and "resumptionToken" not in r.arguments
    ]


def held(store: Store) -> dict[str, tuple[bool, int]]:
    with store.read() as view:
        return {s.identifier: (bool(s.deleted), s.datestamp) for s in view.changes()}


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 130 * 365), st.integers(60, 10**9), st.booleans(),
    st.sampled_from(["", "2024-06-01"]), st.sampled_from(["", "1990-01-01"]),
)  # fmt: skip
def test_windows_follow_each_other_without_a_gap(
    days: int, length: int, seconds: bool, until: str, since: str
) -> None:
    whole = Window(since and dates.like(since, seconds), until and dates.like(until, seconds))
    now = datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC)
    said = dates.write(datetime(1900, 1, 1, tzinfo=UTC) + timedelta(days=days), seconds)
    found = history(whole, said, now, timedelta(seconds=length), seconds)
    assert (found[0].since, found[-1].until) == (whole.since, whole.until)
    assert len(found) <= 2 * MOST
    for window, after in pairwise(found):
        assert dates.beside(window.until)[1] == after.since
        assert window.since <= window.until


def test_everything_comes_in_windows_and_unchanged_records_keep_their_datestamps(tmp_path: Path) -> None:
    with m.Provider() as provider, store_in(tmp_path) as store:
        source = Source(provider.url, name="x")
        assert harvest(store, source).outcome == "complete"
        before = held(store)
        assert windows(provider) == [("", "")]
        provider.requests.clear()
        done = harvest(store, source, HISTORICAL)
        asked = windows(provider)
        assert (done.outcome, done.changed) == ("complete", 0)
        assert len(asked) > 10
        assert (asked[0][0], asked[-1][1]) == ("", "")
        assert held(store) == before
        provider.requests.clear()
        harvest(store, source)  # fresh again: from where the historical run began
        ((since, until),) = windows(provider)
        assert (since[:4], until) == ("2024", "")


def test_interrupted_it_goes_on_with_the_window_that_it_was_in(tmp_path: Path) -> None:
    halt = threading.Event()

    def pull_the_plug(request: m.Request, reply: m.Reply) -> m.Reply:
        if len(windows(request.provider)) == 8:
            halt.set()
        return reply

    with m.Provider(None, pull_the_plug) as provider, store_in(tmp_path) as store:
        source = Source(provider.url, name="x", mode="historical")
        assert harvest(store, source, halt=halt).outcome == "interrupted"
        first = windows(provider)
        provider.requests.clear()
        provider.faults = ()
        assert harvest(store, source).outcome == "complete"
        second = windows(provider)
        assert ("", first[0][1]) not in second  # not from the beginning
        whole = dict.fromkeys((*first, *second))
        assert [since for since, _ in whole][1:] == [
            dates.beside(until)[1] for _, until in whole if until
        ]  # together they are one row
        assert {name for name, (deleted, _) in held(store).items() if not deleted} == provider.live()
        provider.requests.clear()
        harvest(store, source)  # the next one is historical as well
        assert len(windows(provider)) == len(whole)


def test_a_mode_or_window_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="mode is"):
        from_mapping({"source": [{"url": "http://x.example.org", "mode": "old"}]})
    with m.Provider() as provider, store_in(tmp_path) as store:
        done = harvest(store, Source(provider.url, name="x", window="soon"), HISTORICAL)
        assert "window is 'soon'" in done.reason
