"""Models: effectiveness through the whole path, tested; federated beside central beside brute force.

Each collection becomes two folders, crawled and served by two `indlet provide` processes and harvested by a
service. The same files crawled into one store are the central side, whose scores must be equal bit for bit.
Brute force (bench/effectiveness.py) knows neither: it works the formulas out over the texts.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any, Final

from bench.effectiveness import MODELS as BRUTE
from bench.effectiveness import BruteForce, through_the_path
from bench.evidence.figures import Figures, bars, picture, table
from bench.evidence.material import judged
from bench.evidence.setting import Found, Setting
from bench.evidence.statistics import holm, paired_t, randomisation
from bench.evidence.topics import MEASURES, RANKED, ByTopic, Ranking, by_topic, mean
from bench.processes import indlet
from bench.processes import run as execute

from indlet.service.search.evaluate import DEPTH, Evaluation
from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS

TITLE = "Models"
# MAP and nDCG@10 of a brute-force reference over the same files with another analysis: tokens [a-z0-9]+,
# Porter stems, 174 stop words, depth 1,000; k1 1.2, b 0.75, mu 1000, lambda 0.7.
MARKS: Final = {
    ("cranfield", "bm25"): (0.3063, 0.3855),
    ("cranfield", "lm-dirichlet"): (0.2779, 0.3537),
    ("cranfield", "lm-jm"): (0.2905, 0.3711),
    ("cranfield", "vsm"): (0.3054, 0.3841),
    ("cacm", "bm25"): (0.3606, 0.5046),
}


def run(setting: Setting) -> Found:
    found: Found = {"collections": {}}
    for name in setting.pick(("cranfield",), ("cranfield", "cacm"), ("cranfield", "cacm")):
        folder = setting.collection(name)
        material = judged(name, folder, setting.seed)
        work = setting.work / name
        work.mkdir()
        measured: ByTopic = {}
        lists: dict[tuple[str, str], list[tuple[str, float]]] = {}

        def ask(
            library: Library,
            measured: ByTopic = measured,
            lists: dict[tuple[str, str], list[tuple[str, float]]] = lists,
            material: Any = material,
        ) -> list[Evaluation]:
            def rank(named: str, text: str, depth: int) -> Ranking:
                ranking = library.rank(text, depth, model=named)
                lists[named, text] = [(key(one.identifier), one.score) for one in ranking]
                return ranking

            measured |= by_topic(tuple(MODELS), material, rank)
            return []

        through_the_path(material.texts, work, ask)
        unequal = beside_central(work, lists)
        brute = by_topic(BRUTE, material, BruteForce(material.texts).rank)
        found["collections"][material.name] = {
            "documents": len(material.texts),
            "topics": len(next(iter(measured.values()))["MAP"]),
            "measures": {
                model: {
                    label: {"mean": mean(values), **({"topics": rounded(values)} if label == "MAP" else {})}
                    for label, values in of_model.items()
                }
                for model, of_model in measured.items()
            },
            "brute_force": {
                model: {label: mean(values) for label, values in of_model.items()}
                for model, of_model in brute.items()
            },
            "central": {"lists": len(lists), "scores": sum(map(len, lists.values())), "unequal": unequal},
            "tests": tests(measured),
        }
        setting.say(
            f"{material.name}: "
            + ", ".join(f"{model} {mean(of['MAP']):.4f}" for model, of in measured.items())
            + f"; {unequal} of {len(lists)} lists unequal to central"
        )
    return found


def rounded(values: dict[str, float]) -> dict[str, float]:
    return {topic: round(value, 5) for topic, value in values.items()}


def key(identifier: str) -> str:
    return identifier.rpartition("/")[2]


def beside_central(work: Path, lists: dict[tuple[str, str], list[tuple[str, float]]]) -> int:
    """How many of the federated rankings have other scores than the central index gives."""
    execute(indlet("crawl", work / "one", work / "two", "--data", work / "central", "--quiet"))
    unequal = 0
    with Library.open(work / "central") as library:
        for (model, text), ranking in lists.items():
            central = [(key(one.identifier), one.score) for one in library.rank(text, DEPTH, model=model)]
            # Records of one score stand in the order of their identifiers' hashes, which name the repository;
            # a list that is cut inside such a group may end with others of the same score.
            same = [score for _, score in central] == [score for _, score in ranking]
            last = ranking[-1][1] if len(ranking) == DEPTH else None
            mine = {name: score for name, score in ranking if score != last}
            unequal += not same or mine != {name: score for name, score in central if score != last}
    return unequal


def tests(measured: ByTopic) -> list[Found]:
    """Every pair of ranked models, on MAP and nDCG@10; p adjusted over the family of pairs and measures."""
    rows: list[Found] = []
    for measure in MEASURES[:2]:
        for first, second in combinations(RANKED, 2):
            topics = sorted(measured[first][measure])
            one, other = ([measured[model][measure][t] for t in topics] for model in (first, second))
            rows.append(
                {
                    "measure": measure,
                    "first": first,
                    "second": second,
                    "difference": mean(measured[first][measure]) - mean(measured[second][measure]),
                    "t": paired_t(one, other),
                    "randomisation": randomisation(one, other),
                }
            )
    for row, adjusted in zip(rows, holm([row["randomisation"] for row in rows]), strict=True):
        row["adjusted"] = adjusted
    return rows


def show(found: Found, figures: Figures) -> str:
    collections: dict[str, Any] = found["collections"]
    with figures.plot("models", len(collections), (8.4, 3.2), squeeze=False) as grid:
        for axis, (name, one) in zip(grid[0], collections.items(), strict=True):
            labels = ("MAP", "nDCG@10", "P@10")
            series = {model: [one["measures"][model][label]["mean"] for label in labels] for model in RANKED}
            bars(axis, labels, series, labels="%.3f")
            axis.set(title=f"{name}, {one['topics']} topics")
        grid[0][0].legend(ncols=2, loc="upper right")
        grid[0][0].set_ylim(0, 1.3 * grid[0][0].get_ylim()[1])
    parts = [
        "Through the whole path: files, two providers, HTTP, harvest, search. Default parameters (k1 1.2, "
        "b 0.75, mu 1000, lambda 0.7), depth 1,000. `boolean` requires every word of a topic and does not "
        "rank what has them: it is shown, and left out of the tests.\n",
        picture("models", "MAP, nDCG@10 and P@10 of each model") + "\n",
    ]
    rows = []
    for name, one in collections.items():
        for model, measures in one["measures"].items():
            brute = one["brute_force"].get(model, {}).get("MAP")
            mark = MARKS.get((name, model))
            rows.append(
                [
                    name,
                    model,
                    *(f"{measures[label]['mean']:.4f}" for label in MEASURES),
                    f"{brute:.4f}" if brute is not None else "–",
                    f"{measures['MAP']['mean'] - brute:+.4f}" if brute is not None else "–",
                    f"{mark[0]:.4f} / {mark[1]:.4f}" if mark else "–",
                ]
            )
    parts.append(
        table(["collection", "model", *MEASURES, "brute force MAP", "Δ", "mark MAP / nDCG@10"], rows, 2)
    )
    parts.append(
        "The marks are those of a reference with another analysis (174 stop words, Porter's stems, tokens of "
        "ASCII letters and digits); brute force uses ours.\n"
    )
    for name, one in collections.items():
        central = one["central"]
        parts.append(
            f"**Federated and central, {name}:** {central['unequal']} of {central['lists']:,} rankings "
            f"unequal ({central['scores']:,} scores compared, bit by bit).\n"
        )
        parts.append(
            table(
                ["measure", "models", "difference", "paired t", "randomisation", "Holm", ""],
                [
                    [
                        row["measure"],
                        f"{row['first']} – {row['second']}",
                        f"{row['difference']:+.4f}",
                        probability(row["t"]),
                        probability(row["randomisation"]),
                        probability(row["adjusted"]),
                        "significant" if row["adjusted"] < 0.05 else "",
                    ]
                    for row in one["tests"]
                ],
                2,
            )
        )
    parts.append(
        "p values are two-sided; the randomisation test (20,000 draws) decides, after Holm's correction over "
        "all pairs and both measures of a collection, at 5 %."
    )
    return "\n".join(parts)


def probability(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "< 0.0001"
