"""What a stranger may not see does not exist: answers are to the byte those of a node that never held it."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message

from indlet.model import Record, TermVector
from indlet.service.api.routes import ENDPOINTS, application
from indlet.service.index import SORTS
from indlet.service.search.library import FACETS, Library
from indlet.service.search.rank import MODELS
from indlet.settings import Settings
from indlet.store import Store, open_store

WORDS = ["wind", "wing", "window", "zeppelin", "zebra", "flutter", "ocean", "le", "der", "wings"]
HIDDEN = {"access": {"networks": [], "tokens": 1}}
QUERIES = [
    "wind", "zeppelin wind", "z*", "wi* OR title:zeppelin", "zepelin", "wnid", "source:vault",
    "source:sea wind", "wing -zebra", '"wing flutter"', "*", "set:secret", "language:de",
    "date:1990..2010", "type:book", "qqq",
]  # fmt: skip
IDENTIFIERS = [f"oai:x:{n}" for n in range(6)]

record: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    source=st.sampled_from(["air", "sea", "vault", "vault"]),
    number=st.integers(0, 5),
    words=st.dictionaries(st.sampled_from(WORDS), st.integers(1, 4), max_size=5),
    title=st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
    creator=st.lists(st.sampled_from(["Nemo, A.", "A. Nemo", "nemo, a", "Ahab", "Büro"]), max_size=2),
    subject=st.lists(st.sampled_from(["Sea", "sea", "Air ships", "Séa"]), max_size=2),
    format=st.sampled_from([[], ["application/pdf"], ["text/html", "PDF"]]),
    language=st.sampled_from(["en", "de", ""]),
    type=st.sampled_from(["Book", "book", "Article"]),
    date=st.sampled_from(["1999", "2001-05", ""]),
    sets=st.sampled_from([(), ("a:b",), ("A",), ("secret",)]),
    resource=st.sampled_from(["", "http://doi.org/1", "http://doi.org/2"]),
    deleted=st.sampled_from([False, False, False, True]),
    indexed=st.booleans(),
)


@contextmanager
def node(folder: Path, records: list[dict[str, Any]], *, hidden: bool) -> Iterator[ASGIApp]:
    """The API of a node, as a stranger sees it, with the hidden records or as if there had been none."""
    with closing(open_store(folder)) as store:
        for name in ("air", "vault", "sea"):
            if hidden or name != "vault":
                with store.write() as tx:
                    tx.origin(*_origin(name))
        library = Library(store, Settings(), restricted={})
        for told in records:
            if hidden or told["source"] != "vault":
                _put(store, told)
            if told["indexed"]:
                library.sync()
        yield application(library)


def _origin(name: str) -> tuple[str, str, dict[str, Any]]:
    return (
        ("hierarchy", "vault", HIDDEN) if name == "vault" else ("source", name, {"url": f"http://{name}/oai"})
    )


def _put(store: Store, told: dict[str, Any]) -> None:
    identifier = f"oai:x:{told['number']}"
    metadata = {"title": [told["title"]], "type": [told["type"]], "date": [told["date"]]}
    metadata["identifier"] = [told["resource"]]
    metadata |= {name: told[name] for name in ("creator", "subject", "format")}
    if told["language"]:
        metadata["language"] = [told["language"]]
    kept = {name: [value for value in values if value] for name, values in metadata.items()}
    with store.write() as tx:
        origin = tx.origin(*_origin(told["source"]))
        if told["deleted"]:
            tx.delete(origin, [identifier])
        else:
            vector = TermVector.of(told["words"]) if told["words"] else None
            shown = {name: values for name, values in kept.items() if values}
            tx.put(origin, [Record(identifier, shown, vector, told["sets"])])


def asked() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every path of the API, with arguments that name what is there, what is hidden, and neither."""
    for query in QUERIES:
        yield "/api/search", {"q": query, "facets": "all", "limit": 20}
        yield "/api/compare", {"q": query, "limit": 5}
        for identifier in IDENTIFIERS[:3]:
            yield "/api/explain", {"q": query, "identifier": identifier}
    for name in MODELS:
        yield "/api/search", {"q": "wind wing zeppelin", "model": name, "sort": "newest", "source": "vault"}
        yield (
            "/api/explain",
            {"q": "wi* zeppelin", "identifier": IDENTIFIERS[0], "model": name, "source": "air"},
        )
    for identifier in IDENTIFIERS:
        yield "/api/record", {"identifier": identifier, "frequencies": "true"}
        yield "/api/record", {"identifier": identifier, "source": "vault"}
        yield "/api/similar", {"identifier": identifier}
    for word in ("z", "ze", "wi", "zeppelin", "f", "title:ze", "wind", "ahab", "creator:nem", "wind nemo"):
        yield "/api/suggest", {"q": word}
    for facet in FACETS:
        yield "/api/browse", {"facet": facet}
        yield "/api/browse", {"facet": facet, "from": "n", "limit": 1}
        yield "/api/search", {"q": "*", "facets": "all", "facet_values": 1, facet: "Nemo, A."}
    for sort in SORTS:
        yield "/api/search", {"q": "*", "sort": sort, "limit": 3, "offset": 1}
    yield "/api/sources", {}
    yield "/api/stats", {}


async def answer(app: ASGIApp, path: str, arguments: dict[str, Any]) -> tuple[int, bytes]:
    """Status and body. Asked without a client of HTTP, which takes longer than the answer."""
    scope = {
        "type": "http", "method": "GET", "path": path, "query_string": urlencode(arguments).encode(),
        "headers": [(b"host", b"testserver")], "client": ("testclient", 50000),
        "server": ("testserver", 80), "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


async def compare(one: ASGIApp, other: ASGIApp) -> None:
    for path, arguments in asked():
        (here, one_body), (there, other_body) = [await answer(app, path, arguments) for app in (one, other)]
        assert untimed(one_body) == untimed(other_body), (path, arguments)
        assert here == there, (path, arguments)


def untimed(answer: bytes) -> bytes:
    answer = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"<when>", answer)
    return re.sub(rb'"took_ms":[\d.e-]+', b'"took_ms":0', answer)


def test_every_path_is_asked() -> None:
    assert {path for path, _ in asked()} == {endpoint.path for endpoint in ENDPOINTS}


@given(records=st.lists(record, max_size=14))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_stranger_sees_a_node_that_never_had_the_hidden_records(records: list[dict[str, Any]]) -> None:
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        node(Path(one), records, hidden=True) as restricted,
        node(Path(two), records, hidden=False) as never,
    ):
        asyncio.run(compare(restricted, never))


@pytest.mark.parametrize(
    ("restricted", "found"),
    [
        (None, 1),  # whoever runs the node
        ({}, 0),  # no longer in the settings: the rule of the last crawl holds
        ({("hierarchy", "vault"): True}, 0),
        ({("hierarchy", "vault"): False}, 1),  # the settings open it on purpose
    ],
)
def test_a_rule_holds_until_it_is_changed_on_purpose(
    tmp_path: Path, restricted: dict[tuple[str, str], bool] | None, found: int
) -> None:
    with closing(open_store(tmp_path)) as store:
        with store.write() as tx:
            tx.put(tx.origin("hierarchy", "vault", HIDDEN), [Record("oai:v:1", {"title": ["Zeppelin"]})])
        library = Library(store, Settings(), restricted=restricted)
        assert library.search("zeppelin").total == found
        assert len(library.sources()) == library.stats()["store"]["records"] == found
