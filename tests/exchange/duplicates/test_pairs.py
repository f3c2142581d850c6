"""From records to pairs: what is found in a collection with known duplicates, and the laws of it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exchange.duplicates.noise import KINDS, Described, noisy

from indlet.exchange.duplicates.blocking import BLOCK, WINDOW, candidates
from indlet.exchange.duplicates.features import described
from indlet.exchange.duplicates.pairs import Pair, pairs
from indlet.exchange.duplicates.score import score
from indlet.model import Stored, TermVector

SUBJECTS = [
    "aerodynamics", "combustion", "turbulence", "propulsion", "telemetry", "metallurgy",
    "cryogenics", "navigation", "acoustics", "hydraulics", "spectroscopy", "lubrication",
    "vibration", "radiation", "instrumentation", "thermodynamics", "magnetism", "ballistics",
    "optics", "corrosion", "fatigue", "guidance", "plasma", "convection", "elasticity",
    "reliability", "calibration", "photography", "meteorology", "logistics",
]  # fmt: skip
THINGS = [
    "wings", "turbines", "rockets", "satellites", "bearings", "nozzles", "helicopters", "antennas",
    "gyroscopes", "parachutes", "reactors", "compressors", "propellers", "gliders", "airships",
    "batteries", "composites", "alloys", "ceramics", "sensors", "shields", "capsules", "boosters",
    "cylinders", "panels", "membranes", "seals", "valves", "pumps", "ducts",
]  # fmt: skip
WAYS = [
    "experimental", "theoretical", "numerical", "preliminary", "comparative", "statistical",
    "graphical", "approximate", "analytical", "practical",
]  # fmt: skip
FAMILIES = [
    "Abbott", "Baker", "Castellani", "Dimitrov", "Eriksson", "Fujimoto", "Garrick", "Hoffmann",
    "Ivanova", "Jankowski", "Kowalski", "Lindqvist", "Marchetti", "Nakamura", "Oyelaran", "Petrov",
    "Quintero", "Rasmussen", "Szymanski", "Thompson", "Underwood", "Villanueva", "Whitcomb",
    "Yamamoto", "Zimmermann",
]  # fmt: skip
GIVEN = [
    "Anna", "Boris", "Clara", "David", "Elena", "Frank", "Grace", "Henry", "Irene", "Jakob",
    "Karin", "Louis", "Maria", "Niels", "Olga", "Peter", "Ruth",
]  # fmt: skip


def stored(number: int, metadata: Described, origin: int, vector: bytes | None = None) -> Stored:
    name, form = f"oai:lib{origin}:{number}", orjson.dumps(metadata)
    return Stored(number, number, origin, name, 0, 0, "", "", 0, 0, form, b"{}", b"", vector, None, b"")


def works(count: int, chance: random.Random) -> list[Described]:
    """Different reports, many of them by the same people and on the same subjects."""
    made: dict[str, Described] = {}
    while len(made) < count:
        title = (
            f"{chance.choice(WAYS).title()} study of {chance.choice(SUBJECTS)} in {chance.choice(THINGS)} "
            f": {chance.choice(SUBJECTS)} and {chance.choice(SUBJECTS)} of {chance.choice(THINGS)}"
        )
        names = [f"{chance.choice(FAMILIES)}, {chance.choice(GIVEN)}" for _ in range(chance.randint(1, 3))]
        made[title] = {"title": [title], "creator": names, "date": [str(chance.randint(1940, 2000))]}
    return list(made.values())


def numbers(found: Sequence[Pair]) -> set[tuple[int, int]]:
    return {(min(p.first.id, p.second.id), max(p.first.id, p.second.id)) for p in found}


def test_precision_and_recall_with_injected_duplicates() -> None:
    chance = random.Random(7)
    base = works(1200, chance)
    kinds = list(KINDS)
    records = [stored(n, one, n % 2) for n, one in enumerate(base)]
    known = {}
    for i, n in enumerate(range(0, 1200, 6)):
        records.append(stored(2000 + n, noisy(base[n], kinds[i % 4], chance), 1))
        known[n, 2000 + n] = kinds[i % 4]
    chance.shuffle(records)
    found = numbers(pairs(records))
    right = found & known.keys()
    assert len(right) / len(found) > 0.97
    assert len(right) / len(known) > 0.95
    for kind in kinds:
        of_kind = [pair for pair in known if known[pair] == kind]
        assert sum(pair in right for pair in of_kind) / len(of_kind) > 0.85, kind


def test_only_live_records_of_two_sources_are_paired() -> None:
    one = works(1, random.Random(1))[0]
    a, b, c = stored(1, one, 1), stored(2, one, 1), stored(3, one, 2)
    assert numbers(pairs([a, b])) == set()
    assert numbers(pairs([a, b], within=True)) == {(1, 2)}
    assert numbers(pairs([a, b, c])) == {(1, 3), (2, 3)}
    assert numbers(pairs([a, c._replace(deleted=1)])) == set()
    assert numbers(pairs([a, c._replace(identifier=a.identifier)])) == set()  # one record, harvested twice


def test_vectors_are_asked_for_likely_pairs_only_and_count() -> None:
    base = works(40, random.Random(2))
    records = [stored(n, one, n % 2) for n, one in enumerate(base, 1)]
    vague = {"title": ["Wind tunnel tests"], "creator": ["Abbott, Anna"]}
    records += [stored(100, vague, 0), stored(101, vague, 1)]
    asked: list[int] = []
    texts = [TermVector.of({f"{kind}{n}": 2 for n in range(500)}).packed for kind in "ab"]

    def found(first: bytes, second: bytes) -> list[Pair]:
        def vectors(wanted: Sequence[int]) -> dict[int, bytes | None]:
            asked.extend(wanted)
            return {100: first, 101: second}

        return pairs(records, vectors, least=0.1)

    (same,) = found(texts[0], texts[0])
    others = found(texts[0], texts[1])
    assert not others or others[0].score < same.score
    assert set(asked) == {100, 101}


def test_a_key_that_many_share_costs_no_square() -> None:
    alike = [
        described(f"oai:x:{n}", {"title": [f"Annual report {n}"], "creator": ["Smith, J."]}, n % 2)
        for n in range(1000)
    ]
    assert len(alike) > BLOCK
    assert len(candidates(alike)) < 1000 * WINDOW * 6


PIECES = [*SUBJECTS[:5], "of", "1", "2", "é", "स्वास्थ्य", "[x", "/", ":"]
NAMES = ["Wang, Wei", "Wei Wang", "Wang, W.", "Berg", ",", "O. Ng"]
metadata = st.fixed_dictionaries(
    {
        "title": st.lists(
            st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join)
            | st.text(max_size=20),
            max_size=2,
        ),
        "creator": st.lists(st.sampled_from(NAMES) | st.text(max_size=9), max_size=3),
        "date": st.lists(st.sampled_from(["1990", "c1991", "n.d.", "2001-05-01"]), max_size=2),
        "identifier": st.lists(
            st.sampled_from(["10.1000/182", "NASA-TM-12", "NASA TM 12", "NASA-TM-13", "019282760X", "17"]),
            max_size=2,
        ),
    }
)  # fmt: skip


@given(metadata, metadata)
def test_a_score_is_symmetric_and_within_bounds(one: Described, other: Described) -> None:
    a, b = described("oai:a:1", one, 1), described("oai:b:1", other, 2)
    assert score(a, b) == score(b, a)
    # Nor does it matter which record has the lower identifier.
    c, d = described("oai:b:1", one, 1), described("oai:a:1", other, 2)
    assert score(c, d) == score(a, b)
    assert 0 <= score(a, b).score <= 1


@settings(max_examples=50, deadline=None)
@given(st.lists(metadata, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(given_: list[Described], chance: random.Random) -> None:
    records = [stored(n, one, n % 3) for n, one in enumerate(given_)]
    shuffled = list(records)
    chance.shuffle(shuffled)
    found = pairs(records, least=0.1)
    assert found == pairs(shuffled, least=0.1)
    assert all(p.first.order < p.second.order and p.first.origin != p.second.origin for p in found)
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
