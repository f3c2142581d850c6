"""Responses, put together from bytes. No function here looks at a single term, or builds a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from string import ascii_letters, digits
from typing import Final
from urllib.parse import urlsplit

from indlet.errors import BadArgument, BadVerb, ProtocolError
from indlet.oai.dates import GRANULARITY, written
from indlet.oai.names import (
    FT_NAMESPACE,
    OAI_NAMESPACE,
    OAI_PATH,
    OAI_SCHEMA,
    SCHEMA_PATH,
    TF_NAMESPACE,
    XSI_NAMESPACE,
    extended_path,
)
from indlet.oai.xml import attribute, text

END: Final = b"</OAI-PMH>\n"
# What our own identifiers are made of, which XML leaves alone.
_SAFE: Final = (ascii_letters + digits + "-._~:/%;,@!*'()\n").encode()
_HEADER: Final = b"<header><identifier>"
_HEADER_DELETED: Final = b'<header status="deleted"><identifier>'
_OPEN, _OPEN_DELETED = b"<record>" + _HEADER, b"<record>" + _HEADER_DELETED
_BEFORE, _AFTER = b"</header><metadata>", b"</metadata></record>\n"  # the metadata of a record


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the two base URLs, with the bytes that start each of its responses."""

    url: str
    extended: bool
    head: bytes

    @classmethod
    def at(cls, root: str, extended: bool, path: str = OAI_PATH) -> Endpoint:
        """The endpoint below a node's public root; `path` is that of a virtual repository, or empty for the
        root itself."""
        if extended:
            namespace = FT_NAMESPACE
            schemas = (
                f"{FT_NAMESPACE} {root}{SCHEMA_PATH}/ft-oai.xsd {TF_NAMESPACE} {root}{SCHEMA_PATH}/tf.xsd"
            )
        else:
            namespace, schemas = OAI_NAMESPACE, f"{OAI_NAMESPACE} {OAI_SCHEMA}"
        # The stylesheet's address is relative: browsers refuse one from another origin, and a node may be
        # reached by several names.
        folder = urlsplit(root).path.rpartition("/")[2]
        up = "../" * (path.count("/") - 1) if path or not folder else f"{folder}/"
        head = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<?xml-stylesheet type="text/xsl" href="{attribute(up)}oai.xsl"?>\n'
            f'<OAI-PMH xmlns="{namespace}" xmlns:xsi="{XSI_NAMESPACE}" '
            f'xsi:schemaLocation="{attribute(schemas)}">\n'
        )
        return cls(root + (extended_path(path) if extended else path), extended, head.encode())

    def start(self, now: float, arguments: Mapping[str, str]) -> bytes:
        """Everything before the verb's own element."""
        given = "".join(f' {name}="{attribute(value)}"' for name, value in arguments.items())
        return (
            self.head
            + (
                f"<responseDate>{written(int(now))}</responseDate>\n<request{given}>{text(self.url)}</request>\n"
            ).encode()
        )

    def answer(self, now: float, arguments: Mapping[str, str], verb: str, body: Iterable[bytes]) -> bytes:
        name = verb.encode()
        return b"".join(
            (self.start(now, arguments), b"<%b>\n" % name, *body, b"</%b>\n" % name, END),
        )

    def refusal(self, now: float, arguments: Mapping[str, str], errors: Sequence[ProtocolError]) -> bytes:
        """An answer of errors. One to an illegal request repeats none of its arguments (section 3.2)."""
        if any(isinstance(e, BadVerb | BadArgument) for e in errors):
            arguments = {}
        told = "".join(f'<error code="{e.code}">{text(str(e))}</error>\n' for e in errors)
        return self.start(now, arguments) + told.encode() + END


def records(rows: Sequence[tuple[int, str, int, str, bytes | None]]) -> list[bytes]:
    """Records that have nothing but metadata, XML already, in pieces; from (seq, identifier, datestamp, sets,
    metadata or None if deleted). Whole collections pass here.
    """
    _, identifiers, stamps, sets, metadata = zip(*rows, strict=True)
    escaped = _escaped(identifiers)
    if all(metadata):
        rests = map(_rest, stamps, sets, repeat(_BEFORE))
        return list(chain.from_iterable(zip(repeat(_OPEN), escaped, rests, metadata, repeat(_AFTER))))
    pieces = list[bytes]()
    for name, stamp, specs, inside in zip(escaped, stamps, sets, metadata, strict=True):
        if inside is None:
            pieces += _OPEN_DELETED, name, _rest(stamp, specs, b"</header></record>\n")
        else:
            pieces += _OPEN, name, _rest(stamp, specs, _BEFORE), inside, _AFTER
    return pieces


