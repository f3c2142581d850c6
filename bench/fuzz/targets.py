"""What is fuzzed: for each reader of foreign bytes, inputs to begin with, and what must hold of any.

A target takes bytes and returns, or raises the errors that its callers expect; whatever else it raises, and
whatever law does not hold, is a finding.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

from bench.fuzz import seeds
from lxml import etree

from indlet import settings
from indlet.errors import BadResponse, ExtractionError, IndletError, QueryError, SettingsError
from indlet.formats import METADATA
from indlet.formats.feed import read_feed
from indlet.formats.metadata import oai_dc
from indlet.formats.record import Broken
from indlet.model import Document, Record, Stored
from indlet.net import decompress
from indlet.oai.read import Item, parsed, read
from indlet.provider.archive import ArchiveTree
from indlet.provider.extract import EXTRACTORS, parts, told_apart
from indlet.provider.extract.file import File
from indlet.provider.serve.access import Permit
from indlet.provider.serve.repository import Repository
from indlet.service.index.embedded.engine import Engine
from indlet.service.records.normalise import Normaliser
from indlet.service.search.library import FACETS, Library
from indlet.settings import file as settings_file
from indlet.site import oai_didl
from indlet.site.mirror.paths import inside, path_of
from indlet.store import Store, packed
from indlet.text import Analyzer, Policy

# Small, so that a bomb shows as what it is; the extractors promise to stay below.
LIMITS = settings.Limits(file_bytes=1 << 20, inflated_bytes=1 << 20, documents=200)
_NOW = 1_700_000_000


@dataclass(frozen=True)
class Target:
    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()  # that mean something to the reader


def oai(data: bytes) -> None:
    """A page says the same once lxml has read and written it; what is stored of it is well-formed."""
    try:
        page = read(data)
    except BadResponse:
        return
    for item in page.items:
        assert item.packed is None or parsed(item.packed.raw) is not None, (
            "lxml refuses what the core has written"
        )
    if page.root is None:  # more namespaces, say, than lxml takes
        return
    again = read(etree.tostring(page.root, encoding="utf-8"))
    assert (again.token, again.size, again.cursor, again.response_date, again.errors) == (
        page.token, page.size, page.cursor, page.response_date, page.errors,
    )  # fmt: skip
    for prefix in ("", "tf_compact"):
        assert _stored(again.items, prefix) == _stored(page.items, prefix)


def _stored(items: list[Item], prefix: str) -> list[object]:
    rules = Policy()
    normaliser = Normaliser(Analyzer(rules), prefix, "", rules if prefix else None)
    made = [str(r) if isinstance(r, BadResponse) else packed(r) for r in normaliser.records(items)]
    return [*zip([(i.identifier, i.datestamp, i.about) for i in items], made, strict=True)]


def indexed(data: bytes) -> None:
    """Whatever records a page has, they can be indexed."""
    try:
        page = read(data)
    except BadResponse:
        return
    normalised = Normaliser(Analyzer(Policy())).records(page.items)
    made = [packed(one) for one in normalised if not isinstance(one, BadResponse)]
    changes = [
        Stored(n, n, 1, one.identifier, 0, one.deleted, one.sets, one.language, one.length, one.resource,
               one.metadata, one.properties, one.raw, one.vector, one.positions, b"")
        for n, one in enumerate(made, 1)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, Engine.open(folder, writable=True) as engine:
        engine.apply(changes, Analyzer(Policy()))
        engine.commit()


def formats(data: bytes) -> None:
    """Records of every catalogue format: what is read can be written, and reads the same again."""
    for form in METADATA.values():
        for fields in form.load(data):
            if isinstance(fields, Broken):
                assert fields.reason
                continue
            _described(form.crosswalk(fields).read(fields).simple())
            try:
                written = form.xml(fields)
            except ValueError:
                continue
            etree.fromstring(written)


def _of(kind: str) -> Callable[[bytes], None]:
    """An extractor by itself, whatever the bytes would be taken for."""

    def run(data: bytes) -> None:
        module, function = EXTRACTORS[kind]
        extractor = getattr(__import__(f"indlet.provider.extract.{module}", fromlist=[function]), function)
        file = File(data, "name.ext", LIMITS, kind)
        _documents(told_apart(extractor(file), file, kind))

    return run


def files(data: bytes) -> None:
    """A file as a crawl reads it: sniffed, unpacked, extracted."""
    _documents(parts(File(data, "name", LIMITS)))


def _documents(found: Iterator[object]) -> None:
    try:
        size = 0
        for part in found:
            if isinstance(part, Document):
                size += len(part.text)
                _described(part.metadata)
                part.text.encode()
        assert size <= LIMITS.inflated_bytes * 4, "more text than the limits allow"
    except ExtractionError as e:
        assert str(e)


def _described(metadata: object) -> None:
    """Whatever metadata were found can be given out: it is text that XML can hold."""
    assert isinstance(metadata, dict)
    etree.fromstring(oai_dc.write(metadata))


def archives(data: bytes) -> None:
    """Zip and tar files as trees: no member has a name that leads elsewhere, all can be tried."""
    for kind, name in (("zip", "a.zip"), ("tar", "a.tar"), ("tar", "a.tar.gz")):
        try:
            tree = ArchiveTree(kind, name, "", lambda: (io.BytesIO(data), lambda: None))
        except IndletError:
            continue
        try:
            _walked(tree)
        except (IndletError, OSError) as e:
            assert str(e)
        finally:
            tree.close()


def _walked(tree: ArchiveTree) -> None:
    folders, seen, sink = [""], 0, _Sink()
    while folders and seen < 200:
        for child in tree.children(folders.pop()):
            seen += 1
            assert child.name not in ("", ".") and "/" not in child.name
            if child.kind == "directory":
                folders.append(child.key)
            elif child.kind == "file":
                try:
                    tree.copy(child.key, sink)
                except ExtractionError as e:
                    assert str(e)


class _Sink(io.RawIOBase):
    """Takes so many bytes and no more, as the crawl's own does."""

    def __init__(self) -> None:
        self._left = LIMITS.file_bytes

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._left -= len(data)
        if self._left < 0:
            raise ExtractionError("larger than the limit")
        return len(data)


