"""What can be done at the desk, by whom, and that it was done: each act leaves an entry in the desk's log."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from urllib.parse import urlencode, urlsplit

from indlet.errors import IndletError, SettingsError
from indlet.extension import extensions
from indlet.formats import METADATA
from indlet.node.jobs import Jobs
from indlet.node.probe import Probe, probe_in_child
from indlet.node.source_list import NAME, clean_name
from indlet.service.harvest.mesh import origin_key
from indlet.service.harvest.public_hosts import known_public
from indlet.service.harvest.run import FEED
from indlet.service.search.library import Library
from indlet.settings import Node, Source, without_credentials
from indlet.web.admin.desk_log import DeskLog
from indlet.web.admin.desk_part import Act
from indlet.web.admin.desk_part import Form as Form
from indlet.web.admin.job_acts import JobActs
from indlet.web.admin.show import failed_records
from indlet.web.admin.source_status import Choice, LiveState, source_rows
from indlet.web.admin.upkeep import DeskUpkeep
from indlet.web.auth import Session
from indlet.wording import amount


class Acts:
    def __init__(self, library: Library, jobs: Jobs, log: DeskLog) -> None:
        self._library, self._log = library, log
        self._harvests = jobs.harvests
        self.upkeep = DeskUpkeep(library, jobs.schedule)
        self.parts = [extension.desk(library) for extension in extensions()]
        self.jobs = JobActs(library, jobs.schedule, jobs.harvests)
        acts = (
            Act("harvest", "operator", lambda form: self._start(form, full=False)),
            Act("full", "operator", lambda form: self._start(form, full=True)),
            Act("pause", "operator", lambda form: self._pause(form, paused=True)),
            Act("resume", "operator", lambda form: self._pause(form, paused=False)),
            Act("harvest_all", "operator", self._start_all),
            Act("pause_all", "operator", lambda form: self._pause_all(form, paused=True)),
            Act("resume_all", "operator", lambda form: self._pause_all(form, paused=False)),
            Act("retry", "operator", self._retry),
            Act("retry_group", "operator", self._retry_group),
            Act("run", "operator", self.jobs.run),
            Act("round", "operator", self.jobs.round),
            Act("check", "operator", lambda form: self._upkeep("check")),
            Act("rebuild", "admin", lambda form: self._upkeep("rebuild")),
            Act("add", "admin", self._add),
            Act("edit", "admin", self._edit),
            Act("reset", "admin", self._reset),
            Act("remove", "admin", self._remove),
            *(act for part in self.parts for act in part.acts),
        )
        self._acts = {act.name: act for act in acts}

    def find(self, name: str) -> Act | None:
        return self._acts.get(name)

    def roles(self) -> dict[str, str]:
        """The role that each act needs."""
        return {act.name: act.role for act in self._acts.values()}

    def do(self, act: Act, form: Form, session: Session, client: str) -> tuple[str, int | None]:
        """Do it, and keep that it was done or why it could not be; the page to go to, and to how many it was
        done, where that can be said.
        """
        what = form.get("name", "") or without_credentials(_address(form))[0]
        try:
            back, what, *count = act.work({**form, "by": session.user})
        except IndletError as e:
            self._log.add(act.name, session, client, what, str(e))
            raise
        self._log.add(act.name, session, client, what)
        return back, next(iter(count), None)

    # Sources

    def passes_on(self) -> bool:
        """Whether this node serves the records of others again, so that a new source is meant to be, too."""
        settings = self._library.settings
        return bool(settings.library) or any(source.republish for source in settings.source)

    def name_by_itself(self, probe: Probe) -> str:
        """What a source calls itself, as a name for it; empty where it does not say, or that is taken."""
        name = clean_name(probe.name)
        known = self._harvests.sources()
        if name == Node().name:  # nobody has named that node: all of them are called so
            name = f"{name} ({urlsplit(without_credentials(probe.url)[0]).netloc[:50]})"
        elif name in known:
            name = f"{name[: NAME - 60]} ({(urlsplit(probe.url).hostname or '')[:50]})"
        return "" if name in known else name

    def known_as(self, form: Form) -> str:
        """The name of the source that has the address of a form already; empty if there is none."""
        try:
            wanted = wanted_source({**form, "name": "", "metadata": ""})
        except SettingsError:
            return ""
        key = origin_key(wanted.url)
        known = (name for name, one in self._harvests.sources().items() if origin_key(one.url) == key)
        return next(known, "")

    def _add(self, form: Form) -> tuple[str, str]:
        source = wanted_source(form)
        if not source.name:
            harvest, policy = self._library.settings.harvest, self._library.analyzer.policy
            known = known_public(self._library.store)
            name = self.name_by_itself(probe_in_child(source, harvest, policy, known_public=known))
            source = wanted_source({**form, "name": name})
        name = self._harvests.add(source)
        if form.get("now"):
            with contextlib.suppress(SettingsError):  # its schedule may have started it already
                self._harvests.start(name)
        return _page(name), f"{name} {source.url}"

    def _edit(self, form: Form) -> tuple[str, str]:
        name = form.get("name", "")
        changes: dict[str, str | bool] = {
            "name": clean_name(form.get("new_name", "")),
            "set": form.get("set", "").strip()[:500],
            "every": form.get("every", "").strip()[:100],
            "index": "none" if form.get("index") == "none" else "auto",
        }
        if form.get("metadata"):
            changes["metadata"] = known_format(form["metadata"])
        if form.get("with_republish"):  # an empty box says nothing unless the form has one
            changes["republish"] = bool(form.get("republish"))
        if "fulltext" in form:
            changes["fulltext"] = known_fulltext(form["fulltext"])
        token = form.get("token", "").strip()[:500]
        if token or form.get("no_token"):  # a field left empty says nothing: the token is never shown
            changes["token"] = "" if form.get("no_token") else token
        different = self._harvests.edit(name, changes)
        told = ", ".join(f"{field}={changes[field]}" if field != "token" else field for field in different)
        return _page(str(changes["name"]) or name), f"{name}: {told or 'nothing changed'}"

    def _reset(self, form: Form) -> tuple[str, str]:
        self._harvests.as_in_file(form.get("name", ""))
        return "/admin", form.get("name", "")

    def _start(self, form: Form, *, full: bool) -> tuple[str, str]:
        name = form.get("name", "")
        self._harvests.start(name, full=full)
        return _page(name), name

    def _retry(self, form: Form) -> tuple[str, str]:
        name, identifier = form.get("name", ""), form.get("identifier", "")
        self._harvests.retry(name, [identifier])
        return _page(name), f"{name}: {identifier}"

    def _retry_group(self, form: Form) -> tuple[str, str, int]:
        """Ask again for the records that failed for one reason."""
        name, group = form.get("name", ""), form.get("group", "")
        with self._library.store.read() as view:
            origin = view.origin("source", name)
            records = failed_records(view.failures(origin.id), group) if origin else []
        if not records:
            raise SettingsError(f"no record of {name!r} fails for this reason any more")
        self._harvests.retry(name, records)
        return _page(name), f"{name}: {amount(len(records), 'record')}, {group}", len(records)

    def _pause(self, form: Form, *, paused: bool) -> tuple[str, str]:
        name = form.get("name", "")
        self._harvests.pause(name, paused=paused)
        return _page(name), name

    def _listed(self, form: Form) -> tuple[Choice, list[str]]:
        """The sources that a page of the desk lists, on all its pages."""
        choice = Choice.read(form)
        live = LiveState({}, self._harvests.running(), {})
        rows = source_rows(self._library.store, self._harvests.sources(), live)
        return choice, [row.name for row in choice.select(rows)]

    def _start_all(self, form: Form) -> tuple[str, str, int]:
        choice, names = self._listed(form)
        started = self._harvests.start_all(names)
        return choice.address(), _some(started), len(started)

    def _pause_all(self, form: Form, *, paused: bool) -> tuple[str, str, int]:
        choice, names = self._listed(form)
        changed = self._harvests.pause_all(names, paused=paused)
        return choice.address(), _some(changed), len(changed)

    def _remove(self, form: Form) -> tuple[str, str]:
        name, choice = form.get("name", ""), form.get("records", "")
        count = amount(self._harvests.records(name), "record")
        if choice not in ("keep", "delete"):  # nothing is deleted unless somebody says so
            raise SettingsError(f"{name!r} has {count}: choose whether they are kept or deleted")
        self._harvests.remove(name, records=choice == "delete")
        return "/admin", f"{name}, {count} {'deleted' if choice == 'delete' else 'kept'}"

    def _upkeep(self, what: str) -> tuple[str, str]:
        self.upkeep.begin(what)
        return "/admin/store", ""


def _page(name: str) -> str:
    return f"/admin/source?{urlencode({'name': name})}"


def _some(names: list[str]) -> str:
    """How many sources, and the first of them by name."""
    return f"{amount(len(names), 'source')}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"


def _address(form: Form) -> str:
    """The address that a form gives, with its scheme."""
    url = form.get("url", "").strip()
    return f"http://{url}" if url and "://" not in url else url


def known_format(prefix: str, readable: Collection[str] = ()) -> str:
    """A metadataPrefix that can be harvested; SettingsError if it is none that we know.

    `readable`: others that a test of the source found, by their namespaces.
    """
    if prefix not in (*METADATA, FEED, *readable):
        raise SettingsError(f"no metadata format {prefix[:100]!r}; one of {', '.join(METADATA)}")
    return prefix


def known_fulltext(value: str) -> str:
    """The value of `fulltext` that a form gives; empty if it is none."""
    return value if value in ("fetch", "auto") else ""


def wanted_source(form: Form) -> Source:
    """The source that a form describes."""
    url = _address(form)
    if not url.startswith(("http://", "https://")):
        shown = without_credentials(url)[0] or "the address"
        raise SettingsError(f"{shown}: give an http or https address, such as https://example.org/oai")
    index = form.get("index", "auto")
    return Source(
        url=url,
        name=clean_name(form.get("name", "")),
        set=(form.get("other_set") or form.get("set", "")).strip()[:500],
        every=form.get("every", "").strip()[:100],
        index=index if index in ("auto", "none") else "auto",
        metadata=known_format(form.get("metadata") or "oai_dc", form.get("readable", "").split()),
        republish=bool(form.get("republish")),
        fulltext=known_fulltext(form.get("fulltext", "")),
        token=form.get("token", "").strip()[:500],
    )
