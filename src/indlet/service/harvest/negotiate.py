"""What a URL turns out to be, and the best form in which both sides can exchange records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from indlet.errors import Refused, Unreachable
from indlet.formats import INDEX, IndexFormat, bundle
from indlet.net.client import NoAnswer
from indlet.oai import answers
from indlet.oai.answers import Identity
from indlet.oai.names import FT_PATH, OAI_PATH
from indlet.oai.read import Page
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.run_state import PASSING
from indlet.settings import Source
from indlet.text import Policy

# Prefixes under which repositories offer MARC and MODS.
_RICHER: Final = frozenset(("marc21", "marcxml", "marc", "marc-xml", "marcxchange", "oai_marc", "mods"))


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one source is harvested."""

    url: str
    identity: Identity
    metadata_prefix: str = "oai_dc"
    index_prefix: str = ""
    policy: Policy | None = None
    notes: tuple[str, ...] = ()

    @property
    def bundle_prefix(self) -> str:
        return self.metadata_prefix if self.metadata_prefix in bundle.INSIDE else ""

    @property
    def index(self) -> IndexFormat | None:
        """The index format that is exchanged, beside the metadata or bound with them."""
        return bundle.INSIDE.get(self.metadata_prefix) or INDEX.get(self.index_prefix)

    @property
    def losses(self) -> tuple[str, ...]:
        """What the index format does not carry, whatever the policies."""
        if self.index is None or self.index.frequencies:
            return ()
        return ("frequencies missing: each term counts once",)

    @property
    def form(self) -> str:
        """What is exchanged, for people."""
        return f"{self.metadata_prefix}+{self.index_prefix}" if self.index_prefix else self.metadata_prefix

    @property
    def seconds(self) -> bool:
        return not self.identity.granularity or "T" in self.identity.granularity.upper()

    def selection(self, set_spec: str) -> dict[str, str]:
        found = {"metadataPrefix": self.metadata_prefix}
        if self.index_prefix:
            found["indexPrefix"] = self.index_prefix
        if set_spec:
            found["set"] = set_spec
        return found


