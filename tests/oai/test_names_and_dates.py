"""Identifiers and setSpecs are valid and unambiguous whatever a path holds; dates mean what they say."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.errors import SettingsError
from indlet.oai.dates import Period, period, written
from indlet.oai.identifier import identifier, repository_identifier, set_name, set_spec
from indlet.settings import Settings
from indlet.settings.file import from_mapping

# oai-identifier.xsd and OAI-PMH.xsd.
IDENTIFIER = re.compile(
    r"oai:[a-zA-Z][a-zA-Z0-9\-]*(\.[a-zA-Z][a-zA-Z0-9\-]*)+:[a-zA-Z0-9\-_.!~*'();/?:@&=+$,%]+", re.ASCII
)
SET_SPEC = re.compile(r"([A-Za-z0-9\-_.!~*'()])+(:[A-Za-z0-9\-_.!~*'()]+)*", re.ASCII)

names = st.text(st.characters(blacklist_characters="/"), min_size=1)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
# With what os.listdir makes of bytes that are not UTF-8.
escapes = (
    st.binary(min_size=1).map(lambda b: b.replace(b"/", b"").decode("utf-8", "surrogateescape")).filter(bool)
)


@given(names, st.one_of(paths, escapes), st.text(max_size=5))
def test_identifiers_are_valid(hierarchy: str, path: str, key: str) -> None:
    assert IDENTIFIER.fullmatch(identifier("x.org", hierarchy, path, key))


@given(st.tuples(names, paths, st.text(max_size=4)), st.tuples(names, paths, st.text(max_size=4)))
def test_no_two_resources_share_an_identifier(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (identifier("x.org", *one) == identifier("x.org", *other)) == (one == other)


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ("reports/wing.pdf", "", "oai:x.org:papers/reports/wing.pdf"),
        ("a b/ä;1?.txt", "", "oai:x.org:papers/a%20b/%C3%A4%3B1%3F.txt"),
        ("reut2-000.sgm", "12/7", "oai:x.org:papers/reut2-000.sgm;12%2F7"),
        ("\udcff", "", "oai:x.org:papers/%FF"),
    ],
)
def test_identifiers_as_they_stand(path: str, key: str, expected: str) -> None:
    assert identifier("x.org", "papers", path, key) == expected


@given(st.lists(st.one_of(st.text(), escapes), min_size=1, max_size=4))
def test_set_specs_are_valid_and_remember_the_name(parts: list[str]) -> None:
    spec = set_spec(parts)
    assert SET_SPEC.fullmatch(spec)
    assert spec.count(":") == len(parts) - 1
    if parts[-1].isprintable() and not re.search("[\ud800-\udfff]", parts[-1]):
        assert set_name(spec) == parts[-1]


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_no_two_folders_share_a_set(one: list[str], other: list[str]) -> None:
    assert (set_spec(one) == set_spec(other)) == (one == other)


def test_sets_as_they_stand() -> None:
    assert set_spec(["papers", "2024 (new)", "a:b", ""]) == "papers:2024!20(new):a!3Ab:!"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"repository": "library.example.org", "base_url": "http://other.org"}, "library.example.org"),
        ({"base_url": "https://Docs.Example.ORG:8443/repo"}, "docs.example.org"),
        ({"base_url": "http://server:8080"}, "server.localdomain"),
        ({"base_url": "http://3d.4u.org"}, "x3d.x4u.org"),
        ({"base_url": "http://localhost:8080"}, "localhost.localdomain"),
        ({"base_url": "http://[::1]:80"}, "localhost.localdomain"),
        ({"base_url": "http://192.0.2.7"}, "ip-192-0-2-7.localdomain"),
        ({"base_url": "http://bücher.example"}, "xn--bcher-kva.example"),
        ({}, "localhost.localdomain"),
    ],
)
def test_the_repository_has_a_domain(node: dict[str, str], expected: str) -> None:
    found = repository_identifier(from_mapping({"node": node}))
    assert found == expected
    assert IDENTIFIER.fullmatch(f"oai:{found}:x")


def test_a_repository_without_a_dot_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"library\.example\.org"):
        repository_identifier(from_mapping({"node": {"repository": "library"}}))
    assert repository_identifier(Settings()) == "localhost.localdomain"


@pytest.mark.parametrize(
    "url", ["library", "ftp://x.org", "http://", "https://x.org?y", "http://[::1", "x.org:80"]
)
def test_a_base_url_that_cannot_be_one_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="public root"):
        repository_identifier(from_mapping({"node": {"base_url": url, "repository": "x.org"}}))


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))  # noqa: DTZ001
def test_dates_come_back(moment: datetime) -> None:
    seconds = int((moment.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    text = written(seconds)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    assert period(text) == Period(seconds, seconds, False)


def test_a_day_lasts_to_its_last_second() -> None:
    assert period("1970-01-02") == Period(86400, 172799, True)


@pytest.mark.parametrize(
    "value",
    ["", "1970", "1970-01", "1970-1-1", "1970-01-01T00:00:00", "1970-01-01T00:00Z", "1970-01-01 00:00:00Z",
     "1970-13-01", "1970-02-30", "1970-01-01T24:00:00Z", "1970-01-01T00:00:60Z", "0000-01-01",
     "１９７０-01-01", "1970-01-01\n", "1970-01-01T00:00:00+00:00"],
)  # fmt: skip
def test_what_is_no_date(value: str) -> None:
    assert period(value) is None
