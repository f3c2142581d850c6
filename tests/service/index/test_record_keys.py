"""The keys of records that are analysed together are those that each has alone, whatever its values."""

from __future__ import annotations

import re
from hashlib import blake2b

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.kernels import blake2b as b
from indlet.kernels import keys as k
from indlet.kernels.folding import FOLDED
from indlet.kernels.jit import Kernel
from indlet.model import FIELD_MARKS, Metadata, Stored
from indlet.service.index.embedded.analysis import Analyses
from indlet.service.index.keys import ELEMENTS, keys
from indlet.text import Analyzer, Policy

IDENTIFIERS = [
    "oai:x.example.org:5", "OAI:X:5", "oai:", "oai:arXiv.org:1412.0195", "oai:arXiv.org:1412.01950",
    "oai:arXiv.org:hep-th/9901001", "oai:arXiv.example.org:1412.019500", "oai:ärger:1", "oai:a b", "oai:a\\b",
    "http://x.org", "https://WWW.X.org/A/b/?Q=1", "http://www.", "http://www./", "http://x.org//",
    "http://x.org?",
    "http://x.org/?", "http://x.org/a#b", "http://x.org:80/a", "http://x_y.org/", "ftp://x.org/a",
    "http:///a",
    "http://x.org/10.html", "http://hdl.handle.net/19716/5", "http://hdl.handle.net/19716/5/",
    "https://hdl.handle.net/2027.42/a_b-C.1", "http://hdl.handle.net/x/5", "http://hdl.handle.net/1/a?b=1",
    "http://www.handle.net/x", "http://hdl.handle.net/1/a.", "hdl:1/2", "hdl 1/2",
    "http://dspace.mit.edu/handle/1721.1/34", "http://x.org/a/b_c/handle/1/2", "http://x.org//handle/1/2",
    "http://x.org/a~b/handle/1/2", "http://x.org/handle/1/2/3", "http://x.org/handle/x/2",
    "http:///handle/1/2",
    "http://hdl.handle.net/handle/1/2", "http://www./handle/1/2", "http://x.org/handle/1/2/",
    "http://x.org/handle",
    "https://x.org/handle/1/2?a=b", "handle 1/2", "Handle: 1/2", "http://x.org/handler/1/2",
    "10.1000/182", "10.1000/A-b_c.D", "10.1000/182.", "10.100/182", "10.1000/", "10.1000/a/b",
    "10.1234567890/a",
    "doi:10.4236/x.0", "doi:10.4236/x.0.", "DOI: 10.1000/182", "doi:10.1000/issn1234-5679",
    "doi:10.1000/a(b)",
    "https://doi.org/10.1000/182", "http://dx.doi.org/10.1000/182/", "https://www.doi.org/10.1000/182",
    "https://doi.org/10.48550/arXiv.2101.00001", "http://doi.org/a/10.1000/182",
    "https://doi.org/10.1000/a?b=1",
    "http://arxiv.org/abs/1412.0195", "https://arXiv.org/abs/1412.01950v2",
    "http://arxiv.org/pdf/1412.0195.pdf",
    "http://arxiv.org/abs/1410.1234", "http://arxiv.org/abs/hep-th/9901001", "http://arxiv.org/a/x_1",
    "arXiv:1412.0195", "hep-th/9901001", "1412.0195", "http://x.org/arxiv.1412.0195", "arxiv",
    "isbn:0306406152", "0-306-40615-2", "ISSN 0317-8471", "issn-less", "uw00001.jp2", "TR-7", "a", "Report/7",
    "Fowler, L. G. (2007) One-for-five bonus issue. [Journal (Paginated)]",
    "two  spaces and a long tail " * 6,
    "Fowler (2007) 10.5 ", "x" * 100, "x" * 117, "x" * 118, "x y " * 40, "http://x.org/" + "y" * 100,
    " lead", "\x7f",
    "Müller, Z. (2001) Über die Größe. [Journal (Paginated)]", "Écrits 10.1000/182", "Éa/b", "éa", "²5", "5é",
    "Петров, И. (1999) Всё, что о нём", "a" + "é" * 116, "a" + "é" * 117, "a" + "й " * 90, "x\u0301 y",
    "iſbn 5", "xİ", "xŉ",
    "a\u00a0b", "a\u00adé", "iSSN é", "arXiv é", "x é:// y", "ß ﬁ ẞ", "hdl é", "x\u2028y",
    "x王é", "x é" + "y" * 400,
    "a\"b", "tab\tbed", "full\u3000width", "x" * 500,
]  # fmt: skip
NAMES = [
    "Wang, Wei", "Wang, W.", "WANG, Wei-Ling", "O'Brien, M. A.", "van der Berg, Jan", "'t Hooft, G.",
    "Wang Wei",
    "Wang,Wei", "Wang , Wei", "Wang,  Wei", " Wang, Wei ", "Wang, Wei, 1970-", "Wang, Wei (ed.)",
    "Wang, Wei Jr.",
    "Smith, Dr. J.", "Prof. Wang, W.", "Md Ali, X", "Wang, Ph. D.", "Wang, PhD", "Sophie, Andrew", "Wang,",
    ",Wang",
    ",", "", ";", "Wang, Wei; Rossi, A.", "Wang, Wei;", "; Wang, Wei", ";;Wang, Wei; Müller, Z.; Rossi, A.",
    "Müller, Z.; Rossi, A.", "Petrov, T. S.; University of X", "University of X",
    "University of X; Petrov, T. S.",
    "Dr.; Wang, Wei", "...; Wang, Wei", "Wang_, W", "Wang, W; ; ;", "Müller, Z.", "a" * 59 + ",b",
    "a" * 70 + ", b",
    "Wang, " + "x" * 52, "b, " + "y z " * 14, "Wang, Wei; " * 250, "Wang, \"Bill\"", "Wang, \\",
    "Ng, A; 王, 伟", "Sørensen, Å.", "Åström, Östen K.", "ÆSIR, Æ.", "Петров, И. С.", "Παπαδόπουλος, Γ.",
    "O’Brien, É.",
    "Müller, ſr", "Dŕ, X", "É, È", "Müller, Zoë; Čapek, Ž.", "Muller\u0308, Z.", "Mª, N.", "É²a, B",
    "a, \u0301", "Łuć, Đ.",
    "é" * 29 + ",b", "é" * 30 + ",b", "İ, I", "Ŀ, B",
]  # fmt: skip
SUBJECTS = [
    "dam safety", " dam  safety ", "DAM", "", " ", "трубопровод", "a\\b", "a\tb", "x" * 99, "x" * 130,
    "a;b", "\x7f",
    "...", "a  " * 40,
]  # fmt: skip
TITLES = [
    "The wings", "A", "the", "", "...", "One two three: four", "One two: three", "One  two  three :four",
    "-- - - : x",
    "a: b: c d e: f", "word " * 59, "word " * 60, "word " * 61 + ": x", "word " * 70, "x" * 1000, "x" * 1001,
    "ab " * 333, "The " + "long " * 30, "Äpfel: x", "say \"so\"", "del\x7fete", "l'art", "Die Wende",
    "12 of 3", ":",
    "a b c:", "x" * 119 + " y", "x" * 120 + " y", "internationalisation of a",
    'say "so" twice: x', '"a" "b" c: d', '" " ": x', 'end\\', 'a\\"b', '"', 'tab\t"x"',
    "Über die Größe", "L’été à Paris: un essai", "Ο κατάλογος τυπώθηκε σε δύο τόμους", "Всё, что о нём: й",
    "Ärger – und – so: x", "–", "– : –", "ø ø ø: æ", "İstanbul ıs", "Iﬁ ½ ²", "e\u0301cole",
    "\u0301a", "no\u00a0break: x y",
    "é" * 119 + " y", "й" * 120 + " y", "ß" * 130, "é " * 70, "Ǆ ŉ ᾳ", "“Die Größe”", "a…b", "x™ y",
    "Á\u00adb", "Łódź",
    "王 伟 a: b", "𝔄 x",
]  # fmt: skip
POOL = {
    "identifier": IDENTIFIERS, "creator": NAMES, "contributor": NAMES, "subject": SUBJECTS, "title": TITLES,
    "format": ["application/pdf", "185 bytes", "7z; application/pdf", "image/jp2", "", "ÜBER"],
    "inferred_subject": SUBJECTS,
    "inferred_type": ["Text", "Ärger"],
}  # fmt: skip
LANGUAGES = [[], ["en"], ["de"], ["French"], [""], ["IT-it", "en"], ["zh"]]


