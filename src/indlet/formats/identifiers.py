"""What names a work: DOI, handle, ISBN, ISSN, arXiv, OAI identifiers and addresses, each in one form.

A *key* is a scheme and a value, `doi:10.1000/182`. Whatever way an identifier is written in a record or
pasted into a search box, its key is the same. `core/src/keys/identifiers.rs` has the table of schemes; here
is what people paste.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, unquote

from indlet._core import bound_key, identifier_keys, known_identifiers, trim_identifier

_LONGEST: Final = 2000  # characters of a value that is looked at
_REFERENCE: Final = 7  # spaces in a reference, at least

# What people write before an identifier that they paste, and forms that they paste without saying what it is.
_SAID: Final = re.compile(r"^(?:available (?:at|from)|url|uri|link)\b[:\s]\s*", re.IGNORECASE)
_LABEL: Final = re.compile(r"^(?:doi|isbn(?:-1[03])?|issn|hdl|handle|arxiv|oai)[:\s]\s*", re.IGNORECASE)
_ARXIV_CLASS: Final = re.compile(r" \[[\w.-]+\]$")
_SPACED_DIGITS: Final = re.compile(r"[\dX -]+(?: \([^()]*\))?$", re.IGNORECASE)
_BARE_HANDLE: Final = re.compile(r"\d+(?:\.\d+)*/[^\s\"<>?#]+$")
_BARE_URL: Final = re.compile(
    r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?|(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?(?=/))"
    r"(?:/\S*)?$",
    re.IGNORECASE,
)

keys_of = identifier_keys


def asked_for(text: str) -> list[str]:
    """The keys that a text pasted into a search box may mean as a whole; none if it reads as words.

    A single word with a digit or an underscore in it may be what some record calls itself.
    """
    text = _SAID.sub("", " ".join(text[:_LONGEST].split()).strip("<>\"'“”„«»"))
    text = _ARXIV_CLASS.sub("", text)
    found: list[str] = []
    for form in dict.fromkeys(_pasted_forms(text)):
        found += known_identifiers(form)
    if " " not in text and like_a_code(text):
        found.append(f"id:{text.casefold()}")
    return [bound_key(key) for key in dict.fromkeys(found)]


def like_a_code(text: str) -> bool:
    """Whether a text may be a number or code that a record states: none is made of letters alone."""
    return any(c.isdigit() or c == "_" for c in text)


def find_cited_keys(text: str) -> list[str]:
    """The keys of DOIs and ISBNs in a reference that was pasted whole; none if it is too short for one."""
    text = " ".join(text[:_LONGEST].split())
    if text.count(" ") < _REFERENCE:
        return []
    return [bound_key(key) for key in known_identifiers(text) if key.startswith(("doi:", "isbn:"))]


def _pasted_forms(text: str) -> list[str]:
    """A pasted text as records may state it: with its scheme, without what browsers add to an address."""
    if " " in (named := _LABEL.sub("", text)) and not _SPACED_DIGITS.match(named):
        return []  # an identifier and something else
    forms = [text]
    if " " in text:
        return forms
    if _BARE_HANDLE.match(text):
        forms.append(f"hdl:{text}")
    if _BARE_URL.match(text):
        forms.append(text := f"http://{text}")
    if "://" in text and "%" in text:
        forms.append(text := unquote(text))
    if "://" in text:
        if "&" in text:  # some repositories state their addresses as HTML has them
            forms += [text.replace("&amp;", "&"), text.replace("&amp;", "&").replace("&", "&amp;")]
        forms += [trim_identifier(text), text.partition("#")[0].partition("?")[0]]
    return forms


def key_in(scheme: str, value: str) -> str:
    """The key of a value in the given scheme, such as `doi:10.1000/182`; empty if it is not valid there."""
    value = " ".join(value[:_LONGEST].split())
    if scheme == "id":
        return bound_key(f"id:{value.casefold()}")
    prefix = {"url": "" if "://" in value else "http://", "oai": "" if value.startswith("oai:") else "oai:"}
    stated = prefix.get(scheme, f"{scheme}:")
    known = (key for form in (value, stated + value) for key in known_identifiers(form))
    return next((bound_key(key) for key in known if key.startswith(f"{scheme}:")), "")


def first(scheme: str, values: Iterable[str]) -> str:
    """The first value of a scheme among identifiers, without the scheme; empty if there is none."""
    start = f"{scheme}:"
    known = (key for value in values for key in known_identifiers(" ".join(value[:_LONGEST].split())))
    return next((key.removeprefix(start) for key in known if key.startswith(start)), "")


def address(key: str) -> str:
    """Where a key leads on the web; empty where its scheme has no resolver."""
    scheme, _, value = key.partition(":")
    roots = {
        "doi": "https://doi.org/", "hdl": "https://hdl.handle.net/", "arxiv": "https://arxiv.org/abs/",
    }  # fmt: skip
    return roots[scheme] + quote(value, safe="/:;()._-") if scheme in roots else ""
