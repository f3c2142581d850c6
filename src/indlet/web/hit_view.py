"""A hit as a page lists it: the passage of its description that matters, and why it matched."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from indlet.model import Metadata
from indlet.service.search.results import Hit
from indlet.web.citation import Citation, Copy, citation
from indlet.web.math_text import readable
from indlet.web.svg import BarSegment, shares

_WORD = re.compile(r"\w[\w'’]*")
PASSAGE: Final = 320  # characters of a description in a list

Terms = Callable[[str], Collection[str]]


@dataclass(frozen=True, slots=True)
class HitView:
    href: str
    identifier: str
    title: str
    creators: tuple[str, ...]
    year: int | None
    kind: str
    sources: tuple[str, ...]
    restricted: bool
    passage: tuple[tuple[str, bool], ...]
    subjects: tuple[str, ...]
    language: str
    why: tuple[BarSegment, ...]
    copies: tuple[Copy, ...]
    score: float = 0.0
    rank: int = 0
    source: str = ""  # whose record this is
    in_full_text: bool = False


def item(hit: Hit, terms: Terms | None = None) -> HitView:
    """The hit, ready to show. `terms` says what a word becomes in the index: it marks words."""
    cited = citation(hit.identifier, hit.metadata, hit.properties, hit.source)
    wanted = {matched.term for matched in hit.terms}
    return HitView(
        href=cited.page,
        identifier=hit.identifier,
        title=readable(cited.title),
        creators=cited.creators,
        year=int(hit.year) if hit.year.isdecimal() else cited.year,
        kind=shown_kind(cited, hit.metadata),
        sources=hit.sources or (hit.source,),
        restricted=cited.restricted,
        passage=passage(readable(cited.description), wanted, terms),
        subjects=cited.subjects[:8],
        language=hit.language,
        why=shares(_why(hit)),
        copies=tuple(copy for copy in cited.copies[:4] if copy.url),
        score=hit.score,
        rank=hit.rank,
        source=hit.source,
        in_full_text=hit.in_full_text,
    )


def shown_kind(cited: Citation, metadata: Metadata) -> str:
    """The kind of document, unless the metadata says nothing about it."""
    return cited.kind if metadata.get("type") else ""


def _why(hit: Hit) -> list[tuple[str, float]]:
    """What each word of the query adds; a word of several terms adds what all of them do."""
    found: dict[str, float] = {}
    for matched in hit.terms:
        label = _label(matched.words, matched.term, matched.field)
        found[label] = found.get(label, 0.0) + matched.share
    return list(found.items())


def _label(words: Sequence[str], term: str, field: str) -> str:
    shown = words[0] if words else term
    return f"{field}:{shown}" if field else shown


def passage(text: str, wanted: set[str], terms: Terms | None) -> tuple[tuple[str, bool], ...]:
    """A stretch of the text in pieces, each with whether it matched; around the first match."""
    text = " ".join(text.split())
    if not text:
        return ()
    found: list[tuple[int, int]] = []
    if wanted and terms is not None:
        found = [m.span() for m in _WORD.finditer(text[:5000]) if not wanted.isdisjoint(terms(m[0]))]
    start = 0
    if found and found[0][0] > PASSAGE * 2 // 3:
        start = text.rfind(" ", 0, max(0, found[0][0] - 80)) + 1
    end = (
        len(text) if len(text) <= start + PASSAGE else max(text.rfind(" ", start, start + PASSAGE), start + 1)
    )
    pieces: list[tuple[str, bool]] = []
    at = start
    if start:
        pieces.append(("… ", False))
    for first, last in found:
        if first >= start and last <= end:
            if first > at:
                pieces.append((text[at:first], False))
            pieces.append((text[first:last], True))
            at = last
    if at < end:
        pieces.append((text[at:end], False))
    if end < len(text):
        pieces.append((" …", False))
    return tuple(pieces)
