"""Every state of a result page is an address, and every address a state."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

import indlet.web
from indlet.web.i18n import LANGUAGES, chosen, strings
from indlet.web.search_url import FILTERS, ORDERS, State, page_list, plain_words
from indlet.web.svg import bars, histogram, line, movements, shares

MODELS = ("bm25", "vsm")
words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=12)
states = st.builds(
    State,
    q=st.lists(words, max_size=3).map(" ".join),
    model=st.sampled_from(MODELS),
    sort=st.sampled_from(ORDERS),
    page=st.integers(1, 999),
    filters=st.lists(st.tuples(st.sampled_from(FILTERS), words), max_size=4, unique=True).map(tuple),
    since=st.none() | st.integers(0, 9999),
    until=st.none() | st.integers(0, 9999),
)


@given(states)
def test_a_state_survives_its_address(state: State) -> None:
    address = state.link(page=state.page)
    found = State.of(QueryParams(urlsplit(address).query), MODELS, "bm25")
    assert found == state or " ".join(state.q.split()) != state.q


@given(states, st.sampled_from(FILTERS), words)
def test_toggling_twice_changes_nothing(state: State, facet: str, value: str) -> None:
    once = State.of(QueryParams(urlsplit(state.toggled(facet, value)).query), MODELS, "bm25")
    twice = State.of(QueryParams(urlsplit(once.toggled(facet, value)).query), MODELS, "bm25")
    assert set(twice.filters) == set(state.filters)
    assert once.page == 1


def test_nonsense_falls_back_to_the_usual() -> None:
    found = State.of(QueryParams("q=a&model=x&sort=y&page=-3&since=abc&until=99999&page=2"), MODELS, "bm25")
    assert (found.model, found.sort, found.since, found.until) == ("bm25", "score", None, None)
    assert State.of(QueryParams("page=99999999999"), MODELS, "bm25").page == 1


def test_years_become_a_range() -> None:
    assert State(since=1990).chosen() == {"date": ["1990.."]}
    assert State(until=99).chosen() == {"date": ["..0099"]}


def test_pages_around_this_one() -> None:
    assert page_list(1, 1) == [1]
    assert page_list(5, 9) == [1, None, 3, 4, 5, 6, 7, None, 9]


def test_plain_words_of_a_broken_query() -> None:
    assert plain_words('(title:"shock wave AND -drag') == "title shock wave drag"


# Pictures


@given(st.dictionaries(st.integers(1, 2100), st.integers(1, 1000), min_size=1))
def test_a_histogram_shows_every_record_once(counts: dict[int, int]) -> None:
    picture = histogram(counts)
    assert picture is not None
    assert sum(bar.count for bar in picture.bars) == sum(counts.values())
    assert len(picture.bars) <= 41
    assert all(bar.x >= 0 and bar.x + bar.width <= picture.width + 0.1 for bar in picture.bars)
    assert max(bar.height for bar in picture.bars) == picture.height


@given(st.lists(st.tuples(words, st.floats(-5, 50)), max_size=6))
def test_shares_fill_the_bar(parts: list[tuple[str, float]]) -> None:
    found = shares(parts)
    assert len(found) == sum(value > 0 for _, value in parts)
    if found:
        assert abs(sum(s.share for s in found) - 1) < 1e-9


def test_lines_bars_and_movements() -> None:
    drawn = line([(0, 1), (10, 3)])
    assert drawn is not None and drawn.high == 3 and drawn.last == 3 and line([]) is None
    assert line([(5, 0)]) is not None
    assert [row.width for row in bars([("a", 2.0, 1), ("b", 1.0, 1)], width=100)] == [100, 50]
    moved = movements(["a", "b", "c"], ["b", "a", "d"], 10, 5)
    assert {(m.identifier, m.change, m.kind) for m in moved} == {("a", -1, "down"), ("b", 1, "up")}


# Strings


def keys_asked_for() -> set[str]:
    folder = Path(indlet.web.__file__).parent
    text = "".join(p.read_text(encoding="utf-8") for p in [*folder.rglob("*.html"), *folder.rglob("*.py")])
    return set(re.findall(r"\bt\(\s*['\"]([\w.]+)['\"]", text))


def test_all_languages_say_the_same() -> None:
    english = strings("en").table
    for code in LANGUAGES:
        table = strings(code).table
        assert table.keys() == english.keys()
        for key, text in table.items():
            assert text.strip(), key
            assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", english[key])), key


def test_every_string_that_is_asked_for_exists() -> None:
    table = strings("en").table
    missing = {
        k for k in keys_asked_for() if k not in table and f"{k}_one" not in table and not k.endswith(".")
    }
    assert not missing


def test_no_string_is_left_over() -> None:
    folder = Path(indlet.web.__file__).parent
    text = "".join(p.read_text(encoding="utf-8") for p in [*folder.rglob("*.html"), *folder.rglob("*.py")])
    # Keys that are put together: a stem, then what data or a list says.
    stems = set(re.findall(r"['\"]((?:\w+\.)+)['\"]\s*[~+]", text)) | set(
        re.findall(r"f['\"]((?:\w+\.)+){", text)
    )
    asked = keys_asked_for()
    left = [
        key
        for key in strings("en").table
        if key not in asked
        and key.rpartition("_")[0] not in asked
        and not any(key.startswith(stem) for stem in stems)
        and f"'{key}'" not in text
        and f'"{key}"' not in text
    ]
    assert not left


def test_numbers_and_spans_in_words() -> None:
    english, german = strings("en"), strings("de")
    assert english("search.total", n=1) == "1 record"
    assert english("search.total", n=1234) == "1,234 records"
    assert german("search.total", n=1234) == "1.234 Datensätze"
    assert german.decimal(1234.5) == "1.234,5"
    assert english.ago(7200) == "2 hours"
    assert english.size(1_500_000) == "1.5 MB"
    assert english.day(0) == "1 January 1970"


def test_the_language_of_a_page() -> None:
    assert chosen("de", "en", "en") == "de"
    assert chosen(None, "de", "en") == "de"
    assert chosen(None, None, "fr;q=1, de-AT;q=0.8, en;q=0.5") == "de"
    assert chosen("xx", None, "de;q=0, *;q=nonsense") == "en"
