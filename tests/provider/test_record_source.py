"""What every kind of record source owes to the crawl."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from indlet.model import Record, TermVector
from indlet.provider.hierarchy import Entry
from indlet.provider.resources import FileTree, Resource, place_of
from indlet.provider.source import RecordSource
from indlet.provider.workers import Analysed
from indlet.settings import Hierarchy, Settings, Site
from indlet.site.source import SiteSource

OLD = 1_500_000_000
FILES = ("index.html", "a/report.pdf", "a/report.html", "a/b/data.bin", "ü ñ/100%.txt", "a/x;y.txt")


def file_tree(root: Path) -> RecordSource:
    settings = Settings(hierarchy=(Hierarchy(str(root), name="docs"),))
    hierarchy = settings.hierarchy[0]
    return FileTree(place_of(settings, hierarchy, "p"), hierarchy, settings.crawl)


def site(root: Path) -> RecordSource:
    return SiteSource.of(Settings(), Site(str(root), Server.address, name="docs"), "p")


KINDS: list[Callable[[Path], RecordSource]] = [file_tree, site]


class Server(SimpleHTTPRequestHandler):
    """Python's own web server; it closes every connection after one answer."""

    address = ""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def served(tmp_path: Path) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(tmp_path))) as server:
        Server.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> RecordSource:
    for name in FILES:
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"a wing of {name}")
        os.utime(place, (OLD, OLD))
    kind: Callable[[Path], RecordSource] = request.param
    return kind(tmp_path)


def found(source: RecordSource) -> list[tuple[Resource, list[Entry]]]:
    with contextlib.closing(source.open(())) as tree:
        listings = list(tree.walk())
    return [(resource, listing.files) for listing in listings for resource in source.resources(listing)]


def made(source: RecordSource, resource: Resource, keys: tuple[str, ...] = ("",)) -> list[Record]:
    vector = TermVector.of({"wing": 1})
    documents = [Analysed(key, {"title": ["T"]}, "text/plain", vector, "en") for key in keys]
    return list(source.records(resource, resource.files[0], documents))


def test_each_file_belongs_to_one_resource_and_each_resource_has_a_name_of_its_own(
    source: RecordSource,
) -> None:
    resources = [resource for resource, _ in found(source)]
    files = [entry.path for resource in resources for entry in resource.files]
    assert sorted(files) == sorted(FILES)
    names = [source.identifier(resource) for resource in resources]
    assert len(set(names)) == len(names)
    assert names == [source.identifier(resource) for resource, _ in found(source)]


def test_records_bear_the_name_of_their_resource(source: RecordSource) -> None:
    for resource, _ in found(source):
        name = source.identifier(resource)
        for record in (*made(source, resource), *made(source, resource, ("1", "2", "2"))):
            assert record.identifier == name or record.identifier.startswith(f"{name};")
        identifiers = [record.identifier for record in made(source, resource, ("1", "2", "2"))]
        assert len(set(identifiers)) == len(identifiers)


def test_the_sets_of_records_are_named_with_all_above_them(source: RecordSource) -> None:
    for resource, _ in found(source):
        named = dict(source.sets(resource))
        assert all(named.values())
        for record in made(source, resource):
            assert record.sets
            for spec in record.sets:
                parts = spec.split(":")
                assert {":".join(parts[: n + 1]) for n in range(len(parts))} <= named.keys()


def test_a_datestamp_is_the_commits_or_the_files(source: RecordSource) -> None:
    assert {source.datestamp(resource) for resource, _ in found(source)} in ({None}, {OLD})


def test_the_same_settings_make_the_same_records(source: RecordSource, tmp_path: Path) -> None:
    again = next(kind for kind in KINDS if type(kind(tmp_path)) is type(source))(tmp_path)
    assert again.made == source.made
    for resource, _ in found(source):
        assert made(source, resource) == made(again, resource)
