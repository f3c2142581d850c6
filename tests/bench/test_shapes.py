"""Pages modelled on seven repository platforms are read as they are."""

from __future__ import annotations

import pytest

from bench import shapes
from indlet.errors import BadResponse
from indlet.model import Packed
from indlet.oai.read import Page, read
from indlet.service.records.normalise import Normaliser
from indlet.store import packed
from indlet.text import Analyzer


def stored(page: Page) -> list[Packed]:
    out = []
    for made in Normaliser(Analyzer()).records(page.items):
        assert not isinstance(made, BadResponse)
        out.append(packed(made))
    return out


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_pages_of_a_platform_need_no_repair(shape: str) -> None:
    page = read(shapes.page(shape, list(shapes.works(120)), "next", 500, 0))
    assert not page.repairs
    assert not page.is_repaired
    assert len(stored(page)) == 120
    assert (page.token, page.size, len(page.items)) == ("next", 500, 120)


def test_works_are_of_many_languages_and_depend_on_their_number_alone() -> None:
    found = list(shapes.works(300))
    assert {work.language for work in found} == set(shapes.NAMES)
    assert found[100:110] == list(shapes.works(10, 100))
