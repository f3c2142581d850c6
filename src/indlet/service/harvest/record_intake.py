"""Records, as they come on pages or one by one: kept, or failures with their reason and raw bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from lxml import etree

from indlet.errors import BadResponse
from indlet.model import Failure
from indlet.oai.read import Item, Page
from indlet.service.harvest import decide as d
from indlet.service.harvest.client import NoAnswer
from indlet.service.harvest.commit import Writer
from indlet.service.harvest.fetch_page import Interrupted, PageFetcher
from indlet.service.harvest.negotiate import Agreement
from indlet.service.records.normalise import Normaliser

RAW_BYTES: Final = 1 << 20
# Broken records of a list that are asked for once more, alone and in vain, in one run.
SECOND_LOOKS: Final = 100
# Single records in a row that the source could not give: then it is the source, and not the record.
IN_A_ROW: Final = 3
REFUSED_IN_A_ROW: Final = 20
# The stage of failures that may pass, though the record will not be listed again.
OWED: Final = "get"
# Said where no record has an index part, though one was asked for.
BARE: Final = "records without the index that is offered"


class Intake:
    """From a source's records to a writer, by way of a normaliser."""

    def __init__(
        self,
        asker: PageFetcher,
        terms: Agreement,
        normaliser: Normaliser,
        writer: Writer,
        halt: threading.Event,
    ) -> None:
        self._asker = asker
        self._terms = terms
        self._normaliser = normaliser
        self._writer = writer
        self._repairs = writer.progress.repairs
        self._halt = halt
        self._second_looks = 0
        self._indexed = False  # an index part has come

    def page(self, page: Page) -> None:
        """Take every record of a page."""
        self.records(page.items)
        for problem in page.problems:
            self._problem(problem.where, problem.reason, problem.raw)

    def records(self, items: Sequence[Item]) -> None:
        if self._terms.index_prefix and not self._indexed:
            self._look_for_index(items)
        for item, made in zip(items, self._normaliser.records(items), strict=True):
            if isinstance(made, BadResponse):
                self._problem(item.identifier, str(made), _raw(item))
            else:
                self._writer.keep(made)

    def _look_for_index(self, items: Sequence[Item]) -> None:
        """Records may well come without an index part; that all do, though the source offers one, is told."""
        bare = 0
        for item in items:
            if item.index is not None or (
                item.sheet is not None and item.sheet.vector(item.place) is not None
            ):
                self._indexed = True
                del self._repairs[BARE]
                return
            bare += not item.deleted
        if bare:
            self._repairs[BARE] += bare

    def _problem(self, where: str, reason: str, raw: bytes) -> None:
        """A record of a list that cannot be used: asked for alone, and if that is no better, a failure."""
        stage = "harvest"
        if where and self._second_looks < SECOND_LOOKS:
            try:
                found = self.one(where)
            except NoAnswer as e:
                found = None
                if e.failed.trouble in d.PASSING:
                    stage = OWED
                    self._second_looks += SECOND_LOOKS // IN_A_ROW  # it may be the source, not the record
            if found is not None:
                try:
                    record = self._normaliser.record(found)
                except BadResponse:
                    pass
                else:
                    self._repairs["records fetched alone"] += 1
                    self._writer.keep(record)
                    return
            self._second_looks += 1
        if not where:
            where = f"a record of {self._terms.url} ({blake2b(raw, digest_size=4).hexdigest()})"
        self._writer.fail(Failure(where, stage, reason, raw[:RAW_BYTES]))

    def one(self, identifier: str) -> Item | None:
        """The record of that identifier, asked for alone; None if another comes."""
        if self._halt.is_set():
            raise Interrupted
        arguments = {"verb": "GetRecord", "identifier": identifier, **self._terms.selection("")}
        page = self._asker.patiently(self._terms.url, arguments, attempts=2)
        self._repairs.update(page.repairs)
        return next((i for i in page.items if i.identifier == identifier), None)

    def owed(self, identifiers: Sequence[str]) -> None:
        """Ask once more for records that an earlier run was refused for the moment."""
        self._writer.settle()
        for identifier in identifiers[:SECOND_LOOKS]:
            if identifier not in self._writer.failed_places or identifier in self._writer.failed_now:
                continue  # it has come, or was asked for already
            try:
                item = self.one(identifier)
            except NoAnswer as e:
                if "idDoesNotExist" in str(e):
                    continue
                self._failure(identifier, str(e), OWED if e.failed.trouble in d.PASSING else "harvest")
                if e.failed.trouble in ("unreachable", "silent", "later"):
                    return
            else:
                if item is not None:
                    self.records([item])

    def missing(self, identifiers: Sequence[str], taken: Callable[[], None]) -> str:
        """Get records one by one; `taken` is called after each. What cannot be had now is owed.

        Comes out: why the source, and not a record of it, is not to be had; empty if it is.
        """
        in_vain = refused = 0
        unknown = list[str]()
        for identifier in identifiers:
            try:
                item = self.one(identifier)
            except NoAnswer as e:
                passing = e.failed.trouble in d.PASSING
                in_vain += passing
                refused += not passing
                if in_vain >= IN_A_ROW or refused >= REFUSED_IN_A_ROW:
                    return str(e)
                if "idDoesNotExist" in str(e):
                    unknown.append(identifier)
                else:
                    self._failure(identifier, str(e), OWED if passing else "harvest")
                continue
            in_vain = 0
            if item is None:
                refused += 1
                said = "GetRecord answers with another record"
                if refused >= REFUSED_IN_A_ROW:
                    return f"{self._terms.url}: {said}, time and again"
                self._failure(identifier, said)
            else:
                refused = 0
                self._repairs["records fetched alone"] += 1
                self.records([item])
            taken()
        if len(unknown) > 1:
            # One may have gone since it was listed; that more have is not to be believed.
            for identifier in unknown:
                self._failure(identifier, "it is listed, but GetRecord does not know it")
        elif unknown:
            self._repairs["records gone since they were listed"] += 1
        return ""

    def _failure(self, where: str, reason: str, stage: str = "harvest") -> None:
        self._writer.fail(Failure(where, stage, reason))


def _raw(item: Item) -> bytes:
    if item.sheet is not None:
        return item.sheet.raw(item.place)
    part = item.metadata if item.whole is None else item.whole
    return b"" if part is None else etree.tostring(part, with_tail=False)
