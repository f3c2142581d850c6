"""The hostile world: where the data can be had, the harvest is complete; where not, it says so."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tests.hostile.misbehaving as m
from tests.hostile.misbehaving import Fault, Provider, Rec, collection
from tests.stores import store_in

from indlet.oai.names import FT_NAMESPACE
from indlet.service.harvest.progress import Progress
from indlet.service.harvest.run import RunOptions
from indlet.service.pipeline import harvest_all
from indlet.settings import Harvest, Settings, Source
from indlet.store import Store

QUICK = Harvest(
    retries=3,
    backoff_seconds=0.01,
    backoff_limit_seconds=0.02,
    stall_seconds=0.3,
    timeout_seconds=0.3,
    retry_after_limit_seconds=5,
    response_bytes=64 << 20,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterable[Store]:
    with store_in(tmp_path / "data") as opened:
        yield opened


def harvest(store: Store, url: str, options: RunOptions | None = None, **source: Any) -> Progress:
    settings = Settings(harvest=source.pop("harvest", QUICK))
    (progress,) = harvest_all(
        store, settings, [Source(url, name="repo", **source)], options=options, index=False
    )
    return progress


def held(store: Store) -> dict[str, str]:
    """identifier -> title of the live records."""
    with store.read() as view:
        return {
            s.identifier: (s.record.metadata.get("title") or [""])[0] for s in view.changes() if not s.deleted
        }


def state(store: Store) -> dict[str, Any]:
    with store.read() as view:
        origin = view.origin("source", "repo")
        assert origin is not None
        return origin.state


def failures(store: Store) -> dict[str, tuple[str, bytes]]:
    with store.read() as view:
        return {f.where: (f.reason, f.raw) for f in view.failures()}


# Faults under which all can be had -> the repair that must be told, if any.
COMPLETE: dict[str, tuple[Fault, str]] = {
    "503": (m.status(503), "retried: later"),
    "503 with Retry-After": (m.status(503, 1, "1"), "retried: later"),
    "Retry-After as a date": (m.retry_date(), "retried: later"),
    "429": (m.status(429, 1, "0"), "retried: later"),
    "502": (m.status(502), "retried: broken"),
    "504": (m.status(504), "retried: broken"),
    "reset": (m.reset(), "retried: interrupted"),
    "stall": (m.stall(), "retried: silent"),
    "drip": (m.drip(), "retried: silent"),
    "body shorter than it says": (m.short_body(), "retried: interrupted"),
    "chunks cut off": (m.cut_chunks(), "retried: interrupted"),
    "XML cut off": (m.cut_xml(), "retried: interrupted"),
    "gzip cut off": (m.cut_gzip(), "retried: interrupted"),
    "empty answer": (m.empty_body(), "retried: broken"),
    "HTML answer": (m.html(), "retried: broken"),
    "undeclared gzip": (m.undeclared_gzip(), "undeclared compression"),
    "false gzip": (m.false_gzip(), "compression declared but absent"),
    "control characters": (m.in_titles(b"\x01\x0c&#x2;"), "control characters"),
    "invalid UTF-8": (m.latin1(), "invalid UTF-8"),
    "declared as Latin-1": (m.declared_latin1(), "wrong encoding"),
    "bare ampersands": (m.in_titles(b"R&D & more"), "bare ampersands"),
    "HTML entities": (m.in_titles(b"caf&eacute;&nbsp;"), "undeclared entities"),
    "bare less-than": (m.in_titles(b"a < b"), "bare less-than signs"),
    "missing namespaces": (m.missing_namespaces(), "missing namespaces"),
    "white space first": (m.prologue(b"\r\n  "), "white space before the declaration"),
    "byte order mark": (m.prologue(b"\xef\xbb\xbf"), ""),
    "warning first": (m.prologue(b"Notice: deprecated\n"), "noise before the document"),
    "garbage after the end": (m.trailing(), "garbage after the document"),
    "wrong content type": (m.content_type("text/html; charset=utf-8"), ""),
    "HTTP/1.0": (m.http_one_zero(), ""),
    "text of 11 MB": (m.huge_text(), ""),
    "token repeats": (m.repeated_token("ListRecords"), "lists that ended early or in circles"),
    "list in circles": (m.circle("ListRecords"), "pages that came twice"),
    "all lists in circles": (m.repeated_token(), "lists that ended early or in circles"),
    "all lists are cut": (m.cut_list(verb=""), "lists that ended early or in circles"),
    "list cut, identifiers unknown": (
        lambda q, r: q.provider.error(q, "badVerb") if q.verb == "ListIdentifiers" else m.cut_list()(q, r),
        "lists that ended early or in circles",
    ),
    "token of a session": (m.session_token(), ""),
    "token expires": (m.expiring(), ""),
    "tokens expire again and again": (m.expiring(2, 5), ""),
    "list changes under way": (m.moving(), "lists that changed under way"),
    "list changes under way, again": (m.moving(3), "lists that changed under way"),
    "pages overlap": (m.overlapping(), ""),
    "empty pages": (m.empty_pages(), ""),
    "list cut between pages": (m.cut_list(), "lists that ended early or in circles"),
    "size too large": (m.sizes(3), "lists that ended early or in circles"),
    "size too small": (m.sizes(0.2), ""),
    "size in doubt": (m.sizes(1.1), "sizes that were wrong"),
    "no list longer than 20": (m.capped(20), "lists that ended early or in circles"),
    "datestamps of days": (m.granularity_days(), "datestamps of another granularity"),
    "until ignored": (m.ignores("until"), ""),
    "from ignored": (m.ignores("from"), ""),
    "long lists refused": (m.refuses_long_lists(), "retried: argument"),
    "long lists refused by status": (m.refuses_long_lists(http=413), "retried: argument"),
    "long lists fail": (m.refuses_long_lists(code="", http=500), ""),
    "redirect": (m.redirects(), ""),
    "permanent redirect": (m.redirects(kind=308), ""),
    "Identify broken": (m.broken_verb("Identify"), "Identify is broken"),
    "ListMetadataFormats broken": (m.broken_verb("ListMetadataFormats"), "ListMetadataFormats is broken"),
    "errors with status 404": (m.errors_with_status(), ""),
    "malformed in lists only": (m.malformed_record("oai:x.org:0012"), "records fetched alone"),
    "length announced too large": (m.announced_too_large(), "bodies shorter than announced"),
    "garbage after gzip": (m.gzip_and_garbage(), "garbage after the compressed document"),
    "UTF-32": (m.encoded("utf-32"), "wrong encoding"),
    "UTF-16": (m.encoded("utf-16"), "wrong encoding"),
    "marked-up warnings first": (
        m.prologue(b"<br />\n<b>Notice</b>: Undefined index in <b>oai.php</b><br />\n"),
        "noise before the document",
    ),
    "comments with hyphens": (m.rewritten(rb"<record>", rb"<!-- a -- b --><record>"), "malformed comments"),
    "token escaped twice": (m.escaped_twice(), "token respelt"),
    "token too long for a URL": (m.long_tokens(), ""),
    "token beside the list": (
        m.rewritten(rb"(<resumptionToken[^>]*>[^<]*</resumptionToken>)(</List\w+>)", rb"\2\1"),
        "misplaced resumption tokens",
    ),
    "metadata in CDATA": (
        m.rewritten(rb"<metadata>(.*?)</metadata>", rb"<metadata><![CDATA[\1]]></metadata>"),
        "metadata written as text",
    ),
    "files with their prologues in the metadata": (
        m.rewritten(rb"<metadata>", rb"<metadata><?xml version='1.0'?><!DOCTYPE dc SYSTEM 'dc.dtd'>"),
        "declarations within the document",
    ),
    "ends of CDATA sections": (m.in_titles(b"a]]>b"), "bare ends of CDATA sections"),
    "a record without its name": (
        m.rewritten(rb"<identifier>oai:x.org:0012</identifier>", b"", "ListRecords"),
        "lists with records that do not tell their names",
    ),
    "metadata twice": (
        m.rewritten(rb"</metadata>", rb"</metadata><metadata><other/></metadata>"),
        "records with metadata twice: the first taken",
    ),
    "status beside the header": (
        m.rewritten(rb'<record><header status="deleted">', rb'<record status="deleted"><header>'),
        "status of a record beside its header",
    ),
    "ListRecords unknown": (m.error_at(0, "badVerb"), "records fetched alone"),
    "ListRecords not found": (m.broken_verb("ListRecords", 404), "records fetched alone"),
    "odd error on the third page": (m.error_at(20, "idDoesNotExist"), "records fetched alone"),
    "an error of its own making": (m.error_at(10, "internalError", times=2), "retried: broken"),
    "page fails for one record": (m.poison("oai:x.org:0012", single=False), "records fetched alone"),
    "tokens are forbidden": (m.barren_tokens("403"), "retried: refused"),
    "tokens are forbidden later": (m.barren_tokens("403", 3), "retried: refused"),
    "tokens bring noRecordsMatch": (m.barren_tokens(), "lists that ended early or in circles"),
    "tokens bring empty lists": (m.barren_tokens(""), "lists that ended early or in circles"),
    "undeclared deflate": (m.compressed(zlib.compress), "undeclared compression"),
    "gzip twice over": (
        m.compressed(lambda b: gzip.compress(gzip.compress(b)), "gzip"),
        "undeclared compression",
    ),
    "gzip declared as deflate": (
        m.compressed(gzip.compress, "deflate"),
        "compressed otherwise than declared",
    ),
    "false gzip with a byte order mark": (
        m.compressed(lambda b: b"\xef\xbb\xbf" + b, "gzip"),
        "compression declared but absent",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLETE)
def test_all_is_had_in_spite_of(name: str, store: Store) -> None:
    fault, told = COMPLETE[name]
    with Provider(None, fault) as provider:
        progress = harvest(store, provider.url)
        again = harvest(store, provider.url)
        assert provider.together == 1, "one request at a time to a source"
    assert (progress.outcome, progress.reason) == ("complete", "")
    assert set(held(store)) == provider.live()
    assert progress.failed == (name == "a record without its name")
    if told:
        assert progress.repairs[told] > 0, progress.repairs
    words = {identifier: title.split()[-1] for identifier, title in held(store).items()}
    if name != "text of 11 MB":
        assert words == {r.identifier: r.title.split()[-1] for r in provider.records if not r.deleted}
    with store.read() as view:
        assert view.totals()[1] == (len(provider.live()), len(provider.records) - len(provider.live()))
    assert again.outcome == "complete"
    assert again.changed == 0 or name == "datestamps of days"
    assert state(store)["marks"] == {"": "2024-06-01T12:00:00Z"}


def test_what_was_mended_reads_well(store: Store) -> None:
    for fault, title in (
        (m.latin1(), "flutter Über of wing 1 word1"),
        (m.declared_latin1(), "flutter Über of wing 1 word1"),
        (m.in_titles(b"R&D"), "flutter R&D of wing 1 word1"),
        (m.in_titles(b"caf&eacute;"), "flutter café of wing 1 word1"),
        (m.in_titles(b"a < b"), "flutter a < b of wing 1 word1"),
        (m.in_titles(b"\xed\xa0\xbd\xed\xb8\x80"), "flutter \U0001f600 of wing 1 word1"),
        (m.charset_of_the_header("windows-1251", "крыло"), "flutter крыло of wing 1 word1"),
        (m.in_titles(b"\x0b<![CDATA[x & y]]>"), "flutter x & y of wing 1 word1"),
    ):
        with Provider(None, fault) as provider:
            harvest(store, provider.url, RunOptions(full=True))
        assert held(store)["oai:x.org:0001"] == title


# Faults under which not all can be had: it says so, keeps the rest, and starts there again.
INCOMPLETE: dict[str, Fault] = {
    "dead lists": m.dead(("ListRecords", "ListIdentifiers")),
    "always 503": m.status(503, 10**9),
    "asks to come back tomorrow": m.status(503, 10**9, "86400"),
    "asks to come back in a thousand years": m.status(503, 10**9, "99999999999"),
    "errors without a code": lambda q, r: q.provider.error(q, "", "database down") if q.listing else r,
    "always stalls": m.stall(1.0, 10**9),
    "forbidden": lambda q, r: replace(r, status=403, body=b"no") if q.listing else r,
    "gzip bomb": m.gzip_bomb(),
    "redirects in circles": m.redirects(10**9, loop=True),
    "cannot disseminate": lambda q, r: q.provider.error(q, "cannotDisseminateFormat") if q.listing else r,
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_what_cannot_be_had_is_said(name: str, store: Store) -> None:
    quick = replace(QUICK, retries=1)
    with Provider(None, page=10) as provider:
        assert harvest(store, provider.url).outcome == "complete"
        mark = state(store)["marks"]
        before = held(store)
        for r in provider.records[5:40]:
            r.datestamp = f"2024-06-02T{provider.records.index(r):02d}:00:00Z".replace("T3", "T1").replace(
                "T2", "T1"
            )
        provider.now = "2024-06-03T00:00:00Z"
        provider.records.sort(key=lambda r: r.datestamp)
        provider.faults = (INCOMPLETE[name],)
        progress = harvest(store, provider.url, harvest=quick)
        assert progress.outcome in ("incomplete", "failed")
        assert progress.reason
        assert set(held(store)) == set(before)
        assert state(store)["marks"] == mark, "never past a gap"
        provider.faults = ()
        healed = harvest(store, provider.url)
        assert healed.outcome == "complete"
        assert state(store)["marks"] != mark
    with store.read() as view:
        stamps = {
            s.identifier: s.record.properties["source_datestamp"] for s in view.changes() if not s.deleted
        }
    assert stamps == {r.identifier: r.datestamp for r in provider.records if not r.deleted}


def test_one_bad_record_costs_that_record(store: Store) -> None:
    bad = "oai:x.org:0012"
    for fault, reason in (
        (m.malformed_record(bad, single=True), "not well-formed"),
        (m.poison(bad), "500"),
    ):
        with Provider(None, fault) as provider:
            progress = harvest(store, provider.url, RunOptions(full=True))
            assert progress.outcome == "complete"
            assert progress.failed == 1
            assert not progress.ok
            assert set(held(store)) == provider.live() - {bad}
            assert list(failures(store)) == [bad]
            assert reason in failures(store)[bad][0]
            if "well-formed" in reason:
                assert b"word12</dc:titel>" in failures(store)[bad][1]
            provider.faults = ()
            assert harvest(store, provider.url, RunOptions(full=True)).failed == 0
            assert set(held(store)) == provider.live()
            assert failures(store) == {}
            with store.write() as tx:
                tx.delete(1, [bad])


def test_a_record_that_could_not_be_had_is_asked_for_by_the_next_run(store: Store) -> None:
    bad = "oai:x.org:0012"
    with Provider(None, m.poison(bad)) as provider:
        assert harvest(store, provider.url).failed == 1
        assert harvest(store, provider.url).failed == 1, "still owed"
        provider.faults = ()
        assert harvest(store, provider.url).ok, "though it is not listed again"
        assert set(held(store)) == provider.live()
        assert failures(store) == {}


def test_a_source_that_answers_nothing_but_its_list_is_harvested(store: Store) -> None:
    faults = [m.broken_verb(v) for v in ("Identify", "ListMetadataFormats", "ListIdentifiers")]
    with Provider(None, *faults) as provider:
        assert harvest(store, provider.url).outcome == "complete"
        assert set(held(store)) == provider.live()


def test_records_without_metadata_or_identifier_are_failures(store: Store) -> None:
    day = "2024-05-01T00:00:00Z"
    records = [Rec("oai:x.org:a", day), Rec("oai:x.org:b", day, metadata=""), Rec("", day)]
    records.append(Rec("oai:x.org:c", day))
    with Provider(records) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert progress.failed == 2
    assert set(held(store)) == {"oai:x.org:a", "oai:x.org:c"}
    reason, raw = failures(store)["oai:x.org:b"]
    assert "without metadata" in reason
    assert b"<identifier>oai:x.org:b</identifier>" in raw


def test_every_record_without_identifier_is_a_failure_of_its_own(store: Store) -> None:
    with Provider([Rec("", "2024-05-01T00:00:00Z", title) for title in ("one", "two")]) as provider:
        assert harvest(store, provider.url).failed == 2
    assert sorted(b"one" in raw for _, raw in failures(store).values()) == [False, True]


@pytest.mark.parametrize("kind", ["bomb", "external"])
def test_entities_are_neither_expanded_nor_fetched(kind: str, store: Store) -> None:
    with Provider(None) as provider:
        provider.faults = (m.xml_bomb() if kind == "bomb" else m.external_entity(lambda: provider.root),)
        progress = harvest(store, provider.url)
        assert not [q for q in provider.requests if q.path == "/secret"]
    assert progress.repairs["document type removed"] > 0
    assert progress.failed == 1
    assert set(held(store)) == provider.live() - {"oai:x.org:0003"}
    assert b"root:" not in b"".join(raw for _, raw in failures(store).values())


def test_datestamps_in_the_future_or_malformed_do_not_mislead(store: Store) -> None:
    records = collection(30)
    records[3].datestamp = "2099-01-01T00:00:00Z"
    records[4].datestamp = "2024-05-99T00:00:00Z"
    with Provider(records, m.ignores("from", "until"), m.expiring(2, 1)) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()
    assert progress.repairs["datestamps in the future"]
    assert progress.repairs["malformed datestamps"]


def test_an_unordered_list_whose_tokens_expire_is_had_in_full(store: Store) -> None:
    records = collection(60)
    records = records[1::2] + records[::2]
    with Provider(records, m.expiring(3, 100)) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()


def test_a_plus_that_gets_lost(store: Store) -> None:
    with Provider(None, m.decodes_twice(), plus=True) as provider:
        progress = harvest(store, provider.url)
        assert progress.outcome == "complete"
        assert progress.repairs["token respelt"] > 0
    assert set(held(store)) == provider.live()
    with Provider(None, plus=True) as provider:
        assert harvest(store, provider.url, RunOptions(full=True)).repairs["token respelt"] == 0


def test_many_records_of_one_second_behind_a_poisoned_one(store: Store) -> None:
    records = [Rec(f"oai:x.org:{i:04d}", "2024-05-01T00:00:00Z", f"wing word{i}") for i in range(50)]
    with Provider(records, m.poison("oai:x.org:0017")) as provider:
        progress = harvest(store, provider.url)
    assert set(held(store)) == provider.live() - {"oai:x.org:0017"}
    assert (progress.outcome, progress.failed) == ("complete", 1)


def test_a_list_cut_at_a_length_that_no_date_divides_is_a_gap(store: Store) -> None:
    stamps = ["2024-05-01T00:00:00Z"] * 30 + ["2024-05-02T00:00:00Z"] * 30
    records = [Rec(f"oai:x.org:{i:04d}", stamp, f"wing word{i}") for i, stamp in enumerate(stamps)]
    with Provider(records, m.capped(20)) as provider:
        progress = harvest(store, provider.url)
        assert progress.outcome == "incomplete"
        assert "end before their size" in progress.reason
        assert len(held(store)) == 40, "what came is kept"
        assert state(store).get("marks", {}) == {}
        provider.faults = ()
        assert harvest(store, provider.url).outcome == "complete"
        assert set(held(store)) == provider.live()


def test_a_size_that_nothing_can_confirm_is_told(store: Store) -> None:
    records = [Rec(f"oai:x.org:{i:04d}", "2024-05-01T00:00:00Z", f"wing word{i}") for i in range(30)]
    with Provider(records, m.sizes(2)) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert progress.repairs["sizes that could not be confirmed"] == 1
    assert set(held(store)) == provider.live()


def test_a_source_whose_sizes_are_wrong_is_reconciled_all_the_same(store: Store) -> None:
    with Provider(None, m.sizes(2), deleted="no") as provider:
        assert harvest(store, provider.url).outcome == "complete"
        gone = sorted(provider.live())[3]
        provider.records = [r for r in provider.records if r.identifier != gone]
        assert harvest(store, provider.url, RunOptions(reconcile=True)).outcome == "complete"
        assert set(held(store)) == provider.live()


def test_a_source_that_breaks_when_asked_for_news_is_listed_in_full(store: Store) -> None:
    broken = m.broken_verb("ListRecords")

    def fault(request: m.Request, reply: m.Reply) -> m.Reply:
        return m.Reply(b"", 500, {}) if "from" in request.arguments else reply

    with Provider(None, fault) as provider:
        assert harvest(store, provider.url).ok
        provider.records.append(Rec("oai:x.org:new", "2024-06-01T13:00:00Z", "new"))
        assert harvest(store, provider.url).ok
        assert set(held(store)) == provider.live()
        mark = state(store)["marks"]
        provider.faults = (broken, m.broken_verb("ListIdentifiers"))
        assert harvest(store, provider.url).outcome == "incomplete"
        assert state(store)["marks"] == mark


def test_a_source_that_denies_what_it_lists_is_not_believed(store: Store) -> None:
    other_names = m.rewritten(rb"oai:x\.org", rb"OAI:X.ORG", "ListIdentifiers")
    with Provider(None, m.cut_list(), other_names) as provider:
        progress = harvest(store, provider.url)
        assert progress.outcome == "incomplete"
        assert "idDoesNotExist" in progress.reason
    few = collection(12)
    with Provider(few, m.cut_list(), other_names, page=5) as provider:
        progress = harvest(store, provider.url, RunOptions(full=True))
        assert (progress.outcome, progress.failed) == ("complete", 12)
        assert "GetRecord does not know it" in failures(store)["OAI:X.ORG:0011"][0]


def test_a_set_of_a_thousand_levels_costs_that_set(store: Store) -> None:
    deep = Rec("oai:x.org:deep", "2024-05-01T00:00:00Z", "wing", sets=("a:" * 1000 + "a", "b"))
    with Provider([deep]) as provider:
        progress = harvest(store, provider.url)
    assert progress.ok
    assert progress.repairs["sets left out: their names are too long"] == 1
    with store.read() as view:
        assert [spec for spec, _ in view.sets()] == ["b"]


def test_a_source_that_can_list_but_not_give_is_not_asked_for_every_record(store: Store) -> None:
    def denied(request: m.Request, reply: m.Reply) -> m.Reply:
        wanted = request.verb in ("ListRecords", "GetRecord")
        return request.provider.error(request, "cannotDisseminateFormat") if wanted else reply

    records = [Rec(f"oai:x.org:{i:04d}", "2024-05-01T00:00:00Z") for i in range(290)]
    with Provider(records, denied, page=100) as provider:
        progress = harvest(store, provider.url)
        assert len(provider.requests) < 70
    assert progress.outcome == "incomplete"
    assert "cannotDisseminateFormat" in progress.reason
    assert state(store).get("marks", {}) == {}


def test_a_source_whose_lists_of_records_always_fail_is_not_complete(store: Store) -> None:
    with Provider(None, m.broken_verb("ListRecords")) as provider:
        for fetched in (len(provider.records), 0):  # all is fetched one by one, and then nothing is missing
            progress = harvest(store, provider.url)
            assert progress.outcome == "incomplete"
            assert "ListRecords fails: " in progress.reason and "HTTP status 500" in progress.reason
            assert progress.records + progress.deleted == fetched
            assert set(held(store)) == provider.live()
            assert state(store)["marks"] == {"": m.NOW}
        provider.faults = ()
        healed = harvest(store, provider.url)
    assert (healed.ok, healed.reason, healed.warning) == (True, "", "")


def test_a_source_without_lists_of_records_is_complete_with_a_warning(store: Store) -> None:
    with Provider(None, m.error_at(0, "badVerb")) as provider:
        progress = harvest(store, provider.url)
    assert (progress.outcome, progress.reason) == ("complete", "")
    assert progress.warning.startswith("ListRecords fails: ") and "badVerb" in progress.warning
    assert set(held(store)) == provider.live()


def test_of_two_versions_in_one_list_the_later_is_kept(store: Store) -> None:
    records = collection(40)
    stale = [
        replace(r, datestamp=f"2024-04-30T00:00:{i:02d}Z", title="old") for i, r in enumerate(records[:5])
    ]
    with Provider([*records, *stale], sizes=False) as provider:
        progress = harvest(store, provider.url)
    assert progress.ok
    assert held(store) == {r.identifier: r.title for r in records if not r.deleted}


def test_of_a_record_that_is_listed_as_deleted_and_not_the_record_itself_decides(store: Store) -> None:
    records = collection(12)
    with Provider([*records, replace(records[3], deleted=True)], sizes=False) as provider:
        progress = harvest(store, provider.url)
    assert progress.ok
    assert progress.repairs["lists that changed under way"]
    assert set(held(store)) == provider.live()


@pytest.mark.parametrize("cut", [False, True])
def test_a_repository_of_the_first_version(cut: bool, store: Store) -> None:
    records = collection(47, days=2)
    faults = [m.cut_list(), m.version_one()] if cut else [m.version_one()]
    with Provider(records, *faults, deleted="no") as provider:
        progress = harvest(store, provider.url)
        assert progress.outcome == "complete"
        assert progress.repairs["OAI-PMH 1.1"] == 1
        assert set(held(store)) == provider.live()
        provider.records.append(Rec("oai:x.org:new", "2024-06-01T13:00:00Z", "a new wing"))
        assert harvest(store, provider.url).outcome == "complete"
        assert set(held(store)) == provider.live()
        gone = provider.records.pop(3)
        assert harvest(store, provider.url, RunOptions(reconcile=True)).outcome == "complete"
        assert gone.identifier not in held(store)
        assert set(held(store)) == provider.live()


def test_a_repository_that_moved(store: Store) -> None:
    with Provider(None, m.moved()) as provider:
        progress = harvest(store, provider.root + "/old")
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()


@pytest.mark.parametrize("answer", ["noRecordsMatch", ""])
def test_tokens_that_bring_nothing_in_lists_without_size(answer: str, store: Store) -> None:
    with Provider(None, m.barren_tokens(answer), sizes=False) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()
    assert not progress.repairs["sizes that were wrong"]


def test_a_list_whose_last_token_brings_nothing_is_whole(store: Store) -> None:
    def one_more(request: m.Request, reply: m.Reply) -> m.Reply:
        if not request.listing or not reply.records or reply.token:
            return reply
        end = str(len(request.provider.select(request.arguments)))
        return replace(
            reply, body=re.sub(rb"</(List\w+)>", f"{m.token_to(request, end)}</\\1>".encode(), reply.body)
        )

    with Provider(collection(40), m.rewritten(rb"<resumptionToken[^>]*></resumptionToken>", b""), one_more,
                  sizes=False) as provider:  # fmt: skip
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()


def test_an_empty_list_is_not_believed_at_once(store: Store) -> None:
    def once(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.verb == "ListRecords":
            return replace(
                reply, body=re.sub(rb"<ListRecords>.*</ListRecords>", b"<ListRecords/>", reply.body)
            )
        return reply

    with Provider(None, once) as provider:
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


def test_a_check_that_was_broken_off_begins_anew(store: Store) -> None:
    def later(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.verb == "ListIdentifiers" and request.arguments.get("resumptionToken", "").endswith("|40"):
            return replace(reply, status=503, headers={"Retry-After": "86400"})
        return reply

    with Provider(None, m.cut_list(), later, sizes=False) as provider:
        assert harvest(store, provider.url).outcome == "incomplete"
        provider.faults = provider.faults[:1]
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


def test_a_check_that_was_broken_off_counts_anew(store: Store) -> None:
    """Else what it lists twice would hide that no list is longer than 30 records."""
    broken = m.barren_tokens("500"), m.dead(["GetRecord"])
    with Provider(None, m.capped(30)) as provider:
        provider.faults += (lambda q, r: r if q.verb == "ListIdentifiers" else broken[0](q, r), broken[1])
        assert harvest(store, provider.url).outcome == "incomplete"
        provider.faults = provider.faults[:1]
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


def test_what_failed_once_is_asked_for_when_it_is_listed_anew(store: Store) -> None:
    bad = "oai:x.org:0012"
    with Provider(None, m.malformed_record(bad, single=True)) as provider:
        assert harvest(store, provider.url).failed == 1
        for r in provider.records:
            r.datestamp = r.datestamp.replace("2024-05", "2024-07")
        provider.now = "2024-08-01T00:00:00Z"
        provider.faults = (m.dead(),)
        again = harvest(store, provider.url)
        assert (again.outcome, again.failed, again.owed) == ("incomplete", 0, 0)
    assert set(held(store)) == provider.live()
    assert failures(store) == {}


def test_any_number_of_records_that_are_broken_on_lists_alone(store: Store) -> None:
    records = collection(130)
    with Provider(records, *(m.malformed_record(r.identifier) for r in records), page=50) as provider:
        progress = harvest(store, provider.url)
    assert progress.ok
    assert set(held(store)) == provider.live()


def test_a_broken_record_is_asked_for_by_its_name_and_not_by_the_spelling_of_that(store: Store) -> None:
    records = [Rec("oai:x.org:a&b", "2024-05-01T00:00:00Z"), Rec("oai:x.org:c", "2024-05-01T00:00:00Z")]
    with Provider(records, m.malformed_record("oai:x.org:a&b")) as provider:
        assert harvest(store, provider.url).ok
    assert set(held(store)) == provider.live()


def test_some_of_what_is_listed_and_denied_are_failures(store: Store) -> None:
    odd = {r.identifier for r in collection() if r.identifier[-1] in "13"}

    def denied(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.arguments.get("identifier") in odd:
            return request.provider.error(request, "idDoesNotExist")
        return reply

    with Provider(None, m.dead(), denied) as provider:
        progress = harvest(store, provider.url)
    assert not progress.ok
    assert set(failures(store)) == odd
    assert set(held(store)) == provider.live() - odd


@pytest.mark.parametrize("now", ["1970-01-01T00:00:00Z", "2024-05-03T00:00:00Z", "yesterday"])
def test_long_lists_refused_by_a_source_whose_clock_is_wrong(now: str, store: Store) -> None:
    records = collection()
    records[40].datestamp = "2031-01-01T00:00:00Z"
    with Provider(records, m.refuses_long_lists()) as provider:
        provider.now = now
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()


def test_an_expired_token_and_a_from_that_finds_nothing(store: Store) -> None:
    def nothing(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.listing and "T" in request.arguments.get("from", ""):
            return request.provider.error(request, "noRecordsMatch")
        return reply

    with Provider(None, m.expiring(), nothing) as provider:
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


def test_a_list_that_changes_while_nobody_reads_it(store: Store) -> None:
    def later(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.arguments.get("resumptionToken", "").endswith("|20"):
            return replace(reply, status=503, headers={"Retry-After": "86400"})
        return reply

    with Provider(None, later, sizes=False) as provider:
        assert harvest(store, provider.url).outcome == "incomplete"
        provider.faults = ()
        for r in provider.records[:10]:  # to the end: the page after the last one read moves up before it
            r.datestamp = "2024-06-01T11:00:00Z"
        provider.records.sort(key=lambda r: r.datestamp)
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert progress.repairs["lists that changed under way"]
    assert set(held(store)) == provider.live()


def test_last_tokens_that_are_refused_are_not_pursued_to_the_second(store: Store) -> None:
    never = m.rewritten(
        rb"<resumptionToken[^>]*></resumptionToken>", b"<resumptionToken>null</resumptionToken>"
    )
    for sizes in (True, False):
        with Provider(None, never, sizes=sizes) as provider:
            progress = harvest(store, provider.url, RunOptions(full=True))
            assert progress.outcome == "complete"
            assert len(provider.requests) < 80
        assert set(held(store)) == provider.live()


def test_refused_tokens_of_records_that_no_date_divides_are_a_gap(store: Store) -> None:
    records = [Rec(f"oai:x.org:{i}", "2024-05-01T00:00:00Z", f"wing word{i}") for i in range(25)]
    with Provider(records, m.barren_tokens("badResumptionToken"), sizes=False) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "incomplete"
    assert not state(store).get("marks")


def test_a_list_in_circles_whose_size_is_too_small(store: Store) -> None:
    with Provider(None, m.repeated_token("ListRecords"), m.sizes(0.3)) as provider:
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


@pytest.mark.parametrize("count", [5, 320])
def test_what_had_gone_and_is_back_with_its_old_datestamp_is_taken(count: int, store: Store) -> None:
    believing = replace(QUICK, withhold_share=1.0)
    records = [Rec(f"oai:x.org:{i}", f"2024-05-01T00:{i // 60:02d}:{i % 60:02d}Z") for i in range(400)]
    with Provider(records, page=100, deleted="no") as provider:
        harvest(store, provider.url)
        provider.records = records[count:]
        assert (
            harvest(store, provider.url, RunOptions(reconcile=True), harvest=believing).outcome == "complete"
        )
        assert set(held(store)) == provider.live()
        provider.records = records
        back = harvest(store, provider.url, RunOptions(reconcile=True), harvest=believing)
        if count > 300:
            assert back.outcome == "incomplete", "said, and had by the next run"
            harvest(store, provider.url)
    assert set(held(store)) == provider.live()


def test_a_source_that_is_named_twice_is_harvested_twice(store: Store) -> None:
    with Provider() as provider:
        sources = [Source(provider.url, name="repo"), Source(provider.url + "#again", name="repo")]
        done = harvest_all(store, Settings(harvest=QUICK), sources, index=False)
    assert [p.outcome for p in done] == ["complete", "complete"]


@pytest.mark.parametrize("verbs", [("ListRecords",), ("ListRecords", "ListIdentifiers")])
def test_a_page_that_is_lost_by_a_source_that_minds_how_far_it_is(
    verbs: tuple[str, ...], store: Store
) -> None:
    lost = set[str]()

    def lose(request: m.Request, reply: m.Reply) -> m.Reply:
        third = len([q for q in request.provider.requests if q.verb == request.verb]) == 3
        if third and request.verb in verbs and request.verb not in lost:
            lost.add(request.verb)
            return replace(reply, status=502, body=b"")
        return reply

    with Provider(None, m.session_token(), lose, sizes=False) as provider:
        progress = harvest(store, provider.url)
    assert lost == set(verbs)
    assert progress.outcome == "complete"
    assert set(held(store)) == provider.live()


def test_an_index_that_is_offered_and_never_comes_is_told(store: Store) -> None:
    index = '<index><terms xmlns="urn:indlet:tf:1.0"><t f="1">air</t></terms></index>'

    def extended(request: m.Request, reply: m.Reply) -> m.Reply:
        body = reply.body
        if request.verb == "ListIndexFormats":
            offer = "<indexFormat><indexPrefix>tf_compact</indexPrefix></indexFormat>"
            body = request.provider._frame(request, f"<ListIndexFormats>{offer}</ListIndexFormats>").body
        return replace(reply, body=body.replace(m.OAI.encode(), FT_NAMESPACE.encode()))

    def once(request: m.Request, reply: m.Reply) -> m.Reply:
        return replace(reply, body=reply.body.replace(b"</metadata>", f"</metadata>{index}".encode(), 1))

    told = "records without the index that is offered"
    with Provider(None, extended) as provider:
        progress = harvest(store, provider.url)
        assert (progress.outcome, progress.form) == ("complete", "oai_dc+tf_compact")
        assert progress.repairs[told] == len(provider.live())
        provider.faults += (once,)
        assert not harvest(store, provider.url, RunOptions(full=True)).repairs[told], (
            "some may well have none"
        )


def test_an_index_that_cannot_be_had_for_now_is_not_given_up(store: Store) -> None:
    broken = False

    def extended(request: m.Request, reply: m.Reply) -> m.Reply:
        body = reply.body
        if request.verb == "ListIndexFormats":
            if broken:
                return replace(reply, status=503, body=b"")
            offer = "<indexFormat><indexPrefix>tf_compact</indexPrefix></indexFormat>"
            body = request.provider._frame(request, f"<ListIndexFormats>{offer}</ListIndexFormats>").body
        return replace(reply, body=body.replace(m.OAI.encode(), FT_NAMESPACE.encode()))

    with Provider(None, extended) as provider:
        assert harvest(store, provider.url).form == "oai_dc+tf_compact"
        broken = True
        progress = harvest(store, provider.url)
        assert (progress.outcome, progress.records) == ("failed", 0)
        assert "nothing was changed, try again later" in progress.reason
        broken = False
        assert harvest(store, provider.url).outcome == "complete"


@pytest.mark.parametrize("answer", ["noRecordsMatch", ""])
def test_a_size_and_a_token_that_agree_that_there_is_more_are_believed(answer: str, store: Store) -> None:
    records = [Rec(f"oai:x.org:{i}", "2024-05-01T00:00:00Z", f"wing word{i}") for i in range(25)]
    with Provider(records, m.barren_tokens(answer)) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "incomplete"
    assert "its tokens lead nowhere" in progress.reason


def test_a_source_that_loses_sight_of_its_records_for_a_while_is_asked_for_them_again(store: Store) -> None:
    """Some answer that they have nothing while their index is made anew."""

    def blind(request: m.Request, reply: m.Reply) -> m.Reply:
        return request.provider.error(request, "noRecordsMatch") if request.listing else reply

    with Provider(None, blind) as provider:
        assert harvest(store, provider.url).outcome == "complete"
        provider.faults = ()
        assert harvest(store, provider.url).outcome == "complete"
        assert set(held(store)) == provider.live(), "older than the first run, and new to us"
        provider.records.append(Rec("oai:x.org:new", "2024-06-01T13:00:00Z", "new"))
        provider.now, provider.faults = "2024-06-01T14:00:00Z", (blind,)
        assert harvest(store, provider.url).outcome == "complete"
        provider.now, provider.faults = "2024-06-01T15:00:00Z", ()
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


@pytest.mark.parametrize("day", ["2024-06-01", "2024-06-01T00:00:00Z"])
def test_what_is_dated_by_the_day_though_seconds_are_promised_is_not_missed(day: str, store: Store) -> None:
    records = [Rec(f"oai:x.org:{i}", f"2024-05-0{i + 1}{day[10:]}") for i in range(3)]
    with Provider(records) as provider:
        assert harvest(store, provider.url).outcome == "complete"
        provider.records.append(Rec("oai:x.org:new", day, "new"))  # in the afternoon of that day
        provider.now = "2024-06-01T18:00:00Z"
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


def test_a_clock_that_was_never_set(store: Store) -> None:
    with Provider(None) as provider:
        provider.now = "0001-01-01T00:00:00Z"
        assert harvest(store, provider.url).outcome == "complete"
        again = harvest(store, provider.url)
    assert (again.outcome, again.changed) == ("complete", 0)
    assert set(held(store)) == provider.live()


def test_a_source_that_wants_its_cookie_back(store: Store) -> None:
    with Provider(None, m.wants_its_cookie()) as provider:
        assert harvest(store, provider.url).outcome == "complete"
    assert set(held(store)) == provider.live()


def test_a_compressed_body_with_its_end_is_whole_whatever_length_was_announced(store: Store) -> None:
    with Provider(None, m.compressed(gzip.compress), m.announced_too_large()) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert progress.repairs["bodies shorter than announced"]
    assert not progress.repairs["retried: interrupted"]
    assert set(held(store)) == provider.live()


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("verb", ["ListRecords", ""])
def test_lists_that_are_cut_behind_their_first_page(verb: str, newest_first: bool, store: Store) -> None:
    with Provider(collection()[:: -1 if newest_first else 1], m.cut_list(1, verb)) as provider:
        progress = harvest(store, provider.url)
    assert (progress.outcome, progress.failed) == ("complete", 0)
    assert progress.repairs["lists that ended early or in circles"]
    assert set(held(store)) == provider.live()


@pytest.mark.parametrize("newest_first", [False, True])
def test_lists_that_are_cut_at_a_size_that_they_state(newest_first: bool, store: Store) -> None:
    """As where a search engine below gives no more than so many, and counts no further."""

    def counted(request: m.Request, reply: m.Reply) -> m.Reply:
        body = re.sub(
            rb'completeListSize="(\d+)"',
            lambda found: b'completeListSize="%d"' % min(int(found[1]), 20),
            reply.body,
        )
        return replace(reply, body=body)

    with Provider(collection()[:: -1 if newest_first else 1], m.capped(20), counted) as provider:
        progress = harvest(store, provider.url)
    assert (progress.outcome, progress.failed) == ("complete", 0)
    assert set(held(store)) == provider.live()


def test_a_list_of_a_round_number_that_is_whole_costs_two_requests_at_most(tmp_path: Path) -> None:
    for count, asked in ((20, ["ListRecords", "ListIdentifiers", "ListIdentifiers"]), (23, ["ListRecords"])):
        with Provider(collection(count), page=100) as provider, store_in(tmp_path / str(count)) as store:
            progress = harvest(store, provider.url, RunOptions(full=True))
            assert [q.verb for q in provider.requests if q.listing] == asked
        assert progress.ok
        assert not progress.repairs["lists that ended early or in circles"]


def test_a_body_that_is_longer_than_announced_is_read_to_its_end(store: Store) -> None:
    """As where a server counts characters, and a character takes more than one byte."""
    with Provider(None, m.announced_too_large(-20)) as provider:
        progress = harvest(store, provider.url)
    assert progress.outcome == "complete"
    assert progress.repairs["bodies longer than announced"]
    assert set(held(store)) == provider.live()


def test_dublin_core_without_the_element_around_it(store: Store) -> None:
    with Provider(None, m.rewritten(rb"<oai_dc:dc [^>]*>(.*?)</oai_dc:dc>", rb"\1")) as provider:
        progress = harvest(store, provider.url)
    assert progress.ok
    assert progress.repairs["metadata without an element around them"] == len(provider.live())
    assert not progress.repairs["records fetched alone"]
    assert held(store) == {r.identifier: r.title for r in provider.records if not r.deleted}


@pytest.mark.parametrize("origin", ["http://[bad/oai", "http:///oai", "http://x.org/" + "x" * 10_000])
def test_records_that_call_what_is_no_address_their_origin_are_those_of_the_source(
    origin: str, store: Store
) -> None:
    about = (
        '<about><provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance">'
        f'<originDescription harvestDate="2024-01-01" altered="false"><baseURL>{origin}</baseURL>'
        "<identifier>oai:y:1</identifier><datestamp>2024-01-01</datestamp>"
        "<metadataNamespace>urn:z</metadataNamespace></originDescription></provenance></about>"
    )
    with Provider(None, m.rewritten(rb"</metadata>", b"</metadata>" + about.encode())) as provider:
        progress = harvest(store, provider.url)
    assert (progress.outcome, progress.failed) == ("complete", 0)
    assert set(held(store)) == provider.live()
    with store.read() as view:
        assert [origin.name for origin in view.origins("source")] == ["repo"]
