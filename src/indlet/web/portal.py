"""The pages for people who search: start, results, suggestions, help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from indlet.errors import IndletError, QueryError
from indlet.model import Facet, JsonObject, Stored
from indlet.provider.serve.responses import LOCKED_FILE, ForeignBytes, ForeignResponse
from indlet.service.api.routes import ENDPOINTS
from indlet.service.search.library import MAX_LIMIT, Library
from indlet.service.search.rank import MODELS
from indlet.service.search.results import Result
from indlet.store import Store, View
from indlet.text import fold
from indlet.web.api_examples import examples
from indlet.web.citation import citation, record_path
from indlet.web.discovery import opensearch, website_json_ld
from indlet.web.hit_view import HitView, group_series, shown_kind
from indlet.web.hit_view import item as shown
from indlet.web.i18n import LANGUAGES, Strings
from indlet.web.math_text import readable
from indlet.web.page import THEMES, Pages
from indlet.web.search_url import FILTERS, ORDERS, SIZES, State, label, page_list, plain_words
from indlet.web.svg import histogram

FACETS: Final = (*FILTERS, "year")
ANSWERED: Final = 6  # completions while somebody types
NEWEST: Final = 6  # records on the start page
LOOKED_AT, LOOKS = 1000, 5  # latest changes that they are chosen from at once, and how often
DEEPEST: Final = 10_000  # results that can be paged through
REMEMBERED: Final = 100_000  # words of each language whose terms are kept at hand
VALUES: Final = 60  # of each facet that are counted for a result page
SHOWN_VALUES: Final = 5  # of each facet on a result page
MOST_VALUES: Final = 5000  # of one facet that can be searched among
LISTED_VALUES: Final = 200  # of these that a page lists
# What a whole result can be had as (`result_export.py`), by the ending of its address.
RESULT_FILES: Final = {"csv": "CSV", "bib": "BibTeX", "ris": "RIS", "jsonl": "JSON", "run": "TREC"}
YEAR: Final = 31_536_000  # seconds that a browser remembers a preference


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value of a facet as a reader sees it: its label, its number of records, its names in the index, and
    the address that chooses it or takes it back."""

    label: str
    count: int
    names: tuple[str, ...]
    href: str
    chosen: bool
    excluded: bool


