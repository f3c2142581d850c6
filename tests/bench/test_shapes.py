"""Pages in the shapes of seven systems go the fast way, and mean there what they mean to the plain one."""

from __future__ import annotations

import pytest

from bench import shapes
from indlet.errors import BadResponse
from indlet.model import Packed
from indlet.oai.read import Page, read
from indlet.service.records.normalise import Normaliser
from indlet.service.records.scan import scan
from indlet.store import packed
from indlet.text import Analyzer


def stored(page: Page) -> list[Packed]:
    out = []
    for made in Normaliser(Analyzer()).records(page.items):
        assert not isinstance(made, BadResponse)
        out.append(packed(made))
    return out


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_the_shape_of_a_system_is_read_fast(shape: str) -> None:
    body = shapes.page(shape, list(shapes.works(120)), "next", 500, 0)
    quick, slow = scan(body), read(body)
    assert quick is not None
    assert stored(quick) == stored(slow)
    assert not slow.repairs
    assert (quick.token, quick.size, len(quick.items)) == ("next", 500, 120)


def test_works_are_of_many_languages_and_depend_on_their_number_alone() -> None:
    found = list(shapes.works(300))
    assert {work.language for work in found} == set(shapes.NAMES)
    assert found[100:110] == list(shapes.works(10, 100))
