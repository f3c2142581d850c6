"""Which records of sites a requester may see: the web server's own word on that requester's credentials.

What the crawl got as a stranger is for everybody. What the server refused it is *guarded*: those records have
an origin of their own, and the server is asked for each of them with the requester's credentials. Its word is
remembered for some seconds, for these credentials alone. Where nothing is guarded nothing is asked.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from indlet.errors import HierarchyError
from indlet.model import Stored
from indlet.provider.hierarchy import Entry
from indlet.provider.site.ask import HeadAnswer, WebServer
from indlet.provider.site.judge import REFUSED, Finding, judge
from indlet.provider.site.rules import AccessRules, rule_files
from indlet.provider.site.source import guarded_name, site_name
from indlet.provider.site.tree import STRANGER
from indlet.settings import Settings, Site
from indlet.store import Origin, View

REQUESTERS: Final = 256  # whose answers are remembered at once
# Requests that may ask a server for many records at a time; others wait their turn, and then for a while.
AT_ONCE: Final = 2
WAIT_SECONDS: Final = 20.0
_NOBODY: Final = 2**62


class Requester(NamedTuple):
    """What the web server is told of who asks."""

    headers: tuple[tuple[str, str], ...] = (("X-Forwarded-For", STRANGER),)

    @property
    def digest(self) -> str:
        """Of the credentials that were given; empty if none were. An address may change on the way."""
        given = [pair for pair in self.headers if pair[0] != "X-Forwarded-For"]
        return blake2b(repr(given).encode(), digest_size=6).hexdigest() if given else ""


ANYBODY: Final = Requester()


class GuardedRow(NamedTuple):
    """A record's place in lists, and in those of metadata alone."""

    seq: int
    metadata_seq: int
    identifier: str
    datestamp: int
    metadata_datestamp: int
    deleted: int
    sets: str


@dataclass(frozen=True)
class Seen:
    """What one requester sees of one state of the store."""

    public: list[int]  # origins that are open to everybody
    guarded: list[int]
    hidden: Mapping[int, GuardedRow] = field(default_factory=dict)  # by seq, in either kind of list
    visible: Sequence[GuardedRow] = ()  # the guarded records that are shown
    headers: Mapping[str, HeadAnswer] = field(default_factory=dict)  # of guarded records, by identifier
    doubtful: Callable[[Sequence[str]], set[str]] | None = None  # which of these are refused after all
    exact: bool = True  # whether it is known beforehand how many there are

    @property
    def origins(self) -> list[int]:
        return self.public + self.guarded

    def shown(self, rows: Sequence[tuple[int, str]]) -> list[bool]:
        """Whether each of the records (seq, identifier) is shown."""
        refused = self.doubtful([identifier for _, identifier in rows]) if self.doubtful else set()
        return [seq not in self.hidden and identifier not in refused for seq, identifier in rows]

    def hidden_in(
        self, since: int | None, until: int | None, set_spec: str | None, metadata_only: bool
    ) -> int:
        """How many hidden records a list of that window would hold."""
        first, last = -_NOBODY if since is None else since, _NOBODY if until is None else until
        return sum(
            first <= (row.metadata_datestamp if metadata_only else row.datestamp) <= last
            and (set_spec is None or _inside(row.sets, set_spec))
            for row in set(self.hidden.values())
        )

    def specs(self) -> set[str]:
        """The setSpecs of guarded records that are shown, and of all sets above them."""
        specs = {spec for row in self.visible for spec in row.sets.split()}
        return {
            ":".join(spec.split(":")[: depth + 1]) for spec in specs for depth in range(spec.count(":") + 1)
        }


def _row(view: View, stored: Stored) -> GuardedRow:
    metadata = view.get(stored.identifier, [stored.origin], metadata_only=True) or stored
    return GuardedRow(
        stored.seq,
        metadata.seq,
        stored.identifier,
        stored.datestamp,
        metadata.datestamp,
        stored.deleted,
        stored.sets,
    )


def _hide(hidden: dict[int, GuardedRow], row: GuardedRow) -> None:
    hidden[row.seq] = hidden[row.metadata_seq] = row


def _inside(sets: str, set_spec: str) -> bool:
    return any(spec == set_spec or spec.startswith(f"{set_spec}:") for spec in sets.split())


class _Asked(NamedTuple):
    at: float
    answer: HeadAnswer


class _Guarded(NamedTuple):
    """A guarded record, the file that it speaks of, and what the public origin holds under its identifier."""

    row: GuardedRow
    entry: Entry
    public: GuardedRow | None


