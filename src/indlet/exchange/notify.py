"""Alerts go out: by webhook and by e-mail, each once; and sources that have fallen silent raise one."""

from __future__ import annotations

import smtplib
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from email.message import EmailMessage
from hashlib import blake2b
from typing import Final

import orjson

from indlet.errors import RemoteError, SettingsError
from indlet.exchange.alerts import KINDS, Alert, alerts
from indlet.node.schedule import next_run
from indlet.oai.dates import period
from indlet.service.harvest.cache import KEPT_AS
from indlet.service.harvest.one_origin import SILENT, source_ranks, sources_in_file
from indlet.settings import Notify, Settings
from indlet.store import Origin, Store, View, desk_sources

_TOLD: Final = "alerts-told"
_SECONDS: Final = 20.0  # for a webhook or a mail server to answer
_IN_ONE_MAIL: Final = 50


def watch(store: Store, settings: Settings, now: Callable[[], float] = time.time) -> None:
    """Raise an alert about each source that was not harvested for much longer than its interval."""
    asked = source_ranks(store, settings)
    with store.read() as view:
        kept = desk_sources.read(view.meta(desk_sources.KEY))
        intervals = {name: str(raw.get("every", "")) for name, raw in kept["added"].items()}
        for name, source in sources_in_file(settings, kept).items():
            changed = kept["changed"].get(desk_sources.name_in_file(kept, name), {})
            intervals[name] = str(changed.get("every", source.every))
        # One whose records another keeps is not harvested.
        known = (o for o in view.origins("source") if o.name in asked and KEPT_AS not in o.settings)
        origins = {o.name: o for o in known}
        told = {alert.source for alert in view.alerts(acknowledged=True) if alert.kind == SILENT}
        silent = dict[str, str]()
        for name, origin in origins.items():
            every = intervals.get(name) or settings.harvest.every
            if every and (said := _silence(view, origin, every, now())):
                silent[name] = said
    if not silent and not told:
        return
    with store.write() as tx:
        for name, said in silent.items():
            why = origins[name].state.get("last", {}).get("reason", "")
            remedy = f"see whether it answers{f' ({why})' if why else ''}; its records stay"
            tx.alert(SILENT, name, "", said, remedy)
        for name in told - silent.keys():
            tx.resolve_alerts(SILENT, name, [""])


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
    notify, node = settings.notify, settings.node.name
    found: dict[str, Callable[[Sequence[Alert]], None]] = {}
    if notify.webhook:
        found["webhook"] = lambda news: _post(notify.webhook, node, news)
    if notify.email:
        found["e-mail"] = lambda news: _mail(notify, node, news)
    return found


def _post(url: str, node: str, news: Sequence[Alert]) -> None:
    import httpx  # loading it takes longer than most jobs of a node

    body = orjson.dumps({"node": node, "alerts": [asdict(alert) for alert in news]})
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


def _mail(notify: Notify, node: str, news: Sequence[Alert]) -> None:
    message = EmailMessage()
    message["Subject"] = f"{_line(node)}: {len(news)} {'alert' if len(news) == 1 else 'alerts'}"
    message["From"] = notify.email_from or notify.email[0]
    message["To"] = ", ".join(notify.email)
    parts = [
        f"{alert.at}  {KINDS.get(alert.kind, alert.kind)}\n  {_line(alert.record)}"
        f"{f'  ({_line(alert.source)})' if alert.source != alert.record else ''}"
        f"{f'  {_line(alert.title)}' if alert.title else ''}\n  {_line(alert.reason)}\n"
        f"  to do: {_line(alert.remedy)}\n"
        for alert in news[:_IN_ONE_MAIL]
    ]
    if len(news) > _IN_ONE_MAIL:
        parts.append(f"and {len(news) - _IN_ONE_MAIL} more: indlet alerts\n")
    message.set_content("\n".join(parts))
    host, _, port = notify.smtp.rpartition(":")
    if not port.isdecimal():
        raise SettingsError(
            f"[notify]: smtp {notify.smtp!r}; write host:port, such as 'mail.example.org:587'"
        )
    secure = ssl.create_default_context()
    with (
        smtplib.SMTP_SSL(host, int(port), timeout=_SECONDS, context=secure)
        if notify.smtp_security == "tls"
        else smtplib.SMTP(host, int(port), timeout=_SECONDS)
    ) as server:
        if notify.smtp_security == "starttls":
            server.starttls(context=secure)
        if notify.smtp_user:
            server.login(notify.smtp_user, notify.smtp_password)
        server.send_message(message)


def _line(text: str) -> str:
    """One line of it: what others wrote goes into headers and mails."""
    return " ".join(text.split())[:500]


def _key(alert: Alert) -> str:
    return blake2b(f"{alert.id}\0{alert.reason}".encode(), digest_size=8).hexdigest()
