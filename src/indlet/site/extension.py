"""What sites add: a web server's files as a repository, and mirrors of such repositories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from indlet.extension import CommandEntry, Extension

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from indlet.provider.serve.application import ProviderWeb
    from indlet.provider.serve.record_filter import RecordFilter
    from indlet.provider.source import CrawlTarget
    from indlet.settings import Settings
    from indlet.store import Clock, Store


def _crawl_targets(settings: Settings) -> Sequence[CrawlTarget]:
    if not settings.site:
        return ()
    from indlet.site.source import crawl_targets

    return crawl_targets(settings)


def _before_crawl(store: Store, settings: Settings) -> None:
    if settings.site:
        from indlet.site.source import adopt_renamed

        adopt_renamed(store, settings)


def _record_filter(settings: Settings, clock: Clock) -> RecordFilter | None:
    if not settings.site:
        return None
    from indlet.site.visibility import SiteFilter

    return SiteFilter(settings, clock)


def _routes(web: ProviderWeb, landing: str) -> Sequence[BaseRoute]:
    if not web.settings.site:
        return ()
    from indlet.site.routes import routes

    return routes(web, landing)


EXTENSION: Final = Extension(
    name="site",
    commands={
        "site": CommandEntry("indlet.site.command", "Make a web server's files harvestable."),
        "mirror": CommandEntry(
            "indlet.site.mirror.command", "Mirror the files of a site, or list what changed."
        ),
    },
    crawl_targets=_crawl_targets,
    before_crawl=_before_crawl,
    record_filter=_record_filter,
    routes=_routes,
)
