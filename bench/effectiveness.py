"""Effectiveness through the whole path: files, two providers, HTTP, harvest, search; beside brute force.

    INDLET_DATA=… python -m bench.effectiveness [--collections cranfield,cacm] [--json FILE]

Each collection becomes two folders of text files, one document a file. Two `indlet provide` processes crawl
and serve them, a library harvests both, and every model answers the topics from the harvested index.
The reference knows none of that: it takes the documents' texts, analyses them by the same policy, and works
the formulas out over all documents. The two must agree in MAP within 0.005, which leaves room for ties alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from indlet.service.search.evaluate import (
    DEPTH,
    MEASURES,
    Evaluation,
    Named,
    evaluate,
    read_judgements,
    read_topics,
)
from indlet.service.search.library import Library
from indlet.text import Analyzer, Policy

TOLERANCE = 0.005
MODELS = ("bm25", "vsm", "lm-dirichlet", "lm-jm", "bm25-plus", "pl2")


def documents(folder: Path) -> dict[str, str]:
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    # Cranfield's texts begin with the title, those of CACM do not.
    texts = {}
    for row in rows:
        parts = [row["text"], row.get("keywords", "")]
        if not row["text"].startswith(row["title"][:40]):
            parts.insert(0, row["title"])
        texts[row["id"]] = "\n".join(filter(None, parts))
    return {name: text for name, text in texts.items() if text.strip()}


class BruteForce:
    """Every formula over every document, in the plainest way."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.analyzer = Analyzer(Policy())
        self.documents = {name: self.analyzer.vector(text).frequencies() for name, text in texts.items()}
        self.lengths = {name: sum(terms.values()) for name, terms in self.documents.items()}
        self.df: Counter[str] = Counter()
        self.cf: Counter[str] = Counter()
        for terms in self.documents.values():
            self.df.update(terms.keys())
            self.cf.update(terms)
        self.n = len(self.documents)
        self.total = sum(self.lengths.values())

    def rank(self, model: str, text: str, depth: int) -> list[Named]:
        asked = Counter(t for w in text.split() for t in self.analyzer.terms(w, "en") if t in self.df)
        score = getattr(self, "_" + model.replace("-", "_"))
        found = [
            Named(name, score(asked, terms, self.lengths[name]))
            for name, terms in self.documents.items()
            if any(term in terms for term in asked)
        ]
        return sorted(found, key=lambda one: -one.score)[:depth]

    def _bm25(self, asked: Counter[str], terms: dict[str, int], length: int) -> float:
        damping = 1.2 * (1 - 0.75 + 0.75 * length / (self.total / self.n))
        return sum(
            weight
            * math.log(1 + (self.n - self.df[t] + 0.5) / (self.df[t] + 0.5))
            * (terms[t] * 2.2 / (terms[t] + damping))
            for t, weight in asked.items()
            if t in terms
        )

    def _vsm(self, asked: Counter[str], terms: dict[str, int], length: int) -> float:
        query = {t: (1 + math.log(weight)) * math.log(self.n / self.df[t]) for t, weight in asked.items()}
        inner = sum(weight * (1 + math.log(terms[t])) for t, weight in query.items() if t in terms)
        norms = math.hypot(*query.values()) * math.hypot(*(1 + math.log(f) for f in terms.values()))
        return inner / norms if norms else 0.0

    def _lm_dirichlet(self, asked: Counter[str], terms: dict[str, int], length: int) -> float:
        return sum(
            weight * math.log((terms.get(t, 0) + 1000 * self.cf[t] / self.total) / (length + 1000))
            for t, weight in asked.items()
        )

    def _lm_jm(self, asked: Counter[str], terms: dict[str, int], length: int) -> float:
        return sum(
            weight * math.log(0.3 * terms.get(t, 0) / length + 0.7 * self.cf[t] / self.total)
            for t, weight in asked.items()
        )

    def _bm25_plus(self, asked: Counter[str], terms: dict[str, int], length: int) -> float:
        damping = 1.2 * (1 - 0.75 + 0.75 * length / (self.total / self.n))
        return sum(
            weight * math.log((self.n + 1) / self.df[t]) * (terms[t] * 2.2 / (terms[t] + damping) + 1)
            for t, weight in asked.items()
            if t in terms
        )

    def _pl2(self, asked: Counter[str], terms: dict[str, int], length: int) -> float:
        score = 0.0
        for t, weight in asked.items():
            if t in terms:
                tfn, mean = terms[t] * math.log2(1 + self.total / self.n / length), self.cf[t] / self.n
                chance = tfn * math.log(tfn / mean) + mean + 1 / (12 * tfn) - tfn
                chance += math.log(2 * math.pi * tfn) / 2
                score += weight * chance / math.log(2) / (tfn + 1)
        return score


