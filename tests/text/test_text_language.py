"""Languages: found where a text tells, left open where it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from indlet.text import code, detect, langid

# One paragraph a line, after the code of its language.
PARAGRAPHS = dict(
    line.split(" ", 1) for line in Path(__file__).with_name("paragraphs.txt").read_text("utf-8").splitlines()
)


@pytest.mark.parametrize("language", PARAGRAPHS)
def test_paragraphs(language: str) -> None:
    assert detect(PARAGRAPHS[language]) == language
    assert detect((PARAGRAPHS[language] + "\n") * 40) == language
    assert detect(PARAGRAPHS[language].upper()) in (language, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "Preliminary Report-International Algebraic Language",
        "Shuttle Sort (Algorithm 175) Shaw, C. J.; Trimble, T. N.",
        "Shr 45 cts vs 50 cts Net 18.0 mln vs 19.9 mln Sales 116.1 mln vs 108.8 mln Avg shrs 4,249,221",
        "May 1191/1210 ba Jul 1195 BID Sep 1220/1255 ba Sales at call NIL accumulative total NIL",
        "Le Havre 1191/1210 ba, 1195 ag; 1220/1255 ba; 1300/1311 ag; 1250 bid; 1255/1260 ba; 1410 steady",
        "und nicht aber het een voor",
        "Van der Waals forces",
        "for (int i = 0; i < n; i++) { sum += a[i]; }",
        "3.14159 2.71828 1.41421",
        "\ud800\udfff",
    ],
)
def test_what_does_not_tell_is_left_open(text: str) -> None:
    assert detect(text) == ""


def test_quotations_do_not_turn_a_text() -> None:
    assert detect(PARAGRAPHS["en"] * 3 + " „Der Katalog wurde gedruckt“ 目録 каталог.") == "en"


@given(st.text(max_size=300))
def test_an_answer_is_a_code_or_nothing(text: str) -> None:
    answer = detect(text)
    assert answer == "" or code(answer) == answer


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("en", "en"), ("EN-us", "en"), ("eng", "en"), ("English", "en"), ("ger", "de"), ("deu", "de"),
        ("de_AT", "de"), ("Deutsch", "de"), ("nb", "no"), ("nno", "no"), ("zho", "zh"), ("en; fr", "en"),
        ("mul", ""), ("und", ""), ("", ""), ("zz", ""), ("x" * 1000, ""),
    ],
)  # fmt: skip
def test_codes(name: str, expected: str) -> None:
    assert code(name) == expected


def test_the_model_is_not_loaded_without_need() -> None:
    program = (
        "import sys; from indlet.text import Analyzer\n"
        f"Analyzer().vector({PARAGRAPHS['en']!r}); Analyzer().vector('a short title')\n"
        "sys.exit('py3langid' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_model_answers_as_its_library_does() -> None:
    library = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model = langid.model()
    assert model is not None
    lines = list(PARAGRAPHS.values())
    for text in [*lines, *(line[:40] for line in lines), "ALL IN CAPITALS"]:
        language, probability = model.classify(text)
        expected, theirs = library.classify(text)
        assert language == expected
        assert probability == pytest.approx(float(theirs), abs=1e-4)


def test_an_unpacked_model_is_kept_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = (
        "from indlet.text import langid; print(langid._folders()[1]); print(langid.model().classify('x'))"
    )
    first, *answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    kept = Path(first)
    assert kept.parent == tmp_path
    for file in kept.glob("*.npz"):
        file.write_bytes(b"torn")
    again = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert again.stdout.splitlines()[1:] == answer


@pytest.mark.parametrize(
    ("text", "stated", "found"),
    [
        # Names and subjects, without a function word.
        (
            "Kauffman Gerald Bradley Nigel Ostrosky Michaelene dam safety Delaware water resources " * 2,
            "de",
            "",
        ),
        ("The catalogue was printed in two volumes, and the second of them has been lost", "tr", "en"),
        ("The catalogue was printed in two volumes, and the second of them has been lost", "en", "en"),
    ],
)
def test_a_stated_language_is_believed_unless_words_speak_against_it(
    text: str, stated: str, found: str
) -> None:
    assert detect(text, stated) == found
