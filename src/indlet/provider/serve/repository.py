"""The store as an OAI-PMH repository: a request and a permit become the bytes of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from indlet.errors import (
    CannotDisseminateFormat,
    IdDoesNotExist,
    NoIndexFormats,
    NoRecordsMatch,
    NoSetHierarchy,
    ProtocolError,
    SettingsError,
)
from indlet.formats.registry import configured_formats
from indlet.model import Stored
from indlet.oai import frames
from indlet.oai.arguments import parse
from indlet.oai.dates import period
from indlet.oai.describe import is_email
from indlet.oai.identifier import encoded, set_name
from indlet.oai.names import FT_PATH, OAI_PATH, SCHEMA_PATH
from indlet.oai.tokens import ResumptionToken
from indlet.provider.answered import Answered
from indlet.provider.serve.access import Permit
from indlet.provider.serve.coding import checked
from indlet.provider.serve.descriptions import descriptions
from indlet.provider.serve.dissemination import Dissemination
from indlet.provider.serve.grants import Grants
from indlet.provider.serve.listing import Inquiry, Lists, granted_records, visible_to
from indlet.provider.serve.provenance import Provenance
from indlet.provider.serve.record_filter import NamedRecord, RecordFilter, VisibleRecords, record_filter
from indlet.provider.serve.responses import ForeignBytes
from indlet.provider.serve.scope import Scope, virtual_settings
from indlet.settings import Settings, VirtualRepository
from indlet.store import Store, View
from indlet.text import Policy

# A page ends early once it holds this much: its size is bounded however large its records are.
PAGE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OaiAnswer:
    """A response's body, and what is worth counting or remembering of it."""

    body: ForeignBytes
    verb: str = ""
    prefix: str = ""
    records: int = 0
    modified: int | None = None  # the datestamp of the one record that it is about
    steady: bool = False  # equal requests get equal answers, but for the responseDate, until data changes


