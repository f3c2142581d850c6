"""The shape of a source: what must stay the same for it to be harvested incrementally.

Apart from the remaining state of a source: a search needs the shape, and importing the rest takes 10 ms.
"""

from __future__ import annotations

from typing import NamedTuple

from indlet.model import JsonMapping


class Shape(NamedTuple):
    url: str = ""
    metadata_prefix: str = ""
    index_prefix: str = ""
    source_policy: str = ""  # digest of the analysis policy that the source states
    own_policy: str = ""  # digest of ours
    fulltext: str = ""


def shape_of(state: JsonMapping) -> Shape | None:
    """The shape in the stored state of a source; None before its first harvest."""
    values = state.get("shape")
    return None if values is None else Shape(*values[: len(Shape._fields)])
