"""One record: its page for people, and the same record for machines (exports, unAPI)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from indlet.datestamps import parse
from indlet.errors import IndletError
from indlet.formats.feed_writer import rfc3339
from indlet.formats.identifiers import address, keys_of
from indlet.model import DUBLIN_CORE, JsonMapping, JsonObject, Record, Stored
from indlet.provider.serve.responses import ForeignResponse
from indlet.service.index import expression as e
from indlet.service.search.library import one_resource
from indlet.service.search.rank import MODELS
from indlet.store import Origin
from indlet.web.citation import Citation, citation, record_path, safe_url
from indlet.web.discovery import coins, export_path, highwire, json_ld, signposting, unapi_formats
from indlet.web.export import CITATION_FORMATS, EXPORTS, Export, citation_key, exported
from indlet.web.hit_view import item, shown_kind
from indlet.web.i18n import Strings
from indlet.web.math_text import readable
from indlet.web.portal import Portal
from indlet.web.profile import profile_path
from indlet.web.reference import STYLES, reference
from indlet.web.search_url import State, label
from indlet.web.svg import BarRow, bars
from indlet.web.text_origin import TextOrigin, text_origin

STRONGEST: Final = 12
SIMILAR: Final = 5
FIRST_AUTHORS: Final = 10  # that are named at the head of the page; the others unfold
_HOSTS: Final = {
    "arxiv.org": "arXiv", "doi.org": "DOI", "dx.doi.org": "DOI", "hdl.handle.net": "Handle",
    "zenodo.org": "Zenodo", "www.jstor.org": "JSTOR", "hal.science": "HAL",
    "pubmed.ncbi.nlm.nih.gov": "PubMed",
}  # fmt: skip
# Fields whose values are worth a search of their own.
_SEARCHED: Final = ("creator", "contributor", "subject", "publisher")
_WORD = re.compile(r"\w+")


class Records:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    # Pages

    def page(self, request: Request) -> Response:
        """A record's page."""
        identifier, source = _named(request)
        found = self._get(identifier, source)
        if (refused := self._unclear(request, identifier, found)) is not None:
            return refused
        stored, origin = found[0]
        t = self.portal.pages.strings(request)
        cited = _cited(stored, origin)
        if source and origin.name != source:  # it was called otherwise once
            return RedirectResponse(cited.page, 303)
        if (wanted := _negotiated(request)) is not None:
            return self._exported(cited, stored, wanted)
        record, request.state.source = stored.record, origin.name  # the latter for the statistics
        address = self.portal.root + cited.page
        return self.portal.pages.render(
            request,
            "record.html",
            headers={"Link": signposting(cited, self.portal.root)},
            cited=replace(cited, title=readable(cited.title)),
            title=cited.title,
            place=_place(cited, origin),
            neighbours=self._neighbours(request, cited),
            references=[(name, shown, reference(name, cited)) for name, shown in STYLES.items()],
            facts={
                "creators": (),
                "year": cited.year,
                "kind": shown_kind(cited, record.metadata),
                "date": "",
                "sources": (origin.name,),
                "access": cited.access,
            },
            page=address,
            back=_list_address(request, self.portal.library.settings.mount()) or "/",
            highwire=highwire(cited, address),
            json_ld=json_ld(cited, address),
            coins=coins(cited),
            exports=[
                {
                    "label": export.label,
                    "kind": export.media_type.partition(";")[0],
                    "href": export_path(cited, name),
                    "cites": name in CITATION_FORMATS,
                }
                for name, export in EXPORTS.items()
            ],
            first_authors=FIRST_AUTHORS,
            author_page=partial(profile_path, "author"),
            metadata=_described(t, record),
            inferred={
                f"inferred_{name}": values
                for name, values in self.portal.library.inferred(identifier, origin.name).items()
            },
            terms=self._strongest(record),
            length=stored.length,
            provenance=_provenance(
                t,
                stored,
                record,
                origin,
                self._others(stored),
                self.portal.library.set_names(origin.name),
                self._text_origin(stored),
            ),
            similar=self._similar(cited),
        )

    def _unclear(
        self, request: Request, identifier: str, found: Sequence[tuple[Stored, Origin]]
    ) -> Response | None:
        """What to answer unless one record is meant: none is there, it was deleted, or there are several."""
        t, pages = self.portal.pages.strings(request), self.portal.pages
        live = [(stored, origin) for stored, origin in found if not stored.deleted]
        if live and one_resource([stored for stored, _ in live]):
            return None
        if live:
            choices = [(_cited(stored, origin), origin.name) for stored, origin in live]
            return pages.render(request, "choices.html", 300, identifier=identifier, choices=choices)
        if found:
            told = t("record.gone_when", day=t.day(_deleted_at(found[0][0])), identifier=identifier)
            return pages.message(request, 410, t("record.gone"), told, search=True)
        told = t("record.missing_text", identifier=identifier)
        return pages.message(request, 404, t("record.missing"), told, search=True)

    # Machines

    def export(self, request: Request) -> Response:
        wanted = EXPORTS.get(request.path_params["name"])
        if wanted is None:
            t = self.portal.pages.strings(request)
            told = t("export.unknown", name=request.path_params["name"][:40], known=", ".join(EXPORTS))
            return self.portal.pages.message(request, 404, t("error.not_found"), told)
        identifier, source = _named(request)
        found = self._get(identifier, source)
        if (refused := self._unclear(request, identifier, found)) is not None:
            return refused
        return self._exported(_cited(*found[0]), found[0][0], wanted, download=True)

    def unapi(self, request: Request) -> Response:
        identifier = request.query_params.get("id")
        name = request.query_params.get("format")
        if identifier is None:
            return Response(unapi_formats(None), media_type="application/xml")
        found = [(s, o) for s, o in self._get(*_of_page(identifier)) if not s.deleted]
        if not found:
            return Response("unknown identifier\n", 404, media_type="text/plain")
        if not one_resource([stored for stored, _ in found]):
            names = ", ".join(origin.name for _, origin in found)
            return Response(f"several sources have it: {names}\n", 409, media_type="text/plain")
        if name is None:
            return Response(unapi_formats(identifier), 300, media_type="application/xml")
        if name not in EXPORTS:
            return Response(f"formats: {', '.join(EXPORTS)}\n", 406, media_type="text/plain")
        return self._exported(_cited(*found[0]), found[0][0], EXPORTS[name])

    def _exported(
        self, cited: Citation, stored: Stored, export: Export, *, download: bool = False
    ) -> Response:
        headers = {"Vary": "Accept", "Content-Type": export.media_type}
        if download:
            name = citation_key(cited)
            headers["Content-Disposition"] = f'attachment; filename="{name}.{export.suffix}"'
        return ForeignResponse(exported(export, cited, stored), 200, headers)

    # What the page tells

    def _get(self, identifier: str, source: str) -> list[tuple[Stored, Origin]]:
        """The records of an identifier, live ones first; those of all sources where the one named has none,
        for it may have been called otherwise.
        """
        if not identifier or len(identifier) > 2000:
            return []
        library = self.portal.library
        found = library.namesakes(identifier, source) or library.namesakes(identifier)
        with self.portal.store.read() as view:
            origins = {origin.id: origin for origin in view.origins()}
        return [(library.analyzer.completed(stored), origins[stored.origin]) for stored in found]

    def _others(self, stored: Stored) -> list[tuple[str, str]]:
        """The same resource as other sources tell it: (source, page)."""
        with self.portal.store.read() as view:
            names = {o.id: o.name for o in view.origins()}
        return [
            (name := names.get(other.origin, ""), record_path(other.identifier, name))
            for other in self.portal.library.copies(stored)[:20]
        ]

    def _text_origin(self, stored: Stored) -> TextOrigin:
        with self.portal.store.read() as view:
            return text_origin(view, stored)

    def _neighbours(self, request: Request, cited: Citation) -> JsonObject | None:
        """The place of a record in the result list that the reader came from, with the records before and
        after it; None if there is no such list.
        """
        address = urlsplit(_list_address(request, self.portal.library.settings.mount()))
        if not address.query or address.path != "/":
            return None
        state = State.of(QueryParams(address.query), MODELS, self.portal.library.settings.search.model)
        size = state.size or max(1, self.portal.library.settings.search.limit)
        first = max(0, (state.page - 1) * size - 1)
        try:
            result = self.portal.found(state, size + 2, first)
        except IndletError:
            return None
        found = [hit.identifier for hit in result.hits]
        if cited.identifier not in found:
            return None
        at = found.index(cited.identifier)

        def link(number: int) -> str:
            if not 0 <= number < len(result.hits):
                return ""
            hit = result.hits[number]
            page = replace(state, page=(first + number) // size + 1)
            path = record_path(hit.identifier, hit.source)
            mark = "&" if "?" in path else "?"
            return f"{path}{mark}list={quote(page.link(page=page.page).partition('?')[2], safe='')}"

        return {
            "place": first + at + 1, "total": result.total, "previous": link(at - 1), "next": link(at + 1)
        }  # fmt: skip

    def _strongest(self, record: Record) -> tuple[BarRow, ...]:
        """The terms with the highest tf·idf, written as words of the description where it holds them."""
        frequencies = record.vector.frequencies() if record.vector else {}
        if not frequencies:
            return ()
        searcher = self.portal.library.searcher()
        # The most frequent are enough to find the strongest among, and bound the work for a whole book.
        frequent = sorted(frequencies, key=lambda term: (-frequencies[term], term))[:400]
        asked = searcher.query_terms(e.Or(tuple(e.Term(term) for term in frequent)))
        documents = searcher.collection.documents
        weighed = []
        for term in asked:
            name = term.term.decode()
            if len(name) < 2 or name.isdecimal():
                continue
            idf = math.log(1 + (documents - term.df + 0.5) / (term.df + 0.5))
            weighed.append((frequencies[name] * idf, name))
        weighed.sort(key=lambda pair: (-pair[0], pair[1]))
        words = self._words(record)
        top = [(words.get(name, name), weight, frequencies[name]) for weight, name in weighed[:STRONGEST]]
        return bars(top, width=112.0)

    def _words(self, record: Record) -> dict[str, str]:
        """For each stem in the metadata the word that it stands for."""
        analyzer = self.portal.library.analyzer
        language = record.vector.language if record.vector else ""
        found: dict[str, str] = {}
        for element in ("title", "subject", "description"):
            for value in record.metadata.get(element, ())[:20]:
                for word in _WORD.findall(value[:4000]):
                    for term in analyzer.term(word, language):
                        found.setdefault(term, word.lower())
        return found

    def _similar(self, cited: Citation) -> list[Any]:
        try:
            found = self.portal.library.similar(cited.identifier, source=cited.source, limit=SIMILAR)
            return [item(hit) for hit in found.hits]
        except IndletError:
            return []  # not indexed yet: the record is no less a record


def _named(request: Request) -> tuple[str, str]:
    """The identifier and the source that an address names."""
    identifier = str(request.path_params.get("identifier") or request.query_params.get("id", ""))
    return identifier, request.query_params.get("source", "")[:500]


def _of_page(name: str) -> tuple[str, str]:
    """The identifier and the source that the path of a record's page names; else the name itself."""
    if not name.startswith("/record"):
        return name, ""
    parts = urlsplit(name)
    given = dict(parse_qsl(parts.query))
    return given.get("id") or parts.path.removeprefix("/record/"), given.get("source", "")


def _deleted_at(stored: Stored) -> float:
    """When the source deleted a record; when that became known here, where the source does not date it."""
    at = parse(str(stored.record.properties.get("source_datestamp", "")))
    return stored.datestamp if at is None else at.timestamp()


def _cited(stored: Stored, origin: Origin) -> Citation:
    record = stored.record
    return citation(stored.identifier, record.metadata, record.properties, origin.name)


def _negotiated(request: Request) -> Export | None:
    """The export that the Accept header asks for before HTML, if any."""
    for part in request.headers.get("accept", "")[:500].split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in ("text/html", "application/xhtml+xml", "*/*"):
            return None
        for export in EXPORTS.values():
            if kind == export.media_type.partition(";")[0]:
                return export
    return None


def _list_address(request: Request, mount: str) -> str:
    """The result page that the reader came from: as the address says, else the referring page; empty if it
    was none of ours.
    """
    if given := request.query_params.get("list", "")[:4000]:
        return f"/?{given}"
    referer = urlsplit(request.headers.get("referer", "")[:4000])
    path = referer.path.removeprefix(mount) or "/"
    ours = referer.netloc == request.headers.get("host") and path in ("/", "/compare")
    return f"{path}?{referer.query}" if ours and referer.query else ""


def _place(cited: Citation, origin: Origin) -> str:
    """What the owner's place is called: a well-known host by its name, a source's own host by that of the
    source."""
    host = (urlsplit(cited.url).hostname or "").lower()
    own = (urlsplit(str(origin.settings.get("url", ""))).hostname or "").lower()
    if host and host == own:
        return origin.name
    return _HOSTS.get(host) or host.removeprefix("www.")[:60]


def _field_search(field: str, value: str) -> str:
    # With its comma, a name says which of its words is the family name.
    words = " ".join("".join(c if c.isalnum() or c in ",.'’-" else " " for c in value).split()[:12])
    return State(q=f'{field}:"{words}"' if any(c.isalnum() for c in words) else value).link()


def _described(t: Strings, record: Record) -> list[tuple[str, list[JsonObject]]]:
    found = []
    for element in DUBLIN_CORE:
        values = []
        # Authors, the title and the first description stand above.
        if element == "creator":
            continue
        for text in record.metadata.get(element, ())[int(element in ("title", "description")) : 200]:
            if element in _SEARCHED:
                href = profile_path("subject", text) if element == "subject" else _field_search(element, text)
                values.append({"text": readable(text), "href": href, "outside": False})
            else:
                known = map(address, keys_of(text)) if element in ("identifier", "relation", "source") else ()
                href = safe_url(text) or next(filter(None, known), "")
                if shown := _value_text(t, element, text):
                    values.append({"text": shown, "href": href, "outside": True})
        if values:
            found.append((element, values))
    return found


def _value_text(t: Strings, element: str, text: str) -> str:
    if element in ("language", "type"):
        return label(t, element, text)
    if element == "date" and (at := parse(text)):
        return t.date(text) if len(text) <= 10 else t.moment(at.timestamp())
    return readable(text)


def _provenance(
    t: Strings,
    stored: Stored,
    record: Record,
    origin: Origin,
    others: list[tuple[str, str]],
    set_names: Mapping[str, str],
    words: TextOrigin,
) -> list[tuple[str, list[tuple[str, str]]]]:
    """What is known of where a record comes from: labels, each with values and their links."""
    properties: JsonMapping = record.properties
    found = [(t("record.source"), [(origin.name, profile_path("source", origin.name))])]
    found.append((t("record.identifier"), [(stored.identifier, "")]))
    found.append((t("record.harvested"), [(t.moment(stored.datestamp), "")]))
    if isinstance(told := origin.state.get("confirmed"), str) and (at := parse(told)):
        found.append((t("record.confirmed"), [(t.moment(at.timestamp()), "")]))
    original = properties.get("source_datestamp")
    if isinstance(original, int | float) and original > 0:
        original = rfc3339(original)
    if isinstance(original, str) and original:
        at = parse(original[:40])
        found.append((t("record.datestamp"), [(t.moment(at.timestamp()) if at else original[:40], "")]))
    if record.sets:
        links = [
            (set_names.get(spec, spec), State(filters=(("set", spec),)).link()) for spec in record.sets[:20]
        ]
        found.append((t("record.sets"), links))
    found.append((t("words.from"), [words.tell(t)]))
    policy = properties.get("policy")
    if isinstance(policy, str) and policy:
        found.append((t("record.policy"), [(policy[:16], "")]))
    if others:
        found.append((t("record.also"), others))
    return found
