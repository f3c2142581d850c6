"""Names of people as values: a key by which the ways to write one name meet.

The key of a name is its family name and its first given name, in small letters without accents and
punctuation: "Wang, Wei", "Wei Wang" and "WANG, Wei-Ling, 1970-" are `wang/wei`. Before a comma stands the
family name; without a comma it is the last word, with the particles before it ("Jan van der Berg" is
`vanderberg/jan`). An initial stands for every name that begins with it, in a record and in a query:

| written | its keys | who asks for `creator:"Wei Wang"` |
| --- | --- | --- |
| Wang, Wei | `wang/wei`, `wang/w*` | finds it |
| Wang, W. | `wang/w.`, `wang/w*` | finds it: it may be the one |
| Wang, Wenli | `wang/wenli`, `wang/w*` | does not |

`creator:"W. Wang"` asks for `wang/w*` and so finds all three. Namesakes cannot be told apart by their names.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from indlet.memo import remembered
from indlet.text.accents import without_accents

_MOST: Final = 300  # characters of a name
_LONGEST: Final = 60  # of each part of a key
_WORD: Final = re.compile(r"\w+")
_PARTICLES: Final = frozenset(
    (
        "af", "al", "am", "auf", "aus", "ben", "bin", "da", "dal", "de", "del", "della", "den", "der", "des",
        "di", "do", "dos", "du", "el", "ibn", "la", "las", "le", "les", "lo", "los", "san", "st", "ten",
        "ter", "van", "vom", "von", "y", "zu", "zum", "zur",
    )
)  # fmt: skip
# Words that only names of bodies hold, and how many words the name of a person has at most.
_BODY: Final = frozenset(
    (
        "and", "association", "center", "centre", "committee", "council", "department", "for", "fur", "group",
        "inc", "institut", "institute", "laboratory", "library", "ltd", "ministry", "of", "office", "on",
        "society", "station", "the", "und", "universitat", "universite", "university",
    )
)  # fmt: skip
_PERSON: Final = 4
# More such words, in several languages. They are asked for where a record is cited, and do not change how the
# index files a name.
_BODIES: Final = _BODY | frozenset(
    (
        "academia", "academie", "academy", "agence", "agencia", "agency", "akademie", "amt", "archive",
        "archives", "asociacion", "associazione", "authority", "biblioteca", "bibliotek", "bibliotheek",
        "bibliothek", "bibliotheque", "board", "bundesamt", "bundesanstalt", "bureau", "centro", "centrum",
        "club", "collaboration", "college", "comision", "comite", "commission", "company", "consejo",
        "consortium", "corporation", "departamento", "desk", "division", "ecole", "editors", "escuela",
        "facultad", "faculte", "faculty", "fakultat", "federation", "foundation", "fundacao", "fundacion",
        "gesellschaft", "gmbh", "government", "hospital", "instituto", "istituto", "journal", "kommission",
        "ministere", "ministerio", "ministerium", "museo", "museum", "nations", "network", "organisation",
        "organization", "programme", "room", "school", "schule", "secretariat", "services", "societe",
        "staff", "stiftung", "survey", "team", "union", "universidad", "universidade", "universita",
        "universiteit", "verein", "zentrum",
    )
)  # fmt: skip
# "1970-", "(1970–2010)", "Jr.", "Ph.D." tell no name.
_BESIDE: Final = re.compile(
    r"\(.*?\)|\b\d{3,4}\b\s*[-–]?|\b(?:jr|sr|ph\.?\s*d|dr|prof|md)\b\.?", re.IGNORECASE
)
# Without one of these a name of ASCII has nothing such beside it.
_PERHAPS: Final = re.compile(r"[(\d]|[js]r|p[hr]|dr|md", re.IGNORECASE)


def names(value: str) -> list[str]:
    """The names in one value: many repositories put several there, with semicolons between them."""
    if ";" not in value:
        return [name] if (name := value.strip()) else []
    return [name for part in value.split(";") if (name := part.strip())]


def record_keys(name: str) -> tuple[str, ...]:
    """The keys under which a name of a record can be found."""
    family, given = parts(name)
    if not family:
        return ()
    if not given:
        return (f"{family}/",)
    own = f"{family}/{given}" if len(given) > 1 else f"{family}/{given}."
    return own, f"{family}/{given[0]}*"


def query_keys(name: str) -> list[str]:
    """The keys of which one is enough: a record that has it may be of the one who is asked for."""
    family, given = parts(name)
    if not family:
        return []
    if not given:
        return [f"{family}/"]
    if len(given) == 1:
        return [f"{family}/{given}*"]
    return [f"{family}/{given}", f"{family}/{given[0]}."]


def parts(name: str) -> tuple[str, str]:
    """The family name and the first given name, or its initial; both empty where there is no letter."""
    first, rest, given = _words(name)
    if first and given:
        return "".join(first)[:_LONGEST], rest[0][:_LONGEST]
    words = first or rest[:given]
    if not words:
        return "", ""
    start = len(words) - 1
    while start > 1 and words[start - 1] in _PARTICLES:
        start -= 1
    return "".join(words[start:])[:_LONGEST], words[0][:_LONGEST] if start else ""


@remembered(1 << 14)
def _words(name: str) -> tuple[list[str], list[str], int]:
    """A name's words before the first comma, those after, and how many of these precede the second."""
    name = name[:_MOST]
    if not name.isascii() or _PERHAPS.search(name):
        name = _BESIDE.sub(" ", name)
    before, _, after = folded(name).partition(",")
    given, _, beyond = after.partition(",")
    rest = _WORD.findall(given)
    return _WORD.findall(before), rest + _WORD.findall(beyond) if beyond else rest, len(rest)


@remembered(1 << 14)
def filing_name(name: str) -> str:
    """A name as a list files it: family name, comma, given names; in small letters without accents.

    "Wang, Wei" and "Wei Wang" are one, "Wang, W." is another. What reads as the name of a body (five words or
    more without a comma, or a word such as "of") stays in its order. Empty where there is no letter.
    """
    first, rest, _ = _words(name)
    if first and rest:
        return f"{' '.join(first)}, {' '.join(rest)}"
    words = first or rest
    if len(words) < 2 or len(words) > _PERSON or not _BODY.isdisjoint(words):
        return " ".join(words)
    start = len(words) - 1
    while start > 1 and words[start - 1] in _PARTICLES:
        start -= 1
    return f"{' '.join(words[start:])}, {' '.join(words[:start])}"


def is_body(name: str) -> bool:
    """Whether a name reads as that of a body: by a word such as "of", or by five words without a comma."""
    first, rest, given = _words(name)
    if not rest and len(first) > _PERSON:
        return True
    return any(len(words) > 1 and not _BODIES.isdisjoint(words) for words in (first, rest[:given]))


def folded(text: str) -> str:
    """A text in small letters, without accents."""
    return text.lower() if text.isascii() else without_accents(unicodedata.normalize("NFKC", text).casefold())
