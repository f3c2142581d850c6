"""Sets by type, language, subject, year, and by rules."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from indlet.errors import SettingsError
from indlet.provider.set_rules import SetRules
from indlet.settings import SetRule

if TYPE_CHECKING:
    from tests.provider.conftest import Bench

THESIS = {
    "type": ["Doctoral Thesis"], "language": ["en"], "date": ["submitted 2014-05-01"],
    "subject": ["Wings -- Flutter", "Air"],
}  # fmt: skip


def sets(*rules: SetRule) -> dict[str, str]:
    return dict(SetRules(rules).of(THESIS))


def test_by_each_element() -> None:
    assert sets(SetRule(by="type")) == {"type": "type", "type:Doctoral!20Thesis": "Doctoral Thesis"}
    assert sets(SetRule(by="year")) == {"year": "year", "year:2010s": "2010s", "year:2010s:2014": "2014"}
    assert sets(SetRule(by="language", spec="tongue", name="Languages")) == {
        "tongue": "Languages", "tongue:en": "en",
    }  # fmt: skip
    assert sets(SetRule(by="subject")) == {
        "subject": "subject", "subject:Wings": "Wings", "subject:Wings:Flutter": "Flutter",
        "subject:Air": "Air",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("type:thesis", True), ("type:THESIS year:2014", True), ("year:2010-", True), ("year:-2013", False),
        ("year:2010-2019 -language:de", True), ("-language:en", False), ("type:these", False),
        ('type:"doctoral thesis" subject:flutter', True), ('type:"thesis doctoral"', False),
    ],
)  # fmt: skip
def test_by_a_rule(where: str, holds: bool) -> None:
    found = sets(SetRule(spec="books:theses", name="Theses", where=where))
    assert found == ({"books": "books", "books:theses": "Theses"} if holds else {})


@pytest.mark.parametrize(
    "rule",
    [
        SetRule(), SetRule(by="size"), SetRule(by="type", where="type:x"), SetRule(where="type:x"),
        SetRule(spec="a b", where="type:x"), SetRule(spec="a", where="colour:red"),
        SetRule(spec="a", where="thesis"), SetRule(spec="a", where="year:recent"),
        SetRule(spec="a", where='type:"x'),
    ],
)  # fmt: skip
def test_a_mistake_is_told_before_the_crawl(rule: SetRule) -> None:
    with pytest.raises(SettingsError, match=r"\[\[set\]\]"):
        SetRules((rule,))


def test_records_are_in_several_sets_that_change_with_the_rules(bench: Bench) -> None:
    page = "<html><head><title>T</title><meta name='DC.type' content='Report'></head><body>wing</body></html>"
    bench.write("a/one.html", page)
    bench.settings = replace(
        bench.settings,
        set_=(SetRule(by="type"), SetRule(spec="flow:reports", name="Reports", where="type:report")),
    )
    bench.crawl()
    with bench.store.read() as view:
        (stored,) = view.page(10)
        assert set(stored.sets.split()) == {"docs:a", "type:Report", "flow:reports"}
        named = {spec: name for spec, name, *_ in view.sets(None)}
        assert named["flow:reports"] == "Reports" and named["flow"] == "flow"
        assert [r.identifier for r in view.page(10, set_spec="flow")] == [stored.identifier]
    bench.settings = replace(bench.settings, set_=())
    assert bench.crawl().records == 1
    with bench.store.read() as view:
        (stored,) = view.page(10)
        assert stored.sets == "docs:a"
        (left,) = view.page(10, set_spec="flow")
        assert left.deleted  # there, for it has left the set


def test_a_wrong_rule_is_reported_where_assertions_are_left_out() -> None:
    program = (
        "from indlet.provider.set_rules import SetRules\nfrom indlet.settings import SetRule\n"
        "SetRules((SetRule(by='colour'),))"
    )
    done = subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, text=True)
    assert "SettingsError: [[set]]: by is 'colour'" in done.stderr
