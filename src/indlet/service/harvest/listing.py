"""What one list has brought so far: whether it repeats itself, how far its datestamps can be relied on."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence, Set
from hashlib import blake2b
from itertools import chain

from indlet import _core
from indlet import datestamps as dates
from indlet.model import Stored
from indlet.oai.read import Item, Page
from indlet.service.harvest.loop_detector import LoopDetector
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run_state import CheckState, Listed, RunState
from indlet.store import Store


class ListedPages:
    """The pages of a list, one after another; what is wrong with them is counted in the progress."""

    def __init__(self, seconds: bool, progress: Progress) -> None:
        self._seconds = seconds
        self._progress = progress
        self._seen: set[bytes] = set()
        self._loop = LoopDetector()
        # What came, page by page: hashes of identifiers, and of identifiers with datestamps and status.
        self._named: list[array[int]] = []
        self._versions: list[array[int]] = []
        self._nameless = 0
        self.moved = False  # something came again that had come before the run was interrupted
        self.identifiers: list[tuple[str, str, bool]] = []  # with datestamp and "deleted", in a check

    def add_page(self, page: Page, state: RunState) -> tuple[Listed, bool]:
        """What matters of a page for the next decision, and whether the list had that very page before.

        Of a check's page the identifiers are kept.
        """
        self._count(page)
        versions = [f"{i.identifier} {i.datestamp}{' deleted' * i.deleted}" for i in page.items]
        seen = self._seen_before(page, versions)
        circle = self._loop.add(i.identifier for i in page.items)
        if isinstance(state, CheckState):
            self.identifiers += [(i.identifier, i.datestamp, i.deleted) for i in page.items]
        elif seen:
            self._progress.repairs["pages that came twice"] += bool(page.items)
        if not (seen or circle):
            self._named.append(array("q", [hash(i.identifier) for i in page.items]))
            self._versions.append(array("q", map(hash, versions)))
        self._nameless += sum(not p.where for p in page.problems)
        repeats, doubt = (0, "") if page.token else self._at_the_end()
        stamps = [i.datestamp for i in page.items]
        sound = self._sound(stamps, page.response_date)
        dated = state.overview.first_response or dates.parse(page.response_date)
        listed = Listed(
            len(page.items) + len(page.problems),
            page.token,
            page.size,
            seen or circle,
            page.response_date if dated else "",
            min(stamps, default="") if sound else "",
            max(stamps, default="") if sound else "",
            sound and stamps == sorted(stamps),
            stamps.count(max(stamps)) if stamps else 0,
            repeats=repeats,
            doubt=doubt,
        )
        return listed, seen

    def _count(self, page: Page) -> None:
        progress = self._progress
        progress.pages += 1
        progress.trouble = ""
        progress.repairs += page.repairs
        if page.size is not None:
            progress.size = page.size

    def _seen_before(self, page: Page, versions: Sequence[str]) -> bool:
        """Whether the list had a page with the same records before."""
        digest = blake2b(digest_size=8)
        digest.update("\n".join(versions).encode())
        digest.update("\n".join(p.where for p in page.problems).encode())
        seen = digest.digest() in self._seen
        self._seen.add(digest.digest())
        return seen

    def _at_the_end(self) -> tuple[int, str]:
        """How many records came more than once, and what makes the list doubtful."""
        distinct = _distinct(self._named)
        repeats = sum(map(len, self._named)) - distinct
        if self.moved or (repeats and _distinct(self._versions) > distinct):
            return repeats, "lists that changed under way"
        return repeats, "lists with records that do not tell their names" if self._nameless else ""

    def _sound(self, stamps: Sequence[str], response_date: str) -> bool:
        """Whether the datestamps can be relied on for resuming; what is wrong with them is counted."""
        length = 20 if self._seconds else 10
        repairs = self._progress.repairs
        malformed = bad = future = 0
        limit = dates.next_day(response_date) if dates.parse(response_date) else dates.END
        for stamp in set(stamps):
            if not dates.well_formed(stamp):
                malformed += 1
            elif len(stamp) != length:
                repairs["datestamps of another granularity"] += 1
                bad += 1
            elif stamp > limit:
                future += 1
        if future:
            repairs["datestamps in the future"] += future
        if malformed:
            repairs["malformed datestamps"] += malformed
        return not (malformed or bad or future)

    def middle(self, days: bool) -> tuple[str, bool]:
        """A datestamp in the midst of a check's list, in days if those are what can be asked for, and whether
        all have that one; empty if any is not to be relied on."""
        return middle_of([stamp for _, stamp, _ in self.identifiers], days)

    def compare(self, items: Sequence[Item], store: Store, origin: int) -> None:
        """Notice what an interrupted run has in another version: the list may have changed under way, and
        what came before the interruption is not remembered here."""
        with store.read() as view:
            self.moved = self.moved or any(
                (held := view.get(item.identifier, [origin])) is not None
                and not _same(held, item.datestamp, item.deleted)
                for item in items
            )

    def lacks(self, identifiers: Sequence[str]) -> bool:
        """Whether any of these was not on the pages of the list."""
        named = set(chain.from_iterable(self._named))
        return any(hash(identifier) not in named for identifier in identifiers)

    def missing(self, store: Store, origin: int, failed: Set[str]) -> list[str]:
        """The identifiers of a check's list that are neither held as listed nor among those that failed.

        One that is listed as deleted and not deleted, at one time, must be asked for."""
        listed: dict[str, tuple[str, bool]] = {}
        unclear = set[str]()
        for identifier, stamp, deleted in self.identifiers:
            if listed.get(identifier) == (stamp, not deleted):
                unclear.add(identifier)
            if identifier not in listed or stamp >= listed[identifier][0]:
                listed[identifier] = stamp, deleted
        found = list[str]()
        with store.read() as view:
            for identifier, (stamp, deleted) in listed.items():
                held = view.get(identifier, [origin])
                if (
                    held is None
                    and (copy := view.get(identifier)) is not None
                    and b'"version":' in copy.properties
                ):
                    continue  # it came from its origin, or by way of another node
                if held is None or identifier in unclear or not _same(held, stamp, deleted):
                    found.append(identifier)
        return [i for i in found if i not in failed]


def middle_of(datestamps: Sequence[str], days: bool) -> tuple[str, bool]:
    """See `ListedPages.middle`."""
    stamps = sorted(dates.day(stamp) if days else stamp for stamp in datestamps)
    if not stamps or len({len(s) for s in stamps}) > 1 or not all(map(dates.well_formed, stamps)):
        return "", False
    found = stamps[len(stamps) // 2]
    if found == stamps[0] and found != stamps[-1]:
        found = stamps[bisect_right(stamps, found)]
    return found, stamps[0] == stamps[-1]


def _same(held: Stored, stamp: str, deleted: bool) -> bool:
    """Whether what is held is the version with that datestamp."""
    if bool(held.deleted) != deleted:
        return False
    return deleted or not stamp or held.record.properties.get("source_datestamp") == stamp


def _distinct(pages: Sequence[array[int]]) -> int:
    """How many different values there are."""
    return _core.count_distinct([page.tobytes() for page in pages])
