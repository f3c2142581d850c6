"""Identifiers and names: however they are written, they meet in one key."""

from __future__ import annotations

import pytest

from indlet.formats.identifiers import address, asked_for, first, key_in, keys_of
from indlet.formats.people import parts, query_keys, record_keys


@pytest.mark.parametrize(
    ("key", "forms"),
    [
        (
            "doi:10.1000/abc(1)",
            "10.1000/ABC(1)|doi:10.1000/abc(1)|DOI: 10.1000/abc(1).|https://doi.org/10.1000/abc(1)|"
            "http://dx.doi.org/10.1000/abc%281%29|info:doi/10.1000/abc(1)|(doi:10.1000/abc(1))|<10.1000/abc(1)>",
        ),
        (
            "isbn:9780306406157",
            "0-306-40615-2|ISBN 0306406152|978-0-306-40615-7|ISBN-13: 978 0 306 40615 7|"
            "urn:isbn:9780306406157",
        ),
        ("issn:0378-5955", "ISSN 0378-5955|issn:03785955|0378-5955"),
        (
            "arxiv:2101.00001",
            "arXiv:2101.00001v2|2101.00001|https://arxiv.org/abs/2101.00001|oai:arXiv.org:2101.00001|"
            "https://arxiv.org/pdf/2101.00001v3.pdf|https://doi.org/10.48550/arXiv.2101.00001",
        ),
        ("arxiv:hep-th/9901001", "hep-th/9901001|arXiv:hep-th/9901001v1"),
        ("hdl:1721.1/34", "hdl:1721.1/34|https://hdl.handle.net/1721.1/34|info:hdl/1721.1/34"),
        ("url:example.org/a/b?x=1", "https://www.example.org/a/b/?x=1|http://example.org:80/a/b?x=1#part"),
        ("oai:x.org:papers/1", "oai:x.org:papers/1|OAI:x.org:papers/1"),
        ("id:w04-1013", "W04-1013"),
    ],
)
def test_every_usual_form_has_one_key(key: str, forms: str) -> None:
    for form in forms.split("|"):
        assert key in asked_for(form), form
        assert key in keys_of(form.strip("<>")), form


@pytest.mark.parametrize(
    ("key", "forms"),
    [
        (
            "doi:10.1000/182",
            "https://doi.org/10.1000%2F182|https://doi.org/10.1000/182?utm_source=mail|doi.org/10.1000/182",
        ),
        ("hdl:1721.1/34", "1721.1/34|Handle 1721.1/34|handle:1721.1/34|dspace.mit.edu/handle/1721.1/34"),
        ("arxiv:2101.00001", "arxiv: 2101.00001|arXiv:2101.00001v2 [cs.CL]|www.arxiv.org/abs/2101.00001"),
        (
            "url:example.org/a/b",
            "example.org/a/b|URL: http://example.org/a/b/|https://example.org/a/b#page=3",
        ),
        (
            "url:127.0.0.1:8080/content/a.pdf",
            "127.0.0.1:8080/content/a.pdf|http://127.0.0.1:8080/content/a.pdf",
        ),
        ("url:localhost:8080/a", "localhost:8080/a|localhost:8080/a/"),
        ("url:example.org", "example.org|www.example.org/"),
        ("issn:0145-0549", "0145-0549|01450549"),
        ("id:open_access_policy", "OPEN_ACCESS_POLICY"),
        ("isbn:9780306406157", "ISBN 0-306-40615-2 (pbk.)"),
        (
            "url:example.org/view?article=7&amp;context=law",  # as Digital Commons states it
            "https://example.org/view?article=7&context=law|example.org/view?article=7&amp;context=law",
        ),
    ],
)
def test_what_people_paste_beside_what_records_state(key: str, forms: str) -> None:
    for form in forms.split("|"):
        assert key in asked_for(form), form


def test_an_identifier_beside_other_words_is_not_the_whole_query() -> None:
    assert asked_for("doi:10.1000/182 date:1900") == [] and asked_for("10.1000/182 parsing") == []


def test_identifiers_inside_an_address_or_a_long_citation() -> None:
    assert "hdl:1721.1/34" in keys_of("http://dspace.mit.edu/handle/1721.1/34")
    long = f"{'Author, A. <http://example.org/a>; ' * 20} ISBN 0306406152 DOI: 10.1000/182"
    assert {"doi:10.1000/182", "isbn:9780306406157"} <= set(keys_of(long))


def test_what_only_looks_like_an_identifier_is_none() -> None:
    assert asked_for("boundary layer") == []
    assert keys_of("0-306-40615-3") == ["id:0-306-40615-3"]  # a wrong check digit
    assert asked_for("1987 2001") == []
    assert key_in("isbn", "wing") == "" and key_in("doi", "wing") == ""
    assert keys_of("") == [] and asked_for("") == []


def test_keys_are_bounded_and_hold_no_space() -> None:
    (key,) = keys_of("Report  number " + "x" * 1000)
    assert len(key) == 120 and " " not in key


def test_where_identifiers_lead() -> None:
    assert address(key_in("doi", "10.1000/A B")) == "https://doi.org/10.1000/a"
    assert address("isbn:9780306406157") == ""
    assert first("doi", ["W04-1013", "https://doi.org/10.1000/X"]) == "10.1000/x"


@pytest.mark.parametrize("name", ["Wang, Wei", "Wei Wang", "WANG, Wei-Ling, 1970-", "Dr. Wei L. Wang"])
def test_ways_to_write_a_name_meet(name: str) -> None:
    assert "wang/wei" in record_keys(name)
    assert "wang/wei" in query_keys(name)


def test_an_initial_stands_for_every_name_that_begins_with_it() -> None:
    def finds(asked: str, written: str) -> bool:
        return not set(query_keys(asked)).isdisjoint(record_keys(written))

    assert finds("Wei Wang", "Wang, W.")
    assert finds("W. Wang", "Wang, Wei") and finds("W. Wang", "Wang, Wenli")
    assert not finds("Wei Wang", "Wang, Wenli") and not finds("Wei Wang", "Wei, Wang")
    assert finds("Jürgen Müller", "Muller, Jurgen") and finds("Jan van der Berg", "van der Berg, Jan")
    assert parts("") == ("", "") and record_keys("…") == []