def headers(rows: Sequence[tuple[int, str, int, int, str]]) -> list[bytes]:
    """Headers in pieces, a line each; from (seq, identifier, datestamp, deleted, sets)."""
    if not rows:
        return []
    _, identifiers, stamps, deleted, sets = zip(*rows, strict=True)
    opened = [_HEADER_DELETED if gone else _HEADER for gone in deleted]
    rests = map(_rest, stamps, sets, repeat(b"</header>\n"))
    return list(chain.from_iterable(zip(opened, _escaped(identifiers), rests, strict=True)))


def _escaped(identifiers: Sequence[str]) -> list[bytes]:
    """Identifiers as the content of elements: most are what they were, which is found out for all at once."""
    names = "\n".join(identifiers).encode()
    if names.translate(None, _SAFE) or names.count(b"\n") != len(identifiers) - 1:
        return [text(name).encode() for name in identifiers]
    return names.split(b"\n")


def header(identifier: str, datestamp: int, deleted: int, sets: str) -> bytes:
    opened = _HEADER_DELETED if deleted else _HEADER
    return opened + _escaped([identifier])[0] + _rest(datestamp, sets, b"</header>")


@lru_cache(maxsize=8192)
def _rest(datestamp: int, sets: str, after: bytes = b"") -> bytes:
    """What follows the identifier in a header, then `after`: many records of one crawl share it."""
    specs = "".join(f"<setSpec>{text(spec)}</setSpec>" for spec in sets.split())
    return f"</identifier><datestamp>{written(datestamp)}</datestamp>{specs}".encode() + after


def resumption(token: str, *, size: int, cursor: int, expires: int | None = None) -> bytes:
    """The element that ends a page: empty on the last page of a list that was cut into pages."""
    until = f' expirationDate="{written(expires)}"' if expires is not None else ""
    told = f' completeListSize="{size}"' if size > 0 else ""
    return f'<resumptionToken{until}{told} cursor="{cursor}">{token}</resumptionToken>\n'.encode()


def metadata_format(prefix: str, schema: str, namespace: str) -> bytes:
    return (
        f"<metadataFormat><metadataPrefix>{text(prefix)}</metadataPrefix><schema>{text(schema)}</schema>"
        f"<metadataNamespace>{text(namespace)}</metadataNamespace></metadataFormat>\n"
    ).encode()


def index_format(prefix: str, schema: str, policy: str, digest: str) -> bytes:
    return (
        f"<indexFormat><indexPrefix>{text(prefix)}</indexPrefix><schema>{text(schema)}</schema>"
        f"<indexNamespace>{TF_NAMESPACE}</indexNamespace>"
        f'<policy digest="{attribute(digest)}">{text(policy)}</policy></indexFormat>\n'
    ).encode()


def one_set(spec: str, name: str) -> bytes:
    return f"<set><setSpec>{text(spec)}</setSpec><setName>{text(name)}</setName></set>\n".encode()


def identify(
    *,
    name: str,
    url: str,
    emails: Iterable[str],
    earliest: int,
    compression: Iterable[str],
    descriptions: Iterable[bytes],
) -> bytes:
    told = [
        f"<repositoryName>{text(name)}</repositoryName>\n<baseURL>{text(url)}</baseURL>\n",
        "<protocolVersion>2.0</protocolVersion>\n",
        *(f"<adminEmail>{text(email)}</adminEmail>\n" for email in emails),
        f"<earliestDatestamp>{written(earliest)}</earliestDatestamp>\n",
        f"<deletedRecord>persistent</deletedRecord>\n<granularity>{GRANULARITY}</granularity>\n",
        *(f"<compression>{text(coding)}</compression>\n" for coding in compression),
    ]
    containers = [b"<description>%b</description>\n" % container for container in descriptions]
    return "".join(told).encode() + b"".join(containers)
