"""Equality over time: the harvested index beside an index of the centralised union, after every step.

Stories become single SGML files, some of them also PDF files, spread over the ad-hoc hierarchies of two
providers. Half of them are there at the beginning; the others arrive step by step, in the order of their
time, while stories are edited, deleted and moved, PDF files appear, and SGML files go so that the PDF
becomes primary. After each step both providers crawl, a service harvests both over HTTP, and the same folders
are crawled into a new central store. Everything that the two indexes know is compared.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.comparison import compare, total
from bench.evidence.figures import COLOURS, Figures, picture, table
from bench.evidence.material import Story, reuters
from bench.evidence.setting import Found, Setting
from bench.processes import Node, indlet
from bench.processes import run as execute
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from indlet.service.search.library import Library
from indlet.service.search.rank import MODELS

TITLE = "Equality over time"
ROOT = Path(__file__).parents[2]
HIERARCHIES = (("press", "archive"), ("wire", "desk"))
EVENTS = ("added", "edited", "deleted", "pdf added", "sgml gone", "moved")
REPOSITORY = 'repository = "union.example.org"\n'


@dataclass
class World:
    """The files of both providers, and how they change."""

    folder: Path
    random: random.Random
    places: dict[int, Path] = field(default_factory=dict)  # story -> its SGML, or PDF where that is all
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EVENTS, 0))
    stories: dict[int, Story] = field(default_factory=dict)

    def somewhere(self, story: Story, collection: int) -> Path:
        name = self.random.choice([name for both in HIERARCHIES for name in both])
        depth = [f"c{collection}", f"{story.number % 17:02}", self.random.choice("abc")]
        return self.folder / name / "/".join(depth[: self.random.randint(1, 3)]) / f"s{story.number}.sgm"

    def add(self, story: Story, collection: int) -> None:
        place = self.somewhere(story, collection)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(story.sgml, encoding="latin-1")
        self.places[story.number] = place
        self.stories[story.number] = story
        self.counts["added"] += 1
        if self.random.random() < 0.15:
            place.with_suffix(".pdf").write_bytes(pdf(story.text))

    def step(self, share: float) -> None:
        """Management events; each strikes a share of the stories."""
        for event in EVENTS[1:]:
            for number in self.random.sample(sorted(self.places), max(int(share * len(self.places)), 1)):
                self.happen(event, number)

    def happen(self, event: str, number: int) -> None:
        place, story = self.places[number], self.stories[number]
        paper = place.with_suffix(".pdf")
        match event:
            case "edited" if place.suffix == ".sgm":
                word = self.random.choice(("corrected", "revised", "withdrawn", "embargo", "quarterly"))
                text = place.read_text(encoding="latin-1")
                place.write_text(text.replace("</TEXT>", f" {word} {word} </TEXT>"), encoding="latin-1")
            case "deleted":
                for path in (place, paper):
                    path.unlink(missing_ok=True)
                del self.places[number]
            case "pdf added" if not paper.exists():
                paper.write_bytes(pdf(story.text + "\nprinted edition"))
            case "sgml gone" if place.suffix == ".sgm" and paper.exists():
                place.unlink()
                self.places[number] = paper
            case "moved":
                target = self.somewhere(story, 9).with_suffix(place.suffix)
                if target.with_suffix("") == place.with_suffix(""):
                    return
                target.parent.mkdir(parents=True, exist_ok=True)
                place.rename(target)
                if place != paper and paper.exists():
                    paper.rename(target.with_suffix(".pdf"))
                self.places[number] = target
            case _:
                return
        self.counts[event] += 1


def pdf(text: str) -> bytes:
    """A plain page or more of text."""
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=A4, invariant=1)
    lines = text.encode("latin-1", "replace").decode("latin-1").split("\n")
    for start in range(0, len(lines), 60):
        written = canvas.beginText(50, 800)
        written.setFont("Helvetica", 9)
        written.setLeading(12)
        written.textLines(lines[start : start + 60])
        canvas.drawText(written)
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def hierarchies(world: World, names: tuple[str, ...]) -> str:
    return "".join(f'[[hierarchy]]\nroot = "{world.folder / name}"\nname = "{name}"\n' for name in names)


def run(setting: Setting) -> Found:
    count, steps = setting.pick((240, 3), (2400, 12), (21_578, 12))
    material = reuters(setting.collection("reuters21578"), count, setting.seed)
    source = random.Random(setting.seed)
    world = World(setting.work / "files", source)
    for name in (name for both in HIERARCHIES for name in both):
        (world.folder / name).mkdir(parents=True)
    # Three collections, each in its own time order: a third of the stories, then the next.
    third = -(-len(material.stories) // 3)
    collections = [material.stories[at : at + third] for at in range(0, len(material.stories), third)]
    waiting: list[list[tuple[Story, int]]] = [[] for _ in range(steps + 1)]
    for number, stories in enumerate(collections, 1):
        half = len(stories) // 2
        waiting[0] += [(story, number) for story in stories[:half]]
        for place, story in enumerate(stories[half:]):
            waiting[1 + place * steps // (len(stories) - half)].append((story, number))
    rows = []
    nodes = [
        Node(setting.work, f"provider{number}", hierarchies(world, names), node=REPOSITORY)
        for number, names in enumerate(HIERARCHIES, 1)
    ]
    with nodes[0], nodes[1]:
        for step, arriving in enumerate(waiting):
            before = dict(world.counts)
            for story, collection in arriving:
                world.add(story, collection)
            if step:
                world.step(0.02)
            for node in nodes:
                node.crawl()
            centralise(setting, world)
            stale = differences(setting, step, models=())[0] if step else {}
            harvest = execute(
                indlet("harvest", *(node.root for node in nodes), "--data", setting.work / "service", "-q")
            )
            differing, row = differences(setting, step)
            row |= {"differing": differing, "before_harvest": stale, "harvest_seconds": harvest.seconds}
            row["events"] = {name: world.counts[name] - before[name] for name in EVENTS}
            rows.append(row)
            setting.say(f"step {step}: {row['documents']:,} documents; differing: {row['differing']}")
    return {
        "collection": material.name,
        "stories": len(material.stories),
        "steps": rows,
        "kills": with_kills(setting),
    }


def with_kills(setting: Setting) -> list[Found]:
    """The rounds of bench/equality.py, in which processes die on their way."""
    place = setting.work / "kills.json"
    rounds, files = setting.pick((2, 60), (4, 200), (6, 300))
    chosen = "--rounds", rounds, "--files", files, "--seed", setting.seed, "--json", place
    execute([sys.executable, "-m", "bench.equality", *chosen], statuses=(0, 1), cwd=ROOT)
    found: list[Found] = json.loads(place.read_text())
    setting.say(f"{rounds} rounds with {found[-1]['kills']} kills: {found[-1]['differing']}")
    return found


def centralise(setting: Setting, world: World) -> None:
    """A new store of the union of the files, crawled in one place."""
    shutil.rmtree(setting.work / "central", ignore_errors=True)
    config = setting.work / "central.toml"
    everything = hierarchies(world, HIERARCHIES[0] + HIERARCHIES[1])
    config.write_text(f'data = "central"\n[node]\n{REPOSITORY}[crawl]\nsettle_seconds = 0.0\n{everything}')
    execute(indlet("crawl", "--config", config, "--quiet"))


def differences(
    setting: Setting, step: int, models: Iterable[str] = tuple(MODELS)
) -> tuple[dict[str, Any], Found]:
    """Everything that differs between the harvested and the central index; and how large the latter is."""
    with Library.open(setting.work / "service") as here, Library.open(setting.work / "central") as there:
        return compare(here, there, lambda terms: queries(terms, setting.seed + step), models)


def queries(terms: list[str], seed: int) -> list[list[str]]:
    """Thirty queries of one to six words, common and rare."""
    source = random.Random(seed)
    pools = terms[:200], terms[200:3000] or terms, terms
    return [[source.choice(source.choice(pools)) for _ in range(source.randint(1, 6))] for _ in range(30)]


def show(found: Found, figures: Figures) -> str:
    rows = found["steps"]
    steps = list(range(len(rows)))
    with figures.plot("equality", 2) as (left, right):
        left.plot(steps, [row["documents"] for row in rows], "o-", color=COLOURS[0], label="documents")
        left.plot(steps, [row["terms"] for row in rows], "s-", color=COLOURS[1], label="distinct terms")
        for axis in (left, right):
            axis.xaxis.get_major_locator().set_params(integer=True)
        left.set(xlabel="step", title="Size of the union", ylim=(0, None))
        left.legend()
        stale = [row["before_harvest"].get("df", 0) for row in rows]
        right.plot(steps[1:], stale[1:], "s--", color=COLOURS[1], label="df, before the harvest")
        kinds = ("documents", "df", "cf", "lengths", "scores", "rankings")
        values = [total(row["differing"]) for row in rows]
        right.plot(steps, values, "o-", color=COLOURS[0], label="everything, after it")
        right.set(xlabel="step", title="What differs from the union", ylim=(-0.03 * max([9, *stale]), None))
        right.legend(loc="center right")
    wrong = sum(total(row["differing"]) for row in rows)
    compared = sum(row["scores_compared"] for row in rows)
    events = {name: sum(row["events"][name] for row in rows) for name in EVENTS}
    told = ", ".join(f"{count:,} {name}" for name, count in events.items())
    verdict = (
        f"**No difference** in any of {len(rows)} comparisons"
        if not wrong
        else f"**{wrong:,} differences** over {len(rows)} comparisons"
    )
    body = table(
        ["step", "documents", "terms", "tokens", "events", "Δ documents", "Δ df", "Δ cf", "Δ lengths",
         "Δ scores", "Δ rankings", "Δ df before", "harvest s"],
        [
            [step, f"{row['documents']:,}", f"{row['terms']:,}", f"{row['tokens']:,}",
             f"{sum(row['events'].values()):,}",
             *(total({k: row["differing"][k]}) for k in kinds),
             f"{row['before_harvest'].get('df', 0):,}" if step else "–", f"{row['harvest_seconds']:.1f}"]
            for step, row in enumerate(rows)
        ],
    )  # fmt: skip
    return (
        f"{found['collection']}, {found['stories']:,} stories in three collections, spread over two "
        f"providers with two hierarchies each. Events: {told}. After each step the harvested index and "
        f"a new index of the union are compared: documents, document and collection frequency "
        f"of every term, every length, "
        f"and for 30 queries and each model all scores, bit by bit, and the order.\n\n"
        f"{verdict}; {compared:,} scores were compared. That the comparison can tell is shown by the same "
        f"one made just before each harvest, when the service does not yet know of the step.\n\n"
        f"{picture('equality', 'Size of the union and number of differences over the steps')}\n\n{body}"
        f"{_kills(found.get('kills'))}"
    )


def _kills(rounds: list[Found] | None) -> str:
    if not rounds:
        return ""
    last = rounds[-1]
    wrong = sum(total(one["differing"]) for one in rounds)
    return (
        f"\n**With kills.** `python -m bench.equality`: three providers of generated files, {len(rounds)} "
        "rounds of changes, crawls and harvests in formats chosen at random, in which "
        f"{last['kills']} processes were killed on their way and run again: **{wrong} differences**, "
        f"at the end in {last['documents']:,} documents and {last['terms']:,} terms.\n"
    )
