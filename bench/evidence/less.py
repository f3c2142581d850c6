"""Summaries and pruning, as providers and services may set them: bench/less.py, and what it found."""

from __future__ import annotations

from bench.evidence.figures import COLOURS, MARKERS, Figures, picture, table
from bench.evidence.peers import bench
from bench.evidence.setting import Found, Setting

TITLE = "Less of each document"


def run(setting: Setting) -> Found:
    return {"points": bench(setting, "less")}


def show(found: Found, figures: Figures) -> str:
    points = found["points"]
    collections = list(dict.fromkeys(point["collection"] for point in points))
    curves = [name for name in dict.fromkeys(point["curve"] for point in points) if name != "whole"]
    whole = {point["collection"]: point for point in points if point["curve"] == "whole"}
    with figures.plot("less", columns=len(collections), size=(10.5, 3.8), squeeze=False, sharey=True) as axes:
        for one, collection in zip(axes[0], collections, strict=True):
            for number, curve in enumerate(curves):
                drawn = [p for p in points if (p["collection"], p["curve"]) == (collection, curve)]
                one.plot(
                    [point["postings"] / whole[collection]["postings"] for point in drawn],
                    [point["precision"] / whole[collection]["precision"] for point in drawn],
                    label=curve, color=COLOURS[number], marker=MARKERS[number],
                )  # fmt: skip
            one.set(title=collection, xlabel="share of postings that is left", xlim=(0, 1))
        axes[0][0].set(ylabel="share of MAP that is left")
        axes[0][0].legend(loc="lower right")
    rows = [
        [
            point["collection"],
            point["curve"],
            f"{point['share']:g}" if point["curve"] != "whole" else "",
            f"{point['postings'] / whole[point['collection']]['postings']:.0%}",
            f"{point['vector_bytes']:,}",
            f"{point['index_bytes']:,}",
            f"{point['precision']:.4f}",
            f"{point['first_ten']:.3f}",
            f"{point['agreement']:.0%}",
        ]
        for point in points
    ]
    return (
        "`bench.less`: what a provider saves by pruning vectors (`analysis.prune`), by giving the terms of a "
        "text's beginning (`analysis.lead`) or both, and a service by pruning its index by term "
        "(`index.prune`; Carmel et al., SIGIR 2001); and what BM25 loses. Each is declared in the policy or "
        "by the index ([policy](../policy.md)).\n\n"
        + picture("less", "MAP against the share of postings that is left, for each way")
        + "\n\n"
        + table(
            [
                "collection",
                "way",
                "setting",
                "postings",
                "bytes of vectors",
                "bytes of the index",
                "MAP",
                "P@10",
                "same ten",
            ],
            rows,
            2,
        )
    )
