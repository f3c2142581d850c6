from __future__ import annotations

from pathlib import Path

import pytest

from indlet.errors import SettingsError
from indlet.formats.subjects import SubjectClassifier, SubjectTable, read_table, through

SKOS = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:Concept rdf:about="http://x.org/uc/UC-414"><skos:notation>UC-414</skos:notation>
    <skos:prefLabel>High energy physics</skos:prefLabel>
    <skos:exactMatch rdf:resource="http://x.org/scan#77"/></skos:Concept>
  <skos:Concept rdf:about="http://x.org/uc/UC-1"><skos:prefLabel>Wings</skos:prefLabel></skos:Concept>
</rdf:RDF>"""


def test_a_table_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "uc-scan.tsv"
    path.write_text("# DOE/OSTI-4500 to NASA-SCAN\nUC-414\t77\tHigh energy physics\nUC-414\t73\n")
    table = read_table(path)
    assert table.codes(["UC-414", "UC-0"]) == ["77", "73"]
    assert table.texts(["UC-414", "UC-0"]) == ["High energy physics", "UC-0"]
    assert table.rows == 2


def test_the_same_in_skos(tmp_path: Path) -> None:
    path = tmp_path / "uc.rdf"
    path.write_text(SKOS)
    table = read_table(path)
    assert table.codes(["UC-414"]) == ["77"]
    assert table.texts(["UC-414", "UC-1"]) == ["High energy physics", "Wings"]
    assert table.scheme == "http://x.org/scan"
    named = """<skos:ConceptScheme rdf:about="http://x.org/schemes/nasa"><skos:notation>nasascg</skos:notation>
      </skos:ConceptScheme><skos:Concept rdf:about="http://x.org/scan#77">
      <skos:inScheme rdf:resource="http://x.org/schemes/nasa"/></skos:Concept></rdf:RDF>"""
    path.write_text(SKOS.replace("</rdf:RDF>", named))
    assert read_table(path).scheme == "nasascg"
    other = """<skos:Concept rdf:about="http://x.org/uc/UC-2">
      <skos:exactMatch rdf:resource="http://y.org/codes/5"/></skos:Concept></rdf:RDF>"""
    path.write_text(SKOS.replace("</rdf:RDF>", other))
    assert read_table(path).scheme == ""


def test_a_concept_that_is_described_in_two_places_keeps_both(tmp_path: Path) -> None:
    path = tmp_path / "uc.rdf"
    more = """<rdf:Description rdf:about="http://x.org/uc/UC-414"><skos:prefLabel>Physique</skos:prefLabel>
      <skos:closeMatch rdf:resource="http://x.org/scan#73"/></rdf:Description></rdf:RDF>"""
    path.write_text(SKOS.replace("</rdf:RDF>", more))
    table = read_table(path)
    assert table.codes(["UC-414"]) == ["77", "73"]
    assert table.texts(["UC-414"]) == ["High energy physics"]


def test_two_tables_through_a_common_scheme() -> None:
    first = SubjectTable({"UC-414": ("430100",), "UC-9": ("1",)})
    second = SubjectTable({"430100": ("77", "78")})
    assert through(first, second).mapped == {"UC-414": ("77", "78")}


@pytest.mark.parametrize("text", ["a\n", "\tb\n", "<rdf/>", "<rdf", "a\tb\tc\td\n"])
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(SettingsError, match="give a table as TSV or as SKOS"):
        read_table(path)


def test_codes_are_learned_from_records_that_have_them() -> None:
    wings = [({"wing": 3, "air": 1, f"w{n}": 1}, ["aero"]) for n in range(10)]
    grain = [({"wheat": 2, "bushel": 1, f"g{n}": 1}, ["agri"]) for n in range(10)]
    both = [({"wing": 1, "wheat": 1, "duster": 3}, ["aero", "agri"])]
    classifier = SubjectClassifier()
    classifier.learn([*wings, *grain, *both])
    assert classifier.classify({"wing": 1, "air": 2}) == ["aero"]
    assert classifier.classify({"wheat": 1, "bushel": 2}) == ["agri"]
    # A code that hardly any record has is not learned.
    rare = SubjectClassifier(least=2)
    rare.learn([({"a": 1}, ["once"]), ({"b": 1}, ["twice"]), ({"b": 2}, ["twice"]), ({"c": 1}, [])])
    assert rare.codes == ["twice"]
