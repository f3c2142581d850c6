"""A whole result as a file: CSV, BibTeX, RIS, JSON lines or a TREC run, written while it is read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from indlet.errors import AmbiguousRecord, QueryError, UnknownRecord
from indlet.provider.serve.http import TooMuch, received
from indlet.service.search.results import Hit
from indlet.web.citation import Citation, citation
from indlet.web.export import bibtex, citation_key, ris
from indlet.web.portal import Portal
from indlet.web.search_url import State

MOST: Final = 10_000  # records of a file
MARKED: Final = 500  # records of a reader's own list
MARKED_BYTES: Final = 512 * 1024  # of the request that names them
_STEP: Final = 200  # records that are in memory at once
COLUMNS: Final = (
    "identifier", "source", "title", "creators", "year", "type", "venue", "publisher", "doi", "url", "score",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    media_type: str
    write: Callable[[Hit, Citation], str]
    head: str = ""


def _csv(values: tuple[str, ...]) -> str:
    out = io.StringIO()
    # A spreadsheet would run what begins so as a formula, and metadata come from anywhere.
    csv.writer(out).writerow(
        f"'{value}" if re.match(r"\s*[=+\-@＝＋－＠]|[\t\r\n]", value) else value for value in values
    )
    return out.getvalue()


def _row(hit: Hit, cited: Citation) -> str:
    return _csv(
        (
            hit.identifier, hit.source, cited.title, "; ".join(cited.creators), hit.year, cited.kind,
            cited.venue, cited.publisher, cited.doi, cited.url, f"{hit.score:.6g}",
        )
    )  # fmt: skip


def _json(hit: Hit, cited: Citation) -> str:
    return orjson.dumps(hit.to_json()).decode() + "\n"


def _trec(hit: Hit, cited: Citation) -> str:
    name = "".join(c if not c.isspace() else "_" for c in hit.identifier)
    return f"1 Q0 {name} {hit.rank} {hit.score:.6f} indlet\n"


KINDS: Final = {
    "csv": Kind("text/csv; charset=utf-8", _row, _csv(COLUMNS)),
    "bib": Kind("application/x-bibtex; charset=utf-8", lambda hit, cited: bibtex(cited, hit.metadata) + "\n"),
    "ris": Kind(
        "application/x-research-info-systems; charset=utf-8",
        lambda hit, cited: ris(cited, hit.metadata) + "\r\n",
    ),
    "jsonl": Kind("application/x-ndjson", _json),
    "run": Kind("text/plain; charset=utf-8", _trec),
}


class ResultExport:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def file(self, request: Request) -> Response:
        """The records of a result page's address, all of its pages, in its order."""
        kind = KINDS[request.path_params["kind"]]
        state = self.portal.state(request)
        stream = self._written(state, kind)
        try:
            first = next(stream, "")  # a faulty query is told before the file begins
        except QueryError as e:
            return Response(f"{e}\n", 400, media_type="text/plain")
        name = re.sub(r"[^A-Za-z0-9]+", "-", state.q)[:40].strip("-").lower() or "records"
        headers = {
            "Content-Disposition": f'attachment; filename="{name}.{request.path_params["kind"]}"',
            "X-Robots-Tag": "noindex",
        }

        def body() -> Iterator[str]:
            yield first
            yield from stream

        return StreamingResponse(body(), headers=headers, media_type=kind.media_type)

    async def marked(self, request: Request) -> Response:
        """Records that a reader has marked, in their order: fields `record`, each a source and an identifier.

        What is not here, or not for this reader, is left out.
        """
        try:
            told = await received(request, MARKED_BYTES)
        except TooMuch as e:
            told_why = "the list is too long: mark fewer records" if e.status == 413 else str(e)
            return Response(f"{told_why}\n", e.status, media_type="text/plain")
        wanted = [value for name, value in parse_qsl(told.decode("utf-8", "replace")) if name == "record"]
        if request.path_params["kind"] not in KINDS:
            raise HTTPException(404)
        kind = KINDS[request.path_params["kind"]]
        body = await run_in_threadpool(self._listed, wanted[:MARKED], kind)
        name = f"marked.{request.path_params['kind']}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Robots-Tag": "noindex"}
        return Response(body, headers=headers, media_type=kind.media_type)

    def _listed(self, wanted: Sequence[str], kind: Kind) -> str:
        hits, keys = list[Hit](), dict[str, int]()
        for value in dict.fromkeys(wanted):
            source, _, identifier = value.partition("\n")
            with suppress(UnknownRecord, AmbiguousRecord):
                hits.append(self.portal.library.record(identifier.strip(), source.strip()))
        out = [kind.head]
        for rank, hit in enumerate(hits, 1):
            cited = citation(hit.identifier, hit.metadata, hit.properties, hit.source)
            entry = kind.write(replace(hit, rank=rank), cited)
            out.append(_distinct(entry, cited, keys) if kind is KINDS["bib"] else entry)
        return "".join(out)

    def _written(self, state: State, kind: Kind) -> Iterator[str]:
        written: set[int] = set()  # the index may move on between two steps
        keys: dict[str, int] = {}
        for offset in range(0, MOST, _STEP):
            hits = self.portal.found(state, _STEP, offset).hits
            text = kind.head if not offset else ""
            for hit in hits:
                if hit.id not in written:
                    written.add(hit.id)
                    cited = citation(hit.identifier, hit.metadata, hit.properties, hit.source)
                    entry = kind.write(hit, cited)
                    text += _distinct(entry, cited, keys) if kind is KINDS["bib"] else entry
            yield text
            if len(hits) < _STEP:
                return


def _distinct(entry: str, cited: Citation, keys: dict[str, int]) -> str:
    """A BibTeX entry whose key no earlier one has."""
    key = citation_key(cited)
    keys[key] = number = keys.get(key, 0) + 1
    return entry if number == 1 else entry.replace(f"{{{key},", f"{{{key}-{number},", 1)