class Repository:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        policy: Policy,
        virtual: VirtualRepository | None = None,
        filtering: RecordFilter | None = None,
        path: str = OAI_PATH,
    ) -> None:
        """`virtual`: the part of the node that it shows; None for all. `filtering`: the node's filter."""
        if virtual is not None:
            settings = virtual_settings(settings, virtual)
        self._scope = None if virtual is None else Scope.of(virtual)
        self._store = store
        self._settings = settings
        self._clock = clock
        root = settings.base_url()
        path = virtual.path if virtual is not None else path
        self._endpoints = {extended: frames.Endpoint.at(root, extended, path) for extended in (False, True)}
        self._key = store.secret("tokens")
        schemas = root + SCHEMA_PATH
        only = virtual.formats if virtual is not None else ()
        self._filter = filtering or record_filter(settings, clock)
        self._formats = Dissemination(schemas, policy, self._filter, only, configured_formats(settings))
        self._lists = Lists(self._formats, self._filter)
        self._answered = Answered(store, clock)
        self._grants = Grants(store, settings, self._scope)
        self._emails = settings.node.admin_email
        if not self._emails or not all(map(is_email, self._emails)):
            raise SettingsError(
                f"node.admin_email {list(self._emails)}: OAI-PMH needs one or more like 'name@example.org'"
            )
        self._compression = checked(settings.serve.compression)
        self._descriptions = descriptions(settings, self._formats, store.epoch())
        self._verbs: dict[str, Callable[[Inquiry], OaiAnswer]] = {
            "Identify": self._identify,
            "ListMetadataFormats": self._metadata_formats,
            "ListIndexFormats": self._index_formats,
            "ListSets": self._sets,
            "GetRecord": self._record,
            "ListIdentifiers": self._list,
            "ListRecords": self._list,
        }

    def answer(self, pairs: Iterable[tuple[str, str]], permit: Permit, extended: bool) -> OaiAnswer:
        """The answer to a request, errors included. Nothing that a requester sends makes it raise."""
        # Taken before the snapshot: whatever this answer does not show yet is dated no earlier.
        now = self._clock()
        if self._scope is not None:
            permit = replace(permit, scope=self._scope)
        endpoint = self._endpoints[extended]
        request = parse(self._mended(list(pairs), permit), extended)
        if isinstance(request, list):
            return OaiAnswer(ForeignBytes(endpoint.refusal(now, {}, request)))
        is_list = request.verb in ("ListIdentifiers", "ListRecords")
        if is_list:
            self._answered.note()
        try:
            with self._grants.snapshot(is_list) as view:
                # A record of this node's own, met at a virtual repository, is known for what it is.
                own = self._settings.base_url() + FT_PATH if self._scope is not None else ""
                origins, grants = self._grants.shown(view, permit)
                provenance = Provenance(view.origins(), extended, own, {grant.origin for grant in grants})
                asked = Inquiry(view, origins, permit, request, endpoint, now, provenance, grants)
                return self._verbs[request.verb](self._judged(asked))
        except ProtocolError as e:
            errors: Sequence[ProtocolError] = [e]
        except ExceptionGroup as group:
            errors = [e for e in group.exceptions if isinstance(e, ProtocolError)]
            if len(errors) < len(group.exceptions):
                raise
        return OaiAnswer(ForeignBytes(endpoint.refusal(now, request.arguments, errors)), request.verb)

    def _judged(self, asked: Inquiry) -> Inquiry:
        """The request with what the filter shows this requester."""
        if self._filter is None:
            return asked
        seen = visible_to(self._filter, asked.view, asked.permit, asked.origins)
        return replace(asked, origins=seen.origins, seen=seen)

    def _mended(self, pairs: list[tuple[str, str]], permit: Permit) -> list[tuple[str, str]]:
        """The arguments, with an identifier put right that the client did not encode for the URL.

        Identifiers hold %XX. Sent as they stand, these arrive decoded, as something that does not exist here.
        """
        given = [value for name, value in pairs if name == "identifier"]
        if len(given) != 1 or (meant := encoded(given[0])) == given[0]:
            return pairs
        with self._store.read() as view:
            origins = permit.origins(view)
            if view.get(given[0], origins) is not None or view.get(meant, origins) is None:
                return pairs
        return [(name, meant if name == "identifier" else value) for name, value in pairs]

    def _identify(self, asked: Inquiry) -> OaiAnswer:
        body = frames.identify(
            name=self._settings.node.name,
            url=asked.endpoint.url,
            emails=self._emails,
            earliest=self._lists.earliest(asked),
            compression=self._compression,
            descriptions=self._descriptions,
        )
        return self._steady(asked, [body])

    def _metadata_formats(self, asked: Inquiry) -> OaiAnswer:
        return self._steady(asked, self._formats.metadata_formats(self._existing(asked)))

    def _index_formats(self, asked: Inquiry) -> OaiAnswer:
        found = self._formats.index_formats(self._existing(asked))
        if not found:
            raise NoIndexFormats("this item has no index part; harvest its metadata alone")
        return self._steady(asked, found)

    def _existing(self, asked: Inquiry) -> Stored | None:
        """The item that the request names, if it names one."""
        name = asked.request.get("identifier")
        if name is None:
            return None
        get = asked.request.get
        metadata_only = self._formats.metadata_only(get("metadataPrefix") or "", get("indexPrefix") or "")
        found = self._found(asked.view, asked.origins, asked.seen, name, metadata_only)
        found += granted_records(asked, name, metadata_only)
        if not found:
            raise IdDoesNotExist(f"there is no item {name!r} here")
        return min(found, key=lambda one: one.deleted)

    def _found(
        self,
        view: View,
        origins: list[int] | None,
        seen: VisibleRecords | None,
        name: str,
        metadata_only: bool,
    ) -> list[Stored]:
        """The records of an identifier that a requester may see."""
        parts = [origins] if seen is None else [seen.public, seen.guarded]
        found = [
            one for part in parts if (one := view.get(name, part, metadata_only=metadata_only)) is not None
        ]
        if seen is not None:
            shown = seen.shows(
                [NamedRecord(one.identifier, bool(one.deleted), one.origin in seen.guarded) for one in found]
            )
            found = [one for one, visible in zip(found, shown, strict=True) if visible]
        if (scope := self._scope) is not None and scope.by_sets:
            found = [one for one in found if scope.takes(one.sets.split())]
        return found

    @property
    def is_filtered(self) -> bool:
        """Whether who may see a record can change without a change of the store."""
        return self._filter is not None

    def visible(self, view: View, permit: Permit) -> Callable[[str], bool]:
        """What tells whether a requester may know of the record of an identifier."""
        origins = permit.origins(view)
        seen = visible_to(self._filter, view, permit, origins) if self._filter is not None else None
        return lambda name: bool(self._found(view, origins, seen, name, True))

    def _sets(self, asked: Inquiry) -> OaiAnswer:
        token = self._resumed(asked)
        limit = max(1, self._settings.serve.sets_per_page)
        rest = list(islice(self._lists.sets(asked, str(token.after) if token else ""), limit + 1))
        if not rest and token is not None:  # they have gone since; a list is never empty
            rest = [(str(token.after), "")]
        if not rest:
            raise NoSetHierarchy("there are no sets here; harvest without a set")
        page = rest[:limit]
        body = [frames.one_set(spec, name or set_name(spec)) for spec, name in page]
        if token is not None or len(rest) > limit:
            state = token or self._fresh(asked, after="", size=self._lists.count_sets(asked))
            body.append(self._ending(state, page[-1][0], len(page), len(rest) > limit, asked.now))
        return self._finished(asked, body, 0)

    # Records

    def _record(self, asked: Inquiry) -> OaiAnswer:
        request, errors = asked.request, list[ProtocolError]()
        prefix, index_prefix = request.get("metadataPrefix") or "", request.get("indexPrefix") or ""
        try:
            stored = self._existing(asked)
        except IdDoesNotExist as e:
            stored = None
            errors.append(e)
        errors += self._formats.unknown(prefix, index_prefix)
        if not errors and stored is not None and not self._formats.has(stored, prefix):
            errors.append(CannotDisseminateFormat(f"this item cannot be had as {prefix}"))
        if errors or stored is None:
            raise ExceptionGroup("GetRecord", errors)
        body = self._writer(asked, prefix, index_prefix)(stored)
        answer = self._finished(asked, [body], 1)
        return replace(answer, modified=stored.datestamp, steady=True)

    def _list(self, asked: Inquiry) -> OaiAnswer:
        given = self._resumed(asked)
        state = given or self._started(asked)
        headers_only = asked.request.verb == "ListIdentifiers"
        parts, last, count, more = self._page(asked, state, headers_only)
        while not count and given is None and asked.seen is not None and more:
            # Nothing to show so far, and nothing to repeat: go on.
            asked.seen.renew()
            state = replace(state, after=last)
            parts, last, count, more = self._page(asked, state, headers_only)
        if not count and given is not None:
            state, (parts, last, count, more) = self._emptied(asked, given, headers_only, last, more)
        if not count:
            raise NoRecordsMatch("no records match; widen from, until or set")
        if given is not None or more:
            if given is None:
                state = replace(state, size=self._lists.size(asked, state))
            parts.append(self._ending(state, last, count, more, asked.now))
        return self._finished(asked, parts, count)

    def _started(self, asked: Inquiry) -> ResumptionToken:
        """A new list. Its end is frozen now: what changes from here on belongs to the next harvest."""
        request = asked.request
        errors = self._formats.unknown(request.get("metadataPrefix") or "", request.get("indexPrefix") or "")
        set_spec = request.get("set")
        if set_spec is not None and not self._lists.has_sets(asked):
            errors.append(NoSetHierarchy("there are no sets here; harvest without a set"))
        if errors:
            raise ExceptionGroup(request.verb, errors)
        since, until = (period(request.get(name) or "") for name in ("from", "until"))
        frozen = self._frozen(asked)
        return replace(
            self._fresh(asked, after=0, size=0),
            since=since.first if since else None,
            until=min(until.last, frozen) if until else frozen,
            open_ended=until is None,
        )

    def _frozen(self, asked: Inquiry) -> int:
        known = asked.view.datestamps()
        # After the clock was set back, datestamps may be ahead of it.
        return max(int(asked.now), known[1] if known else 0)

    def _page(
        self, asked: Inquiry, state: ResumptionToken, headers_only: bool
    ) -> tuple[list[bytes], int, int, bool]:
        """The bytes of the next records, the last one's place, how many there are, whether more follow."""
        serve = self._settings.serve
        limit = max(1, serve.identifiers_per_page if headers_only else serve.records_per_page)
        if headers_only:
            window = self._lists.window(state, asked)
            rows = list(islice(self._lists.headers(asked, window, limit + 1), limit + 1))
            page, more = rows[:limit], len(rows) > limit
            stopped = None if more or asked.seen is None else asked.seen.stopped_after
            if stopped is not None:
                return frames.headers(page), stopped, len(page), True
            return frames.headers(page), page[-1][0] if page else 0, len(page), more
        if (found := self._lists.as_stored(asked, state, limit, PAGE_BYTES)) is not None:
            return found
        parts, size, last = list[bytes](), 0, int(state.after)
        write = self._writer(asked, state.metadata_prefix, state.index_prefix)
        for stored in self._lists.records(asked, state, limit):
            if len(parts) == limit or size >= PAGE_BYTES:
                return parts, last, len(parts), True
            parts.append(write(stored))
            last, size = stored.seq, size + len(parts[-1])
        if asked.seen is not None and asked.seen.stopped_after is not None:
            return parts, asked.seen.stopped_after, len(parts), True
        return parts, last, len(parts), False

    def _writer(self, asked: Inquiry, prefix: str, index_prefix: str) -> Callable[[Stored], bytes]:
        return self._formats.writer(prefix, index_prefix, asked.seen, asked.provenance)

    def _emptied(
        self, asked: Inquiry, state: ResumptionToken, headers_only: bool, last: int, more: bool
    ) -> tuple[ResumptionToken, tuple[list[bytes], int, int, bool]]:
        """What to send when everything that a token promised has changed since and so left the list, or when
        the requester may not see what was looked at so far (`more`, from `last` on).

        An empty list is no valid answer, and an error would end a harvest that did nothing wrong. If the end
        was ours to choose, move it; otherwise repeat a record, which harms nobody, and end or go on.
        """
        if state.open_ended and not more:
            state = replace(state, until=self._frozen(asked))
            page = self._page(asked, state, headers_only)
            if page[2]:
                return state, page
        if asked.seen is not None:
            asked.seen.renew()
        rows = islice(self._lists.records(asked, replace(state, after=0), 1), 1)
        if headers_only:
            parts = [frames.header(r.identifier, r.datestamp, r.deleted, r.sets) for r in rows]
        else:
            parts = list(map(self._writer(asked, state.metadata_prefix, state.index_prefix), rows))
        return state, (parts, last if more else int(state.after), len(parts), more)

    # Tokens and frames

    def _resumed(self, asked: Inquiry) -> ResumptionToken | None:
        text = asked.request.get("resumptionToken")
        if text is None:
            return None
        return ResumptionToken.decode(
            text,
            self._key,
            verb=asked.request.verb,
            extended=asked.endpoint.extended,
            view=asked.permit.digest,
            now=asked.now,
        )

    def _fresh(self, asked: Inquiry, after: int | str, size: int) -> ResumptionToken:
        get = asked.request.get
        return ResumptionToken(
            verb=asked.request.verb,
            extended=asked.endpoint.extended,
            metadata_prefix=get("metadataPrefix") or "",
            index_prefix=get("indexPrefix") or "",
            set_spec=get("set") or "",
            since=None,
            until=None,
            open_ended=True,
            after=after,
            cursor=0,
            size=size,
            expires=0,
            view=asked.permit.digest,
        )

    def _ending(self, state: ResumptionToken, last: int | str, count: int, more: bool, now: float) -> bytes:
        """The resumptionToken element after a page."""
        size = max(state.size, state.cursor + count)
        if not more:
            return frames.resumption("", size=size, cursor=state.cursor)
        expires = int(now + self._settings.serve.token_hours * 3600)
        following = replace(state, after=last, cursor=state.cursor + count, expires=expires)
        return frames.resumption(following.encode(self._key), size=size, cursor=state.cursor, expires=expires)

    def _finished(self, asked: Inquiry, body: Iterable[bytes], records: int) -> OaiAnswer:
        request = asked.request
        prefix = "+".join(filter(None, (request.get("metadataPrefix"), request.get("indexPrefix"))))
        whole = ForeignBytes(asked.endpoint.answer(asked.now, request.arguments, request.verb, body))
        return OaiAnswer(whole, request.verb, prefix, records)

    def _steady(self, asked: Inquiry, body: Iterable[bytes]) -> OaiAnswer:
        return replace(self._finished(asked, body, 0), steady=True)
