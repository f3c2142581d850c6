"""Tokens: what text is taken apart into."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.text.tokens import fold, join_lines, split, tokens, words


def found(text: str) -> list[str]:
    return [word for piece in split(join_lines(text)) for word in words(piece)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The wing's lift, re-computed", ["the", "wing", "s", "lift", "re", "computed"]),
        ("don't", ["don", "t"]),
        ("don’t", ["don", "t"]),
        ("x_1 = a[2]", ["x", "1", "a", "2"]),
        ("infor-\nmation", ["infor", "mation"]),
        ("infor\u00ad\nmation", ["information"]),
        ("infor\u00ad\r\n   mation", ["information"]),
        ("in\u00adfor\u00admation", ["information"]),
        ("ﬁnal ﬂow", ["final", "flow"]),
        ("Ｗｉｎｇ １２３", ["wing", "123"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("Müller, Mu\u0308ller", ["müller", "müller"]),
        ("İzmir IZMIR", ["izmir", "izmir"]),
        ("Linux™ kernel", ["linux", "kernel"]),
        ("“quoted”—dash…end", ["quoted", "dash", "end"]),
        ("½ cup, x²", ["1", "2", "cup", "x2"]),
        ("5 ㎏ at 20℃", ["5", "kg", "at", "20", "c"]),
        ("क्\u200dष", ["क्ष"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("a\u200bb", ["a", "b"]),
        ("zero\u2060width\ufeff", ["zerowidth"]),
        ("ΣΊΣΥΦΟΣ", ["σίσυφοσ"]),
        ("naïve café", ["naïve", "café"]),
        ("\u0301alone", ["alone"]),
        ("\ud800lone\udfff surrogate", ["lone", "surrogate"]),
        ("tab\tnl\nnbsp\u00a0nul\x00us\x1fend", ["tab", "nl", "nbsp", "nul", "us", "end"]),
        ("\ufffe\uffff", []),
        ("x" + "\u0301\u0323" * 50_000, ["x" + "\u0323" * 15 + "\u0301" * 15]),
        ("ΜΑ\u03aa\u0301ΟΥ μα\u0390ου", ["μα\u0390ου", "μα\u0390ου"]),
        ("ẞ\u0301", ["s\u015b"]),
        ("ａ＿ｂ", ["a", "b"]),
        ("a\u0e35", ["a\u0e35"]),
        (r"$\dfrac{B(D_s^\mp)}{\mathrm{GeV}}$", ["b", "d", "s", "gev"]),
        (r"$\alpha$-decay, \varphi, \log x", ["alpha", "decay", "phi", "log", "x"]),
        (r"C:\reports \begin{equation}y\end{equation}", ["c", "reports", "y"]),
        ("", []),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("情報検索", ["情報", "報検", "検索"]),
        ("本", ["本"]),
        ("日本語のテキスト。次", ["日本", "本語", "語の", "のテ", "テキ", "キス", "スト", "次"]),
        ("ｶﾞｲﾄﾞ", ["ガイ", "イド"]),
        ("第3章", ["第", "3", "章"]),
        ("Python言語", ["python", "言語"]),
        ("정보 검색은", ["정보", "검색", "색은"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("ที่นี่", ["ที่นี่"]),
        ("ខ្មែរ", ["ខ្មែ", "មែរ"]),
    ],
)
def test_scripts_without_spaces_become_pairs(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_a_long_run_of_an_unspaced_script_is_not_lost() -> None:
    assert len(found("ก" * 500)) == 499
    assert len(found("字" * 500)) == 499


@given(st.text(st.characters(max_codepoint=127, exclude_characters="\\")))  # which begins a TeX command
def test_ascii_text_gives_runs_of_letters_and_digits(text: str) -> None:
    assert split(text) == found(text) == re.findall("[a-z0-9]+", text.lower())


# Text that is awkward on purpose: marks, joiners, compatibility forms, unspaced scripts, surrogates.
awkward = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Mn", "Mc", "Cf", "Lm", "No", "Nl", "So", "Cs", "Cc", "Zs"]),
        st.sampled_from("aZ09 -'_\n\u00ad\u200b\u200d\u0301\u0307İıßſﬁ™ªΣςｶﾞ字あア한ㄱ가กำ้ខ្ក"),
    ),
    max_size=60,
)


@given(awkward)
def test_tokens_are_letters_digits_and_marks(text: str) -> None:
    for token in found(text):
        kinds = [unicodedata.category(character) for character in token]
        # Letters that this Python does not know are in no category of its own.
        assert all(kind[0] in "LMN" or kind == "Cn" for kind in kinds)
        assert kinds[0][0] != "M"
        assert token.split() == [token]
        # Character data of XML 1.0, section 2.2.
        assert re.fullmatch("[\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+", token)


@given(awkward)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert unicodedata.is_normalized("NFKC", fold(text))


def test_folding_stops_only_when_nothing_is_left_to_fold() -> None:
    # Thirty marks that unfold into sixty, half of which are too many.
    folded = fold("x" + "\u0344" * 30)
    assert len(folded) == 31
    assert fold(folded) == folded


@given(awkward)
def test_a_token_is_its_own_token(text: str) -> None:
    for token in found(text):
        assert split(token) == [token]
        assert words(token) == [token]


@given(awkward)
def test_case_and_form_make_no_difference(text: str) -> None:
    assert found(unicodedata.normalize("NFD", text)) == found(unicodedata.normalize("NFC", text))


@given(awkward)
def test_tokens_with_places_are_the_tokens(text: str) -> None:
    placed = tokens(text)
    assert [token for _, _, token in placed] == [word for piece in split(text) for word in words(piece)]
    for start, end, token in placed:
        assert token in words(text[start:end])


def test_places_point_into_the_text() -> None:
    assert tokens("Wing, Ｌift") == [(0, 4, "wing"), (6, 10, "lift")]
