"""What exchange between libraries adds: catalogue folders, translation, duplicates, alerts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from indlet.extension import CommandEntry, Extension, JobEntry

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from indlet.cli.check import CheckResult
    from indlet.formats import MetadataFormat
    from indlet.model import JsonObject
    from indlet.provider.serve.application import ProviderWeb
    from indlet.provider.source import CrawlTarget
    from indlet.service.harvest.run import LessonRequest
    from indlet.service.search.library import Library
    from indlet.settings import Settings
    from indlet.store import Store
    from indlet.web.admin.desk_part import DeskPart

_COMMANDS: Final = "indlet.exchange.commands"


def _formats(settings: Settings) -> dict[str, MetadataFormat]:
    if not (settings.library or settings.write):
        return {}
    from indlet.exchange.table_formats import table_formats

    return table_formats(settings)


def _crawl_targets(settings: Settings) -> Sequence[CrawlTarget]:
    if not settings.library:
        return ()
    from indlet.exchange.catalogue import crawl_targets

    return crawl_targets(settings)


def _routes(web: ProviderWeb, landing: str) -> Sequence[BaseRoute]:
    if not web.settings.duplicates.exchange:
        return ()
    from starlette.routing import Route

    from indlet.exchange.duplicates.shared_decisions import decisions_list
    from indlet.oai.names import DECISIONS_PATH

    body = decisions_list(web.store, web.repository, web.settings.base_url())
    return [Route(DECISIONS_PATH, web.page(body, "application/json"))]


def _jobs(store: Store, settings: Settings) -> Sequence[JobEntry]:
    from indlet.exchange.jobs import jobs

    return jobs(store, settings)


def _checks(settings: Settings) -> Iterable[CheckResult]:
    if not (settings.library or settings.write):
        return ()
    from indlet.exchange.checks import checks

    return checks(settings)


def _learn_decisions(asked: LessonRequest) -> tuple[JsonObject, str]:
    from indlet.exchange.duplicates.other_decisions import learn

    return learn(asked)


def _desk(library: Library) -> DeskPart:
    from indlet.exchange.desk import desk_part

    return desk_part(library)


EXTENSION: Final = Extension(
    name="exchange",
    commands={
        "sync": CommandEntry(_COMMANDS, "One round of a library: read exports, harvest, write imports."),
        "alerts": CommandEntry(_COMMANDS, "List what waits for somebody."),
        "adopt": CommandEntry(_COMMANDS, "Keep the records of a source whose origin is gone."),
        "withdraw": CommandEntry(_COMMANDS, "Mark a record of your own as deleted."),
        "deletions": CommandEntry(_COMMANDS, "List deletions that wait; release or refuse them."),
        "duplicates": CommandEntry(
            "indlet.exchange.duplicates.command",
            "List records that may be of one work, and keep what was decided.",
        ),
        "translate": CommandEntry(
            "indlet.exchange.translate_command", "Translate records from one metadata format to another."
        ),
    },
    formats=_formats,
    crawl_targets=_crawl_targets,
    routes=_routes,
    jobs=_jobs,
    lessons={"decisions": _learn_decisions},
    checks=_checks,
    desk=_desk,
)
