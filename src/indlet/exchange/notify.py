"""Alerts go out by webhook and by e-mail, once each, in digests; silent and failing sources raise one."""

from __future__ import annotations

import smtplib
import time
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import urlencode

import orjson

from indlet.errors import RemoteError
from indlet.exchange.alerts import KINDS, Alert, alerts, link
from indlet.net.mail import send_mail, sender
from indlet.node.schedule import next_run
from indlet.oai.dates import period
from indlet.service.harvest.cache import KEPT_AS
from indlet.service.harvest.one_origin import SILENT, source_ranks, sources_in_file
from indlet.settings import Settings
from indlet.store import Origin, Store, View, desk_sources

_TOLD: Final = "alerts-told"
_SECONDS: Final = 20.0  # for a webhook or a mail server to answer
_IN_ONE_MAIL: Final = 50  # digests
_EXAMPLES: Final = 5  # alerts of a digest
FAILED: Final = "failed"  # alerts about a source whose last runs failed


def watch(store: Store, settings: Settings, now: Callable[[], float] = time.time) -> None:
    """Raise alerts about sources that were not harvested for much longer than their interval, and about those
    whose last `notify.failed_runs` runs failed.
    """
    asked = source_ranks(store, settings)
    with store.read() as view:
        kept = desk_sources.read(view)
        intervals = {name: str(raw.get("every", "")) for name, raw in kept["added"].items()}
        for name, source in sources_in_file(settings, kept).items():
            changed = kept["changed"].get(desk_sources.name_in_file(kept, name), {})
            intervals[name] = str(changed.get("every", source.every))
        # One whose records another keeps is not harvested.
        known = (o for o in view.origins("source") if o.name in asked and KEPT_AS not in o.settings)
        origins = {o.name: o for o in known}
        raised = {(alert.kind, alert.source) for alert in view.alerts(acknowledged=True)}
        failing = _failing(view, origins, settings.notify.failed_runs)
        silent = dict[str, str]()
        for name, origin in origins.items():
            every = intervals.get(name) or settings.harvest.every
            if every and (said := _silence(view, origin, every, now())):
                silent[name] = said
    for kind, found in ((SILENT, silent), (FAILED, failing)):
        told = {source for raised_kind, source in raised if raised_kind == kind}
        if not found and not told:
            continue
        with store.write() as tx:
            for name, said in found.items():
                why = origins[name].state.get("last", {}).get("reason", "")
                remedy = f"see whether it answers{f' ({why})' if why else ''}; its records stay"
                tx.alert(kind, name, "", said, remedy)
            for name in told - found.keys():
                tx.resolve_alerts(kind, name, [""])


def _failing(view: View, origins: Mapping[str, Origin], most: int) -> dict[str, str]:
    """The sources whose last `most` runs failed, and how that is said; none if `most` is 0."""
    runs = view.recent_runs([origin.id for origin in origins.values()], most) if most > 0 else {}
    found = {}
    for name, origin in origins.items():
        ended = [run for run in runs.get(origin.id, ()) if run.outcome != "running"]
        if len(ended) >= most > 0 and all(run.outcome == "failed" for run in ended):
            found[name] = "its last run failed" if most == 1 else f"its last {most} runs failed"
    return found


def _silence(view: View, origin: Origin, every: str, now: float) -> str:
    """Since when a source is silent, in words; empty if it is not: two of its runs are overdue at most."""
    confirmed = period(str(origin.state.get("confirmed", "")))
    since: float
    if confirmed is not None:
        since, said = confirmed.last, f"not harvested in full since {origin.state['confirmed']}"
    elif runs := view.runs(origin.id):
        since, said = runs[-1].started, "never harvested in full"
    else:
        return ""
    if "adopted" in origin.state or now <= next_run(every, next_run(every, since)):
        return ""
    return said


def tell(store: Store, settings: Settings) -> int:
    """Send what has not been sent yet, by each way that is set; how many alerts there were.

    RemoteError if a way failed: what it did not take is sent the next time.
    """
    ways = _ways(settings)
    if not ways:
        return 0
    open_now = list(alerts(store))
    with store.read() as view:
        told: dict[str, list[str]] = orjson.loads(view.meta(_TOLD) or b"{}")
    count, problems = 0, list[str]()
    for name, send in ways.items():
        known = set(told.get(name, ()))
        news = [alert for alert in open_now if _key(alert) not in known]
        try:
            if news:
                send(news)
        except (OSError, smtplib.SMTPException) as e:
            problems.append(f"alerts by {name}: {e or type(e).__name__}; they are sent again")
            continue
        count += len(news)
        told[name] = [_key(alert) for alert in open_now]
    with store.write() as tx:
        tx.meta(_TOLD, orjson.dumps(told))
    if problems:
        raise RemoteError("; ".join(problems))
    return count


