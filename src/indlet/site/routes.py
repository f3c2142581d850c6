"""What a node with sites answers besides: mod_oai's base URL at the root, and ResourceSync."""

from __future__ import annotations

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from indlet.provider.serve.application import ProviderWeb
from indlet.provider.serve.repository import Repository
from indlet.site.resourcesync import PATH, WELL_KNOWN, ResourceSync
from indlet.site.visibility import SiteFilter
from indlet.text import policy_of


class VerbRoute(Route):
    """A base URL that is the address of a page as well: requests with a verb, and forms."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found = super().matches(scope)
        if found[0] is Match.NONE or scope["method"] == "POST":
            return found
        has_verb = any(pair.startswith(b"verb=") for pair in scope["query_string"].split(b"&"))
        return found if has_verb else (Match.NONE, {})


def routes(web: ProviderWeb, landing: str) -> list[BaseRoute]:
    """`landing`: where the node's landing page is. At the root, requests with a verb go to the repository."""
    assert isinstance(web.filter, SiteFilter)
    sync = ResourceSync(web.store, web.settings, web.clock, visibility=web.filter)
    found: list[BaseRoute] = []
    if landing == "/":
        policy = policy_of(web.settings.analysis)
        # mod_oai's base URL is that of a module: the address of a page as well.
        root = Repository(web.store, web.settings, web.clock, policy, filtering=web.filter, path="")
        found.append(VerbRoute("/", web.oai(extended=False, repository=root), methods=["GET", "POST"]))
    return [
        *found,
        Route(WELL_KNOWN, web.page(sync.description, "text/xml")),
        Route(f"{PATH}/capabilitylist.xml", web.page(sync.capabilities, "text/xml")),
        Route(f"{PATH}/resourcelist.xml", web.page(sync.resources, "text/xml")),
        Route(f"{PATH}/changelist.xml", web.page(sync.changes, "text/xml")),
        Route(f"{PATH}/resourcelist/{{part}}.xml", web.part(sync.part("resourcelist"))),
        Route(f"{PATH}/changelist/{{part}}.xml", web.part(sync.part("changelist"))),
    ]
