"""A hit as a page lists it: the passage of its description that matters, and why it matched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from indlet.model import Metadata
from indlet.service.search.results import Hit
from indlet.web.citation import UNKNOWN_ACCESS, AccessStatement, Citation, Copy, citation
from indlet.web.math_text import readable

_WORD = re.compile(r"\w[\w'’]*")
PASSAGE: Final = 280  # characters of a description in a list
SERIES: Final = 3  # hits of one page from which on a series is shown as one
# Numbers and what they count: "vol. 3, no. 12", "Band II", "part 4", "(1998)", "version 2.1".
_VOLUME: Final = re.compile(
    r"\b(?:v|vol|volume|no|nr|num|number|nummer|issue|heft|part|pt|teil|band|bd|version|ed|edition|auflage)\b"
    r"\.?|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b[ivxlc]+\b|[\d.,:;()\[\]/–—-]+"
)

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
    passage: tuple[tuple[str, bool], ...]
    subjects: tuple[str, ...]
    language: str
    copies: tuple[Copy, ...]
    doi: str = ""
    access: AccessStatement = UNKNOWN_ACCESS
    rank: int = 0
    source: str = ""  # whose record this is
    in_full_text: bool = False
    full_date: str = ""
    date: str = ""  # the full date, where the year does not tell it from another of the same title
    more: tuple[HitView, ...] = ()  # other volumes or versions of it on the page


def item(hit: Hit, terms: Terms | None = None) -> HitView:
    """The hit, ready to show. `terms` says what a word becomes in the index: it marks words."""
    cited = citation(hit.identifier, hit.metadata, hit.properties, hit.source)
    wanted = {matched.term for matched in hit.terms}
    return HitView(
        href=cited.page,
        identifier=hit.identifier,
        title=cited.title,
        creators=cited.creators,
        year=int(hit.year) if hit.year.isdecimal() else cited.year,
        kind=shown_kind(cited, hit.metadata),
        sources=hit.sources or (hit.source,),
        passage=passage(readable(cited.description), wanted, terms),
        subjects=cited.subjects[:8],
        language=hit.language,
        copies=tuple(copy for copy in cited.copies[:4] if copy.url),
        doi=cited.doi,
        access=cited.access,
        rank=hit.rank,
        source=hit.source,
        in_full_text=hit.in_full_text,
        full_date=hit.date,
    )


def group_series(items: Sequence[HitView], ahead: int = 0) -> list[HitView]:
    """Hits of a page with the volumes and versions of one series under the first of them. Where titles are
    equal, dates are full. The first `ahead` hits have all words of the query: no series mixes both parts.
    """
    titles = Counter(item.title.casefold() for item in items)
    series: dict[tuple[str, str, bool], list[HitView]] = {}
    for item in items:
        if titles[item.title.casefold()] > 1:
            item = replace(item, date=item.full_date)
        series.setdefault((_series(item.title), item.source, item.rank > ahead), []).append(item)
    found = []
    for (name, _, _), members in series.items():
        if name and len(members) >= SERIES:
            found.append(replace(members[0], more=tuple(members[1:])))
        else:
            found += members
    return sorted(found, key=lambda item: item.rank)


def _series(title: str) -> str:
    """A title without what tells its volumes and versions apart; empty if little is left."""
    name = " ".join(_VOLUME.sub(" ", title.casefold()).split())
    return name if len(name) >= 12 else ""


def shown_kind(cited: Citation, metadata: Metadata) -> str:
    """The kind of document, unless the metadata says nothing about it."""
    return cited.kind if metadata.get("type") else ""


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
