"""Harvesters that others wrote get everything, and nothing else: whole, by set, by date, with deletions."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oaipmh_scythe import HTTPConfig, Scythe

from indlet.oai.dates import written
from indlet.settings import Settings
from indlet.store import Store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # sickle's own, at its first compilation
    from sickle import Sickle

Provider = Any  # of conftest.py
Harvest = Callable[..., set[tuple[str, str, bool]]]


class Running(NamedTuple):
    url: str
    store: Store

    def expected(self, spec: str = "", since: str = "", until: str = "9") -> set[tuple[str, str, bool]]:
        """(identifier, title, deleted) as the store has them."""
        with self.store.read() as view:
            return {
                (s.identifier, (json.loads(s.metadata).get("title") or [""])[0], bool(s.deleted))
                for s in view.page(1000)
                if f"{s.sets}:".startswith(f"{spec}:" if spec else "")
                and since <= written(s.datestamp) <= until
            }


@pytest.fixture
def repository(filled: Provider, running: Callable[[Store, Settings], str]) -> Iterator[Running]:
    yield Running(running(filled.store, filled.settings) + "/oai", filled.store)


def sickle(url: str, method: str = "GET", **arguments: str) -> set[tuple[str, str, bool]]:
    client = Sickle(url, http_method=method)
    return {
        (r.header.identifier, "" if r.deleted else r.metadata["title"][0], r.deleted)
        for r in client.ListRecords(metadataPrefix="oai_dc", ignore_deleted=False, **arguments)
    }


def scythe(url: str, method: str = "GET", **arguments: Any) -> set[tuple[str, str, bool]]:
    if "from" in arguments:
        arguments["from_"] = arguments.pop("from")
    if "set" in arguments:
        arguments["set_"] = arguments.pop("set")
    client: Any
    with Scythe(url, http_config=HTTPConfig(http_method=method)) as client:
        return {
            (r.header.identifier, "" if r.deleted else r.metadata["title"][0], r.deleted)
            for r in client.list_records(metadata_prefix="oai_dc", **arguments)
        }


# Its list objects keep the last page alone: a whole harvest goes through onRecord.
PERL = r"""
use HTTP::OAI; use JSON::PP;
my ($url, %arguments) = @ARGV;
my $h = HTTP::OAI::Harvester->new(baseURL => $url);
my $id = $h->Identify; die $id->message if $id->is_error;
my $list = $h->ListRecords(metadataPrefix => 'oai_dc', %arguments, onRecord => sub {
  my ($r) = @_; my $title = '';
  if (my $m = $r->metadata) {
    ($title) = map { $_->textContent } $m->dom->findnodes('.//*[local-name()="title"]');
  }
  print encode_json([$r->identifier, $title // '', $r->is_deleted ? JSON::PP::true : JSON::PP::false]), "\n";
});
die $list->message if $list->is_error;
"""


def http_oai(url: str, method: str = "GET", **arguments: str) -> set[tuple[str, str, bool]]:
    flat = [part for pair in arguments.items() for part in pair]
    done = subprocess.run(["perl", "-e", PERL, url, *flat], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return {tuple(json.loads(line)) for line in done.stdout.splitlines()}


def catmandu(url: str, method: str = "GET", **arguments: str) -> set[tuple[str, str, bool]]:
    options = [part for name, value in arguments.items() for part in (f"--{name}", value)]
    done = subprocess.run(
        ["catmandu", "convert", "OAI", "--url", url, "--metadataPrefix", "oai_dc", *options,
         "--listIdentifiers", "0", "to", "JSON", "--line_delimited", "1"],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return {
        (r["_identifier"], (r.get("title") or [""])[0], r.get("_status") == "deleted")
        for r in map(json.loads, done.stdout.splitlines())
    }


def _has(*modules: str) -> bool:
    if not shutil.which("perl"):
        return False
    command = ["perl", *(f"-M{m}" for m in modules), "-e", "1"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


CLIENTS = [
    sickle,
    scythe,
    pytest.param(
        http_oai, marks=pytest.mark.skipif(not _has("HTTP::OAI", "JSON::PP"), reason="not installed")
    ),
    pytest.param(
        catmandu,
        marks=pytest.mark.skipif(
            not shutil.which("catmandu") or not _has("Catmandu::OAI"), reason="not installed"
        ),
    ),
]


@pytest.mark.parametrize("harvest", CLIENTS)
def test_the_whole(repository: Running, harvest: Harvest) -> None:
    assert harvest(repository.url) == repository.expected()


@pytest.mark.parametrize("harvest", CLIENTS)
def test_a_set(repository: Running, harvest: Harvest) -> None:
    assert harvest(repository.url, set="papers:b") == repository.expected("papers:b")


@pytest.mark.parametrize("harvest", CLIENTS)
def test_a_window(repository: Running, harvest: Harvest) -> None:
    since, until = "2023-11-14T22:14:00Z", "2023-11-14T22:15:00Z"
    found = harvest(repository.url, **{"from": since, "until": until})
    assert found == repository.expected("", since, until)
    assert len(found) == 14


@pytest.mark.parametrize("harvest", CLIENTS[:2])
def test_over_post(repository: Running, harvest: Harvest) -> None:
    assert harvest(repository.url, "POST") == repository.expected()


def test_the_other_verbs(repository: Running, tmp_path: Path) -> None:
    client = Sickle(repository.url)
    assert client.Identify().repositoryName == "Wings"
    assert sorted(s.setSpec for s in client.ListSets()) == ["papers", "papers:a", "papers:b"]
    assert "oai_dc_tf" in [f.metadataPrefix for f in client.ListMetadataFormats()]
    names = {h.identifier for h in client.ListIdentifiers(metadataPrefix="oai_dc")}
    assert names == {name for name, _, _ in repository.expected()}
    name, title, _ = sorted(repository.expected())[0]
    assert client.GetRecord(identifier=name, metadataPrefix="oai_dc").metadata["title"] == [title]
