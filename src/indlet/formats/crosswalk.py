"""Tables that translate fields to the common record and back, and the engine that runs them.

A table has a row for each correspondence, seven columns separated by tabs:

field           a tag, several ("020,022"), a range ("501-505"), or positions of a fixed field ("008/35-37")
subfields       MARC codes ("abc"), or names separated by spaces; empty for the field's own value
condition       all have to hold; see `conditions.py`
element         a Dublin Core element, its refinement and scheme: "subject", "date.issued", "subject[LCSH]",
                "subject[*]" (the scheme is the attribute of that name, or the subfield
                that a line "!scheme" names; there only a value with a scheme is written);
                or "record.identifier" and "record.datestamp", which are the record's own
transformation  what happens to a value; see `transformations.py`
direction       "in" (to the common record), "out" (from it), or "both": what is written is read back equal
note            where the row comes from

Lines that begin with "#" are comments. A line "!name<TAB>value" says something of the whole table.
A site's own table stands on top of the standard one: its rows for a field replace the standard's for that
field on the way in, and its rows for an element on the way out; with "+" before the field they are added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from indlet.errors import SettingsError
from indlet.formats.conditions import ANYWHERE, Condition
from indlet.formats.record import CommonRecord, Field, Fields, Statement
from indlet.formats.transformations import Transformation, steps
from indlet.model import DUBLIN_CORE

_COLUMNS: Final = 7
TABLE_BYTES: Final = 1 << 20
_FIELD = re.compile(r"(\+?)([^/]+(?:/(?!\d)[^/]+)*)(?:/(\d+)(?:-(\d+))?)?")
_RANGE = re.compile(r"(\d{3})-(\d{3})")
_ELEMENT = re.compile(r"([a-z]+)(?:\.([A-Za-z]+))?(?:\[([^\]\s]+)\])?")
_RECORD: Final = ("identifier", "datestamp")
_POSITIONS: Final = -2  # in place of a subfield's number: some positions of a fixed field
ANY_SCHEME: Final = "*"
_SCHEME: Final = "@scheme"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a table."""

    tags: tuple[str, ...]
    positions: tuple[int, int] | None
    codes: tuple[str, ...]
    conditions: tuple[Condition, ...]
    element: str
    refinement: str
    scheme: str
    steps: tuple[Transformation, ...]
    direction: str
    added: bool
    note: str
    number: int
    # What of the row matters on the way in, found out once.
    field_conditions: tuple[Condition, ...] = field(init=False, repr=False)
    value_conditions: tuple[Condition, ...] = field(init=False, repr=False)
    gather: Callable[[Field, Sequence[str]], list[str]] | None = field(init=False, repr=False)
    readers: tuple[Transformation, ...] = field(init=False, repr=False)
    late: bool = field(init=False, repr=False)
    gap: bool = field(init=False, repr=False)
    simple: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        asked = [c for c in self.conditions if not c.sets]
        put(self, "field_conditions", tuple(c for c in asked if c.name not in ANYWHERE))
        put(self, "value_conditions", tuple(c for c in asked if c.name == "value"))
        put(self, "gather", next((s.gather for s in self.steps if s.gather is not None), None))
        put(self, "readers", tuple(s for s in self.steps if s.read is not None))
        put(self, "gap", any(c.name == "none" for c in self.conditions))
        # After the other rows: fixed fields, and what only fills a gap.
        put(self, "late", self.positions is not None or self.gap)
        put(self, "simple", not self.has("qualified"))

    @property
    def reads(self) -> bool:
        return self.direction != "out"

    @property
    def writes(self) -> bool:
        return self.direction != "in"

    def has(self, step: str) -> bool:
        return any(s.name == step for s in self.steps)


UNWRITTEN: Final = "no row writes it"


@dataclass(frozen=True, slots=True)
class Lost:
    """A value that a translation does not carry: its place in the record and why."""

    where: str
    value: str
    reason: str


