"""Suggestions complete the word that is being typed, and keep everything before it."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("before", ["", "title:", "wing -", "wing (river OR ", "date:1990.. title:", "+"])
def test_a_suggestion_keeps_the_rest_of_the_query(client: TestClient, before: str) -> None:
    q, found, counts = client.get("/suggest", params={"q": f"{before}pres"}).json()
    assert q == f"{before}pres"
    assert f"{before}preservation" in found
    # The number is that of the records which the completed query finds.
    place = found.index(f"{before}preservation")
    total = client.get("/api/search", params={"q": _closed(f"{before}preservation"), "limit": 0}).json()[
        "total"
    ]
    assert int(counts[place]) == total


def test_what_no_word_can_complete_gets_no_suggestion(client: TestClient) -> None:
    for q in ("source:nor", "doi:10", "x", "pres ", ""):
        assert client.get("/suggest", params={"q": q}).json()[1] == []


def _closed(q: str) -> str:
    return q + ")" * (q.count("(") - q.count(")"))


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("field sta", 'creator:"Field Station North"'),
        ("creator:field", 'creator:"Field Station North"'),
        ('river creator:"field', 'river creator:"Field Station North"'),
        ("river field", 'river +creator:"Field Station North"'),
    ],
)
def test_people_are_proposed_and_the_rest_of_the_query_stays(
    client: TestClient, typed: str, completed: str
) -> None:
    found = client.get("/api/suggest", params={"q": typed}).json()["completions"]
    people = {one["query"]: one for one in found if one["kind"] == "person"}
    total = client.get("/api/search", params={"q": completed, "limit": 0, "sort": "newest"}).json()["total"]
    assert people[completed]["records"] == total > 0


def test_titles_are_proposed_and_found_by_what_is_proposed(client: TestClient) -> None:
    found = client.get("/api/suggest", params={"q": "opera prod"}).json()["completions"]
    titles = [one for one in found if one["kind"] == "title"]
    assert titles
    for one in titles:
        assert one["word"].startswith("Opera production")
        answer = client.get("/api/search", params={"q": one["query"], "limit": 1}).json()
        assert answer["total"] == one["records"]
        assert answer["hits"][0]["metadata"]["title"] == [one["word"]]


def test_stems_are_not_proposed(client: TestClient) -> None:
    for typed in ("pre", "obsol", "tur", "repos"):
        for one in client.get("/api/suggest", params={"q": typed}).json()["completions"]:
            assert one["word"] not in ("preserv", "obsolesc", "turbul", "repositori"), one
            assert one["records"] > 0
