"""Lists, advanced search, citations, marked records, appearance, sitemap: what the server gives readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from lxml import etree
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient
from tests.web.nodes import make_client, settings_for
from tests.web.odd import odd_records

from indlet.errors import SettingsError
from indlet.formats.dublin import pdf_text
from indlet.service.records.normalise import cleaned
from indlet.settings import Appearance, Settings
from indlet.store import Store
from indlet.web.advanced import composed
from indlet.web.appearance import _DARK, _LIGHT, _readable, brand, contrast
from indlet.web.citation import citation
from indlet.web.math_text import readable
from indlet.web.reference import STYLES, reference
from indlet.web.sitemap import PART


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("odd")
    with Store.open(folder) as store:
        with store.write() as tx:
            origin = tx.origin("source", "Odd repository")
            tx.put(origin, list(odd_records(120)))
            tx.name_set(origin, "winds", "All winds")
            tx.name_set(origin, "winds:storms", "Storms at sea")
        yield make_client(store, settings_for(folder))


def links(body: str, pattern: str) -> list[str]:
    return [re.sub("&amp;", "&", found) for found in re.findall(rf'href="({pattern})"', body)]


@pytest.mark.parametrize("kind", ["creator", "subject", "year", "source", "set", "type", "language"])
def test_every_entry_of_a_list_leads_to_as_many_records_as_it_says(client: TestClient, kind: str) -> None:
    page = client.get(f"/browse/{kind}").text
    entries = re.findall(
        r'<li><a href="(/(?:\?|about/)[^"]+)"><span>.*?</span> <span class="count">([\d,]+)<', page
    )
    assert entries
    for href, count in entries:
        told = client.get(href.replace("&amp;", "&")).text
        if href.startswith("/about/"):  # the page of the value says the number, and leads to the records
            listed = re.search(r'<a href="(/\?[^"]+)">([\d,]+) record', told)
            assert listed is not None and listed[2] == count, href
            told = client.get(listed[1].replace("&amp;", "&")).text
        total = re.search(r'id="results-title"[^>]*>([\d,]+) record', told)
        assert total is not None and total[1] == count, href


def test_a_long_list_is_read_in_parts(tmp_path: Path) -> None:
    from indlet.model import Record

    with Store.open(tmp_path) as store:
        with store.write() as tx:
            names = [f"{letter}{number:02} Topic" for letter in "abm" for number in range(50)]
            records = [
                Record(f"oai:x:{n}", {"title": ["t"], "subject": [name]}) for n, name in enumerate(names)
            ]
            tx.put(tx.origin("source", "s"), records)
        client = make_client(store, settings_for(tmp_path))
        seen, address = list[str](), "/browse/subject"
        while address:
            body = client.get(address).text
            seen += re.findall(r"<span>(\w\d\d Topic)</span>", body)
            further = re.findall(r'rel="next" href="([^"]+)"', body)
            address = further[0] if further else ""
        assert seen == names
        back = re.findall(r'rel="prev" href="([^"]+)"', body)
        assert "b10 Topic" in client.get(back[0]).text
        assert links(body, r"/browse/subject\?from=.") == [f"/browse/subject?from={c}" for c in "abm"]
        assert "m00 Topic" in client.get("/browse/subject?from=M").text


def test_a_list_that_is_not_there(client: TestClient) -> None:
    assert client.get("/browse/nothing").status_code == 404
    assert client.get("/browse/creator?from=zzzz").status_code == 200


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ("all=wind+wing", "+wind +wing"),
        ('phrase="boundary+layer', '+"boundary layer"'),
        ("any=a1+b2", "+(a1 OR b2)"),
        ("none=x1", "* -x1"),
        ("in_creator=Wang,+Wei&in_title=shock+(waves)", '+title:shock +title:waves +creator:"Wang, Wei"'),
        ("all=", ""),
    ],
)
def test_the_form_becomes_a_query(client: TestClient, given: str, query: str) -> None:
    assert composed(QueryParams(given)) == query
    answer = client.get(f"/advanced?search=1&{given}&since=1990&type=Book&size=20&sort=title")
    assert answer.status_code == 303
    asked = parse_qs(urlsplit(answer.headers["location"]).query)
    assert asked.get("q", [""])[0] == query
    assert (asked["since"], asked["type"], asked["size"], asked["sort"]) == (
        ["1990"],
        ["Book"],
        ["20"],
        ["title"],
    )
    assert client.get(answer.headers["location"]).status_code == 200


def test_order_and_number_of_results(client: TestClient) -> None:
    page = client.get("/?q=*&sort=title&size=50").text
    assert len(re.findall(r'<(?:h2|li)><a href="/record', page)) == 50  # some within their series
    titles = re.findall(r'<h2><a href="/record[^"]*">([^<]+)</a>', page)
    assert titles[:9] == sorted(titles[:9], key=str.casefold)
    assert "size=50" in client.get("/?q=*&size=50").text
    assert len(re.findall("<article", client.get("/?q=*&size=7").text)) == 10  # not one of the choices


CITED = citation(
    "oai:x:1",
    {
        "title": ["Harvesting $\\alpha$ metadata."], "creator": ["Wang, Wei", "Jan van der Berg"],
        "date": ["2004-05"], "type": ["Journal article"], "source": ["Journal of Libraries"],
        "identifier": ["doi:10.5555/abc"],
    },
    {},
)  # fmt: skip


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("apa", "Wang, W., & van der Berg, J. (2004). Harvesting α metadata. Journal of Libraries. "
                "https://doi.org/10.5555/abc"),
        ("chicago", "Wang, Wei, and Jan van der Berg. 2004. “Harvesting α metadata.” Journal of Libraries. "
                    "https://doi.org/10.5555/abc."),
        ("ieee", "W. Wang and J. van der Berg, “Harvesting α metadata,” Journal of Libraries, 2004, "
                 "doi: 10.5555/abc."),
    ],
)  # fmt: skip
def test_a_record_is_cited_by_style(style: str, text: str) -> None:
    assert reference(style, CITED) == text


def test_every_odd_record_can_be_cited(odd: TestClient) -> None:
    for record in odd_records(60):
        cited = citation(record.identifier, record.metadata, {})
        for style in STYLES:
            assert reference(style, cited)


def test_marked_records_are_saved_in_every_format(client: TestClient) -> None:
    fields = [("record", f"North Library\noai:north.example.org:{n}") for n in (1000, 1002)]
    body = "&".join(f"record={v.replace(' ', '+').replace(chr(10), '%0A')}" for _, v in fields)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for kind, sign in (
        ("csv", "identifier,source"),
        ("bib", "@"),
        ("ris", "TY  - "),
        ("jsonl", '{"rank":1'),
        ("run", "1 Q0 "),
    ):
        answer = client.post(f"/marked.{kind}", content=body, headers=headers)
        assert answer.status_code == 200
        assert answer.text.startswith(sign)
        assert ("part 0" in answer.text and "part 2" in answer.text) or kind == "run"
        assert "attachment" in answer.headers["content-disposition"]
    unknown = client.post("/marked.csv", content="record=x%0Aoai:none&other=1", headers=headers)
    assert unknown.text.count("\n") == 1  # the head alone
    assert client.post("/marked.csv", content=b"record=" + b"x" * 600_000, headers=headers).status_code == 413
    assert client.post("/marked.exe", content=body, headers=headers).status_code == 404


def test_the_sitemap_names_every_record(client: TestClient) -> None:
    index = etree.fromstring(client.get("/portal-sitemap.xml").content)
    parts = [element.text or "" for element in index.iter("{*}loc")]
    assert [urlsplit(part).path for part in parts] == ["/portal-sitemap/0.xml"]
    listed = [
        e.text or "" for e in etree.fromstring(client.get("/portal-sitemap/0.xml").content).iter("{*}loc")
    ]
    records = [urlsplit(one) for one in listed if "/record" in one]
    assert len(set(records)) == 197 <= PART
    for one in records[:5]:
        assert client.get(f"{one.path}?{one.query}").status_code == 200
    for number in ("1", "9" * 5000):
        assert client.get(f"/portal-sitemap/{number}.xml").status_code == 404
    assert "/portal-sitemap.xml" in client.get("/robots.txt").text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("$\\alpha$-decay of $^{12}$C", "α-decay of ¹²C"),
        ("On $3$-uniform hypergraphs at $1.5$ GeV", "On 3-uniform hypergraphs at 1.5 GeV"),
        ("From $5-$10 to US$7 (A$9)", "From $5-$10 to US$7 (A$9)"),
        ("Ni_{80}Fe_{20} and MoS_{2}", "Ni₈₀Fe₂₀ and MoS₂"),
        ("$p^\\uparrow p \\to \\gamma X$", "p^↑ p → γX"),
        ("D-wave $c\\bar{s}$ in $\\mathbb R^d$, $L_{\\rm loc}$", "D-wave cs̄ in R^d, L_(loc)"),
        ("W+\\gamma\\ production of $U(1)^\\prime$", "W+γ production of U(1)′"),
        ("An $O(n^2)$ bound, H$_2$O", "An O(n²) bound, H₂O"),
        ("below $\\hbar\\omega=0.4$~eV, see example.org/~me", "below ℏω=0.4 eV, see example.org/~me"),
        ("It costs $5 or $10", "It costs $5 or $10"),
        ("M{\\\"u}ller and \\'Etude", "Müller and Étude"),
        ("\\emph{Deep} $\\mathbb{R}^{n+1}$", "Deep Rⁿ⁺¹"),
        ("A {NASA} report", "A {NASA} report"),
        ("$\\frac{1}{2}$ of it", "1/2 of it"),
        ("C:\\temp", "C:temp"),
        ("plain", "plain"),
    ],
)
def test_mathematics_is_readable(written: str, shown: str) -> None:
    assert readable(written) == shown


def test_titles_of_pdf_files_are_decoded() -> None:
    raw = r"\376\377\000M\000\374\000l\000l\000e\000r"
    assert pdf_text(raw) == "Müller"
    assert pdf_text("þÿ\0M\0i") == pdf_text("þÿMi") == "Mi"
    assert pdf_text("Plain \\ title") == "Plain \\ title"
    assert cleaned([("title", raw), ("creator", "x")])["title"] == ["Müller"]


def test_a_node_has_its_own_name_logo_and_colours(tmp_path: Path, library_store: Store) -> None:
    (tmp_path / "logo.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>')
    look = Appearance(
        "Town Library", str(tmp_path / "logo.svg"), "#ffee00", "First.\n\nSee https://x.example/", False
    )
    client = make_client(library_store, replace(settings_for(library_store.local_folder), portal=look))
    page = client.get("/").text
    assert "<h1>Town Library</h1>" in page and 'src="/logo?' in page and 'href="/colours.css?' in page
    assert "Compare" not in page and "BM25" not in client.get("/?q=wave&model=vsm").text
    assert client.get("/compare").status_code == client.get("/explain?q=a&id=b").status_code == 404
    about = client.get("/information").text
    assert "<p>First.</p>" in about and 'href="https://x.example/"' in about
    logo = client.get("/logo")
    assert (
        logo.headers["content-type"] == "image/svg+xml"
        and "sandbox" in logo.headers["content-security-policy"]
    )
    assert client.get("/colours.css").headers["content-type"].startswith("text/css")


def test_without_such_settings_nothing_changes(client: TestClient) -> None:
    assert client.get("/logo").status_code == client.get("/colours.css").status_code == 404
    assert client.get("/information").status_code == 404
    assert "/static/mark.svg" in client.get("/").text


@pytest.mark.parametrize("colour", [(255, 238, 0), (0, 0, 0), (255, 255, 255), (11, 95, 111), (200, 30, 30)])
def test_any_colour_can_be_read(colour: tuple[int, int, int]) -> None:
    for paper, step in ((_LIGHT, -0.02), (_DARK, 0.02)):
        assert contrast(_readable(colour, paper, step), paper) >= 4.5


@pytest.mark.parametrize(
    ("look", "told"),
    [
        (Appearance(colour="red"), "six hexadecimal digits"),
        (Appearance(logo="logo.exe"), "ends in"),
        (Appearance(logo="/nowhere/logo.png"), "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_told(look: Appearance, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        brand(Settings(portal=look))


def test_sets_are_shown_below_their_parents_and_strays_do_not_flatten_the_chart(odd: TestClient) -> None:
    page = odd.get("/?q=gale").text
    assert "All winds › Storms at sea" in page
    bars = re.findall(r'<rect x[^>]*height="([\d.]+)"', page)
    assert len(bars) >= 4  # of 2004 to 2020, though there are dates of 1601


def test_a_language_has_one_name_everywhere(odd: TestClient) -> None:
    page = odd.get("/?q=*&size=100").text
    facet = re.search(r'aria-labelledby="facet-language">.*?</section>', page, re.DOTALL)
    assert facet is not None and "English" in facet[0]
    assert "<span>en</span>" not in facet[0] and "<span>eng</span>" not in facet[0]
    english = odd.get("/api/search?q=*&language=en&limit=1").json()["hits"][0]["identifier"]
    record = odd.get("/record", params={"id": english}).text
    assert re.search(r"<dt>Language</dt>\s*<dd>English</dd>", record)


def test_an_explanation_names_the_rule_of_all_words(client: TestClient) -> None:
    told = client.get("/explain?q=shock+wave+libretto&id=oai:reports.example.org:1001").text
    assert "hold all words of this query" in told
    assert (
        "hold all words of this query"
        not in client.get("/explain?q=shock&id=oai:reports.example.org:1001").text
    )


def test_a_phrase_names_the_sources_in_which_it_is_not_exact(client: TestClient) -> None:
    page = client.get("/?q=%22shock+wave%22").text
    assert "phrases in the full text: " in page
    assert re.search(r"Technical Reports came without word positions", page)