class Crosswalk:
    """One table, ready to translate in both directions."""

    def __init__(self, name: str, rules: Sequence[Rule], about: dict[str, str]) -> None:
        self.name = name
        self.rules = tuple(rules)
        self.about = about
        self._unqualified = "unqualified" in about
        self._plain = tuple(about.get("plain", "").split())
        self._scheme = about.get("scheme", "").strip() or _SCHEME
        self._by_tag: dict[str, list[Rule]] = {}
        self._late = [rule for rule in rules if rule.reads and rule.late]
        self._late_tags = {tag for rule in self._late for tag in rule.tags}
        self._out: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.reads and not rule.late:
                for tag in rule.tags:
                    self._by_tag.setdefault(tag, []).append(rule)
            if rule.writes:
                self._out.setdefault(rule.element, []).append(rule)

    # In

    def read(self, fields: Fields, lost: list[Lost] | None = None) -> CommonRecord:
        """The common record of a record's fields. What no row takes is added to `lost`."""
        fields = [_without_blanks(each) if each.indicators else each for each in fields]
        found: dict[Statement, Statement] = {}
        plain = self._is_plain(fields)
        used: set[tuple[int, int]] | None = None if lost is None else set()
        for place, each in enumerate(fields):
            for rule in self._by_tag.get(each.tag, ()):
                self._take(rule, place, each, fields, plain, found, used)
        late = [(place, each) for place, each in enumerate(fields) if each.tag in self._late_tags]
        for rule in self._late:
            if rule.gap and any(s.element == rule.element and s.simple for s in found.values()):
                continue
            for place, each in late:
                if each.tag in rule.tags:
                    self._take(rule, place, each, fields, plain, found, used)
        if lost is not None and used is not None:
            lost += _unused_parts(fields, used)
        own = dict.fromkeys(_RECORD, "")
        for statement in found:
            if statement.element == "record":
                own[statement.refinement] = own[statement.refinement] or statement.value
        return CommonRecord(tuple(s for s in found.values() if s.element != "record"), **own)

    def _is_plain(self, fields: Fields) -> bool:
        """Whether the record was made from Dublin Core: then its values end without punctuation to strip."""
        if not self._plain:
            return False
        tag, code, value = self._plain
        return any(field.tag == tag and (code, value) in field.subfields for field in fields)

    def _take(
        self,
        rule: Rule,
        place: int,
        field: Field,
        fields: Fields,
        plain: bool,
        found: dict[Statement, Statement],
        used: set[tuple[int, int]] | None,
    ) -> None:
        for condition in rule.field_conditions:
            if not condition.on_field(field, fields, plain):
                return
        values = gather_values(rule, field)
        if not values:
            return
        for value in apply_readers(rule, values, plain):
            if not value or not all(condition.on_value(value) for condition in rule.value_conditions):
                continue
            if used is not None:
                used.update(_parts(rule, place, field))
            scheme = rule.scheme if rule.scheme != ANY_SCHEME else "".join(field.select((self._scheme,))[:1])
            statement = Statement(rule.element, value, rule.refinement, scheme, rule.simple)
            known = found.get(statement)
            if known is None:
                found[statement] = statement
            elif statement.simple and not known.simple:
                del found[statement]  # it takes its place among the simple ones
                found[statement] = statement

    # Out

    def write(self, record: CommonRecord, lost: list[Lost] | None = None) -> list[Field]:
        """The fields that say what the common record says, in the order of the table's rows."""
        made: list[tuple[int, Field]] = []
        spent: set[int] = set()
        first: set[str] = set()
        told = [Statement("record", getattr(record, name), name) for name in _RECORD if getattr(record, name)]
        for statement in (*told, *record.statements):
            rules = self._matching(statement) if statement.simple or not self._unqualified else []
            main = None
            for rule in rules:
                if rule.positions is not None and rule.number in spent:
                    continue
                if main is not None and rule.positions is None:
                    continue
                if not self._allows(rule, statement, spent, first):
                    continue
                spent.add(rule.number)
                made.append((rule.number, _write_field(rule, statement, self._scheme)))
                if rule.positions is None:
                    main = rule
            first.add(statement.element)
            if lost is not None and statement.element != "record":
                lost += _left_out(statement, main)
        made.extend(
            (rule.number, _constant(rule)) for rule in self._out.get("record", ()) if _is_constant(rule)
        )
        made.sort(key=lambda pair: pair[0])
        return _group_fields(made, {rule.number for rule in self.rules if rule.has("group")})

    def _matching(self, statement: Statement) -> list[Rule]:
        """The rows for a statement, those that say most of it first."""
        rules = [
            rule
            for rule in self._out.get(statement.element, ())
            # What a table says of every record is no row for its identifier or datestamp.
            if (rule.refinement == statement.refinement or (not rule.refinement and rule.element != "record"))
            and rule.scheme in ("", ANY_SCHEME, statement.scheme)
            and not (rule.scheme == ANY_SCHEME and self._scheme != _SCHEME and not statement.scheme)
        ]
        return sorted(rules, key=lambda rule: -2 * bool(rule.refinement) - bool(rule.scheme))

    @staticmethod
    def _allows(rule: Rule, statement: Statement, spent: set[int], first: set[str]) -> bool:
        return all(
            condition.on_statement(statement, rule.number in spent, statement.element in first)
            for condition in rule.conditions
        )


