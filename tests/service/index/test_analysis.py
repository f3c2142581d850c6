"""Analysing many records at once makes the index that the analyser makes one by one, bit for bit."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indlet.kernels.jit import Kernel
from indlet.model import Metadata, Stored, TermVector
from indlet.service.index.dates import date_number
from indlet.service.index.embedded import analysis, languages, token_table
from indlet.service.index.embedded.analysis import Analyses
from indlet.service.index.embedded.engine import Engine
from indlet.service.index.embedded.languages import weighed
from indlet.service.index.embedded.postings import Words
from indlet.service.index.expression import Term
from indlet.text import FIELDS, LANGUAGES, Analyzer, Policy, langid, stop_words

ENGLISH = (
    "The flutter of heated wings in a supersonic flow is not what it was when they were first tested, and so "
    "we have to ask whether the boundary layer of the plate can be held where it is by the heat of 1953."
)
GERMAN = (
    "Über die Strömung an der Platte ist nicht so viel bekannt wie über die Grenzschicht, und es wird daher "
    "mit einer anderen Größe gerechnet, die von der Wärme des Flügels nicht abhängt."
)
LATIN = (
    "Gallia est omnis divisa in partes tres, quarum unam incolunt Belgae, aliam Aquitani, tertiam qui "
    "ipsorum lingua Celtae, nostra Galli appellantur. "
)
FRENCH = "L'écoulement dans la couche limite n'est pas le même que celui qui a été mesuré par les auteurs."

_WORDS = [
    *sorted({w for language in ("en", "de", "fr", "nl", "tr") for w in stop_words(language)})[::7],
    "wing", "Wings", "winging", "supersonic", "flow", "flows", "internationalisation",
    "internationalization", "interna", "internat", "1953", "7", "007", "co-operate", "x", "A.B.C.",
    "a" * 64, "b" * 65, "c" * 255, "d" * 256, "Strömung", "ÉCOLE", "ﬁnite", "情報検索", "naïve", "e²", "²",
    "İzmir", "kitap",
    "soft\u00adhyphen", "end\u00ad", "Москва", "и", "не", "—", "“quoted”", "no\u00a0break", "\ud800",
    'say "so"', "back\\slash", "tab\tand\nline", "bell\u0007", "del\u007f", "thin\u2009space", "x\u3000y",
    "next\u0085line", "zero\u200bwidth", "narrow\u202fspace", "ogham\u1680mark", "³\u2003½", "Ａ1",
]  # fmt: skip
_value = st.one_of(
    st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join),
    st.sampled_from([ENGLISH, GERMAN, FRENCH]),
    st.text(max_size=40),
    st.text(st.characters(max_codepoint=127), max_size=40),
    st.sampled_from(["", " ", "...", "word " * 1200, "läuft " * 900, "e" * 70_000]),
)
_metadata = st.dictionaries(
    st.sampled_from([*FIELDS, "rights"]), st.lists(_value, max_size=4), max_size=7
).flatmap(
    lambda metadata: st.sampled_from([[], [""], ["en"], ["ger", "en"], ["tur"], ["la"], ["??", "fr"]]).map(
        lambda stated: {**metadata, "language": stated}
    )
).flatmap(
    lambda metadata: st.sampled_from([
        {}, {"date": ["1953"]}, {"date": ["n. d.", "2001-02"], "type": ["Text", 'a "type"']},
    ]).map(lambda more: {**metadata, **more})
)  # fmt: skip
_policies = st.builds(
    Policy,
    language=st.sampled_from(["auto", "auto", "auto", "en", "de", "", "zh"]),
    default_language=st.sampled_from(["en", "", "de"]),
    stop=st.booleans(),
    stem=st.booleans(),
    positions=st.sampled_from([False, False, False, True]),
    prune=st.sampled_from([None, None, None, 0.5]),
    min_length=st.sampled_from([1, 3]),
    max_length=st.sampled_from([5, 64, 255]),
)


def stored(number: int, metadata: Metadata, vector: TermVector | None) -> Stored:
    """A record of the change feed as the store gives it."""
    made = vector or TermVector()
    return Stored(
        number, number, 1, f"oai:x:{number}", 0, 0, "", made.language, made.length, 0,
        orjson.dumps(metadata), b"", b"", None if vector is None else made.packed, made.positions, b"",
    )  # fmt: skip


def encodable(metadata: Metadata) -> bool:
    """Whether the store could hold it."""
    return not any("\ud800" <= c <= "\udfff" for values in metadata.values() for v in values for c in v)


def indexed(folder: Path, batches: Iterable[tuple[Sequence[Stored], Words | None]]) -> dict[str, Any]:
    """All that an index says of records: statistics, lengths, norms, every posting, facets."""
    with Engine.open(folder, writable=True) as engine:
        for changes, words in batches:
            engine.take(changes, words)
        engine.commit()
        searcher = engine.searcher()
        found: dict[str, Any] = {"fingerprint": searcher.fingerprint()}
        for name, _, _ in searcher.vocabulary():
            term = name.decode()
            hits = searcher.search(Term(term), limit=100, facets=("language", "type", "year"))
            found[term] = [(hit.id, hit.score) for hit in hits.hits], hits.facets
        return found


def held_to_the_analyzer(policy: Policy, batch: Sequence[Metadata]) -> None:
    """Records with a vector and without, all together and one by one, make the same index."""
    many, single = Analyses(Analyzer(policy)), Analyses(Analyzer(policy))
    stated = itertools.cycle(["", "en", "de", "tr", "fr", "la"])
    own = TermVector.of({"own": 2, "wing": 1})
    changes: list[Stored] = []
    for metadata in filter(encodable, batch):
        changes.append(stored(len(changes) + 1, metadata, None))
        with_vector = replace(own, language=next(stated))
        changes.append(stored(len(changes) + 1, metadata, with_vector))
    gone = stored(len(changes) + 1, {}, None)._replace(deleted=1)
    half = len(changes) // 2
    with tempfile.TemporaryDirectory() as folder:
        # Twice: tokens that are new, and the same when they are known.
        parts = [changes, [*changes[:half], gone], changes[half:]]
        together = indexed(Path(folder, "together"), [many.together(part) for part in parts if part])
        plain = indexed(Path(folder, "plain"), [(single.one_by_one(part), None) for part in parts])
    assert together == plain


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_policies, st.lists(_metadata, max_size=6))
def test_equals_the_analyzer(policy: Policy, batch: list[dict[str, list[str]]]) -> None:
    held_to_the_analyzer(policy, batch)


def realistic(count: int) -> list[dict[str, list[str]]]:
    made = []
    for number in range(count):
        text = (ENGLISH, GERMAN, FRENCH)[number % 3].split()
        at = number % len(text)
        made.append({
            "title": [" ".join(text[at:] + text[:at])],
            "creator": [f"Müller{number}, A.", "Garrick, I. E."],
            "subject": ["wings", "flow", f"topic{number % 7}", f"n{number * number}"],
            "description": [" ".join(text * (1 + number % 4)), f"{number} pages"],
            "publisher": ["Example Press"],
        })  # fmt: skip
    return made


@pytest.mark.parametrize("policy", [Policy(), Policy(stem=False, stop=False), Policy(language="de")])
def test_running_text(policy: Policy) -> None:
    batch = realistic(60)
    held_to_the_analyzer(policy, batch)
    _, words = Analyses(Analyzer(policy)).together([stored(1, metadata, None) for metadata in batch])
    assert words.facets.languages == [
        policy.language if policy.language != "auto" else g for g in ("en", "de", "fr") * 20
    ]
    assert words.own.all()


def test_a_clear_language_needs_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells the language of ordinary text itself."""
    asked: list[str] = []

    def modelled(texts: Sequence[str], *_: object) -> list[str]:
        asked.extend(texts)
        return [""] * len(texts)

    monkeypatch.setattr(analysis, "modelled", modelled)
    _, words = Analyses(Analyzer(Policy())).together([stored(1, metadata, None) for metadata in realistic(9)])
    assert words.facets.languages == ["en", "de", "fr"] * 3
    assert asked == []


