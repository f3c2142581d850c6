"""One harvest by one harvester, in a process of its own, told as one JSON object.

    python -m bench.evidence.harvesters NAME URL

`ended` is "well" if the harvester came to its end without complaint, "said" if it told that something is
wrong, "broke" if it failed by an error of its own making. Others run with the retries and timeouts that
their documentation offers; the pauses between retries are short for all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from typing import Any, Final, cast

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
    """HTTP::OAI, a harvester in Perl (Debian: libhttp-oai-perl)."""
    import subprocess

    done = subprocess.run(["perl", "-e", PERL, url], capture_output=True, check=False)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return {"ended": "broke", "live": {}, "why": done.stderr.decode(errors="replace")[-200:]}
    return dict(told)


HARVESTERS: Final = {"indlet": indlet, "sickle": sickle, "scythe": scythe, "HTTP::OAI": http_oai}


if __name__ == "__main__":
    print(json.dumps(HARVESTERS[sys.argv[1]](sys.argv[2])))
