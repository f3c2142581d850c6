"""Saved searches: who wants to hear by e-mail of new records, and when.

A search is kept once its address has been confirmed (double opt-in); until then it sends nothing and is
forgotten after two days. Links in mails are signed: one that we did not send confirms and ends nothing.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Final, NamedTuple

import orjson

from indlet.errors import IndletError
from indlet.model import Stored
from indlet.service.search.library import Library
from indlet.store import Store, TableReader, kept_tables

PERIODS: Final = {"daily": 86_400, "weekly": 7 * 86_400}
_MOST: Final = 5000  # searches in all
_OF_ADDRESS: Final = 20
_PER_HOUR: Final = 60  # new searches in all: each sends a mail to somebody who may not have asked
_PENDING: Final = 2 * 86_400  # seconds in which an address must be confirmed
_STEP, _STEPS = 1000, 20  # latest changes that are looked at together, and how often
_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,9}"
)


@dataclass(frozen=True, slots=True)
class SavedSearch:
    id: str
    email: str
    query: str
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    page: str = "/"  # the result page
    every: str = "weekly"
    language: str = "en"
    created: float = 0.0
    confirmed: bool = False
    sent: float = 0.0  # when its last digest was made
    seq: int = 0  # the last change of the store that it covers

    def has_lapsed(self, now: float) -> bool:
        """Whether nobody confirmed its address in time."""
        return not self.confirmed and self.created <= now - _PENDING


class SearchDigest(NamedTuple):
    """What a saved search has found since its last digest."""

    search: SavedSearch
    records: list[Stored]
    total: int


class SavedSearches:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._secret = store.secret("saved-search-links")

    def add(self, wanted: SavedSearch, now: float) -> SavedSearch | None:
        """Keeps a search that is to be confirmed; None if no mail may be sent for it: the address is none,
        or there are too many searches.
        """
        if not _ADDRESS.fullmatch(wanted.email) or wanted.every not in PERIODS:
            return None
        added = replace(wanted, id=secrets.token_hex(12), created=now, confirmed=False, sent=now)
        with self._store.write() as tx:
            stored = _read(tx)
            kept = [one for one in stored if not one.has_lapsed(now)]
            own = [one for one in kept if one.email.casefold() == wanted.email.casefold()]
            waiting = [one for one in own if not one.confirmed and one.created > now - 600]
            recent = [one for one in kept if one.created > now - 3600]
            if len(kept) >= _MOST or len(own) >= _OF_ADDRESS or len(recent) >= _PER_HOUR or waiting:
                return None
            for one in stored:
                if one.has_lapsed(now):
                    tx.remove(kept_tables.SAVED_SEARCHES, id=one.id)
            tx.upsert(kept_tables.SAVED_SEARCHES, [_row(added)])
        return added

    def token(self, search: SavedSearch) -> str:
        return f"{search.id}.{self._sign(search.id)}"

    def find(self, token: str) -> SavedSearch | None:
        """The search that a token was made for."""
        id, _, signature = token.partition(".")
        if not hmac.compare_digest(signature, self._sign(id)):
            return None
        with self._store.read() as view:
            return next((one for one in _read(view) if one.id == id), None)

    def confirm(self, token: str, now: float) -> SavedSearch | None:
        """From now on it sends what is new."""
        with self._store.read() as view:
            seq = view.last_seq()
        return self._change(token, lambda one: replace(one, confirmed=True, sent=now, seq=seq))

    def stop(self, token: str) -> SavedSearch | None:
        return self._change(token, lambda one: None)

    def _change(self, token: str, changed: Callable[[SavedSearch], SavedSearch | None]) -> SavedSearch | None:
        found = self.find(token)
        if found is None:
            return None
        with self._store.write() as tx:
            for one in _read(tx):
                if one.id == found.id:
                    after = changed(one)
                    if after is None:
                        tx.remove(kept_tables.SAVED_SEARCHES, id=one.id)
                    else:
                        tx.upsert(kept_tables.SAVED_SEARCHES, [_row(after)])
        return found

    def due(self, library: Library, now: float, most: int) -> Iterator[SearchDigest]:
        """Digests of the searches whose time has come and that have found something. A search counts as
        served before its digest is given out: none is sent twice.
        """
        with self._store.read() as view:
            searches = [one for one in _read(view) if one.confirmed]
            seq = view.last_seq()
        for search in searches:
            if now < search.sent + PERIODS.get(search.every, PERIODS["weekly"]):
                continue
            records, total = _news(library, search, most)
            token = self.token(search)
            self._change(token, lambda one: replace(one, sent=now, seq=seq))
            if records:
                yield SearchDigest(search, records, total)

    def _sign(self, id: str) -> str:
        return blake2b(id.encode(), key=self._secret[:64], digest_size=12).hexdigest()


def _news(library: Library, search: SavedSearch, most: int) -> tuple[list[Stored], int]:
    """The records that changed since a search's last digest and match it, newest first, and how many."""
    found: list[int] = []
    hidden, before = set(library.hidden()), None
    with library.store.read() as view:
        origins = [origin.id for origin in view.origins() if origin.id not in hidden]
        for _ in range(_STEPS):
            part = [(id, seq) for id, seq in view.latest_ids(_STEP, before=before, origins=origins)]
            new = [id for id, seq in part if seq > search.seq]
            try:
                matching = _matching(library, search, new)
            except IndletError:
                return [], 0  # the query is no longer one
            found += [id for id in new if id in matching]
            if len(new) < _STEP:
                break
            before = part[-1][1]
        records = view.by_id(found[:most])
    return [records[id] for id in found[:most] if id in records], len(found)


def _matching(library: Library, search: SavedSearch, ids: Sequence[int]) -> set[int]:
    if not ids:
        return set()
    return library.matching(search.query or "*", ids, search.filters, require_all=True)


def _read(tables: TableReader) -> list[SavedSearch]:
    return [
        SavedSearch(
            **one._asdict() | {"filters": orjson.loads(one.filters), "confirmed": bool(one.confirmed)}
        )
        for one in tables.select(kept_tables.SAVED_SEARCHES)
    ]


def _row(search: SavedSearch) -> kept_tables.StoredSearch:
    filters = orjson.dumps(search.filters).decode()
    return kept_tables.StoredSearch(
        **asdict(search) | {"filters": filters, "confirmed": int(search.confirmed)}
    )
