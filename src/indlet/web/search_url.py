"""Everything that a result page depends on, as one value that an address states in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote_plus

from starlette.datastructures import QueryParams

from indlet.text import code
from indlet.web.citation import kind_of
from indlet.web.i18n import Strings, value_key

FILTERS: Final = (
    "source", "creator", "subject", "inferred_subject", "set", "type", "inferred_type", "format", "language",
)  # fmt: skip
EXCLUDED: Final = tuple(f"-{name}" for name in FILTERS)  # the same facets, for values to leave out
TOGETHER: Final = "\x1f"  # between values of a facet that mean the same
ORDERS: Final = ("score", "newest", "oldest", "title", "author")
SIZES: Final = (10, 20, 50, 100)  # records of a page that can be chosen
LONGEST: Final = 2000  # characters of a query that a page takes
# Types that say something else of a record: whether it was reviewed, which version it is.
_NO_TYPES: Final = frozenset((
    "peerreviewed", "nonpeerreviewed", "notpeerreviewed", "publishedversion", "acceptedversion",
    "submittedversion", "updatedversion", "draft",
))  # fmt: skip
# "http://purl.org/eprint/type/JournalArticle", "info:eu-repo/semantics/article"
_TYPE_ADDRESS: Final = re.compile(r"(?:https?://|info:)([\w.-]{1,60})/(?:[\w.-]{1,60}/){0,5}([A-Za-z]{3,40})")


@dataclass(frozen=True, slots=True)
class State:
    q: str = ""
    model: str = "bm25"
    sort: str = "score"
    page: int = 1
    filters: tuple[tuple[str, str], ...] = ()
    since: int | None = None
    until: int | None = None
    usual: str = "bm25"  # the model that needs no naming
    size: int = 0  # records of a page; 0: as the settings say
    any_words: bool = False  # do records with some of the words count as those with all of them?
    verbatim: bool = False  # is the query searched for as it is spelt?

    @classmethod
    def of(cls, parameters: QueryParams, models: Iterable[str], usual: str) -> State:
        """The state that an address names; what it names wrongly falls back to the usual."""
        model = str(parameters.get("model", usual))
        sort = str(parameters.get("sort", ORDERS[0]))
        # Names of one value come together where a form has one box for them.
        chosen = [
            (k, part[:500])
            for k, v in parameters.multi_items()
            for part in v.split(TOGETHER)
            if (k in FILTERS or k in EXCLUDED) and part
        ]
        page = str(parameters.get("page", "1"))
        return cls(
            q=" ".join(str(parameters.get("q", ""))[:LONGEST].split()),
            model=model if model in set(models) else usual,
            sort=sort if sort in ORDERS else ORDERS[0],
            page=max(1, int(page)) if page.isdecimal() and len(page) < 7 else 1,
            filters=tuple(dict.fromkeys(chosen))[:50],
            since=_year(parameters.get("since")),
            until=_year(parameters.get("until")),
            usual=usual,
            size=int(size) if (size := str(parameters.get("size", ""))) in map(str, SIZES) else 0,
            any_words=parameters.get("words") == "any",
            verbatim=parameters.get("verbatim") == "1",
        )

    # What to ask

    @property
    def filtered(self) -> bool:
        return bool(self.filters or self.since is not None or self.until is not None)

    @property
    def idle(self) -> bool:
        """Nothing is asked: the start page."""
        return not self.q and not self.filtered

    def chosen(self) -> dict[str, list[str]]:
        """The filters as a search takes them: one of the values of each facet."""
        found: dict[str, list[str]] = {}
        for facet, value in self.filters:
            found.setdefault(facet, []).append(value)
        if self.since is not None or self.until is not None:
            first = f"{self.since:04}" if self.since is not None else ""
            last = f"{self.until:04}" if self.until is not None else ""
            found["date"] = [f"{first}..{last}"]
        return found

    # Where to go from here

    def pairs(self) -> list[tuple[str, str]]:
        return self._pairs(self.filters, self.since, self.until, self.page)

    def _pairs(
        self, filters: tuple[tuple[str, str], ...], since: int | None, until: int | None, page: int = 1
    ) -> list[tuple[str, str]]:
        """Those of a state that differs in these: a page has a hundred, so no state is made for each."""
        found = [("q", self.q)] if self.q else []
        found += filters
        if since is not None:
            found.append(("since", str(since)))
        if until is not None:
            found.append(("until", str(until)))
        if self.model != self.usual:
            found.append(("model", self.model))
        if self.sort != ORDERS[0]:
            found.append(("sort", self.sort))
        if self.size:
            found.append(("size", str(self.size)))
        if self.any_words:
            found.append(("words", "any"))
        if self.verbatim:
            found.append(("verbatim", "1"))
        if page > 1:
            found.append(("page", str(page)))
        return found

    def link(self, **changes: Any) -> str:
        """The address of this state with something changed; a change of anything starts at the first page."""
        return _address("/", replace(self, **{"page": 1, **changes}).pairs())

    def toggled(self, facet: str, value: str) -> str:
        return self.toggle(facet, (value,))

    def toggle(self, facet: str, values: Sequence[str]) -> str:
        """The address with values of one meaning chosen or, where one of them is, without them."""
        pairs = [(facet, value) for value in values]
        left = tuple(pair for pair in self.filters if pair not in pairs)
        if left == self.filters:
            other = facet[1:] if facet.startswith("-") else f"-{facet}"
            opposite = [(other, value) for value in values]
            filters = (*(pair for pair in self.filters if pair not in opposite), *pairs)
        else:
            filters = left
        return _address("/", self._pairs(filters, self.since, self.until))

    def within(self, since: int, until: int) -> str:
        """The same between two years."""
        return _address("/", self._pairs(self.filters, since, until))

    def bare(self) -> str:
        return self.link(filters=(), since=None, until=None)

    def values(self, facet: str) -> str:
        """Where all values of a facet are listed."""
        return _address(f"/values/{facet}", replace(self, page=1).pairs())

    def compare(self) -> str:
        return _address("/compare", replace(self, page=1, sort=ORDERS[0], model=self.usual, size=0).pairs())

    def explain(self, identifier: str, via: str = "", **changes: Any) -> str:
        """Where the score of a source's record is explained; the state goes along, for the way back."""
        own = [("id", identifier), *([("via", via)] if via else [])]
        return _address("/explain", [*replace(self, **changes).pairs(), *own])

    def results(self, kind: str) -> str:
        """All records of this state as a file."""
        return _address(f"/results.{kind}", replace(self, page=1, size=0).pairs())

    def follow(self) -> str:
        """Where the results can be subscribed to by e-mail."""
        return _address("/follow", replace(self, page=1, sort=ORDERS[0], model=self.usual, size=0).pairs())

    def feed(self, kind: str) -> str:
        return _address(
            f"/feed.{kind}", replace(self, page=1, sort=ORDERS[0], model=self.usual, size=0).pairs()
        )

    def hidden(
        self,
        *,
        q: bool = False,
        years: bool = True,
        model: bool = True,
        sort: bool = True,
        size: bool = True,
    ) -> list[tuple[str, str]]:
        """What a form has to carry along beside its own fields."""
        without = {"page", *({"verbatim"} if not q else ())} | {
            name
            for name, kept in (
                ("q", q),
                ("since", years),
                ("until", years),
                ("model", model),
                ("sort", sort),
                ("size", size),
            )
            if not kept
        }
        return [pair for pair in self.pairs() if pair[0] not in without]

    def chips(self, t: Strings, set_names: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
        """The filters in force: what each says, and the address without it."""
        together: dict[tuple[str, str], list[str]] = {}
        for facet, value in self.filters:
            together.setdefault((facet, _chip(t, facet, value, set_names or {})), []).append(value)
        found = [(text, self.toggle(facet, values)) for (facet, text), values in together.items()]
        if self.since is not None or self.until is not None:
            if self.until is None:
                text = t("search.years_since", since=str(self.since))
            elif self.since is None:
                text = t("search.years_until", until=str(self.until))
            elif self.since == self.until:
                text = str(self.since)
            else:
                text = t("search.years", since=str(self.since), until=str(self.until))
            found.append((f"{t('facet.year')}: {text}", self.link(since=None, until=None)))
        return found


def _chip(t: Strings, facet: str, value: str, set_names: Mapping[str, str]) -> str:
    name = facet.removeprefix("-")
    shown = (name == "set" and set_names.get(value)) or label(t, name, value)
    return t("search.excluded" if name != facet else "search.only", facet=t("facet." + name), value=shown)


def label(t: Strings, facet: str, value: str) -> str:
    """How a facet's value is shown: languages and the usual types by their names, types that are addresses by
    their last part and whose they are, everything else as it stands; empty if it is not to be shown.
    """
    if facet == "language":
        return t.known(f"language.{code(value) or value.lower()}", value)
    if facet != "type":
        return value
    if (named := t.known(f"type.{value_key(value)}", value)) != value:
        return named
    if value_key(value.rpartition("/")[2]) in _NO_TYPES:
        return ""
    if (kind := kind_of([value])) != "text" or value_key(value) == "text":
        return t(f"kind.{kind}")
    if found := _TYPE_ADDRESS.fullmatch(value):
        place, name = found.groups()
        if (named := t.known(f"type.{value_key(name)}", name)) != name:
            return named
        return f"{re.sub('(?<=[a-z])(?=[A-Z])', ' ', name).capitalize()} ({place.removeprefix('www.')})"
    return value


def page_list(page: int, pages: int) -> list[int | None]:
    """The first page, the last, and those around this one; None stands for a gap."""
    wanted = sorted({1, pages, *range(max(1, page - 2), min(pages, page + 2) + 1)})
    found: list[int | None] = []
    for number in wanted:
        if found and found[-1] is not None and number - found[-1] > 1:
            found.append(None)
        found.append(number)
    return found


def plain_words(q: str) -> str:
    """The words of a query without the signs that made it unreadable."""
    return " ".join(w for w in re.findall(r"\w[\w'’-]*", q) if w not in ("AND", "OR", "NOT"))


def _address(path: str, pairs: Sequence[tuple[str, str]]) -> str:
    return f"{path}?{'&'.join([f'{name}={_quoted(value)}' for name, value in pairs])}" if pairs else path


# A result page has a hundred links that differ in one value.
_quoted = lru_cache(maxsize=4096)(quote_plus)


def _year(value: object) -> int | None:
    text = str(value or "").strip()
    return int(text) if text.isdecimal() and len(text) <= 4 else None
