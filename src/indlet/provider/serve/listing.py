"""The rows of a list: what the store holds of a window, less what the requester may not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypedDict

from indlet.formats.metadata import oai_dc
from indlet.model import Stored
from indlet.oai import frames
from indlet.oai.arguments import Request
from indlet.oai.tokens import ResumptionToken
from indlet.provider.serve.access import Permit
from indlet.provider.serve.dissemination import Dissemination
from indlet.provider.serve.provenance import Provenance
from indlet.provider.site.visibility import Seen, Visibility
from indlet.store import View

_FETCHED: Final = 100  # a page's rows at once are more memory than stays in the processor's cache
_COUNTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One request on its way: everything that its verb needs."""

    view: View
    origins: list[int] | None
    permit: Permit
    request: Request
    endpoint: frames.Endpoint
    now: float
    provenance: Provenance
    seen: Seen | None = None  # where there are sites: what their servers show this requester


class ListWindow(TypedDict, total=False):
    """What part of the feed a list covers, as the store takes it."""

    after: int
    since: int | None
    until: int | None
    set_spec: str | None
    origins: list[int] | None
    metadata_only: bool


class Lists:
    def __init__(self, formats: Dissemination, visibility: Visibility | None) -> None:
        self._formats, self._visibility = formats, visibility

    def window(self, state: ResumptionToken, asked: Inquiry, after: int | None = None) -> ListWindow:
        origins = asked.origins
        if state.metadata_prefix in self._formats.of_sites and self._visibility is not None:
            mine = self._visibility.origins(asked.view)
            origins = [origin for origin in origins or [] if origin in mine]
        return {
            "after": int(state.after) if after is None else after,
            "since": state.since,
            "until": state.until,
            "set_spec": state.set_spec or None,
            "origins": origins,
            "metadata_only": self._formats.metadata_only(state.metadata_prefix, state.index_prefix),
        }

    def size(self, asked: Inquiry, state: ResumptionToken) -> int:
        """How many records a list holds; 0 where that cannot be told."""
        window = self.window(state, asked, after=0)
        if asked.permit.scope is not None and asked.permit.scope.by_sets:
            return sum(1 for _ in self.headers(asked, window, _COUNTED))
        hidden = 0
        if asked.seen is not None:
            if not asked.seen.exact:
                return 0
            hidden = asked.seen.hidden_in(
                window["since"], window["until"], window["set_spec"], window["metadata_only"]
            )
        return asked.view.count(**window) - hidden

    def headers(
        self, asked: Inquiry, window: ListWindow, together: int
    ) -> Iterator[tuple[int, str, int, int, str]]:
        """(seq, identifier, datestamp, deleted, sets) that may be seen; `together` read at once."""
        while rows := asked.view.headers(together, **window):
            found = rows if (chosen := _chosen(asked)) is None else [r for r in rows if chosen(r[4].split())]
            if asked.seen is None:
                yield from found
            else:
                shown = asked.seen.shown([row[:2] for row in found])
                yield from (row for row, visible in zip(found, shown, strict=True) if visible)
            if len(rows) < together:
                return
            window = {**window, "after": rows[-1][0]}

    def as_stored(
        self, asked: Inquiry, state: ResumptionToken, limit: int, most: int
    ) -> tuple[list[bytes], int, int, bool] | None:
        """The bytes of the next records, the last one's place, how many there are, whether more follow. None
        where records have to be looked at one by one: where more than metadata goes out, where not everybody
        may see each of them, and where they have `most` bytes or more.
        """
        formats = state.metadata_prefix, state.index_prefix
        if not self._formats.as_stored(*formats) or asked.provenance:
            return None
        if asked.seen is not None or _chosen(asked) is not None:
            return None
        write = self._formats.writer(*formats, provenance=asked.provenance)
        columns = self._formats.columns(*formats)
        window, last = self.window(state, asked), int(state.after)
        following = asked.view.originals(limit + 1, **window)
        parts, size, count = list[bytes](), 0, 0
        while rows := list(islice(following, min(_FETCHED, limit - count))):
            if _as_served([row[4] for row in rows if row[4] is not None]):
                pieces = frames.records(rows)
            else:
                window["after"] = last
                pieces = list(map(write, asked.view.page(len(rows), parts=columns, **window)))
            parts += pieces
            size, count, last = size + sum(map(len, pieces)), count + len(rows), rows[-1][0]
            if size >= most:
                return None
        return parts, last, count, next(following, None) is not None

    def records(self, asked: Inquiry, state: ResumptionToken, limit: int) -> Iterator[Stored]:
        """The records that the requester may see, in the format that the list is in."""
        columns = self._formats.columns(state.metadata_prefix, state.index_prefix)
        if asked.provenance:
            columns = (*columns, "properties")
        window, together = self.window(state, asked), min(_FETCHED, limit) + 1
        while rows := asked.view.page(together, parts=columns, **window):
            found = rows
            if state.metadata_prefix in self._formats.of_sites:
                found = [row for row in rows if self._formats.has(row, state.metadata_prefix)]
            if (chosen := _chosen(asked)) is not None:
                found = [row for row in found if chosen(row.sets.split())]
            if asked.seen is None:
                yield from found
            else:
                shown = asked.seen.shown([(row.seq, row.identifier) for row in found])
                yield from (row for row, visible in zip(found, shown, strict=True) if visible)
            if len(rows) < together:
                return
            window = {**window, "after": rows[-1].seq}


def _as_served(metadata: Sequence[bytes]) -> bool:
    """Whether all begin as oai_dc does: then the first and the last by their bytes do."""
    return not metadata or (min(metadata) >= oai_dc.START and max(metadata).startswith(oai_dc.START))


def _chosen(asked: Inquiry) -> Callable[[Sequence[str]], bool] | None:
    """What tells by a record's sets whether a virtual repository shows it; None where its origin does."""
    scope = asked.permit.scope
    return scope.takes if scope is not None and scope.by_sets else None
