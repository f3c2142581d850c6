"""`indlet identify`: our own node passes; each fault of the misbehaving provider is called by its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.hostile import misbehaving as bad
from tests.provider.serve.conftest import SETTINGS, Clock, record
from tests.provider.serve.conftest import running as running
from tests.stores import store_in

from indlet.cli import cli
from indlet.settings.file import from_mapping
from indlet.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with store_in(tmp_path / "data", clock=Clock()) as opened:
        yield opened


def identify(url: str, *options: str) -> Result:
    return CliRunner().invoke(cli, ["identify", url, "--timeout", "5", *options])


def findings(url: str, *options: str) -> Any:
    return json.loads(identify(url, "--json", *options).output)


@pytest.mark.parametrize("endpoint", ["oai", "ft-oai"])
def test_a_node_of_ours_passes(store: Store, running: Callable[..., str], endpoint: str) -> None:
    with store.write() as tx:
        origin = tx.origin("hierarchy", "papers")
        tx.put(origin, [record(n, ("papers:a",)) for n in range(25)])
        tx.delete(origin, [record(3).identifier])
    root = running(store, from_mapping(SETTINGS))
    found = findings(f"{root}/{endpoint}", "--pages", "0")
    assert found["passed"] and found["records"] == 25
    told = {one["about"]: one["text"] for one in found["findings"] if one["level"] == "good"}
    assert told.keys() >= {
        "base URL", "granularity", "deleted records", "formats", "sets", "list of records", "last page",
        "records", "selective harvest", "errors", "compression",
    }  # fmt: skip
    shown = identify(f"{root}/{endpoint}", "--pages", "2")
    assert shown.exit_code == 0 and "nothing is wrong" in shown.output and "--pages 0" in shown.output
    # By a name that leads to the same place the base URL differs, and that is told.
    other = findings(root.replace("127.0.0.1", "localhost") + f"/{endpoint}")
    assert any(one["about"] == "base URL" and one["level"] == "wrong" for one in other["findings"])


def said(pattern: bytes, instead: bytes) -> bad.Fault:
    """Every answer, with something put in the place of something else."""
    return lambda request, reply: replace(reply, body=reply.body.replace(pattern, instead))


FAULTS: list[tuple[list[bad.Fault], dict[str, Any], str, str]] = [
    ([], {"granularity": "YYYY"}, "granularity", "it is one of"),
    ([], {"granularity": "YYYY-MM-DD"}, "records", "not in the granularity"),
    ([], {"deleted": "perhaps"}, "deleted records", "is none of"),
    ([said(b"<adminEmail>a@x.org", b"<adminEmail>nobody")], {}, "Identify", "adminEmail"),
    ([said(b"<protocolVersion>2.0", b"<protocolVersion>1.9")], {}, "Identify", "has to be 2.0"),
    ([said(b"<metadataPrefix>oai_dc", b"<metadataPrefix>marc")], {}, "formats", "oai_dc is missing"),
    ([bad.html(10**9)], {}, "list of records", "no usable answer"),
    ([bad.repeated_token()], {}, "list of records", "comes twice"),
    ([bad.sizes(2.0)], {}, "last page", "were announced"),
    ([bad.ignores("from", "until")], {}, "selective harvest", "where"),
    ([bad.missing_namespaces()], {}, "list of records", "repaired"),
    ([], {}, "errors", "instead of badArgument"),
    (
        [bad.rewritten(b"<identifier>", b"<wrong/><identifier>", "ListRecords")],
        {},
        "list of records",
        "schema",
    ),
]


@pytest.mark.parametrize(("faults", "options", "about", "text"), FAULTS)
def test_each_fault_is_called_by_its_name(
    faults: list[bad.Fault], options: dict[str, Any], about: str, text: str
) -> None:
    with bad.Provider(None, *faults, **options) as provider:
        found = findings(provider.url, "--pages", "0")
    assert not found["passed"]
    wrong = [one["text"] for one in found["findings"] if one["level"] == "wrong" and one["about"] == about]
    assert any(text in one for one in wrong), found["findings"]


@pytest.mark.parametrize("fault", [bad.xml_bomb(), bad.gzip_bomb(), bad.stall(60.0, 10**9)])
def test_a_hostile_answer_ends_the_check_within_bounds(fault: bad.Fault) -> None:
    with bad.Provider(None, fault) as provider:
        done = identify(provider.url, "--timeout", "1")
    assert done.exit_code in (0, 1) and not isinstance(done.exception, MemoryError | AssertionError)


def test_nobody_there_is_one_finding() -> None:
    done = identify("http://127.0.0.1:9/oai")
    assert done.exit_code == 1 and "one thing is wrong" in done.output


def test_a_host_that_is_not_known_is_reported_without_the_number_of_an_error() -> None:
    told = identify("http://no-such-host.invalid/oai").output
    assert "such host: " in " ".join(told.split()) and "[Errno" not in told


def test_one_page_is_not_called_pages() -> None:
    with bad.Provider(page=100) as provider:
        told = " ".join(identify(provider.url, "--pages", "1").output.split())
    assert "on 1 page," in told and "1 pages" not in told