def candidates(url: str) -> list[str]:
    """The base URLs that a URL may stand for, the richest first."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")

    def at(new: str) -> str:
        return urlunsplit((parts.scheme, parts.netloc, new, parts.query, ""))

    if path.endswith(FT_PATH):
        return [at(path), at(path.removesuffix(FT_PATH) + OAI_PATH)]
    if f"{FT_PATH}/" in path and not parts.query:  # a virtual repository
        return [at(path), at(path.replace(f"{FT_PATH}/", f"{OAI_PATH}/"))]
    if path.endswith(OAI_PATH) and not parts.query:
        return [at(path.removesuffix(OAI_PATH) + FT_PATH), url]
    if parts.query:
        return [url]
    below = [at(path + FT_PATH), at(path + OAI_PATH)]
    return [url, *below] if path else [*below, url]


def source_name(source: Source) -> str:
    """The name by which a source is known: given, or its URL less the endpoint."""
    if source.name:
        return source.name
    parts = urlsplit(source.url)
    path = parts.path.rstrip("/").removesuffix(FT_PATH).removesuffix(OAI_PATH)
    return parts.netloc.rpartition("@")[2] + path + (f"?{parts.query}" if parts.query else "")


def negotiate(fetcher: PageFetcher, source: Source, positions: bool, known: str = "") -> Agreement:
    """How to harvest a source; RemoteError if nothing at its URL speaks OAI-PMH.

    An endpoint that served before (`known`) and is in trouble now is not replaced by a poorer one. An index
    format that was asked for and is not offered is noted.
    """
    agreement = _agreed(fetcher, source, positions, known)
    if source.index in ("", "auto", "none") or (agreement.index and agreement.index.prefix == source.index):
        return agreement
    return replace(agreement, notes=(*agreement.notes, not_offered(source.index)))


def not_offered(index: str) -> str:
    return f"{index} is not offered: no index taken"


def _agreed(fetcher: PageFetcher, source: Source, positions: bool, known: str) -> Agreement:
    said = list[str]()
    silences = 0
    for url in candidates(source.url):
        try:
            page = _identify(fetcher, url, url in (source.url, known))
        except NoAnswer as e:
            said.append(str(e))
            trouble = e.failed.trouble
            silences += trouble == "silent"
            if trouble == "unreachable" or silences > 1 or (url == known and trouble in PASSING):
                raise Unreachable(f"{e}; nothing was changed, try again later") from e
            continue
        identity = answers.identity(page)
        if page.extended and source.index != "none":
            if agreement := _extended(fetcher, url, identity, source, positions, url == known):
                return agreement
            continue
        agreement = _plain(fetcher, url, identity, source, positions)
        former = identity.version.startswith("1.")
        return (
            replace(agreement, notes=(*agreement.notes, f"OAI-PMH {identity.version}"))
            if former
            else agreement
        )
    if silences:  # and nothing else there spoke OAI-PMH: further questions would cost as much each
        raise Unreachable(f"{'; '.join(said)}; nothing was changed, try again later")
    return _unidentified(fetcher, source, said)


def _identify(fetcher: PageFetcher, url: str, named: bool) -> Page:
    """Identify, asked more than once of a URL that is no mere guess, or where nothing answers for now."""
    try:
        return fetcher.page(url, {"verb": "Identify"})
    except NoAnswer as e:
        if e.failed.trouble not in (PASSING if named else ("unreachable", "interrupted", "later")):
            raise
        fetcher.pause(e)
        return fetcher.page_retried(
            url, {"verb": "Identify"}, attempts=1 if e.failed.trouble == "silent" else 3
        )


def _unidentified(fetcher: PageFetcher, source: Source, said: list[str]) -> Agreement:
    """Identify is broken, but the lists may not be."""
    try:
        page = fetcher.page_retried(source.url, {"verb": "ListMetadataFormats"}, attempts=2)
        formats = answers.metadata_formats(page)
    except NoAnswer:
        formats = []
    if formats or _lists(fetcher, source):
        agreement = _plain(fetcher, source.url, Identity(), source, False)
        return Agreement(
            agreement.url, agreement.identity, agreement.metadata_prefix, notes=("Identify is broken",)
        )
    tried = "; ".join(dict.fromkeys(said))
    raise Refused(f"{source.url}: nothing there answers as an OAI-PMH repository ({tried}); check the URL")


def _lists(fetcher: PageFetcher, source: Source) -> bool:
    for verb in ("ListIdentifiers", "ListRecords"):
        try:
            fetcher.page(source.url, {"verb": verb, "metadataPrefix": source.metadata})
        except NoAnswer as e:
            if e.failed.trouble in ("nothing", "later"):
                return True
        else:
            return True
    return False


def _extended(
    fetcher: PageFetcher, url: str, identity: Identity, source: Source, positions: bool, known: bool
) -> Agreement | None:
    try:
        offered = answers.index_formats(fetcher.page_retried(url, {"verb": "ListIndexFormats"}))
    except NoAnswer as e:
        if "noIndexFormats" in str(e):
            return Agreement(url, identity, source.metadata)
        if known and e.failed.trouble in PASSING:
            raise Unreachable(f"{e}; nothing was changed, try again later") from e
        return None
    prefix = best_index(offered, source.index, positions)
    if prefix is None:
        return None
    return Agreement(url, identity, source.metadata, prefix, Policy.read(offered[prefix]))


def best_index(offered: dict[str, str], wanted: str, positions: bool) -> str | None:
    """The index format to ask for: the one wanted, else the best that both sides know."""
    if wanted not in ("auto", ""):
        return wanted if wanted in offered else None
    order = ["tf_compact", "tf_basic", "tf_positions", "tf_boolean"]
    if positions:
        order = ["tf_positions", "tf_compact", "tf_basic", "tf_boolean"]
    return next((p for p in order if p in offered and p in INDEX), None)


def _plain(fetcher: PageFetcher, url: str, identity: Identity, source: Source, positions: bool) -> Agreement:
    try:
        offered = answers.metadata_formats(fetcher.page_retried(url, {"verb": "ListMetadataFormats"}))
    except NoAnswer:
        # Every repository must have oai_dc (section 3.4); one that cannot list its formats may still.
        return Agreement(url, identity, source.metadata, notes=("ListMetadataFormats is broken",))
    if source.index != "none" and source.metadata == "oai_dc":
        inside = {f.prefix: name for name, f in bundle.INSIDE.items() if name in offered}
        prefix = best_index(dict.fromkeys(inside, ""), source.index, positions)
        if prefix is not None:
            return Agreement(url, identity, inside[prefix], "", Policy.read(identity.policy or None))
    if source.metadata not in offered and "oai_dc" in offered:
        note = f"{source.metadata} is not offered: oai_dc taken"
        return Agreement(url, identity, "oai_dc", notes=(note, *_richer(offered)))
    return Agreement(url, identity, source.metadata, notes=_richer(offered, source.metadata))


def _richer(offered: list[str], taken: str = "oai_dc") -> tuple[str, ...]:
    """A note if a repository has more to give than the Dublin Core that is taken."""
    found = [prefix for prefix in offered if prefix.lower() in _RICHER] if taken == "oai_dc" else []
    return (f"oai_dc taken, though {' and '.join(found)} is offered (setting metadata)",) if found else ()