def _without_blanks(field: Field) -> Field:
    """A field of MARC, which keeps blanks that mean nothing to other formats."""
    subfields = tuple((code, " ".join(value.split())) for code, value in field.subfields)
    return field if subfields == field.subfields else replace(field, subfields=subfields)


def gather_values(rule: Rule, field: Field) -> list[str]:
    """The values that a row takes from a field, before its transformations."""
    if rule.positions is not None:
        first, last = rule.positions
        return [field.value[first : last + 1]] if field.value[first : last + 1].strip(" |") else []
    if not rule.codes:
        return [field.value] if field.value else []
    if rule.gather is not None:
        return rule.gather(field, rule.codes)
    values = field.select(rule.codes)
    return [" ".join(values)] if values else []


def apply_readers(rule: Rule, values: list[str], plain: bool = False) -> list[str]:
    """The values after the row's transformations, on the way in."""
    several = values
    for step in rule.readers:
        if step.read is not None and not (plain and step.name == "chop"):
            several = [out for one in several for out in step.read(one)]
    return several


def _parts(rule: Rule, place: int, field: Field) -> Iterator[tuple[int, int]]:
    """What a row takes of a field, by the numbers that tell what is lost."""
    if rule.positions is not None:
        yield place, _POSITIONS
        return
    if not rule.codes:
        yield (-1, field.parts[0]) if field.parts else (place, -1)
        return
    for number, (code, _) in enumerate(field.subfields):
        if code in rule.codes:
            yield (-1, field.parts[number + 1]) if field.parts else (place, number)


def _unused_parts(fields: Fields, used: set[tuple[int, int]]) -> Iterator[Lost]:
    told: set[int] = set()
    for place, each in enumerate(fields):
        pieces = [(-1, each.tag, each.value)] if each.value else []
        pieces += [
            (number, f"{each.tag}${code}" if len(code) == 1 else f"{each.tag}/{code}", value)
            for number, (code, value) in enumerate(each.subfields)
            if not code.startswith("@")
        ]
        for number, where, value in pieces:
            if each.parts:
                part = each.parts[number + 1]
                if part in told or (-1, part) in used:
                    continue
                told.add(part)
            elif (place, number) in used:
                continue
            if value.strip():
                some = number == -1 and (place, _POSITIONS) in used
                yield Lost(where, value, "only some positions are read" if some else "no row takes it")


def _left_out(statement: Statement, rule: Rule | None) -> Iterator[Lost]:
    where = statement.element
    where += f".{statement.refinement}" if statement.refinement else ""
    where += f"[{statement.scheme}]" if statement.scheme else ""
    if rule is None:
        yield Lost(where, statement.value, UNWRITTEN)
    elif rule.refinement != statement.refinement or rule.scheme not in (statement.scheme, ANY_SCHEME):
        yield Lost(where, statement.value, f"written as plain {rule.element}")


def _write_field(rule: Rule, statement: Statement, scheme: str = _SCHEME) -> Field:
    value = statement.value
    for step in reversed(rule.steps):
        if step.write is not None:
            value = step.write(value)
    tag, indicators, subfields = rule.tags[0], [" ", " "], list[tuple[str, str]]()
    if rule.codes:
        subfields.append((rule.codes[0], value))
    for condition in rule.conditions:
        condition.put(indicators, subfields)
    if rule.scheme == ANY_SCHEME and statement.scheme:
        subfields.append((scheme, statement.scheme))
    if rule.positions is not None:
        return Field(tag, " " * rule.positions[0] + value, parts=rule.positions)
    return Field(tag, "" if rule.codes else value, "".join(indicators), tuple(subfields))


def _is_constant(rule: Rule) -> bool:
    return rule.refinement == "" and rule.has("say")


def _constant(rule: Rule) -> Field:
    return _write_field(rule, Statement("record", ""))


