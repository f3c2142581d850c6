"""A feed or OAI-PMH? What a reader pays to keep up with a collection, and what it misses.

    python -m bench.feeds [--records 5000] [--json FILE]

A provider changes by a few or by many records between two visits of a reader. The reader comes back by the
newest page of the feed alone, by the feed and its archives (RFC 5005) as far as it does not know them, or by
ListRecords from its last responseDate. Bytes are those of bodies in gzip; a conditional request is made where
the protocol has one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import httpx
from bench.corpus import record, texts
from bench.serve import next_token
from lxml import etree

from indlet.oai.dates import written
from indlet.provider.serve import application
from indlet.settings import Node, Settings
from indlet.store import Store

CHANGES: Final = (0, 10, 40, 200, 2000)
ROOT: Final = "http://127.0.0.1"
ATOM: Final = "{http://www.w3.org/2005/Atom}"
GONE: Final = "{http://purl.org/atompub/tombstones/1.0}deleted-entry"


@dataclass
class Visit:
    way: str
    changes: int
    requests: int = 0
    bytes: int = 0
    seen: int = 0


class Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Reader:
    """Asks, and counts what came."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.visit = Visit("", 0)
        self.tags: dict[str, str] = {}

    async def get(self, address: str, *, remember: bool = False) -> bytes:
        headers = {"If-None-Match": self.tags[address]} if address in self.tags else {}
        async with self._client.stream("GET", address, headers=headers) as response:
            raw = b"".join([chunk async for chunk in response.aiter_raw()])
            self.visit.requests += 1
            self.visit.bytes += len(raw)
            if remember:
                self.tags[address] = response.headers["etag"]
            if response.status_code == 304:
                return b""
            response.raise_for_status()
        return httpx.Response(200, headers=response.headers, content=raw).content

    async def feed(self, known: set[str], archives: bool) -> set[str]:
        """The entries that a visit shows; archives that are known already are not asked for."""
        address, found = "/feed.atom", set[str]()
        while address:
            body = await self.get(address, remember=address == "/feed.atom")
            if not body:
                break
            root = etree.fromstring(body)
            found |= {
                f"{e.findtext(f'{ATOM}id')} {e.findtext(f'{ATOM}updated')}" for e in root.iter(f"{ATOM}entry")
            }
            found |= {f"{e.get('ref')} {e.get('when')}" for e in root.iter(GONE)}
            links = [e.get("href", "") for e in root.findall(f"{ATOM}link[@rel='prev-archive']")]
            address = links[0].removeprefix(ROOT) if archives and links and links[0] not in known else ""
            known.update(links)
        return found

    async def oai(self, since: str) -> set[str]:
        address, found = f"/oai?verb=ListRecords&metadataPrefix=oai_dc&from={since}", set[str]()
        while address:
            body = await self.get(address)
            root = etree.fromstring(body)
            heads = root.iter("{http://www.openarchives.org/OAI/2.0/}header")
            found |= {f"{h.findtext('{*}identifier')} {h.findtext('{*}datestamp')}" for h in heads}
            token = next_token(body)
            address = f"/oai?verb=ListRecords&resumptionToken={token}" if token else ""
        return found


async def measured(folder: Path, records: int) -> list[Visit]:
    clock, visits = Clock(), list[Visit]()
    everything = list(map(record, texts(0, records + sum(CHANGES), 60, 1)))
    with Store.open(folder, clock=clock) as store:
        with store.write() as tx:
            origin = tx.origin("hierarchy", "texts")
            tx.put(origin, everything[:records])
        settings = Settings(node=Node(base_url=ROOT, admin_email=("a@example.org",)))
        transport = httpx.ASGITransport(app=application(store, settings, clock=clock))
        headers = {"Accept-Encoding": "gzip, identity;q=0.1"}
        async with httpx.AsyncClient(transport=transport, base_url=ROOT, headers=headers) as client:
            feeds, archived, harvester = Reader(client), Reader(client), Reader(client)
            known: set[str] = set()
            await feeds.feed(set(), archives=False)
            await archived.feed(known, archives=True)
            done = records
            for count in CHANGES:
                clock.now += 3600
                last = written(int(clock.now))
                with store.write() as tx:
                    # A tenth of the changes are deletions.
                    changed = tx.delete(origin, [r.identifier for r in everything[done - count // 10 : done]])
                    changed += tx.put(origin, everything[done : done + count - count // 10])
                done += count - count // 10
                for way, reader in (("feed", feeds), ("feed and archives", archived), ("OAI-PMH", harvester)):
                    reader.visit = Visit(way, changed)
                    visits.append(reader.visit)
                    if reader is harvester:
                        found = await reader.oai(last)
                    else:
                        found = await reader.feed(known if reader is archived else set(), reader is archived)
                    reader.visit.seen = sum(one.endswith(last) for one in found)
    return visits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        visits = asyncio.run(measured(Path(folder) / "data", given.records))
    print("| changes since | way | requests | bytes | changes seen |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for one in visits:
        print(f"| {one.changes:,} | {one.way} | {one.requests} | {one.bytes:,} | {one.seen:,} |")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in visits], indent=2))


if __name__ == "__main__":
    main()
