"""How good the models are: topics and judgements in, measures for each model out.

Reads topics as JSON lines (`id` or `qid` or `_id`; `text`, `query` or `title`), as tab-separated id and text,
or in TREC mark-up; judgements in TREC form (topic, iteration, document, grade). Topics were written for
people, so they are taken as plain words. A judged document is found among the records by its identifier,
by the last part of that, by a dc:identifier, or by what a pattern finds in the identifier.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import orjson

from indlet.errors import MissingExtra, SettingsError
from indlet.model import JsonObject

DEPTH: Final = 1000
MEASURES: Final = ("MAP", "nDCG@10", "P@10", "R@100")


class Topic(NamedTuple):
    id: str
    text: str


class Named(NamedTuple):
    """A ranked record with all that may name it in a file of judgements."""

    identifier: str
    score: float
    names: tuple[str, ...] = ()  # dc:identifier


class Judgement(NamedTuple):
    topic: str
    document: str
    grade: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One row of the table: a model, what it scored, and over how many topics."""

    model: str
    measures: Mapping[str, float]
    topics: int
    found: int  # judged documents among all that the records could be matched with


class Rank(Protocol):
    """The best records for a topic, at most so many."""

    def __call__(self, model: str, text: str, depth: int) -> Iterable[Named]: ...


def read_topics(path: Path) -> list[Topic]:
    text = _text(path)
    if "<top>" in text[:2000].lower():
        topics = _trec_topics(text)
    elif text.lstrip().startswith("{"):
        topics = [_json_topic(line, path, n) for n, line in _lines(text)]
    else:
        topics = [_tab_topic(line, path, n) for n, line in _lines(text)]
    if not topics:
        raise SettingsError(f"{path}: holds no topics; write one JSON object with id and text on each line")
    return topics


def _json_topic(line: str, path: Path, number: int) -> Topic:
    try:
        raw: Any = orjson.loads(line)
        name = next(raw[key] for key in ("id", "qid", "_id", "query_id") if key in raw)
        text = next(raw[key] for key in ("text", "query", "title") if key in raw)
    except (ValueError, TypeError, StopIteration) as e:
        raise SettingsError(
            f'{path}, line {number}: not a topic; write {{"id": …, "text": …}} on each line'
        ) from e
    return Topic(str(name), str(text))


def _tab_topic(line: str, path: Path, number: int) -> Topic:
    name, tab, text = line.partition("\t")
    if not tab:
        raise SettingsError(f"{path}, line {number}: not a topic; write its id, a tab, and its text")
    return Topic(name.strip(), text.strip())


def _trec_topics(text: str) -> list[Topic]:
    topics = []
    for block in re.findall(r"<top>(.*?)(?=<top>|\Z)", text, re.DOTALL | re.IGNORECASE):
        name = re.search(r"<num>\s*(?:Number:)?\s*([^\s<]+)", block, re.IGNORECASE)
        title = re.search(r"<title>\s*(?:Topic:)?\s*([^<]*)", block, re.IGNORECASE)
        if name and title:
            topics.append(Topic(name.group(1), " ".join(title.group(1).split())))
    return topics


def read_judgements(path: Path) -> list[Judgement]:
    """The judgements of a file in TREC form; a grade below 0 counts as 0."""
    judgements = []
    for number, line in _lines(_text(path)):
        parts = line.split()
        try:
            topic, document, grade = (parts[0], parts[2], parts[3]) if len(parts) >= 4 else parts
            judgements.append(Judgement(topic, document, max(int(float(grade)), 0)))
        except (ValueError, OverflowError) as e:
            raise SettingsError(
                f"{path}, line {number}: not a judgement; write topic, 0, document, grade"
            ) from e
    if not judgements:
        raise SettingsError(f"{path}: holds no judgements; write topic, 0, document, grade on each line")
    return judgements


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as e:
        raise SettingsError(f"{path}: cannot be read: {e.strerror}; name a file that is there") from e


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that hold something, with their numbers; U+2028 and its kin may stand inside of one."""
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def matcher(known: frozenset[str], pattern: str = "") -> Callable[[Named], str]:
    """A function from a record to the name by which the judgements know it; its identifier if they do not."""
    try:
        wanted = re.compile(pattern) if pattern else None
    except re.error as e:
        raise SettingsError(f"the pattern {pattern!r} is no regular expression: {e}") from e

    def name(record: Named) -> str:
        if wanted is not None:
            found = wanted.search(record.identifier)
            return (found.group(1) if wanted.groups else found.group()) if found else record.identifier
        for candidate in (record.identifier, *record.names):
            last = re.split(r"[/:#]", candidate.rstrip("/"))[-1]
            for form in (candidate, last, last.rsplit(".", 1)[0]):
                if form in known:
                    return form
        return record.identifier

    return name


def evaluate(
    models: Sequence[str],
    topics: Sequence[Topic],
    judgements: Sequence[Judgement],
    rank: Rank,
    *,
    pattern: str = "",
    depth: int = DEPTH,
) -> list[Evaluation]:
    """The measures of each model, averaged over the topics that have a relevant document."""
    measures, qrel, scored, aggregate = _measures()
    known = frozenset(judgement.document for judgement in judgements)
    relevant = {judgement.topic for judgement in judgements if judgement.grade > 0}
    judged = [topic for topic in topics if topic.id in relevant]
    if not judged:
        raise SettingsError(
            f"no topic has a relevant document: topics are called {topics[0].id!r} …, judged ones "
            f"{judgements[0].topic!r} …; the two files must use the same names"
        )
    asked = {topic.id for topic in judged}
    truth = [qrel(j.topic, j.document, j.grade) for j in judgements if j.topic in asked]
    name = matcher(known, pattern)
    table = []
    for model in models:
        run, seen = [], set()
        for topic in judged:
            listed: set[str] = set()
            for record in rank(model, topic.text, depth):
                document = name(record)
                if document not in listed:  # a document reached by two sources counts once, at its best rank
                    listed.add(document)
                    run.append(scored(topic.id, document, record.score))
            seen |= listed
        values = aggregate(list(measures.values()), truth, run) if run else {}
        table.append(
            Evaluation(
                model,
                {label: float(values.get(measure, 0.0)) for label, measure in measures.items()},
                len(judged),
                len(seen & known),
            )
        )
    return table


def _measures() -> tuple[JsonObject, Any, Any, Any]:
    try:
        import ir_measures
    except ModuleNotFoundError as e:
        raise MissingExtra("indlet evaluate (it imports ir_measures)", "evaluate") from e
    measures = {
        "MAP": ir_measures.AP,
        "nDCG@10": ir_measures.nDCG @ 10,
        "P@10": ir_measures.P @ 10,
        "R@100": ir_measures.R @ 100,
    }
    return measures, ir_measures.Qrel, ir_measures.ScoredDoc, ir_measures.calc_aggregate
