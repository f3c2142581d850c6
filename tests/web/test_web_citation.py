"""Metadata is hostile: what becomes of it on pages, in headers and in reference managers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from indlet.service.index.dates import date_number
from indlet.web.citation import Copy, citation, kind_of, manifestations, record_path, safe_url, year_of
from indlet.web.discovery import coins, highwire, json_ld, opensearch, signposting, unapi_formats
from indlet.web.export import EXPORTS, bibtex, dublin_core, ris

HOSTILE = {
    "title": ["</script><script>alert(1)</script> 100% {of} $x_y & \\z"],
    "creator": ["Smith and Sons", 'Q "uote\r\nLink: <evil>'],
    "identifier": [
        "javascript:alert(1)",
        "https://example.org/a b",
        "doi:10.1234/ab<c>",
        "https://ok.example/x",
    ],
    "date": ["1997-05"],
    "type": ["Technical Report"],
    "rights": ["info:eu-repo/semantics/restrictedAccess"],
}


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)",
        "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//a.example/", "http:", "https://", "x", "",
        'https://example.org/"onclick=', "https://example.org/<b>", "http://[::1", None, 7, "\x01http://a.b/",
    ],
)  # fmt: skip
def test_what_must_not_become_a_link(url: object) -> None:
    assert safe_url(url) == ""


@pytest.mark.parametrize("url", ["http://a.example/b", "HTTPS://a.example/?q=1#x", "ftp://a.example/f.pdf"])
def test_what_may_become_a_link(url: str) -> None:
    assert safe_url(url) == url


def test_an_address_written_as_html_leads_where_it_should() -> None:
    stated = "http://a.example/cgi/viewcontent.cgi?article=7&amp;context=faculty"  # Digital Commons
    assert safe_url(stated) == "http://a.example/cgi/viewcontent.cgi?article=7&context=faculty"


@given(st.text(max_size=60))
def test_a_link_is_always_of_a_harmless_scheme(text: str) -> None:
    found = safe_url(text)
    assert not found or re.match(r"(?i)(https?|ftp)://[^\s<>\"']+$", found)


def test_the_owners_copy_is_the_first_safe_address() -> None:
    cited = citation("oai:x:1", HOSTILE, {"url": "javascript:alert(1)"})
    assert cited.url == "https://ok.example/x"
    assert cited.restricted
    assert cited.kind == "report"
    assert cited.year == 1997


def test_manifestations_are_told_by_relations_that_share_the_stem() -> None:
    metadata = {"relation": ["https://x.example/a/r.html", "https://x.example/b/r.html", "nonsense"]}
    cited = citation("i", metadata, {"url": "https://x.example/a/r.pdf", "media_type": "application/pdf"})
    assert [(c.label, c.primary) for c in cited.copies] == [("PDF", True), ("HTML", False)]


@pytest.mark.parametrize("raw", [7, "x", [1], [{"url": 3, "size": "many"}], None])
def test_malformed_properties_do_no_harm(raw: Any) -> None:
    assert citation("i", {}, {"manifestations": raw}).url == ""


def test_json_ld_cannot_close_its_script() -> None:
    text = json_ld(citation("oai:x:1", HOSTILE, {}), "https://p.example/record/x")
    assert "<" not in text and ">" not in text and "&" not in text
    value = json.loads(text)
    assert value["name"] == HOSTILE["title"][0]
    assert value["@type"] == "Report"
    assert value["isAccessibleForFree"] is False


def test_json_ld_tells_people_and_bodies_apart() -> None:
    creators = [
        "Wang, Wei; Jan van der Berg",
        "European Space Agency",
        "NASA, Langley Research Center",
        "Smith, John, University of Leeds",
        "UNESCO",
    ]
    cited = citation("oai:x:1", {"title": ["Wings"], "creator": creators}, {})
    value = json.loads(json_ld(cited, "https://p.example/record/x"))
    assert [(one.get("@type"), one["name"]) for one in value["author"]] == [
        ("Person", "Wang, Wei"),
        ("Person", "Jan van der Berg"),
        ("Organization", "European Space Agency"),
        ("Organization", "NASA, Langley Research Center"),
        ("Person", "Smith, John, University of Leeds"),
        (None, "UNESCO"),
    ]


@given(st.text(max_size=40), st.text(max_size=40))
def test_signposting_stays_one_line_of_ascii(identifier: str, kind: str) -> None:
    properties = {"manifestations": [{"url": "https://x.example/a", "media_type": kind}]}
    header = signposting(citation(identifier, {}, properties), "https://p.example")
    assert header.isascii() and header.isprintable()
    assert 'rel="describedby"' in header and 'rel="item"' in header


def test_highwire_and_coins_name_the_same_work() -> None:
    metadata = {
        "title": ["T"],
        "creator": ["A", "B"],
        "date": ["1999"],
        "publisher": ["P"],
        "type": ["Thesis"],
    }
    cited = citation("i", metadata, {})
    tags = highwire(cited, "https://p.example/record/i")
    assert [v for k, v in tags if k == "citation_author"] == ["A", "B"]
    assert ("citation_dissertation_institution", "P") in tags
    assert "rft.title=T" in coins(cited) and "mtx%3Adissertation" in coins(cited)


def test_bibtex_is_escaped_and_names_are_kept_whole() -> None:
    text = bibtex(citation("oai:x:1", HOSTILE, {}), HOSTILE)
    assert text.startswith("@techreport{")
    assert r"100\% \{of\} \$x\_y \& \textbackslash{}z" in text
    assert "{Smith and Sons}" in text
    assert text.count("{") == text.count("}")


def test_names_are_written_as_reference_managers_read_them() -> None:
    described = {
        "title": ["Wings"],
        "creator": [
            "Austen, Jane, 1775-1817",
            "Augustine, Saint, approximately 354-430",
            "King, Martin Luther, Jr., b. 1929",
            "Jan van der Berg; Wang, Wei",
            "Laboratory for Flight",
            "Oceanview University, Computer Science",
            "King, III, Stephen",
            "Plato, 427-347",
        ],
    }
    cited = citation("oai:x:1", described, {})
    people = "Austen, Jane and Augustine, Saint and King, Jr., Martin Luther"
    people += " and van der Berg, Jan and Wang, Wei"
    bodies = "{Laboratory for Flight} and {Oceanview University, Computer Science}"
    assert f"author = {{{people} and {bodies} and King, III, Stephen and Plato}}" in bibtex(cited, described)
    authors = [line[6:] for line in ris(cited, described).split("\r\n") if line.startswith("AU")]
    assert authors[1:4] == ["Augustine, Saint", "King, Martin Luther, Jr.", "van der Berg, Jan"]
    assert authors[4:7] == ["Wang, Wei", "Laboratory for Flight", "Oceanview University, Computer Science"]


def test_a_brace_without_its_other_does_not_open_the_whole_bibliography() -> None:
    described = {"title": ["sets } and {"], "creator": ["{, A"]}
    text = bibtex(citation("oai:x:1", described, {}), described)
    assert "{sets \\textbraceright{} and \\textbraceleft{}}" in text
    assert text.count("{") == text.count("}")


def test_ris_has_one_tag_a_line() -> None:
    text = ris(citation("oai:x:1", HOSTILE, {}), HOSTILE)
    assert all(re.match(r"[A-Z][A-Z0-9]  - ", line) for line in text.split("\r\n")[:-1])
    assert text.startswith("TY  - RPRT\r\n") and text.endswith("ER  - \r\n")


@given(
    st.dictionaries(
        st.sampled_from(["title", "creator", "subject"]), st.lists(st.text(max_size=30), max_size=3)
    )
)
def test_every_export_can_be_read_back(metadata: dict[str, list[str]]) -> None:
    cited = citation("oai:x:1", metadata, {})
    root = etree.fromstring(dublin_core(cited, metadata).encode("utf-8", "replace"))
    assert len(root) == sum(map(len, metadata.values()))
    for export in EXPORTS.values():
        if export.name != "json" or all(v.isprintable() for vs in metadata.values() for v in vs):
            assert export.write(cited, metadata)


@pytest.mark.parametrize(
    ("identifier", "path"),
    [
        ("oai:a.example:b/c-1", "/record/oai:a.example:b/c-1"),
        ("http://a.example/x", "/record?id=http%3A%2F%2Fa.example%2Fx"),
        ("a/../b", "/record?id=a%2F..%2Fb"),
        ("a?b#c", "/record?id=a%3Fb%23c"),
        ("oai:a:ü", "/record?id=oai%3Aa%3A%C3%BC"),
    ],
)
def test_a_record_has_an_address(identifier: str, path: str) -> None:
    assert record_path(identifier) == path


def test_years_and_kinds() -> None:
    assert year_of(["s.a.", "c1984, printed 1986"]) == 1984
    assert year_of(["12345"]) is None
    # DSpace: when it came, when it could be had, when it was published.
    cited = citation("oai:x:1", {"date": ["2004-08-17", "2003-04"]}, {})
    assert (cited.year, cited.date) == (2003, "2003-04")
    assert kind_of(["info:eu-repo/semantics/doctoralThesis"]) == "thesis"
    assert kind_of([]) == "text"


def test_descriptions_for_machines_are_xml() -> None:
    root = etree.fromstring(
        opensearch("A <name> longer than sixteen", "d & e", "https://p.example", "en").encode()
    )
    namespace = "{http://a9.com/-/spec/opensearch/1.1/}"
    assert root.findtext(f"{namespace}ShortName") == "A <name> longer "
    assert "{searchTerms}" in str(root.find(f"{namespace}Url").get("template"))  # type: ignore[union-attr]
    assert etree.fromstring(unapi_formats('a"b<c').encode()).get("id") == 'a"b<c'


def test_types_as_repositories_write_them() -> None:
    assert kind_of(["Dataset", "untilArticleAppears"]) == "dataset"  # Dryad
    assert kind_of(["Book Section", "PeerReviewed"]) == "chapter"  # EPrints
    assert kind_of(["Yüksek lisans"]) == "thesis"
    assert kind_of(["info:eu-repo/semantics/journalArticle"]) == "article"
    assert kind_of(["Theses and Dissertations"]) == kind_of(["Tesis doctoral"]) == "thesis"
    assert kind_of(["Forschungsbericht"]) == kind_of(["technical_reports"]) == "report"
    assert kind_of(["MovingImage"]) == "video"
    assert kind_of(["StillImage"]) == "image"
    assert citation("oai:x:1", {"type": ["text"], "source": ["Doctoral Dissertations"]}, {}).kind == "thesis"
    assert citation("oai:x:1", {"type": ["article"], "source": ["Theses of Zion"]}, {}).kind == "article"


@pytest.mark.parametrize("name", ["Síntesis", "Hipótesis", "Particle", "Microfilm", "Facebook post"])
def test_a_type_is_told_by_whole_words(name: str) -> None:
    assert kind_of([name]) == "text"


def test_the_year_of_a_record_is_the_one_that_it_is_found_by() -> None:
    dates = ["c. 1900", "1999"]
    cited = citation("oai:x:1", {"date": dates}, {})
    assert cited.year == date_number({"date": dates}) // 10000 == 1999
    assert (cited.date, citation("oai:x:1", {"date": dates[:1]}, {}).year) == ("1999", 1900)


def test_a_copy_of_unknown_format_is_named_by_its_place() -> None:
    assert Copy("https://www.example.org/item/7", "", 0, True).label == "example.org"
    (copy,) = manifestations({}, {"url": "https://example.org/7.pdf"})
    assert copy.label == "PDF"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("The <i>In Vivo</i> Effect of Osmolytes", "The In Vivo Effect of Osmolytes"),
        ("<p>Ein Institut f&uuml;r Wetter.</p><p>Mehr</p>", "Ein Institut für Wetter. Mehr"),
        (
            "Metastable <sup>3</sup>P<sub>2</sub> gases on the 2<sup>nd</sup> day",
            "Metastable ³P₂ gases on the 2nd day",
        ),
        ("One<br/>two &amp; three&nbsp;four", "One two & three four"),
        ("&lt;em&gt;Twice&lt;/em&gt; escaped", "Twice escaped"),
        ('<jats:p xml:lang="en">An abstract</jats:p>', "An abstract"),
        ("The mean <p> if a<b and c>d; AT&T; R&D", "The mean <p> if a<b and c>d; AT&T; R&D"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),  # escaped by the page, as any text
    ],
)
def test_markup_in_metadata_is_shown_as_text(written: str, shown: str) -> None:
    cited = citation("oai:x:1", {"title": [written], "description": [written]}, {})
    assert (cited.title, cited.description) == (shown, shown)
