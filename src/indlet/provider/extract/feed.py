"""Feeds: a record for each entry. A feed without entries is one document, as any XML is."""

from __future__ import annotations

from collections.abc import Iterator

from indlet.errors import BadResponse, ExtractionError
from indlet.formats.feed import read_feed
from indlet.model import Document
from indlet.provider.extract import xmltext
from indlet.provider.extract.file import File, Part


def extract(file: File) -> Iterator[Part]:
    try:
        feed = read_feed(file.data)
    except BadResponse as e:
        raise ExtractionError(str(e)) from e
    if not feed.entries:
        yield from xmltext.extract(file)
        return
    for entry in feed.entries:
        yield Document(entry.text, entry.metadata, file.media_type, entry.identifier)
