"""The collections: Reuters-21578, Cranfield and CACM where they are, generated stand-ins where not."""

from __future__ import annotations

import gzip
import html
import random
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.effectiveness import documents
from bench.generated import words

from indlet.service.search.evaluate import Judgement, Topic, read_judgements, read_topics

_STORY = re.compile(r"<REUTERS.*?</REUTERS>", re.DOTALL)


@dataclass(frozen=True)
class Story:
    """One story: its number in the collection, and its SGML as it came."""

    number: int
    sgml: str

    @property
    def text(self) -> str:
        """What a reader sees, for its PDF."""
        inner = self.sgml.partition("<TEXT")[2].partition(">")[2].partition("</TEXT>")[0]
        plain = html.unescape(re.sub(r"<[^<>]{1,80}>", " ", inner))
        return "".join(c if c.isprintable() or c == "\n" else " " for c in plain).strip()


@dataclass(frozen=True)
class Stories:
    name: str
    stories: list[Story]


@dataclass(frozen=True)
class Judged:
    name: str
    texts: dict[str, str]
    topics: list[Topic]
    judgements: list[Judgement]


def reuters(folder: Path | None, count: int, seed: int) -> Stories:
    """`count` stories in the order of their time, evenly taken from the collection."""
    if folder is None:
        return Stories("generated stories in the mark-up of Reuters-21578", generated_stories(count, seed))
    found: list[Story] = []
    for path in sorted(folder.glob("*.sgm.gz")):
        raw = gzip.decompress(path.read_bytes()).decode("latin-1")
        for sgml in _STORY.findall(raw):
            number = re.search(r'NEWID="(\d+)"', sgml)
            if number and "</TEXT>" in sgml:
                found.append(Story(int(number[1]), sgml))
    found.sort(key=lambda story: story.number)
    step = max(len(found) / count, 1)
    chosen = [found[int(place * step)] for place in range(min(count, len(found)))]
    return Stories("Reuters-21578", chosen)


def generated_stories(count: int, seed: int) -> list[Story]:
    source = random.Random(seed)
    vocabulary = words(20_000)
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    drawn = source.choices(vocabulary, weights, k=400_000)
    stories = []
    for number in range(1, count + 1):
        start = source.randrange(len(drawn) - 500)
        body = drawn[start : start + int(min(source.lognormvariate(4.6, 0.6), 480)) + 5]
        title = " ".join(body[:6]).upper()
        text = "\n".join(" ".join(body[at : at + 10]) for at in range(0, len(body), 10))
        stories.append(
            Story(
                number,
                f'<REUTERS NEWID="{number}"><DATE>26-FEB-1987 15:01:01.79</DATE><TEXT>\n'
                f"<TITLE>{title}</TITLE><BODY>{text}\n</BODY></TEXT></REUTERS>",
            )
        )
    return stories


def judged(name: str, folder: Path | None, seed: int) -> Judged:
    """A collection with topics and judgements."""
    if folder is None:
        return generated_judged(f"stand-in for {name}", seed)
    return Judged(
        name,
        documents(folder),
        read_topics(folder / "queries.jsonl"),
        read_judgements(folder / "qrels.txt"),
    )


def generated_judged(name: str, seed: int, texts: int = 1200, themes: int = 40) -> Judged:
    """Texts on themes: each mixes the words of its theme with common ones; a topic asks for a theme."""
    source = np.random.default_rng(seed)
    vocabulary = np.array(words(6000))
    common = 1 / (np.arange(vocabulary.size) + 10)
    common /= common.sum()
    own = source.permutation(vocabulary.size)[: themes * 30].reshape(themes, 30)
    theme_of = source.integers(0, themes, texts)
    found = {}
    for number, theme in enumerate(theme_of.tolist()):
        length = int(source.lognormal(4.5, 0.4)) + 10
        of_theme = source.choice(own[theme], int(length * 0.08) + 1)
        other = source.choice(own[int(source.integers(themes))], int(length * 0.05))
        rest = source.choice(vocabulary.size, length, p=common)
        mixed = np.concatenate((of_theme, other, rest))
        source.shuffle(mixed)
        found[str(number + 1)] = " ".join(vocabulary[mixed].tolist())
    topics = [
        Topic(str(theme + 1), " ".join(vocabulary[source.choice(own[theme], 4, replace=False)].tolist()))
        for theme in range(themes)
    ]
    judgements = [
        Judgement(str(theme + 1), str(number + 1), 1) for number, theme in enumerate(theme_of.tolist())
    ]
    return Judged(name, found, topics, judgements)
