"""What a reader sees of a result list and a record: counts, corrections, filters, badges, citations."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for

from indlet.model import Record
from indlet.settings import Appearance
from indlet.store import Store
from indlet.web.citation import citation
from indlet.web.math_ml import with_math
from indlet.web.math_text import readable
from indlet.web.reference import reference

HEAVIEST = 30_000  # bytes of a result page


def page(client: TestClient, address: str, status: int = 200) -> LexborHTMLParser:
    answer = client.get(address)
    assert answer.status_code == status, answer.text
    return LexborHTMLParser(answer.text)


def one(tree: LexborHTMLParser | LexborNode, selector: str) -> LexborNode:
    found = tree.css_first(selector)
    assert found is not None, f"nothing on the page is {selector}"
    return found


def client_with(store: Store, folder: Path, *records: Record, **look: object) -> TestClient:
    with store.write() as tx:
        tx.put(tx.origin("source", "North", {"url": "https://north.example.org/oai"}), records)
    settings = settings_for(folder, portal=Appearance(**look))  # type: ignore[arg-type]
    return make_client(store, settings)


# Counts and corrections


def test_the_heading_counts_records_with_both_words(client: TestClient) -> None:
    found = client.get("/api/search", params={"q": "shock nitrogen"}).json()
    title = one(page(client, "/?q=shock+wave+nitrogen"), "#results-title").text()
    assert "with all words" not in title  # no record has all three
    both = client.get("/api/search", params={"q": "nutrient water"}).json()
    assert 0 < both["ahead"] < both["total"] and found["ahead"] == 0
    title = one(page(client, "/?q=nutrient+water"), "#results-title").text()
    assert f"{both['total']} records, {both['ahead']} with both words" in title


@pytest.mark.parametrize("sort", ["title", "newest"])
def test_another_order_says_what_it_leaves_out(client: TestClient, sort: str) -> None:
    by_score = client.get("/api/search", params={"q": "nutrient water"}).json()
    tree = page(client, f"/?q=nutrient+water&sort={sort}")
    assert one(tree, "#results-title").text().startswith(f"{by_score['ahead']} records with both words")
    every = one(tree, ".spelt a")
    assert str(by_score["total"]) in every.text()
    shown = page(client, str(every.attributes["href"]))
    assert one(shown, "#results-title").text().startswith(f"{by_score['total']} records")
    back = one(shown, ".spelt a").attributes["href"]
    assert one(page(client, str(back)), "#results-title").text().startswith(str(by_score["ahead"]))


def test_a_misspelt_query_is_corrected_and_says_so(client: TestClient) -> None:
    right = page(client, "/?q=harvesting+metadata")
    tree = page(client, "/?q=harvestnig+metadata")
    assert one(tree, ".spelt b").text() == "harvesting metadata"
    assert one(tree, "#results-title").text() == one(right, "#results-title").text()
    assert one(tree, "#q").attributes["value"] == "harvesting metadata"
    literal = page(client, str(one(tree, ".spelt a").attributes["href"]))
    assert one(literal, "#q").attributes["value"] == "harvestnig metadata"
    assert one(literal, ".spelt a").text() == "harvesting metadata", "which is still offered"


def test_a_word_with_a_shorter_stem_is_corrected(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        records = [
            Record(f"oai:x:{n}", {"title": [f"Gravitational waves from source {n}"], "language": ["en"]})
            for n in range(5)
        ]
        client = client_with(store, tmp_path, *records)
        found = client.get("/api/search", params={"q": "gravitatonal waves"}).json()
        assert found["corrected"] == "gravitational waves"


# Filters


def test_values_can_be_excluded_searched_among_and_combined(client: TestClient) -> None:
    whole = client.get("/api/search", params={"q": "wave"}).json()["total"]
    tree = page(client, "/?q=wave")
    link = next(a for a in tree.css(".facets p a") if "/values/type" in str(a.attributes["href"]))
    values = page(client, str(link.attributes["href"]))
    names = {str(box.attributes["value"]) for box in values.css('input[name="-type"]')}
    assert {"Book", "Thesis"} <= names
    counts = {one(li, ".value").text(): int(one(li, ".count").text()) for li in values.css(".value-list li")}
    without = page(client, "/?q=wave&-type=Book&-type=Thesis")
    left = whole - counts["Book"] - counts["Thesis"]
    assert one(without, "#results-title").text().split()[0] == str(left)
    assert [chip.text().split(" ×")[0].strip() for chip in without.css(".chip")] == [
        "Type: not Book", "Type: not Thesis",
    ]  # fmt: skip
    both = page(client, "/?q=wave&type=Book&type=Thesis")
    assert one(both, "#results-title").text().split()[0] == str(counts["Book"] + counts["Thesis"])
    inside = page(client, "/values/type?q=wave&inside=thes")
    assert [value.text() for value in inside.css(".value")] == ["Thesis"]
    assert client.get("/values/nothing?q=wave").status_code == 404


def test_the_years_stay_whole_and_the_chosen_ones_are_shaded(client: TestClient) -> None:
    whole, chosen = page(client, "/?q=wave"), page(client, "/?q=wave&since=1990&until=2000")
    assert not whole.css(".years .shade") and len(chosen.css(".years .shade")) == 1
    assert len(chosen.css(".years a")) == len(whole.css(".years a")) > 3


def test_types_and_languages_of_one_meaning_are_one(tmp_path: Path) -> None:
    types = ["Dataset", "Data set", "info:eu-repo/semantics/article", "PeerReviewed", "Article", "Map"]
    languages = ["eng", "en", "English", "de", "ger", "xx"]
    with Store.open(tmp_path) as store:
        records = [
            Record(f"oai:x:{n}", {"title": [f"Gale {n}"], "type": [types[n]], "language": [languages[n]]})
            for n in range(6)
        ]
        client = client_with(store, tmp_path, *records, types={"Map": "Chart"}, languages={"xx": "Klingon"})
        tree = page(client, "/?q=gale")

        def facet(name: str) -> dict[str, tuple[str, str]]:
            found = tree.css(f"section[aria-labelledby=facet-{name}] li a")
            return {
                one(a, "span").text(): (one(a, ".count").text(), str(a.attributes["href"])) for a in found
            }

        shown = facet("type")
        assert {name: count for name, (count, _) in shown.items()} == {
            "Dataset": "2",
            "Article": "2",
            "Chart": "1",
        }
        spoken = {name: count for name, (count, _) in facet("language").items()}
        assert spoken == {"English": "3", "German": "2", "Klingon": "1"}
        narrowed = page(client, shown["Dataset"][1])
        assert one(narrowed, "#results-title").text().startswith("2 records")
        assert len(narrowed.css(".chip")) == 1


# Hits


def test_badges_say_who_may_read(tmp_path: Path) -> None:
    rights = {
        "open": "info:eu-repo/semantics/openAccess",
        "closed": "http://purl.org/coar/access_right/c_14cb",
        "licensed": "https://creativecommons.org/licenses/by-nc/4.0/legalcode",
        "free": "Public domain: http://creativecommons.org/publicdomain/zero/1.0/",
        "silent": "All rights reserved",
    }
    with Store.open(tmp_path) as store:
        records = [
            Record(
                f"oai:x:{name}",
                {"title": [f"Gale {name}"], "rights": [value], "identifier": ["doi:10.5555/1"]},
            )
            for name, value in rights.items()
        ]
        tree = page(client_with(store, tmp_path, *records), "/?q=gale")
    badges = {
        one(hit, "h2").text().split()[1]: [badge.text() for badge in hit.css(".badge")]
        for hit in tree.css("article.result")
    }
    assert badges == {
        "open": ["open access"], "closed": ["restricted"], "licensed": ["CC BY-NC 4.0"], "free": ["CC0"],
        "silent": [],
    }  # fmt: skip
    assert one(tree, ".badge[href]").attributes["rel"] == "license external noreferrer"
    assert "https://doi.org/10.5555/1" in {a.attributes["href"] for a in tree.css(".result-foot a")}


def test_volumes_of_a_series_are_one_hit_and_equal_titles_show_their_dates(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        records = [
            Record(f"oai:x:{n}", {"title": [f"Climatological data, vol. {n}"], "date": [f"1990-0{n}-01"]})
            for n in range(1, 5)
        ]
        records += [
            Record(f"oai:y:{n}", {"title": ["Tide tables of the coast"], "date": [f"1991-0{n}-02"]})
            for n in (1, 2)
        ]
        client = client_with(store, tmp_path, *records)
        tree = page(client, "/?q=climatological+data")
        assert len(tree.css("article.result")) == 1
        assert "3 more of this series" in one(tree, ".series summary").text()
        assert len(tree.css(".series li a")) == 3
        tides = page(client, "/?q=tide+tables")
        assert sorted(b.text() for b in tides.css(".byline span:first-child")) == [
            "2 February 1991", "2 January 1991",
        ]  # fmt: skip


def test_a_result_page_is_light_and_starts_with_results(client: TestClient) -> None:
    answer = client.get("/?q=wave")
    assert len(answer.content) <= HEAVIEST
    text = answer.text
    assert text.index("article") < text.index('class="facets"'), "results come before filters"


def test_models_are_offered_only_where_they_are_wanted(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        client = client_with(store, tmp_path, Record("oai:x:1", {"title": ["Gale"]}))
        tree = page(client, "/?q=gale&model=vsm")
        assert not tree.css("#model") and client.get("/compare?q=gale").status_code == 404
        why = page(client, str(one(tree, ".told").attributes["href"]))
        assert "avgdl" in one(why, ".formula").text() and not why.css(".models")


# A record


def many(count: int) -> Record:
    return Record(
        "oai:x:many",
        {
            "title": ["Observation of a gale"],
            "creator": [f"Family{n:03}, Given" for n in range(1, count + 1)],
            "date": ["2012"],
            "identifier": ["https://arxiv.org/abs/1207.7214"],
            "type": ["article"],
        },
    )


def test_hundreds_of_authors_unfold_and_the_place_has_a_name(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        tree = page(client_with(store, tmp_path, many(705)), "/record/oai:x:many")
    assert len(tree.css(".creators > a")) == 10
    assert one(tree, ".creators summary").text() == "Show all 705 authors"
    assert len(tree.css(".creators a")) == 705
    assert one(tree, ".actions .button.main").text().startswith("Read at arXiv")
    assert {a.text() for a in tree.css(".cite .exports a")} == {"BibTeX", "RIS", "CSL-JSON", "EndNote"}


def test_citations_of_many_authors_follow_their_styles() -> None:
    record = many(705)
    cited = citation(record.identifier, record.metadata, {})
    apa, chicago, ieee = (reference(style, cited) for style in ("apa", "chicago", "ieee"))
    assert "Family019, G., … Family705, G." in apa and "Family020" not in apa and "&" not in apa
    assert "Family007" in chicago and "et al" in chicago and "Family008" not in chicago
    assert "Family001" in ieee and "et al" in ieee and "Family002" not in ieee
    twenty = citation("oai:x:1", many(20).metadata, {})
    assert "Family019, G., & Family020, G." in reference("apa", twenty)


@pytest.mark.parametrize("name", ["csl", "endnote"])
def test_every_author_is_exported(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path) as store:
        answer = client_with(store, tmp_path, many(70)).get(f"/export/{name}?id=oai:x:many")
    if name == "csl":
        assert len(json.loads(answer.text)[0]["author"]) == 70
    else:
        assert answer.text.startswith("%0 Journal Article") and answer.text.count("%A ") == 70


def test_a_reader_pages_through_the_records_of_a_list(client: TestClient) -> None:
    hits = [a.attributes["href"] for a in page(client, "/?q=wave&page=2").css("article.result h2 a")]
    came = client.get(str(hits[0]), headers={"referer": "http://127.0.0.1:8080/?q=wave&page=2"})
    assert came.status_code == 200
    tree = LexborHTMLParser(came.text)
    assert one(tree, ".neighbours span").text().startswith("11 of ")
    following = str(one(tree, ".neighbours a[rel=next]").attributes["href"])
    assert following.startswith(str(hits[1]))
    after = page(client, following)
    assert one(after, ".neighbours span").text().startswith("12 of ")
    before = str(one(tree, ".neighbours a[rel=prev]").attributes["href"])
    assert one(page(client, before), ".neighbours span").text().startswith("10 of ")
    assert str(one(after, ".crumb a").attributes["href"]) == "/?q=wave&page=2"
    assert not page(client, str(hits[0])).css(".neighbours")


def test_a_list_that_is_no_list_of_ours_is_ignored(client: TestClient) -> None:
    for given in ("q=%28", "page=999999", "https://elsewhere.example", quote("q=wave&size=x")):
        assert client.get(f"/record/oai:north.example.org:1000?list={quote(given)}").status_code == 200


# Mathematics


@pytest.mark.parametrize(
    ("tex", "markup"),
    [
        (r"$\alpha$-decay", "<math><mi>α</mi></math>-decay"),
        (r"$D_s^\mp$", "<math><msubsup><mi>D</mi><mi>s</mi><mo>∓</mo></msubsup></math>"),
        (r"$\dfrac{a}{2}$", "<math><mfrac><mrow><mi>a</mi></mrow><mrow><mn>2</mn></mrow></mfrac></math>"),
        (r"$\mathbb{R}^n$", "<math><msup><mi>ℝ</mi><mi>n</mi></msup></math>"),
        ("from $5-$10 to $20", "from $5-$10 to $20"),
        ("a < b & c", "a &lt; b &amp; c"),
    ],
)
def test_tex_becomes_mathml(tex: str, markup: str) -> None:
    assert with_math(tex) == markup


@pytest.mark.parametrize(
    "tex",
    [
        r"$\href{javascript:alert(1)}{x}$", r"$\style{color:red}{x}$", "$<script>x</script>$",
        r"$a\unknown b$",
        "$" + "{" * 200 + "$", "$" + "x^{" * 90 + "}" * 90 + "$", r"$\sqrt$", "$_$", r"$\frac{a}$", "$}{$",
    ],
)  # fmt: skip
def test_hostile_tex_stays_text(tex: str) -> None:
    made = with_math(tex)
    names = {str(node.tag) for node in LexborHTMLParser(f"<div>{made}</div>").css("div *")}
    assert names <= {"math", "mi", "mo", "mn", "mrow", "msup", "msub"}, made
    assert "=" not in "".join(part.partition(">")[0] for part in made.split("<")[1:]), "no attributes"


def test_fractions_are_readable_as_text() -> None:
    assert readable(r"$\dfrac{B(D_s^{\mp} \to K)}{B(B^0)}$") == "B(Dₛ^∓ → K)/B(B⁰)"


# Other pages


def test_a_page_that_is_not_there_offers_a_search(client: TestClient) -> None:
    for address, status in (("/nowhere", 404), ("/record/oai:none", 404)):
        assert one(page(client, address, status), "form[role=search] #q")


def test_there_is_an_icon_for_those_who_ask_without_reading(client: TestClient) -> None:
    answer = client.get("/favicon.ico")
    assert answer.headers["content-type"] == "image/png" and answer.content.startswith(b"\x89PNG")


def test_completions_co_occur_and_the_first_hits_come_along(client: TestClient) -> None:
    found = client.get("/answers", params={"q": "shock wa"}).json()
    queries = {one["query"]: one["records"] for one in found["completions"] if one["kind"] == "word"}
    assert "shock wave" in queries and "shock water" not in queries
    assert len(found["hits"]) == 3
    for hit in found["hits"]:
        assert hit["title"] and "·" in hit["about"]
        assert client.get(hit["href"]).status_code == 200
    assert client.get("/answers", params={"q": '"'}).json() == {"completions": [], "hits": []}
