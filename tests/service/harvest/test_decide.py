"""What to do next, as pure logic: no network, no clock, every course comes to an end, and a true one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from hypothesis import example, given, settings
from hypothesis import strategies as st

from indlet import datestamps as dates
from indlet.service.harvest.decide import arguments, resume, step, window_done
from indlet.service.harvest.listing import ListedPages
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run_state import (
    Action,
    Ask,
    Checked,
    CheckState,
    Compare,
    Cursor,
    Event,
    Failed,
    Fetch,
    Listed,
    ListState,
    Overview,
    ProbeState,
    Rules,
    RunState,
    SourceTraits,
    Stop,
    Tally,
    Window,
    from_json,
    phase,
    to_json,
)
from indlet.service.harvest.source_state import SourceState

RULES = Rules(retries=2, backoff_seconds=1, backoff_limit_seconds=8, retry_after_limit_seconds=60)
SOURCE = SourceTraits("2024-01-01T00:00:00Z", True)
NOW = "2024-02-01T00:00:00Z"


def after(course: RunState, *events: Event) -> tuple[RunState, Action]:
    action: Action = Ask()
    for event in events:
        course, action = step(course, event, SOURCE, RULES)
    return course, action


def test_a_plain_list_is_followed_to_its_end() -> None:
    course, action = after(ListState(), Listed(10, "t1", 25, response_date=NOW))
    assert action == Ask()
    assert arguments(course, {"metadataPrefix": "oai_dc"}) == {"verb": "ListRecords", "resumptionToken": "t1"}
    course, action = after(course, Listed(10, "t2", 25, response_date="later"), Listed(5, "", 25))
    assert action == Stop(True)
    assert course.overview.first_response == NOW


def test_nothing_new_is_no_failure() -> None:
    course, action = after(ListState(), Failed("nothing", response_date=NOW))
    assert action == Stop(True)
    assert course.overview.first_response == NOW


def test_waits_double_honour_retry_after_and_end() -> None:
    course: RunState = ListState(cursor=Cursor("t"))
    waits = list[Action]()
    for _ in range(3):
        course, action = step(course, Failed("later"), SOURCE, RULES)
        waits.append(action)
    assert waits == [Ask(1.0), Ask(2.0), Stop(False, "", resumable=True)]
    assert course.cursor.token == "t"
    assert after(ListState(), Failed("later", retry_after=30))[1] == Ask(30)
    _, action = after(ListState(), Failed("later", "busy", retry_after=61))
    assert isinstance(action, Stop) and action.resumable and "61 s" in action.reason


def test_who_asks_for_no_time_is_given_some() -> None:
    course, action = after(ListState(), Failed("later", retry_after=0))
    assert action == Ask(1.0)
    assert after(course, Failed("later", retry_after=0))[1] == Ask(2.0)


def test_silence_is_met_twice_more_then_the_list_is_checked_once() -> None:
    patient = Rules(retries=6, backoff_seconds=1)
    course: RunState = ListState()
    waits = list[Action]()
    for _ in range(4):
        course, action = step(course, Failed("silent", "no byte"), SOURCE, patient)
        waits.append(action)
    assert waits == [Ask(1.0), Ask(2.0), Ask(), Stop(False, "no byte", resumable=True)]
    assert phase(course) == "check"


def test_lists_that_are_refused_as_too_long_are_cut_down_to_the_second() -> None:
    stamps = sorted([f"2024-01-10T10:00:{i:02d}Z" for i in range(60)] + ["2020-01-01T00:00:00Z"] * 3)
    course: RunState = ListState()
    had = list[str]()
    action: Action = Ask()
    for _ in range(500):
        if isinstance(action, Stop):
            break
        since, until = course.overview.windows[0].since, course.overview.windows[0].until
        found = [
            s for s in stamps if since <= s <= (f"{until}T23:59:59Z" if len(until) == 10 else until or "3")
        ]
        event: Event = Listed(len(found), None, response_date=NOW)
        if len(found) > 10:
            event = Failed("argument", "too many", response_date=NOW)
        elif not found:
            event = Failed("nothing", response_date=NOW)
        else:
            had += found
        course, action = step(course, event, SourceTraits("", True), RULES)
    assert action == Stop(True)
    assert sorted(set(had)) == sorted(set(stamps))


def test_a_refused_token_is_spelt_otherwise_then_the_list_begins_again() -> None:
    course: RunState = ListState(cursor=Cursor("a+b", pages=1), tally=Tally(10))
    course, action = after(course, Failed("token", spellings=2))
    assert (action, course.cursor.spelling, course.cursor.token) == (Ask(), 1, "a+b")
    course, action = after(course, Failed("token", spellings=2))
    assert (action, course.cursor.token, course.cursor.restarts) == (Ask(), "", 1)


def test_an_ordered_list_begins_again_at_its_newest_datestamp_if_its_size_can_tell() -> None:
    page = Listed(
        10, "t", 30, response_date=NOW, lowest="2024-01-01T00:00:00Z", highest="2024-01-05T00:00:00Z"
    )
    course, action = after(ListState(), page, Failed("token"))
    assert action == Ask()
    assert course.overview.windows == (Window("2024-01-05T00:00:00Z", ""),)
    sound, action = after(course, Listed(10, "u", 21))
    assert (action, phase(sound)) == (Ask(), "list")
    doubtful, action = after(course, Listed(10, "u", 12))  # 20 are owed, and the one at the newest datestamp
    assert (phase(doubtful), doubtful.overview.windows) == ("check", (Window("", ""),))


def test_a_list_in_circles_is_over_if_all_has_come_and_checked_if_not() -> None:
    _, action = after(ListState(cursor=Cursor("t"), tally=Tally(10, 10)), Listed(10, "t", 10, seen=True))
    assert action == Stop(True)
    course, action = after(ListState(cursor=Cursor("t"), tally=Tally(10)), Listed(10, "t", seen=True))
    assert (action, phase(course)) == (Ask(), "check")


def test_a_check_that_misses_few_fetches_them_and_one_that_misses_many_splits() -> None:
    course: RunState = CheckState(Overview(first_response=NOW))
    assert after(course, Listed(10), Checked(3))[1] == Fetch()
    split, action = after(course, Checked(5000))
    assert action == Ask()
    assert [
        w.until < v.since for w, v in zip(split.overview.windows, split.overview.windows[1:], strict=False)
    ] == [True]
    assert (split.overview.windows[0].since, split.overview.windows[-1].until) == ("", ""), (
        "open ends stay open"
    )


def test_a_source_that_has_no_list_of_identifiers_is_split() -> None:
    course, action = after(
        CheckState(Overview(first_response=NOW), Cursor(pages=2)), Failed("fatal", "badVerb")
    )
    assert (action, phase(course), len(course.overview.windows)) == (Ask(), "list", 2)


def test_a_gap_ends_the_run_incomplete_but_not_early() -> None:
    second = Window("2024-01-03T00:00:00Z", "2024-01-03T00:00:00Z")
    course: RunState = CheckState(
        Overview((second, Window("2024-01-04T00:00:00Z", "")), splits=1), Cursor("x", pages=3)
    )
    course, action = after(course, *[Failed("broken", "HTTP status 500")] * 3)
    assert action == Ask()
    assert course.overview.windows[0].since == "2024-01-04T00:00:00Z"
    _, action = after(course, Listed(1))
    assert isinstance(action, Stop) and not action.complete and "2024-01-03" in action.reason


# A world of records by second, and a provider with faults of its own


class World:
    """A pure provider: pages of a list, and the faults that a script deals out."""

    def __init__(
        self, stamps: list[int], page: int, script: list[str], poison: int | None,
        cap: int = 10**9, lie: int = 0,
    ) -> None:  # fmt: skip
        self.stamps, self.page, self.script, self.poison = stamps, page, iter(script), poison
        self.cap, self.lie = cap, lie  # the length at which lists end; what their size is wrong by
        self.named: set[int] = set()  # by the last list of identifiers
        self.got: set[int] = set()
        self.checked: set[int] = set()
        self.seen: set[tuple[int, ...]] = set()

    def _matching(self, course: RunState) -> list[int]:
        window = course.parts[course.number] if isinstance(course, ProbeState) else course.overview.windows[0]
        low = _seconds(window.since) if window.since else 0
        high = _seconds(window.until) if window.until else 10**9
        return [i for i, s in enumerate(self.stamps) if low <= s <= high]

    def answer(self, course: RunState) -> Event:
        fault = next(self.script, "")
        if fault == "later":
            return Failed("later", "busy")
        if fault in ("broken", "interrupted"):
            return Failed("broken" if fault == "broken" else "interrupted", fault)
        if fault == "token" and course.cursor.token:
            return Failed("token", "expired")
        if not course.cursor.token:
            self.seen.clear()
            if phase(course) == "check":
                self.named.clear()
        offset = int(course.cursor.token or 0)
        matching = self._matching(course)
        chosen = matching[offset : offset + self.page]
        if not chosen:
            return Failed("nothing", response_date=NOW)
        if self.poison in chosen and phase(course) == "list":
            return Failed("broken", "poison")
        if phase(course) == "list":
            self.got.update(chosen)
        elif phase(course) == "check":
            self.checked.update(chosen)
            self.named.update(chosen)
        end = offset + len(chosen)
        more = end < min(len(matching), self.cap)
        token = (str(end) if more else "") if more or offset or end < len(matching) else None
        if fault == "cut" and more:
            token = None
        stamps = [_stamp(self.stamps[i]) for i in chosen]
        seen = tuple(chosen) in self.seen
        self.seen.add(tuple(chosen))
        size = max(len(matching) + self.lie, 0) if token is not None else None
        ordered = stamps == sorted(stamps)
        newest = stamps.count(max(stamps))
        new = len(set(chosen) - self.named)
        return Listed(len(chosen), token, size, seen, NOW, min(stamps), max(stamps), ordered, newest, new)

    def compared(self) -> Checked:
        listing = ListedPages(True, Progress("world"))
        listing.identifiers = [(str(i), _stamp(self.stamps[i]), False) for i in self.named]
        return Checked(len(self.checked - self.got), *listing.middle(False))


def _stamp(second: int) -> str:
    return dates.write(datetime.fromtimestamp(1704067200 + second, UTC), True)


def _seconds(stamp: str) -> int:
    found = dates.parse(stamp)
    assert found is not None
    return int(found.timestamp()) - 1704067200


def drive(world: World, limit: int = 3000) -> tuple[RunState, Stop, Iterator[float]]:
    course: RunState = ListState()
    waits = list[float]()
    current: Action = Ask()
    for _ in range(limit):
        match current:
            case Stop():
                return course, current, iter(waits)
            case Ask(wait):
                waits.append(wait)
                course = from_json(json.loads(json.dumps(to_json(course))))  # as if killed here
                course, current = step(course, world.answer(course), SOURCE, RULES)
            case Compare():
                course, current = step(course, world.compared(), SOURCE, RULES)
            case Fetch():
                world.got |= world.checked
                course, current = window_done(course)
    raise AssertionError("no end")


@settings(max_examples=150, deadline=None)
@example([1, 1, 0], False, 1, ["", "", "token"], None)
@given(
    st.lists(st.integers(0, 2_000_000), min_size=1, max_size=60),
    st.booleans(),
    st.integers(1, 20),
    st.lists(st.sampled_from(["", "", "", "later", "broken", "interrupted", "token"]), max_size=25),
    st.none() | st.integers(0, 59),
)
def test_whatever_happens_it_ends_and_complete_means_complete(
    stamps: list[int], ordered: bool, page: int, script: list[str], poison: int | None
) -> None:
    world = World(sorted(stamps) if ordered else stamps, page, script, poison)
    _, stop, waits = drive(world)
    if stop.complete:
        assert world.got == set(range(len(stamps)))
    else:
        assert stop.reason
    assert all(0 <= wait <= RULES.backoff_limit_seconds for wait in waits)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 40) | st.integers(0, 2_000_000), min_size=1, max_size=60),
    st.booleans(),
    st.integers(1, 8),
    st.integers(1, 30),
)
def test_lists_that_end_at_some_length_are_had_in_parts_or_the_doubt_is_told(
    stamps: list[int], ordered: bool, page: int, cap: int
) -> None:
    world = World(sorted(stamps) if ordered else stamps, page, [], None, cap=cap)
    course, stop, _ = drive(world, 20_000)
    if stop.complete and not course.overview.unconfirmed:
        assert world.got == set(range(len(stamps)))
        assert not course.overview.size_lies
    elif not stop.complete:
        assert "before their size" in stop.reason


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 40) | st.integers(0, 2_000_000), min_size=1, max_size=60),
    st.booleans(),
    st.integers(1, 8),
    st.integers(-30, 3000),
)
def test_a_size_that_is_wrong_costs_two_more_lists_at_most(
    stamps: list[int], ordered: bool, page: int, lie: int
) -> None:
    world = World(sorted(stamps) if ordered else stamps, page, [], None, lie=lie)
    _, stop, waits = drive(world)
    assert stop == Stop(True)
    assert world.got == set(range(len(stamps)))
    # List, check, and the identifiers in three parts at most, each of which may end in a page of its own.
    assert len(list(waits)) <= 3 * -(-len(stamps) // page) + 3


def test_a_probe_that_was_interrupted_begins_with_its_check() -> None:
    course: RunState = CheckState(Overview(first_response=NOW), Cursor(pages=1), Tally(5, 9))
    course, _ = after(course, Checked(0, "2024-01-05T00:00:00Z"))
    course, action = window_done(course)
    assert (action, phase(course)) == (Ask(), "probe")
    assert arguments(course, {})["until"] == "2024-01-04T23:59:59Z"
    again, action = resume(course)
    assert (action, phase(again), again.overview.windows) == (Ask(), "check", (Window("", ""),))
    assert resume(ListState(Overview(())))[1] == Stop(True), (
        "killed after the last page, before the end was written"
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2_000_000), min_size=1, max_size=60), st.integers(1, 20))
def test_without_faults_every_record_comes_in_as_few_requests_as_there_are_pages(
    stamps: list[int], page: int
) -> None:
    world = World(stamps, page, [], None)
    _, stop, waits = drive(world)
    assert stop == Stop(True)
    assert len(list(waits)) == -(-len(stamps) // page)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.booleans())
def test_two_halves_make_the_whole(a: int, b: int, seconds: bool) -> None:
    low, high = sorted((a, b))
    since = dates.write(datetime.fromtimestamp(low, UTC), seconds)
    until = dates.write(datetime.fromtimestamp(high, UTC), seconds)
    found = dates.middle(since, until)
    if since == until:
        assert found is None
    else:
        assert found is not None
        assert since <= found[0] < found[1] <= until
        one, other = dates.parse(found[0]), dates.parse(found[1])
        assert one and other
        assert (other - one).total_seconds() == (1 if seconds else 86400)


def test_retry_after_in_both_forms() -> None:
    now = datetime(2024, 1, 1, tzinfo=UTC)
    assert dates.retry_after("120", now) == 120
    assert dates.retry_after("Mon, 01 Jan 2024 00:00:30 GMT", now) == 30
    assert dates.retry_after("Mon, 01 Jan 2020 00:00:30 GMT", now) == 0
    assert dates.retry_after("soon", now) is None
    assert dates.retry_after(None, now) is None


def test_refused_tokens_and_lists_that_cannot_be_checked_come_to_an_end() -> None:
    """All of one second, ten a page: no token is accepted, no list of identifiers is had."""
    stamp = "2024-01-05T00:00:00Z"
    page = Listed(10, "t", 25, response_date=NOW, lowest=stamp, highest=stamp, at_highest=10)
    for answer in (Failed("argument", "too long"), Failed("broken", "500"), Failed("token", "which?")):
        course: RunState = ListState()
        steps = 0
        action: Action = Ask()
        while not isinstance(action, Stop) and steps < 1000:
            steps += 1
            since, until = course.overview.windows[0].since, course.overview.windows[0].until or "3"
            event: Event = answer
            if phase(course) == "list" and course.cursor.token:
                event = Failed("token", "bad")
            elif phase(course) == "list":
                within = since <= stamp and stamp[: len(until)] <= until
                event = page if within else Failed("nothing", response_date=NOW)
            course, action = step(course, event, SOURCE, RULES)
        assert isinstance(action, Stop) and not action.complete


# A run that the version before was in, as it was kept: a list, a check, a probe.
FORMER = {
    "windows": [{"since": "2024-01-01", "until": ""}], "phase": "list", "token": "t|3", "spelling": 1,
    "attempt": 2, "restarts": 1, "pages": 3, "listed": 30, "size": 47, "stale": 0, "empty": 0,
    "ordered": True, "newest": "2024-01-05", "at_newest": 2, "owed": 7, "whole": "2023-01-01",
    "full_page": 10, "first_response": NOW, "splits": 2, "parted": True, "fruitless": 1, "barren": 3,
    "probes": [], "probing": 0, "revealed": 0, "middle": "", "alike": False, "again": True, "constant": False,
    "odd": "", "capped": True, "size_lies": False, "unconfirmed": 1, "unbounded": False, "gaps": ["2023: no"],
}  # fmt: skip


def test_runs_that_the_version_before_kept_are_resumed() -> None:
    overview = Overview(
        (Window("2024-01-01", ""),), NOW, 2, True, 1, 3, capped=True, unconfirmed=1, gaps=("2023: no",)
    )
    listing = from_json(json.loads(json.dumps(FORMER)))
    assert listing == ListState(
        overview,
        Cursor("t|3", 1, 2, 3, 1),
        Tally(30, 47, full_page=10, newest="2024-01-05", at_newest=2, retried=True),
        expected=7,
        whole_since="2023-01-01",
    )
    assert resume(listing) == (listing, Ask())
    assert resume(from_json({**FORMER, "phase": "check", "odd": "refused"})) == (CheckState(overview), Ask())
    probe = from_json({**FORMER, "phase": "probe", "probes": [{"since": "", "until": "2024"}], "revealed": 4})
    assert isinstance(probe, ProbeState)
    assert (probe.parts, probe.revealed) == ((Window("", "2024"),), 4)
    assert resume(probe) == (CheckState(overview), Ask())


def test_what_is_remembered_of_a_source_is_read_as_the_version_before_wrote_it() -> None:
    former = {
        "url": "http://x/oai", "shape": ["http://x/oai", "oai_dc", "", "", "digest", ""], "format": "oai_dc",
        "identified": True, "name": "X", "deleted_record": "no", "granularity": "day", "policy": None,
        "loss": ["stems"], "reconciliation": "own analysis", "marks": {"": NOW}, "vague": 86400,
        "reconciled": NOW, "sets": {"asked": NOW, "nameless": 2}, "size_lies": True, "repairs": {"502": 3},
        "last": {"at": NOW, "outcome": "complete", "reason": "", "records": 3, "deleted": 0, "failed": 1},
        "removed": True, "run": {"key": ["", "", ""], "asked": NOW, "course": FORMER},
    }  # fmt: skip
    state = SourceState.from_json(former)
    assert state.shape is not None and state.shape.own_policy == "digest"
    assert state.run is not None and state.run.state == from_json(FORMER)
    assert (state.last and state.last.failed, state.sets and state.sets.nameless) == (1, 2)
    written = json.loads(json.dumps(state.to_json()))
    assert SourceState.from_json(written) == state
    same = former.keys() - {"run", "policy", "last"}
    assert {key: written[key] for key in same} == {key: former[key] for key in same}
    assert SourceState.from_json(state.to_json() | {"run": {"course": {"phase": "?"}}}).run is None
    assert (
        SourceState.from_json({"run": {"key": [], "asked": "", "course": {"windows": [{"x": 1}]}}}).run
        is None
    )
    assert SourceState.from_json({}).to_json() == {}
