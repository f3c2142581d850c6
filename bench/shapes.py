"""Pages in the shapes of DSpace, EPrints, OJS, Digital Commons, Invenio, arXiv and CONTENTdm.

The shapes are learned from captured responses of such repositories (2014-2016): prologue, indentation,
declarations, elements with their order and attributes, how dates, languages, identifiers and line ends are
written, and which are absent. The texts are real: Reuters-21578, Cranfield and CACM below INDLET_DATA, the
texts of the demo and of the tests of languages, which come with the repository. Seven in ten records are
English, the rest in German, French, Spanish, Italian, Russian and Greek: three scripts.
"""

from __future__ import annotations

import gzip
import html
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from bench.evidence.material import reuters

ROOT: Final = Path(__file__).parents[1]
OTHERS: Final = ("de", "fr", "es", "it", "ru", "el")
NAMES: Final = {
    "en": ("eng", "en_US", "English"), "de": ("ger", "de_DE", "German"), "fr": ("fre", "fr_FR", "French"),
    "es": ("spa", "es_ES", "Spanish"), "it": ("ita", "it_IT", "Italian"), "ru": ("rus", "ru_RU", "Russian"),
    "el": ("gre", "el_GR", "Greek"),
}  # fmt: skip
_PEOPLE: Final = (
    "Kauffman Bradley Ostrosky Fowler Müller Garcia Rossi Petrov Papadopoulos Sørensen Nguyen O'Brien"
)
_TOPICS: Final = (
    "dam safety", "early childhood", "Computer Science - Learning", "Science & society", "aerodynamics",
    "Histoire du livre", "Wasserbau", "трубопровод", "inclusion (education)", "markets",
)  # fmt: skip


class Work(NamedTuple):
    """What a record describes."""

    number: int
    language: str
    title: str
    creators: list[str]
    subjects: list[str]
    abstract: list[str]  # paragraphs
    day: str


