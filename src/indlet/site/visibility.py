"""Which records of sites a requester may see: the web server's own answer for that requester's credentials.

What the crawl got as a stranger is public. What the server refused to it is *guarded*: these records have an
origin of their own, and the server is asked for each one that a response would list, with the requester's
credentials and, where these are let in, as a stranger. A guarded record is shown only if the credentials make
the difference: a server that does not believe the address that it is told answers both alike. Answers are
kept for some seconds, for these credentials only. A stranger is never asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from indlet.errors import HierarchyError
from indlet.model import Stored
from indlet.oai.names import SCHEMA_PATH
from indlet.provider.hierarchy import Entry
from indlet.provider.serve.record_filter import ANYBODY, NamedRecord, Requester
from indlet.provider.source import guarded_name
from indlet.settings import Settings
from indlet.site.ask import HeadAnswer, WebServer, outward_address
from indlet.site.disseminate import SiteFormats, with_media_type
from indlet.site.judge import BUSY, REFUSED, Finding, judge
from indlet.site.rules import AccessRules
from indlet.site.source import local_path, site_name
from indlet.site.tree import BELIEVED
from indlet.store import Origin, View

REQUESTERS: Final = 256  # whose answers are kept
_ANSWERS: Final = 20_000  # of one requester; more are dropped
# Requests that may ask a server at the same time: of one client, and of all.
PER_CLIENT: Final = 1
AT_ONCE: Final = 4
WAIT_SECONDS: Final = 20.0
# Guarded records that one response asks for before it ends with what it has.
MOST_ASKED: Final = 2000
_SAMPLED: Final = 1000  # records that a page of ListSets asks for


_LetIn = tuple[Stored, HeadAnswer]  # a guarded record, and the answer that gives it to the requester


class VisibleFiles:
    """What one requester sees in one snapshot of the store. The server is asked when records are listed."""

    def __init__(
        self,
        visibility: SiteFilter,
        view: View,
        requester: Requester,
        public: list[int],
        sites: Mapping[str, tuple[int | None, int | None]],
    ) -> None:
        """`public`: origins that everybody may see. `sites`: the public and guarded origin of each."""
        self._visibility, self._view, self._requester = visibility, view, requester
        self.public, self._sites = public, sites
        self._names = {guarded: name for name, (_, guarded) in sites.items() if guarded is not None}
        self.guarded = [] if requester.is_stranger else list(self._names)
        self.headers: dict[str, HeadAnswer] = {}  # of guarded records that were shown, by identifier
        self._asked = 0
        self.stopped_after: int | None = None  # the place in the list where asking ended early

    @property
    def origins(self) -> list[int]:
        return self.public + self.guarded

    @property
    def exhausted(self) -> bool:
        """Whether this response has asked for as many guarded records as it may."""
        return self._asked >= MOST_ASKED

    def renew(self) -> None:
        """Allow the response to ask for more: it has nothing to show yet."""
        self._asked, self.stopped_after = 0, None

    def shows(self, records: Sequence[NamedRecord]) -> list[bool]:
        """Whether each of the records is shown."""
        gone = [one.identifier for one in records if one.deleted and not one.guarded]
        twins = self._guarded_now(gone)
        asked = {one.identifier for one in records if one.guarded} | twins
        allowed = self._allowed(sorted(asked)) if asked else {}
        refused = self._refused([one for one in records if not one.guarded])
        found = []
        for one in records:
            guarded = allowed.get(one.identifier)
            if one.guarded:
                found.append(guarded is not None and not self._is_superseded(guarded))
            else:
                # A record that became guarded is deleted in public; who may see it sees the live one only.
                replaced = one.deleted and guarded is not None and not guarded.deleted
                found.append(not replaced and one.identifier not in refused)
        return found

    def guarded_places(self, limit: int, **window: object) -> set[int]:
        """The places in a list that hold guarded records, as far as its next `limit` records go."""
        if not self.guarded:
            return set()
        rows = self._view.headers(limit, **{**window, "origins": self.guarded, "grants": ()})  # type: ignore[arg-type]
        return {row[0] for row in rows}

    def sets(self, after: str = "") -> Iterator[tuple[str, str]]:
        """(setSpec, name) of the sets that the requester may know of, in order, from behind a setSpec.

        A set of guarded records only is listed if one of a few of its records is shown.
        """
        public = dict(self._view.sets(self.public))
        known = public if not self.guarded else {**dict(self._view.sets(self.guarded)), **public}
        wanted = sorted(spec for spec in known if spec > after)
        for start in range(0, len(wanted), _SAMPLED):
            part = wanted[start : start + _SAMPLED]
            hidden = self._hidden_sets([spec for spec in part if spec not in public])
            yield from ((spec, known[spec]) for spec in part if spec not in hidden)

    def _hidden_sets(self, specs: Sequence[str]) -> set[str]:
        each = max(1, _SAMPLED // max(1, len(specs)))
        samples = {
            spec: [
                NamedRecord(row[1], bool(row[3]), guarded=True)
                for row in self._view.headers(each, set_spec=spec, origins=self.guarded)
            ]
            for spec in specs
        }
        rows = list(dict.fromkeys(one for sample in samples.values() for one in sample))
        shown = {one for one, visible in zip(rows, self.shows(rows), strict=True) if visible}
        return {spec for spec, sample in samples.items() if shown.isdisjoint(sample)}

    @property
    def is_exact(self) -> bool:
        """Whether the number of public records is the same for everybody."""
        return not any(self._rules(name).anywhere() for name in self._sites)

    def as_shown(self, stored: Stored) -> Stored:
        """A guarded record with the media type that the server states to the requester."""
        answer = self.headers.get(stored.identifier)
        return stored if answer is None else with_media_type(stored, answer)

    def write(self, prefix: str, stored: Stored) -> list[bytes]:
        return self._visibility.written.write(prefix, stored, self.headers)

    def _guarded_now(self, identifiers: Sequence[str]) -> set[str]:
        """Those of the identifiers that have a live guarded record."""
        found: set[str] = set()
        if identifiers:
            for origin in self.guarded:
                found |= self._view.live(origin, identifiers)
        return found

    def _is_superseded(self, guarded: Stored) -> bool:
        """Whether the public record of the identifier counts instead of the guarded one."""
        public = self._sites[self._names[guarded.origin]][0]
        twin = self._view.get(guarded.identifier, [public]) if public is not None else None
        return twin is not None and (bool(guarded.deleted) or not twin.deleted)

    def _allowed(self, identifiers: Sequence[str]) -> dict[str, Stored]:
        """The guarded records of these identifiers that the server gives to the requester but not to all."""
        by_site: dict[str, list[Stored]] = {}
        for identifier in identifiers:
            stored = self._view.get(identifier, self.guarded) if self.guarded else None
            if stored is not None:
                by_site.setdefault(self._names[stored.origin], []).append(stored)
        found: dict[str, Stored] = {}
        for name, records in by_site.items():
            answers = self._ask(name, [one.identifier for one in records], self._requester)
            let_in = [(one, a) for one, a in zip(records, answers, strict=True) if _lets_in(one, a)]
            sure, open_questions = self._compare_from_outside(name, let_in)
            strangers = self._ask(name, [one.identifier for one, _ in open_questions], ANYBODY)
            for (one, answer), stranger in zip(open_questions, strangers, strict=True):
                if stranger.status in REFUSED or (not one.deleted and stranger.status != 200):
                    sure.append((one, answer))
            for one, answer in sure:
                found[one.identifier] = one
                self.headers[one.identifier] = answer
        return found

    def _compare_from_outside(self, name: str, let_in: list[_LetIn]) -> tuple[list[_LetIn], list[_LetIn]]:
        """The records that are certainly for the requester, and those for which a stranger has yet to be
        refused. The rest is given only because this machine asks.

        Unless the server is known to believe the requester's address, it must answer a connection from
        outside alike, or give the file to this address and not to a stranger's with the same credentials.
        What it gives over both connections, and no address rule covers, it refused to the crawl over one.
        """
        if not self._visibility.from_outside(self._view, name):
            return [], let_in
        site, rules = self._visibility.sites[name], self._rules(name)
        outside = self._ask(name, [one.identifier for one, _ in let_in], self._requester, outside=True)
        sure: list[_LetIn] = []
        by_address: list[_LetIn] = []
        unlike: list[_LetIn] = []
        for one, answer in zip(let_in, outside, strict=True):
            if not _lets_in(one[0], answer):
                unlike.append(one)
            elif rules.has_address_rules(local_path(site, one[0].identifier)):
                by_address.append(one)
            else:
                sure.append(one)
        elsewhere = self._ask(name, [one.identifier for one, _ in unlike], self._requester.elsewhere())
        by_address += [
            one for one, answer in zip(unlike, elsewhere, strict=True) if not _lets_in(one[0], answer)
        ]
        return sure, by_address

    def _refused(self, records: Sequence[NamedRecord]) -> set[str]:
        """The public records among these that the server does not give to the requester."""
        found: set[str] = set()
        for name, (public, _) in self._sites.items():
            site, rules = self._visibility.sites[name], self._rules(name)
            base = f"{site.url.rstrip('/')}/"
            mine = [one for one in records if one.identifier.startswith(base)]
            if not mine:
                continue
            waiting = self._withheld(public, [one.identifier for one in mine])
            mine = [
                one for one in mine
                if one.identifier in waiting or rules.doubtful(local_path(site, one.identifier))
            ]  # fmt: skip
            answers = self._ask(name, [one.identifier for one in mine], self._requester)
            for one, answer in zip(mine, answers, strict=True):
                # A file that is gone, or whose deletion waits, is named to whoever is not refused it.
                gone = one.deleted or one.identifier in waiting
                if answer.status in REFUSED or (not gone and answer.status != 200):
                    found.add(one.identifier)
        return found

    def _withheld(self, origin: int | None, identifiers: Sequence[str]) -> set[str]:
        """Those whose deletion waits for an operator: the server may have refused them to the crawl."""
        if origin is None or origin not in self._view.withheld_counts():
            return set()
        return {row.identifier for row in self._view.withheld(origin, identifiers)}

    def _rules(self, name: str) -> AccessRules:
        return self._visibility.rules(self._view, name)

    def _ask(
        self, name: str, identifiers: Sequence[str], requester: Requester, *, outside: bool = False
    ) -> list[HeadAnswer]:
        self._asked += len(identifiers)
        asking = requester._replace(client=self._requester.client)
        return self._visibility.answers(name, identifiers, asking, outside=outside)


class _Kept(NamedTuple):
    at: float
    answer: HeadAnswer


class SiteFilter:
    """The sites of a node, and what their servers answered to whom."""

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now`: by which responses are dated. `clock`: by which answers are kept."""
        self.written = SiteFormats(settings, settings.base_url() + SCHEMA_PATH, now)
        self.formats = self.written.prefixes
        self.credentials = frozenset(name.lower() for site in settings.site for name in site.credentials)
        self.sites = {site_name(site): site for site in settings.site}
        self._servers = {
            name: WebServer(site.url, site.server, site.connections) for name, site in self.sites.items()
        }
        self._outside = {
            name: WebServer(site.url, site.server, site.connections, source=source)
            for name, site in self.sites.items()
            if (source := outward_address(site.server or site.url))
        }
        self._clock = clock
        self._guard = threading.Lock()
        self._slots = AskingSlots()
        self._kept: OrderedDict[tuple[object, ...], dict[str, _Kept]] = OrderedDict()

    def has_formats(self, stored: Stored) -> bool:
        return b'"headers":' in stored.properties

    def visible(
        self, view: View, requester: Requester, public: list[int], includes: Callable[[Origin], bool]
    ) -> VisibleFiles:
        """What a requester sees. `includes`: whether the repository that is asked includes an origin."""
        known = {origin.name: origin for origin in view.origins("hierarchy")}
        sites = {}
        for name in self.sites:
            one, guarded = known.get(name), known.get(guarded_name(name))
            if one is not None and includes(one):
                sites[name] = one.id, guarded.id if guarded is not None else None
        return VisibleFiles(self, view, requester, public, sites)

    def origins(self, view: View) -> set[int]:
        """The origins of all sites."""
        names = {name for site in self.sites for name in (site, guarded_name(site))}
        return {origin.id for origin in view.origins("hierarchy") if origin.name in names}

    def rules(self, view: View, name: str) -> AccessRules:
        """The rules of a site now, beside those that its last crawl met."""
        origin = view.origin("hierarchy", name)
        met = origin.state.get("rules") if origin is not None else None
        return AccessRules(self.sites[name], met or {})

    def from_outside(self, view: View, name: str) -> bool:
        """Whether the server of a site is also to be asked from outside: it can be, and its last crawl did
        not show that it believes the address that it is told."""
        origin = view.origin("hierarchy", name)
        return name in self._outside and not (origin is not None and origin.state.get(BELIEVED))

    def answers(
        self, name: str, identifiers: Sequence[str], requester: Requester, *, outside: bool = False
    ) -> list[HeadAnswer]:
        """The server's answer for each URL, kept for some seconds. `outside`: to a connection that does not
        come from this machine, as far as the server knows."""
        if not identifiers:
            return []
        now = self._clock()
        oldest = now - self.sites[name].remember_seconds
        with self._guard:
            whose = (outside, *requester.headers)
            kept = self._kept.setdefault(whose, {})
            self._kept.move_to_end(whose)
            while len(self._kept) > REQUESTERS:
                self._kept.popitem(last=False)
            if len(kept) > _ANSWERS:
                kept.clear()
            known = {one: kept[one] for one in identifiers if one in kept and kept[one].at > oldest}
        wanted = [one for one in dict.fromkeys(identifiers) if one not in known]
        fresh: dict[str, _Kept] = {}
        if wanted:
            server = self._outside[name] if outside else self._servers[name]
            with self._slots.take(requester.client):
                answers = server.heads([urlsplit(one).path for one in wanted], dict(requester.headers))
            if any(answer.status in BUSY for answer in answers):
                raise HierarchyError(f"{name}: the web server is overloaded or limits requests; retry later")
            fresh = {one: _Kept(now, answer) for one, answer in zip(wanted, answers, strict=True)}
        with self._guard:
            kept.update(fresh)
        return [(known.get(one) or fresh[one]).answer for one in identifiers]


class AskingSlots:
    """Turns to ask a web server: a few for each client, so that nobody can take all of them."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._changed = threading.Condition()
        self._busy: Counter[str] = Counter()

    @contextlib.contextmanager
    def take(self, client: str) -> Iterator[None]:
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(client), self._wait_seconds):
                raise HierarchyError("too many requests ask the web server at the same time; retry later")
            self._busy[client] += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy[client] -= 1
                self._busy += Counter()  # drops clients without a slot
                self._changed.notify_all()

    def _is_free(self, client: str) -> bool:
        return (not client or self._busy[client] < PER_CLIENT) and self._busy.total() < AT_ONCE


def _lets_in(stored: Stored, answer: HeadAnswer) -> bool:
    """Whether an answer gives a guarded file to the one who asked; of a deleted one, does not refuse it.

    The crawl could not fetch the file: only equal size and time tell it from what a handler makes of it.
    """
    if stored.deleted:
        return answer.status not in REFUSED
    about = stored.record.properties
    entry = Entry(str(about.get("path", "")), int(about.get("size", -1)), int(about.get("modified_ns", -1)))
    return judge(entry, answer).kind is Finding.TAKEN
