"""The query language: what a text becomes, and where a fault is pointed at."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indlet.errors import QueryError
from indlet.service.search.lexer import OPEN
from indlet.service.search.query import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PHRASES,
    MAX_PREFIXES,
    All,
    AnyOf,
    Node,
    QueryDates,
    QueryEverything,
    QueryFilter,
    QueryItem,
    QueryPhrase,
    QueryRun,
    Word,
    parse,
    plain,
    words_of,
)


def tree(text: str) -> Node:
    return parse(text).tree


def test_words_side_by_side_are_a_run() -> None:
    assert tree("boundary layer") == QueryRun(
        (QueryItem("", Word("boundary")), QueryItem("", Word("layer", at=9)))
    )


def test_a_single_word_stands_alone() -> None:
    assert tree("  wing ") == Word("wing", at=2)


def test_and_binds_tighter_than_or_and_looser_than_nearness() -> None:
    found = tree("a b AND c OR d")
    assert found == AnyOf(
        (
            All((QueryRun((QueryItem("", Word("a")), QueryItem("", Word("b", at=2)))), Word("c", at=8))),
            Word("d", at=13),
        )
    )


def test_parentheses_regroup() -> None:
    assert tree("a AND (b OR c)") == All((Word("a"), AnyOf((Word("b", at=7), Word("c", at=12)))))


def test_not_and_minus_exclude_and_plus_requires() -> None:
    for text in ("wing NOT flap", "wing -flap"):
        found = tree(text)
        assert isinstance(found, QueryRun)
        assert [(item.sign, item.node.text) for item in found.items if isinstance(item.node, Word)] == [
            ("", "wing"),
            ("-", "flap"),
        ]
    found = tree("+wing flap")
    assert isinstance(found, QueryRun)
    assert found.items[0].sign == "+"


def test_operators_in_lower_case_are_words() -> None:
    found = tree("not wing and flap or")
    assert isinstance(found, QueryRun)
    assert len(found.items) == 5


def test_a_hyphen_inside_or_alone_is_no_sign() -> None:
    assert tree("boundary-layer") == Word("boundary-layer")
    assert tree("time - sharing") == QueryRun(
        (QueryItem("", Word("time")), QueryItem("", Word("sharing", at=7)))
    )


@pytest.mark.parametrize("text", ['"boundary layer"', "“boundary layer”", "«boundary layer»"])
def test_phrases(text: str) -> None:
    assert tree(text) == QueryPhrase("boundary layer")


def test_fields_and_their_other_names() -> None:
    assert tree("title:wing") == Word("wing", "title", at=6)
    assert tree("AUTHOR:prandtl") == Word("prandtl", "creator", at=7)
    assert tree('title:"shock wave"') == QueryPhrase("shock wave", "title", at=6)
    assert tree("title:(shock wave)") == QueryRun(
        (QueryItem("", Word("shock", "title", at=7)), QueryItem("", Word("wave", "title", at=13)))
    )
    assert tree("title:aero*") == Word("aero", "title", prefix=True, at=6)


def test_filters_keep_their_value_as_it_stands() -> None:
    assert tree("set:math:ph") == QueryFilter("set", "math:ph", at=4)
    assert tree('source:"My Library"') == QueryFilter("source", "My Library", at=7)
    assert tree("lang:de") == QueryFilter("language", "de", at=5)
    assert tree("type:Text") == QueryFilter("type", "Text", at=5)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("date:2001", 2001_00_00, 2001_12_31),
        ("year:2001", 2001_00_00, 2001_12_31),
        ("date:2001..2005", 2001_00_00, 2005_12_31),
        ("date:2001..", 2001_00_00, OPEN),
        ("date:..2005", 0, 2005_12_31),
        ("date:..", 0, OPEN),
        ("date:2001-05", 2001_05_00, 2001_05_31),
        ("date:2001-05-07..2002-02", 2001_05_07, 2002_02_31),
        ("date:2004-02-29", 2004_02_29, 2004_02_29),
    ],
)
def test_dates(text: str, low: int, high: int) -> None:
    assert tree(text) == QueryDates(low, high, at=5)


def test_a_lone_star_is_everything() -> None:
    assert tree("*") == QueryEverything()


def test_a_url_and_a_time_are_text() -> None:
    assert tree("http://example.org/a") == Word("http://example.org/a")
    assert tree("12:30") == Word("12:30")


def test_a_field_followed_by_a_space_is_a_word_and_says_so() -> None:
    query = parse("title: wing")
    assert [word.text for word in words_of(query.tree)] == ["title:", "wing"]
    assert "no space" in query.notes[0]


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("... !", 0, "no word"),
        ('wing "shock', 5, "never closed"),
        ("wing (shock", 5, "never closed"),
        ("wing) shock", 4, "nothing was opened"),
        (")", 0, "nothing was opened"),
        ("()", 0, "nothing between"),
        ("wing AND", 5, "to its right"),
        ("(wing AND)", 6, "to its right"),
        ("OR wing", 0, "to its left"),
        ("wing AND OR x", 9, "to its left"),
        ("wing NOT", 5, "to its right"),
        ("wing NOT NOT x", 5, "to its right"),
        ("titel:wing", 0, "did you mean title"),
        ("zzz:wing", 0, "there are title, creator"),
        ('""', 0, "no word"),
        ("w*ng", 1, "only at its end"),
        ("title:*", 6, "beginning of a word"),
        ("date:yesterday", 5, "a date is written"),
        ("date:2001..20x", 11, "a date is written"),
        ("date:2005..2001", 5, "ends before it begins"),
        ("date:2001-13", 5, "no month 13"),
        ("date:2001-02-30", 5, "no day 30"),
        ("title:... x", 6, "needs a word"),
    ],
)
def test_faults_are_pointed_at(text: str, position: int, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as caught:
        parse(text)
    assert caught.value.position == position
    assert str(caught.value).splitlines()[-1] == "  " + " " * position + "^"


def test_bounds() -> None:
    with pytest.raises(QueryError, match="characters"):
        parse("a" * (MAX_LENGTH + 1))
    with pytest.raises(QueryError, match="more than 3 parts"):
        parse("a b c d", max_clauses=3)
    with pytest.raises(QueryError, match="words end in"):
        parse("a* " * (MAX_PREFIXES + 1))
    with pytest.raises(QueryError, match="phrases"):
        parse('"a b" ' * (MAX_PHRASES + 1))
    with pytest.raises(QueryError, match="nested"):
        parse("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1))
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH).tree == QueryRun(
        (QueryItem("", Word("a", at=MAX_DEPTH)),)
    )


def test_plain_takes_any_text_as_words() -> None:
    found = plain('why "does (titel:wing AND NOT - w*ng').tree
    assert [word.text for word in words_of(found)] == [
        "why", '"does', "(titel:wing", "AND", "NOT", "w*ng",
    ]  # fmt: skip


def test_words_of_leaves_out_what_is_excluded() -> None:
    assert [word.text for word in words_of(tree('a -b NOT (c d) (e OR "f g") date:2001'))] == [
        "a",
        "e",
        "f g",
    ]


_PIECES = st.sampled_from(
    ["AND", "OR", "NOT", "(", ")", '"', "“", "+", "-", "*", ":", "..", "title:", "date:", "set:", "zz:",
     "wing", "2001", "2001-05", " ", "\x00", "\ud800", "é", "\n"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=20).map("".join)))
@example("date:0000-02-30")
@example("set:")
@example("-")
@example('title:"')
@example("date:(")
def test_any_text_is_a_tree_or_a_fault_inside_it(text: str) -> None:
    try:
        query = parse(text)
    except QueryError as fault:
        assert 0 <= fault.position <= max(len(text) - 1, 0)
    else:
        assert query.text == text
