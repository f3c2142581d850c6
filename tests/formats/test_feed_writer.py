"""Feeds as their specifications want them: by a grammar (Atom), by rules (RSS, RDF, JSON), by a reader."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from indlet.formats.feed_writer import CONTENT, FEEDS, Enclosure, Feed, FeedEntry, atom, json_feed, rdf, rss

GRAMMAR = etree.RelaxNG(etree.parse(Path(__file__).parent / "schemas" / "atom.rng"))
RSS1 = "{http://purl.org/rss/1.0/}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
MEDIA = "{http://search.yahoo.com/mrss/}content"
METADATA = {
    "title": ["Flutter & <wings>"],
    "creator": ["Garrick, Ada <ada@x.org>", "Anon"],
    "contributor": ["Ed"],
    "subject": ["air", "wings"],
    "description": ["A <b>study</b> & more", "Second part"],
    "rights": ["free"],
    "language": ["en"],
}
FILES = (
    Enclosure("http://x.org/a.pdf", "application/pdf", 10, "a.pdf"),
    Enclosure("http://x.org/a.jpg", "image/jpeg", 20, "a.jpg"),
    Enclosure("http://x.org/a.mp3", "audio/mpeg", 0),
)
ENTRY = FeedEntry(
    "oai:x:1", "http://x.org/record/oai%3Ax%3A1", "Flutter & <wings>", 1_700_000_000, False, METADATA,
    "http://x.org/a.pdf", "1957", "papers", FILES,
)  # fmt: skip
GONE = FeedEntry("oai:x:2", "http://x.org/record/oai%3Ax%3A2", "", 1_700_000_100, True)
FEED = Feed(
    title="All & more",
    description="What is <new>",
    address="http://x.org/feed?a=1&b=2",
    page="http://x.org/",
    author="Wings",
    email="a@x.org",
    rights="free",
    language="en",
    updated=1_700_000_100,
    entries=(GONE, ENTRY),
    icon="http://x.org/static/mark",
    total=2,
    links={"prev-archive": "http://x.org/feed?archive=x"},
)


def read(body: bytes, kind: str) -> Any:
    found = feedparser.parse(body, response_headers={"content-type": FEEDS[kind].media_type})
    assert not found.bozo, found.get("bozo_exception")
    return found


@pytest.mark.parametrize("content", ["", *CONTENT])
def test_atom_is_valid_by_its_grammar(content: str) -> None:
    root = etree.fromstring(atom(replace(FEED, content=content)))
    GRAMMAR.assertValid(root)
    found = read(atom(replace(FEED, content=content)), "atom")
    (entry,) = found.entries
    # The reader counts creators of Dublin Core as authors too.
    assert [author.name for author in entry.authors[:2]] == ["Garrick, Ada", "Anon"]
    people = root.findall("{*}entry/{*}author")
    assert [person.findtext("{*}email") for person in people] == ["ada@x.org", None]
    files = [(e.href, e.type, e.get("length"), e.get("title")) for e in entry.enclosures]
    assert files[0] == ("http://x.org/a.pdf", "application/pdf", "10", "a.pdf")
    assert files[2][:3] == ("http://x.org/a.mp3", "audio/mpeg", None)
    if content:
        assert "study" in entry.content[0].value and "Second part" in entry.content[0].value
        kinds = {"text": "text/plain", "html": "text/html", "xhtml": "application/xhtml+xml"}
        assert entry.content[0].type == kinds[content]
    closed = atom(replace(FEED, content=content, entries=[replace(ENTRY, restricted=True)]))
    assert b"<content" not in closed


def test_the_grammar_refuses_what_it_should() -> None:
    good = atom(FEED)
    for wrong in (
        good.replace(b"<updated>2023-11-14T22:15:00Z</updated>", b"", 1),
        good.replace(b"2023-11-14T22:13:20Z", b"yesterday"),
        good.replace(b"<id>http://x.org/record/oai%3Ax%3A1</id>", b""),
        good.replace(b'when="', b'then="'),
        good.replace(b"<name>Wings</name>", b""),
    ):
        assert wrong != good and not GRAMMAR.validate(etree.fromstring(wrong))


def test_an_item_of_rss_names_an_author_only_by_an_address() -> None:
    root = etree.fromstring(rss(FEED))
    (item,) = root.iter("item")
    assert item.findtext("author") == "ada@x.org (Garrick, Ada)"
    (enclosure,) = item.iter("enclosure")
    told = [enclosure.get(name) for name in ("url", "length", "type")]
    assert told == ["http://x.org/a.pdf", "10", "application/pdf"]
    unnamed = rss(replace(FEED, entries=[replace(ENTRY, metadata={"creator": ["Anon"]})]))
    (item,) = etree.fromstring(unnamed).iter("item")
    assert item.find("author") is None
    assert item.findtext("{http://purl.org/dc/elements/1.1/}creator") == "Anon"
    assert root.findtext("channel/managingEditor") == "a@x.org (Wings)"
    for name in ("title", "link", "description"):
        assert root.findtext(f"channel/{name}")
    assert read(rss(FEED), "rss").version == "rss20"


def test_rss_1_is_rdf_whose_list_is_its_items() -> None:
    body = rdf(replace(FEED, entries=(GONE, ENTRY, replace(ENTRY, title="again"))))
    root = etree.fromstring(body)
    assert root.tag == f"{RDF}RDF"
    channel = root.find(f"{RSS1}channel")
    assert channel is not None and channel.get(f"{RDF}about") == FEED.address
    listed = [li.get(f"{RDF}resource") for li in channel.iter(f"{RDF}li")]
    items = root.findall(f"{RSS1}item")
    assert listed == [item.get(f"{RDF}about") for item in items] == [ENTRY.page]
    for item in items:
        assert all(item.findtext(f"{RSS1}{name}") is not None for name in ("title", "link", "description"))
    picture = channel.find(f"{RSS1}image")
    assert picture is not None
    assert root.find(f"{RSS1}image").get(f"{RDF}about") == picture.get(f"{RDF}resource")  # type: ignore[union-attr]
    assert read(body, "rdf").version == "rss10"


def test_json_feed_has_what_its_version_demands() -> None:
    found = json.loads(json_feed(FEED))
    assert found["version"] == "https://jsonfeed.org/version/1.1" and found["feed_url"] == FEED.address
    (item,) = found["items"]
    assert item["id"] == ENTRY.page and "content_text" in item
    assert item["attachments"][0] == {
        "url": "http://x.org/a.pdf", "mime_type": "application/pdf", "size_in_bytes": 10
    }  # fmt: skip
    assert found["next_url"] == FEED.links["prev-archive"]


@pytest.mark.parametrize("kind", ["atom", "rss", "rdf"])
def test_pictures_and_sound_are_told_by_the_media_extension(kind: str) -> None:
    found = list(etree.fromstring(FEEDS[kind].write(FEED)).iter(MEDIA))
    assert [(m.get("medium"), m.get("type"), m.get("fileSize")) for m in found] == [
        ("image", "image/jpeg", "20"),
        ("audio", "audio/mpeg", None),
    ]


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    TEXTS, TEXTS, st.lists(TEXTS, max_size=3), st.sampled_from(sorted(FEEDS)), st.sampled_from(["", *CONTENT])
)
def test_whatever_metadata_holds_a_feed_stays_well_formed(
    title: str, description: str, names: list[str], kind: str, content: str
) -> None:
    metadata = {"title": [title], "description": [description], "creator": names, "subject": names}
    entry = replace(ENTRY, title=title, metadata=metadata)
    body = FEEDS[kind].write(replace(FEED, entries=[entry], title=title, content=content))
    if kind == "json":
        assert json.loads(body)["title"] == title
        return
    root = etree.fromstring(body)
    if kind == "atom":
        GRAMMAR.assertValid(root)