def query(data: bytes) -> None:
    """Any text is answered, or its fault is pointed at."""
    text = data.decode("utf-8", "surrogateescape")
    for plain in (False, True):
        try:
            found = _library().search(text, facets=FACETS, plain=plain)
        except QueryError as fault:
            assert 0 <= fault.position <= max(len(text) - 1, 0)
            continue
        assert found.total >= len(found.hits)
        json.dumps(found.to_json())


@cache
def _library() -> Library:
    library = Library.open(Path(tempfile.mkdtemp(prefix="indlet-fuzz-")))
    analyzer = Analyzer(Policy(positions=True))
    with library.store.write() as tx:
        tx.put(tx.origin("source", "air", {"url": "http://air.example/oai"}), seeds.records(analyzer))
    return library


def tokens(data: bytes) -> None:
    """Any arguments get a well-formed answer; a token that we did not give is refused."""
    repository, given = _repository()
    pairs = parse_qsl(data.decode("latin-1"), keep_blank_values=True)[:50]
    for extended in (False, True):
        body = repository.answer(pairs, Permit(), extended).body.data
        etree.fromstring(body)
        named = [value for name, value in pairs if name == "resumptionToken"]
        if named and not any(value in given for value in named):
            assert b"<error" in body, "a token of somebody else's making was taken"


@cache
def _repository() -> tuple[Repository, frozenset[str]]:
    store = Store.open(Path(tempfile.mkdtemp(prefix="indlet-fuzz-")))
    chosen = settings.Settings(serve=settings.Serve(records_per_page=2, identifiers_per_page=2))
    repository = Repository(store, chosen, lambda: _NOW, Policy())
    with store.write() as tx:
        tx.put(tx.origin("hierarchy", "files"), seeds.records(Analyzer(Policy())))
    given: set[str] = set()
    for verb in ("ListRecords", "ListIdentifiers"):
        for extended in (False, True):
            pairs = [("verb", verb), ("metadataPrefix", "oai_dc")]
            while True:
                page = read(repository.answer(pairs, Permit(), extended).body.data)
                if not page.token:
                    break
                given.add(page.token)
                pairs = [("verb", verb), ("resumptionToken", page.token)]
    return repository, frozenset(given)


