"""Bytes and load: crawling the content beside harvesting its statistics.

nginx serves the files and `wget --mirror` fetches them: the content crawl. A provider serves records of the
same files, and a client that follows tokens and parses nothing fetches every list in every coding. Then the
two ways to a searchable index are run as a whole: mirror and index, or harvest. All of it once for everything
and once after a quarter of the files changed. Bytes are those of messages with their headers.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import statistics
import time
import urllib.parse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.evidence import complexity
from bench.evidence.figures import COLOURS, MARKERS, Figures, bars, logarithmic, picture, table
from bench.evidence.material import reuters
from bench.evidence.setting import Found, Setting
from bench.evidence.statistics import spread
from bench.processes import Cost, Node, Server, free_port, indlet, size_of
from bench.processes import run as execute
from bench.serve import decoded, next_token

TITLE = "Bytes and load"
CODINGS: Final = ("identity", "gzip", "br", "zstd")
LISTS: Final = {
    "oai_dc": "/oai?verb=ListRecords&metadataPrefix=oai_dc",
    **{
        form: f"/ft-oai?verb=ListRecords&metadataPrefix=oai_dc&indexPrefix={form}"
        for form in ("tf_basic", "tf_boolean", "tf_positions", "tf_compact")
    },
}
NGINX = """\
daemon off; master_process off; error_log {work}/nginx.error; pid {work}/nginx.pid;
events {{}}
http {{
  log_format meter '$request_length $bytes_sent $status';
  access_log {work}/nginx.log meter;
  client_body_temp_path {work}/t; proxy_temp_path {work}/t; fastcgi_temp_path {work}/t;
  uwsgi_temp_path {work}/t; scgi_temp_path {work}/t;
  gzip on; gzip_types *; gzip_comp_level 6; gzip_min_length 100; sendfile on; keepalive_requests 1000000;
  default_type text/sgml;
  server {{ listen 127.0.0.1:{port}; location / {{ root {root}; autoindex on; }} }}
}}
"""


class Content:
    """nginx over the files, and wget that mirrors them."""

    def __init__(self, work: Path, root: Path, compressed: bool) -> None:
        work.mkdir()
        self.work, self.compressed = work, compressed
        port = free_port()
        (work / "nginx.conf").write_text(NGINX.format(work=work, root=root, port=port))
        self.address = f"http://127.0.0.1:{port}/"
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.server = Server([nginx, "-c", work / "nginx.conf", "-p", work], self.address)

    def mirror(self) -> Found:
        """What one run of wget cost: it fetches what is new or changed since the last."""
        log = self.work / "nginx.log"
        log.write_text("")  # nginx appends
        before = self.server.cpu()
        command = ["wget", "--mirror", "--no-verbose", "--no-parent", "--no-host-directories"]
        command += ["--execute", "robots=off"]
        if self.compressed:
            command.append("--compression=gzip")
        cost = execute([*command, "-P", self.work / "mirror", self.address])
        lines = [[int(field) for field in line.split()] for line in log.read_text().splitlines()]
        return {
            "requests": len(lines),
            "bytes": sum(line[0] + line[1] for line in lines),
            "server_cpu": self.server.cpu() - before,
            "client_cpu": cost.cpu,
            "seconds": cost.seconds,
        }


def fetch(node: Node, path: str, coding: str, since: str = "") -> Found:
    """One list to its end, by a client that does nothing with it."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=120)
    path, _, query = path.partition("?")
    following = f"{query}&from={since}" if since else query
    records = size = requests = 0
    before, own, began = node.cpu(), time.process_time(), time.perf_counter()
    while following:
        connection.request("GET", f"{path}?{following}", headers={"Accept-Encoding": coding})
        response = connection.getresponse()
        raw = response.read()
        assert response.status == 200, raw[:300]
        requests += 1
        # What http.client sends: the request line, Host, Accept-Encoding.
        size += len(path) + len(following) + len(coding) + 70
        size += len(raw) + sum(len(k) + len(v) + 4 for k, v in response.getheaders()) + 19
        plain = decoded(raw, response.headers.get("Content-Encoding", "identity"))
        records += plain.count(b"<datestamp>")
        token = next_token(plain)
        verb = query.partition("&")[0]
        following = f"{verb}&resumptionToken={urllib.parse.quote(token)}" if token else ""
    seconds = time.perf_counter() - began
    connection.close()
    return {
        "requests": requests,
        "records": records,
        "bytes": size,
        "server_cpu": node.cpu() - before,
        "client_cpu": time.process_time() - own,
        "seconds": seconds,
    }


