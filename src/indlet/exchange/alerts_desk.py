"""The alerts as a page of the desk, as JSON, and as an Atom feed for those who have its address."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from indlet.errors import SettingsError
from indlet.exchange.alerts import KINDS, Alert, acknowledge, acknowledge_all, alerts, described, link
from indlet.model import JsonObject
from indlet.node import job_entries
from indlet.oai.dates import written
from indlet.oai.xml import attribute, text
from indlet.settings import Settings
from indlet.store import Store, withheld
from indlet.web.admin.desk_part import Form
from indlet.wording import amount

SHOWN: Final = 500  # in JSON and the feed
ON_PAGE: Final = 50
SOURCES: Final = 30  # that can be chosen among
FEED: Final = "/admin/alerts.atom"


class AlertsDesk:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._key = hmac.new(store.secret("alerts"), b"feed", "sha256").hexdigest()[:32]

    def context(self, query: Mapping[str, str]) -> JsonObject:
        """What the page shows: `kind` and `source` of the query choose among the alerts, `page` counts on."""
        kind, source = query.get("kind", ""), query.get("source", "")
        with self._store.read() as view:
            stored = view.alerts(acknowledged=True)
            open_now = [alert for alert in stored if alert.acknowledged is None]
            chosen = [a for a in open_now if kind in ("", a.kind) and source in ("", a.source)]
            pages = max(1, -(-len(chosen) // ON_PAGE))
            page = min(max(1, _number(query.get("page", ""))), pages)
            seen = sorted((a for a in stored if a.acknowledged), key=lambda a: a.acknowledged or 0)
            waiting = described(view, chosen[(page - 1) * ON_PAGE : page * ON_PAGE])
            seen_to = described(view, seen[: -ON_PAGE - 1 : -1])
        return {
            "waiting": waiting,
            "seen": seen_to,
            "seen_count": len(seen),
            "total": len(chosen),
            "page": page,
            "pages": pages,
            "kind": kind,
            "source": source,
            "by_kind": Counter(a.kind for a in open_now if source in ("", a.source)).most_common(),
            "by_source": Counter(a.source for a in open_now if kind in ("", a.kind)).most_common(SOURCES),
            "until": written(max((a.at for a in chosen), default=0)),
            "address": lambda **changes: _address({"kind": kind, "source": source} | changes),
            "link": link,
            "deletions": withheld.waiting_deletions(self._store),
            "kinds": KINDS,
            "feed": f"{FEED}?key={self._key}",
        }

    def json(self) -> Response:
        found = [alert.to_json(self._settings.base_url()) for alert in alerts(self._store, acknowledged=True)]
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

    def acknowledge_all(self, form: Form) -> tuple[str, str]:
        """Those that the page counted, and none that came since."""
        kind, source, until = form.get("kind", ""), form.get("source", ""), form.get("until", "")
        if not until:
            raise SettingsError("which alerts? Open the page of alerts again and repeat it there")
        count = acknowledge_all(self._store, form.get("by", ""), kind=kind, source=source, until=until)
        what = ", ".join(filter(None, (f"{count:,} alerts", kind, source)))
        return "/admin/alerts", what

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


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 1


def _address(query: Mapping[str, object]) -> str:
    wanted = {name: value for name, value in query.items() if value}
    return f"/admin/alerts?{urlencode(wanted)}" if wanted else "/admin/alerts"


def _atom(found: Sequence[Alert], settings: Settings) -> bytes:
    root = settings.base_url()
    newest = max((alert.at for alert in found), default=written(0))
    entries = "".join(
        f"<entry><id>{text(root)}/admin/alerts#{alert.id}</id>"
        f"<title>{text(f'{KINDS.get(alert.kind, alert.kind)}: {alert.title or alert.record}')}</title>"
        f'<updated>{text(alert.at)}</updated><category term="{attribute(alert.kind)}"/>'
        f'<link href="{attribute(quote(root, safe=":/") + (link(alert) or "/admin/alerts"))}"/>'
        f"<summary>{text(f'{alert.record}: {alert.reason}. To do: {alert.remedy}')}</summary></entry>"
        for alert in reversed(found)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>{text(root)}/admin/alerts</id><title>{text(settings.node.name)}: alerts</title>"
        f"<author><name>{text(settings.node.name)}</name></author><updated>{text(newest)}</updated>"
        f"{entries}</feed>\n"
    ).encode()
