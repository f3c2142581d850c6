"""Landing pages of real platforms, cut down to what matters: their links, and what bars the way."""

from __future__ import annotations

import pytest

from indlet.sidecar.landing import LandingPage, read_linkset
from indlet.sidecar.links import Reason

MENU = "<nav><a href='/guide/deposit.pdf'>How to deposit</a><a href='/login'>Login</a></nav>"


def page(head: str = "", body: str = "", link: str = "", url: str = "https://r.org/item/1") -> LandingPage:
    html = (
        f"<html><head><title>An item</title>{head}</head><body>{MENU}{body}<footer>©</footer></body></html>"
    )
    return LandingPage(url, html.encode(), link)


@pytest.mark.parametrize(
    ("found", "way", "url"),
    [
        (page(link='<https://r.org/f/1.pdf>; rel="item"; type="application/pdf", <https://r.org/>; rel="up"'),
         "signposting", "https://r.org/f/1.pdf"),
        (page("<meta name='citation_pdf_url' content='/f/2.pdf'>"), "highwire", "https://r.org/f/2.pdf"),
        (page("<meta name='eprints.document_url' content='https://r.org/7/1/x.pdf'>"),
         "highwire", "https://r.org/7/1/x.pdf"),
        (page("<link rel='alternate' type='application/pdf' href='/f/3'>"), "alternate", "https://r.org/f/3"),
        (page("""<script type="application/ld+json">{"@type": "ScholarlyArticle", "encoding": [
          {"@type": "MediaObject", "contentUrl": "https://r.org/f/4",
          "encodingFormat": "application/pdf"}]}</script>"""),
         "schema.org", "https://r.org/f/4"),
        (page(body="<a class='obj_galley_link pdf' href='/index.php/j/article/view/5/6'>PDF</a>"),
         "OJS galley", "https://r.org/index.php/j/article/download/5/6"),
        (page(body="<a href='/bitstream/handle/1/2/t.pdf?sequence=1'>t.pdf</a>"),
         "DSpace bitstream", "https://r.org/bitstream/handle/1/2/t.pdf?sequence=1"),
        (page(body="<a class='ep_document_link' href='https://r.org/8/1/p.pdf'>p.pdf</a>"),
         "EPrints document", "https://r.org/8/1/p.pdf"),
        (page(body="<a id='pdf' href='/cgi/viewcontent.cgi?article=1&amp;context=c'>Download</a>"),
         "Digital Commons download", "https://r.org/cgi/viewcontent.cgi?article=1&context=c"),
    ],
)  # fmt: skip
def test_a_page_names_its_document(found: LandingPage, way: str, url: str) -> None:
    links = found.links()
    assert [(one.way, one.link.url) for one in links] == [(way, url)]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (page(body="<h1>A title</h1><p>An abstract.</p>"), Reason.LANDING_PAGE),
        (page(body="<a href='/items/1/request-a-copy'>get it</a>"), Reason.REQUEST),
        (page(body="<p>Restricted to Repository staff only</p><a>Request a copy</a>"), Reason.REQUEST),
        (page(body="<p>Full text not available from this repository.</p>"), Reason.RESTRICTED),
        (page(body="<p>This item is under embargo until 2031-02-03.</p>"), Reason.EMBARGO),
        (page(body="<form><input name=u><input type='password' name=p></form>"), Reason.LOGIN),
        (page(url="https://idp.org/idp/profile/SAML2/Redirect"), Reason.LOGIN),
        (page("<script src='https://www.google.com/recaptcha/api.js'></script>",
              "<div class='g-recaptcha'></div>Please show that you are human."), Reason.CAPTCHA),
    ],
)  # fmt: skip
def test_a_page_without_document_says_why(found: LandingPage, reason: Reason) -> None:
    assert not found.links()
    assert found.barrier()[0] is reason
    assert not found.is_article


def test_the_end_of_an_embargo_is_read() -> None:
    assert page(body="<p>Embargoed until: 2031-02-03</p>").barrier() == (Reason.EMBARGO, "2031-02-03")


def test_a_restricted_galley_is_no_document() -> None:
    assert not page(
        body="<a class='obj_galley_link pdf restricted' href='/j/article/view/5/6'>PDF</a>"
    ).links()


def test_an_article_in_html_is_told_from_a_landing_page() -> None:
    prose = f"<article>{'<p>The wing bends upwards in flight and the spar carries it.</p>' * 60}</article>"
    assert page(body=prose).is_article
    assert not page("<meta name='citation_pdf_url' content='/f/2.pdf'>", prose).is_article
    assert not page(body="<p>An abstract.</p>").is_article


def test_a_linkset_names_items() -> None:
    found = page(link='<https://r.org/l/1>; rel="linkset"; type="application/linkset+json"')
    assert found.linksets() == ["https://r.org/l/1"]
    body = b"""{"linkset": [{"anchor": "https://r.org/item/1", "item": [
      {"href": "https://r.org/f/1", "type": "application/pdf"},
      {"href": "https://r.org/f/2", "type": "text/csv"}]}]}"""
    assert [link.url for link in read_linkset(body)] == ["https://r.org/f/1"]


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"<" * 100_000, b'{"linkset": 7}', b"[" * 100_000])
def test_foreign_bytes_are_no_page_and_no_linkset(body: bytes) -> None:
    assert LandingPage("https://r.org/", body, "<" * 10_000).links() == []
    assert read_linkset(body) == []
