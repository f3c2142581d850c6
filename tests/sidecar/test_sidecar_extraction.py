"""Fetched documents are read by a process of their own; whatever they do to it, the next one is read."""

from __future__ import annotations

import pytest

from indlet.errors import ExtractionError
from indlet.settings import Limits
from indlet.sidecar.extraction import extractor, file_name


def test_text_comes_out_and_failures_are_told() -> None:
    text_of = extractor(Limits(seconds=20))
    found = text_of(b"<html lang='en'><body><p>boundary layer</p></body></html>", "http://x/a")
    assert "boundary layer" in found.text and (found.language, found.media_type) == ("en", "text/html")
    with pytest.raises(ExtractionError, match=r"http://x/b\.pdf: "):
        text_of(b"%PDF-1.4 and nothing else", "http://x/b.pdf")
    with pytest.raises(ExtractionError, match="file_bytes"):
        extractor(Limits(file_bytes=10))(b"x" * 11, "http://x/c")
    assert text_of(b"plain words", "http://x/d.txt").text == "plain words"


def test_a_document_that_takes_too_long_costs_its_process_only() -> None:
    html = b"<html><body>" + b"<p>some words in a paragraph</p>" * 1_000_000 + b"</body></html>"
    text_of = extractor(Limits(seconds=0.0))
    with pytest.raises(ExtractionError, match="http://x/long"):
        text_of(html, "http://x/long.html")
    assert text_of(b"plain words", "http://x/d.txt").text == "plain words"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://x/a%2Fb.pdf", "ab.pdf"),
        ("http://x/%00%0A.txt?q=1", ".txt"),
        ("http://x/", "document"),
        ("http://[x", "document"),
        ("http://x/" + "a" * 500 + ".pdf", "a" * 196 + ".pdf"),
    ],
)
def test_names_from_outside_are_harmless(url: str, name: str) -> None:
    assert file_name(url) == name