def _group_fields(made: Iterable[tuple[int, Field]], grouping: set[int]) -> list[Field]:
    """The fields, with those of rows that say "group" joined into one field as far as no subfield repeats."""
    out: list[Field] = []
    for number, new in made:
        place = None
        if number in grouping:
            codes = {code for code, _ in new.subfields}
            place = next(
                (
                    place
                    for place, old in enumerate(out)
                    if (old.tag, old.indicators) == (new.tag, new.indicators)
                    and not codes & {code for code, _ in old.subfields}
                ),
                None,
            )
        if place is None:
            out.append(new)
        else:
            out[place] = replace(out[place], subfields=out[place].subfields + new.subfields)
    return out


# Tables


@cache
def standard(name: str, single: bool = False) -> Crosswalk:
    """A table of ours. With `single`, each character of the column "subfields" is a code."""
    text = resources.files("indlet.formats").joinpath("tables", f"{name}.tsv").read_text("utf-8")
    return parse(text, name, single)


def load(path: Path, single: bool = False) -> Crosswalk:
    """A site's own table. SettingsError if it is missing or not a table."""
    try:
        if path.stat().st_size > TABLE_BYTES:
            raise SettingsError(f"{path}: a table of more than {TABLE_BYTES} bytes; check the name")
        return parse(path.read_text("utf-8-sig"), str(path), single)
    except (OSError, UnicodeDecodeError) as e:
        raise SettingsError(f"{path}: {e}; give a table in UTF-8, columns separated by tabs") from e


def over(own: Crosswalk, base: Crosswalk) -> Crosswalk:
    """The rows of one table on top of another's."""
    fields = {tag for rule in own.rules if rule.reads and not rule.added for tag in rule.tags}
    elements = {(r.element, r.refinement, r.scheme) for r in own.rules if r.writes and not r.added}
    kept = []
    for rule in base.rules:
        tags = tuple(tag for tag in rule.tags if tag not in fields)
        reads = rule.reads and bool(tags)
        writes = rule.writes and (rule.element, rule.refinement, rule.scheme) not in elements
        if reads or writes:
            direction = "both" if reads and writes else "in" if reads else "out"
            kept.append(replace(rule, tags=tags if direction == "in" else rule.tags, direction=direction))
    rules = [replace(rule, number=place) for place, rule in enumerate((*own.rules, *kept))]
    return Crosswalk(own.name, rules, base.about | own.about)


def parse(text: str, name: str, single: bool = False) -> Crosswalk:
    """The table that a text holds. SettingsError names the line that is wrong."""
    rules: list[Rule] = []
    about: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("!"):
            key, _, value = line[1:].partition("\t")
            about[key.strip()] = value
            continue
        try:
            rules.append(_rule(line, len(rules), single))
        except ValueError as e:
            raise SettingsError(f"{name}, line {number}: {e}") from e
    return Crosswalk(name, rules, about)


def _rule(line: str, number: int, single: bool) -> Rule:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) not in (_COLUMNS - 1, _COLUMNS):
        raise ValueError(f"{len(cells)} columns; give {_COLUMNS}, separated by tabs")
    tag, subfields, condition, element, transformation, direction, note = (*cells, "")[:_COLUMNS]
    if direction not in ("in", "out", "both"):
        raise ValueError(f"direction {direction!r}; give in, out or both")
    meant = _ELEMENT.fullmatch(element)
    if not meant or not (meant[1] in DUBLIN_CORE or (meant[1] == "record" and meant[2] in (None, *_RECORD))):
        raise ValueError(f"element {element!r} is not of Dublin Core")
    written = _FIELD.fullmatch(tag)
    if not written:
        raise ValueError(f"field {tag!r} is no tag, path or fixed field such as 008/35-37")
    positions = (int(written[3]), int(written[4] or written[3])) if written[3] else None
    if positions and not positions[0] <= positions[1] <= 99:
        raise ValueError(f"positions of {tag!r} are not within a fixed field")
    return Rule(
        tuple(_tags(written[2])),
        positions,
        tuple(subfields.replace(" ", "") if single else subfields.split()),
        tuple(Condition.parse(word) for word in condition.split()),
        meant[1],
        meant[2] or "",
        meant[3] or "",
        steps(transformation),
        direction,
        bool(written[1]),
        note,
        number,
    )


def _tags(text: str) -> Iterator[str]:
    for part in text.split(","):
        if span := _RANGE.fullmatch(part):
            yield from (f"{number:03d}" for number in range(int(span[1]), int(span[2]) + 1))
        else:
            yield part