def together(analyses: Analyses, records: list[tuple[str, Metadata]]) -> list[set[bytes]]:
    """The keys of records, by the kernels."""
    changes = [
        Stored(n, n, 1, name, 0, 0, "", "", 0, 0, orjson.dumps(metadata), b"", b"", b"1 x", None, b"")
        for n, (name, metadata) in enumerate(records)
    ]
    _, words = analyses.together(changes)
    fields = tuple(mark.encode() for mark in FIELD_MARKS.values())  # of records that the kernels leave out
    return [
        {key for key in re.split(b"[ \n]", v) if key[:1] == b"\x1f" and key[:2] not in fields}
        for v in words.fields
    ]


def alone(name: str, metadata: Metadata) -> set[bytes]:
    return set(keys(name, metadata).split(b" ")) - {b""}


@pytest.fixture(scope="module")
def analyses() -> Analyses:
    return Analyses(Analyzer(Policy()))


def test_every_element_with_keys_has_values_here() -> None:
    assert POOL.keys() == ELEMENTS.keys()


@pytest.mark.parametrize("element", POOL)
def test_values_of_all_kinds(analyses: Analyses, element: str) -> None:
    """As the first value and as the second, under each language; twice, for what comes back is looked up."""
    records: list[tuple[str, Metadata]] = []
    for number, value in enumerate(POOL[element]):
        stated = LANGUAGES[number % len(LANGUAGES)]
        records.append((f"oai:x:{number}", {element: [value], "language": stated}))
        records.append((f"oai:x:{number}", {element: ["Other, O.", value, value, value], "language": stated}))
    for _ in range(2):
        for (name, metadata), found in zip(records, together(analyses, records), strict=True):
            assert found == alone(name, metadata), metadata


