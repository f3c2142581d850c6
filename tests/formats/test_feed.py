"""Feeds of every kind become entries; what is no feed says so."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indlet.errors import BadResponse
from indlet.formats.feed import read_feed
from indlet.model import Document
from indlet.provider.extract import parts
from indlet.provider.extract.file import File
from indlet.settings import Limits

RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Harbour notes</title>
<link>http://example.org/</link><description>d</description><language>en-gb</language>
<item><title>Ice &amp; fog</title><link>/ice</link><guid isPermaLink="false">note-7</guid>
<dc:creator>Ada Wells</dc:creator><category>weather</category>
<pubDate>Sun, 03 Feb 2019 10:00:00 +0100</pubDate>
<description>&lt;p&gt;Short&lt;/p&gt;</description>
<content:encoded><![CDATA[<p>The <b>h</b>arbour froze.</p><script>no()</script>]]></content:encoded>
<enclosure url="http://example.org/ice.mp3" type="audio/mpeg" length="12"/></item>
<item><title>Second</title><link>http://example.org/2</link></item></channel></rss>"""

ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0">
<title>T</title><id>urn:f</id><updated>2020-01-01T00:00:00Z</updated>
<entry><id>urn:a</id><title type="html">A &lt;i&gt;b&lt;/i&gt;</title>
<updated>2020-02-03T04:05:06+02:00</updated>
<author><name>Ben Moor</name></author><link href="http://example.org/a"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Words <em>here</em></div></content></entry>
<entry><id>urn:a</id><title>Older</title><updated>2019-01-01T00:00:00Z</updated></entry>
<at:deleted-entry ref="urn:gone&amp;1" when="2020-01-02T00:00:00Z"/></feed>"""

RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://example.org/"><title>R</title></channel>
<item rdf:about="http://example.org/r1"><title>One</title><link>http://example.org/r1</link>
<dc:date>2001-09-08T11:00:00Z</dc:date></item></rdf:RDF>"""

JSON = b"""{"version": "https://jsonfeed.org/version/1.1", "title": "J", "language": "de", "items": [
{"id": "1", "url": "http://example.org/1", "title": "Eins", "content_html": "<p>Das <b>W</b>ort</p>",
 "date_published": "2021-05-06T07:08:09+02:00", "authors": [{"name": "Eva"}], "tags": ["x"],
 "attachments": [{"url": "http://example.org/1.pdf", "mime_type": "application/pdf"}]}]}"""


def test_rss() -> None:
    feed = read_feed(RSS, "http://example.org/feed.xml")
    assert (feed.title, feed.language) == ("Harbour notes", "en-gb")
    first, second = feed.entries
    assert first.identifier == "note-7" and second.identifier == "http://example.org/2"
    assert first.url == "http://example.org/ice"
    assert first.updated == "2019-02-03T09:00:00Z"
    assert first.metadata["title"] == ["Ice & fog"]
    assert first.metadata["creator"] == ["Ada Wells"]
    assert first.metadata["subject"] == ["weather"]
    assert first.metadata["date"] == ["2019-02-03"]
    assert first.metadata["relation"] == ["http://example.org/ice.mp3"]
    assert "The harbour froze." in first.text and "no()" not in first.text


def test_atom_and_its_tombstones() -> None:
    feed = read_feed(ATOM)
    (entry,) = feed.entries  # of two with one id, the newer
    assert (entry.identifier, entry.updated) == ("urn:a", "2020-02-03T02:05:06Z")
    assert entry.metadata["title"] == ["A b"] and entry.metadata["creator"] == ["Ben Moor"]
    assert "Words here" in entry.text
    assert feed.gone == ("urn:gone&1",)


def test_rss_1() -> None:
    (entry,) = read_feed(RDF).entries
    assert (entry.identifier, entry.metadata["date"]) == ("http://example.org/r1", ["2001-09-08"])


def test_json_feed() -> None:
    (entry,) = read_feed(JSON).entries
    assert (entry.identifier, entry.updated) == ("1", "2021-05-06T05:08:09Z")
    assert entry.metadata["creator"] == ["Eva"] and entry.metadata["language"] == ["de"]
    assert entry.text == "Eins\nDas Wort"
    assert entry.metadata["relation"] == ["http://example.org/1.pdf"]