def token_seeds() -> list[bytes]:
    given = sorted(_repository()[1])
    return seeds.requests() + [f"verb=ListRecords&resumptionToken={token}".encode() for token in given]


def configuration(data: bytes) -> None:
    """Any settings file is taken, or what is wrong with it is said."""
    path = Path(tempfile.gettempdir()) / f"indlet-fuzz-{os.getpid()}.toml"
    path.write_bytes(data)
    try:
        settings_file.load(path)
    except SettingsError as e:
        assert str(path) in str(e) or "settings" in str(e)
    finally:
        path.unlink()


def feed(data: bytes) -> None:
    """Entries of any feed can be kept and given out."""
    try:
        found = read_feed(data, "http://x.org/feed")
    except BadResponse as e:
        assert str(e)
        return
    for entry in found.entries:
        assert entry.identifier
        _described(entry.metadata)
        packed(Record(entry.identifier, entry.metadata, Analyzer().vector(entry.text)))


def compressed(data: bytes) -> None:
    """The first byte chooses the coding; what comes out is never more than the limit."""
    coding = (
        ("gzip", "deflate", "br", "zstd", "x-gzip, zstd", "", "identity", "nonsense")[data[0] % 8]
        if data
        else ""
    )
    try:
        body, _ = decompress.plain(data[1:], coding, 1 << 16)
        assert len(body) <= 1 << 16
    except (decompress.Damaged, decompress.TooLarge) as e:
        assert str(e) or isinstance(e, decompress.TooLarge)


def didl(data: bytes) -> None:
    """No digital item has a file outside the mirror's folder."""
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError):
        return
    if root is None:
        return
    folder = Path(tempfile.gettempdir())
    try:
        found = oai_didl.read(root)
    except (ValueError, IndletError):
        return
    for number, component in enumerate(found):
        try:
            place = inside(folder, path_of(component.ref, "oai:x", number))
        except ValueError:
            continue
        assert place.is_relative_to(folder)
        assert "\0" not in str(place)
        assert all(len(os.fsencode(part)) <= 255 for part in place.parts)


TARGETS = {
    "oai": Target(oai, seeds.pages, seeds.XML_WORDS),
    "indexed": Target(indexed, seeds.pages, (b"a,b;", b"]]>", b"<![CDATA[", b"&", *seeds.XML_WORDS)),
    "marc": Target(formats, seeds.catalogues, (b"\x1d", b"\x1e", b"\x1f", b"00024", *seeds.XML_WORDS)),
    "rtf": Target(_of("application/rtf"), seeds.rtf, seeds.RTF_WORDS),
    "mail": Target(_of("application/mbox"), seeds.mail, seeds.MAIL_WORDS),
    "sgml": Target(_of("text/sgml"), seeds.sgml, seeds.SGML_WORDS),
    "html": Target(_of("text/html"), seeds.html, seeds.XML_WORDS),
    "files": Target(files, seeds.all_files),
    "archives": Target(
        archives, seeds.archives, (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"../", b"ustar")
    ),
    "query": Target(query, seeds.queries, seeds.QUERY_WORDS),
    "tokens": Target(tokens, token_seeds, seeds.OAI_WORDS),
    "settings": Target(configuration, seeds.configurations, seeds.TOML_WORDS),
    "feed": Target(feed, seeds.feeds, seeds.XML_WORDS),
    "compressed": Target(compressed, seeds.compressed),
    "didl": Target(didl, seeds.didl, seeds.XML_WORDS),
}


def took(target: Target, data: bytes) -> float:
    """Processor seconds that one input takes."""
    begun = time.process_time()
    target.run(data)
    return time.process_time() - begun
