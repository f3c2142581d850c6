"""Subjects of records in the scheme of the library that takes them, by the four methods of `subjects`.

One table goes from scheme to scheme, two by way of a common one. A subject that the tables do not know stays
as it is: nothing is lost by a short table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from indlet.errors import SettingsError
from indlet.formats.crosswalk import Crosswalk
from indlet.formats.record import CommonRecord, Statement
from indlet.formats.subjects import SubjectClassifier, SubjectTable, read_table, through

METHODS: Final = ("codes", "words", "learned")
INFERRED: Final = "inferred"  # the scheme of codes that no source says


@dataclass(frozen=True, slots=True)
class SubjectTranslation:
    """`words`: a code becomes what it stands for. `learned` gives codes to records that have none of ours."""

    table: SubjectTable
    words: bool = False
    learned: SubjectClassifier | None = None

    def translated(self, record: CommonRecord, frequencies: Mapping[str, int] | None = None) -> CommonRecord:
        found = list[Statement]()
        ours = set[str]()
        for statement in record.statements:
            values = self._values(statement.value) if statement.element == "subject" else []
            if not values:
                found.append(statement)
            scheme = "" if self.words else self.table.scheme
            found += [replace(statement, value=v, scheme=scheme) for v in values if v not in ours]
            ours.update(values)
        if self.learned is not None and not ours and frequencies:
            scheme = f"{self.table.scheme}-{INFERRED}" if self.table.scheme else INFERRED
            codes = self.learned.classify(frequencies)
            found += [Statement("subject", code, "", scheme) for code in codes]
        return replace(record, statements=tuple(found))

    def _values(self, code: str) -> list[str]:
        if self.words:
            return self.table.texts([code]) if code in self.table.labels else []
        return self.table.codes([code])


def mark_inferred(record: CommonRecord, table: Crosswalk) -> CommonRecord:
    """The record with a mark in the value of each inferred subject whose scheme the table does not write."""

    def marked(one: Statement) -> Statement:
        if not one.scheme.endswith(INFERRED):
            return one
        fields = table.write(CommonRecord((one,)))
        written = [text for f in fields for text in (f.value, *(value for _, value in f.subfields))]
        if any(one.scheme in text for text in written):
            return one
        return replace(one, value=f"{one.value} ({INFERRED})")

    return replace(record, statements=tuple(map(marked, record.statements)))


def subject_translation(tables: Sequence[str], method: str = "codes") -> SubjectTranslation | None:
    """By files of tables and a method; None if they ask for nothing. SettingsError if they do not fit."""
    if method not in METHODS:
        raise SettingsError(f"subject_method is {method!r}; one of {', '.join(METHODS)}")
    if len(tables) > 2:
        raise SettingsError("subjects names more than two tables; give one, or two by way of a common scheme")
    if not tables and method == "words":
        raise SettingsError("subject_method is 'words', and subjects names no table; name one with labels")
    if not tables and method == "codes":
        return None
    found = [read_table(Path(table)) for table in tables]
    table = SubjectTable({}) if not found else found[0] if len(found) == 1 else through(*found)
    return SubjectTranslation(table, method == "words")