def test_what_words_leave_in_doubt_is_asked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles alone, in many languages, with digits of other scripts, and in sentences of which the words and
    the model tell different languages."""
    lines = (Path(__file__).parents[2] / "text" / "paragraphs.txt").read_text("utf-8").splitlines()
    titles = [line[at : at + 130] for line in lines for at in (3, 60)]
    titles += [f"{title} ٣ ٤ ٥ ² ³" for title in titles[::5]]
    titles += [" ".join((*title.split()[:9], "the of und der", *title.split()[9:])) for title in titles[::4]]
    titles += ["Reports — " + " ".join(f"{title[:20]} 12 34 56" for title in titles[:60])]
    asked: list[int] = []

    def modelled(texts: Sequence[str], places: Sequence[int], by: languages.Judged) -> list[str]:
        asked.extend(by.script[places])
        return languages.modelled(texts, places, by)

    monkeypatch.setattr(analysis, "modelled", modelled)
    held_to_the_analyzer(Policy(), [{"title": [title]} for title in titles])
    assert len(asked) > 20 and len([script for script in asked if script >= 0]) > 1


def test_a_full_table_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_table, "_MOST_TOKENS", 100)
    held_to_the_analyzer(Policy(), realistic(30))


def test_a_table_grows() -> None:
    """More tokens, longer names and more terms than any array has room for at first."""
    words = [f"{number:x}{'q' * (number % 200)}" for number in range(25_000)]
    batch: list[dict[str, list[Any]]] = [
        {"title": [" ".join(words[at : at + 250])]} for at in range(0, len(words), 250)
    ]
    held_to_the_analyzer(Policy(max_length=255), batch)


def test_metadata_that_are_no_json_stay_within_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs the kernel here, for it tells of every place outside of an array."""
    monkeypatch.setattr(Kernel, "__call__", Kernel.by_python)
    table = Analyses(Analyzer(Policy()))._table
    for records in (
        [b'{"title":["' + b'"' * 601 + b"]}"],
        [b'{"title":["\\}', b"?" + b'"x' * 300 + b"]"],
        [b'{"title":["a"]x}', b'{"title":["a"],"', b"{", b"", b'{"}', b'{"title', b'x:["a"]}', b'{"title":}'],
    ):
        tokens = table.cut(b"".join([*records, bytes(16)]), list(map(len, records)))
        assert tokens.odd.all()
        assert not tokens.ids.size


