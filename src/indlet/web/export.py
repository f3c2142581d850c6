"""A record for reference managers and programs: BibTeX, RIS, JSON, and every metadata format in XML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import orjson

from indlet.formats import METADATA, CommonRecord, MetadataFormat, in_format
from indlet.formats.metadata import oai_dc
from indlet.formats.people import names
from indlet.model import Metadata, Stored
from indlet.provider.serve.responses import ForeignBytes
from indlet.web.citation import Citation
from indlet.web.reference import csl_item, person


@dataclass(frozen=True, slots=True)
class Export:
    """One format: how it is called, typed and written."""

    name: str
    label: str
    media_type: str
    suffix: str
    write: Callable[[Citation, Metadata], str]


_XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_TEX: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
}  # fmt: skip
_SUFFIX: Final = re.compile(r"(?i)(?:jr|sr|[ivx]{2,})\.?")
_BIBTEX: Final = {
    "article": "article", "report": "techreport", "thesis": "phdthesis", "book": "book",
    "chapter": "incollection", "conference": "inproceedings",
}  # fmt: skip
_BIBTEX_VENUES: Final = {"article": "journal", "incollection": "booktitle", "inproceedings": "booktitle"}
_RIS: Final = {
    "article": "JOUR", "report": "RPRT", "thesis": "THES", "book": "BOOK", "chapter": "CHAP",
    "conference": "CPAPER", "dataset": "DATA", "software": "COMP", "image": "ART", "sound": "SOUND",
    "video": "VIDEO",
}  # fmt: skip


_ENDNOTE: Final = {
    "article": "Journal Article", "report": "Report", "thesis": "Thesis", "book": "Book",
    "chapter": "Book Section", "conference": "Conference Paper", "dataset": "Dataset",
    "software": "Computer Program", "image": "Figure", "sound": "Audiovisual Material",
    "video": "Film or Broadcast",
}  # fmt: skip
CITATION_FORMATS: Final = ("bibtex", "ris", "csl", "endnote")  # for reference managers


def bibtex(cited: Citation, metadata: Metadata) -> str:
    kind = _BIBTEX.get(cited.kind, "misc")
    publisher = {"techreport": "institution", "phdthesis": "school"}.get(kind, "publisher")
    fields = [
        ("title", cited.title),
        ("year", str(cited.year or "")),
        ("date", cited.date if re.fullmatch(r"\d{4}(-\d\d){0,2}", cited.date) else ""),
        (_BIBTEX_VENUES.get(kind, ""), cited.venue),
        (publisher, cited.publisher),
        ("doi", cited.doi),
        ("isbn", cited.isbn),
        ("issn", cited.issn),
        ("language", cited.language),
        ("keywords", ", ".join(cited.subjects)),
        ("abstract", cited.description),
    ]
    lines = [f"  {name} = {{{_tex(value)}}}" for name, value in fields if name and value]
    authors = " and ".join(_bibtex_name(name) for value in cited.creators for name in names(value))
    if authors:
        lines.insert(1 if cited.title else 0, f"  author = {{{authors}}}")
    if cited.url:
        lines.append(f"  url = {{{cited.url.replace('{', '%7B').replace('}', '%7D')}}}")
    return f"@{kind}{{{citation_key(cited)},\n" + ",\n".join(lines) + "\n}\n"


def citation_key(cited: Citation) -> str:
    """A key of letters and digits: first creator's family name, year, first long word of the title."""
    name = cited.creators[0] if cited.creators else ""
    family = name.partition(",")[0] if "," in name else name.rpartition(" ")[2]
    words = [w for w in re.findall(r"[A-Za-z0-9]+", cited.title) if len(w) > 3]
    key = re.sub(r"[^A-Za-z0-9]", "", family) + str(cited.year or "") + (words[0] if words else "")
    return key.lower()[:60] or "record"


def _bibtex_name(name: str) -> str:
    """A person as "Family, Given" or "Family, Jr., Given"; anything else in braces, as it is."""
    parts = person(name)
    family, given = parts["family"], parts.get("given", "")
    first, comma, last = (part.strip() for part in given.partition(","))
    # A corporate name that holds the word "and" would be read as two people, and three commas as an error.
    if "," in last or "," in family or re.search(r"(?i)\band\b", name) or (not given and " " in family):
        return f"{{{_tex(name)}}}"
    if comma and last and not _SUFFIX.fullmatch(first):
        given = f"{last}, {first}"
    return f"{_tex(family)}, {_tex(given)}" if given else _tex(family)


def _ris_name(name: str) -> str:
    return ", ".join(person(name).values())


def _tex(value: str) -> str:
    text = " ".join(value.split())
    escaped = "".join(_TEX.get(c, c) for c in text)
    if _balanced(text):
        return escaped
    return escaped.replace(r"\{", r"\textbraceleft{}").replace(r"\}", r"\textbraceright{}")


