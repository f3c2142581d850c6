"""The JSON API. One table says what there is: routes, checks of arguments and the OpenAPI document follow it.

Handlers are ordinary functions, so each request runs in a worker thread and none waits for another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from indlet import __version__
from indlet.errors import AmbiguousRecord, IndletError, QueryError, SettingsError, StoreError, UnknownRecord
from indlet.model import JsonMapping, JsonObject
from indlet.service.api import schemas
from indlet.service.index import SORTS
from indlet.service.search import statistics
from indlet.service.search.library import FACETS, FILTERS, MAX_OFFSET, Library
from indlet.service.search.query_reader import ACCENTS, ALL_WORDS
from indlet.service.search.rank import MODELS
from indlet.service.search.results import Explained

_log = logging.getLogger("indlet.api")
MAX_LIMIT: Final = 1000
MAX_COMPARED: Final = 100  # records of each model, of which there are several
MAX_TEXT: Final = 8000  # characters of an argument
MAX_REPEATED: Final = 50  # values of an argument that may be repeated
_LANGUAGES: Final = "By whose rules the query is analysed; as many as wanted. Default: those of the records."


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    about: str
    kind: type = str
    required: bool = False
    repeated: bool = False
    default: int | str | None = None
    choices: tuple[str, ...] = ()
    most: int = 0

    def read(self, request: Request) -> object:
        """The argument as given, checked; SettingsError says what is wrong with it."""
        given = request.query_params.getlist(self.name)
        if self.required and not given:
            raise SettingsError(f"{self.name} is missing: {self.about}")
        if not self.repeated and len(given) > 1:
            raise SettingsError(f"{self.name} is given {len(given)} times; give it once")
        if len(given) > MAX_REPEATED:
            raise SettingsError(f"{self.name} is given {len(given)} times; {MAX_REPEATED} are the most")
        values = [self._value(text) for text in given]
        if self.repeated:
            return tuple(dict.fromkeys(values))
        return values[0] if values else self.default

    def _value(self, text: str) -> int | str:
        if len(text) > MAX_TEXT:
            raise SettingsError(f"{self.name} has {len(text):,} characters; {MAX_TEXT:,} are the most")
        if self.choices and text not in self.choices:
            raise SettingsError(f"{self.name} is {text[:40]!r}; choose from {', '.join(self.choices)}")
        if self.kind is bool:
            if text.lower() not in ("", "0", "1", "true", "false"):
                raise SettingsError(f"{self.name} is {text[:40]!r}; give true or false")
            return text.lower() not in ("0", "false")
        if self.kind is int:
            if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) > self.most:
                raise SettingsError(f"{self.name} is {text[:40]!r}; give a number from 0 to {self.most:,}")
            return int(text)
        return text

    def schema(self) -> JsonObject:
        inner: JsonObject = {"type": {int: "integer", bool: "boolean", str: "string"}[self.kind]}
        if self.kind is int:
            inner |= {"minimum": 0, "maximum": self.most}
        if self.kind is str and not self.choices:
            inner["maxLength"] = MAX_TEXT
        if self.choices:
            inner["enum"] = list(self.choices)
        if self.default is not None:
            inner["default"] = self.default
        shape = {"type": "array", "items": inner, "maxItems": MAX_REPEATED} if self.repeated else inner
        more: JsonObject = {"style": "form", "explode": True} if self.repeated else {}
        return {
            "name": self.name, "in": "query", "required": self.required, "description": self.about,
            "schema": shape, **more,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    path: str
    about: str
    answer: Callable[[Library, JsonMapping], object]
    parameters: tuple[Parameter, ...]
    schema: str  # its answer's name among the schemas


_Q: Final = Parameter("q", "The query; * for every record. See docs/query.md.", required=True)
_IDENTIFIER: Final = Parameter("identifier", "A record's OAI identifier.", required=True)
_SOURCE: Final = Parameter(
    "source", "Whose record, by the name of the source; needed where several have different ones."
)
_MODEL: Final = (
    Parameter("model", "The retrieval model.", choices=tuple(MODELS)),
    Parameter("param", "A parameter of the model, as k1=0.9; as many as it has.", repeated=True),
)
_PLAIN: Final = Parameter("plain", "Take q as words, whatever signs are in it.", bool, default=False)
_SPOKEN: Final = Parameter("languages", _LANGUAGES, repeated=True)
_TAKEN: Final = (
    Parameter("accents", "Whether accents count.", choices=ACCENTS),
    Parameter("all_words", "Whether records with all words come first.", choices=ALL_WORDS),
)
_LIMIT: Final = Parameter("limit", "How many records.", int, default=10, most=MAX_LIMIT)


def _search(library: Library, given: JsonMapping) -> object:
    facets = FACETS if "all" in given["facets"] else tuple(dict.fromkeys(given["facets"]))
    return library.search(
        given["q"],
        model=given["model"] or "",
        parameters=given["param"],
        limit=given["limit"],
        offset=given["offset"],
        sort=given["sort"],
        facets=facets,
        facet_values=given["facet_values"],
        exact_total=given["exact_total"],
        filters={name: given[name] for name in FILTERS if given[name]},
        languages=given["languages"],
        plain=given["plain"],
        accents=given["accents"] or "",
        all_words=given["all_words"] or "",
    ).to_json()


def _compare(library: Library, given: JsonMapping) -> object:
    models = given["model"] or tuple(MODELS)
    return library.compare(
        given["q"], models, limit=given["limit"], languages=given["languages"], plain=given["plain"]
    ).to_json()


def _explain(library: Library, given: JsonMapping) -> object:
    """Of a record that several sources have under one identifier, the one that the search shows: the best."""

    def told(source: str) -> Explained:
        return library.explain(
            given["q"],
            given["identifier"],
            source=source,
            model=given["model"] or "",
            parameters=given["param"],
            languages=given["languages"],
            plain=given["plain"],
            accents=given["accents"] or "",
            all_words=given["all_words"] or "",
        )

    sources = [given["source"]] if given["source"] else library.holders(given["identifier"]) or [""]
    return max(map(told, sources), key=lambda one: (one.matches, one.score)).to_json()


def _similar(library: Library, given: JsonMapping) -> object:
    return library.similar(
        given["identifier"],
        source=given["source"] or "",
        limit=given["limit"],
        model=given["model"] or "bm25",
    ).to_json()


def _suggest(library: Library, given: JsonMapping) -> object:
    found = library.suggest(given["q"], given["limit"])
    return {"q": given["q"], "completions": [one.to_json() for one in found]}


def _browse(library: Library, given: JsonMapping) -> JsonObject:
    return library.browse(given["facet"], given["from"] or "", max(given["limit"], 1)).to_json()


def _record(library: Library, given: JsonMapping) -> object:
    return library.record(given["identifier"], given["source"] or "").to_json() | {
        "frequencies": library.frequencies(given["identifier"], given["source"] or "")
        if given["frequencies"]
        else {},
        "inferred": library.inferred(given["identifier"], given["source"] or ""),
    }


def _stats(library: Library, given: JsonMapping) -> object:
    return statistics.for_everybody(library.stats(everything=False))


def _sources(library: Library, given: JsonMapping) -> object:
    return {"sources": library.sources()}


ENDPOINTS: Final = (
    ApiEndpoint(
        "/api/search",
        "Records that match a query, best first",
        _search,
        (
            _Q, *_MODEL, _LIMIT,
            Parameter("offset", "Leave out so many.", int, default=0, most=MAX_OFFSET),
            Parameter("sort", "The order.", choices=SORTS, default="score"),
            Parameter("facets", "Which facets to count.", repeated=True, choices=(*FACETS, "all")),
            Parameter("facet_values", "How many values of each facet.", int, default=50, most=1000),
            Parameter("exact_total", "Without it the total may be a lower bound.", bool, default=True),
            *(Parameter(name, f"Only records of this {name}; several: any of them.", repeated=True)
              for name in FILTERS),
            _SPOKEN, _PLAIN, *_TAKEN,
        ),
        "Result",
    ),
    ApiEndpoint(
        "/api/compare",
        "One query under several models, side by side",
        _compare,
        (
            _Q,
            Parameter("model", "A model to compare; default: all.", repeated=True, choices=tuple(MODELS)),
            Parameter("limit", "How many records of each.", int, default=10, most=MAX_COMPARED),
            _SPOKEN, _PLAIN,
        ),
        "Comparison",
    ),
    ApiEndpoint(
        "/api/explain", "How a record comes by its score", _explain,
        (_Q, _IDENTIFIER, _SOURCE, *_MODEL, _SPOKEN, _PLAIN, *_TAKEN), "Explanation",
    ),
    ApiEndpoint(
        "/api/similar", "Records like one", _similar, (_IDENTIFIER, _SOURCE, _MODEL[0], _LIMIT), "Result"
    ),
    ApiEndpoint(
        "/api/suggest", "What a half-typed query may become: words, people, titles", _suggest,
        (_Q, Parameter("limit", "How many.", int, default=8, most=50)), "Completions",
    ),
    ApiEndpoint(
        "/api/browse", "The values of a facet from A to Z", _browse,
        (
            Parameter("facet", "Which facet.", required=True, choices=FACETS),
            Parameter("from", "Where to begin: the beginning of a value, or `next` of the part before."),
            Parameter("limit", "How many.", int, default=50, most=200),
        ), "Listing",
    ),
    ApiEndpoint(
        "/api/record",
        "One record",
        _record,
        (
            _IDENTIFIER,
            _SOURCE,
            Parameter("frequencies", "With its term vector.", bool, default=False),
        ),
        "Record",
    ),
    ApiEndpoint("/api/sources", "Where the records come from", _sources, (), "Sources"),
    ApiEndpoint("/api/stats", "Store and index in numbers", _stats, (), "Statistics"),
)  # fmt: skip


def routes(library: Library) -> list[BaseRoute]:
    """The API's routes over a library, and the document that describes them."""

    def described(request: Request) -> Response:
        return _json(openapi(library.settings.base_url()))

    read = partial(_readable, library.settings.allowed_origins())
    return [
        *(Route(endpoint.path, read(_handler(endpoint, library)), methods=["GET"]) for endpoint in ENDPOINTS),
        Route("/api/openapi.json", read(described), methods=["GET"]),
        Route("/api/{rest:path}", read(_preflight), methods=["OPTIONS"]),
        Route("/api/{rest:path}", read(_unknown), methods=["GET"]),
        Route("/api/{rest:path}", read(_refused), methods=["POST", "PUT", "PATCH", "DELETE"]),
    ]


