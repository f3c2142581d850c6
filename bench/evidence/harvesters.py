"""One harvest by one harvester, in a process of its own, told as one JSON object.

    python -m bench.evidence.harvesters NAME URL

`ended` is "well" if the harvester came to its end without complaint, "said" if it told that something is
wrong, "broke" if it failed by an error of its own making. Others run with the retries and timeouts that
their documentation offers; the pauses between retries are short for all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, Final, cast

from bench import harvest_others as others

TIMEOUT: Final = 2.0
RETRIES: Final = 4
BUSY: Final = (429, 500, 502, 503, 504)
# Errors that a program does not raise on purpose: nobody expected the answer that caused them.
OWN: Final = (AttributeError, TypeError, KeyError, IndexError, RecursionError, AssertionError, MemoryError)

Told = dict[str, Any]


def indlet(url: str) -> Told:
    from indlet.service.pipeline import harvest_all
    from indlet.settings import Harvest, Settings, Source
    from indlet.store import Store

    quick = Harvest(
        retries=RETRIES, backoff_seconds=0.05, backoff_limit_seconds=0.2, stall_seconds=TIMEOUT,
        timeout_seconds=TIMEOUT, retry_after_limit_seconds=5, response_bytes=64 << 20,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, Store.open(folder) as store:
        (run,) = harvest_all(store, Settings(harvest=quick), [Source(url, name="x")], index=False)
        with store.read() as view:
            live = {
                s.identifier: (s.record.metadata.get("title") or [""])[0]
                for s in view.changes()
                if not s.deleted
            }
    return {
        "ended": "well" if run.ok else "said",
        "live": live,
        "why": run.reason or (f"{run.failed} records recorded as failures" if run.failed else ""),
    }


def sickle(url: str) -> Told:
    from sickle import Sickle

    def records() -> Any:
        client = Sickle(
            url, max_retries=RETRIES, retry_status_codes=BUSY, default_retry_after=0.1, timeout=TIMEOUT
        )
        for record in client.ListRecords(metadataPrefix="oai_dc"):
            title = "" if record.deleted else (record.metadata.get("title") or [""])[0]
            yield record.header.identifier, title, record.deleted

    return listed(records)


def scythe(url: str) -> Told:
    from oaipmh_scythe import Scythe

    def records() -> Any:
        client = Scythe(
            url, max_retries=RETRIES, retry_status_codes=BUSY, default_retry_after=1, timeout=TIMEOUT
        )
        with client:
            for record in cast(Any, client.list_records(metadata_prefix="oai_dc")):
                title = "" if record.deleted else (record.metadata.get("title") or [""])[0]
                yield record.header.identifier, title, record.deleted

    return listed(records)


def pyoai(url: str) -> Told:
    import socket

    from bench.pyoai import client, metadata

    def records() -> Any:
        socket.setdefaulttimeout(TIMEOUT)
        registry = metadata.MetadataRegistry()
        registry.registerReader("oai_dc", metadata.oai_dc_reader)
        source = client.Client(url, registry, force_http_get=True)
        source.ignoreBadCharacters(True)
        for header, described, _ in source.listRecords(metadataPrefix="oai_dc"):
            title = "" if described is None else (described.getField("title") or [""])[0]
            yield header.identifier(), title, header.isDeleted()

    return listed(records)


def metha(url: str) -> Told:
    """metha-sync keeps the answers month by month; metha-cat tells what there is."""
    from lxml import etree

    with tempfile.TemporaryDirectory() as folder:
        sync = [others.metha("metha-sync"), "-T", f"{TIMEOUT:.0f}s", "-r", RETRIES, "-base-dir", folder, url]
        done = subprocess.run([str(part) for part in sync], capture_output=True, check=False)
        show = [str(others.metha("metha-cat")), "-base-dir", folder, url]
        shown = subprocess.run(show, capture_output=True, check=False)
    live: dict[str, str] = {}
    parser = etree.XMLParser(recover=True, huge_tree=True)
    tree = etree.fromstring(shown.stdout, parser) if shown.stdout else None
    for record in () if tree is None else tree.iterfind("{*}record"):
        identifier = record.findtext("{*}header/{*}identifier") or ""
        if record.find("{*}header[@status='deleted']") is not None:
            live.pop(identifier, None)
        else:
            live[identifier] = record.findtext(".//{http://purl.org/dc/elements/1.1/}title") or ""
    why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] if done.returncode else ""
    broke = b"panic:" in done.stderr
    return {
        "ended": "broke" if broke else "said" if done.returncode else "well",
        "live": live,
        "why": why[-200:],
    }


def oai_pmh_js(url: str) -> Told:
    """oai-pmh, for Node."""
    return _spoken(["node", "-e", NODE, url])


def listed(records: Callable[[], Any]) -> Told:
    """What came out of an iterator of records, up to the end or to the error that it raised."""
    live: dict[str, str] = {}
    told: Told = {"ended": "well", "live": live, "why": ""}
    try:
        for count, (identifier, title, deleted) in enumerate(records()):
            if deleted:
                live.pop(identifier, None)
            else:
                live[identifier] = title or ""
            if count > 20_000:
                raise SystemExit("endless")
    except SystemExit:
        told |= {"ended": "endless", "why": "the list went on for ever"}
    except OWN as e:
        told |= {"ended": "broke", "why": f"{type(e).__name__}: {e}"[:200]}
    except Exception as e:  # whatever the harvester raises on purpose
        told |= {"ended": "said", "why": f"{type(e).__name__}: {e}"[:200]}
    return told


NODE: Final = (
    others.NODE.partition("async")[0]
    + """
