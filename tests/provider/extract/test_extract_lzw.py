"""Files of Unix compress, as one was made by the real program."""

from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indlet.errors import ExtractionError, LimitExceeded
from indlet.model import Document
from indlet.provider.extract import parts
from indlet.provider.extract.file import File
from indlet.provider.extract.lzw import decompressed
from indlet.settings import Limits

# The numbers from 0 to 399, each followed by a space; `compress -c`. Its codes grow from 9 to 10 bits.
COMPRESSED = base64.b85decode(
    "ADxgeK*Rtc1H=pvG(gk<VFSbs5I8{O5EwAVz!(K%9E_1L#=;m4V?2xzF~&q00c8x7QBcM~83|=9l+jSeLm3feOq>yL"
    "#=sc`XB?c7aK^$J4QD)@5pl*u8Ubkxq*0K@K^h5ZETqwp#zPtrX-upUu*Sd|1#29vk+8<X8VzeatP!!sL>mEZ475?u"
    "#z7kiZ7j6W(8fa>5p7Jo5%9*q8wGD1ypiz6!W#{5JiHO{#zY(eaSX&!5XV6r32`jM(GbT&91(F$%n>lhz#Ij09L$k0"
    "$HE*9b3DuuF~`IhFe<{h2qPnmjW9aG_y{8;jFB)(!Z?mxphfQ)HG1#p(R)ad-b<Pkh?4z9mh3meWdD&S`;j==ALl91"
    "Xa9^s_1BS6{e`4de<e935L63ZMAd>DVYT2#TrD^fSPLFUmOy54n2}l>cH|a^A<4yINp=Z@mx>qhrQ$|_srV6LDvpGh"
    "ipMb~kYhV$B-xG~S+-+Hn(bJUX99ti<VB<<xe;nfe#BamBf*yBakL3!o0b{rre#OIX&I7mT9#xSLCK-HQgdj&6djr~"
    "RfpzH*`aw-cPg!f5kcaq6jOOB)r6i(IjzT1N-7ZqA4@OI$I?vpv2;^@ES<!kODh3IP=GGQM4(GG9q3X{3c{3<R0KT;"
    "(@PS<G*g8z-Gm`bCv7OxN@x)TqD(Q3C{s-)%9K-zG^L~$K`zqtQj9dsL?cZ%-AL0(I@+`nWCZ<aQ%pkIR8x^Q<%A?o"
    "DTzi<lQ_KuB~CL<iPKG1;&f7$I<15oL0;+<Q<yr{M5azToyk*A%NfKbPeZ-Q(@}Erv{aou?bMx5Kkez$P#hUlo=-`k"
    "=TlSb0o7BYKn3NJLGuB1lzl)gl^;+$@h8+znhG@(Q3eqxR8j{D)s%un^@J)>L0M&xghU-xAyG?VNYqXn8ue4IMh(T5"
    "K_eQKl!-<)l_F9-9g9>@ei;-aQb*B<)KWJhwUdrY{e-PjLs4dskV++0q*6^G$y86~G8L3*20_WxQByLtl$A{Fl%-QY"
    "-Rsm)ycraxQ%RBOR8waH"
)
NUMBERS = b"".join(b"%d " % number for number in range(400))


def test_what_the_real_program_made() -> None:
    assert decompressed(io.BytesIO(COMPRESSED)).read() == NUMBERS
    (found,) = parts(File(COMPRESSED, "numbers.txt.Z", Limits()))
    assert isinstance(found, Document)
    assert found.text == NUMBERS.decode() and found.metadata["title"] == ["numbers"]


@pytest.mark.parametrize("data", [b"\x1f\x9d", b"\x1f\x9d\xff", b"\x1f\x9d\x90" + b"\xff" * 9])
def test_a_broken_one_is_a_failure(data: bytes) -> None:
    with pytest.raises(ExtractionError, match="damaged"):
        list(parts(File(data, "x.Z", Limits())))


def test_it_inflates_within_the_limit() -> None:
    with pytest.raises(LimitExceeded):
        list(parts(File(COMPRESSED, "x.Z", Limits(inflated_bytes=100))))


@given(st.binary(max_size=200))
def test_any_bytes_end_as_text_or_a_failure(data: bytes) -> None:
    try:
        list(parts(File(b"\x1f\x9d\x90" + data, "x.Z", Limits())))
    except ExtractionError as e:
        assert str(e)
