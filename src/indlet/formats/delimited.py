"""Records in delimited text, a row for each, by a table whose lines say how the text looks (`tagged.py`)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Final

from indlet.formats.crosswalk import Crosswalk
from indlet.formats.record import Broken, Field, Fields

_REPEATED: Final = ("creator", "contributor", "subject", "type", "language")


def decode_text(data: bytes) -> str:
    """The text of a file, in UTF-8 or, where it is not, in Windows-1252."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def header(table: Crosswalk) -> bytes:
    """The row that names the columns."""
    return _row(_columns(table), table)


def _dialect(table: Crosswalk) -> str:
    delimiter = table.about.get("delimiter", ",").strip() or ","
    return "\t" if delimiter == "tab" else delimiter[:1]


def _columns(table: Crosswalk) -> list[str]:
    return list(dict.fromkeys(rule.tags[0] for rule in table.rules))


def _repeat(table: Crosswalk) -> str:
    return table.about.get("repeat", ";").strip() or ";"


def _column_names(table: Crosswalk, line: str) -> frozenset[str]:
    """The columns that a line of the table names."""
    return frozenset(name.strip() for name in table.about.get(line, "").split("|") if name.strip())


def _several(table: Crosswalk) -> frozenset[str]:
    """The columns that may hold several values. A title or an address may well hold the mark itself."""
    if "several" in table.about:
        return _column_names(table, "several")
    rules = [rule for rule in table.rules if rule.reads or rule.writes]
    return frozenset(tag for rule in rules if rule.element in _REPEATED for tag in rule.tags)


def _split(cell: str, mark: str) -> list[str]:
    """The values of a cell; "\\;" is a ";" within a value."""
    return [value.replace(f"\\{mark}", mark) for value in re.split(rf"(?<!\\){re.escape(mark)}", cell)]


def _check_columns(header: list[str], table: Crosswalk) -> Broken | None:
    """Whether a file's columns are those that the table describes.

    Unknown columns next to missing ones are taken for misspelt names, and the file is not read.
    """
    known = {tag for rule in table.rules for tag in rule.tags}
    unknown = [
        name for name in header if name and name not in known and name not in _column_names(table, "ignore")
    ]
    if not unknown:
        return None
    found = f"no row of the table knows {', '.join(map(repr, unknown[:10]))}"
    read = dict.fromkeys(tag for rule in table.rules if rule.reads for tag in rule.tags)
    missing = [tag for tag in read if tag not in header]
    if not missing:
        return Broken(0, f"{found}: not read; give each a row, or list it in !ignore", is_warning=True)
    return Broken(
        1,
        f"{found}, and there is no column {', '.join(map(repr, missing[:10]))}; "
        "correct the names, or list the former in a line !ignore",
    )


def load(data: bytes, table: Crosswalk) -> Iterator[Fields | Broken]:
    lines = _Lines(decode_text(data))
    # Lines of their own iterator: a reader of the csv module that met an error goes on with the next line.
    rows = csv.reader(lines, delimiter=_dialect(table))
    mark, several = _repeat(table), _several(table)
    header: list[str] | None = None
    number = 0
    while True:
        lines.begin_row()
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            yield Broken(number, f"record {number}, line {rows.line_num}: {error}")
            continue
        if header is None:
            header = [name.strip() for name in row]
            if found := _check_columns(header, table):
                yield found
            if found and not found.is_warning:
                return
        elif row:
            number += 1
            problem = "more cells than columns" if len(row) > len(header) else ""
            if lines.at_end and _is_cut(lines.row, len(row) < len(header), table):
                problem = "the file ends within it"
            if problem:
                yield Broken(number, f"record {number}, line {rows.line_num}: {problem}")
                continue
            yield [
                Field(tag, value.strip())
                for tag, cell in zip(header, row, strict=False)
                for value in (_split(cell, mark) if tag in several else [cell])
                if value.strip()
            ]


class _Lines:
    """The lines of a text, which remembers those of the row that is being read."""

    def __init__(self, text: str) -> None:
        self._lines = io.StringIO(text, newline="")
        self._end = len(text)
        self.row: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.row.append(line)
        return line

    def begin_row(self) -> None:
        self.row = []

    @property
    def at_end(self) -> bool:
        return self._lines.tell() == self._end


def _is_cut(lines: list[str], short: bool, table: Crosswalk) -> bool:
    """Whether the last row of a file is not all there: it ends in a quoted cell, or early."""
    try:
        list(csv.reader(lines, delimiter=_dialect(table), strict=True))
    except csv.Error as error:
        if "unexpected end" in str(error):
            return True
    return short and not lines[-1].endswith(("\r", "\n"))


def pack(fields: Fields, table: Crosswalk) -> bytes:
    mark, several = _repeat(table), _several(table)
    cells: dict[str, list[str]] = {}
    for field in fields:
        value = " ".join(field.value.split())
        if field.tag in several:
            value = value.replace(mark, f"\\{mark}") + " " * value.endswith("\\")
        cells.setdefault(field.tag, []).append(value)
    return _row([f"{mark} ".join(cells.get(column, ())) for column in _columns(table)], table)


def _row(cells: list[str], table: Crosswalk) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=_dialect(table), lineterminator="\n").writerow(cells)
    return out.getvalue().encode("utf-8", "replace")
