"""What is not the protocol: landing page, robots.txt, sitemap, health, schemas, answers as pages."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Final

import orjson
from lxml import etree

from indlet.formats import MetadataFormat
from indlet.formats.feed_writer import FEEDS
from indlet.formats.sitemap import sitemap, sitemap_index
from indlet.oai.dates import written
from indlet.oai.names import FT_PATH, OAI_PATH
from indlet.oai.tokens import sealed_number, unsealed_number
from indlet.oai.xml import attribute
from indlet.provider.serve.access import Permit
from indlet.provider.serve.listing import visible_to
from indlet.provider.serve.record_filter import NamedRecord, RecordFilter
from indlet.provider.serve.responses import ForeignBytes
from indlet.settings import Settings
from indlet.store import Store, View

SCHEMAS: Final = (
    "ft-oai.xsd", "bundle.xsd", "dcterms.xsd", "cosati.xsd", "http_header.xsd",
    "tf.xsd", "tf_basic.xsd", "tf_boolean.xsd", "tf_compact.xsd", "tf_positions.xsd",
)  # fmt: skip
SITEMAP_URLS: Final = 50_000  # as many as a sitemap may hold


@cache
def packaged(path: str) -> bytes:
    """A data file of this package."""
    return files("indlet.provider.serve").joinpath(path).read_bytes()


def table_schema(metadata: MetadataFormat) -> bytes:
    """The schema of a table's records: fields with tags, in the table's namespace."""
    schema = Template(packaged("schema/table.xsd").decode())
    return schema.substitute(namespace=attribute(metadata.namespace)).encode()


def as_page(answer: ForeignBytes) -> bytes:
    """A response as HTML, by the very stylesheet that a browser with XSLT would apply."""
    transform = etree.XSLT(etree.fromstring(packaged("static/oai.xsl")))
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    return bytes(transform(etree.fromstring(answer.data, parser)))


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """How much there is to harvest, for one requester."""

    live: int
    deleted: int
    changed: int | None  # latest datestamp


class RepositoryPages:
    def __init__(self, store: Store, settings: Settings, filtering: RecordFilter | None = None) -> None:
        """`filtering`: where more than the settings decide who sees what."""
        self._store = store
        self._settings = settings
        self._filter = filtering
        self._root, self._key = settings.base_url(), store.secret("tokens")
        self._totals: tuple[int, dict[int, tuple[int, int]]] = (-1, {})
        self._guard = threading.Lock()

    def state(self, permit: Permit) -> RepositoryState:
        with self._store.read() as view:
            return self._state(view, permit.origins(view))

    def _state(self, view: View, origins: list[int] | None) -> RepositoryState:
        seq = view.last_seq()
        with self._guard:
            # Counting reads every record: once for each state of the store.
            if self._totals[0] != seq:
                self._totals = (seq, view.totals())
            totals = self._totals[1]
        seen = [counts for origin, counts in totals.items() if origins is None or origin in origins]
        return RepositoryState(sum(n for n, _ in seen), sum(n for _, n in seen), view.latest(origins))

    def health(self, permit: Permit) -> bytes:
        state = self.state(permit)
        return orjson.dumps(
            {
                "status": "ok",
                "records": state.live,
                "deleted": state.deleted,
                "last_change": written(state.changed) if state.changed is not None else None,
                "version": version("indlet"),
            },
            option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
        )

    def robots(self) -> bytes:
        # OAIPMHbaseURL: the proposal of Nelson and Van de Sompel for finding repositories by robots.txt.
        return (
            "User-agent: *\nDisallow:\n\n"
            f"Sitemap: {self._root}/sitemap.xml\nOAIPMHbaseURL: {self._root}{OAI_PATH}\n"
        ).encode()

    def landing(self, permit: Permit) -> bytes:
        with self._store.read() as view:
            origins = permit.origins(view)
            state = self._state(view, origins)
            sets = [one for one in view.sets(origins) if ":" not in one[0]]
        node, mount = self._settings.node, escape(self._settings.mount())
        items = "".join(
            f'<li><a href="{mount}/oai?verb=ListRecords&amp;metadataPrefix=oai_dc&amp;set={escape(spec)}">'
            f"{escape(name or spec)}</a></li>"
            for spec, name in sets[:50]
        )
        changed = datetime.fromtimestamp(state.changed, UTC) if state.changed is not None else None
        page = Template(packaged("static/landing.html").decode()).substitute(
            name=escape(node.name),
            description=f"<p class=lead>{escape(node.description)}</p>" if node.description else "",
            records=f"{state.live:,}",
            noun="document" if state.live == 1 else "documents",
            changed=f", last changed on {changed:%-d %B %Y at %H:%M} UTC" if changed else "",
            oai=escape(self._root + OAI_PATH),
            ft=escape(self._root + FT_PATH),
            root=escape(self._root),
            mount=mount,
            feeds="".join(
                f'<link rel="alternate" type="{form.media_type}" title="{escape(node.name)} ({form.label})" '
                f'href="{escape(self._root)}/feed.{kind}">\n'
                for kind, form in FEEDS.items()
            ),
            sets=f"<h2>Collections</h2><ul>{items}</ul>" if items else "",
            emails=", ".join(f'<a href="mailto:{escape(e)}">{escape(e)}</a>' for e in node.admin_email),
            rights=f"<p>{escape(node.rights)}</p>" if node.rights else "",
        )
        return page.encode()

    # Sitemap

    def sitemap(self, permit: Permit) -> bytes:
        """The sitemap, or the index of its parts where one file may not hold all addresses."""
        with self._store.read() as view:
            origins = permit.origins(view)
            state = self._state(view, origins)
            if state.live < SITEMAP_URLS:
                return self._urls(view, permit, 0, SITEMAP_URLS - 1, front=True)
            starts, after = [0], 0
            while page := view.addresses(SITEMAP_URLS, after=after, origins=origins):
                after = page[-1][0]
                if len(page) == SITEMAP_URLS:
                    starts.append(after)
                else:
                    break
            else:
                starts.pop()
        parts = (sealed_number("sitemap", start, self._key) for start in starts)
        return sitemap_index(f"{self._root}/sitemap/{part}.xml" for part in parts)

    def sitemap_part(self, permit: Permit, part: str) -> bytes | None:
        """The part that the index calls so; None if it calls none so."""
        after = unsealed_number("sitemap", part, self._key)
        if after is None:
            return None
        with self._store.read() as view:
            return self._urls(view, permit, after, SITEMAP_URLS, front=False)

    def _urls(self, view: View, permit: Permit, after: int, limit: int, front: bool) -> bytes:
        found = view.addresses(limit, after=after, origins=permit.origins(view))
        if self._filter is not None:
            listed = [NamedRecord(url or "", deleted=False) for _, _, url in found]
            shown = visible_to(self._filter, view, permit, permit.origins(view)).shows(listed)
            found = [one for one, visible in zip(found, shown, strict=True) if visible]
        # Several documents of one file are parts of one page: its address stands once, with the latest date.
        latest = {url.partition("#")[0]: datestamp for _, datestamp, url in found if url}
        first: list[tuple[str, int | None]] = [(f"{self._root}/", None)] if front or not latest else []
        return sitemap([*first, *latest.items()])
