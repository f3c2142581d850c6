"""Arguments that are let through can be echoed; tokens come back whole or not at all."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from indlet.errors import BadResumptionToken
from indlet.oai.arguments import EXTENDED_VERBS, VERBS, Request, parse
from indlet.oai.frames import Endpoint
from indlet.oai.tokens import ResumptionToken, sealed_number

KEY = b"k" * 32

# What xs:anyURI admits, by the schema processor that validators use.
ANY_URI = etree.XMLSchema(
    etree.fromstring(
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="x"><xs:complexType>'
        '<xs:attribute name="u" type="xs:anyURI"/></xs:complexType></xs:element></xs:schema>'
    )
)
pieces = st.sampled_from(
    [*"aZ09:/?#[]@!$&'()*+,;=%-._~ <>\"{}|\\^`äß€\u00a0\U0001f600", "%20", "%zz", "//", "oai:"]
)


@given(st.one_of(st.lists(pieces, min_size=1, max_size=12).map("".join), st.text(min_size=1)))
def test_an_identifier_that_is_accepted_can_be_echoed(value: str) -> None:
    request = parse([("verb", "ListMetadataFormats"), ("identifier", value)], extended=False)
    if isinstance(request, Request):
        answer = Endpoint.at("http://x.org", False).refusal(0, request.arguments, [])
        echoed = etree.fromstring(answer).find("{*}request")
        assert echoed is not None
        assert echoed.get("identifier") == value
        element = etree.Element("x", u=value)
        assert ANY_URI.validate(element)


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=6), st.booleans())
def test_nothing_that_is_sent_breaks_an_answer(pairs: list[tuple[str, str]], extended: bool) -> None:
    request = parse(pairs, extended)
    endpoint = Endpoint.at("http://x.org/a&b", extended)
    if isinstance(request, Request):
        answer = endpoint.answer(0, request.arguments, request.verb, [])
    else:
        answer = endpoint.refusal(0, {}, request)
    etree.fromstring(answer)


@pytest.mark.parametrize("verb", EXTENDED_VERBS)
def test_the_extension_adds_and_takes_nothing_away(verb: str) -> None:
    extended = EXTENDED_VERBS[verb]
    if verb in VERBS:
        plain = VERBS[verb]
        assert (extended.required, extended.exclusive) == (plain.required, plain.exclusive)
        assert set(extended.optional) - set(plain.optional) <= {"indexPrefix"}
    else:
        assert verb == "ListIndexFormats"


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(0, 2**53)
tokens = st.builds(
    ResumptionToken,
    verb=st.sampled_from(["ListRecords", "ListSets"]),
    extended=st.booleans(),
    metadata_prefix=words,
    index_prefix=words,
    set_spec=words,
    since=st.none() | numbers,
    until=st.none() | numbers,
    open_ended=st.booleans(),
    after=st.one_of(numbers, words),
    cursor=numbers,
    size=numbers,
    expires=st.just(100),
    view=words,
)


@given(tokens)
def test_a_token_comes_back(token: ResumptionToken) -> None:
    text = token.encode(KEY)
    assert text.isascii()
    assert text.replace("-", "").replace("_", "").isalnum()
    known: dict[str, Any] = {"verb": token.verb, "extended": token.extended, "view": token.view}
    assert ResumptionToken.decode(text, KEY, now=100, **known) == token
    raw = base64.urlsafe_b64decode(text + "==")
    assert token.verb.encode() not in raw
    with pytest.raises(BadResumptionToken, match="not a resumption token"):
        ResumptionToken.decode(text, b"other" * 5, now=100, **known)
    with pytest.raises(BadResumptionToken, match="expired"):
        ResumptionToken.decode(text, KEY, now=101, **known)


@given(tokens, st.data())
def test_a_token_that_was_touched_does_not(token: ResumptionToken, data: st.DataObject) -> None:
    text = token.encode(KEY)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(exclude_categories=["Cs"]).filter(lambda c: c != text[place]))
    with pytest.raises(BadResumptionToken):
        ResumptionToken.decode(
            text[:place] + other + text[place + 1 :],
            KEY,
            verb=token.verb,
            extended=token.extended,
            view=token.view,
            now=0,
        )


def test_what_was_sealed_for_another_purpose_is_no_token() -> None:
    known: dict[str, Any] = {"verb": "ListRecords", "extended": False, "view": "", "now": 0}
    with pytest.raises(BadResumptionToken, match="not a resumption token"):
        ResumptionToken.decode(sealed_number("archive", 3, KEY), KEY, **known)
