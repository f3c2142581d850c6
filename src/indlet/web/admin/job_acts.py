"""The jobs as a page of the desk and as JSON, and their start: of one, or of a whole round."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response

from indlet.errors import SettingsError
from indlet.model import JsonObject
from indlet.node import job_entries
from indlet.node.harvests import Harvests
from indlet.node.schedule import Job, Schedule, Step
from indlet.service.search.library import Library
from indlet.web.admin import show

Form = dict[str, str]
STARTABLE: Final = ("crawl", "harvest", "write", "alerts", "duplicates")  # kinds of jobs


class JobActs:
    def __init__(self, library: Library, schedule: Schedule, harvests: Harvests) -> None:
        self._library, self._schedule, self._harvests = library, schedule, harvests
        self._by_workers = not library.settings.node.jobs

    def context(self) -> JsonObject:
        """What the page shows."""
        jobs = show.jobs(self._schedule, self._library)
        return {
            "jobs": jobs,
            "busy": any(job.started for job in jobs),
            "startable": STARTABLE,
            "rounds": any(job.step in (Step.READ, Step.WRITE) for job in jobs),
        }

    def json(self) -> Response:
        jobs = show.jobs(self._schedule, self._library)
        return JSONResponse({"jobs": [job.to_json() for job in jobs]})

    # Acts

    def run(self, form: Form) -> tuple[str, str]:
        """Start one job, whatever else is due."""
        name = form.get("name", "")
        job = self._jobs().get(name)
        if job is None:
            raise SettingsError(f"there is no job {name!r} that can be started here; see the list of jobs")
        if job.kind == "harvest":
            self._harvests.start(name.removeprefix("harvest "))
        elif self._by_workers:
            job_entries.ask(self._library.store, name)
        elif not self._schedule.run_now(name):
            raise SettingsError(f"{name} is running already; wait for it to end")
        return "/admin/jobs", name

    def round(self, form: Form) -> tuple[str, str]:
        """Start local read, remote harvest and local write; each step waits for the ones before it."""
        steps = [job for job in self._jobs().values() if job.step is not Step.NONE and not job.paused]
        if not steps:
            raise SettingsError("there is no [[library]], [[source]] or [[write]] in the settings; add one")
        for job in sorted(steps, key=lambda job: job.step):
            if not self._by_workers:
                self._schedule.wake(job.name)
            elif job.name not in job_entries.requests(self._library.store):
                job_entries.ask(self._library.store, job.name)
        return "/admin/jobs", ", ".join(job.name for job in steps)

    def _jobs(self) -> dict[str, Job]:
        jobs = show.jobs(self._schedule, self._library)
        return {job.name: job for job in jobs if job.kind in STARTABLE}
