"""Resumption tokens: everything that continues a list, sealed, in characters that no URL needs to escape.

A token is sealed and not only signed, because the sequence numbers in it count all changes of the store, also
those of records that its holder may not know of. The seal is a synthetic initialisation vector (Rogaway &
Shrimpton 2006): a keyed digest of the content, both its signature and the seed of the key stream over it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from dataclasses import dataclass
from hashlib import blake2b, shake_256
from operator import attrgetter
from typing import Final

from indlet.errors import BadResumptionToken

_VERSION: Final = 1
_SIGNATURE_BYTES: Final = 16
_LONGEST: Final = 8192
# Tokens have few lengths: one must not tell how many digits a number in it has.
_STEP: Final = 64


@dataclass(frozen=True, slots=True)
class ResumptionToken:
    """Where a list stands.

    Lists follow the store's sequence numbers, so `after` alone finds the next page however much has changed;
    `until` was frozen at the first response. `view` is a digest of what the requester may see.
    """

    verb: str
    extended: bool
    metadata_prefix: str
    index_prefix: str
    set_spec: str
    since: int | None
    until: int | None
    open_ended: bool  # the requester gave no until: the frozen one is ours
    after: int | str  # last sequence number, or last setSpec, that was sent
    cursor: int  # how many have been sent
    size: int
    expires: int
    view: str

    def encode(self, key: bytes) -> str:
        body = _json([_VERSION, *_values(self)]).encode()
        return sealed(body.ljust(-(-len(body) // _STEP) * _STEP), key)

    @classmethod
    def decode(
        cls, text: str, key: bytes, *, verb: str, extended: bool, view: str, now: float
    ) -> ResumptionToken:
        """The token, if it is ours, untouched, for this verb and this requester, and not expired."""
        body = unsealed(text, key)
        if body is None or not body.startswith(b"["):  # the number of an archive or a sitemap is sealed too
            raise BadResumptionToken("not a resumption token of this repository; start the list again")
        version, *values = json.loads(body)
        if version != _VERSION:
            raise BadResumptionToken("a token of another version of this repository; start the list again")
        token = cls(*values)
        if token.verb != verb or token.extended != extended:
            raise BadResumptionToken(
                f"this token continues {token.verb} at another place; start the list again"
            )
        if token.view != view:
            raise BadResumptionToken("this token was given to another requester; start the list again")
        if token.expires < now:
            raise BadResumptionToken("this token has expired; start the list again")
        return token


_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_values = attrgetter(*ResumptionToken.__slots__)


def sealed(body: bytes, key: bytes) -> str:
    """Content that only we can read and make; equal content gives equal text."""
    signature = _signature(key, body)
    return base64.urlsafe_b64encode(signature + _veiled(key, signature, body)).rstrip(b"=").decode()


def unsealed(text: str, key: bytes) -> bytes | None:
    """What was sealed; None if we did not give this very text."""
    if len(text) > _LONGEST or not text.isascii():
        return None
    try:
        # Base64 ignores loose bits at the end: only the very text that we gave is ours.
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        genuine = base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text
    except (binascii.Error, ValueError):
        return None
    signature = raw[:_SIGNATURE_BYTES]
    body = _veiled(key, signature, raw[_SIGNATURE_BYTES:])
    return body if genuine and hmac.compare_digest(_signature(key, body), signature) else None


def sealed_number(purpose: str, number: int, key: bytes) -> str:
    """A sequence number, for an address: these count the changes of hidden records too."""
    return sealed(f"{purpose} {number:020d}".encode(), key)


def unsealed_number(purpose: str, text: str, key: bytes) -> int | None:
    """The number that was sealed for this purpose; None if we did not give this text."""
    body, start = unsealed(text, key), f"{purpose} ".encode()
    return int(body.removeprefix(start)) if body is not None and body.startswith(start) else None


def _signature(key: bytes, body: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=_SIGNATURE_BYTES, person=b"token signature").digest()


def _veiled(key: bytes, signature: bytes, body: bytes) -> bytes:
    """The content under its key stream; the same again takes it off."""
    seed = blake2b(signature, key=key, person=b"token veil").digest()
    stream = shake_256(seed).digest(len(body))
    return (int.from_bytes(body, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(body), "big")