def _ways(settings: Settings) -> dict[str, Callable[[Sequence[Alert]], None]]:
    notify = settings.notify
    found: dict[str, Callable[[Sequence[Alert]], None]] = {}
    if notify.webhook:
        found["webhook"] = lambda news: _post(notify.webhook, settings, news)
    if notify.email:
        found["e-mail"] = lambda news: _mail(settings, news)
    return found


class Digest(NamedTuple):
    """Alerts of one kind about one source, for one reason."""

    kind: str
    source: str
    reason: str
    alerts: list[Alert]

    @property
    def link(self) -> str:
        """The page of the desk that lists them."""
        return f"/admin/alerts?{urlencode({'kind': self.kind, 'source': self.source})}"


def digests(news: Sequence[Alert]) -> list[Digest]:
    """Alerts that say the same of several records, together; in the order of the first of each."""
    found = dict[tuple[str, str, str], Digest]()
    for alert in news:
        reason = alert.reason.replace(alert.record, "…") if alert.record else alert.reason
        key = (alert.kind, alert.source, reason)
        found.setdefault(key, Digest(*key, [])).alerts.append(alert)
    return list(found.values())


def _post(url: str, settings: Settings, news: Sequence[Alert]) -> None:
    import httpx  # loading it takes longer than most jobs of a node

    root = settings.base_url()
    told = [
        {
            "kind": d.kind,
            "source": d.source,
            "reason": d.reason,
            "count": len(d.alerts),
            "link": root + d.link,
        }
        for d in digests(news)
    ]
    alerts_told = [alert.to_json(root) for alert in news]
    body = orjson.dumps({"node": settings.node.name, "digest": told, "alerts": alerts_told})
    headers = {"Content-Type": "application/json"}
    try:
        with (
            httpx.Client(timeout=_SECONDS, trust_env=False) as client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            answer.raise_for_status()  # its body is not read
    except httpx.HTTPStatusError as e:
        # Not in its own words, which hold the address: whoever knows that may write there.
        raise OSError(f"status {e.response.status_code}") from None
    except httpx.HTTPError as e:
        raise OSError(str(e) or type(e).__name__) from e


def _mail(settings: Settings, news: Sequence[Alert]) -> None:
    notify, root, groups = settings.notify, settings.base_url(), digests(news)
    message = EmailMessage()
    number = f"{len(news)} {'alert' if len(news) == 1 else 'alerts'}"
    message["Subject"] = f"{_line(settings.node.name)}: {number}"
    message["From"] = sender(notify)
    message["To"] = ", ".join(notify.email)
    parts = [_paragraph(group, root) for group in groups[:_IN_ONE_MAIL]]
    if len(groups) > _IN_ONE_MAIL:
        parts.append(f"and {len(groups) - _IN_ONE_MAIL} more kinds: {root}/admin/alerts\n")
    message.set_content("\n".join(parts))
    send_mail(notify, message)


def _paragraph(group: Digest, root: str) -> str:
    """A digest as a paragraph of a mail: what it is about, the first records with links, and what to do."""
    first, count = group.alerts[0], len(group.alerts)
    about = KINDS.get(group.kind, group.kind)
    lines = [f"{first.at}  {f'{count} × ' if count > 1 else ''}{about} ({_line(group.source)})"]
    lines.append(f"  {_line(group.reason)}")
    for alert in group.alerts[:_EXAMPLES]:
        named = f"{_line(alert.title)}, {_line(alert.record)}" if alert.title else _line(alert.record)
        lines.append(f"  - {named}  {root}{link(alert) or group.link}")
    if count > _EXAMPLES:
        lines.append(f"  and {count - _EXAMPLES} more: {root}{group.link}")
    return "\n".join([*lines, f"  to do: {_line(first.remedy)}\n"])


def _line(text: str) -> str:
    """One line of it: what others wrote goes into headers and mails."""
    return " ".join(text.split())[:500]


def _key(alert: Alert) -> str:
    return blake2b(f"{alert.id}\0{alert.reason}".encode(), digest_size=8).hexdigest()
