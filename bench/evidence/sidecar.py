"""Documents of repositories that do not offer full text: bench/sidecar.py, and what it found."""

from __future__ import annotations

from bench.evidence.figures import Figures, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

from indlet.wording import amount

TITLE = "Full text of ordinary repositories"


def run(setting: Setting) -> Found:
    records, long = setting.pick((21, 300), (105, 2_000), (210, 10_000))
    found: Found = bench(setting, "sidecar", "--records", records, "--long", long, "--kills", 5)
    return found


def show(found: Found, figures: Figures) -> str:
    platforms, long = found["platforms"], found["long"]
    real = f"{found['documents']} PDF files of other programs' test suites"
    documents = real if found["documents"] else "generated"
    all_records = sum(one["records"] for one in platforms)
    readable = sum(one["with_document"] for one in platforms)
    right, others = (sum(one[name] for one in platforms) for name in ("right", "others"))
    headings = ["platform", "right file", "with full text", "found by", "requests a record", "kB a record"]
    rows = [
        [
            one["platform"],
            f"{one['right']} of {one['with_document']}",
            f"{sum(one['ways'].values()) / one['records']:.1%}",
            ", ".join(f"{way} {count / one['records']:.1%}" for way, count in one["ways"].items()),
            f"{one['requests']:.2f}",
            f"{one['bytes'] / 1000:.0f}",
        ]
        for one in platforms
    ]
    reasons: dict[str, int] = {}
    for one in platforms:
        for reason, count in one["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + count
    without = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return "\n".join(
        [
            f"`bench.sidecar`: local servers modelled on eight platforms, with {all_records:,} records; the "
            f"documents are {documents}. Of the {readable:,} records that have a document, the right file "
            f"(by its digest) was read for {right:,}; something was read for {others:,} of the "
            f"{all_records - readable:,} others. Shares are those of all records. Requests and bytes include "
            "what found nothing; the harvest of the metadata is not included.\n",
            table(headings, rows, 1),
            f"Records without full text, by reason: {without}.\n",
            f"{long['records']:,} records on one host, a fifth of them with their file on one of two broken "
            f"hosts, and {long['killed']} kills of the process that fetches: {long['read']:,} of "
            f"{long['reachable']:,} reachable documents were read, {long['waiting']:,} records wait "
            f"to be tried again, {long['fetched_twice']:,} of {long['fetched']:,} downloads were repeated "
            "(what a killed process had not committed), and the broken host that answers got "
            f"{amount(long['of_broken_host'], 'request')}.",
        ]
    )
