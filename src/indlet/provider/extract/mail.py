"""E-mail: a message, or a mailbox with a document for each of its messages."""

from __future__ import annotations

import email
import email.errors
import email.header
import email.message
import email.utils
import re
from collections.abc import Iterator

from indlet.errors import ExtractionError, LimitExceeded
from indlet.formats.dublin import build_metadata
from indlet.model import Document, Failure
from indlet.provider.extract.decode import decode
from indlet.provider.extract.file import File, Part, Text
from indlet.text.language import language_code
from indlet.text.markup import html_text

_SEPARATOR = re.compile(
    rb"(?:\A|(?<=\n))From [^\r\n]{0,500}\d{4}[^\r\n]{0,60}\r?\n(?=[!-9;-~]{1,80}:|>From |\r?\n)"
)
_PARTS = 1000


def extract(file: File) -> Iterator[Part]:
    yield _document(file.data, file)


def extract_mbox(file: File) -> Iterator[Part]:
    """A message begins where a line begins with "From " after an empty line or at the start: mboxrd."""
    starts = [
        match
        for match in _SEPARATOR.finditer(file.data)
        if match.start() == 0
        or file.data[max(0, match.start() - 3) : match.start()].endswith((b"\n\n", b"\n\r\n"))
    ]
    for number, match in enumerate(starts, 1):
        end = starts[number].start() if number < len(starts) else len(file.data)
        raw = re.sub(rb"(?m)^>(>*From )", rb"\1", file.data[match.end() : end])
        where = f"{file.name}#{number}"
        if 1 < number == len(starts) and _is_cut(raw):
            yield Failure(where, "extract", "the file ends within this message", raw[:65_536])
            continue
        try:
            document = _document(raw, file)
        except ExtractionError as error:
            yield Failure(where, "extract", str(error), raw[:65_536])
            continue
        key = document.key or str(number)
        yield Document(document.text, document.metadata, "message/rfc822", key, document.language)


def _is_cut(raw: bytes) -> bool:
    """Whether a message ends within its head, or without the last boundary of its parts (RFC 2046, 5.1.1)."""
    message = email.message_from_bytes(raw)
    broken = any(isinstance(defect, email.errors.CloseBoundaryNotFoundDefect) for defect in message.defects)
    return broken or not re.search(rb"\n\r?\n", raw)


def _document(raw: bytes, file: File) -> Document:
    message = email.message_from_bytes(raw)
    text = Text(file.limits)
    pairs: list[tuple[str, str]] = []
    for name, element in (("subject", "title"), ("keywords", "subject"), ("organization", "publisher")):
        pairs.extend((element, value) for value in _values(message, name))
    for name, element in (("from", "creator"), ("to", "contributor"), ("cc", "contributor")):
        pairs.extend((element, who) for who in _people(message, name))
    pairs.append(("date", " ".join(_value(message, "date").split())))
    identifier = _value(message, "message-id").strip().strip("<>")
    if identifier:
        pairs.append(("identifier", "mid:" + identifier))
    pairs += [
        ("relation", "mid:" + mid)
        for mid in re.findall(r"<([^<>\s]{3,200})>", _value(message, "in-reply-to"))
    ]
    language = language_code(_value(message, "content-language").partition(",")[0])
    if language:
        pairs.append(("language", language))
    text.add(_value(message, "subject") + "\n")
    _bodies(message, text, file)
    return Document(str(text), build_metadata(pairs), file.media_type, identifier[:200], language)


def _values(message: email.message.Message, name: str) -> list[str]:
    """The headers of this name, decoded as far as can be: encoded words, or raw bytes against the rules."""
    return [_decoded(str(value)) for key, value in message.raw_items() if key.lower() == name]


def _value(message: email.message.Message, name: str) -> str:
    return next(iter(_values(message, name)), "")


def _decoded(value: str) -> str:
    if not value.isascii():
        return decode(value.encode("utf-8", "surrogateescape"))
    if "=?" not in value:
        return value
    try:
        pieces = email.header.decode_header(value)
        return "".join(p if isinstance(p, str) else decode(p, charset or "") for p, charset in pieces)
    except (email.errors.HeaderParseError, ValueError, LookupError):
        return value


def _people(message: email.message.Message, name: str) -> list[str]:
    """Names; an address only where there is no name, and then without its domain, lest it be harvested."""
    found = []
    for value in _values(message, name)[:20]:
        for person, address in email.utils.getaddresses([value[:5000]]):
            found.append(person.strip("'\" ") or address.partition("@")[0])
    return found


def _bodies(message: email.message.Message, text: Text, file: File) -> None:
    for number, part in enumerate(_leaves(message)):
        if number > _PARTS:
            raise LimitExceeded(f"mail with more than {_PARTS} parts")
        kind = part.get_content_type()
        name = _decoded(str(part.get_filename() or ""))
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            continue
        attached = bool(name) or part.get_content_disposition() == "attachment"
        charset = str(part.get_content_charset() or "")
        if kind == "text/plain" and not attached:
            text.add(decode(payload, charset) + "\n")
        elif kind == "text/html" and not attached:
            text.add(html_text(decode(payload, charset)) + "\n")
        elif attached:
            text.add(name + "\n")
            _attachment(payload, name, text, file)


def _attachment(payload: bytes, name: str, text: Text, file: File) -> None:
    """Adds an attachment's text, where it has any that we can read; it failing is no fault of the message."""
    from indlet.provider.extract import parts

    if not payload:
        return
    try:
        inner = parts(File(payload, name, file.limits, depth=file.depth + 1))
        found = [part.text for part in inner if isinstance(part, Document)]
    except ExtractionError:
        return
    for words in found:
        text.add(words + "\n")


def _leaves(message: email.message.Message) -> Iterator[email.message.Message]:
    """The parts with content. Of alternatives the plain one, else the page, else the last."""
    waiting = [message]
    while waiting:
        part = waiting.pop()
        payload = part.get_payload()
        inner = (
            [p for p in payload if isinstance(p, email.message.Message)] if isinstance(payload, list) else []
        )
        if not inner:
            yield part
            continue
        if part.get_content_type() == "multipart/alternative":
            kinds = [candidate.get_content_type() for candidate in inner]
            for wanted in ("text/plain", "text/html"):
                if wanted in kinds:
                    inner = [inner[kinds.index(wanted)], *(c for c in inner if c.is_multipart())]
                    break
        waiting.extend(reversed(inner))