def by_value(files: Path, since: float) -> Found:
    """What a list would move that carries the files themselves, as MPEG-21 DIDL does: in Base64, 500 a page.

    Worked out, not fetched: no repository here disseminates content. Without headers and without metadata.
    """
    import base64
    import gzip

    import brotli  # type: ignore[import-untyped]
    import zstandard

    chosen = [path for path in sorted(files.rglob("*.sgm")) if path.stat().st_mtime >= since]
    codings: dict[str, Callable[[bytes], int]] = {
        "identity": len,
        "gzip": lambda page: len(gzip.compress(page, 6)),
        "br": lambda page: len(brotli.compress(page, quality=5)),
        "zstd": lambda page: len(zstandard.compress(page, 3)),
    }
    rows: Found = {coding: {"requests": 0, "bytes": 0} for coding in codings}
    for at in range(0, len(chosen), 500):
        page = b"\n".join(base64.b64encode(path.read_bytes()) for path in chosen[at : at + 500])
        for coding, size in codings.items():
            rows[coding]["requests"] += 1
            rows[coding]["bytes"] += size(page)
    return rows


def run(setting: Setting) -> Found:
    count = setting.pick(400, 5268, 21_578)
    material = reuters(setting.collection("reuters21578"), count, setting.seed)
    files = setting.work / "files"
    old = time.time() - 86_400
    for place, story in enumerate(material.stories):
        path = files / f"{place // 500:02}" / f"{place // 25 % 20:02}" / f"{story.number:05}.sgm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(story.sgml, encoding="latin-1")
        os.utime(path, (old, old))
    hierarchy = f'[[hierarchy]]\nroot = "{files}"\nname = "news"\n'
    node = Node(setting.work / "node", "provider", f"[analysis]\npositions = true\n{hierarchy}")
    tools = all(shutil.which(name) or Path(f"/usr/sbin/{name}").exists() for name in ("nginx", "wget"))
    found: Found = {
        "collection": material.name,
        "files": len(material.stories),
        "content_bytes": size_of(files),
        "crawler": "wget of nginx" if tools else "left out: nginx or wget is not installed",
        "passes": {},
    }
    crawlers = {
        name: Content(setting.work / name, files, name == "gzip") for name in ("identity", "gzip") if tools
    }
    for crawler in crawlers.values():
        crawler.server.__enter__()
    try:
        found["crawl"] = {"first": cost_of(node.crawl())}
        with node:
            since, changed = "", 0.0
            for moment in ("first", "after 25 % changed"):
                if moment != "first":
                    time.sleep(2)  # a datestamp later than those of the first pass
                    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                    changed = time.time()
                    time.sleep(1)
                    change(files, setting.seed)
                    found["crawl"][moment] = cost_of(node.crawl())
                found["passes"][moment] = one_pass(setting, node, crawlers, since)
                found["passes"][moment]["by_value"] = by_value(files, changed)
            found["complexity"] = complexity.measure(node, setting.work / "plain")
            found["pages"] = sweep(setting, hierarchy)
    finally:
        for crawler in crawlers.values():
            crawler.server.__exit__(None, None, None)
    return found


