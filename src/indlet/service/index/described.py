"""A record with all its terms: those of its vector, of its fields, and its keys."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from indlet.model import Stored
from indlet.service.index.keys import keys, with_keys
from indlet.text import Analyzer


def described(analyzer: Analyzer, changes: Sequence[Stored]) -> list[Stored]:
    """Changes with their vectors and the terms of their fields, which are made here and kept in the index
    alone."""
    return [stored if stored.deleted else _described(analyzer, stored) for stored in changes]


def _described(analyzer: Analyzer, stored: Stored) -> Stored:
    stored = analyzer.completed(stored)
    metadata = orjson.loads(stored.metadata or b"{}")
    fields = with_keys(analyzer.fields(metadata, stored.language), keys(stored.identifier, metadata))
    return stored._replace(fields=fields) if fields else stored
