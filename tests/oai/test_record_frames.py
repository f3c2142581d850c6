"""Records that go out as they are stored: many at once are what they are one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indlet.oai import frames

_names = st.text(st.sampled_from("aZ9-:/%&<>\"'é\n\r\t "), max_size=8)
_rows = st.tuples(
    st.integers(1, 9),
    _names,
    st.integers(0, 2_000_000_000),
    st.lists(st.sampled_from(["a", "a:b", "c&d"]), max_size=3).map(" ".join),
    st.sampled_from([None, b"", b"<oai_dc:dc />", b"<oai_dc:dc>\xc3\xa9</oai_dc:dc>"]),
)


@given(st.lists(_rows, min_size=1, max_size=6))
def test_many_records_are_each_one_after_another(rows: list[tuple[int, str, int, str, bytes | None]]) -> None:
    plain = [
        b"<record>%b%b</record>\n"
        % (
            frames.header(identifier, stamp, metadata is None, sets),
            b"" if metadata is None else b"<metadata>%b</metadata>" % metadata,
        )
        for _, identifier, stamp, sets, metadata in rows
    ]
    assert b"".join(frames.records(rows)) == b"".join(plain)


@given(st.lists(_rows, max_size=6))
def test_many_headers_are_each_one_after_another(rows: list[tuple[int, str, int, str, bytes | None]]) -> None:
    listed = [(seq, name, stamp, int(not inside), sets) for seq, name, stamp, sets, inside in rows]
    plain = [frames.header(*row[1:]) + b"\n" for row in listed]
    assert b"".join(frames.headers(listed)) == b"".join(plain)
