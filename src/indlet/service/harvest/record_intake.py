"""Records, as they come on pages or one by one: kept, or failures with their reason and raw bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from indlet.errors import BadResponse
from indlet.formats.metadata import oai_dc
from indlet.model import Failure, Packed, Record
from indlet.net.client import NoAnswer
from indlet.oai.provenance import BY_ORIGIN, distance, is_translation
from indlet.oai.read import Item, Page
from indlet.service.harvest import owed
from indlet.service.harvest.cache import Cache
from indlet.service.harvest.commit import Committer
from indlet.service.harvest.fetch_page import Interrupted, PageFetcher
from indlet.service.harvest.negotiate import Agreement
from indlet.service.harvest.run_state import PASSING
from indlet.service.records.normalise import Normaliser

RAW_BYTES: Final = 1 << 20
# Broken records of a list that are asked for once more, alone and in vain, in one run.
SECOND_LOOKS: Final = 100
# Single records in a row that the source could not give: then it is the source, and not the record.
IN_A_ROW: Final = 3
REFUSED_IN_A_ROW: Final = 20
# The stage of records that are listed, and that GetRecord denies: only a full list tells that they are gone.
LISTED: Final = "listed"
# Said where no record has an index part, though one was asked for.
BARE: Final = "records without the index that is offered"


# Said where Dublin Core is taken of a node that keeps MARC, say.
RICHER: Final = "records that their source keeps in a richer format than oai_dc (setting metadata)"


class UnusableRecord(BadResponse):
    """A record that came alone, and cannot be read."""

    def __init__(self, reason: str, raw: bytes) -> None:
        super().__init__(reason)
        self.raw = raw


class RecordIntake:
    """Takes records as they come, has them normalised, and hands them to the committer."""

    def __init__(
        self,
        fetcher: PageFetcher,
        agreement: Agreement,
        normaliser: Normaliser,
        committer: Committer,
        halt: threading.Event,
        cache: Cache | None = None,
        republish: bool = False,
    ) -> None:
        self._cache, self._republish = cache, republish
        self._response_date = ""  # of the last page
        self._fetcher = fetcher
        self._agreement = agreement
        self._normaliser = normaliser
        self._committer = committer
        self._repairs = committer.progress.repairs
        self._halt = halt
        self._second_looks = 0
        self._indexed = False  # an index part has come

    def page(self, page: Page) -> None:
        """Take every record of a page."""
        self._response_date = page.response_date or self._response_date
        self.records(page.items)
        for problem in page.problems:
            self._problem(problem.where, problem.reason, problem.raw)

    def records(self, items: Sequence[Item]) -> None:
        if self._agreement.index_prefix and not self._indexed:
            self._look_for_index(items)
        for item, made in zip(items, self._normaliser.records(items), strict=True):
            if isinstance(made, BadResponse):
                self._problem(item.identifier, str(made), item.raw)
            else:
                self._add(item, made)

    def _add(self, item: Item, record: Record | Packed) -> None:
        """A record of this source alone, or a copy of one that goes round among nodes."""
        if (
            item.about
            and self._agreement.metadata_prefix == oai_dc.PREFIX
            and distance(item.about) == BY_ORIGIN
        ):
            self._repairs[RICHER] += 1
        passed_on = self._republish or any(not is_translation(one) for one in item.about)
        if self._cache is not None and passed_on and self._cache.has_left_set(item):
            # For other nodes that is no word of the origin: the record goes here alone.
            if self._cache.is_own(item):
                self._committer.add(record)
        elif self._cache is not None and passed_on:
            if isinstance(record, Packed):
                record = self._normaliser.record(item)
            self._committer.add_copy(self._cache.copy(item, record, self._response_date))
        else:
            self._committer.add(record)

    def deleted(self, identifiers: Sequence[str], when: str) -> None:
        """Records that the source no longer lists, deleted as of then."""
        for identifier in identifiers:
            gone = Item(identifier, when, deleted=True)
            self._add(gone, self._normaliser.record(gone))

    def _look_for_index(self, items: Sequence[Item]) -> None:
        """Records may well come without an index part; that all do, though the source offers one, is told."""
        bare = 0
        for item in items:
            if item.index_part is not None or item.vector is not None:
                self._indexed = True
                del self._repairs[BARE]
                return
            bare += not item.deleted
        if bare:
            self._repairs[BARE] += bare

    def _problem(self, where: str, reason: str, raw: bytes) -> None:
        """A record of a list that cannot be used: asked for alone, and if that is no better, a failure."""
        if where and self._second_looks < SECOND_LOOKS:
            try:
                found = self.one(where)
            except UnusableRecord:
                found = None
            except NoAnswer as e:
                found = None
                if e.failed.trouble in PASSING:
                    self._second_looks += SECOND_LOOKS // IN_A_ROW  # it may be the source, not the record
            if found is not None:
                try:
                    record = self._normaliser.record(found)
                except BadResponse:
                    pass
                else:
                    self._repairs["records fetched alone"] += 1
                    self._add(found, record)
                    return
            self._second_looks += 1
        nameless = f"a record of {self._agreement.url} ({blake2b(raw, digest_size=4).hexdigest()})"
        self._committer.fail(
            Failure(where or nameless, "harvest", reason, raw[:RAW_BYTES]), retry=bool(where)
        )

    def one(self, identifier: str) -> Item | None:
        """The record of that identifier, asked for alone; None if another comes.

        NoAnswer if none comes, UnusableRecord if it cannot be read.
        """
        if self._halt.is_set():
            raise Interrupted
        arguments = {"verb": "GetRecord", "identifier": identifier, **self._agreement.selection("")}
        page = self._fetcher.page_retried(self._agreement.url, arguments, attempts=2)
        self._repairs.update(page.repairs)
        found = next((i for i in page.items if i.identifier == identifier), None)
        if found is None and not page.items and page.problems:
            raise UnusableRecord(page.problems[0].reason, page.problems[0].raw)
        return found

    def owed(self, identifiers: Sequence[str], taken: Callable[[], None]) -> None:
        """Ask again for records that failed in earlier runs; `taken` is called after each.

        Those that are not reached keep their turn: they are the longest due in the next run.
        """
        in_vain = in_a_row = 0
        for identifier in identifiers:
            known = self._committer.failures.get(identifier)
            if known is None or identifier in self._committer.failed_now:
                continue  # it has come by a list, or has failed again in this run
            problem, trouble = self._retry(identifier, known.stage == LISTED)
            taken()
            in_a_row = in_a_row + 1 if problem else 0
            in_vain += bool(problem)
            unanswered = trouble in ("unreachable", "silent", "later")
            if unanswered or in_vain >= owed.IN_VAIN or in_a_row >= owed.IN_A_ROW:
                return

    def _retry(self, identifier: str, listed: bool) -> tuple[str, str]:
        """Ask for one record. Why it is still owed, and the trouble of the source if that is why."""
        item = None
        try:
            item = self.one(identifier)
            if item is None:
                raise BadResponse("GetRecord answers with another record")
            record = self._normaliser.record(item)
        except NoAnswer as e:
            if "idDoesNotExist" in str(e) and not listed:
                self._committer.gone(identifier)
                self._repairs["owed records that the source no longer has"] += 1
                return "", ""
            self._failure(identifier, str(e), LISTED if listed else "harvest")
            return str(e), e.failed.trouble
        except BadResponse as e:
            raw = e.raw if isinstance(e, UnusableRecord) else item.raw if item else b""
            self._committer.fail(Failure(identifier, "harvest", str(e), raw[:RAW_BYTES]))
            return str(e), ""
        self._repairs["owed records that have come"] += 1
        self._add(item, record)
        return "", ""

    def missing(self, identifiers: Sequence[str], taken: Callable[[], None]) -> str:
        """Get records one by one; `taken` is called after each. What cannot be had now is owed.

        Returns why the source, and not a record of it, cannot be harvested now; empty if it can.
        """
        in_vain = refused = 0
        unknown = list[str]()
        for identifier in identifiers:
            try:
                item = self.one(identifier)
            except NoAnswer as e:
                passing = e.failed.trouble in PASSING
                in_vain += passing
                refused += not passing
                if in_vain >= IN_A_ROW or refused >= REFUSED_IN_A_ROW:
                    return str(e)
                if "idDoesNotExist" in str(e):
                    unknown.append(identifier)
                else:
                    self._failure(identifier, str(e))
                continue
            except UnusableRecord as e:
                self._committer.fail(Failure(identifier, "harvest", str(e), e.raw[:RAW_BYTES]))
                in_vain = 0
                taken()
                continue
            in_vain = 0
            if item is None:
                refused += 1
                said = "GetRecord answers with another record"
                if refused >= REFUSED_IN_A_ROW:
                    return f"{self._agreement.url}: {said}, time and again"
                self._failure(identifier, said)
            else:
                refused = 0
                self._repairs["records fetched alone"] += 1
                self.records([item])
            taken()
        if len(unknown) > 1:
            # One may have gone since it was listed; that more have is not to be believed.
            for identifier in unknown:
                self._failure(identifier, "it is listed, but GetRecord does not know it", LISTED)
        elif unknown:
            self._repairs["records gone since they were listed"] += 1
        return ""

    def _failure(self, where: str, reason: str, stage: str = "harvest") -> None:
        self._committer.fail(Failure(where, stage, reason))