def test_words_like_mixed_numbers_of_many_terms() -> None:
    """A piece that becomes many terms, in a record of few pieces."""
    batch = [
        {"title": ["".join(chr(0x4E00 + i) for i in range(80)) * 20 + " wing"]},
        {"title": ["wing 情報検索"]},
    ]
    held_to_the_analyzer(Policy(), batch)


def _own(language: str, count: int) -> str:
    """Function words of one language that no other has."""
    others = frozenset[str]().union(*(stop_words(other) for other in LANGUAGES if other != language))
    return " ".join(sorted(w for w in stop_words(language) if len(w) > 2 and w not in others)[:count])


@pytest.mark.parametrize(
    ("policy", "metadata"),
    [
        # The lead of a language over the next is one and a half exactly: not enough.
        (Policy(default_language="fr"), {"title": [f"{_own('en', 6)} {_own('de', 4)}"]}),
        (Policy(default_language="fr"), {"title": [f"{_own('en', 7)} {_own('de', 4)}"]}),
        # Digits beyond ASCII make a table of a text as others do.
        (Policy(default_language="fr"), {"title": [f"{_own('en', 4)} ² ² ² ²"]}),
        (Policy(default_language="fr"), {"title": [f"{_own('en', 4)} 2 2 2 2"]}),
        (Policy(default_language="fr"), {"title": [f"{_own('en', 4)} é é é é"]}),
        # Most letters are of another script.
        (
            Policy(),
            {"title": [f"{_own('en', 6)} столица объединение государственный высокопоставленный эпоха"]},
        ),
        # A text without a language, beside a field that has one.
        (Policy(default_language=""), {"title": ["wings"], "publisher": [ENGLISH]}),
        # One term is the beginning of another, past the eight bytes that are compared at once.
        (Policy(stem=False), {"title": ["internationals internat internation internationa zz internati"]}),
        (Policy(stem=False), {"title": ["ärgerlichkeiten ärgerlich zebra ärgerli ärgerlicher zebra"]}),
        # A broken word is joined over the end of a value, and over the end of a field.
        (Policy(), {"title": ["end\u00ad", "wing"], "description": ["x"]}),
        (Policy(), {"title": ["end\u00ad"], "description": ["wing"]}),
        # What a record without a vector states first is all that counts.
        (Policy(default_language="de"), {"title": ["1 Häusern"], "language": ["??", "fr"]}),
        # Longer than what is judged as a whole in bytes, but not in characters; the model reads the start.
        (Policy(), {"title": [f"{LATIN * 5} {' '.join([GERMAN] * 17)}{' Platte' * 14}"]}),
        (Policy(), {}),
    ],
)
def test_the_edges_of_the_rules(policy: Policy, metadata: dict[str, list[str]]) -> None:
    held_to_the_analyzer(policy, [{"title": ["wing"]}, metadata, {"title": ["flow"]}])


def test_the_kernel_weighs_a_text_as_the_model_does() -> None:
    lines = (Path(__file__).parents[2] / "text" / "paragraphs.txt").read_text("utf-8").splitlines()
    texts = [*lines, *(line[3:43] for line in lines), "ALL IN CAPITALS", "", "zzz", "\ud800"]
    together = langid.classify_all(texts, weighed)
    for text, (told, likely) in zip(texts, together, strict=True):
        language, probability = langid.classify(text)
        assert told == language and likely == pytest.approx(probability, abs=1e-5), text


_digits = st.sampled_from(
    ["0", "00", "01", "12", "13", "28", "31", "32", "99", "0001", "0999", "1000", "1953", "2024"]
)
_date = st.one_of(
    st.lists(_digits, max_size=3).map("-".join),
    st.lists(
        st.one_of(_digits, st.sampled_from(["-", "T", "Z", " ", "c. ", "[", "?", '"', "\\", "é"])), max_size=8
    ).map("".join),
    st.dates().map(str),
    st.datetimes().map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%SZ}"),
)


@cache
def _dated() -> Analyses:
    return Analyses(Analyzer(Policy()))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(_date, max_size=4), min_size=1, max_size=8))
def test_dates(dates: list[list[str]]) -> None:
    """Those that a kernel reads are what the plain way makes of them."""
    analyses = _dated()
    changes = [stored(n, {"title": ["x"], "date": values}, None) for n, values in enumerate(dates)]
    _, words = analyses.together(changes)
    assert words.facets.dates == [date_number({"date": values}) for values in dates]