def change(files: Path, seed: int) -> None:
    """A quarter of the files gets a sentence more."""
    paths = sorted(files.rglob("*.sgm"))
    for path in random.Random(seed).sample(paths, len(paths) // 4):
        text = path.read_text(encoding="latin-1")
        path.write_text(text.replace("</TEXT>", "The figures were revised. </TEXT>"), encoding="latin-1")


def one_pass(setting: Setting, node: Node, crawlers: dict[str, Content], since: str) -> Found:
    rows: Found = {"content": {}, "lists": {}, "searchable": {}}
    for name, crawler in crawlers.items():
        rows["content"][name] = crawler.mirror()
        setting.say(f"wget, {name}: {rows['content'][name]['bytes']:,} bytes")
    for form, path in LISTS.items():
        for coding in CODINGS:
            rows["lists"].setdefault(form, {})[coding] = fetch(node, path, coding, since)
        setting.say(f"{form}: " + ", ".join(f"{c} {r['bytes']:,}" for c, r in rows["lists"][form].items()))
    before = node.cpu()
    cost = execute(indlet("harvest", node.root, "--data", setting.work / "service", "--quiet"))
    rows["searchable"]["harvest"] = {**cost_of(cost), "server_cpu": node.cpu() - before}
    if crawlers:
        # The other way: what was mirrored is analysed and indexed at the service.
        data = setting.work / "mirrored"
        cost = execute(
            indlet("crawl", crawlers["gzip"].work / "mirror", "--data", data, "--quiet"), statuses=(0, 3)
        )
        more = execute(indlet("stats", "--data", data, "--json"))
        fetched = rows["content"]["gzip"]
        rows["searchable"]["crawl"] = {
            "seconds": fetched["seconds"] + cost.seconds + more.seconds,
            "cpu": fetched["client_cpu"] + cost.cpu + more.cpu,
            "server_cpu": fetched["server_cpu"],
        }
    return rows


def cost_of(cost: Cost) -> Found:
    return {"seconds": cost.seconds, "cpu": cost.cpu}


def sweep(setting: Setting, hierarchy: str) -> list[Found]:
    """The same lists in pages of many sizes, three times each."""
    rows = []
    for page in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        paging = f"[serve]\nrecords_per_page = {page}\nidentifiers_per_page = {page}\n"
        node = Node(setting.work / "node", "provider", f"[analysis]\npositions = true\n{paging}{hierarchy}")
        with node:
            for verb, path in (
                ("ListRecords", LISTS["tf_compact"]),
                ("ListIdentifiers", "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc"),
            ):
                fetch(node, path, "zstd")
                runs = [fetch(node, path, "zstd") for _ in range(3)]
                rows.append(
                    {
                        "page": page,
                        "verb": verb,
                        "records": runs[0]["records"],
                        "requests": runs[0]["requests"],
                        "bytes": runs[0]["bytes"],
                        "seconds": [run["seconds"] for run in runs],
                        "server_cpu": [run["server_cpu"] for run in runs],
                    }
                )
        setting.say(f"pages of {page}: {statistics.median(rows[-2]['seconds']):.2f} s")
    return rows


def show(found: Found, figures: Figures) -> str:
    passes: dict[str, Any] = found["passes"]
    moments = list(passes)
    megabytes = 1e6
    with figures.plot("load-bytes", 2, (8.4, 3.8), sharey=False) as axes:
        for axis, moment in zip(axes, moments, strict=True):
            lists, content = passes[moment]["lists"], passes[moment]["content"]
            series = {
                coding: [
                    content.get(coding, {}).get("bytes", 0) / megabytes,
                    passes[moment].get("by_value", {}).get(coding, {}).get("bytes", 0) / megabytes,
                    *(lists[form][coding]["bytes"] / megabytes for form in LISTS),
                ]
                for coding in CODINGS
            }
            bars(axis, ["content", "by\nvalue", *(form.replace("tf_", "") for form in LISTS)], series)
            axis.set(title=f"MB, {'first pass' if moment == 'first' else moment}")
            axis.tick_params(axis="x", labelsize=8)
            axis.set_ylim(0, 1.15 * axis.get_ylim()[1])
            axis.legend(ncols=4, loc="upper center", columnspacing=1, handlelength=1)
    pages = found["pages"]
    with figures.plot("load-pages", 2, (8.4, 3.3)) as axes:
        for axis, kind, words in zip(
            axes, ("seconds", "server_cpu"), ("wall time", "server CPU"), strict=True
        ):
            for number, verb in enumerate(("ListRecords", "ListIdentifiers")):
                own = [row for row in pages if row["verb"] == verb]
                sizes = [row["page"] for row in own]
                # The processor's time is told in hundredths of a second: their mean is finer.
                middle = [1e6 * max(statistics.mean(row[kind]), 1e-3) / row["records"] for row in own]
                axis.plot(sizes, middle, f"{MARKERS[number]}-", color=COLOURS[number], label=verb)
            axis.set(xlabel="records a page", title=f"µs a record, {words}")
            logarithmic(axis)
            axis.legend()
    parts = [
        f"{found['collection']}: {found['files']:,} files, {found['content_bytes'] / megabytes:.1f} MB; "
        f"content crawl: {found['crawler']}. The provider's own crawl, which the statistics come from, took "
        f"{found['crawl']['first']['cpu']:.1f} s of processor time once, and "
        f"{found['crawl'][moments[1]]['cpu']:.1f} s for the changes.\n",
        picture("load-bytes", "Megabytes moved by content crawl and by each list in each coding") + "\n",
    ]
    for moment in moments:
        parts.append(f"**{'First pass' if moment == 'first' else moment.capitalize()}**\n")
        parts.append(_table(passes[moment]))
    parts.append(
        "**All the way to a searchable index.** Content: wget with gzip, then analysis and indexing at the "
        "service. Statistics: `indlet harvest`, which takes tf_compact in zstd.\n"
    )
    parts.append(
        table(
            ["pass", "way", "service CPU s", "provider CPU s", "wall s"],
            [
                [moment, way, f"{row['cpu']:.1f}", f"{row['server_cpu']:.2f}", f"{row['seconds']:.1f}"]
                for moment in moments
                for way, row in passes[moment]["searchable"].items()
            ],
            2,
        )
    )
    parts.append(
        "**Page size.** Time for the whole list, median of three, by the size of its pages: tf_compact for "
        "ListRecords, both in zstd.\n"
    )
    parts.append(picture("load-pages", "Time per record over the page size, for both verbs") + "\n")
    parts.append(
        table(
            ["page", "verb", "requests", "MB", "s (least–most)", "server CPU s"],
            [
                [
                    row["page"],
                    row["verb"],
                    row["requests"],
                    f"{row['bytes'] / megabytes:.2f}",
                    str(spread(row["seconds"])),
                    f"{statistics.mean(row['server_cpu']):.2f}",
                ]
                for row in pages
            ],
            2,
        )
    )
    if "complexity" in found:
        parts.append(complexity.show(found))
    return "\n".join(parts)


def _table(one: Found) -> str:
    base = one["content"].get("gzip", {}).get("bytes", 0)
    rows = []
    for coding, row in one["content"].items():
        rows.append(["content (wget)", coding, row])
    for form, codings in one["lists"].items():
        rows += [[form, coding, row] for coding, row in codings.items()]
    rows += [["content by value, worked out", coding, row] for coding, row in one.get("by_value", {}).items()]
    return table(
        ["what", "coding", "requests", "MB", "of content in gzip", "server CPU s", "client CPU s", "wall s"],
        [
            [
                name,
                coding,
                f"{row['requests']:,}",
                f"{row['bytes'] / 1e6:.2f}",
                f"{row['bytes'] / base:.0%}" if base else "–",
                *(
                    f"{row[key]:.2f}" if key in row else "–"
                    for key in ("server_cpu", "client_cpu", "seconds")
                ),
            ]
            for name, coding, row in rows
        ],
        2,
    )
