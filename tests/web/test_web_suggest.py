"""Suggestions complete the word that is being typed, and keep everything before it."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("before", ["", "title:", "wing -", "wing (river OR ", "date:1990.. title:", "+"])
def test_a_suggestion_keeps_the_rest_of_the_query(client: TestClient, before: str) -> None:
    q, found, counts = client.get("/suggest", params={"q": f"{before}pres"}).json()
    assert q == f"{before}pres"
    assert f"{before}preservation" in found
    # The number is that of the records which the completed word finds.
    field = "title:" if before.endswith("title:") else ""
    place = found.index(f"{before}preservation")
    total = client.get("/api/search", params={"q": f"{field}preservation", "limit": 0}).json()["total"]
    assert int(counts[place]) == total


def test_what_no_word_can_complete_gets_no_suggestion(client: TestClient) -> None:
    for q in ("source:nor", "doi:10", "x", "pres ", ""):
        assert client.get("/suggest", params={"q": q}).json()[1] == []