def _readable(origins: Sequence[str], handle: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """The same answers, with the permission for pages of these origins to read them (CORS)."""

    def handled(request: Request) -> Response:
        response = handle(request)
        origin = request.headers.get("origin", "")
        if "*" in origins:
            response.headers["Access-Control-Allow-Origin"] = "*"
        elif origins:
            response.headers["Vary"] = "Origin"
            if origin in origins:
                response.headers["Access-Control-Allow-Origin"] = origin
        return response

    return handled


def application(library: Library) -> Starlette:
    """The API alone."""
    return Starlette(routes=routes(library))


def _handler(endpoint: ApiEndpoint, library: Library) -> Callable[[Request], Response]:
    known = {parameter.name for parameter in endpoint.parameters}

    def handle(request: Request) -> Response:
        try:
            for name in request.query_params:
                if name not in known:
                    takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
                    raise SettingsError(f"{endpoint.path} has no parameter {name[:40]!r}; {takes}")
            given = {parameter.name: parameter.read(request) for parameter in endpoint.parameters}
            return _json(endpoint.answer(library, given))
        except IndletError as e:
            return _problem(e)

    return handle


def _json(value: object, status: int = 200, media_type: str = "application/json") -> Response:
    return Response(orjson.dumps(value), status, media_type=media_type)


def _problem(error: IndletError) -> Response:
    """An error as RFC 9457 wants it: what it is, and in `detail` the thing, the problem and the remedy."""
    more: JsonObject = {}
    if isinstance(error, QueryError):
        status, title = 400, "The query cannot be understood"
        more = {"detail": error.problem, "query": error.query, "position": error.position}
    elif isinstance(error, AmbiguousRecord):
        status, title, more = 409, "Several sources have it", {"sources": list(error.sources)}
    elif isinstance(error, UnknownRecord):
        status, title = 404, "No such record"
    elif isinstance(error, SettingsError):
        status, title = 400, "An argument cannot be used"
    elif isinstance(error, StoreError):
        _log.error("%s", error)  # files, addresses: they are the operator's
        status, title = 503, "The store cannot answer now"
        more = {"detail": "the store or the index of this node cannot be read; ask again later"}
    else:
        status, title = 500, "Something went wrong here"
    body = {"type": "about:blank", "title": title, "status": status, "detail": str(error)} | more
    return _json(body, status, "application/problem+json")


def _preflight(request: Request) -> Response:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, HEAD",
            "Access-Control-Allow-Headers": "X-API-Key",
            "Access-Control-Max-Age": "86400",
        },
    )


