"""Keys that questions ask for: terms of the index that stand for a value as a whole.

Words find what is about something; keys find the very thing: a record by any of its identifiers, the records
of a person, the record of a title that was pasted whole. Those of a record are made in `core/src/keys`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from indlet._core import title_key
from indlet.formats import people
from indlet.model import KEY_MARKS

# What an index says of the keys in it: one without, or with others, is rebuilt.
VERSION: Final = 4


def title_keys(title: str) -> list[str]:
    """The key of a title: a digest of its words without case and accents; none if it has no word."""
    return [key] if (key := title_key(title)) else []


def identifier_terms(keys: Iterable[str]) -> list[str]:
    return [KEY_MARKS["identifier"] + key for key in keys]


def person_terms(field: str, name: str) -> list[str]:
    """The terms of which a record of the person has one."""
    return [KEY_MARKS[field] + key for key in people.query_keys(name)]
