"""MARC-8: what is written is read back, by the codes that the Library of Congress lists."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.exchange.translate import Translation, Translator, format_named
from indlet.formats.iso2709 import Marc, read_iso2709
from indlet.formats.marc8 import _table, from_marc8, to_marc8
from indlet.formats.metadata import marc21
from indlet.formats.record import Field

# Half marks are what a mark over two letters is read as; pymarc passes over zero-width joiners and controls.
_NOT_READ = "\u0360\u0361\u200c\u200d\u0098\u009c\x7f&"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Müller", b"M\xe8uller"),  # a mark stands before its letter
        ("Łódź ©", b"\xa1\xe2od\xe2z \xc3"),
        ("Мир", b"\x1b(NmIR\x1b(B"),
        ("Мир II", b"\x1b(NmIR \x1b(BII"),
        ("їжа", b"\x1b)Q\xc7\x1b(NVA\x1b(B"),
        ("中 x", b"\x1b$1!04\x1b(B x"),
        ("H₂O", b"H\x1bb2\x1bsO"),
        ("Ờ", b"\xe1\xac"),  # the letter with a horn has a code, with a horn and a grave it has none
        ("t͡s", b"\xebt\xecs"),
        ("☃ ȃ", b"&#x2603; &#x0203;"),
        ("☃\u0301", b"\xe2&#x2603;"),
        ("𝄞", b"&#x1D11E;"),
    ],
)
def test_codes_are_those_of_the_tables(text: str, written: bytes) -> None:
    assert to_marc8(text) == written


def test_every_character_of_the_tables_is_read_back() -> None:
    for character in _table():
        if character >= " " and character not in _NOT_READ:
            text = unicodedata.normalize("NFC", f"a{character}b")
            assert from_marc8(to_marc8(text)) == text, hex(ord(character))


@settings(deadline=None)  # the first one loads the tables
@given(
    st.text(st.one_of(st.sampled_from("aeo Éßжіώשم書\u0301\u0323"), st.characters(exclude_categories=["C"])))
)
def test_what_is_written_is_read_back(text: str) -> None:
    text = unicodedata.normalize("NFC", "".join(c for c in text if c not in _NOT_READ))
    if not unicodedata.combining(text[:1] or "a"):
        assert from_marc8(to_marc8(text)) == text


def test_ansel_after_another_upper_set_is_read() -> None:
    assert from_marc8(to_marc8("ї é")) == "ї é"


def test_a_mark_before_a_reference_belongs_to_it() -> None:
    assert from_marc8(b"\xe2&#x03B1;") == "ά"


def test_a_record_tells_its_coding_and_its_sets() -> None:
    fields = [
        Field("001", "7"), Field("066", "", "  ", (("c", "(3"),)),
        Field("245", "", "10", (("a", "Мир"), ("b", "中文"), ("c", "M. Müller ☃"))),
    ]  # fmt: skip
    packed = format_named("marc8").pack(fields)
    record = read_iso2709(packed[:-1])
    assert record.leader[9] == " "
    assert int(packed[:5]) == len(packed)
    assert [(f.tag, f.subfields) for f in record.fields[1:]] == [
        ("066", (("c", "(N"), ("c", "$1"))),
        ("245", (("a", "Мир"), ("b", "中文"), ("c", "M. Müller ☃"))),
    ]


def test_a_reference_in_a_record_of_unicode_is_text() -> None:
    field = Field("245", "", "10", (("a", "Writing &#x4E00; in HTML"),))
    for marc8, told in ((False, "Writing &#x4E00; in HTML"), (True, "Writing 一 in HTML")):
        packed = marc21.pack([Field("001", "7"), field], marc8)
        assert read_iso2709(packed[:-1]).fields[1].subfields == (("a", told),)


def test_files_are_translated_to_marc8_and_back() -> None:
    record = Marc(
        "00000cam a2200000 a 4500",
        (Field("001", "7"), Field("245", "", "10", (("a", "Écran"), ("z", "local")))),
    )
    packed = marc21.pack(marc21.marc_fields(record))
    (there,) = Translator(format_named("marc21"), format_named("marc8")).records(packed)
    assert isinstance(there, Translation)
    assert b"\x1fa\xe2Ecran\x1fzlocal" in there.data
    (back,) = Translator(format_named("marc8"), format_named("marc21")).records(there.data)
    assert isinstance(back, Translation)
    assert back.data == packed
