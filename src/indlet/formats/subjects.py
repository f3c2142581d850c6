"""Subjects of one scheme in the codes of another, by the four methods of TRI (Liu et al., section 4.2).

pairwise    a table from scheme to scheme: `SubjectTable.codes`
unified     two tables, to a common scheme and from it: `through`
automatic   learned from the term vectors of records that have codes: `SubjectClassifier`
text        a code becomes the words that it stands for: `SubjectTable.texts`

Tables are TSV (code, code of the other scheme, label; a line "!scheme<TAB>NAME" names the other scheme) or
SKOS in RDF/XML (notation, prefLabel, exactMatch, closeMatch, broadMatch). The other scheme of a SKOS file is
the one that all matches are in: by `inScheme` where the file describes them, else by their common address.
The notation of its ConceptScheme is its name, else its address is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lxml import etree

from indlet.errors import BadResponse, SettingsError
from indlet.model import JsonMapping, JsonObject
from indlet.oai.xml import element

TABLE_BYTES: Final = 64 << 20
_SKOS: Final = "{http://www.w3.org/2004/02/skos/core#}"
_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_MATCHES: Final = tuple(f"{_SKOS}{name}" for name in ("exactMatch", "closeMatch", "broadMatch"))


@dataclass(frozen=True, slots=True)
class SubjectTable:
    """Codes of one scheme with their equivalents in another, and with their labels."""

    mapped: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str] = field(default_factory=dict)
    scheme: str = ""  # that of the codes that the table leads to

    @property
    def rows(self) -> int:
        return sum(map(len, self.mapped.values()))

    def codes(self, codes: Iterable[str]) -> list[str]:
        """The codes of the other scheme, each once; those that the table does not know give none."""
        return list(dict.fromkeys(to for code in codes for to in self.mapped.get(code, ())))

    def texts(self, codes: Iterable[str]) -> list[str]:
        """The words that codes stand for; a code without a label stays itself."""
        return [self.labels.get(code, code) for code in codes]


def through(first: SubjectTable, second: SubjectTable) -> SubjectTable:
    """The table that two make by way of a common scheme."""
    mapped = {code: tuple(second.codes(common)) for code, common in first.mapped.items()}
    return SubjectTable({code: to for code, to in mapped.items() if to}, first.labels, second.scheme)


def read_table(path: Path) -> SubjectTable:
    """A table from a file. SettingsError if it cannot be read or is none."""
    try:
        if path.stat().st_size > TABLE_BYTES:
            raise SettingsError(f"{path}: more than {TABLE_BYTES} bytes; check the name")
        data = path.read_bytes()
        return (
            _skos(data) if data.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<" else _tsv(data.decode("utf-8-sig"))
        )
    except (OSError, UnicodeDecodeError, BadResponse, ValueError) as e:
        raise SettingsError(f"{path}: {e}; give a table as TSV or as SKOS in RDF/XML") from e


def _tsv(text: str) -> SubjectTable:
    mapped: dict[str, list[str]] = {}
    labels: dict[str, str] = {}
    scheme = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("!scheme\t"):
            scheme = line.partition("\t")[2].strip()
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if not 2 <= len(cells) <= 3 or not cells[0]:
            raise ValueError(f"line {number} has not the columns code, other code, label")
        if cells[1]:
            mapped.setdefault(cells[0], []).append(cells[1])
        if cells[2:] and cells[2]:
            labels[cells[0]] = cells[2]
    return SubjectTable({code: tuple(dict.fromkeys(to)) for code, to in mapped.items()}, labels, scheme)


def _skos(data: bytes) -> SubjectTable:
    mapped: dict[str, list[str]] = {}
    labels: dict[str, str] = {}
    schemes: dict[str, str] = {}  # of concepts that the file describes, by their URIs
    targets: dict[str, None] = {}
    root = element(data)
    names = {
        _uri(one, "about"): one.findtext(f"{_SKOS}notation") for one in root.iter(f"{_SKOS}ConceptScheme")
    }
    for concept in root.iter(f"{_SKOS}Concept", f"{_RDF}Description"):
        code = _notation(concept)
        if not code:
            continue
        if (scheme := concept.find(f"{_SKOS}inScheme")) is not None:
            schemes[_uri(concept, "about")] = _uri(scheme, "resource")
        label = concept.findtext(f"{_SKOS}prefLabel")
        if label:
            labels.setdefault(code, " ".join(label.split()))
        uris = [_uri(node, "resource") for node in concept.iter(*_MATCHES)]
        targets.update(dict.fromkeys(uris))
        if found := list(filter(None, map(_last, uris))):
            mapped.setdefault(code, []).extend(found)  # a concept may be described in several places
    if not mapped and not labels:
        raise ValueError("no skos:Concept with a label or a match in it")
    led_to = {schemes.get(uri) or uri.removesuffix(_last(uri)).rstrip("#/") for uri in targets if uri}
    scheme_uri = led_to.pop() if len(led_to) == 1 else ""  # of several, none is that of all codes
    scheme_name = (names.get(scheme_uri) or scheme_uri).strip()
    return SubjectTable({code: tuple(dict.fromkeys(to)) for code, to in mapped.items()}, labels, scheme_name)


def _uri(node: etree._Element, attribute: str) -> str:
    return str(node.get(f"{_RDF}{attribute}") or "")


def _notation(concept: etree._Element) -> str:
    told = concept.findtext(f"{_SKOS}notation")
    return told.strip() if told else _last(_uri(concept, "about"))


def _last(uri: str) -> str:
    return uri.rstrip("/").rpartition("#")[2].rpartition("/")[2]


class SubjectClassifier:
    """Codes for a record by its terms: for each code a multinomial naive Bayes against all other records.

    Terms count by the logarithm of their frequency, and evidence by the length of the text, so that a long
    text is no surer than a short one (Rennie et al. 2003, "Tackling the poor assumptions of naive Bayes").
    """

    def __init__(self, smoothing: float = 0.1, least: int = 5) -> None:
        self._smoothing = smoothing
        self._least = least  # records that a code needs to be learned
        self._everywhere: dict[str, float] = {}  # the logarithm of a term's weight in all records
        self._codes: dict[str, _Code] = {}

    @property
    def codes(self) -> Sequence[str]:
        return list(self._codes)

    def learn(self, records: Iterable[tuple[Mapping[str, int], Iterable[str]]]) -> None:
        """From records with codes: their term frequencies, and the codes."""
        everywhere: dict[str, float] = {}
        by_code: dict[str, dict[str, float]] = {}
        counted: Counter[str] = Counter()
        documents = 0
        for frequencies, codes in records:
            documents += 1
            counts = [everywhere]
            for code in dict.fromkeys(codes):
                counted[code] += 1
                counts.append(by_code.setdefault(code, {}))
            for term, frequency in frequencies.items():
                weight = math.log1p(frequency)
                for count in counts:
                    count[term] = count.get(term, 0.0) + weight
        s, whole = self._smoothing, sum(everywhere.values())
        self._everywhere = {term: math.log(weight + s) for term, weight in everywhere.items()}
        for code, inside in by_code.items():
            if self._least <= counted[code] < documents:
                prior = math.log(counted[code] / (documents - counted[code]))
                total = sum(inside.values())
                within, without = total + s * len(everywhere), whole - total + s * len(everywhere)
                absent = math.log(s * without / within)
                self._codes[code] = _Code(
                    prior,
                    absent,
                    {
                        term: math.log((weight + s) / (everywhere[term] - weight + s) * without / within)
                        - (absent - self._everywhere[term])
                        for term, weight in inside.items()
                    },
                )

    def to_json(self) -> JsonObject:
        """What was learned, for `from_json`."""
        codes = {name: [code.prior, code.absent, dict(code.gains)] for name, code in self._codes.items()}
        return {"everywhere": self._everywhere, "codes": codes}

    @classmethod
    def from_json(cls, form: JsonMapping) -> SubjectClassifier:
        made = cls()
        made._everywhere = form["everywhere"]
        made._codes = {name: _Code(*code) for name, code in form["codes"].items()}
        return made

    def scores(self, frequencies: Mapping[str, int]) -> list[tuple[str, float]]:
        """Each code with its log odds per unit of text, the most likely first."""
        known = self._everywhere
        weighted = {term: math.log1p(f) for term, f in frequencies.items() if term in known}
        length = sum(weighted.values()) or 1.0
        # What the terms would say of a code that had none of them, but for the code's own part of it.
        common = sum(weight * known[term] for term, weight in weighted.items())
        found = []
        for name, code in self._codes.items():
            had = sum(w * code.gains[term] for term, w in weighted.items() if term in code.gains)
            found.append((name, (code.prior + code.absent * length - common + had) / length))
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        return found

    def classify(self, frequencies: Mapping[str, int], least: float = 0.0) -> list[str]:
        """The codes whose odds are better than even: inferred, not what a source says."""
        return [code for code, score in self.scores(frequencies) if score > least]


@dataclass(frozen=True, slots=True)
class _Code:
    """What was learned of one code: how likely it is, what a term says that it never had, and what each term
    that it had says beyond that."""

    prior: float
    absent: float
    gains: Mapping[str, float]
