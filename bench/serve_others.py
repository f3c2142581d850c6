"""pyoai and oai_repo over the same store, as ASGI applications, by their bulk interfaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread
import oai_repo
from bench.pyoai import common, metadata, server
from lxml import etree
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from indlet.model import Stored
from indlet.store import Store


def _application(answer: Callable[[dict[str, str]], bytes]) -> Starlette:
    async def respond(request: Request) -> Response:
        body = await anyio.to_thread.run_sync(answer, dict(request.query_params))
        return Response(body, media_type="text/xml")

    return Starlette(routes=[Route("/oai", respond)])


class PyOai:
    """IBatchingOAI: asked for a place in the list and a number of records."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def listRecords(self, metadataPrefix: str, cursor: int = 0, batch_size: int = 10, **_: Any) -> Any:
        with self._store.read() as view:
            # The store is new, so that a record's number is its place: no offset to walk over.
            page = view.page(batch_size, after=cursor, parts=("metadata",))
        for s in page:
            when = datetime.fromtimestamp(s.datestamp, UTC).replace(tzinfo=None)
            header = common.Header(None, s.identifier, when, s.sets.split(), bool(s.deleted))
            yield header, common.Metadata(None, json.loads(s.metadata)), None

    def identify(self) -> Any:
        return common.Identify(
            "Bench",
            "http://localhost/oai",
            "2.0",
            ["a@x.org"],
            datetime(1970, 1, 1),  # noqa: DTZ001
            "no",
            "YYYY-MM-DDThh:mm:ssZ",
            ["identity"],
            toolkit_description=False,
        )


def pyoai(store: Store, page: int) -> Starlette:
    registry = metadata.MetadataRegistry()
    registry.registerWriter("oai_dc", server.oai_dc_writer)
    served = server.BatchingServer(PyOai(store), registry, resumption_batch_size=page)
    return _application(served.handleRequest)


class OaiRepo(oai_repo.DataInterface):  # type: ignore[misc]
    def __init__(self, store: Store, page: int) -> None:
        self._store = store
        self.limit = page
        with store.read() as view:
            self._size = view.count()
        self._page: list[Stored] = []

    def get_identify(self) -> Any:
        return oai_repo.Identify(
            "Bench", "http://localhost/oai", ["a@x.org"], "1970-01-01T00:00:00Z", "no",
            "YYYY-MM-DDThh:mm:ssZ",
        )  # fmt: skip

    def get_metadata_formats(self, identifier: str | None = None) -> Any:
        return [
            oai_repo.MetadataFormat(
                "oai_dc",
                "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
                "http://www.openarchives.org/OAI/2.0/oai_dc/",
            )
        ]

    def list_identifiers(
        self, prefix: str, since: Any = None, until: Any = None, spec: Any = None, cursor: int = 0
    ) -> Any:
        with self._store.read() as view:
            self._page = view.page(self.limit, after=cursor, parts=("raw",))
        return [s.identifier for s in self._page], self._size, None

    def get_records_header(self, identifiers: list[str]) -> Any:
        return [
            oai_repo.RecordHeader(s.identifier, datetime.fromtimestamp(s.datestamp, UTC), s.sets.split())
            for s in self._page
        ]

    def get_records_metadata(self, identifiers: list[str], prefix: str) -> Any:
        return [etree.fromstring(s.raw) for s in self._page]

    def get_records_abouts(self, identifiers: list[str]) -> Any:
        return [[] for _ in identifiers]

    def list_set_specs(self, identifier: Any = None, cursor: int = 0) -> Any:
        return ["bench"], 1, None


def oairepo(store: Store, page: int) -> Starlette:
    repository = oai_repo.OAIRepository(OaiRepo(store, page))
    return _application(lambda arguments: bytes(repository.process(arguments)))
