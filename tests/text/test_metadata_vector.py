"""The vector of a record that came without one."""

from __future__ import annotations

from indlet.model import TermVector
from indlet.text import Analyzer, Policy


def test_values_are_analysed_one_by_one() -> None:
    """A soft hyphen joins the halves of a word at the end of a line, not at the end of a value."""
    metadata = '{"title":["Bound\u00ad"],"description":["layers of infor\u00ad\\n mation","wings"]}'
    packed, length, _, language = Analyzer(Policy()).core.metadata_vector(metadata.encode())
    assert TermVector(packed).frequencies() == {"bound": 1, "layer": 1, "inform": 1, "wing": 1}
    assert (length, language) == (4, "en")
