"""The goals that were set, and whether what was found meets them: one row each, missed ones too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import geometric_mean
from typing import Any, Final, NamedTuple

from bench.comparison import total
from bench.engines import STATES
from bench.evidence.faults import totals
from bench.evidence.figures import table
from bench.evidence.peers import harvest_memory, harvest_ratios, search_ratios, search_runs, serve_ratios
from bench.evidence.portal import rows_of
from bench.evidence.setting import Found
from bench.evidence.site import times
from bench.harvest_shapes import ratios as shape_ratios
from bench.serve import form_of

from indlet.service.search.rank import MODELS


class Verdict(NamedTuple):
    measured: str
    met: bool


class Goal(NamedTuple):
    what: str
    wanted: str
    experiment: str
    check: Callable[[Found], Verdict]


def _equal(found: Found) -> Verdict:
    wrong = sum(total(step["differing"]) for step in (*found["steps"], *found.get("kills", ())))
    scores = sum(step["scores_compared"] for step in found["steps"])
    told = f"{wrong} differences in {len(found['steps'])} steps, {scores:,} scores compared"
    return Verdict(told, wrong == 0)


def _brute(found: Found) -> Verdict:
    worst = max(
        abs(one["measures"][model]["MAP"]["mean"] - brute["MAP"])
        for one in found["collections"].values()
        for model, brute in one["brute_force"].items()
    )
    return Verdict(f"within {worst:.4f}", worst <= 0.005)


def _federated(found: Found) -> Verdict:
    unequal = sum(one["central"]["unequal"] for one in found["collections"].values())
    lists = sum(one["central"]["lists"] for one in found["collections"].values())
    return Verdict(f"{unequal} of {lists:,} rankings unequal", unequal == 0)


def _served(found: Found) -> Verdict:
    ratios = serve_ratios(found["serve"])
    told = "; ".join(f"{name} {rate} times, by processor time {cpu}" for name, (rate, cpu) in ratios.items())
    return Verdict(told, all(cpu.median >= {"pyoai": 10}.get(name, 8) for name, (_, cpu) in ratios.items()))


def _plain(found: Found) -> list[Found]:
    """Our runs over oai_dc without coding: over a tenth of the records, and over all of them."""
    runs = [run for one in found["serve"] for run in one["runs"] if run["server"] == "indlet"]
    return [run for run in runs if form_of(run["request"]) == "oai_dc" and run["coding"] == "identity"]


def _flat(found: Found) -> Verdict:
    runs = _plain(found)
    most = max(run["records"] for run in runs)
    small = max(run["memory_mb"] for run in runs if run["records"] < most)
    large = max(run["memory_mb"] for run in runs if run["records"] == most)
    return Verdict(f"{small:.0f} MB, {large:.0f} MB with ten times the records", large <= 1.25 * small)


def _last(found: Found) -> Verdict:
    runs = [run for run in _plain(found) if run["records"] == max(one["records"] for one in _plain(found))]
    worst = max(run["last_ms"] / run["first_ms"] for run in runs)
    return Verdict(f"last page takes {worst:.2f} times the first", worst <= 1.1)


def _ratio(form: str, least: float) -> Callable[[Found], Verdict]:
    def check(found: Found) -> Verdict:
        ratios = {
            terms: ratio
            for (terms, who, name), (_, ratio) in harvest_ratios(found["harvest"], "with_start_rate").items()
            if (who, name) == ("indlet", form)
        }
        told = ", ".join(f"{ratio} times at {terms} terms" for terms, ratio in ratios.items())
        return Verdict(told, all(ratio.median >= least for ratio in ratios.values()))

    return check


def _shapes(found: Found) -> Verdict:
    ratios = shape_ratios(found["shapes"], "indlet", "seconds")
    mean, worst = geometric_mean(ratios.values()), min(ratios, key=ratios.__getitem__)
    told = f"{mean:.2f} times, {worst} {ratios[worst]:.2f}"
    return Verdict(told, mean >= 1.5 and ratios[worst] >= 1.2)


def _harvest_memory(found: Found) -> Verdict:
    sizes = {records: of.high for records, of in harvest_memory(found["memory"]).items()}
    (_, least), *_, (many, most) = sizes.items()
    told = ", ".join(f"{memory:,.0f} MB with {records:,} records" for records, memory in sizes.items())
    if many < 400_000:
        return Verdict(f"{told}; 400,000 not run", False)
    return Verdict(told, most <= 1.25 * least)


def _at_size(found: Found) -> dict[str, list[Found]]:
    """The runs on real documents, and those on a million; what there is if there are none."""
    each = search_runs(found["search"])
    large = {
        name: runs
        for name, runs in each.items()
        if runs[0].get("texts") == "real" or runs[0]["records"] >= 1_000_000
    }
    return large or each


def _queries(found: Found) -> Verdict:
    told, worst = [], 0.0
    for name, runs in _at_size(found).items():
        parts = []
        for key, label in (("p50_ms", "median"), ("p95_ms", "p95")):
            ratios = search_ratios(runs, key, "tantivy, no total")
            ours = {
                model: ratios[f"indlet {model}"][1].median for model in MODELS if f"indlet {model}" in ratios
            }
            parts.append(f"{label} " + ", ".join(f"{model} {ratio:.2f}" for model, ratio in ours.items()))
            worst = max(worst, *ours.values())
        told.append(f"{name}: {'; '.join(parts)}")
    both = [runs[0].get("texts") == "real" for runs in _at_size(found).values()]
    left = [what for what, run in (("a million", not all(both)), ("real documents", any(both))) if not run]
    return Verdict(". ".join([*told, *(f"{what} not run" for what in left)]), not left and worst <= 0.8)


def _size(found: Found) -> Verdict:
    each = {
        name: search_ratios(runs, "bytes_per_posting")["indlet bm25"]
        for name, runs in _at_size(found).items()
    }
    told = [
        f"{name}: {size.median:.2f}, {ratio.median:.2f} times tantivy's"
        for name, (size, ratio) in each.items()
    ]
    return Verdict("; ".join(told), max(size.median for size, _ in each.values()) <= 1.9)


def _ingest(found: Found) -> Verdict:
    told, met = [], False
    for name, runs in _at_size(found).items():
        ratio = search_ratios(runs, "ingest_records_per_second")["indlet bm25"][1].median
        told.append(f"{name}: {ratio:.2f} times")
        met = met or (runs[0].get("texts") == "real" and ratio >= 1.2)  # the goal is one of real documents
    return Verdict("; ".join(told), met)


def _models(found: Found) -> Verdict:
    collection, runs = next(iter(_at_size(found).items()))
    figures = search_ratios(runs, "p50_ms")
    base = figures["indlet bm25"][0].median
    ratios = {
        name: figures[f"indlet {name}"][0].median / base
        for name in MODELS
        if name != "bm25" and f"indlet {name}" in figures
    }
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Verdict(f"{told}, {collection}", max(ratios.values()) <= 1.5)


def _million(found: Found) -> dict[str, Any]:
    row = found["path"][-1]
    return dict(row)


def _minutes(found: Found) -> Verdict:
    row = _million(found)
    told = f"{row['records']:,} records in {row['seconds'] / 60:.1f} minutes"
    if row["records"] < 1_000_000:
        return Verdict(f"{told}; a million not run (--size full)", False)
    return Verdict(told, row["seconds"] < 600)


def _memory(found: Found) -> Verdict:
    row = _million(found)
    told = f"{row['peak_mb'] / 1024:.2f} GiB at {row['records']:,} records"
    if row["records"] < 1_000_000:
        return Verdict(f"{told}; a million not run (--size full)", False)
    return Verdict(told, row["peak_mb"] < 3 * 1024)


def _unchanged(found: Found) -> Verdict:
    read = sum(row["unchanged_read"] for row in found["crawl"])
    return Verdict(f"{read} of {found['crawl'][-1]['files']:,} files read", read == 0)


def _cores(found: Found) -> Verdict:
    row = found["crawl"][-1]
    return Verdict(f"{row['cpu'] / row['seconds']:.2f} cores used", row["cpu"] / row["seconds"] >= 1.5)


def _loud(found: Found) -> Verdict:
    counted = totals(found)["indlet"]
    told = ", ".join(f"{count} {name}" for name, count in counted.most_common())
    had = all(
        row["harvesters"]["indlet"]["outcome"] == "complete" for row in found["faults"].values() if row["had"]
    )
    quiet = counted["complete"] + counted["said so"] == sum(counted.values())
    return Verdict(told, had and quiet)


def _bytes(found: Found) -> Verdict:
    first = found["passes"]["first"]
    if "gzip" not in first["content"]:
        return Verdict("content crawl not measured", False)
    shares = [
        one["lists"]["tf_compact"]["zstd"]["bytes"] / one["content"]["gzip"]["bytes"]
        for one in found["passes"].values()
    ]
    return Verdict(f"{shares[0]:.0%} at first, {shares[1]:.0%} after a quarter changed", max(shares) < 1)


def _portal(found: Found) -> Verdict:
    rows = [row for row in rows_of(found) if row["phase"] != "quiet"]
    errors, worst = sum(row["errors"] for row in rows), max(row["p95_ms"] for row in rows)
    told = f"{worst:.1f} ms, {errors} errors, {found['records']:,} records"
    return Verdict(told, errors == 0 and worst < 50)


def _soaked(found: Found) -> Verdict:
    errors = sum(row["errors"] for row in found["summary"])
    worst = max(row["p95_ms"] for row in found["summary"])
    half, last = found["minutes"][len(found["minutes"]) // 2]["memory_mb"], found["minutes"][-1]["memory_mb"]
    told = f"p95 {worst:.1f} ms, {errors} errors, memory {half:,.0f} MB half-way and {last:,.0f} at the end"
    return Verdict(told, errors == 0 and worst < 50 and last <= 1.1 * half)


def _copied(stage: str, figure: str, wanted: float) -> Callable[[Found], Verdict]:
    def check(found: Found) -> Verdict:
        ratios = times(found, stage, figure)
        told = "; ".join(
            f"{name} {ratio:,.{0 if ratio > 99 else 2}f} times" for name, ratio in ratios.items()
        )
        return Verdict(told, min(ratios.values()) >= wanted)

    return check


def _missed(found: Found) -> Verdict:
    told = found["histories"]
    return Verdict(f"{told['missed']} in {told['histories']} histories", told["missed"] == 0)


def _same_answers(found: Found) -> Verdict:
    runs = [one for part in found.values() if isinstance(part, list) for one in part if STATES[0] in one]
    if not runs:
        raise KeyError("answers")
    counts = [pair for one in runs for state in STATES for pair in one.get(state, {}).values()]
    wrong = sum(different for _, different in counts)
    told = f"{wrong} of {sum(asked for asked, _ in counts):,} different"
    done = {(one["collection"], one["shards"]) for one in runs if one["replica"]}
    left = [
        f"{name} in {shards} shards"
        for name in ("cranfield", "cacm", "reuters21578")
        for shards in (1, 3, 6)
        if (name, shards) not in done
    ]
    if not any(one["records"] >= 1_000_000 for one in runs):
        left.append("a million records")
    return Verdict(f"{told}; not run: {', '.join(left)}" if left else told, not wrong and not left)


def _unharmed(found: Found) -> Verdict:
    rows = [one for part in ("nodes", "metal", "jobs") for one in found[part]["faults"]]
    faults = [one for one in rows if not one.get("fault", "").startswith("none")]
    wrong = sum(one["wrong"] + len(one.get("problems", ())) for one in rows)
    fewest = min(one["rounds"] for one in faults)
    rounds = sum(one["rounds"] for one in faults)
    told = f"{wrong} in {rounds} faults of {len(faults)} kinds, {fewest} or more of each"
    return Verdict(told, not wrong and fewest >= 10)


def _mesh(found: Found) -> Verdict:
    runs = found["rounds"]
    agree = all(one["agree"] and not one["idle"]["records"] for one in runs)
    most = {sites: max(one["records"] for one in runs if one["sites"] == sites) for sites in (2, 4)}
    told = "; ".join(f"{count:,} over {sites} sites" for sites, count in most.items())
    told += ": the same records everywhere, none moved without a change" if agree else ": not so everywhere"
    return Verdict(told, agree and min(most.values()) >= 72_000)


def _origin_down(found: Found) -> Verdict:
    downs = [one["origin_down"] for one in found["rounds"]]
    told, wanted = sum(one["found"] for one in downs), sum(one["records"] for one in downs)
    return Verdict(f"{told:,} of {wanted:,} found", told == wanted)


def _duplicates(found: Found) -> Verdict:
    run = max((one for one in found["duplicates"] if one["vectors"]), key=lambda one: int(one["records"]))
    told = f"{run['seconds']:.1f} s for {run['records']:,}"
    return Verdict(
        f"{told}; precision {run['precision']:.3f}, recall {run['recall']:.3f}",
        run["records"] >= 72_000 and run["seconds"] < 60,
    )


def _marc_read(found: Found) -> Verdict:
    rows = [row for row in found["readers"] if "files" in row]
    wanted, read, complaints = Counter[str](), Counter[str](), 0
    for row in rows:
        for name, (count, wrong) in row["read"].items():
            wanted[name], read[name] = wanted[name] + row["files"], read[name] + count
            complaints += wrong
    told = ", ".join(f"{name} {count:,} of {wanted[name]:,}" for name, count in read.items())
    other = sum(number for row in rows for number in row.get("other_text", {}).values())
    told += f"; {complaints} complaints; {other} in MARC-8 read with another text"
    return Verdict(told, complaints == 0 and read == wanted)


GOALS: Final = (
    Goal("harvested index beside an index of the union, after every step of additions, edits, deletions, "
         "moves, format switches", "no difference", "equality", _equal),
    Goal("bytes harvested (tf_compact in zstd) of those of a content crawl (wget, gzip)", "fewer", "load",
         _bytes),
    Goal("MAP beside brute force, all models, Cranfield and CACM", "within 0.005", "models", _brute),
    Goal("federated rankings beside central ones", "equal", "models", _federated),
    Goal("records/s served (oai_dc) beside pyoai and oai_repo",
         "at least 10 and 8 times by processor time", "peers", _served),
    Goal("memory of the server for ten times the records", "flat, within a quarter", "peers", _flat),
    Goal("last page of a list beside the first", "within a tenth", "peers", _last),
    Goal("harvest of metadata and tf_compact, real texts, stored and searchable, with the start of the "
         "process, beside sickle iterating metadata", "at least 1.5 times", "peers",
         _ratio("tf_compact", 1.5)),
    Goal("harvest of metadata and tf_basic, real texts, stored and searchable, with the start of the "
         "process, beside sickle iterating metadata", "at least as fast", "peers", _ratio("tf_basic", 1)),
    Goal("harvest of oai_dc in the shapes of seven systems, stored and searchable, with the start of the "
         "process, beside sickle iterating it", "at least 1.5 times, worst 1.2", "peers", _shapes),
    Goal("memory of a harvest in the shape of DSpace, 25,000 to 400,000 records", "flat, within a quarter",
         "peers", _harvest_memory),
    Goal("queries by every model with exact totals beside tantivy's without, real documents and a million "
         "generated ones", "at most 0.8 times, median and p95", "peers", _queries),
    Goal("median query of every other model beside our BM25", "at most 1.5 times", "peers", _models),
    Goal("records/s ingested beside tantivy, real documents", "at least 1.2 times", "peers", _ingest),
    Goal("bytes a posting, with lengths and exact statistics", "at most 1.9", "peers", _size),
    Goal("a million records, from the first request to searchable", "under 10 minutes", "scale", _minutes),
    Goal("a million records, memory of the service", "under 3 GiB", "scale", _memory),
    Goal("a crawl of unchanged files", "reads none", "scale", _unchanged),
    Goal("a first crawl on two cores", "uses at least 1.5", "scale", _cores),
    Goal("harvests from a hostile provider", "complete where possible, otherwise reported", "faults",
         _loud),
    Goal("p95 of search page and API at 50 requests/s, 150,000 records, while a harvest runs",
         "under 50 ms, no errors", "portal", _portal),
    Goal("an hour of searches, harvests, crawls, feeds and slow clients at once",
         "p95 under 50 ms, no errors, memory level", "soak", _soaked),
    Goal("a first copy of a site by DIDL beside wget's", "no slower", "site",
         _copied("baseline", "seconds", 1)),
    Goal("a first copy of a site by DIDL beside wget's, by processor time of client and servers",
         "no more", "site", _copied("baseline", "cpu", 1)),
    Goal("requests of wget -N for each of an update by DIDL, files touched", "at least 20", "site",
         _copied("touched", "requests", 20)),
    Goal("an update by DIDL beside that of wget -N, files touched", "at least 5 times as fast", "site",
         _copied("touched", "seconds", 5)),
    Goal("an update by DIDL beside that of wget -N, files touched, by processor time of client and servers",
         "at most a fifth", "site", _copied("touched", "cpu", 5)),
    Goal("changes that incremental harvesters of a site missed", "none", "site", _missed),
    Goal("answers of the index on OpenSearch beside the embedded one: Cranfield, CACM and Reuters in 1, 3 "
         "and 6 shards with a replica, a million generated records", "the same", "engines", _same_answers),
    Goal("wrong or partial answers, and lost records, while parts of a cluster are killed, cut off or refuse",
         "none, each fault 10 times or more", "cluster", _unharmed),
    Goal("libraries that harvest each other: real MARC records, 1 % changed",
         "72,000 over two and four sites, all agree, a round without changes moves no record", "libraries",
         _mesh),
    Goal("records of a site that is down, searched for at another", "all found", "libraries", _origin_down),
    Goal("possible duplicates among 72,000 records", "under a minute", "libraries", _duplicates),
    Goal("MARC files that we write, read by pymarc, yaz-marcdump and Catmandu", "every file", "libraries",
         _marc_read),
)  # fmt: skip


def judged(kept: dict[str, dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """What, how it was measured to be, what was wanted, and the word for it: met, missed, not measured."""
    rows = []
    for goal in GOALS:
        measured, word = "–", "not measured"
        try:
            verdict = goal.check(kept[goal.experiment]["found"])
            measured, word = verdict.measured, "met" if verdict.met else "**missed**"
        except (KeyError, TypeError, IndexError, ValueError, StopIteration):
            pass  # not run, or that part of it failed: its section says so
        rows.append((goal.what, measured, goal.wanted, word))
    return rows


def show(kept: dict[str, dict[str, Any]]) -> str:
    rows = judged(kept)
    met = sum(word == "met" for *_, word in rows)
    return f"## Goals\n\n{met} of {len(rows)} met.\n\n" + table(["", "measured", "goal", ""], rows, 4)
