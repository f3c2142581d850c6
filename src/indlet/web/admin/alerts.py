"""The alerts as a page of the desk, as JSON, and as an Atom feed for those who have its address."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from indlet.model import JsonObject
from indlet.node import job_entries
from indlet.node.alerts import KINDS, Alert, acknowledge, alerts
from indlet.oai.dates import written
from indlet.oai.xml import attribute, text
from indlet.settings import Settings
from indlet.store import Store, withheld
from indlet.wording import amount

SHOWN: Final = 500
FEED: Final = "/admin/alerts.atom"
Form = dict[str, str]


class AlertsDesk:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._key = hmac.new(store.secret("alerts"), b"feed", "sha256").hexdigest()[:32]

    def context(self) -> JsonObject:
        """What the page shows."""
        found = list(alerts(self._store, acknowledged=True))
        return {
            "waiting": [alert for alert in found if not alert.acknowledged][:SHOWN],
            "seen": [alert for alert in reversed(found) if alert.acknowledged][:SHOWN],
            "deletions": withheld.waiting_deletions(self._store),
            "kinds": KINDS,
            "feed": f"{FEED}?key={self._key}",
        }

    def json(self) -> Response:
        found = [asdict(alert) for alert in alerts(self._store, acknowledged=True)]
        return JSONResponse({"alerts": found[-SHOWN:]})

    def feed(self, request: Request) -> Response:
        """For feed readers, which cannot sign in: the address holds a key."""
        if not hmac.compare_digest(request.query_params.get("key", "").encode(), self._key.encode()):
            return PlainTextResponse("Not Found", 404)
        body = _atom(list(alerts(self._store))[-SHOWN:], self._settings)
        headers = {"Cache-Control": "no-store"}
        return Response(body, media_type="application/atom+xml", headers=headers)

    # Acts

    def acknowledge(self, form: Form) -> tuple[str, str]:
        acknowledge(self._store, form.get("name", ""), form.get("by", ""))
        return "/admin/alerts", form.get("name", "")

    def release(self, form: Form) -> tuple[str, str]:
        name = form.get("name", "")
        waiting = {found.source for found in withheld.waiting_deletions(self._store) if found.waiting}
        if name in waiting and not self._settings.node.jobs:
            job_entries.ask(self._store, f"release {name}")
            return "/admin/alerts", f"{name}: asked of the workers"
        count = withheld.release(self._store, name)
        return "/admin/alerts", f"{name}: {amount(count, 'record')} deleted"

    def keep(self, form: Form) -> tuple[str, str]:
        name = form.get("name", "")
        count = withheld.keep(self._store, name, form.get("by", "") or "operator")
        return "/admin/alerts", f"{name}: {amount(count, 'record')} kept"


def _atom(found: Sequence[Alert], settings: Settings) -> bytes:
    root = settings.base_url()
    newest = max((alert.at for alert in found), default=written(0))
    entries = "".join(
        f"<entry><id>{text(root)}/admin/alerts#{alert.id}</id>"
        f"<title>{text(f'{KINDS.get(alert.kind, alert.kind)}: {alert.record}')}</title>"
        f'<updated>{text(alert.at)}</updated><category term="{attribute(alert.kind)}"/>'
        f'<link href="{attribute(quote(root, safe=":/"))}/admin/alerts"/>'
        f"<summary>{text(f'{alert.reason}. To do: {alert.remedy}')}</summary></entry>"
        for alert in reversed(found)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>{text(root)}/admin/alerts</id><title>{text(settings.node.name)}: alerts</title>"
        f"<author><name>{text(settings.node.name)}</name></author><updated>{text(newest)}</updated>"
        f"{entries}</feed>\n"
    ).encode()
