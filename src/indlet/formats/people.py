"""Names of people as values: a key by which the ways to write one name meet (`core/src/keys/people.rs`)."""

from __future__ import annotations

from typing import Final

from indlet._core import filing_name, person_words
from indlet._core import fold_name as folded
from indlet._core import person_parts as parts
from indlet._core import person_query_keys as query_keys
from indlet._core import person_record_keys as record_keys

# Words that occur only in corporate names, and the greatest number of words in a personal name. Citations use
# them; the filing form of a name in the index depends on fewer of them.
_BODY: Final = frozenset(
    (
        "and", "association", "center", "centre", "committee", "council", "department", "for", "fur", "group",
        "inc", "institut", "institute", "laboratory", "library", "ltd", "ministry", "of", "office", "on",
        "society", "station", "the", "und", "universitat", "universite", "university",
    )
)  # fmt: skip
_PERSON: Final = 4
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


def names(value: str) -> list[str]:
    """The names in one value: many repositories put several there, with semicolons between them."""
    return [name for part in value.split(";") if (name := part.strip())]


def is_body(name: str) -> bool:
    """Whether a name reads as that of a body: by a word such as "of", or by five words without a comma."""
    first, rest, given = person_words(name)
    if not rest and len(first) > _PERSON:
        return True
    return any(len(words) > 1 and not _BODIES.isdisjoint(words) for words in (first, rest[:given]))


__all__ = ["filing_name", "folded", "is_body", "names", "parts", "query_keys", "record_keys"]
