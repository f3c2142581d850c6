"""A feed as a source: each entry is a record, and what falls off the feed's end stays.

A feed has no lists, sets or datestamps to ask for: one conditional GET brings all that it shows now. Entries
with a tombstone (RFC 6721) are deleted; those that are merely gone are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from indlet.formats.feed import ParsedEntry, absolute_link, read_feed, uri_of
from indlet.formats.metadata import oai_dc
from indlet.limits import Budget
from indlet.model import Record
from indlet.net.client import Client, HttpAnswer
from indlet.oai.read import canonical
from indlet.oai.xml import element
from indlet.service.records.normalise import cleaned, resource_key
from indlet.text import Analyzer

_MEDIA: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml;q=0.9, "
    "application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1"
)
Validators = dict[str, str]  # request header -> value, of the last answer


def ask(client: Client, url: str, limit: int, known: Validators) -> tuple[HttpAnswer | None, Validators]:
    """The feed, or None if it has not changed since; and what to ask with the next time."""
    answer = client.get(url, limit, _MEDIA, known)
    if answer.status == 304:
        return None, known
    if answer.trouble is not None:
        raise answer.trouble
    given = {"If-None-Match": answer.etag, "If-Modified-Since": answer.modified}
    return answer, {name: value for name, value in given.items() if value}


def records(answer: HttpAnswer, address: str, analyzer: Analyzer) -> Iterator[tuple[Record, str]]:
    """What a feed says now: its entries, and the deletions that it tells of; each with the identifier that
    the feed itself uses. `address`: that of the feed in the settings. BadResponse if far more would come of
    it than it has bytes.
    """
    feed = read_feed(answer.body, answer.url)
    budget = Budget(len(answer.body))  # entries inherit what the feed says of all of them
    for entry in feed.entries:
        named = replace(entry, identifier=uri_of(entry.identifier, address))
        budget.charge(sum(len(value) for values in named.metadata.values() for value in values))
        record = _record(named, analyzer)
        budget.charge(len(record.raw) + (len(record.vector.packed) if record.vector else 0))
        yield record, entry.identifier
    shown = {entry.identifier for entry in feed.entries}
    for identifier in feed.gone:
        if identifier not in shown:
            yield Record(uri_of(identifier, address), deleted=True), identifier


def _record(entry: ParsedEntry, analyzer: Analyzer) -> Record:
    metadata = cleaned([(name, value) for name, values in entry.metadata.items() for value in values])
    vector = analyzer.vector(entry.text, next(iter(metadata.get("language", ())), ""))
    properties = {"source_datestamp": entry.updated}
    if entry.url.startswith(("http://", "https://")):
        properties["url"] = entry.url
    key = resource_key(entry.identifier, metadata, properties.get("url", ""))
    raw = canonical(element(oai_dc.write(metadata)))
    return Record(entry.identifier, metadata, vector, (), False, raw, key, properties)


__all__ = ["Validators", "absolute_link", "ask", "records"]
