"""The rows of a list: what the store holds of a window, less what the requester may not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypedDict, TypeVar

from indlet.formats.metadata import oai_dc
from indlet.model import Stored
from indlet.oai import frames
from indlet.oai.arguments import Request
from indlet.oai.tokens import ResumptionToken
from indlet.provider.serve.access import Permit
from indlet.provider.serve.dissemination import Dissemination
from indlet.provider.serve.grants import granted_origins
from indlet.provider.serve.provenance import Provenance
from indlet.provider.serve.record_filter import NamedRecord, RecordFilter, VisibleRecords
from indlet.store import GrantView, View

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
    grants: tuple[GrantView, ...] = ()  # what is shown besides `origins`, and since when
    seen: VisibleRecords | None = None  # where a filter decides: what it shows this requester


class ListWindow(TypedDict, total=False):
    """What part of the feed a list covers, as the store takes it."""

    after: int
    since: int | None
    until: int | None
    set_spec: str | None
    origins: list[int] | None
    metadata_only: bool
    grants: Sequence[GrantView]


class Lists:
    def __init__(self, formats: Dissemination, filtering: RecordFilter | None) -> None:
        self._formats, self._filter = formats, filtering

    def window(self, state: ResumptionToken, asked: Inquiry, after: int | None = None) -> ListWindow:
        origins, grants = asked.origins, asked.grants
        if state.metadata_prefix in self._formats.filtered and self._filter is not None:
            mine = self._filter.origins(asked.view)
            origins = [origin for origin in origins or [] if origin in mine]
            grants = tuple(grant for grant in grants if grant.origin in mine)
        return {
            "after": int(state.after) if after is None else after,
            "since": state.since,
            "until": state.until,
            "set_spec": state.set_spec or None,
            "origins": origins,
            "metadata_only": self._formats.metadata_only(state.metadata_prefix, state.index_prefix),
            "grants": grants,
        }

    def size(self, asked: Inquiry, state: ResumptionToken) -> int:
        """How many records a list holds; 0 where that cannot be told."""
        window = self.window(state, asked, after=0)
        if asked.permit.scope is not None and asked.permit.scope.by_sets:
            return sum(1 for _ in self.headers(asked, window, _COUNTED))
        if asked.seen is not None:
            if not asked.seen.is_exact:
                return 0
            # What is public is counted without asking the filter. Who sees more finds a longer list.
            window = {**window, "origins": [o for o in window["origins"] or [] if o in asked.seen.public]}
        return asked.view.count(**window)

    def earliest(self, asked: Inquiry) -> int:
        """A datestamp that none is before."""
        if asked.seen is not None:
            # Nobody is asked who sees what; no file is dated before this, whoever may see it.
            return 0
        # Metadata is never dated later than the record as a whole.
        everything: ListWindow = {
            "after": 0, "origins": asked.origins, "metadata_only": True, "grants": asked.grants
        }  # fmt: skip
        first = next(self.headers(asked, everything, 100), None)
        # Lists run in the order of datestamps, and none given later will be earlier.
        return first[2] if first else int(asked.now)

    def sets(self, asked: Inquiry, after: str = "") -> Iterator[tuple[str, str]]:
        """(setSpec, name) of the sets that the requester may know of, in order, from behind a setSpec."""
        granted = granted_origins(asked.grants)
        if asked.seen is not None:
            known = asked.seen.sets(after)
            if granted:
                more = [one for one in asked.view.sets(granted) if one[0] > after]
                known = iter(sorted(dict([*more, *known]).items()))
        else:
            origins = None if asked.origins is None else [*asked.origins, *granted]
            known = (one for one in asked.view.sets(origins) if one[0] > after)
        scope = asked.permit.scope
        return (one for one in known if scope is None or scope.names(one[0]))

    def has_sets(self, asked: Inquiry) -> bool:
        """The records of a filter are always in sets, whoever may see them. What a requester was shown before
        may have been in sets that are hidden now."""
        return asked.seen is not None or bool(asked.grants) or next(self.sets(asked), None) is not None

    def count_sets(self, asked: Inquiry) -> int:
        """How many sets there are; where a filter decides, how many are open to everybody."""
        if asked.seen is not None:
            return len(asked.view.sets([*asked.seen.public, *granted_origins(asked.grants)]))
        return sum(1 for _ in self.sets(asked))

    def headers(
        self, asked: Inquiry, window: ListWindow, together: int
    ) -> Iterator[tuple[int, str, int, int, str]]:
        """(seq, identifier, datestamp, deleted, sets) that may be seen; `together` read at once."""
        while rows := asked.view.headers(together, **window):
            found = _chosen(asked, rows, _header_place)
            if asked.seen is None:
                yield from found
            else:
                guarded = asked.seen.guarded_places(together, **window)
                listed = [NamedRecord(row[1], bool(row[3]), row[0] in guarded) for row in found]
                shown = asked.seen.shows(listed)
                yield from (row for row, visible in zip(found, shown, strict=True) if visible)
            if len(rows) < together or _stops(asked, rows[-1][0]):
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
        if asked.seen is not None or _by_sets(asked):
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
            if state.metadata_prefix in self._formats.filtered:
                found = [row for row in rows if self._formats.has(row, state.metadata_prefix)]
            found = _chosen(asked, found, _record_place)
            if asked.seen is None:
                yield from found
            else:
                guarded = asked.seen.guarded
                shown = asked.seen.shows(
                    [NamedRecord(row.identifier, bool(row.deleted), row.origin in guarded) for row in found]
                )
                yield from (row for row, visible in zip(found, shown, strict=True) if visible)
            if len(rows) < together or _stops(asked, rows[-1].seq):
                return
            window = {**window, "after": rows[-1].seq}


def _stops(asked: Inquiry, place: int) -> bool:
    """Whether a response ends at a place of its list because its filter has been asked often enough."""
    if asked.seen is None or not asked.seen.exhausted:
        return False
    asked.seen.stopped_after = place
    return True


def _as_served(metadata: Sequence[bytes]) -> bool:
    """Whether all begin as oai_dc does: then the first and the last by their bytes do."""
    return not metadata or (min(metadata) >= oai_dc.START and max(metadata).startswith(oai_dc.START))


_Listed = TypeVar("_Listed")


def _by_sets(asked: Inquiry) -> bool:
    """Whether a virtual repository shows a record or not by its sets."""
    return asked.permit.scope is not None and asked.permit.scope.by_sets


def _chosen(
    asked: Inquiry, rows: list[_Listed], place: Callable[[_Listed], tuple[int, str]]
) -> list[_Listed]:
    """The rows of a list that a virtual repository shows; `place` gives a row's seq and sets."""
    scope = asked.permit.scope
    if scope is None or not scope.by_sets:
        return rows
    taken = [scope.takes(place(row)[1].split()) for row in rows]
    # What a grant placed has left its sets, and is told as deleted.
    others = [place(row)[0] for row, chosen in zip(rows, taken, strict=True) if not chosen]
    left = asked.view.granted_places(others) if asked.grants else set()
    return [row for row, chosen in zip(rows, taken, strict=True) if chosen or place(row)[0] in left]


def _header_place(row: tuple[int, str, int, int, str]) -> tuple[int, str]:
    return row[0], row[4]


def _record_place(row: Stored) -> tuple[int, str]:
    return row.seq, row.sets


def granted_records(asked: Inquiry, identifier: str, metadata_only: bool) -> list[Stored]:
    """The records of an identifier that grants show, each as its list has it."""
    if not asked.grants:
        return []
    return asked.view.page(
        10, origins=[], grants=asked.grants, identifier=identifier, metadata_only=metadata_only
    )


def visible_to(
    filtering: RecordFilter, view: View, permit: Permit, origins: list[int] | None
) -> VisibleRecords:
    """What a filter shows the holder of a permit, besides these origins."""
    return filtering.visible(view, permit.requester, _named(view, origins), permit.includes)


def _named(view: View, origins: list[int] | None) -> list[int]:
    """Origins one by one; None stands for all, as it does before anything guarded was crawled."""
    return [origin.id for origin in view.origins()] if origins is None else origins
