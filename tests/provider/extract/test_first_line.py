"""The title of a text file is its first line, if that can be one."""

from __future__ import annotations

import pytest

from indlet.provider.extract.plain import _first_line


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Flutter of wings\n\nA study.", "Flutter of wings"),
        ("\ufeff\r\n  =====\r\n  Annual   report 1957 \r\n=====\r\n", "Annual report 1957"),
        ("流体力学\n本文", "流体力学"),
        ("w" * 201 + "\nmore", ""),
        ("12 34\n----\n\n", ""),
        ("", ""),
    ],
)
def test_the_first_line_is_the_title(text: str, title: str) -> None:
    assert _first_line(text) == ([("title", title)] if title else [])
