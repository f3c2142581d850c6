"""The page that explains a score, and what is said of queries, in both languages."""

from __future__ import annotations

import math
import re

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode
from starlette.testclient import TestClient

from indlet.service.search.notes import TEXTS, Note
from indlet.service.search.rank import MODELS
from indlet.store import Store
from indlet.web.i18n import strings

QUERY = "archive harvest* title:metadata record"


def page(client: TestClient, address: str, status: int = 200) -> LexborHTMLParser:
    answer = client.get(address)
    assert answer.status_code == status, answer.text
    return LexborHTMLParser(answer.text)


def one(tree: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    found = tree.css_first(selector)
    assert found is not None, f"nothing on the page is {selector}"
    return found


def links(client: TestClient, q: str, model: str, lang: str = "en") -> list[str]:
    found = page(client, f"/?q={q}&model={model}&lang={lang}").css(".result .told")
    return [str(link.attributes["href"]) for link in found]


def worth(worked: str) -> float:
    """A formula as the page writes it in English, worked out again."""
    text = worked.replace(",", "").replace("·", "*").replace("−", "-")
    text = re.sub(r"\bln (\d+(?:\.\d+)?)", r"log(\1)", text).replace("ln(", "log(")
    assert re.fullmatch(r"[\d\s.()*/+\-log]*", text), text
    return float(eval(text, {"__builtins__": {}}, {"log": math.log}))


@pytest.mark.parametrize("model", [name for name in MODELS if name != "boolean"])
def test_the_lines_add_up_to_the_score_and_the_formulas_to_the_lines(client: TestClient, model: str) -> None:
    found = links(client, QUERY, model)
    assert found
    for address in found[:4]:
        tree = page(client, f"{address}&lang=en")
        score = float(str(one(tree, "#score").attributes["value"]))
        rows = tree.css("tbody tr")
        values = [float(str(one(row, "data").attributes["value"])) for row in rows]
        assert math.isclose(math.fsum(values), score, rel_tol=1e-9)
        for row, value in zip(rows, values, strict=True):
            assert math.isclose(worth(one(row, ".worked").text()), value, rel_tol=1e-3, abs_tol=2e-4)


@pytest.mark.parametrize("model", MODELS)
def test_the_score_is_that_of_the_search(client: TestClient, model: str) -> None:
    hits = client.get("/api/search", params={"q": QUERY, "model": model}).json()["hits"]
    by_name = {hit["identifier"]: hit["score"] for hit in hits}
    for address in links(client, QUERY, model):
        tree = page(client, address)
        name = re.search(r"[?&]id=([^&]*)", address)
        assert name is not None
        score = float(str(one(tree, "#score").attributes["value"]))
        assert score == by_name[name[1].replace("%3A", ":")]


def test_terms_that_the_record_lacks_are_named(client: TestClient) -> None:
    address = links(client, "archive zzzz", "bm25")[0].replace("zzzz", "supersonic+libretto")
    tree = page(client, address)
    lacking = {node.text() for node in tree.css(".badge")}
    held = {str(node.text(deep=False)).strip() for node in tree.css("tbody th")}
    assert held and not held & lacking
    assert held == {"archive"} and lacking == {"supersonic", "libretto"}


def test_german_tells_the_same_numbers_in_its_own_way(client: TestClient) -> None:
    address = links(client, QUERY, "lm-dirichlet", "de")[0]
    german, english = page(client, f"{address}&lang=de"), page(client, f"{address}&lang=en")
    assert "Warum dieser Treffer?" in one(german, "main").text()
    for here, there in zip(german.css("data"), english.css("data"), strict=True):
        assert here.attributes["value"] == there.attributes["value"]
    assert "," in one(german, "#score").text() and "." in one(english, "#score").text()


def test_what_cannot_be_explained_is_said(client: TestClient) -> None:
    assert "oai:none" in one(page(client, "/explain?q=library&id=oai:none:1", 404), "main").text()
    assert one(page(client, "/explain?q=%22library&id=oai:north.example.org:1000", 400), ".fault")
    assert client.get("/explain?id=oai:north.example.org:1000").headers["location"].startswith("/record/")
    assert client.get("/explain").headers["location"] == "/"


def test_the_way_back_leads_to_the_results(client: TestClient) -> None:
    tree = page(client, "/?q=archive&language=en&page=2&sort=newest")
    address = str(one(tree, ".result .told").attributes["href"])
    back = str(one(page(client, address), ".crumb a").attributes["href"])
    assert back == "/?q=archive&language=en&sort=newest&page=2"
    other = [str(a.attributes["href"]) for a in page(client, address).css(".models a")]
    assert len(other) == len(MODELS) - 1 and all(one(page(client, there), "#score") for there in other)


@pytest.mark.parametrize(
    ("q", "english", "german"),
    [
        (
            '"library',
            "this quotation mark is never closed",
            "Dieses Anführungszeichen wird nicht geschlossen",
        ),
        ("titel:x", "did you mean title:?", "meinten Sie title:?"),
        ("a AND", "AND needs something to its right", "AND braucht etwas zu seiner Rechten"),
        ("library date:2005..2001", "ends before it begins", "endet, bevor sie beginnt"),
    ],
)
def test_faults_are_told_in_the_language_of_the_page(
    client: TestClient, q: str, english: str, german: str
) -> None:
    for place in ("/", "/compare"):
        for lang, words in (("en", english), ("de", german)):
            answer = client.get(place, params={"q": q, "lang": lang})
            assert answer.status_code == 400 and words in one(LexborHTMLParser(answer.text), "body").text()
    assert english in client.get("/api/search", params={"q": q}).json()["detail"]


def test_notes_are_told_in_the_language_of_the_page(client: TestClient) -> None:
    q = {"q": "-library source:nowhere"}
    notes = client.get("/api/search", params=q).json()["notes"]
    assert "no source is called “nowhere”" in notes
    german = client.get("/", params={**q, "lang": "de"}).text
    assert "Keine Quelle heißt „nowhere“" in german and "no source is called" not in german


def test_every_note_can_be_told_in_every_language(library_store: Store) -> None:
    names = re.compile(r"{(\w+)}")
    for code, text in TEXTS.items():
        note = Note(code, **dict.fromkeys(names.findall(text), 1234))
        assert note == strings("en").told(note)
        assert ("or too long" in note) == ("oder zu lang" in strings("de").told(note))
        assert strings("de").told(note) != note and ("1.234" in strings("de").told(note)) == ("1,234" in note)
