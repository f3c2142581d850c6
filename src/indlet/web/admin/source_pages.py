"""The desk's pages about sources: all of them, one of them, and the steps by which one is added."""

from __future__ import annotations

import time
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from indlet.errors import SettingsError
from indlet.extension import extensions
from indlet.formats import METADATA
from indlet.node.jobs import Jobs
from indlet.node.probe import Probe, probe_in_child
from indlet.service.harvest.public_hosts import known_public
from indlet.service.index import follow
from indlet.web.admin import show, source_status
from indlet.web.admin.acts import Acts, Form, wanted_source
from indlet.web.admin.source_status import Choice, LiveState, SourceRow, Totals
from indlet.web.auth import Session
from indlet.web.i18n import Strings
from indlet.web.portal import Portal


class Render(Protocol):
    """Writes a page of the desk: its tab, its template, and what that needs."""

    def __call__(
        self,
        request: Request,
        session: Session,
        tab: str,
        template: str,
        status: int = 200,
        **context: object,
    ) -> Response: ...


class SourcePages:
    def __init__(self, portal: Portal, jobs: Jobs, acts: Acts, totals: Totals, render: Render) -> None:
        self.portal, self.harvests = portal, jobs.harvests
        self.acts, self.totals, self._render = acts, totals, render
        self.settings = portal.library.settings

    def _rows(self, only: str | None = None) -> list[SourceRow]:
        """The rows of all sources, or the one of a name."""
        sources = self.harvests.sources()
        if only is not None:
            sources = {name: source for name, source in sources.items() if name == only}
        live = LiveState(self.harvests.next_runs(), self.harvests.running(), self.totals.get())
        return source_status.source_rows(self.portal.store, sources, live)

    def overview(self, request: Request, t: Strings, session: Session) -> Response:
        choice, rows = Choice.read(request.query_params), self._rows()
        newest, position = follow.lag(self.portal.store, self.portal.library.settings.index)
        return self._render(
            request, session, "overview", "admin/overview.html", choice=choice, now=time.time(),
            listing=source_status.status_page(rows, choice), total=len(rows),
            busy=any(row.progress for row in rows), records=sum(r.records for r in rows),
            deleted=sum(r.deleted for r in rows), failures=sum(r.failures for r in rows),
            lag=max(newest - position, 0), shared=self.totals.shared(),
            removed_here=self.harvests.removed_here(),
        )  # fmt: skip

    def add(
        self,
        request: Request,
        session: Session,
        status: int = 200,
        problem: str = "",
        given: Form | None = None,
        tested: Probe | None = None,
    ) -> Response:
        """The steps by which a source is added; the later ones are there once its address was tested."""
        return self._render(
            request, session, "overview", "admin/add.html", status, problem=problem, given=given or {},
            formats=METADATA, passes_on=self.acts.passes_on(), usual=self.settings.harvest.every,
            tested=tested, same=self.acts.known_as(given) if given else "",
        )  # fmt: skip

    def source(self, request: Request, t: Strings, session: Session) -> Response:
        return self.found_source(request, t, session) or self.portal.pages.message(
            request, 404, t("desk.no_source"), action=(t("desk.tab.overview"), "/admin")
        )

    def found_source(
        self, request: Request, t: Strings, session: Session, status: int = 200, problem: str = "",
        given: Form | None = None,
    ) -> Response | None:  # fmt: skip
        """The page of a source; None if there is none of that name."""
        name = given["name"] if given else request.query_params.get("name", "")
        row = next(iter(self._rows(name)), None)
        source = self.harvests.sources().get(name)
        if row is None or source is None:
            return None
        with self.portal.store.read() as view:
            origin = view.origin("source", name)
            runs = view.runs(origin.id, show.RUNS) if origin else []
            groups = show.failure_groups(view.failures(origin.id)) if origin else []
        state = origin.state if origin else {}
        # What stands below the live part is read once, not with every look.
        whole = origin is not None and "live" not in request.query_params
        return self._render(
            request, session, "overview", "admin/source.html", status, row=row, source=source,
            problem=problem, given=given or {}, usual=self.settings.harvest.every, formats=METADATA,
            changed_here=self.harvests.changed_here(name), written=name in self.harvests.in_file(),
            on_schedule=row.due is not None or row.state == "paused", now=time.time(),
            moved=sum(int(run.detail.get("bytes", 0)) for run in runs),
            busy=row.progress is not None, state=state,
            added_status=[
                line
                for extension in extensions()
                if origin and (line := extension.source_status(self.portal.store, origin.id))
            ],
            plots=show.plots(t, runs), runs=runs[:20], groups=groups,
            repairs=sorted(state.get("repairs", {}).items()),
            deletions=show.deletions(self.portal.store, origin) if origin and whole else [],
            held=self.harvests.records(name) if whole else 0,
        )  # fmt: skip

    def test(self, request: Request, session: Session, form: Form, problem: str = "") -> Response:
        """A source, probed; its form stays filled in, ready to add. `problem`: why it could not be added."""
        try:
            source = wanted_source(form)
        except SettingsError as e:
            return self.add(request, session, 400, str(e), form)
        policy = self.portal.library.analyzer.policy
        tested = probe_in_child(
            source, self.settings.harvest, policy, known_public=known_public(self.portal.library.store)
        )
        if not form.get("name", "").strip():
            form = {**form, "name": self.acts.name_by_itself(tested)}
        return self.add(request, session, 400 if problem else 200, problem, form, tested)
