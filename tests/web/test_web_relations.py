"""Four relations, each with networks of its own: searching, harvesting, native systems, repository visits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.routing import Route
from tests.web.nodes import make_client, settings_for

from indlet.errors import SettingsError
from indlet.provider import pipeline, serve
from indlet.settings import Hierarchy, Networks, Serve, Settings, VirtualRepository
from indlet.store import Store, open_store
from indlet.web.app import application

INSIDE, OUTSIDE, PROXY = "192.0.2.7", "198.51.100.9", "203.0.113.1"
ASKED = {
    "search": ("/", "/api", "/api/search?q=a", "/feed.atom", "/advanced", "/browse", "/suggest?q=a",
               "/export/bibtex?id=x", "/results.csv?q=a", "/portal-sitemap.xml", "/record?id=x"),
    "harvest": ("/oai?verb=Identify", "/ft-oai?verb=Identify", "/oai/", "/oai/part?verb=Identify",
                "/ft-oai/part?verb=Identify"),
    "native": ("/admin", "/admin/alerts", "/admin/alerts.json", "/metrics"),
    "repository": ("/about", "/content/files/a.txt", "/sitemap.xml"),
}  # fmt: skip
OPEN = ("/healthz", "/robots.txt", "/static/portal.css", "/oai.xsl")


@pytest.fixture
def node(tmp_path: Path) -> tuple[Store, Settings]:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a report on flutter")
    settings = settings_for(
        tmp_path / "data",
        hierarchy=(Hierarchy(str(tmp_path / "files")),),
        repository=(VirtualRepository("/oai/part"),),
    )
    store = open_store(settings.data)
    pipeline.crawl(store, settings)
    return store, settings


@pytest.mark.parametrize("relation", ASKED)
def test_one_relation_is_closed_to_other_networks_and_no_other_is(
    node: tuple[Store, Settings], relation: str
) -> None:
    store, settings = node
    settings = replace(settings, networks=Networks(**{relation: ("192.0.2.0/24", "2001:db8::/32")}))
    outside = make_client(store, settings, OUTSIDE)
    for kind, paths in ASKED.items():
        for path in paths:
            answer = outside.get(path)
            assert ("networks." in answer.text) == (kind == relation), path
            assert (answer.status_code == 403 and kind == relation) or kind != relation, path
    for path in OPEN:
        assert outside.get(path).status_code == 200, path
    for address in (INSIDE, "2001:db8::7", "::ffff:192.0.2.7"):
        inside = make_client(store, settings, address)
        for path in ASKED[relation]:
            answer = inside.get(path)
            assert "networks." not in answer.text, path
            # What is not for everybody stays out of caches that everybody shares.
            said = answer.headers["cache-control"]
            assert "private" in said or "no-store" in said, path


def test_behind_a_proxy_the_address_is_what_a_trusted_proxy_says(node: tuple[Store, Settings]) -> None:
    store, settings = node
    networks = Networks(*[("192.0.2.0/24",)] * 4)
    settings = replace(settings, networks=networks, serve=Serve(trusted_proxies=(PROXY,)))
    behind, direct = make_client(store, settings, PROXY), make_client(store, settings, OUTSIDE)
    for path in (path for paths in ASKED.values() for path in paths):
        assert "networks." not in behind.get(path, headers={"x-forwarded-for": INSIDE}).text, path
        for client, claimed in (
            (behind, OUTSIDE),
            (behind, f"{INSIDE}, {OUTSIDE}"),  # what the requester wrote himself
            (behind, "nonsense"),
            (direct, INSIDE),  # no proxy of ours
        ):
            refused = client.get(path, headers={"x-forwarded-for": claimed})
            assert (refused.status_code, "networks." in refused.text) == (403, True), (path, claimed)
        assert behind.get(path).status_code == 403  # the proxy itself is in none of the networks


def test_other_methods_are_refused_as_well(node: tuple[Store, Settings]) -> None:
    store, settings = node
    client = make_client(store, replace(settings, networks=Networks(*[("192.0.2.0/24",)] * 4)), OUTSIDE)
    for method in ("HEAD", "POST", "OPTIONS", "DELETE"):
        for path in (path for paths in ASKED.values() for path in paths):
            assert client.request(method, path).status_code == 403, (method, path)
    assert client.post("/oai", data={"verb": "Identify"}).status_code == 403


def test_every_route_belongs_to_a_relation_or_is_named_here(node: tuple[Store, Settings]) -> None:
    store, settings = node
    settings = replace(settings, networks=Networks(*[("192.0.2.0/24",)] * 4))
    for app in (application(store, settings, follow=False), serve.application(store, settings)):
        plain = {route.path for route in app.routes if isinstance(route, Route)}
        known = {
            "/logo",
            "/favicon.ico",
            "/colours.css",
            "/robots.txt",
            "/static/{name}",
            "/oai.xsl",
            "/healthz",
        }
        assert {path for path in plain if not path.startswith("/schema/")} <= known


def test_a_block_that_is_none_is_named(node: tuple[Store, Settings]) -> None:
    store, settings = node
    with pytest.raises(SettingsError, match=r"networks\.native: .*write blocks such as"):
        make_client(store, replace(settings, networks=Networks(native=("lab",))))
