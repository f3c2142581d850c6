"""Policies: set by people, compared by machines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.errors import SettingsError
from indlet.text import LANGUAGES, Policy

policies = st.builds(
    Policy,
    language=st.sampled_from(["auto", "", *LANGUAGES]),
    default_language=st.sampled_from(["", *LANGUAGES]),
    stop=st.booleans(),
    stem=st.booleans(),
    positions=st.booleans(),
    prune=st.none() | st.floats(0.01, 1),
    min_length=st.integers(1, 5),
    max_length=st.integers(5, 255),
)


@given(policies)
def test_the_machine_readable_form_tells_everything(policy: Policy) -> None:
    wire = json.dumps(policy.to_json())
    assert Policy.from_json(json.loads(wire)) == policy
    assert Policy.read(wire) == policy
    assert Policy.read(wire.encode()) == policy
    assert Policy.from_json(json.loads(wire)).digest == policy.digest


@pytest.mark.parametrize(
    "change",
    [
        {"language": "de"}, {"default_language": "de"}, {"stop": False}, {"stem": False}, {"positions": True},
        {"prune": 0.4}, {"min_length": 2}, {"max_length": 32}, {"rules": "indlet-text-0"}, {"stops": "00"},
        {"stemmer": "snowball 1.0"},
    ],
)  # fmt: skip
def test_every_choice_moves_the_digest(change: dict[str, Any]) -> None:
    assert replace(Policy(), **change).digest != Policy().digest


def test_what_is_not_used_does_not_move_the_digest() -> None:
    plain = Policy(stop=False, stem=False, language="en")
    assert replace(plain, stemmer="other", stops="00", default_language="de").digest == plain.digest
    assert replace(plain, stop=True, stemmer="other").digest == replace(plain, stop=True).digest
    assert replace(plain, stop=True, stops="00").digest != replace(plain, stop=True).digest


def test_a_digest_is_hexadecimal() -> None:
    assert len(Policy().digest) == 32
    int(Policy().digest, 16)


def test_what_is_left_out_has_its_default() -> None:
    assert Policy.from_json({"stem": False}) == Policy(stem=False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"stemm": True, "lang": "en"}, "'lang', 'stemm'"),
        ({"stem": "yes"}, "stem is 'yes'; give true or false"),
        ({"language": "German"}, "write 'de'"),
        ({"language": "klingon"}, "ISO 639-1"),
        ({"default_language": "auto"}, "default_language is 'auto'"),
        ({"language": 7}, "language is 7"),
        ({"prune": 0}, "prune is 0"),
        ({"prune": 1.5}, "share of terms"),
        ({"prune": True}, "prune is True"),
        ({"prune": float("nan")}, "prune is nan"),
        ({"min_length": 0}, "min_length is 0"),
        ({"max_length": 1000}, "1 to 255"),
        ({"min_length": 9, "max_length": 3}, "swap them"),
        ({"stemmer": "x" * 1000}, "short text"),
    ],
)
def test_what_is_wrong_is_named(data: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match="analysis policy") as caught:
        Policy.from_json(data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "wire",
    [None, "", "nonsense", "[]", "7", "{}", '{"stem": true}', '{"rules": "x", "new": 1}', '{"rules": 3}',
     b"\xff", "[" * 100_000, {"rules": "x", "prune": 2}],
)  # fmt: skip
def test_what_is_no_policy_of_ours_is_unknown(wire: Any) -> None:
    assert Policy.read(wire) is None