const live = {}; let count = 0; let ended = 'well'; let why = '';
async function main(url) {
  const client = new OaiPmh(url, { retryMin: 0.1, retryMax: 5 });
  for await (const record of client.listRecords({ metadataPrefix: 'oai_dc' })) {
    const header = record.header;
    if (header.$ && header.$.status === 'deleted') { delete live[header.identifier]; continue; }
    const dc = record.metadata && record.metadata['oai_dc:dc'];
    const title = dc && dc['dc:title'];
    live[header.identifier] = String((Array.isArray(title) ? title[0] : title) || '');
    if (++count > 20000) { ended = 'endless'; return; }
  }
}
main(process.argv[1]).catch(error => {
  const own = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  ended = own ? 'broke' : 'said'; why = String(error).slice(0, 200);
}).then(() => process.stdout.write(JSON.stringify({ ended, live, why }), () => process.exit(0)));
"""
)
PERL: Final = r"""
use strict; use warnings; use HTTP::OAI; use JSON::PP; binmode STDOUT, ':utf8';
my $h = HTTP::OAI::Harvester->new(baseURL => $ARGV[0]);
$h->timeout(2) if $h->can('timeout');
my %live; my $count = 0; my $ended = 'well'; my $why = '';
sub seen {
  my $rec = shift;
  if ($rec->is_deleted) { delete $live{$rec->identifier} }
  else {
    my $dom = $rec->metadata ? $rec->metadata->dom : undef;
    my ($t) = $dom ? $dom->findnodes('.//*[local-name()="title"]') : ();
    $live{$rec->identifier} = $t ? $t->textContent : '';
  }
  if (++$count > 20000) { $ended = 'endless'; die "endless\n"; }
}
eval {
  my $r = $h->ListRecords(metadataPrefix => 'oai_dc', onRecord => \&seen);
  if ($r->is_error) { $ended = 'said'; $why = $r->code . ' ' . $r->message; }
  1;
} or do { if ($ended ne 'endless') { $ended = 'said'; $why = substr($@, 0, 200); } };
print JSON::PP->new->encode({ended => $ended, live => \%live, why => $why});
"""


def http_oai(url: str) -> Told:
    """HTTP::OAI, in Perl."""
    return _spoken(["perl", "-e", PERL, url])


def _spoken(command: list[str]) -> Told:
    """What a program in another language tells."""
    done = subprocess.run(command, capture_output=True, check=False)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return {"ended": "broke", "live": {}, "why": done.stderr.decode(errors="replace")[-200:]}
    return dict(told)


HARVESTERS: Final = {
    "indlet": indlet,
    "sickle": sickle,
    "scythe": scythe,
    "pyoai": pyoai,
    "metha": metha,
    "oai-pmh.js": oai_pmh_js,
    "HTTP::OAI": http_oai,
}


if __name__ == "__main__":
    print(json.dumps(HARVESTERS[sys.argv[1]](sys.argv[2])))
