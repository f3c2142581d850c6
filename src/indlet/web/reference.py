"""A record as a reference list has it: CSL styles, run by citeproc-py (BSD).

The styles are ours (`styles/`), so that nothing of another licence travels with the package; any other
CSL 1.0 style can be put beside them.
"""

from __future__ import annotations

import html
import re
import threading
import warnings
from collections.abc import Callable
from functools import cache
from importlib.resources import as_file, files
from typing import Any, Final

from indlet.formats.people import filing_name, is_body, names
from indlet.web.citation import Citation
from indlet.web.math_text import readable

STYLES: Final = {"apa": "APA", "chicago": "Chicago", "ieee": "IEEE"}
# APA 7 names up to 20 authors; of more, the first 19 and the last. Chicago and IEEE name fewer ("et al.").
_AUTHORS: Final = 20
_TYPES: Final = {
    "article": "article-journal", "report": "report", "thesis": "thesis", "book": "book",
    "chapter": "chapter", "conference": "paper-conference", "dataset": "dataset", "software": "software",
    "image": "graphic", "sound": "song", "video": "motion_picture",
}  # fmt: skip
_NAME: Final = 500  # characters of a name that is taken apart
# Years as catalogues write them after a name: "1775-1817", "b. 1950", "approximately 354-430".
_LIVED: Final = re.compile(
    r",\s*(?:(?:b|d|c|ca|fl)\.\s*|(?:active|approximately|born|died)\s+|-)?\d{3,4}\b.*$", re.IGNORECASE
)
_lock = threading.Lock()  # citeproc keeps the state of a bibliography in its style


def reference(style: str, cited: Citation) -> str:
    """The record in a style, as plain text; italics are left out."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # elements that a style has and the library leaves out
        item = csl_item(cited)
        people = [person for person in item.get("author", ()) if isinstance(person, dict)]
        if len(people) > _AUTHORS:
            item["author"] = [*people[: _AUTHORS - 1], people[-1]]
        text = _tidy(_writer(style)(item))
    if style == "apa" and len(people) > _AUTHORS:
        # The library does not know `et-al-use-last`.
        last = people[-1]["family"]
        text = text.replace(f", & {last}", f", … {last}", 1)
    return text


def csl_item(cited: Citation) -> dict[str, Any]:
    """CSL-JSON of a record; what reads as the name of a body (`people.is_body`) is not taken apart."""
    people = [person(name) for value in cited.creators for name in names(value)]
    item: dict[str, Any] = {
        "id": "record",
        "type": _TYPES.get(cited.kind, "book"),
        "title": readable(cited.title).rstrip(".") or cited.identifier,
        "container-title": cited.venue,
        "publisher": cited.publisher,
        "DOI": cited.doi,
        "URL": cited.url,
        "author": people,
        "issued": {"date-parts": [[cited.year]]} if cited.year else None,
    }
    if item["type"] in ("article-journal", "chapter", "paper-conference") and not cited.venue:
        item["type"] = "book"  # what it appeared in is unknown
    return {name: value for name, value in item.items() if value}


def person(name: str) -> dict[str, str]:
    """A name's family name and given names, without years of life; the name of a body is all family name."""
    bare = _LIVED.sub("", name[:_NAME]).strip() or name.strip()
    if is_body(bare):
        return {"family": name.strip()}
    family, comma, given = (part.strip() for part in bare.partition(","))
    if comma and family and given:
        return {"family": family, "given": given}
    filed, comma, _ = filing_name(bare).partition(", ")
    words, last = bare.split(), len(filed.split())
    if comma and last < len(words):
        return {"family": " ".join(words[-last:]), "given": " ".join(words[:-last])}
    return {"family": bare}


@cache
def _writer(style: str) -> Callable[[dict[str, object]], str]:
    """Reads a style once; what comes out writes an item by it."""
    from citeproc import (  # type: ignore[import-untyped]  # 0.3 s to import, and most pages cite nothing
        Citation as Cited,
    )
    from citeproc import CitationItem, CitationStylesBibliography, CitationStylesStyle, formatter
    from citeproc.source.json import CiteProcJSON  # type: ignore[import-untyped]

    with as_file(files("indlet.web").joinpath(f"styles/{style}.csl")) as path:
        read = CitationStylesStyle(str(path), validate=False)

    def written(item: dict[str, object]) -> str:
        bibliography = CitationStylesBibliography(read, CiteProcJSON([item]), formatter.plain)
        bibliography.register(Cited([CitationItem("record")]))
        return str(bibliography.bibliography()[0])

    return written


def _tidy(text: str) -> str:
    """Two full stops become one, and what was escaped for HTML is text again."""
    text = " ".join(html.unescape(text).split())
    return re.sub(r"\.\.(?!\.)", ".", re.sub(r"\s+([.,;])", r"\1", text))