@dataclass(frozen=True, slots=True)
class FacetView:
    """A facet of a result page; `more`: it has further values."""

    name: str
    values: tuple[FacetValue, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """A query's fault as a page shows it: the query in three parts, the middle one at fault."""

    problem: str
    before: str
    at: str
    after: str
    position: int
    plain: str


def fault(error: QueryError, t: Strings) -> Fault:
    q, i = error.query, min(error.position, len(error.query))
    return Fault(t.told(error.problem), q[:i], q[i : i + 1], q[i + 1 :], i, plain_words(q))


def _newest(view: View, origins: Sequence[int]) -> list[Stored]:
    """The latest changed records: of each source its latest, then its second, and so on, so that one that was
    just harvested does not fill the page."""
    places: list[tuple[int, int, int]] = []  # how many of its source come before it, its place, its number
    counted, before = Counter[int](), None
    for _ in range(LOOKS):
        part = view.latest_ids(LOOKED_AT, before=before, origins=origins)
        known = view.by_id([id for id, _ in part], parts=())
        for id, _ in part:
            places.append((counted[known[id].origin], len(places), id))
            counted[known[id].origin] += 1
        if len(counted) >= NEWEST or len(part) < LOOKED_AT:
            break
        before = part[-1][1]
    chosen = [id for _, _, id in sorted(sorted(places)[:NEWEST], key=lambda one: one[1])]
    records = view.by_id(chosen)
    return [records[id] for id in chosen]


class Portal:
    def __init__(self, library: Library, pages: Pages, root: str) -> None:
        self.library = library
        self.pages = pages
        self.root = root
        self._terms: dict[str, dict[str, tuple[str, ...]]] = {}
        self._start: tuple[tuple[int, str, tuple[int, ...]], JsonObject] | None = None

    @property
    def store(self) -> Store:
        return self.library.store

    def hidden(self) -> set[int]:
        """The origins whose records are not for everybody, and so not for the portal."""
        return set(self.library.hidden())

    def visible(self, view: View) -> list[int]:
        hidden = self.hidden()
        return [origin.id for origin in view.origins() if origin.id not in hidden]

    def state(self, request: Request) -> State:
        usual = self.library.settings.search.model
        return State.of(request.query_params, MODELS if self.pages.models else (usual,), usual)

    def search(self, request: Request) -> Response:
        state = self.state(request)
        if state.idle and "q" not in request.query_params:
            return self.home(request, state)
        size = state.size or max(1, self.library.settings.search.limit)
        deepest = max(1, DEEPEST // size)
        if state.page > deepest:
            return RedirectResponse(state.link(page=deepest), 303)
        t = self.pages.strings(request)
        common: JsonObject = {
            "here": "search",
            "models": list(MODELS),
            "orders": ORDERS,
            "sizes": sorted({*SIZES, max(1, self.library.settings.search.limit)}),
            "size": size,
            "set_names": self.set_names(),
        }
        try:
            result = self.found(state, size, (state.page - 1) * size, FACETS)
            given, (state, result) = state, self._spelt(state, result)
            facets = self.facets(state, result, t)
            years = self._years(state, result)
        except QueryError as e:
            return self.pages.render(request, "search.html", 400, fault=fault(e, t), state=state, **common)
        request.state.total = result.total  # for the statistics
        pages = min(-(-result.total // size), deepest)
        if result.total and state.page > pages:
            return RedirectResponse(state.link(page=pages), 303)
        return self.pages.render(
            request,
            "search.html",
            fault=None,
            state=state,
            given=given,
            items=self.items(result),
            result=result,
            facets=facets,
            ahead=result.ahead if result.ahead < result.total else 0,
            exports=[(label, state.results(name)) for name, label in RESULT_FILES.items()],
            picture=histogram(years, chosen=(state.since, state.until)),
            notes=result.notes,
            pages=pages,
            page_list=page_list(state.page, pages),
            corrections=_corrections(result, state),
            deep=result.total > DEEPEST,
            deepest=DEEPEST,
            **common,
        )

    def found(self, state: State, limit: int, offset: int, facets: Sequence[str] = ()) -> Result:
        """What a state asks for."""
        return self.library.search(
            state.q or "*",
            model=state.model,
            limit=limit,
            offset=offset,
            sort=state.sort if state.q or state.sort != "score" else "newest",
            facets=facets,
            facet_values=VALUES,
            filters=state.chosen(),
            all_words="off" if state.any_words else "",
        )

    def _spelt(self, state: State, result: Result) -> tuple[State, Result]:
        """The query with its misspelt words corrected, where records hold all of the corrected words; the
        same query otherwise, and if the reader asked for it as it is spelt.
        """
        if not result.corrected or state.verbatim:
            return state, result
        corrected = replace(state, q=result.corrected)
        by_date = self.found(replace(corrected, sort="newest", any_words=False), 0, 0)
        if not by_date.total or (state.any_words is False and not by_date.words and " " in corrected.q):
            return state, result
        return corrected, self.found(corrected, result.limit, result.offset, FACETS)

    def _years(self, state: State, result: Result) -> Mapping[int, int]:
        """Records by year, whichever years are chosen."""
        if state.since is None and state.until is None:
            return dict(result.histogram)
        # An order by which only records with all words are listed may have found none of these.
        some = state.any_words or not result.words
        everywhere = replace(state, since=None, until=None, any_words=some)
        return dict(self.found(everywhere, 0, 0, ("year",)).histogram)

    def facets(self, state: State, result: Result, t: Strings) -> list[FacetView]:
        """The facets that offer a choice, each with its most frequent values."""
        names, found = self.set_names(), []
        for name in FILTERS:
            facet, count = self._siblings(state, result, name)
            values = facet_values(t, facet, state, names, count)
            chosen = [value for value in values if value.chosen]
            if chosen or any(value.count != result.total for value in values):
                others = [value for value in values if not value.chosen]
                shown = (*chosen, *others[: max(SHOWN_VALUES - len(chosen), 3)])
                found.append(FacetView(name, shown, len(values) > len(shown)))
        return found

    def _siblings(self, state: State, result: Result, name: str) -> tuple[Facet, Callable[..., int]]:
        """A facet, and a function that counts the records with one of some values. A facet of which a value
        is chosen counts as if none were, so that others can be added.
        """
        chosen = state.chosen()
        others = {other: values for other, values in chosen.items() if other.removeprefix("-") != name}
        ask = partial(
            self.library.search,
            state.q or "*",
            limit=0,
            languages=[spoken for spoken in result.languages if name == "language"],
            all_words="off" if state.any_words or not result.words else "",
            sort=result.sort,
        )

        def count(values: Sequence[str]) -> int:
            return ask(filters=others | {name: list(values)}).total

        if others == chosen:
            return result.facets[name], count
        facet = ask(facets=(name,), facet_values=VALUES, filters=others).facets[name]
        # What is chosen stands there with its number, however rare it is beside the others.
        known = {value for value, _ in facet.values}
        rare = [v for n, v in state.filters if n.removeprefix("-") == name and v not in known]
        return replace(facet, values=(*facet.values, *((v, count([v])) for v in rare))), count

    def values(self, request: Request) -> Response:
        """All values of a facet among the results, with a search among them."""
        name, state = request.path_params["name"], self.state(request)
        if name not in FILTERS:
            raise HTTPException(404)
        t = self.pages.strings(request)
        inside = " ".join(request.query_params.get("inside", "")[:100].split())
        by_name = request.query_params.get("order") == "name"
        try:
            result = self.library.search(
                state.q or "*", limit=0, facets=(name,), facet_values=MOST_VALUES,
                filters={
                    other: values
                    for other, values in state.chosen().items()
                    if other.removeprefix("-") != name
                },
                all_words="off" if state.any_words else "", sort=state.sort,
            )  # fmt: skip
        except QueryError:
            return RedirectResponse(state.link(), 303)
        found = facet_values(t, result.facets[name], state, self.set_names())
        wanted = fold(inside)
        chosen = [value for value in found if value.chosen or value.excluded]
        others = [
            value for value in found if wanted in fold(value.label) and not (value.chosen or value.excluded)
        ]
        if by_name:
            others.sort(key=lambda value: fold(value.label))
        return self.pages.render(
            request, "values.html", here="search", state=state, facet=name, inside=inside, by_name=by_name,
            chosen=chosen, values=others[:LISTED_VALUES], total=len(others), known=len(found),
            hidden=[pair for pair in state.hidden(q=True) if pair[0].removeprefix("-") != name],
        )  # fmt: skip

    def items(self, result: Result) -> list[HitView]:
        analyzer = self.library.analyzer

        def terms_in(language: str) -> Callable[[str], tuple[str, ...]]:
            known = self._terms.setdefault(language, {})
            if len(known) > REMEMBERED:
                known.clear()

            def terms(word: str) -> tuple[str, ...]:
                found = known.get(word)
                if found is None:
                    found = known[word] = analyzer.term(word, language)
                return found

            return terms

        return group_series([shown(hit, terms_in(hit.language)) for hit in result.hits], result.ahead)

    def set_names(self) -> Mapping[str, str]:
        """What sets are called, by their setSpecs."""
        return self.library.set_names()

    def home(self, request: Request, state: State) -> Response:
        return self.pages.render(
            request,
            "home.html",
            here="search",
            state=state,
            description=self.library.settings.node.description,
            json_ld=website_json_ld(self.pages.name, self.root),
            browse="/?q=*",
            **self._opening(),
        )

    def _opening(self) -> JsonObject:
        """What the start page tells of the collection; found out anew only after a change."""
        searcher = self.library.searcher()
        with self.store.read() as view:
            key = (view.last_seq(), str(searcher.position), self.library.hidden())
            if self._start is not None and self._start[0] == key:
                return self._start[1]
            names = {origin.id: origin.name for origin in view.origins()}
            visible = self.visible(view)
            latest = _newest(view, visible)
            updated = view.latest(visible)
        every = self.library.search("*", limit=0, facets=("source",), facet_values=MAX_LIMIT)
        counted = self.library.search("*", limit=0, facets=("subject",)).facets["subject"]
        subjects = [s for s, _ in counted.values if len(s) < 40 and s.count(" ") < 3]
        newest = []
        for stored in latest:
            record = stored.record
            source = names.get(stored.origin, "")
            cited = citation(stored.identifier, record.metadata, record.properties, source)
            newest.append(
                {
                    "href": cited.page,
                    "title": cited.title,
                    "creators": cited.creators,
                    "year": cited.year,
                    "date": "",
                    "kind": shown_kind(cited, record.metadata),
                    "sources": (source,),
                    "access": cited.access,
                }
            )
        found = {
            "records": searcher.collection.documents,
            "sources": len(every.facets["source"].values),
            "changed": updated,
            "newest": newest,
            "examples": [{"q": s, "href": State(q=plain_words(s)).link()} for s in subjects[:4]],
        }
        self._start = (key, found)
        return found

    def suggest(self, request: Request) -> Response:
        """What a query may become, in the form of OpenSearch suggestions."""
        q = request.query_params.get("q", "")[:200]
        found = self.library.suggest(q)
        return JSONResponse(
            [q, [one.query for one in found], [str(one.records) for one in found]],
            headers={
                "Content-Type": "application/x-suggestions+json",
                "Cache-Control": "private, max-age=60",
            },
        )

    def answers(self, request: Request) -> Response:
        """What a query that is being typed may become, and the first records that it finds already."""
        q = " ".join(request.query_params.get("q", "")[:200].split())
        completions = self.library.suggest(q, ANSWERED)
        try:
            begun = f"{q}*" if len(q) > 2 and q[-1].isalnum() else q
            hits = self.library.search(begun, limit=3).hits if q else ()
        except IndletError:
            hits = ()  # half of a query
        found = [
            {
                "title": readable(hit.title)[:200],
                "href": record_path(hit.identifier, hit.source),
                "about": " · ".join(filter(None, (hit.source, hit.year))),
            }
            for hit in hits
        ]
        return JSONResponse(
            {"completions": [one.to_json() for one in completions], "hits": found},
            headers={"Cache-Control": "private, max-age=60"},
        )

    def help(self, request: Request) -> Response:
        return self.pages.render(request, "help.html", here="help", models=list(MODELS), address=self.root)

    def marked(self, request: Request) -> Response:
        """The records that a reader has marked: the browser keeps and fills in the list."""
        return self.pages.render(request, "marked.html", here="marked", files=RESULT_FILES)

    def information(self, request: Request) -> Response:
        if not self.pages.brand.about:
            raise HTTPException(404)
        return self.pages.render(request, "information.html", here="information")

    def logo(self, request: Request) -> Response:
        shown = self.pages.brand
        if not shown.logo:
            raise HTTPException(404)
        headers = {"Cache-Control": "public, max-age=86400"}
        return ForeignResponse(ForeignBytes(shown.logo), 200, headers, shown.logo_type, LOCKED_FILE)

    def colours(self, request: Request) -> Response:
        if not self.pages.brand.style:
            raise HTTPException(404)
        headers = {"Cache-Control": "public, max-age=86400"}
        return Response(self.pages.brand.style, media_type="text/css", headers=headers)

    def api(self, request: Request) -> Response:
        """What the API offers, with a form for each question that can be asked of it."""
        settings = self.library.settings
        return self.pages.render(
            request, "api.html", endpoints=ENDPOINTS, keys=bool(settings.api_key),
            anonymous=settings.api.anonymous_per_hour, examples=examples(self.root, bool(settings.api_key)),
        )  # fmt: skip

    def preferences(self, request: Request) -> Response:
        """Remember the language or the appearance, and go back to where the choice was made."""
        back = request.query_params.get("back", "/")
        # Only to ourselves: neither //elsewhere nor /\elsewhere.
        if not back.startswith("/") or back[1:2] in ("/", "\\") or any(c < " " for c in back):
            back = "/"
        response = RedirectResponse(back, 303)
        for name, known in (("theme", THEMES), ("lang", LANGUAGES)):
            value = request.query_params.get(name)
            if value in known:
                response.set_cookie(name, value, max_age=YEAR, samesite="lax", path="/")
        return response

    def description(self, request: Request) -> Response:
        t = self.pages.strings(request)
        text = self.library.settings.node.description or t("home.lead")
        body = opensearch(self.pages.name, text, self.root, t.code)
        return Response(body, media_type="application/opensearchdescription+xml")


def facet_values(
    t: Strings,
    facet: Facet,
    state: State,
    set_names: Mapping[str, str],
    count: Callable[[Sequence[str]], int] | None = None,
) -> list[FacetValue]:
    """A facet's values as readers see them, most frequent first. Values of one meaning ("eng", "English") are
    one; `count` counts the records that have any of them, without it their numbers are added up.
    """
    chosen = {value for name, value in state.filters if name == facet.name}
    excluded = {value for name, value in state.filters if name == f"-{facet.name}"}
    merged: dict[str, list[tuple[str, int]]] = {}
    for value, number in facet.values:
        shown = set_label(value, set_names) if facet.name == "set" else label(t, facet.name, value)
        if shown:
            merged.setdefault(shown, []).append((value, number))
    found = []
    for shown, values in merged.items():
        names = tuple(value for value, _ in values)
        number = sum(number for _, number in values)
        if len(values) > 1 and count is not None:
            number = count(names)
        found.append(
            FacetValue(
                shown,
                number,
                names,
                state.toggle(facet.name, names),
                not chosen.isdisjoint(names),
                not excluded.isdisjoint(names),
            )
        )
    return sorted(found, key=lambda value: -value.count)


def set_label(spec: str, names: Mapping[str, str]) -> str:
    """A set by its name, after those of the sets that it is in."""
    parts = spec.split(":")
    specs = [":".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    return " › ".join(names.get(one, part) for one, part in zip(specs, parts, strict=True))


def _corrections(result: Result, state: State) -> Sequence[tuple[str, str]]:
    """Other queries to try: the whole one corrected, then each word's alternatives."""
    found: dict[str, None] = {}
    if result.corrected:
        found[result.corrected] = None
    for suggestion in result.suggestions:
        for word in suggestion.instead[:3]:
            end = suggestion.at + len(suggestion.word)
            found[state.q[: suggestion.at] + word + state.q[end:]] = None
    return [(q, state.link(q=q)) for q in list(found)[:4] if q != state.q]
