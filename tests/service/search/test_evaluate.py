"""Topics and judgements in the forms that people have them in, and measures worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from indlet.errors import SettingsError
from indlet.service.search.evaluate import (
    Judgement,
    Named,
    Topic,
    evaluate,
    matcher,
    read_judgements,
    read_topics,
)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "1", "text": "wing flutter"}\n{"id": 2, "text": "heat"}\n',
        '{"qid": 1, "query": "wing flutter"}\n\n{"_id": "2", "title": "heat"}',
        "1\twing flutter\n2\theat\n",
        "<top>\n<num> Number: 1\n<title> Topic: wing\nflutter\n<desc> x\n</top>\n"
        "<top><num>2</num><title>heat</title></top>",
    ],
)
def test_topics(tmp_path: Path, text: str) -> None:
    (tmp_path / "topics").write_text(text)
    assert read_topics(tmp_path / "topics") == [Topic("1", "wing flutter"), Topic("2", "heat")]


def test_judgements(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 184 1\n1\t0\t29\t-1\n\n2 Q0 x 2.0 extra\n3 y 1\n")
    assert read_judgements(tmp_path / "qrels") == [
        Judgement("1", "184", 1), Judgement("1", "29", 0), Judgement("2", "x", 2), Judgement("3", "y", 1),
    ]  # fmt: skip


def test_a_line_ends_where_it_ends(tmp_path: Path) -> None:
    (tmp_path / "topics").write_text(
        '{"id": 1, "text": "boundary\u2028layer"}\r\n\n{"id": 2, "text": "\x85"}'
    )
    assert read_topics(tmp_path / "topics") == [Topic("1", "boundary\u2028layer"), Topic("2", "\x85")]


@pytest.mark.parametrize("text", ["", "   \n", "no tab here", '{"id": 1}', "{broken"])
def test_what_is_no_topic_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "topics").write_text(text)
    with pytest.raises(SettingsError, match="topic"):
        read_topics(tmp_path / "topics")


@pytest.mark.parametrize("text", ["", "1 0 x high", "1 0", "1 0 x inf"])
def test_what_is_no_judgement_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "qrels").write_text(text)
    with pytest.raises(SettingsError, match="judgement"):
        read_judgements(tmp_path / "qrels")


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (Named("184", 1.0), "184"),
        (Named("oai:cran:184", 1.0), "184"),
        (Named("oai:node:docs/184", 1.0), "184"),
        (Named("http://x.example/docs/184.txt", 1.0), "184"),
        (Named("oai:x:abc", 1.0, ("ISBN", "http://x.example/184/")), "184"),
        (Named("oai:x:abc", 1.0), "oai:x:abc"),
    ],
)
def test_judged_documents_are_found_by_any_of_their_names(record: Named, name: str) -> None:
    assert matcher(frozenset(["184"]))(record) == name


def test_a_pattern_says_where_the_name_is() -> None:
    assert matcher(frozenset(), r"doc-(\d+)")(Named("oai:x:doc-12/v1", 1.0)) == "12"
    with pytest.raises(SettingsError, match="no regular expression"):
        matcher(frozenset(), "(")


def test_measures_are_those_worked_out_by_hand() -> None:
    judgements = [
        Judgement("1", "a", 1),
        Judgement("1", "b", 1),
        Judgement("1", "c", 0),
        Judgement("9", "z", 0),
    ]
    ranked = [Named("oai:x:a", 3.0), Named("oai:x:c", 2.0), Named("oai:x:b", 1.0), Named("oai:y:a", 0.5)]
    rows = evaluate(["m"], [Topic("1", "q"), Topic("9", "no relevant one")], judgements, lambda *_: ranked)
    (row,) = rows
    assert row.topics == 1
    assert math.isclose(row.measures["MAP"], (1 / 1 + 2 / 3) / 2)
    assert math.isclose(row.measures["P@10"], 2 / 10)
    assert math.isclose(row.measures["R@100"], 1.0)
    ideal = 1 + 1 / math.log2(3)
    assert math.isclose(row.measures["nDCG@10"], (1 + 1 / math.log2(4)) / ideal)


def test_files_that_do_not_belong_together_are_told() -> None:
    with pytest.raises(SettingsError, match="same names"):
        evaluate(["m"], [Topic("1", "q")], [Judgement("T1", "a", 1)], lambda *_: [])
