"""The pages for people who search: start, results, suggestions, help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from indlet.errors import QueryError
from indlet.model import Facet, JsonObject, Stored
from indlet.provider.serve.responses import LOCKED_FILE, ForeignBytes, ForeignResponse
from indlet.service.api.routes import ENDPOINTS
from indlet.service.search.library import MAX_LIMIT, Library
from indlet.service.search.rank import MODELS
from indlet.service.search.results import Result
from indlet.store import Store, View
from indlet.web.api_examples import examples
from indlet.web.citation import citation
from indlet.web.discovery import opensearch, website_json_ld
from indlet.web.hit_view import item as shown
from indlet.web.hit_view import shown_kind
from indlet.web.i18n import LANGUAGES, Strings, strings
from indlet.web.math_text import readable
from indlet.web.page import THEMES, Pages
from indlet.web.search_url import FILTERS, ORDERS, SIZES, State, label, page_list, plain_words
from indlet.web.svg import histogram

FACETS: Final = (*FILTERS, "year")
NEWEST: Final = 6  # records on the start page
LOOKED_AT, LOOKS = 1000, 5  # latest changes that they are chosen from at once, and how often
DEEPEST: Final = 10_000  # results that can be paged through
REMEMBERED: Final = 100_000  # words of each language whose terms are kept at hand
VALUES: Final = 20  # of each facet
# What a whole result can be had as (`result_export.py`), by the ending of its address.
RESULT_FILES: Final = {"csv": "CSV", "bib": "BibTeX", "ris": "RIS", "jsonl": "JSON", "run": "TREC"}
KINDS_LISTED: Final = ("creator", "subject", "set", "source")  # facets whose lists are linked
YEAR: Final = 31_536_000  # seconds that a browser remembers a preference


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
        names, t = self.set_names(), strings(self.pages.language(request))
        common: JsonObject = {
            "here": "search",
            "state": state,
            "models": list(MODELS),
            "orders": ORDERS,
            "sizes": sorted({*SIZES, max(1, self.library.settings.search.limit)}),
            "size": size,
            "browsable": KINDS_LISTED,
            "set_names": names,
        }
        try:
            result = self.found(state, size, (state.page - 1) * size, FACETS)
            facets = self._siblings(state, result)
        except QueryError as e:
            return self.pages.render(request, "search.html", 400, fault=fault(e, t), **common)
        request.state.total = result.total  # for the statistics
        pages = min(-(-result.total // size), deepest)
        if result.total and state.page > pages:
            return RedirectResponse(state.link(page=pages), 303)
        return self.pages.render(
            request,
            "search.html",
            fault=None,
            items=self.items(result),
            total=result.total,
            milliseconds=result.took_ms,
            facets=[group for name in FILTERS if (group := _facet(t, facets[name], result, state, names))],
            ahead=result.ahead if result.ahead < result.total else 0,
            exports=[(label, state.results(name)) for name, label in RESULT_FILES.items()],
            picture=histogram(dict(result.histogram)),
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
        )

    def _siblings(self, state: State, result: Result) -> dict[str, Facet]:
        """The facets; one of which a value is chosen counts as if none were, so that others can be added."""
        chosen = state.chosen()
        found = dict(result.facets)
        for name in FILTERS:
            if name not in chosen:
                continue
            ask = partial(
                self.library.search,
                state.q or "*",
                limit=0,
                languages=[spoken for spoken in result.languages if name == "language"],
            )
            others = {other: values for other, values in chosen.items() if other != name}
            facet = ask(facets=(name,), facet_values=VALUES, filters=others).facets[name]
            # What is chosen stands there with its number, however rare it is beside the others.
            rare = [value for value in chosen[name] if value not in dict(facet.values)]
            counted = [(value, ask(filters=others | {name: [value]}).total) for value in rare]
            found[name] = replace(facet, values=(*facet.values, *counted))
        return found

    def items(self, result: Result) -> list[Any]:
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

        return [shown(hit, terms_in(hit.language)) for hit in result.hits]

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
                    "title": readable(cited.title),
                    "creators": cited.creators,
                    "year": cited.year,
                    "kind": shown_kind(cited, record.metadata),
                    "sources": (source,),
                    "restricted": cited.restricted,
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

    def help(self, request: Request) -> Response:
        return self.pages.render(request, "help.html", here="help", models=list(MODELS))

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
        t = strings(self.pages.language(request))
        text = self.library.settings.node.description or t("home.lead")
        body = opensearch(self.pages.name, text, self.root, t.code)
        return Response(body, media_type="application/opensearchdescription+xml")


def _facet(
    t: Strings, facet: Facet, result: Result, state: State, names: Mapping[str, str]
) -> JsonObject | None:
    """A facet's values: label, count, address, whether it is chosen; nothing where there is no choice."""
    chosen = {value for name, value in state.filters if name == facet.name}
    if not chosen and all(count == result.total for _, count in facet.values):
        return None
    values = [
        (
            set_label(value, names) if facet.name == "set" else label(t, facet.name, value),
            t.number(count),
            state.toggled(facet.name, value),
            value in chosen,
        )
        for value, count in facet.values
    ]
    return {"name": facet.name, "values": sorted(values, key=lambda v: not v[3])}


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
