"""Exchange at the desk: alerts, duplicates, and records that are withdrawn."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from indlet.exchange import ownership
from indlet.exchange.alerts_desk import AlertsDesk
from indlet.exchange.duplicates import decisions
from indlet.exchange.duplicates.job import decide, pairs_at_desk
from indlet.model import JsonObject
from indlet.service.search.library import Library
from indlet.store import Store
from indlet.web.admin.desk_part import Act, DeskPage, DeskPart, Form

_WITHDRAWN = 100  # records that a page shows


def desk_part(library: Library) -> DeskPart:
    store = library.store
    alerts = AlertsDesk(store, library.settings)

    def duplicates(query: Mapping[str, str]) -> JsonObject:
        return pairs_at_desk(store)

    return DeskPart(
        pages=(
            DeskPage("alerts", "admin/alerts.html", alerts.context, alerts.json, alerts.feed),
            DeskPage("duplicates", "admin/duplicates.html", duplicates),
        ),
        acts=(
            Act("acknowledge", "operator", alerts.acknowledge),
            Act("acknowledge_all", "operator", alerts.acknowledge_all),
            Act("keep", "operator", alerts.keep),
            Act("release", "admin", alerts.release),
            *(Act(choice, "operator", partial(_decide, store, choice)) for choice in decisions.CHOICES),
            Act("withdraw", "operator", partial(_withdraw, store)),
            Act("restore", "operator", partial(_restore, store)),
        ),
        about_own_records=lambda: {"withdrawn": ownership.marked(store)[:_WITHDRAWN]},
    )


def _decide(store: Store, choice: str, form: Form) -> tuple[str, str]:
    one, _, other = form.get("name", "").partition(" ")
    decide(store, one, other, choice, form["by"])
    return "/admin/duplicates", form.get("name", "")


def _withdraw(store: Store, form: Form) -> tuple[str, str]:
    identifier = form.get("name", "").strip()
    ownership.withdraw(store, identifier, form["by"])
    return "/admin/provider", identifier


def _restore(store: Store, form: Form) -> tuple[str, str]:
    identifier = form.get("name", "").strip()
    ownership.restore(store, identifier)
    return "/admin/provider", identifier
