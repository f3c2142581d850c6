"""What names a work: DOI, handle, ISBN, ISSN, arXiv, OAI identifiers and addresses, each in one form.

A *key* is a scheme and a value, `doi:10.1000/182`. Whatever way an identifier is written in a record or
pasted into a search box, its key is the same. Keys hold no white space and no capital letters.

| scheme | what becomes it |
| --- | --- |
| doi | `10.1000/182`, `doi:…`, `https://doi.org/…`, `info:doi/…`; case does not matter (ISO 26324) |
| hdl | `hdl:…`, `info:hdl/…`, `https://hdl.handle.net/…`, `https://repository/handle/…` |
| isbn | ten or thirteen digits with a right check digit; ten become thirteen |
| issn | eight digits with a right check digit |
| arxiv | `2101.00001v2`, `hep-th/9901001`, `arXiv:…`, an address or DOI at arXiv; without its version |
| oai | an OAI identifier |
| url | a web address without scheme, `www.`, fragment and final slash |
| id | anything else that a record gives as its identifier, such as the number of a report |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from indlet.formats.dublin import doi

_LONGEST: Final = 2000  # characters of a value that is looked at
_KEY: Final = 120  # characters of a key; longer ones go on as a digest
_REFERENCE: Final = 7  # spaces in a reference, at least
_USUAL: Final = 100  # of a value whose key is shorter, whatever its scheme

_ARXIV_FORM: Final = re.compile(r"\d{4}\.\d{4,5}(?:v\d+)?$|[a-z][a-z-]+(?:\.[a-z]{2})?/\d{7}")
_SAID_DOI: Final = re.compile(r"^\W*(?:doi\s|info:doi/|urn:doi:)\s*", re.IGNORECASE)
_HANDLE: Final = re.compile(
    r"(?:^(?:hdl|handle)[:\s]\s*|^info:hdl/|hdl\.handle\.net/|/handle/)(\d[\d.]*/[^\s\"<>?#]+)", re.IGNORECASE
)
_ARXIV: Final = re.compile(
    r"(?:^|\barxiv[:.\s/]\s*|arxiv\.org/(?:abs|pdf)/|^oai:arxiv\.org:)"
    r"(\d{4}\.\d{4,5}|[a-z][a-z-]+(?:\.[a-z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?$",
    re.IGNORECASE,
)
_ISBN: Final = re.compile(
    r"(?:^|\bisbn(?:-1[03])?[:\s]*)((?:97[89][- ]?)?(?:\d[- ]?){9}[\dX])(?![\d-])", re.I
)
_ISSN: Final = re.compile(r"(?:^|\bissn[:\s]*)(\d{4}-?\d{3}[\dX])(?![\d-])", re.IGNORECASE)
# Most addresses: a host without a port, a path, a query.
_PLAIN_URL: Final = re.compile(r"https?://([a-z0-9.-]+)((?:/[^\s?#]*)?)((?:\?[^\s#]+)?)$", re.IGNORECASE)
# Most handles and DOIs.
_PLAIN_HANDLE: Final = re.compile(
    r"(?:hdl\.handle\.net|[a-z0-9.-]+(?:/[a-z0-9._-]+)*?/handle)/(\d[\d.]*/[a-z0-9._-]*[a-z0-9])$"
)
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
_PLAIN_DOI: Final = re.compile(r"10\.\d{4,9}/[a-z0-9._-]*[a-z0-9]$")
_SPACE: Final = re.compile(r"[\s\x00-\x1f]")
_BRACKETS: Final = {")": "(", "]": "[", "}": "{"}


def keys_of(value: str) -> list[str]:
    """The keys of one value that a record gives as its identifier, the most telling first."""
    if len(value) <= _USUAL and value.isascii() and value.isprintable() and " " not in value:
        # Most values of most records, which state one thing: their own OAI identifier, an address.
        lower = value.lower()
        if "arxiv" not in lower:
            if lower.startswith("oai:"):
                return [lower]
            if "10." not in value and (plain := _plain_url(value)):
                if "handle.net/" not in lower and "/handle/" not in lower:
                    return [f"url:{plain}"]
                if handle := _PLAIN_HANDLE.match(plain):
                    return [f"hdl:{handle[1]}", f"url:{plain}"]
            if _PLAIN_DOI.match(lower):
                return [f"doi:{lower}"]
    value = " ".join(value[:_LONGEST].split())
    found = list(dict.fromkeys(_known(value)))
    if not found and value:
        found = [f"id:{value.casefold()}"]
    return [_bounded(key) for key in found]


def asked_for(text: str) -> list[str]:
    """The keys that a text pasted into a search box may mean as a whole; none if it reads as words.

    A single word with a digit or an underscore in it may be what some record calls itself.
    """
    text = _SAID.sub("", " ".join(text[:_LONGEST].split()).strip("<>\"'“”„«»"))
    text = _ARXIV_CLASS.sub("", text)
    found: list[str] = []
    for form in dict.fromkeys(_pasted_forms(text)):
        found += _known(form)
    if " " not in text and like_a_code(text):
        found.append(f"id:{text.casefold()}")
    return [_bounded(key) for key in dict.fromkeys(found)]


def like_a_code(text: str) -> bool:
    """Whether a text may be a number or code that a record states: none is made of letters alone."""
    return any(c.isdigit() or c == "_" for c in text)


def cited(text: str) -> list[str]:
    """The keys of DOIs and ISBNs in a reference that was pasted whole; none if it is too short for one."""
    text = " ".join(text[:_LONGEST].split())
    if text.count(" ") < _REFERENCE:
        return []
    return [_bounded(key) for key in _known(text) if key.startswith(("doi:", "isbn:"))]


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
        forms += [_trimmed(text), text.partition("#")[0].partition("?")[0]]
    return forms


def key_in(scheme: str, value: str) -> str:
    """The key of a value that is said to be of a scheme, `doi:10.1000/182`; empty if it is none such."""
    value = " ".join(value[:_LONGEST].split())
    if scheme == "id":
        return _bounded(f"id:{value.casefold()}")
    prefix = {"url": "" if "://" in value else "http://", "oai": "" if value.startswith("oai:") else "oai:"}
    stated = prefix.get(scheme, f"{scheme}:")
    known = (key for form in (value, stated + value) for key in _known(form))
    return next((_bounded(key) for key in known if key.startswith(f"{scheme}:")), "")


def first(scheme: str, values: Iterable[str]) -> str:
    """The first value of a scheme among identifiers, without the scheme; empty if there is none."""
    start = f"{scheme}:"
    known = (key for value in values for key in _known(" ".join(value[:_LONGEST].split())))
    return next((key.removeprefix(start) for key in known if key.startswith(start)), "")


def address(key: str) -> str:
    """Where a key leads on the web; empty where its scheme has no resolver."""
    scheme, _, value = key.partition(":")
    roots = {
        "doi": "https://doi.org/", "hdl": "https://hdl.handle.net/", "arxiv": "https://arxiv.org/abs/",
    }  # fmt: skip
    return roots[scheme] + quote(value, safe="/:;()._-") if scheme in roots else ""


def _known(value: str) -> list[str]:
    """The keys that a value states. Whole collections pass here: a pattern is tried where it may match."""
    lower = value.lower()
    keys: list[str] = []
    if lower.startswith("oai:") and " " not in value:
        if "arxiv" in lower and (found := _ARXIV.search(value)):
            keys.append(f"arxiv:{found[1].lower()}")
        return [*keys, lower]
    if "10." in value and (named := doi(_SAID_DOI.sub("", value))):
        named = _trimmed(unquote(named) if "://" in value else named).lower()
        keys.append(f"doi:{named}")
        if named.startswith("10.48550/arxiv."):
            keys.append(f"arxiv:{named.removeprefix('10.48550/arxiv.')}")
    if "://" in value:
        if ("handle.net/" in lower or "/handle/" in lower) and (found := _HANDLE.search(value)):
            keys.append(f"hdl:{_trimmed(found[1]).lower()}")
        if "arxiv" in lower and (found := _ARXIV.search(value)):
            keys.append(f"arxiv:{found[1].lower()}")
        if url := _url(value):
            keys.append(f"url:{url}")
        if " " not in value:
            return keys
    if lower.startswith(("hdl", "handle", "info:hdl")) and (found := _HANDLE.search(value)):
        keys.append(f"hdl:{_trimmed(found[1]).lower()}")
    if ("arxiv" in lower or _ARXIV_FORM.match(lower)) and (found := _ARXIV.search(value)):
        keys.append(f"arxiv:{found[1].lower()}")
    bare = lower.removeprefix("urn:")
    if ("isbn" in bare or bare[:1].isdigit()) and (found := _ISBN.search(bare)) and (isbn := _isbn(found[1])):
        keys.append(f"isbn:{isbn}")
    if ("issn" in bare or bare[:1].isdigit()) and (found := _ISSN.search(bare)) and (issn := _issn(found[1])):
        keys.append(f"issn:{issn}")
    return keys


def _trimmed(value: str) -> str:
    """Without the punctuation of the sentence around it, and without a bracket that it does not open."""
    while value and (
        value[-1] in ".,;:"
        or (value[-1] in _BRACKETS and value.count(value[-1]) > value.count(_BRACKETS[value[-1]]))
    ):
        value = value[:-1]
    return value


def _isbn(written: str) -> str:
    digits = re.sub(r"[- ]", "", written).upper()
    if len(digits) == 10:
        if sum((10 - i) * (10 if c == "X" else int(c)) for i, c in enumerate(digits)) % 11:
            return ""
        digits = "978" + digits[:9]
        return digits + str(-sum((1, 3)[i % 2] * int(c) for i, c in enumerate(digits)) % 10)
    if "X" in digits or sum((1, 3)[i % 2] * int(c) for i, c in enumerate(digits)) % 10:
        return ""
    return digits


def _issn(written: str) -> str:
    digits = written.replace("-", "").upper()
    if sum((8 - i) * (10 if c == "X" else int(c)) for i, c in enumerate(digits)) % 11:
        return ""
    return f"{digits[:4]}-{digits[4:]}".lower()


def _plain_url(value: str) -> str:
    found = _PLAIN_URL.match(value)
    if found is None:
        return ""
    return found[1].lower().removeprefix("www.") + (found[2].rstrip("/") + found[3]).lower()


def _url(value: str) -> str:
    if plain := _plain_url(value):
        return plain
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme.lower() not in ("http", "https", "ftp") or not parts.hostname:
        return ""
    host = parts.hostname.removeprefix("www.") + (f":{port}" if port not in (None, 80, 443, 21) else "")
    return host + parts.path.rstrip("/").lower() + (f"?{parts.query.lower()}" if parts.query else "")


def _bounded(key: str) -> str:
    """A key as a name in an index: without white space and controls, and not too long."""
    if len(key) <= _KEY and key.isprintable() and " " not in key and "\u3000" not in key:
        return key
    key = key.replace(" ", "_") if key.isprintable() else _SPACE.sub("_", key)
    if len(key) > _KEY:
        return key[: _KEY - 16] + blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return key
