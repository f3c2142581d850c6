"""Conditions in the tables of a crosswalk: when a row applies, and what it sets where it writes.

ind1=0 ind2=0     an indicator                          written: set
$2=lcsh           a subfield (by its code or name)      written: added
@type=uri         an attribute                          written: set
…~REGEX …!=VALUE  the same, matched or refused          written: not set
set:$e=author     nothing on the way in                 written: set
role=creator      $e, $4 or a role term says author or creator; role=other, another; role=none, nothing
LDR/06!=z         a position of a fixed field of the record; way in only
value~REGEX       the value itself, both ways
none              the element has no value from any other row; way in only
plain, !plain     the record was made from Dublin Core, or was not (a line "!plain" tells which); way in only
once              the row writes one value of a record; the next rows get the others
first             the row writes only the first value of its element
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from indlet.formats.record import Field, Fields, Statement

# Relator terms and codes that make an added entry a creator.
_CREATING: Final = frozenset(
    {"aut", "cre", "author", "creator", "joint author", "070", "verfasser", "auteur"}
)
_ROLES: Final = ("e", "4", "role/roleTerm", "role/roleTerm:text", "role/roleTerm:code")
_WORDS: Final = ("none", "plain", "!plain", "once", "first")
# Conditions that are not about a field.
ANYWHERE: Final = ("value", "none", "once", "first")
_FORM = re.compile(
    r"(set:)?(ind1|ind2|value|role|\$[\w:./-]+|@[\w:.-]+|[A-Z0-9]{3}/\d+)(!=|=|!~|~)(.*)", re.DOTALL
)
# Longer patterns are no condition but an attack on whoever runs the table.
_PATTERN_LENGTH: Final = 200


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    operator: str = ""
    value: str = ""
    sets: bool = False  # written, but not asked for

    @classmethod
    def parse(cls, word: str) -> Condition:
        """ValueError if the word is no condition."""
        if word in _WORDS:
            return cls(word)
        form = _FORM.fullmatch(word)
        if not form:
            raise ValueError(f"condition {word!r} is not known")
        # A space cannot stand in a word of the table.
        condition = cls(form[2], form[3], form[4].replace("␣", " "), bool(form[1]))
        if "~" in condition.operator:
            if len(condition.value) > _PATTERN_LENGTH:
                raise ValueError(f"the pattern of {word[:40]!r} is longer than {_PATTERN_LENGTH} characters")
            try:
                _pattern(condition.value)
            except re.error as e:
                raise ValueError(f"the pattern of {word!r}: {e}") from e
        return condition

    # In

    def on_field(self, field: Field, fields: Fields, plain: bool) -> bool:
        if self.name.endswith("plain"):
            return plain != self.name.startswith("!")
        if self.name == "role":
            return self._holds([_role(field)])
        if self.name in ("ind1", "ind2"):
            place = int(self.name[3]) - 1
            return self._holds([field.indicators[place : place + 1]])
        if self.name[0] in "$@":
            code = self.name[1:] if self.name[0] == "$" else self.name
            return self._holds([value for other, value in field.subfields if other == code])
        tag, _, position = self.name.partition("/")
        at = int(position)
        return self._holds([f.value[at : at + 1] for f in fields if f.tag == tag])

    def _holds(self, values: list[str]) -> bool:
        if "~" in self.operator:
            matched = any(_pattern(self.value).fullmatch(value) for value in values)
        else:
            matched = self.value in values or (not self.value and not values)
        return matched != self.operator.startswith("!")

    def on_value(self, value: str) -> bool:
        return self.name != "value" or self._holds([value[:500]])

    # Out

    def on_statement(self, statement: Statement, spent: bool, later: bool) -> bool:
        if self.name == "once":
            return not spent
        if self.name == "first":
            return not later
        return self.on_value(statement.value)

    def put(self, indicators: list[str], subfields: list[tuple[str, str]]) -> None:
        """Sets on a written field what the condition would ask of it."""
        if self.operator != "=" or not self.value:
            return
        if self.name in ("ind1", "ind2"):
            indicators[int(self.name[3]) - 1] = self.value[:1] or " "
        elif self.name[0] == "$":
            subfields.append((self.name[1:], self.value))
        elif self.name[0] == "@":
            subfields.append((self.name, self.value))


def _role(field: Field) -> str:
    roles = {value.strip().rstrip(".,").lower() for code, value in field.subfields if code in _ROLES}
    roles = {role.rpartition("/")[2] for role in roles}
    return "creator" if roles & _CREATING else "other" if roles else "none"
