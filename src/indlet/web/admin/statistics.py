"""The statistics of a node as a page of the desk, as CSV and as JSON: readers' actions and harvests."""

from __future__ import annotations

import csv
import io
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from starlette.responses import JSONResponse, Response

from indlet.model import JsonObject
from indlet.store import Store
from indlet.web.reader_statistics import Metric, ReaderStatistics, StatisticRow

RUNS: Final = 50_000  # of the journal that are counted
SOURCES: Final = 50  # that the page shows; CSV and JSON have all
MONTHS: Final = 13


class StatisticsPage:
    def __init__(self, store: Store, readers: ReaderStatistics) -> None:
        self._store, self._readers = store, readers

    def rows(self) -> list[StatisticRow]:
        """Every number, oldest first: days of the whole node, months of each source."""
        return sorted([*self._readers.rows(), *self._harvests()])

    def context(self) -> JsonObject:
        """What the page shows: the months of the whole node, and the sources over all of that time."""
        months, sources = dict[str, Counter[str]](), dict[str, Counter[str]]()
        for row in self.rows():
            if row.source:
                sources.setdefault(row.source, Counter())[row.metric] += row.number
            else:
                months.setdefault(row.period[:7], Counter())[row.metric] += row.number
        used = sorted(sources.items(), key=lambda one: (-one[1][Metric.INVESTIGATIONS], one[0]))
        return {
            "metrics": list(Metric),
            "of_sources": [Metric.INVESTIGATIONS, Metric.CLICKS, Metric.HARVESTED, Metric.FAILED],
            "months": sorted(months.items(), reverse=True)[:MONTHS],
            "by_source": used[:SOURCES],
            "more": max(0, len(used) - SOURCES),
            "oldest": self._readers.oldest(),
        }

    def json(self) -> Response:
        return JSONResponse({"statistics": [row._asdict() for row in self.rows()]})

    def csv(self) -> Response:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(StatisticRow._fields)
        # A source chooses its name: no cell of it is a formula.
        writer.writerows(row._replace(source=_inert(row.source)) for row in self.rows())
        headers = {"Content-Disposition": 'attachment; filename="statistics.csv"'}
        return Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)

    def _harvests(self) -> list[StatisticRow]:
        """Records that were harvested and that failed, by the journal."""
        oldest, counts = self._readers.oldest(), Counter[tuple[str, str, str]]()
        with self._store.read() as view:
            names = {origin.id: origin.name for origin in view.origins("source")}
            runs = view.runs(limit=RUNS)
        for run in runs:
            day = f"{datetime.fromtimestamp(run.started, UTC):%Y-%m-%d}"
            if run.origin not in names or day < oldest:
                continue
            for metric, field in ((Metric.HARVESTED, "records"), (Metric.FAILED, "failed")):
                if count := int(run.detail.get(field, 0)):
                    counts[day, "", metric] += count
                    counts[day[:7], names[run.origin], metric] += count
        return [StatisticRow(*key, count) for key, count in counts.items()]


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
