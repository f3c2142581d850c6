"""Quotas of the JSON API: with a key, without one, and by the hour; examples with this node's address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.errors import SettingsError
from indlet.settings import Api, ApiKey
from indlet.settings.file import from_mapping
from indlet.store import Store
from indlet.web.api_keys import HOUR, ApiKeys

KEY = "k" * 20
ASK = "/api/search?q=*"


def client_with(store: Store, folder: Path, anonymous: int, *keys: ApiKey) -> TestClient:
    settings = replace(settings_for(folder), api=Api(anonymous), api_key=keys)
    return make_client(store, settings)


def test_a_key_has_a_quota_and_so_has_who_has_none(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        client = client_with(store, tmp_path, 2, ApiKey("partner", KEY, 3))
        answers = [client.get(ASK, headers={"x-api-key": KEY}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[0].headers["ratelimit-remaining"] == "2"
        assert 0 < int(answers[3].headers["retry-after"]) <= HOUR
        assert answers[3].headers["content-type"] == "application/problem+json"
        assert "more than 3 requests in an hour" in answers[3].json()["detail"]
        assert [client.get(ASK).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get(ASK, headers={"x-api-key": "guess"}).status_code == 401
        assert client.options(ASK).status_code == 204
        assert client.get("/?q=*").status_code == 200, "readers have no quota"
        page = client.get("/api/").text
        assert "X-API-Key: YOUR_KEY" in page and "2 requests per hour" in page


def test_a_node_may_answer_keys_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        client = client_with(store, tmp_path, 0, ApiKey("partner", KEY, -1))
        assert client.get(ASK).status_code == 401
        answer = client.get(ASK, headers={"x-api-key": KEY})
        assert answer.status_code == 200 and "ratelimit-limit" not in answer.headers
        assert "needs a key" in client.get("/api/").text


def test_without_settings_nothing_is_counted(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        client = client_with(store, tmp_path, -1)
        answer = client.get(ASK)
        assert answer.status_code == 200 and "ratelimit-limit" not in answer.headers
        page = client.get("/api/").text
        assert f"curl &#39;{settings_for(tmp_path).base_url()}/api/search" in page and "YOUR_KEY" not in page


def test_a_new_hour_begins_anew(tmp_path: Path) -> None:
    now = [7 * HOUR - 1.0]
    settings = replace(settings_for(tmp_path), api=Api(1))
    keys = ApiKeys(settings, lambda: now[0])
    scope = {"type": "http", "headers": [], "client": ("192.0.2.1", 1), "method": "GET"}
    assert keys.refusal(scope)[0] is None and keys.refusal(scope)[0] is not None
    assert keys.refusal(scope)[1].reset == 1
    now[0] += 1
    assert keys.refusal(scope)[0] is None


def test_keys_that_can_be_guessed_are_refused() -> None:
    with pytest.raises(SettingsError, match="fewer than 16"):
        from_mapping({"api_key": [{"name": "x", "key": "short"}]})