def _balanced(text: str) -> bool:
    """Whether every brace has its other: BibTeX counts them, escaped or not."""
    depth = 0
    for c in text:
        depth += (c == "{") - (c == "}")
        if depth < 0:
            return False
    return depth == 0


def ris(cited: Citation, metadata: Metadata) -> str:
    lines = [("TY", _RIS.get(cited.kind, "GEN")), ("ID", cited.identifier), ("TI", cited.title)]
    lines += [("AU", _ris_name(name)) for value in cited.creators for name in names(value)]
    lines += [("A2", _ris_name(name)) for value in cited.contributors for name in names(value)]
    lines += [
        ("PY", str(cited.year or "")),
        ("DA", cited.date.replace("-", "/") if re.fullmatch(r"\d{4}(-\d\d){0,2}", cited.date) else ""),
        ("T2", cited.venue),
        ("PB", cited.publisher),
        ("LA", cited.language),
        ("AB", cited.description),
    ]
    lines += [("KW", subject) for subject in cited.subjects]
    lines += [("DO", cited.doi), ("SN", cited.isbn or cited.issn), ("UR", cited.url), ("L1", cited.pdf)]
    # One tag a line, and a value must not start a line of its own.
    text = "".join(f"{tag}  - {' '.join(value.split())}\r\n" for tag, value in lines if value.strip())
    return text + "ER  - \r\n"


def csl_json(cited: Citation, metadata: Metadata) -> str:
    item = csl_item(cited) | {"id": citation_key(cited)}
    item |= {
        "abstract": cited.description,
        "ISBN": cited.isbn,
        "ISSN": cited.issn,
        "language": cited.language,
    }
    return orjson.dumps([{k: v for k, v in item.items() if v}], option=orjson.OPT_INDENT_2).decode()


def endnote(cited: Citation, metadata: Metadata) -> str:
    """The tagged format that EndNote imports (Refer)."""
    lines = [("%0", _ENDNOTE.get(cited.kind, "Generic")), ("%T", cited.title)]
    lines += [("%A", _ris_name(name)) for value in cited.creators for name in names(value)]
    lines += [("%E", _ris_name(name)) for value in cited.contributors for name in names(value)]
    lines += [
        ("%D", str(cited.year or "")), ("%8", cited.date), ("%J", cited.venue), ("%I", cited.publisher),
        ("%G", cited.language), ("%X", cited.description), ("%@", cited.isbn or cited.issn),
        ("%R", cited.doi), ("%U", cited.url), ("%M", cited.identifier),
    ]  # fmt: skip
    lines += [("%K", subject) for subject in cited.subjects]
    return "".join(f"{tag} {' '.join(value.split())}\r\n" for tag, value in lines if value.strip())


def dublin_core(cited: Citation, metadata: Metadata) -> str:
    return _XML + oai_dc.write(metadata).decode()


def as_json(cited: Citation, metadata: Metadata) -> str:
    value = {
        "identifier": cited.identifier,
        "metadata": {element: list(values) for element, values in metadata.items()},
        "url": cited.url or None,
        "year": cited.year,
        "restricted": cited.restricted,
        "manifestations": [
            {"url": c.url or None, "media_type": c.media_type, "size": c.size, "primary": c.primary}
            for c in cited.copies
        ],
    }
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _written(metadata_format: MetadataFormat) -> Callable[[Citation, Metadata], str]:
    def write(cited: Citation, metadata: Metadata) -> str:
        return _XML + metadata_format.write(CommonRecord.of(metadata, cited.identifier)).decode()

    return write


def exported(export: Export, cited: Citation, stored: Stored) -> ForeignBytes:
    """A stored record in one of the formats; in the one that it came in, as it came."""
    if export.name in METADATA:
        return ForeignBytes(_XML.encode() + in_format(stored, METADATA[export.name]))
    return ForeignBytes(export.write(cited, stored.record.metadata).encode())


EXPORTS: Final = {
    export.name: export
    for export in (
        Export("bibtex", "BibTeX", "application/x-bibtex; charset=utf-8", "bib", bibtex),
        Export("ris", "RIS", "application/x-research-info-systems; charset=utf-8", "ris", ris),
        Export("csl", "CSL-JSON", "application/vnd.citationstyles.csl+json; charset=utf-8", "json", csl_json),
        Export("endnote", "EndNote", "application/x-endnote-refer; charset=utf-8", "enw", endnote),
        Export("oai_dc", "Dublin Core", "application/xml; charset=utf-8", "xml", dublin_core),
        Export("json", "JSON", "application/json", "json", as_json),
    )
}
# The metadata formats that a node serves, each in its own XML.
EXPORTS.update(
    {
        f.prefix: Export(f.prefix, f.title, f"{f.media_type}; charset=utf-8", "xml", _written(f))
        for f in METADATA.values()
        if f.served and f.prefix not in EXPORTS
    }
)
