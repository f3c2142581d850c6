"""The pure parts of the experiments: generator, statistics, judgements, the page and its goals."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench.evidence import equality, faults, goals, material, page, runs
from bench.evidence.figures import table
from bench.evidence.setting import Setting
from bench.evidence.site import COMPARED
from bench.evidence.statistics import exponent, holm, paired_t, randomisation, spread

from bench import corpus, generated
from indlet.model import pack
from indlet.store import Store

# The generator


def test_generated_vectors_are_canonical_and_depend_on_seed_and_number_alone() -> None:
    whole = list(corpus.texts(0, 2500, 20, seed=7))
    assert [text.number for text in whole] == list(range(2500))
    for text in whole[::100]:
        frequencies = text.vector.frequencies()
        assert text.vector.packed == pack(frequencies)
        assert text.vector.length == sum(frequencies.values())
    assert list(corpus.texts(1990, 20, 20, seed=7)) == whole[1990:2010]
    assert next(corpus.texts(0, 1, 20, seed=8)).vector != whole[0].vector


def test_generated_words_follow_the_law() -> None:
    counts: dict[str, int] = {}
    for text in corpus.texts(0, 2000, 60, seed=1):
        for term, frequency in text.vector.frequencies().items():
            counts[term] = counts.get(term, 0) + frequency
    known = generated.vocabulary()
    assert len(set(known.names)) == generated.VOCABULARY
    assert known.names == sorted(known.names)
    total = sum(counts.values())
    first = known.names[int(known.place[0])]
    expected = float(known.cumulative[0])
    assert counts[first] / total == pytest.approx(expected, rel=0.2)


def test_a_store_is_filled(tmp_path: Path) -> None:
    corpus.fill(tmp_path, 30, 20, first=10)
    with Store.open(tmp_path) as store, store.read() as view:
        stored = list(view.changes())
    assert [s.identifier for s in stored] == [f"oai:example.org:reports/{n:07d}.pdf" for n in range(10, 40)]
    assert stored[0].vector == next(corpus.texts(10, 1, 20, 1)).vector.packed


def test_a_collection_has_the_documents_of_the_corpus() -> None:
    held = list(generated.collection(2100, 20, seed=3).documents())
    assert len(held) == 2100
    for text in corpus.texts(0, 2100, 20, seed=3):
        assert text.vector.frequencies() == dict(zip(*held[text.number], strict=True))


# The material


def test_stand_ins_are_the_same_every_time_and_can_be_judged() -> None:
    stories = material.reuters(None, 30, 1)
    assert "generated" in stories.name
    assert stories == material.reuters(None, 30, 1)
    assert stories.stories[3].text.split()[0].isupper()
    one = material.judged("cranfield", None, 1)
    assert "stand-in" in one.name
    assert {j.document for j in one.judgements} == set(one.texts)


def test_events_leave_the_files_that_the_world_knows(tmp_path: Path) -> None:
    world = equality.World(tmp_path, random.Random(1))
    for story in material.generated_stories(40, 1):
        world.add(story, 1)
    for _ in range(5):
        world.step(0.1)
    assert all(world.counts[event] for event in equality.EVENTS)
    # The place of a story is its SGML file, or its PDF where that is all there is.
    stems = {path.with_suffix("") for path in tmp_path.rglob("s*.*")}
    assert stems == {place.with_suffix("") for place in world.places.values()}
    for place in world.places.values():
        assert place.exists()
        assert place.suffix == ".sgm" or not place.with_suffix(".sgm").exists()


# The statistics


def test_paired_t_is_student_s() -> None:
    # Student's own data (1908): ten patients, two drugs; t = 4.06, p = 0.00283.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    assert paired_t(first, second) == pytest.approx(0.00283, abs=1e-5)
    assert paired_t(first, first) == 1.0


def test_randomisation_counts_signs() -> None:
    # All ten differences of one sign and size: 2 of 1024 assignments are as extreme.
    assert randomisation([1.0] * 10, [0.0] * 10) == pytest.approx(2 / 1024, abs=0.001)
    assert randomisation([1.0, 0.0], [0.0, 1.0]) == pytest.approx(1.0)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_exponent_and_spread() -> None:
    assert exponent([10, 100, 1000], [5 * n**1.3 for n in (10, 100, 1000)]) == pytest.approx(1.3)
    assert str(spread([3.0, 1.0, 2.0])) == "2.00 (1.00–3.00)"


# Judging a harvest


@pytest.mark.parametrize(
    ("ended", "live", "outcome"),
    [
        ("well", {"a": "x one", "b": "two"}, "complete"),
        ("well", {"a": "x one"}, "wrong silently"),
        ("well", {"a": "x one", "b": "other"}, "wrong silently"),
        ("said", {"a": "one"}, "said so"),
        ("said", {"a": "one", "b": "two"}, "complete"),
        ("broke", {"a": "one"}, "crashed"),
        ("endless", {"a": "one", "b": "two"}, "hung"),
    ],
)
def test_outcomes(ended: str, live: dict[str, str], outcome: str) -> None:
    told: dict[str, Any] = {"ended": ended, "live": live, "why": ""}
    assert faults.judged(told, {"a": "one", "b": "two"})["outcome"] == outcome


# The page


def kept(name: str, **more: Any) -> dict[str, Any]:
    return {
        "experiment": name, "taken": "2024-01-02T03:04:05+00:00", "size": "small", "seed": 1,
        "load_before": 0.1, "machine": {"cores": "2"}, "seconds": 3.0, **more,
    }  # fmt: skip


def test_the_page_says_what_was_not_run_and_what_failed(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    told = kept("faults", failed="Failed: no such thing", note="Put together from two runs.")
    (results / "faults.json").write_text(json.dumps(told))
    page.write(tmp_path)
    text = (tmp_path / "index.md").read_text()
    assert "Put together from two runs.\n\n**Failed:**" in text
    assert "Not run yet: `python -m bench.evidence equality`" in text
    assert "**Failed:**\n\n```\nFailed: no such thing\n```" in text
    assert "not measured" in text


def test_goals_are_met_missed_or_not_measured() -> None:
    step: dict[str, Any] = {"differing": {"documents": 0, "scores": {"bm25": 0}}, "scores_compared": 9}
    wrong: dict[str, Any] = step | {"differing": {"documents": 0, "scores": {"bm25": 2}}}
    for steps, word in (([step], "met"), ([step, wrong], "**missed**")):
        rows = goals.judged({"equality": kept("equality", found={"steps": steps})})
        assert rows[0][3] == word
    assert {word for *_, word in goals.judged({})} == {"not measured"}


def test_the_machine_is_told_once_and_what_differs_for_each_experiment() -> None:
    one, two = ({"cores": "2", "python": version} for version in ("3.11", "3.12"))
    told = page.taken({"load": {"machine": one}, "loss": {"machine": two}, "less": {"machine": two}})
    assert told.splitlines()[2:] == ["- cores: 2", "- python (load): 3.11", "- python (loss, less): 3.12"]


@pytest.mark.parametrize(("cpu", "word"), [(0.5, "met"), (0.7, "**missed**")])
def test_an_update_is_as_fast_as_wanted_by_processor_time_too(cpu: float, word: str) -> None:
    costs = [
        {"way": way, "stage": "touched", "requests": 1, "bytes": 1, "server_cpu": 0.0, "current": 1} | taken
        for way, taken in (
            ("wget from a full list", {"seconds": 30.0, "client_cpu": 3.0}),
            ("ListRecords, DIDL", {"seconds": 1.0, "client_cpu": cpu}),
        )
    ]
    runs = {name: {"server": "nginx", "costs": costs} for name in COMPARED}
    rows = goals.judged({"site": kept("site", found=runs)})
    assert [row[3] for row in rows if row[0].startswith("an update by DIDL")] == ["met", word]


def test_answers_of_engines_are_the_same_only_if_all_was_asked() -> None:
    runs: list[dict[str, Any]] = [
        {"collection": name, "shards": shards, "replica": True, "records": 9, "as loaded": {"bm25": [4, 0]}}
        for name in ("cranfield", "cacm", "reuters21578")
        for shards in (1, 3, 6)
    ]
    large: dict[str, Any] = runs[0] | {"collection": "generated", "replica": False, "records": 1_000_000}
    for found, told, word in (
        ([*runs, large], "0 of 40 different", "met"),
        (runs, "0 of 36 different; not run: a million records", "**missed**"),
        ([*runs[1:], large | {"as loaded": {"bm25": [4, 1]}}],
         "1 of 36 different; not run: cranfield in 1 shards", "**missed**"),
    ):  # fmt: skip
        rows = goals.judged({"engines": kept("engines", found={"answers": found})})
        assert [(row[1], row[3]) for row in rows if "OpenSearch" in row[0]] == [(told, word)]


def test_what_cannot_be_shown_does_not_take_the_page_with_it(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "faults.json").write_text(json.dumps(kept("faults", found={"of": "another version"})))
    page.write(tmp_path)
    assert "**Cannot be shown**" in (tmp_path / "index.md").read_text()


def test_a_run_goes_on_where_it_broke_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    plan = runs.Plan("small", 1, None, tmp_path / "results")
    for name, failing in (("first", False), ("second", True)):
        experiment = ModuleType(f"bench.evidence.{name}")
        experiment.run = _failing if failing else _finding  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, experiment.__name__, experiment)
    assert not runs.carry_out(plan, ["first", "second"], again=False)
    assert json.loads((plan.results / "first.json").read_text())["found"] == {"seed": 1}
    assert "no such thing" in json.loads((plan.results / "second.json").read_text())["failed"]
    # Only what failed is repeated; when all is well, the next run begins anew.
    (plan.results / "first.json").unlink()
    sys.modules["bench.evidence.second"].run = _finding  # type: ignore[attr-defined]
    assert runs.carry_out(plan, ["first", "second"], again=False)
    assert not (plan.results / "first.json").exists()
    assert "first: finished at" in capsys.readouterr().err
    assert runs.carry_out(plan, ["first", "second"], again=False)
    assert (plan.results / "first.json").exists()


def _finding(setting: Setting) -> dict[str, Any]:
    return {"seed": setting.seed}


def _failing(setting: Setting) -> dict[str, Any]:
    raise RuntimeError("no such thing")


def test_the_page_is_that_of_the_results() -> None:
    published = Path(__file__).parents[2] / "docs" / "evidence"
    goals_of = goals.show(page.read(published / "results"))
    assert goals_of.strip() in (published / "index.md").read_text(), "run `python -m bench.evidence page`"


def test_tables_are_markdown() -> None:
    assert table(["a", "b"], [["x|y", 1]]) == "| a | b |\n|---|--:|\n| x\\|y | 1 |\n"