@cache
def passages() -> dict[str, list[str]]:
    """Sentences by language."""
    found: dict[str, list[str]] = {language: [] for language in NAMES}
    for path in sorted((ROOT / "bench" / "corpus").glob("*.txt")):
        language = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("@"):
                language = line.split("|")[1].strip()
            elif language in found:
                found[language] += _sentences(line)
    for line in (ROOT / "tests" / "text" / "paragraphs.txt").read_text(encoding="utf-8").splitlines():
        if line[:2] in found:
            found[line[:2]] += _sentences(line[3:])
    if data := os.environ.get("INDLET_DATA"):
        english = []
        for name in ("cranfield", "cacm"):
            with gzip.open(Path(data) / name / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
                english += [text for line in lines if (text := json.loads(line)["text"])]
        english += [story.text for story in reuters(Path(data) / "reuters21578", 21_578, 1).stories]
        found["en"] = [sentence for text in english for sentence in _sentences(text)]
    return found


def _sentences(text: str) -> list[str]:
    return [s for s in re.split(r"(?<=[.!?;])\s+", " ".join(text.split())) if 20 < len(s) < 400]


def works(count: int, first: int = 0, seed: int = 1) -> Iterator[Work]:
    """Each depends on the seed and its number alone."""
    texts = passages()
    people = _PEOPLE.split()
    for number in range(first, first + count):
        source = random.Random(f"{seed} {number}")
        language = "en" if source.random() < 0.7 else source.choice(OTHERS)
        known = texts[language]
        title = source.choice(known).rstrip(".;")[: source.randint(30, 110)]
        creators = [
            f"{source.choice(people)}, {chr(65 + source.randrange(26))}. {chr(65 + source.randrange(26))}."
            for _ in range(source.randint(1, 5))
        ]
        long = source.random() < 2 / 3
        abstract = [
            " ".join(source.choice(known) for _ in range(source.randint(2, 5)))
            for _ in range(source.randint(1, 2))
        ]
        day = f"{source.randint(1970, 2015)}-{source.randint(1, 12):02d}-{source.randint(1, 28):02d}"
        yield Work(
            number, language, title, creators, source.sample(_TOPICS, source.randint(0, 4)),
            abstract if long else [], day,
        )  # fmt: skip


def _dc(pairs: list[tuple[str, str]], line: str = "<dc:{0}>{1}</dc:{0}>", join: str = "\n") -> str:
    return join.join(line.format(name, value) for name, value in pairs)


def _root(*declared: str) -> str:
    return f"<oai_dc:dc {' '.join(declared)} {_SCHEMA}>"


_SCHEMA: Final = (
    'xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ '
    'http://www.openarchives.org/OAI/2.0/oai_dc.xsd"'
)
_OAI_DC: Final = 'xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
_DC: Final = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
_XSI: Final = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def _text(value: str) -> str:
    return escape(value)


def dspace(w: Work) -> str:
    pairs = [("title", w.title), *(("creator", c) for c in w.creators), *(("subject", s) for s in w.subjects)]
    pairs += [("description", paragraph) for paragraph in w.abstract]
    pairs += [("date", f"{w.day[:4]}-10-09T12:45:{w.number % 60:02d}Z")] * 2 + [("date", w.day)]
    pairs += [("type", "Technical Report"), ("identifier", f"http://hdl.handle.net/19716/{w.number}")]
    if w.number % 3 == 0:
        pairs += [("language", NAMES[w.language][1])]
    pairs += [
        ("format", f"{w.number * 37} bytes"),
        ("format", "application/pdf"),
        ("publisher", "Water Agency"),
    ]
    body = _dc([(name, _text(value).replace(". ", ".&#13;\n", 1)) for name, value in pairs])
    return (
        f"<record>\n            <header>\n                <identifier>oai:dspace.example.org:19716/{w.number}"
        f"</identifier>\n                <datestamp>2007-10-10T15:47:{w.number % 60:02d}Z</datestamp>\n"
        f"                <setSpec>com_19716_{w.number % 9}</setSpec>\n                <setSpec>col_19716_"
        f"{w.number % 40}</setSpec>\n            </header>\n            <metadata>"
        + _root(_OAI_DC, 'xmlns:doc="http://www.lyncode.com/xoai"', _XSI, _DC)
        + f"\n{body}\n</oai_dc:dc>\n</metadata>\n        </record>\n"
    )


def eprints(w: Work) -> str:
    pairs = [
        ("title", w.title),
        *((("creator", c)) for c in w.creators),
        *(("subject", s) for s in w.subjects),
    ]
    pairs += [("description", "&#13;\n".join(map(_text, w.abstract)))] if w.abstract else []
    pairs += [("date", w.day[:7]), ("type", "Journal (Paginated)"), ("type", "PeerReviewed")]
    pairs += [("format", "application/pdf"), ("language", w.language)] if w.number % 2 else []
    pairs += [("identifier", f"http://eprints.example.org/{w.number}/1/paper.pdf")]
    cited = _text(f"  {'; '.join(w.creators)}  ({w.day[:4]}) {w.title}.  [Journal (Paginated)]     ")
    inside = _dc(
        [(n, v if n == "description" else _text(v)) for n, v in pairs] + [("identifier", cited)]
        + [("relation", f"http://eprints.example.org/{w.number}/")], join="\n        ",
    )  # fmt: skip
    return (
        f"<record>\n    <header>\n      <identifier>oai:eprints.example.org:{w.number}</identifier>\n      "
        f"<datestamp>2015-04-20T11:43:{w.number % 60:02d}Z</datestamp>\n      <setSpec>7374617475733D707562"
        f"</setSpec>\n      <setSpec>7375626A656374733D{w.number % 30:02X}:4F4A484153</setSpec></header>\n"
        f"    <metadata>\n      <oai_dc:dc {_OAI_DC} {_DC} {_SCHEMA} {_XSI}>\n        {inside}</oai_dc:dc>"
        "</metadata></record>\n  "
    )


def ojs(w: Work) -> str:
    three, tag, _ = NAMES[w.language]
    tag = tag.replace("_", "-")
    pairs = [("title", w.title), *(("creator", f"{c}; University of X") for c in w.creators)]
    pairs += [("subject", s) for s in w.subjects] + [("description", p) for p in w.abstract]
    said = _dc([(n, _text(v)) for n, v in pairs], '<dc:{0} xml:lang="' + tag + '">{1}</dc:{0}>', "\n\t")
    rest = [
        ("publisher", "Institute of X"), ("date", w.day), ("type", "info:eu-repo/semantics/article"),
        ("type", "info:eu-repo/semantics/publishedVersion"), ("format", "application/pdf"),
        ("identifier", f"https://journal.example.org/index.php/j/article/view/{w.number}"),
        ("identifier", f"10.7202/{1000000 + w.number}ar"),
        ("source", f"Journal of X; Vol. {w.number % 40} No. {w.number % 4} ({w.day[:4]}); 23-58"),
        ("source", "0035-2357"), ("language", three),
        ("relation", f"https://journal.example.org/index.php/j/article/view/{w.number}/pdf"),
        ("rights", f"Copyright (c) {w.day[:4]} {w.creators[0]}"),
    ]  # fmt: skip
    return (
        "<record>\n\t\t\t\t<header>\n"
        f"\t<identifier>oai:ojs.journal.example.org:article/{w.number}</identifier>\n"
        f"\t<datestamp>2015-10-27T23:42:{w.number % 60:02d}Z</datestamp>\n\t<setSpec>j:ART</setSpec>\n"
        f"\t\t\t\t</header>\n\t\t\t\t<metadata>\n<oai_dc:dc\n\t{_OAI_DC}\n\t{_DC}\n\t{_XSI}\n\t{_SCHEMA}>\n\t"
        f"{said}\n\t{_dc([(n, _text(v)) for n, v in rest], join=chr(10) + chr(9))}\n</oai_dc:dc>\n"
        "\t\t\t\t</metadata>\n\t\t\t</record>\n\t\t\t"
    )


def digital_commons(w: Work) -> str:
    url = f"http://commons.example.edu/econ_fac/{w.number}"
    download = f"http://commons.example.edu/cgi/viewcontent.cgi?article={w.number}&#38;amp;context=econ_fac"
    pairs = [("title", _text(w.title)), *(("creator", _text(c)) for c in w.creators)]
    pairs += [("description", _text(" ".join(w.abstract)).replace("'", "&#39;"))] if w.abstract else []
    pairs += [("date", f"{w.day}T08:00:00Z"), ("type", "text"), ("format", "application/pdf")]
    pairs += [("identifier ", url), ("identifier", download), ("source", "Faculty Publications")]
    pairs += [("publisher", "Digital Commons @ X"), *(("subject", _text(s)) for s in w.subjects)]
    inside = _dc(pairs).replace("</dc:identifier >", "</dc:identifier>")
    return (
        f"<record>\n\t<header>\n\t\t<identifier>oai:commons.example.edu:econ_fac-{w.number}</identifier>\n\t\t"
        f"<datestamp>2015-06-15T17:54:{w.number % 60:02d}Z</datestamp>\n\t\t\t\t<setSpec>publication:econ_fac"
        f"</setSpec>\n\t\t\t\t<setSpec>pub:c{w.number % 20}</setSpec>\n\t\t\t</header>\n\t<metadata>\n"
        f"\t\t{_root(_OAI_DC, _DC, _XSI)}\n\t\t\t{inside}\n\n\t\t</oai_dc:dc>\n\t</metadata>\n</record>\n\n"
    )


def invenio(w: Work) -> str:
    pairs = [*(("creator", c) for c in w.creators), ("title", w.title), ("date", w.day), ("subject", "cc-by")]
    pairs += [("subject", s) for s in w.subjects]
    pairs += [("identifier", f"https://repository.example.org/record/{w.number}")]
    pairs += [("identifier", f"\n          doi:10.5281/repo.{w.number}")]
    pairs += (
        [("description", "".join(f"<p>{html.escape(p)}</p>\n\n" for p in w.abstract))] if w.abstract else []
    )
    pairs += [("language", NAMES[w.language][0])] if w.number % 2 else []
    pairs += [("rights", "info:eu-repo/semantics/openAccess"), ("type", "info:eu-repo/semantics/report")]
    pairs += [("relation", f"url:https://repository.example.org/communities/c{w.number % 50}/")]
    return (
        f"<record><header><identifier>oai:repository.example.org:{w.number}</identifier><datestamp>"
        f"2015-04-27T08:26:{w.number % 60:02d}Z</datestamp><setSpec>openaire</setSpec><setSpec>user-c"
        f"{w.number % 50}</setSpec></header><metadata>{_root(_DC, _OAI_DC, _XSI)}\n  "
        + _dc([(n, _text(v)) for n, v in pairs], join="\n  ")
        + "\n</oai_dc:dc></metadata></record>\n"
    )


def arxiv(w: Work) -> str:
    pairs = [("title", w.title), *(("creator", c) for c in w.creators), *(("subject", s) for s in w.subjects)]
    lines = [re.sub(r"(.{60,75}) ", r"\1\n", p) for p in w.abstract]
    pairs += [("description", "  " + "\n  ".join(lines) + "\n")] if lines else []
    pairs += [
        ("description", "Comment: 12 pages, 3 figures"),
        ("date", w.day),
        ("date", f"{w.day[:4]}-12-24"),
    ]
    pairs += [("type", "text"), ("identifier", f"http://arxiv.example.org/abs/1412.{w.number:06d}")]
    pairs += [("identifier", f"doi:10.4236/x.{w.number}")] if w.number % 3 == 0 else []
    return (
        f"<record>\n<header>\n <identifier>oai:arXiv.example.org:1412.{w.number:06d}</identifier>\n "
        f"<datestamp>2014-12-25</datestamp>\n <setSpec>{'cs' if w.number % 2 else 'physics'}</setSpec>\n"
        f"</header>\n<metadata>\n {_root(_OAI_DC, _DC, _XSI)}\n "
        + _dc([(n, _text(v)) for n, v in pairs], join="\n ")
        + "\n </oai_dc:dc>\n</metadata>\n</record>\n"
    )


def contentdm(w: Work) -> str:
    pairs = [("title", w.title), ("creator", "; ".join(w.creators) + ";"), ("subject", "; ".join(w.subjects))]
    pairs += [
        ("description", " ".join(w.abstract)),
        ("publisher", ""),
        ("contributor", ""),
        ("date", w.day[:4]),
    ]
    pairs += [("type", "Image; StillImage"), ("format", "image/jp2"), ("identifier", f"uw{w.number:05d}.jp2")]
    pairs += [("source", "Photographs; box 3"), ("language", NAMES[w.language][2]), ("relation", "")]
    pairs += [
        ("coverage", "1940-1949"),
        ("rights", "For information contact the library's special collections."),
    ]
    pairs += [("identifier", f"http://cdm.example.edu/cdm/ref/collection/p15/id/{w.number}")]
    return (
        f"<record>\n<header>\n<identifier>oai:cdm.example.edu:p15/{w.number}</identifier>\n<datestamp>2014-03-02"
        f"</datestamp>\n<setSpec>p15{w.number % 7}</setSpec>\n</header>\n<metadata>\n"
        f'<oai_dc:dc {_OAI_DC} {_DC} {_XSI} {_SCHEMA}>\n'
        + _dc([(n, _text(v)) for n, v in pairs])
        + "\n</oai_dc:dc>\n</metadata>\n</record>\n"
    )  # fmt: skip


def titles(w: Work) -> str:
    """No system's: the least that a record may tell."""
    return (
        f"<record><header><identifier>oai:x.example.org:{w.number}</identifier><datestamp>2014-12-25</datestamp>"
        f"</header><metadata>{_root(_OAI_DC, _DC, _XSI)}<dc:title>{_text(w.title)}</dc:title></oai_dc:dc>"
        "</metadata></record>\n"
    )


SHAPES: Final[dict[str, Callable[[Work], str]]] = {
    "DSpace": dspace, "EPrints": eprints, "OJS": ojs, "Digital Commons": digital_commons, "Invenio": invenio,
    "arXiv": arxiv, "CONTENTdm": contentdm,
}  # fmt: skip
TITLES: Final = "titles alone"
_WRITERS: Final = {**SHAPES, TITLES: titles}


def page(shape: str, listed: list[Work], token: str, size: int, cursor: int) -> bytes:
    """One page of a list."""
    told = f'<resumptionToken completeListSize="{size}" cursor="{cursor}">{token}</resumptionToken>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" '
        f'{_XSI} xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ '
        'http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">\n  <responseDate>2026-01-01T00:00:00Z'
        '</responseDate>\n  <request verb="ListRecords" metadataPrefix="oai_dc">http://x.example.org/oai</request>\n'
        f"  <ListRecords>\n{''.join(map(_WRITERS[shape], listed))}{told}\n</ListRecords>\n</OAI-PMH>\n"
    ).encode()


def write(folder: Path, shape: str, records: int, size: int) -> None:
    """All pages of a repository, as files that are named by their tokens."""
    folder.mkdir(parents=True)
    for first in range(0, records, size):
        listed = list(works(min(size, records - first), first))
        token = str(first + size) if first + size < records else ""
        (folder / str(first)).write_bytes(page(shape, listed, token, records, first))
