"""A list of metadata goes by the changes of metadata: another index part moves nothing there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.contract.given import Clock, Make, listed

from indlet.model import Record, TermVector
from indlet.store import Store, open_store

NAMES = st.sampled_from("abc")
SETS = st.sampled_from([("x",), ("x:y",), ("z",)])
SPECS = ("x", "x:y", "z")
EVENTS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(0, 1), st.integers(0, 2), SETS),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("sweep")),
    st.tuples(st.just("wait")),
)


def made(name: str, title: int, index: int, sets: tuple[str, ...] = ("x",), **properties: Any) -> Record:
    """A record; another `index` is another vector under another policy."""
    told = {"path": f"{name}.txt", "policy": f"digest{index}", "url": f"http://x/{name}", **properties}
    vector = TermVector.of({"wing": index + 1})
    return Record(name, {"title": [str(title)]}, vector, sets, raw=b"<dc>%d</dc>" % title, properties=told)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(EVENTS, max_size=10))
def test_each_list_tells_its_own_changes(
    new_place: Callable[[], str], tmp_path: Path, events: list[Any]
) -> None:
    clock = Clock()
    whole: dict[str, tuple[Any, int]] = {}  # what each list should show: state and datestamp, in order
    metadata: dict[str, tuple[Any, int]] = {}
    left: dict[tuple[str, str], int] = {}  # since when a record is out of a set

    def changed(told: dict[str, tuple[Any, int]], name: str, state: Any) -> None:
        if name not in told or told[name][0] != state:
            told.pop(name, None)
            told[name] = (state, int(clock.now))

    with open_store(new_place(), clock=clock, local_folder=tmp_path) as store:
        for event in events:
            clock.now += 1
            with store.write() as tx:
                origin = tx.origin("hierarchy", "h")
                match event:
                    case ("put", name, title, index, sets):
                        tx.put(origin, [made(name, title, index, sets)])
                        for spec in SPECS:
                            if within(spec, sets):
                                left.pop((name, spec), None)
                            elif name in whole and within(spec, whole[name][0][-1]):
                                left[name, spec] = int(clock.now)
                        changed(whole, name, (title, index, sets))
                        changed(metadata, name, (title, sets))
                    case ("delete", name) if name in whole:
                        tx.delete(origin, [name])
                        sets = whole[name][0][-1]
                        changed(whole, name, ("deleted", sets))
                        changed(metadata, name, ("deleted", sets))
                    case ("sweep",):
                        tx.sweep()
        for told, only in ((whole, False), (metadata, True)):
            _holds(store, told, left, only)


def within(spec: str | None, sets: tuple[str, ...]) -> bool:
    return spec is None or any(f"{one}:".startswith(f"{spec}:") for one in sets)


def _holds(
    store: Store, told: dict[str, tuple[Any, int]], left: dict[tuple[str, str], int], only: bool
) -> None:
    """Every window, set and size of page of a list, by the model."""
    expected = [(name, date, state[-1]) for name, (state, date) in told.items()]
    bounds = [None, *(date for _, date, _ in expected)]
    with store.read() as view:
        for since, until, spec in product(bounds, bounds, (None, *SPECS)):
            members = [(name, date) for name, date, sets in expected if within(spec, sets)]
            members += [(name, date) for (name, one), date in left.items() if one == spec]
            wanted = [
                (name, date)
                for name, date in sorted(members, key=lambda member: member[1])
                if (since is None or date >= since) and (until is None or date <= until)
            ]
            where: Any = {"since": since, "until": until, "set_spec": spec, "metadata_only": only}
            assert [(s.identifier, s.datestamp) for s in view.page(100, **where)] == wanted
            assert view.count(**where) == len(wanted)
            paged, after = [], 0
            while rows := view.headers(2, after=after, **where):
                paged += [(row[1], row[2]) for row in rows]
                after = rows[-1][0]
            assert paged == wanted
            gone = {row[1] for row in view.headers(100, **where) if row[3]}
            assert gone >= {
                name for (name, one), date in left.items() if one == spec and (name, date) in wanted
            }
        for name, date, _ in expected:
            stored = view.get(name, metadata_only=only)
            assert stored is not None and stored.datestamp == date


def test_what_a_served_file_is_belongs_to_its_metadata(store: Store, clock: Clock) -> None:
    """Formats for files of web servers, and harvesters that look for changed resources, go by it. Of other
    files, no format shows size and time.
    """
    before = int(clock.now)
    for size in (10, 11):
        clock.now += 5
        told: dict[str, Any] = {
            "size": size,
            "modified": f"2024-01-01T00:00:{size}Z",
            "manifestations": [{"size": size}],
        }
        with store.write() as tx:
            tx.put(
                tx.origin("hierarchy", "h"), [made("a", 1, 1, **told), made("b", 1, 1, headers={}, **told)]
            )
    stamps = {stored.identifier: stored.datestamp for stored in listed(store, metadata_only=True)}
    assert stamps == {"a": before + 5, "b": before + 10}
    assert [stored.datestamp for stored in listed(store)] == [before + 10] * 2


def test_a_commit_that_ran_late_dates_metadata_again(make: Make) -> None:
    class Ticking(Clock):
        def __call__(self) -> float:
            self.now += 0.4
            return self.now

    store = make(clock=Ticking())
    for index in range(1, 9):
        with store.write() as tx:
            tx.put(tx.origin("hierarchy", "h"), [made("a", 1, index), made(f"b{index}", 1, 1)])
    (kept,) = [s for s in listed(store, metadata_only=True) if s.identifier == "a"]
    for only in (False, True):
        found = listed(store, metadata_only=only)
        stamps = [s.datestamp for s in found]
        assert stamps == sorted(stamps)
        for bound in stamps:
            after = [s for s in found if s.datestamp >= bound]
            assert listed(store, since=bound, metadata_only=only) == after
    assert kept.datestamp < listed(store)[-1].datestamp