def test_titles_in_every_language(analyses: Analyses) -> None:
    records: list[tuple[str, Metadata]] = [
        ("x", {"title": [f"{word} wing"], "language": stated})
        for word in ("the", "die", "les", "il", "gli", "o", "het", "el")
        for stated in LANGUAGES
    ]
    for (name, metadata), found in zip(records, together(analyses, records), strict=True):
        assert found == alone(name, metadata), metadata


def test_identifiers_of_records(analyses: Analyses) -> None:
    records: list[tuple[str, Metadata]] = [(name, {"title": ["x"]}) for name in [*IDENTIFIERS, ""]]
    for (name, metadata), found in zip(records, together(analyses, records), strict=True):
        assert found == alone(name, metadata), name


_part = st.sampled_from(
    ["http://", "https://", "www.", "doi.org/", "dx.", "hdl.handle.net/", "10.", "1000", "/", "arxiv",
    ".org", ":",
     "abs/", "1412.0195", "oai:", "doi:", "?", "#", ".", "-", " ", ";", ",", "a", "B", "é", "7", "v2",
    "issn", "hdl", "/handle/", "handle"]
)  # fmt: skip
# Letters of several scripts, marks, signs, and whatever the kernels know of.
_wide = st.text(
    st.one_of(
        st.sampled_from(
            "aZ7 ,.;:-'\"\\’–…·ªº²½ßæøłðþıİſŉǆΣσςΐάᾳѓйЁїäÉñ"
            "\u0301\u0308\u0345\u0307\u00ad\u00a0\u2028\u1680ﬁ王ｗक"
        ),
        st.characters(min_codepoint=0xA0, max_codepoint=0x52F),
        st.characters(min_codepoint=0x1E00, max_codepoint=0x2070),
        st.characters(),
    ),
    max_size=20,
)
_made = st.one_of(st.lists(_part, max_size=7).map("".join), st.text(max_size=12))
_metadata = st.dictionaries(
    st.sampled_from(sorted(ELEMENTS)),
    st.lists(st.one_of(_made, *(st.sampled_from(pool) for pool in POOL.values())), max_size=4),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_made, _metadata, st.sampled_from(LANGUAGES)), min_size=1, max_size=6))