@contextmanager
def provider(files: Path, data: Path) -> Iterator[str]:
    """The address of a running `indlet provide` that has crawled its files."""
    command = [sys.executable, "-m", "indlet", "provide", str(files), "--data", str(data), "--port", "0"]
    with subprocess.Popen(
        [*command, "--every", ""], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        address = ""
        try:
            for line in process.stdout:
                if found := re.search(r"http://[\d.:]+", line):
                    address = address or found.group()
                if line.startswith(f"{files.name}:"):
                    break
            yield address
        finally:
            process.send_signal(signal.SIGTERM)


def through_the_path(
    texts: dict[str, str], folder: Path, ask: Callable[[Library], list[Evaluation]]
) -> list[Evaluation]:
    halves = folder / "one", folder / "two"
    for half in halves:
        half.mkdir()
    for number, (name, text) in enumerate(texts.items()):
        (halves[number % 2] / f"{name}.txt").write_text(text, encoding="utf-8")
    with (
        provider(halves[0], folder / "data1") as one,
        provider(halves[1], folder / "data2") as two,
        Library.open(folder / "service") as library,
    ):
        library.harvest(one, two)
        assert library.stats()["index"]["records"] == len(texts)
        return ask(library)


def measure(folder: Path) -> tuple[list[Evaluation], list[Evaluation], float]:
    """The measures of both sides, and the largest difference between two scores of one document."""
    texts = documents(folder)
    topics, judgements = read_topics(folder / "queries.jsonl"), read_judgements(folder / "qrels.txt")
    brute = BruteForce(texts)
    reference = evaluate(MODELS, topics, judgements, brute.rank)
    apart = 0.0

    def ask(library: Library) -> list[Evaluation]:
        nonlocal apart
        for model in MODELS:
            for topic in topics[:25]:
                theirs = {one.identifier: one.score for one in brute.rank(model, topic.text, len(texts))}
                for one in library.rank(topic.text, DEPTH, model=model):
                    name = one.identifier.rpartition("/")[2]
                    apart = max(apart, abs(one.score - theirs[name]))
        return evaluate(
            MODELS, topics, judgements, lambda model, text, depth: library.rank(text, depth, model=model)
        )

    with tempfile.TemporaryDirectory() as scratch:
        return through_the_path(texts, Path(scratch), ask), reference, apart


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--collections", default="cranfield,cacm")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = Path(os.environ["INDLET_DATA"])
    report, worst = [], 0.0
    print(
        f"{'collection':<12}{'model':<14}" + "".join(f"{name:>9}" for name in MEASURES) + f"{'brute MAP':>11}"
    )
    for name in options.collections.split(","):
        ours, reference, apart = measure(data / name)
        for mine, theirs in zip(ours, reference, strict=True):
            worst = max(worst, abs(mine.measures["MAP"] - theirs.measures["MAP"]))
            figures = "".join(f"{mine.measures[key]:>9.4f}" for key in MEASURES)
            print(f"{name:<12}{mine.model:<14}{figures}{theirs.measures['MAP']:>11.4f}")
            report.append(
                {
                    "collection": name,
                    "model": mine.model,
                    **mine.measures,
                    "brute_force": dict(theirs.measures),
                    "largest_difference_of_scores": apart,
                }
            )
        print(f"{'':<12}largest difference between two scores: {apart:.1e}")
    print(f"largest difference in MAP: {worst:.4f} (allowed: {TOLERANCE})")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(worst > TOLERANCE)


if __name__ == "__main__":
    main()