def test_an_entry_without_id_and_link_keeps_its_identifier() -> None:
    body = b"<rss version='2.0'><channel><item><title>T</title></item></channel></rss>"
    (one,), (other,) = read_feed(body).entries, read_feed(body + b"\n").entries
    assert one.identifier == other.identifier and one.identifier.startswith("urn:x-entry:")


@pytest.mark.parametrize("body", [b"", b"<html><p>x</html>", b"{}", b"plain words", b'{"version": 1}'])
def test_what_is_no_feed_says_so(body: bytes) -> None:
    with pytest.raises(BadResponse, match="not a feed"):
        read_feed(body)


def test_a_broken_json_feed_says_so() -> None:
    with pytest.raises(BadResponse, match="broken JSON Feed"):
        read_feed(b'{"version": "https://jsonfeed.org/version/1", "items": 5}')


def test_entities_are_not_expanded() -> None:
    bomb = (
        b'<!DOCTYPE rss [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    )
    feed = read_feed(
        bomb + b"<rss version='2.0'><channel><item><title>x &b; &f;</title></item></channel></rss>"
    )
    assert "hahahaha" not in repr(feed) and "root:" not in repr(feed)


@example(b"\xa0", RSS, 51)  # feedparser itself raises ValueError
@given(st.binary(max_size=300), st.sampled_from([RSS, ATOM, RDF, JSON]), st.integers(0, 800))
def test_any_damage_ends_as_a_feed_or_a_named_failure(junk: bytes, body: bytes, at: int) -> None:
    try:
        read_feed(body[:at] + junk + body[at + len(junk) :])
    except BadResponse as e:
        assert str(e)


def test_a_crawled_feed_is_a_record_for_each_entry() -> None:
    found = list(parts(File(RSS, "notes.xml", Limits())))
    assert [f.key for f in found if isinstance(f, Document)] == ["note-7", "http://example.org/2"]
    assert {f.media_type for f in found if isinstance(f, Document)} == {"application/rss+xml"}


def test_a_feed_without_entries_is_a_document() -> None:
    (found,) = parts(File(b"<rss><channel><title>Quiet</title></channel></rss>", "q.rss", Limits()))
    assert isinstance(found, Document) and found.metadata["title"] == ["Quiet"]


def test_images_in_an_entry_are_no_text() -> None:
    image = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    body = (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>urn:f</id><entry><id>7</id>'
        b'<title>Wing</title><content type="image/png">%b</content></entry><entry><id>urn:8</id>'
        b'<title>Kite</title><content type="html">&lt;img src="data:image/png;base64,%b"/&gt;sky</content>'
        b"</entry></feed>"
    ) % (image, image)
    first, second = read_feed(body, "http://example.org/feed").entries
    assert first.text == "Wing" and "description" not in first.metadata
    assert not first.url and "identifier" not in first.metadata  # an id is no link
    assert second.text.split() == ["Kite", "sky"]


def test_authors_and_languages_are_inherited() -> None:
    body = (
        b'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>T</title><id>urn:f</id>'
        b"<author><name>Ada</name></author><entry><id>urn:1</id><title>Haus</title></entry>"
        b'<entry xml:lang="fr"><id>urn:2</id><title>Maison</title><author><name>Eva</name></author></entry>'
        b"</feed>"
    )
    found = [(e.metadata["creator"], e.metadata["language"]) for e in read_feed(body).entries]
    assert found == [(["Ada"], ["de"]), (["Eva"], ["fr"])]
    rss = RSS.replace(b"<description>d</description>", b"<managingEditor>m@x.org</managingEditor>")
    rss = rss.replace(b"<title>Second</title>", b"<title>Zweites</title><dc:language>de</dc:language>")
    second = read_feed(rss).entries[1]
    assert "creator" not in second.metadata and second.metadata["language"] == ["de"]
    (entry,) = read_feed(
        JSON.replace(b'"authors"', b'"x"').replace(b'"J",', b'"J", "authors": [{"name": "Bo"}],')
    ).entries
    assert entry.metadata["creator"] == ["Bo"]