class Visibility:
    """The sites of a node, and what their servers said to whom."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._sites = {site_name(site): site for site in settings.site}
        self._servers = {
            name: WebServer(site.url, site.server, site.connections) for name, site in self._sites.items()
        }
        self._clock = clock
        self._guard = threading.Lock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._said: OrderedDict[Requester, dict[str, _Asked]] = OrderedDict()
        self._met: dict[str, tuple[float, list[str]]] = {}  # by site: when it was crawled, files with rules
        self._rows: tuple[int, dict[str, list[_Guarded]]] = (-1, {})

    def seen(self, view: View, requester: Requester, public: list[int]) -> Seen:
        known = {origin.name: origin for origin in view.origins("hierarchy")}
        names = {name: known[guarded_name(name)].id for name in self._sites if guarded_name(name) in known}
        hidden: dict[int, GuardedRow] = {}
        visible: list[GuardedRow] = []
        headers: dict[str, HeadAnswer] = {}
        for name, found in self._guarded(view, names, known).items():
            answers = self._answers(name, [one.row.identifier for one in found], requester)
            gone = [one.row.identifier for one in found if one.row.deleted]
            strangers = dict(zip(gone, self._answers(name, gone, ANYBODY), strict=True))
            for one, answer in zip(found, answers, strict=True):
                row, twin = one.row, one.public
                if not _allowed(one, answer, strangers.get(row.identifier)):
                    _hide(hidden, row)
                    continue
                # Of a record that is both deleted and there (it became guarded, or ceased to be) only the
                # live one counts.
                if twin is not None and row.deleted:
                    _hide(hidden, row)
                    continue
                if twin is not None and twin.deleted:
                    _hide(hidden, twin)
                visible.append(row)
                headers[row.identifier] = answer
        rules = {name: self._rules(view, name) for name in self._sites if name in known}
        exact = not any(one.anywhere(self._rule_files(view, known[name])) for name, one in rules.items())
        doubt = self._doubt(requester, rules) if rules else None
        return Seen(public, list(names.values()), hidden, visible, headers, doubt, exact)

    def origins(self, view: View) -> set[int]:
        """The origins of all sites."""
        names = {name for site in self._sites for name in (site, guarded_name(site))}
        return {origin.id for origin in view.origins("hierarchy") if origin.name in names}

    def _guarded(
        self, view: View, names: Mapping[str, int], known: Mapping[str, Origin]
    ) -> dict[str, list[_Guarded]]:
        """All guarded records, by site: read once for each state of the store."""
        seq = view.last_seq()
        with self._guard:
            if self._rows[0] == seq:
                return self._rows[1]
        found: dict[str, list[_Guarded]] = {}
        for name, origin in names.items():
            here, after = found.setdefault(name, []), 0
            while rows := view.page(500, after=after, origins=[origin], parts=("properties",)):
                after = rows[-1].seq
                for stored in rows:
                    twin = view.get(stored.identifier, [known[name].id]) if name in known else None
                    about = stored.record.properties
                    size, modified = int(about.get("size", -1)), int(about.get("modified_ns", -1))
                    entry = Entry(str(about.get("path", "")), size, modified)
                    here.append(_Guarded(_row(view, stored), entry, _row(view, twin) if twin else None))
        with self._guard:
            self._rows = (seq, found)
        return found

    # Rules that may refuse what a stranger gets

    def _doubt(
        self, requester: Requester, rules: Mapping[str, AccessRules]
    ) -> Callable[[Sequence[str]], set[str]]:
        """What asks for records that were public at the last crawl, where that may not hold for everybody."""

        def refused(identifiers: Sequence[str]) -> set[str]:
            found: set[str] = set()
            for name, here in rules.items():
                site = self._sites[name]
                mine = [
                    one
                    for one in identifiers
                    if one.startswith(f"{site.url.rstrip('/')}/") and here.doubtful(local_path(site, one))
                ]
                answers = self._answers(name, mine, requester)
                found |= {one for one, answer in zip(mine, answers, strict=True) if answer.status in REFUSED}
            return found

        return refused

    def _rules(self, view: View, name: str) -> AccessRules:
        return AccessRules(self._sites[name], self._crawled(view, name))

    def _rule_files(self, view: View, origin: Origin) -> list[str]:
        """Read once for each crawl."""
        crawled = self._crawled(view, origin.name)
        with self._guard:
            when, files = self._met.get(origin.name, (-1.0, []))
            if when != crawled:
                files = rule_files(view, origin.id)
                self._met[origin.name] = (crawled, files)
            return files

    def _crawled(self, view: View, name: str) -> float:
        """When the last complete crawl of a site began."""
        origin = view.origin("hierarchy", name)
        runs = view.runs(origin.id, 20) if origin else []
        return max((run.started for run in runs if run.outcome in ("complete", "partial")), default=0.0)

    # Asking

    def _answers(self, name: str, identifiers: Sequence[str], requester: Requester) -> list[HeadAnswer]:
        """The server's word on each URL, remembered for some seconds."""
        if not identifiers:
            return []
        now = self._clock()
        oldest = now - self._sites[name].remember_seconds
        with self._guard:
            said = self._said.setdefault(requester, {})
            self._said.move_to_end(requester)
            while len(self._said) > REQUESTERS:
                self._said.popitem(last=False)
            known = {one: said[one] for one in identifiers if one in said and said[one].at > oldest}
        wanted = [one for one in identifiers if one not in known]
        paths = [urlsplit(one).path for one in wanted]
        answers = self._heads(name, paths, requester) if paths else []
        fresh = {one: _Asked(now, answer) for one, answer in zip(wanted, answers, strict=True)}
        with self._guard:
            said.update(fresh)
        return [(known.get(one) or fresh[one]).answer for one in identifiers]

    def _heads(self, name: str, paths: Sequence[str], requester: Requester) -> list[HeadAnswer]:
        """Whoever makes up new credentials for each request must not keep the server busy."""
        if not self._turns.acquire(timeout=WAIT_SECONDS):
            raise HierarchyError(f"{name}: too many requesters are being asked for; come back later")
        try:
            return self._servers[name].heads(paths, dict(requester.headers))
        finally:
            self._turns.release()


def _allowed(one: _Guarded, answer: HeadAnswer, stranger: HeadAnswer | None) -> bool:
    """Whether the server's word shows a guarded record to the one who asked.

    A deleted one cannot be had by anybody. It is shown to whom the server would not refuse it, as long as the
    rule stands that refuses it to strangers.
    """
    if one.row.deleted:
        return answer.status not in REFUSED and stranger is not None and stranger.status in REFUSED
    # Without the right to look, the crawl could not tell a file from what a handler makes of it.
    return answer.status == 200 and judge(one.entry, answer).kind is Finding.TAKEN


def local_path(site: Site, url: str) -> str:
    """The path below a site's root that a URL stands for."""
    return os.fsdecode(unquote_to_bytes(url.removeprefix(f"{site.url.rstrip('/')}/")))
