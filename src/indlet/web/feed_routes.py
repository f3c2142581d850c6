"""Current awareness: what is new and changed, as RSS and Atom, for all, a set, a source or a saved query."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from indlet.errors import QueryError
from indlet.model import Stored
from indlet.web.citation import citation
from indlet.web.feeds import Feed, FeedEntry, atom, rfc822, rss
from indlet.web.i18n import strings
from indlet.web.portal import Portal
from indlet.web.search_url import State

ENTRIES: Final = 50
# How far back a saved query looks for changed records that match it, and in what steps.
_STEP, _STEPS = 1000, 20
_KINDS: Final[dict[str, tuple[str, Callable[[Feed], bytes]]]] = {
    "atom": ("application/atom+xml; charset=utf-8", atom),
    "rss": ("application/rss+xml; charset=utf-8", rss),
}


class Current:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def feed(self, request: Request) -> Response:
        media_type, write = _KINDS[request.path_params["kind"]]
        state = self.portal.state(request)
        hidden = self.portal.hidden()
        position = self.portal.library.searcher().position if not state.idle else 0
        with self.portal.store.read() as view:
            visible = self.portal.visible(view)
            newest = next((stored.seq for stored in view.newest(1, origins=visible)), 0)
            updated = view.latest(visible) or 0
        position = min(position, newest)  # what is hidden may be newer
        t = strings(self.portal.pages.language(request))
        mark = f"{newest} {position} {request.url.query} {sorted(hidden)} {t.code} {self.portal.root}"
        etag = f'"{hashlib.sha256(f"{media_type} {mark}".encode()).hexdigest()[:24]}"'
        headers = {
            "ETag": etag,
            "Last-Modified": rfc822(updated),
            "Cache-Control": "no-cache",
            "Vary": "Accept-Language, Cookie",
        }
        if _unchanged(request, etag, updated):
            return Response(status_code=304, headers=headers)
        try:
            found, total = self._changes(state, hidden)
        except QueryError as e:
            return Response(f"{e}\n", 400, media_type="text/plain")
        settings = self.portal.library.settings
        root = self.portal.root
        only = state.filters[0] if len(state.filters) == 1 and not state.q else ("", "")
        if state.idle:
            title = t("feed.all", name=settings.node.name)
        elif only[0] in ("set", "source"):
            title = t(f"feed.{only[0]}", name=settings.node.name, **{only[0]: only[1]})
        else:
            title = t("feed.query", q=state.q or t("search.browse"), name=settings.node.name)
        feed = Feed(
            title=title,
            description=settings.node.description or t("feed.description"),
            root=root,
            address=root + request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            page=root + state.link(),
            author=settings.node.name,
            email=settings.node.admin_email[0] if settings.node.admin_email else "",
            rights=settings.node.rights,
            language=t.code,
            updated=max((entry.datestamp for entry in found), default=updated),
            entries=found,
            total=total,
        )
        return Response(write(feed), headers={**headers, "Content-Type": media_type})

    def _changes(self, state: State, hidden: set[int]) -> tuple[list[FeedEntry], int | None]:
        chosen = state.chosen()
        sets, sources = chosen.pop("set", []), chosen.pop("source", [])
        total: int | None = None
        with self.portal.store.read() as view:
            known = view.origins()
            origins = [o.id for o in known if o.id not in hidden and (not sources or o.name in sources)]
            names = {o.id: o.name for o in known}
            if not state.q and not chosen and len(sets) < 2:
                stored = view.newest(ENTRIES, set_spec=sets[0] if sets else None, origins=origins)
            else:
                stored = self._matching(state, hidden)
                total = self.portal.library.search(state.q or "*", limit=0, filters=state.chosen()).total
        return [_entry(one, names.get(one.origin, "")) for one in stored], total

    def _matching(self, state: State, hidden: set[int]) -> list[Stored]:
        """The latest changes that match a query, newest first; as far back as the steps reach."""
        found: list[Stored] = []
        with self.portal.store.read() as view:
            before: int | None = None
            for _ in range(_STEPS):
                ids = view.latest_ids(_STEP, before=before)
                matching = self.portal.library.matching(
                    state.q or "*", [number for number, _ in ids], filters=state.chosen()
                )
                chosen = [number for number, _ in ids if number in matching]
                records = view.by_id(chosen)
                found += [records[n] for n in chosen if n in records and records[n].origin not in hidden]
                if len(ids) < _STEP or len(found) >= ENTRIES:
                    break
                before = ids[-1][1]
        return found[:ENTRIES]


def _entry(stored: Stored, source: str) -> FeedEntry:
    record = stored.record
    return FeedEntry(
        citation(stored.identifier, record.metadata, record.properties, source),
        record.metadata,
        stored.datestamp,
        bool(stored.deleted),
        source,
    )


def _unchanged(request: Request, etag: str, updated: int) -> bool:
    if match := request.headers.get("if-none-match"):
        tags = [tag.strip().removeprefix("W/") for tag in match.split(",")]
        return etag in tags or "*" in tags
    since = request.headers.get("if-modified-since")
    # A second that is not over may still bring changes with the same date.
    if not since or updated >= int(time.time()) - 1:
        return False
    try:
        return parsedate_to_datetime(since).timestamp() >= updated
    except (ValueError, TypeError):
        return False