def test_any_values(analyses: Analyses, made: list[tuple[str, dict[str, list[str]], list[str]]]) -> None:
    records: list[tuple[str, Metadata]] = [(n, {**metadata, "language": said}) for n, metadata, said in made]
    try:
        orjson.dumps(records)
    except orjson.JSONEncodeError:  # the store could not hold it
        return
    for (name, metadata), found in zip(records, together(analyses, records), strict=True):
        assert found == alone(name, metadata), metadata


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_wide, _wide, _wide, st.sampled_from(LANGUAGES)), min_size=1, max_size=6))
def test_values_beyond_ascii(analyses: Analyses, made: list[tuple[str, str, str, list[str]]]) -> None:
    """Twice, for a character has to be met once before a kernel folds it."""
    records: list[tuple[str, Metadata]] = [
        (
            "x",
            {
                "title": [t],
                "creator": [f"{c},{g}", c],
                "contributor": [f"{g}, {c}"],
                "identifier": [f"x{t} {c}", g],
                "language": said,
            },
        )
        for t, c, g, said in made
    ]
    try:
        orjson.dumps(records)
    except orjson.JSONEncodeError:
        return
    for _ in range(2):
        for (name, metadata), found in zip(records, together(analyses, records), strict=True):
            assert found == alone(name, metadata), metadata


def test_every_character_whose_folding_is_known(analyses: Analyses) -> None:
    characters = [chr(c) for c in (*range(0xA0, 0x540), *range(0x1DF0, FOLDED + 9))]
    records: list[tuple[str, Metadata]] = [
        (
            "x",
            {
                "title": [f"a{c}e{c}{c} {c}: {d}{c}i{d}"],
                "creator": [f"{c}b{d}, {d}{c}."],
                "identifier": [f"x {c}y{d}"],
            },
        )
        for c, d in zip(characters, [*characters[300:], *characters[:300]], strict=True)
    ]
    for _ in range(2):
        for (name, metadata), found in zip(records, together(analyses, records), strict=True):
            assert found == alone(name, metadata), metadata


@pytest.mark.parametrize("size", [0, 1, 7, 8, 127, 128, 129, 255, 256, 257, 700])
def test_the_digest(size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(size))
    made = b.digest(
        np.frombuffer(data + bytes(8), np.uint8),
        size,
        k.TITLE_DIGEST,
        b.SIGMA,
        b.IV,
        np.empty(b.STATE, np.uint64),
    )
    assert (
        int(made).to_bytes(8, "little")[: k.TITLE_DIGEST]
        == blake2b(data, digest_size=k.TITLE_DIGEST).digest()
    )


def test_many_short_names_stay_within_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs the kernels here, for it tells of every place outside of an array."""
    monkeypatch.setattr(Kernel, "__call__", Kernel.by_python)
    analyses = Analyses(Analyzer(Policy()))
    for names in ("a,b;" * 200, "x;" * 200):
        metadata: Metadata = {"creator": ["A"] + [names] * 20}
        records = [(f"oai:x:{n}", metadata) for n in range(3)]
        for _ in range(2):  # what the first asked for is recalled by the second
            assert together(analyses, records) == [alone(*record) for record in records]
