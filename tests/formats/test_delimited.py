"""Delimited text that a table describes: what is written is read back, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.errors import SettingsError
from indlet.exchange.write_out import write_out
from indlet.formats import crosswalk
from indlet.formats.record import Broken, Field, MetadataFormat
from indlet.formats.tagged import text_format
from indlet.settings import Settings, Write
from indlet.store import open_store

TABLE = (
    "!form\tdelimited\n{more}"
    "Key\t\t\trecord.identifier\t\tboth\n"
    "Title\t\t\ttitle\t\tboth\n"
    "Authors\t\t\tcreator\t\tboth\n"
    "Link\t\t\tidentifier\t\tboth\n"
)


def table(more: str = "") -> MetadataFormat:
    return text_format(crosswalk.parse(TABLE.format(more=more), "reports"), "table:reports", "reports")


def values(metadata: MetadataFormat, text: str) -> list[list[tuple[str, str]] | str]:
    return [
        one.reason if isinstance(one, Broken) else [(field.tag, field.value) for field in one]
        for one in metadata.load(text.encode())
    ]


def test_a_semicolon_in_a_title_an_address_or_a_key_is_text() -> None:
    row = 'a;1,Wings; a study,"Wells, Ada; Nuñez, B.",http://example.org/x;jsessionid=1\n'
    assert values(table(), "Key,Title,Authors,Link\n" + row) == [
        [
            ("Key", "a;1"),
            ("Title", "Wings; a study"),
            ("Authors", "Wells, Ada"),
            ("Authors", "Nuñez, B."),
            ("Link", "http://example.org/x;jsessionid=1"),
        ]
    ]


def test_a_table_says_which_columns_hold_several_values() -> None:
    metadata = table("!several\tTitle | Link\n")
    assert values(metadata, "Key,Title,Authors,Link\n1,A;B,C;D,E\n") == [
        [("Key", "1"), ("Title", "A"), ("Title", "B"), ("Authors", "C;D"), ("Link", "E")]
    ]


TEXTS = st.text(st.sampled_from('ab;\\,"  \n'), min_size=1, max_size=12).map(lambda s: " ".join(s.split()))


@given(TEXTS.filter(bool), st.lists(TEXTS.filter(bool), max_size=3), TEXTS)
def test_what_is_written_is_read_back(title: str, authors: list[str], link: str) -> None:
    metadata = table()
    fields = [Field("Title", title), *(Field("Authors", one) for one in authors)]
    fields += [Field("Link", link)] if link else []
    data = metadata.around[0] + metadata.pack(fields)
    assert list(metadata.load(data)) == [fields]


def test_a_misspelt_column_is_told_and_no_record_is_taken() -> None:
    (problem,) = values(table(), "Key,Titel,Authors,Link\n1,Wings,Wells,x\n")
    assert "knows 'Titel', and there is no column 'Title'" in str(problem)
    (page,) = values(table(), "<!DOCTYPE html>\n<title>502</title>\n")
    assert isinstance(page, str)
    more = "Key,Title,Authors,Link,Shelf\n1,Wings,Wells,x,7\n"
    warning, record = values(table(), more)
    assert "no row of the table knows 'Shelf'" in str(warning)
    assert isinstance(record, list)  # a record keeps what no row reads
    assert isinstance(values(table("!ignore\tShelf|x\n"), "Key,Title,Shelf\n1,Wings,7\n")[0], list)


@pytest.mark.parametrize("cut", ['2,"Flut', '2,"Flutter, of', "2,Flut", '2,Flutter,Wells,"http://exam'])
def test_a_row_that_was_cut_is_broken(cut: str) -> None:
    whole = "Key,Title,Authors,Link\n1,Wings,Wells,x\n"
    assert [isinstance(one, str) for one in values(table(), whole + cut)] == [False, True]
    assert [isinstance(one, str) for one in values(table(), whole + "2,Flutter\n")] == [False, False]


def test_a_quote_that_is_never_closed_does_not_swallow_the_rest_in_silence() -> None:
    found = values(table(), 'Key,Title,Authors,Link\n1,"Wings,Wells,x\n2,Flutter,Wells,y\n')
    assert any(isinstance(one, str) for one in found)


def test_records_are_not_written_over_each_other(tmp_path: Path) -> None:
    task = Write(str(tmp_path), path="{source}/{year}")
    with pytest.raises(SettingsError, match=r"add \{name\}"):
        write_out(open_store(tmp_path / "data"), Settings(write=(task,)))
