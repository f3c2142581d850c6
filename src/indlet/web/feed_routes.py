"""Current awareness: what is new and changed, as feeds, for all, a set, a source or a saved query.

Feeds of all, of a set and of sources have archives (provider/serve/feeds.py); a query's is read in pages.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from indlet.errors import QueryError
from indlet.formats.feed_writer import FEEDS, SPELLINGS, Enclosure, Feed, FeedEntry, rfc822
from indlet.model import Stored
from indlet.provider.serve.feeds import (
    ENTRIES,
    archive_links,
    chosen_format,
    content_type,
    document,
    named_number,
    with_number,
)
from indlet.provider.serve.http import unchanged, wants_page
from indlet.web.citation import citation
from indlet.web.i18n import Strings
from indlet.web.portal import Portal
from indlet.web.search_url import State

# How far back a saved query looks for changed records that match it, and in what steps.
_STEP, _STEPS = 1000, 20
_OWN: Final = ("archive", "before", "raw")  # arguments that name a document of a feed


class Changes(NamedTuple):
    """What one document of a feed shows."""

    entries: list[FeedEntry]
    links: dict[str, str]
    archive: bool = False
    total: int | None = None


class Current:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal
        self._key = portal.store.secret("tokens")

    def feed(self, request: Request) -> Response:
        form = FEEDS[chosen_format(request)]
        state = self.portal.state(request)
        of_feeds = {("format", name) for name in SPELLINGS}
        state = replace(state, filters=tuple(pair for pair in state.filters if pair not in of_feeds))
        hidden = self.portal.hidden()
        position = self.portal.library.searcher().position if not state.idle else 0
        with self.portal.store.read() as view:
            visible = self.portal.visible(view)
            newest = next((stored.seq for stored in view.newest(1, origins=visible)), 0)
            updated = view.latest(visible) or 0
        position = min(position, newest)  # what is hidden may be newer
        t = self.portal.pages.strings(request)
        mark = f"{newest} {position} {request.url.query} {sorted(hidden)} {t.code} {self.portal.root}"
        # With a key: numbers that count hidden changes too could be guessed from a plain digest.
        etag = hashlib.blake2b(
            f"{form.media_type} {mark}".encode(), key=self._key, digest_size=12
        ).hexdigest()
        headers = {
            "ETag": f'"{etag}"',
            "Last-Modified": rfc822(updated),
            "Cache-Control": "no-cache",
            "Vary": "Accept, Accept-Language, Cookie",
        }
        for_people = wants_page(request) and "raw" not in request.query_params
        if not for_people and unchanged(request, etag, updated, time.time()):
            return Response(status_code=304, headers=headers)
        try:
            found = self._changes(request, state, hidden)
        except QueryError as e:
            return Response(f"{e}\n", 400, media_type="text/plain")
        feed = self._described(request, state, found, t, updated)
        if for_people:
            more = "&raw=1" if request.url.query else "?raw=1"
            raw = feed.address.removeprefix(self.portal.root) + more
            return self.portal.pages.render(
                request, "feed.html", state=state, feed=feed, raw=raw, headers={"Vary": headers["Vary"]}
            )
        charset = "" if form.media_type.endswith("json") else "; charset=utf-8"
        return Response(form.write(feed), headers={**headers, "Content-Type": form.media_type + charset})

    def _described(self, request: Request, state: State, found: Changes, t: Strings, updated: int) -> Feed:
        node, root = self.portal.library.settings.node, self.portal.root
        only = state.filters[0] if len(state.filters) == 1 and not state.q else ("", "")
        if state.idle:
            title = t("feed.all", name=node.name)
        elif only[0] in ("set", "source"):
            title = t(f"feed.{only[0]}", name=node.name, **{only[0]: only[1]})
        else:
            title = t("feed.query", q=state.q or t("search.browse"), name=node.name)
        return Feed(
            title=title,
            description=node.description or t("feed.description"),
            address=root + request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            page=root + state.link(),
            author=node.name,
            email=node.admin_email[0] if node.admin_email else "",
            rights=node.rights,
            language=t.code,
            updated=max((entry.updated for entry in found.entries), default=updated),
            entries=found.entries,
            icon=f"{root}/static/mark",
            total=found.total,
            links=found.links,
            archive=found.archive,
            content=content_type(request),
        )

    def _changes(self, request: Request, state: State, hidden: set[int]) -> Changes:
        chosen = state.chosen()
        sets, sources = chosen.pop("set", []), chosen.pop("source", [])
        address = self.portal.root + request.url.path
        arguments = [(n, v) for n, v in request.query_params.multi_items() if n not in _OWN]
        if state.q or chosen or len(sets) > 1:
            return self._matching(request, state, hidden, address, arguments)
        with self.portal.store.read() as view:
            known, visible = view.origins(), set(self.portal.visible(view))
            origins = [o.id for o in known if o.id in visible and (not sources or o.name in sources)]
            archive = named_number(request, "archive", self._key)
            found = document(view, origins, sets[0] if sets else None, archive)
        if found is None:
            raise HTTPException(404)
        names = {o.id: o.name for o in known}
        return Changes(
            [self._entry(one, names.get(one.origin, "")) for one in found.stored],
            archive_links(found, address, arguments, self._key),
            found.archive is not None,
        )

    def _matching(
        self,
        request: Request,
        state: State,
        hidden: set[int],
        address: str,
        arguments: list[tuple[str, str]],
    ) -> Changes:
        """The latest changes that match a query, newest first; as far back as the steps reach."""
        found: list[Stored] = []
        before = named_number(request, "before", self._key)
        first, following = before is None, None
        with self.portal.store.read() as view:
            names = {o.id: o.name for o in view.origins()}
            visible = self.portal.visible(view) if hidden else None
            for _ in range(_STEPS):
                ids = view.latest_ids(_STEP, before=before, origins=visible)
                matching = self.portal.library.matching(
                    state.q or "*", [number for number, _ in ids], filters=state.chosen()
                )
                chosen = [number for number, _ in ids if number in matching]
                records = view.by_id(chosen, metadata_only=True)
                found += [
                    one
                    for number in chosen
                    if (one := records.get(number)) is not None and one.origin not in hidden
                ]
                following = before = ids[-1][1] if len(ids) == _STEP else None
                if len(found) > ENTRIES:
                    following = found[ENTRIES - 1].seq
                if len(found) > ENTRIES or before is None:
                    break
        total = self.portal.library.search(state.q or "*", limit=0, filters=state.chosen()).total
        links = {} if first else {"first": with_number(address, arguments, "before", None, self._key)}
        if following is not None:
            links["next"] = with_number(address, arguments, "before", following, self._key)
        entries = [self._entry(one, names.get(one.origin, "")) for one in found[:ENTRIES]]
        return Changes(entries, links, total=total)

    def _entry(self, stored: Stored, source: str) -> FeedEntry:
        record = stored.record
        cited = citation(stored.identifier, record.metadata, record.properties, source)
        return FeedEntry(
            identifier=cited.identifier,
            page=self.portal.root + cited.page,
            title=cited.title,
            updated=stored.datestamp,
            deleted=bool(stored.deleted),
            metadata=record.metadata,
            url=cited.url,
            date=cited.date,
            source=source,
            restricted=cited.restricted,
            enclosures=[
                Enclosure(copy.url, copy.media_type, copy.size, _file_name(copy.url))
                for copy in ([] if cited.restricted else cited.copies[:20])
                if copy.url
            ],
        )


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2][:200]
