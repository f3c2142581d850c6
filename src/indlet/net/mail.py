"""Messages by e-mail, through the server that the settings name."""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from typing import Final, Protocol

from indlet.errors import SettingsError

_SECONDS: Final = 20.0  # for a mail server to answer


class MailSettings(Protocol):
    """The part of the section [notify] that says how mail is sent."""

    @property
    def email(self) -> tuple[str, ...]: ...
    @property
    def email_from(self) -> str: ...
    @property
    def smtp(self) -> str: ...
    @property
    def smtp_security(self) -> str: ...
    @property
    def smtp_user(self) -> str: ...
    @property
    def smtp_password(self) -> str: ...


def sender(notify: MailSettings) -> str:
    """The address that messages come from; empty if none is set."""
    return notify.email_from or (notify.email[0] if notify.email else "")


def send_mail(notify: MailSettings, *messages: EmailMessage) -> None:
    """Sends messages over one connection; OSError or SMTPException if the server does not take one."""
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
        for message in messages:
            server.send_message(message)
