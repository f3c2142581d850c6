"""What a result page offers beside its hits: siblings of a chosen facet, files of the whole result, years."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.model import Record
from indlet.store import Store
from indlet.web.result_export import _csv
from indlet.web.svg import histogram


def put(store: Store, number: int, **metadata: str) -> None:
    described = {"title": [f"Gales, part {number}"], **{k: v.split("|") for k, v in metadata.items()}}
    with store.write() as tx:
        tx.put(tx.origin("source", "North"), [Record(f"oai:x:{number}", described)])


def test_a_chosen_value_keeps_its_siblings(client: TestClient) -> None:
    before = client.get("/?q=*").text
    page = client.get("/?q=*&type=Thesis").text
    for kind in ("Book", "Dataset"):
        assert f"type=Thesis&amp;type={kind}" in page and f"type={kind}" in before
    both = client.get("/api/search?q=*&type=Thesis&type=Book").json()["total"]
    assert f">{both} records" in client.get("/?q=*&type=Thesis&type=Book").text


def test_a_rare_value_that_is_chosen_has_its_number(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for number in range(44):
            put(store, number, subject=f"topic {number % 22}", identifier=f"https://www.example.org/{number}")
        put(store, 99, subject="rare")
        client = make_client(store, settings_for(tmp_path))
        page = client.get("/?q=*&subject=rare&subject=topic+1").text
    assert ">3 records" in page
    assert '<span>rare</span><span class="count">1</span>' in page
    assert '<span>topic 1</span><span class="count">2</span>' in page


@pytest.mark.parametrize("kind", ["csv", "bib", "ris", "jsonl", "run"])
def test_a_whole_result_is_a_file(client: TestClient, kind: str) -> None:
    total = client.get("/api/search?q=library&limit=0").json()["total"]
    answer = client.get(f"/results.{kind}?q=library")
    assert answer.status_code == 200 and f'filename="library.{kind}"' in answer.headers["content-disposition"]
    text = answer.text
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == total and all(row["source"] and row["identifier"] for row in rows)
    elif kind == "jsonl":
        ranks = [json.loads(line)["rank"] for line in text.splitlines()]
        assert ranks == list(range(1, total + 1))
    elif kind == "run":
        lines = [line.split() for line in text.splitlines()]
        assert len(lines) == total and all(len(line) == 6 and line[1] == "Q0" for line in lines)
    elif kind == "ris":
        assert text.count("ER  - ") == total
    else:
        keys = [line.partition("{")[2] for line in text.splitlines() if line.startswith("@")]
        assert len(keys) == total == len(set(keys))
    assert f"/results.{kind}?q=library" in client.get("/?q=library").text


def test_a_faulty_query_gives_no_file(client: TestClient) -> None:
    assert client.get("/results.csv?q=%22gale").status_code == 400
    assert client.get("/results.exe?q=gale").status_code == 404


def test_cells_of_a_file_are_no_formulas(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, 1, title="=HYPERLINK(1)", creator="Wang, Wei", source="Journal of Gales|http://x.org/1",
            type="Article", identifier="doi:10.5555/Gale.1")  # fmt: skip
        client = make_client(store, settings_for(tmp_path))
        (row,) = csv.DictReader(io.StringIO(client.get("/results.csv?q=*").text))
        assert row["title"] == "'=HYPERLINK(1)" and row["doi"] == "10.5555/gale.1"
        assert row["venue"] == "Journal of Gales"
        assert _csv((" =1", "＝1", "\n=1", "a=1")) == "' =1,'＝1,\"'\n=1\",a=1\r\n"
        assert "journal = {Journal of Gales}" in client.get("/results.bib?q=*").text
        assert "T2  - Journal of Gales" in client.get("/results.ris?q=*").text
        page = client.get("/record/oai:x:1?source=North")
        # Its DOI is a link, and how to cite it; a click on a name asks for the person.
        assert 'href="https://doi.org/10.5555/gale.1"' in page.text
        assert '<https://doi.org/10.5555/gale.1>; rel="cite-as"' in page.headers["link"]
        assert "/about/author?name=Wang%2C+Wei" in page.text
        found = client.get("/", params={"q": "https://doi.org/10.5555/GALE.1"})
        assert "oai:x:1" in found.text and "read as an identifier" in found.text


def test_a_line_parts_records_with_all_words_from_the_others(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, 1, title="Gales and waves at sea")
        put(store, 2, title="Gales of the north")
        page = make_client(store, settings_for(tmp_path)).get("/?q=gales+waves+sea").text
    assert page.count('class="divide"') == 1
    assert page.index("Gales and waves") < page.index('class="divide"') < page.index("Gales of the north")


def test_parents_of_sets_are_shown(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        with store.write() as tx:
            origin = tx.origin("source", "North")
            tx.put(
                origin, [Record("oai:x:1", {"title": ["Gales"]}, sets=("sea:north",)), Record("oai:x:2", {})]
            )
            tx.name_set(origin, "sea", "The sea")
            tx.name_set(origin, "sea:north", "The north")
        page = make_client(store, settings_for(tmp_path)).get("/?q=*").text
    assert "The sea › The north" in page


def test_one_odd_year_does_not_flatten_the_picture() -> None:
    years = dict.fromkeys(range(1990, 2020), 50)
    picture = histogram({**years, 1601: 1})
    assert picture is not None and (picture.first, picture.last) == (1990, 2019) and len(picture.bars) == 30
    even = histogram({1601: 30, 1990: 50})
    assert even is not None and even.first == 1601


def test_the_api_has_a_page(client: TestClient) -> None:
    page = client.get("/api/").text
    for path in client.get("/api/openapi.json").json()["paths"]:
        assert f'action="{path}"' in page
    assert client.get("/api").status_code == 200 and client.get("/api/none").status_code == 404
