"""Which records of an endpoint a requester is shown, and since when: visibility is dated like content.

What the settings and the origins say now is compared with what they said when a list was answered last. The
difference becomes changes of grants (`indlet.store.contract.Grant`) before the next list is read: so a record
that appears in a view is in its incremental lists from then on, and one that leaves it is deleted there.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from indlet.errors import StoreError
from indlet.provider.serve.access import (
    Permit,
    access_networks,
    access_rules,
    is_open_unconfigured,
    rules_key,
)
from indlet.provider.serve.provenance import republished
from indlet.provider.serve.scope import Scope
from indlet.settings import HIERARCHY, SOURCE, Access, Settings
from indlet.store import ALL, Audience, Grant, GrantMode, GrantView, Origin, Store, Takes, Transaction, View

_log = logging.getLogger("indlet.serve")
Rules = dict[int, dict[str, str]]  # by origin: what it shows, by key
ANYBODY: Final = ""
_TOKEN, _NETWORK = "token:", "network:"


class Grants:
    def __init__(self, store: Store, settings: Settings, scope: Scope | None) -> None:
        """`scope`: of a virtual repository; None for the node itself."""
        self._store, self._scope = store, scope
        self._path = scope.path if scope is not None else ""
        self._secret = store.secret("identity")
        self._keys = {
            key: self._keys_of(access, f"{key[1]!r}") for key, access in access_rules(settings).items()
        }
        self._known: Rules | None = None  # as they were brought into the store last
        self._guard = threading.Lock()

    @contextmanager
    def snapshot(self, is_list: bool) -> Iterator[View]:
        """A snapshot of the store. Before a list is read, what has become visible since the last one, or
        ceased to be, gets its date."""
        with self._store.read() as view:
            rules = self._news(view) if is_list else None
            if rules is None:
                yield view
                return
        try:
            self._settle(rules)
        except StoreError as e:
            # A full disk, or a long write. Lists show what they may show; the change is dated at a later one.
            _log.warning("changes of visibility are not dated yet: %s", e)
        with self._store.read() as view:
            yield view

    def _news(self, view: View) -> Rules | None:
        """The rules, where these have changed since they were brought into the store, or records have that
        may have left a virtual repository; None where all is settled."""
        if not self._store.writable:
            return None
        rules = self._rules(view)
        if rules != self._known:
            known = _by_origin(view.all_grants(self._path))
            if any(list(_changes(keys, known.get(origin, {}))) for origin, keys in rules.items()):
                return rules
            self._known = rules
        if self._scope is not None and self._scope.by_sets:
            last = view.last_seq()
            if any(_by_sets(grant) and grant.followed < last for grant in view.grants(self._path)):
                return rules
        return None

    def _settle(self, rules: Rules) -> None:
        """Bring the rules, and the records that have changed, into the store."""
        with self._guard, self._store.write() as tx:
            known = _by_origin(tx.all_grants(self._path))
            for origin, keys in rules.items():
                self._settle_origin(tx, origin, keys, known.get(origin, {}))
            self._known = rules

    def shown(self, view: View, permit: Permit) -> tuple[list[int] | None, tuple[GrantView, ...]]:
        """The origins whose records a requester sees where they are, None for all; and what grants show."""
        origins, changed = permit.origins(view), view.grants(self._path)
        if not changed:
            return origins, ()
        plain = {o.id for o in view.origins()} if origins is None else set(origins)
        mine = defaultdict[int, list[Grant]](list)
        for grant in changed:
            if self._fits(grant.key, permit):
                mine[grant.origin].append(grant)
        found: list[GrantView] = []
        for origin, grants in mine.items():
            opened = [g for g in grants if g.shows]
            if origin not in plain:
                found += [_view(g, g.base, GrantMode.CLOSED) for g in grants if g.base >= 0 and not g.shows]
            elif opened and all(g.base >= 0 for g in opened):
                best = min(opened, key=lambda g: g.base)
                plain.remove(origin)
                found.append(_view(best, best.base, GrantMode.OPEN))
                others = [g for g in grants if g is not best and g.base >= 0]
                found += [_view(g, best.base, GrantMode.REPLACED) for g in others]
        return sorted(plain), tuple(found)

    def _rules(self, view: View) -> Rules:
        return {o.id: self._keys_now(o) for o in view.origins() if o.kind in (HIERARCHY, SOURCE)}

    def _keys_now(self, origin: Origin) -> dict[str, str]:
        scope, shows = self._scope, ALL
        if scope is not None:
            if not scope.shows(origin):
                return {}
            if scope.by_sets:
                shows = json.dumps(scope.chosen)
        if origin.audience is Audience.GUARDED or (origin.kind == SOURCE and not republished(origin)):
            return {}
        if (key := rules_key(origin, self._keys)) in self._keys:
            return dict.fromkeys(self._keys[key], shows)
        return {ANYBODY: shows} if is_open_unconfigured(origin) else {}

    def _settle_origin(
        self, tx: Transaction, origin: int, keys: dict[str, str], known: dict[str, Grant]
    ) -> None:
        for grant in known.values():
            if _by_sets(grant) and (takes := self._takes(grant.shows)) is not None:
                tx.follow_grant(grant, takes)
        for key, shows in _changes(keys, known):
            takes = self._takes(shows)
            if not known:
                # Nobody was told of this origin yet: what is shown of it has its own dates.
                tx.new_grant(self._path, origin, key, shows, takes)
            elif key in known:
                tx.change_grant(known[key], shows, takes)
            else:
                tx.open_grant(self._path, origin, key, shows, takes)

    def _takes(self, shows: str) -> Takes | None:
        return None if shows in ("", ALL) else Scope(self._path, tuple(json.loads(shows))).takes

    # Keys

    def _keys_of(self, access: Access, where: str) -> frozenset[str]:
        tokens = [self._token_key(token.encode()) for token in access.tokens]
        networks = [f"{_NETWORK}{network}" for network in access_networks(access, where)]
        return frozenset([*tokens, *networks] or [ANYBODY])

    def _token_key(self, token: bytes) -> str:
        """The store does not hold the token itself."""
        return _TOKEN + hmac.digest(self._secret, token, "sha256").hex()[:32]

    def _fits(self, key: str, permit: Permit) -> bool:
        if key.startswith(_TOKEN):
            return bool(permit.token) and hmac.compare_digest(key, self._token_key(permit.token))
        if key.startswith(_NETWORK):
            network = ipaddress.ip_network(key.removeprefix(_NETWORK))
            return permit.address is not None and permit.address in network
        return key == ANYBODY


def _by_origin(grants: Iterable[Grant]) -> dict[int, dict[str, Grant]]:
    found = defaultdict[int, dict[str, Grant]](dict)
    for grant in grants:
        found[grant.origin][grant.key] = grant
    return found


def _changes(keys: dict[str, str], known: dict[str, Grant]) -> Iterator[tuple[str, str]]:
    """(key, what it shows from now on) of an origin whose grants so far are `known`."""
    if not known:
        yield from ({ANYBODY: ""} | keys).items()
        return
    yield from ((key, shows) for key, shows in keys.items() if key not in known)
    for key, grant in known.items():
        # What is open to anybody is open to those, too, who were let in before.
        shows = keys.get(key, keys.get(ANYBODY, "") if grant.shows else "")
        if shows != grant.shows:
            yield key, shows


def _view(grant: Grant, base: int, mode: GrantMode) -> GrantView:
    return GrantView(grant.id, grant.origin, base, mode)


def _by_sets(grant: Grant) -> bool:
    return grant.shows not in ("", ALL)


def granted_origins(grants: Iterable[GrantView]) -> list[int]:
    """The origins of which grants show live records."""
    return [grant.origin for grant in grants if grant.mode is GrantMode.OPEN]
