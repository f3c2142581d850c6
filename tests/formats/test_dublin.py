from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from indlet._core import REFINEMENTS
from indlet.formats.dublin import VALUE_LENGTH, VALUES, build_metadata, clean, iso_date
from indlet.formats.metadata import dcterms
from indlet.formats.registry import pairs
from indlet.model import DUBLIN_CORE, Document
from indlet.provider.extract import parts
from indlet.provider.extract.file import File
from indlet.settings import Limits
from indlet.text.language import language_code


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("D:20111220110054-05'00'", "2011-12-20"),
        ("20200724", "2020-07-24"),
        ("1987", "1987"),
        ("26-FEB-1987 15:01:01.79", "1987-02-26"),
        ("9 March 1987", "1987-03-09"),
        ("March 9, 1987", "1987-03-09"),
        ("2004-05-06T12:00:00Z", "2004-05-06"),
        ("2004/5/6", "2004-05-06"),
        ("Mon, 01 Feb 1999 12:00:00 +0100", "1999-02-01"),
        ("Wed Jun 13 00:21:34 +0200 2007", "2007-06-13"),
        ("December 2003", "2003-12"),
        ("c1999.", "c1999."),
        ("0000-00-00", "0000-00-00"),
        ("1999-13-41", "1999-13-41"),
        ("someday", "someday"),
    ],
)
def test_dates(value: str, expected: str) -> None:
    assert iso_date(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("en", "en"), ("en-US", "en"), ("en_GB.UTF-8", "en"), ("eng", "en"), ("English", "en"), ("ger", "de"),
        ("Deutsch", "de"), ("grc", "grc"), ("zxx", ""), ("und", ""), ("C", ""), ("", ""), ("foo bar", ""),
        ("x" * 1000, ""),
    ],
)  # fmt: skip
def test_languages(value: str, expected: str) -> None:
    assert language_code(value) == expected


def test_values_are_bounded_and_distinct() -> None:
    assert len(clean("a " * VALUE_LENGTH)) <= VALUE_LENGTH
    found = build_metadata(
        [("subject", f"s{n}") for n in range(VALUES + 50)] + [("title", " A\n b "), ("title", "A b")]
    )
    assert len(found["subject"]) == VALUES
    assert found["title"] == ["A b"]
    assert list(found) == ["title", "subject"]


@given(st.lists(st.tuples(st.sampled_from(DUBLIN_CORE), st.text(alphabet=st.characters()))))
def test_whatever_comes_in_fits_into_xml(pairs: list[tuple[str, str]]) -> None:
    for values in build_metadata(pairs).values():
        for value in values:
            assert value
            element = etree.Element("x")
            element.text = value
            assert etree.fromstring(etree.tostring(element)).text == value


TERMS = "http://purl.org/dc/terms/"


@pytest.mark.parametrize(("term", "element"), REFINEMENTS)
def test_every_reader_knows_every_refinement(term: str, element: str) -> None:
    value = "2004-05-06" if element == "date" else "http://example.org/x"
    xml = f'<x:holder xmlns:x="urn:x" xmlns:t="{TERMS}"><t:{term}>{value}</t:{term}></x:holder>'.encode()
    page = f'<html><title>t</title><meta name="DCTERMS.{term}" content="{value}">'.encode()
    harvested = dict(pairs(etree.fromstring(xml)))
    assert harvested == {element: value}
    for data in (xml, page):
        (document,) = parts(File(data, "x", Limits()))
        assert isinstance(document, Document)
        assert value in document.metadata[element]
    (statement,) = dcterms.FORMAT.read(etree.fromstring(xml)).statements
    assert (statement.element, statement.refinement) == (element, term)
