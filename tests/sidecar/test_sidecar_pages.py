"""Where words come from, on the pages of the portal; the state of documents at the desk."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from starlette.testclient import TestClient
from tests.sidecar.platforms import EPrints, Kind, repository
from tests.sidecar.test_sidecar_platforms import ORIGIN, run, settings_for

from indlet.extension import extensions
from indlet.service.pipeline import bring_up
from indlet.store import open_store
from indlet.web.app import application


def test_pages_say_where_words_come_from(tmp_path: Path) -> None:
    with repository(EPrints, 9) as server:
        run(server, tmp_path)
        settings = settings_for(server, tmp_path)
        by_kind = {item.kind: item for item in server.items.values()}
        read, without = by_kind[Kind.OPEN], by_kind[Kind.REQUEST]
        with open_store(tmp_path) as store:
            bring_up(store, settings.index)
            with TestClient(application(store, settings), base_url="http://127.0.0.1:8080") as client:
                pages = {
                    "record": client.get(f"/record/{quote(server.identifier(read))}").text,
                    "without": client.get(f"/record/{quote(server.identifier(without))}").text,
                    "text": client.get(f"/?q={read.word}").text,
                    "metadata": client.get(f"/?q={read.number}th").text,
                    "explain": client.get(f"/explain?q={read.word}&id={quote(server.identifier(read))}").text,
                }
            line = "".join(extension.source_status(store, ORIGIN) for extension in extensions())
    assert "Words come from" in pages["record"] and f"/{read.number}/1/Paper" in pages["record"]
    assert "the metadata (no full text: a copy has to be requested)" in pages["without"]
    badge = 'title="A word of the query is in the document'
    assert badge in pages["text"] and badge not in pages["metadata"]
    assert "Words come from" in pages["explain"] and "the document</a>" in pages["explain"]
    assert "4 of 9 with full text" in line and "1 on request" in line