def _unknown(request: Request) -> Response:
    paths = ", ".join(endpoint.path for endpoint in ENDPOINTS)
    body = {
        "type": "about:blank",
        "title": "Not found",
        "status": 404,
        "detail": f"{request.url.path} is not part of the API; there are {paths} and /api/openapi.json",
    }
    return _json(body, 404, "application/problem+json")


def _refused(request: Request) -> Response:
    body = {
        "type": "about:blank",
        "title": "Method not allowed",
        "status": 405,
        "detail": f"{request.method} changes nothing here: the API only answers questions; use GET",
    }
    answer = _json(body, 405, "application/problem+json")
    answer.headers["Allow"] = "GET, HEAD, OPTIONS"
    return answer


def openapi(server: str = "") -> JsonObject:
    """The OpenAPI document."""
    failure = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "indlet",
            "version": __version__,
            "summary": "Search collections that you do not hold.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server or "/"}],
        "paths": {
            endpoint.path: {
                "get": {
                    "operationId": endpoint.path.rpartition("/")[2],
                    "summary": endpoint.about,
                    "parameters": [parameter.schema() for parameter in endpoint.parameters],
                    "responses": {
                        "200": {
                            "description": endpoint.about,
                            "content": {
                                "application/json": {
                                    "schema": {"$ref": f"#/components/schemas/{endpoint.schema}"}
                                }
                            },
                        },
                        "400": {"description": "An argument cannot be used"} | failure,
                        "404": {"description": "No such record"} | failure,
                        "503": {"description": "The store cannot answer now"} | failure,
                    },
                }
            }
            for endpoint in ENDPOINTS
        },
        "components": {"schemas": schemas.SCHEMAS},
    }
