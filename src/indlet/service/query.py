"""The query language: from what a person types to a tree. docs/query.md is its grammar in words.

    query  = all ("OR" all)*
    all    = run ("AND" run)*
    run    = item+
    item   = ["NOT" | "+" | "-"] thing
    thing  = word | prefix"*" | '"' phrase '"' | field ":" thing | "(" query ")" | "*"

Nothing here knows an index or an analysis: `service/interpret.py` gives the tree its meaning.
"""

from __future__ import annotations

import difflib
import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from indlet.errors import QueryError

MAX_LENGTH: Final = 20_000  # characters: a pasted abstract fits, a pasted book does not
MAX_DEPTH: Final = 40  # nested parentheses
MAX_CLAUSES: Final = 1024

# Fields whose words are indexed apart, then those that only filter; each with its other names.
WORD_FIELDS: Final = {
    "title": (),
    "creator": ("author",),
    "subject": ("keyword", "topic"),
    "description": ("abstract",),
    "publisher": (),
    "contributor": ("editor",),
}
FILTER_FIELDS: Final = {
    "date": ("year",),
    "source": ("from",),
    "set": ("collection",),
    "type": (),
    "language": ("lang",),
}
_FIELDS: Final = {
    alias: name
    for table in (WORD_FIELDS, FILTER_FIELDS)
    for name, aliases in table.items()
    for alias in (name, *aliases)
}


@dataclass(frozen=True, slots=True)
class Word:
    """A word as typed; `field` is empty for the whole text. `at` counts characters from 0."""

    text: str
    field: str = ""
    prefix: bool = False
    at: int = 0


@dataclass(frozen=True, slots=True)
class Phrase:
    text: str
    field: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that selects and does not score: source, set, type or language."""

    field: str
    value: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates from `low` to `high`, both as yyyymmdd and inclusive; 0 and 99991231 are open ends."""

    low: int
    high: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class Everything:
    at: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One member of a run: `sign` is "" (wanted), "+" (required) or "-" (excluded)."""

    sign: str
    node: Node


@dataclass(frozen=True, slots=True)
class Run:
    """Things side by side: any of the wanted, all of the required, none of the excluded."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class All:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    nodes: tuple[Node, ...]


Node = Word | Phrase | Filter | Dates | Everything | Run | All | AnyOf


@dataclass(frozen=True, slots=True)
class Query:
    """What was typed, what it says, and what had to be said about reading it."""

    text: str
    tree: Node
    notes: tuple[str, ...] = ()


def parse(text: str, max_clauses: int = MAX_CLAUSES) -> Query:
    """The query that a text states; QueryError points at the place of a fault."""
    if len(text) > MAX_LENGTH:
        raise QueryError(f"the query has {len(text):,} characters; {MAX_LENGTH:,} are allowed", text[:60], 0)
    parser = _Parser(clean(text), max_clauses)
    tree = parser.query()
    return Query(text, tree, tuple(parser.notes))


def plain(text: str, max_clauses: int = MAX_CLAUSES) -> Query:
    """A query of the words in a text, whatever signs it holds: for topics that were written for people."""
    words = tuple(
        Item("", Word(found.group(), at=found.start()))
        for found in re.finditer(r"\S+", clean(text[:MAX_LENGTH]))
        if _SPOKEN.search(found.group())
    )
    if not words:
        raise QueryError("the query holds no word", clean(text[:60]), 0)
    return Query(text, Run(words[:max_clauses]))


def clean(text: str) -> str:
    """The text with every control character, lone surrogate and line end made a space: places stay."""
    return _UNSPEAKABLE.sub(" ", text)


def words_of(node: Node) -> Iterator[Word | Phrase]:
    """The words and phrases that a tree wants found, in order; excluded ones are left out."""
    match node:
        case Word() | Phrase():
            yield node
        case Run(items):
            for item in items:
                if item.sign != "-":
                    yield from words_of(item.node)
        case All(nodes) | AnyOf(nodes):
            for part in nodes:
                yield from words_of(part)
        case _:
            pass


# Lexer

_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")
_SPOKEN = re.compile(r"\w")
_QUOTES = '"“”„«»'
_TOKEN = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<open>\()
    | (?P<close>\))
    | (?P<quote>[{_QUOTES}])
    | (?P<sign>(?<![^\s(])[-+](?=[\w(*{_QUOTES}]))
    | (?P<field>(?<![^\s(+-])[^\W\d]\w*:(?!//)(?=[^\s:)]))
    | (?P<word>[^\s(){_QUOTES}]+)
    """,
    re.VERBOSE,
)
_VALUE = re.compile(rf"[^\s(){_QUOTES}]+")
_OPERATORS = frozenset(("AND", "OR", "NOT"))


class _Token(NamedTuple):
    kind: str  # "(", ")", "phrase", "sign", "field", "word", "AND", "OR", "NOT", "end"
    text: str
    at: int


def _tokens(text: str, notes: list[str]) -> Iterator[_Token]:
    at, filtering = 0, False
    while at < len(text):
        # What follows `date:` or `set:` is a value as it stands; it may hold colons and dots.
        found = _VALUE.match(text, at) if filtering else None
        if found is not None:
            yield _Token("word", found.group(), at)
            at, filtering = found.end(), False
            continue
        filtering = False
        found = _TOKEN.match(text, at)
        assert found is not None, "the last alternatives take any character"
        kind, word = str(found.lastgroup), found.group()
        end = found.end()
        if kind == "quote":
            close = next((i for i in range(end, len(text)) if text[i] in _QUOTES), -1)
            if close < 0:
                raise QueryError("this quotation mark is never closed", text, at)
            yield _Token("phrase", text[end:close], at)
            end = close + 1
        elif kind == "field":
            name = word[:-1].casefold()
            yield _Token("field", name, at)
            filtering = _FIELDS.get(name) in FILTER_FIELDS
        elif kind == "word":
            if word in _OPERATORS:
                yield _Token(word, word, at)
            elif word == "*" or _SPOKEN.search(word):
                if word.endswith(":") and word[:-1].casefold() in _FIELDS:
                    notes.append(
                        f"“{word}” was read as a word: to search a field, leave no space after the colon"
                    )
                yield _Token("word", word, at)
            elif at and text[at - 1] == ":":
                raise QueryError("a field needs a word, a phrase or a parenthesis after its colon", text, at)
        elif kind != "space":
            yield _Token({"open": "(", "close": ")"}.get(kind, kind), word, at)
        at = end
    yield _Token("end", "", len(text))


# Parser


class _Parser:
    def __init__(self, text: str, max_clauses: int) -> None:
        self.notes: list[str] = []
        self._text = text
        self._tokens = list(_tokens(text, self.notes))
        self._next = 0
        self._clauses = 0
        self._max_clauses = max_clauses

    def query(self) -> Node:
        if self._peek().kind == "end":
            raise QueryError(
                "the query holds no word; * finds every record" if self._text.strip() else
                "the query is empty; write a word, or * for every record", self._text, 0,
            )  # fmt: skip
        tree = self._either("", 0)
        token = self._peek()
        if token.kind == ")":
            raise self._fault("nothing was opened that this closes", token)
        assert token.kind == "end", token
        return tree

    def _either(self, field: str, depth: int) -> Node:
        nodes = [self._all(field, depth)]
        while self._peek().kind == "OR":
            self._take()
            nodes.append(self._all(field, depth))
        return nodes[0] if len(nodes) == 1 else AnyOf(tuple(nodes))

    def _all(self, field: str, depth: int) -> Node:
        nodes = [self._run(field, depth)]
        while self._peek().kind == "AND":
            self._take()
            nodes.append(self._run(field, depth))
        return nodes[0] if len(nodes) == 1 else All(tuple(nodes))

    def _run(self, field: str, depth: int) -> Node:
        items: list[Item] = []
        while (token := self._peek()).kind not in ("AND", "OR", ")", "end"):
            sign = ""
            if token.kind in ("NOT", "sign"):
                self._take()
                sign = "+" if token.text == "+" else "-"
                if self._peek().kind in ("AND", "OR", "NOT", "sign", ")", "end"):
                    raise self._fault(f"{token.text} needs something to its right", token)
            items.append(Item(sign, self._thing(field, depth)))
        if not items:
            raise self._missing(token)
        if len(items) == 1 and not items[0].sign:
            return items[0].node
        return Run(tuple(items))

    def _thing(self, field: str, depth: int) -> Node:
        token = self._take()
        self._clauses += 1
        if self._clauses > self._max_clauses:
            raise self._fault(
                f"the query has more than {self._max_clauses} parts; shorten it, "
                "or raise max_clauses in the section [search] of the settings",
                token,
            )
        if token.kind == "(":
            return self._group(field, depth, token)
        if token.kind == "field":
            return self._fielded(token, depth)
        if token.kind == "phrase":
            if not _SPOKEN.search(token.text):
                raise self._fault("this phrase holds no word", token)
            return self._value(field, token) or Phrase(token.text, field, token.at)
        assert token.kind == "word", token
        return self._value(field, token) or self._word(field, token)

    def _group(self, field: str, depth: int, opening: _Token) -> Node:
        if depth >= MAX_DEPTH:
            raise self._fault(f"parentheses are nested more than {MAX_DEPTH} deep", opening)
        if self._peek().kind == ")":
            raise self._fault("there is nothing between these parentheses", opening)
        inner = self._either(field, depth + 1)
        if self._take().kind != ")":
            raise self._fault("this parenthesis is never closed", opening)
        # A group stays one: of "(heat-transfer)" any part may match, of "+heat-transfer" all must.
        return Run((Item("", inner),)) if isinstance(inner, Word) else inner

    def _fielded(self, token: _Token, depth: int) -> Node:
        name = _FIELDS.get(token.text)
        if name is None:
            near = difflib.get_close_matches(token.text, _FIELDS, n=1)
            hint = (
                f"did you mean {near[0]}:?"
                if near
                else f"there are {', '.join((*WORD_FIELDS, *FILTER_FIELDS))}"
            )
            raise self._fault(
                f"no field is called {token.text}; {hint} (in quotation marks it is searched as text)", token
            )
        if self._peek().kind not in ("word", "phrase", "("):
            raise self._fault(f"{token.text}: needs a word, a phrase or a parenthesis after it", token)
        return self._thing(name, depth)

    def _value(self, field: str, token: _Token) -> Node | None:
        if field == "date":
            return _dates(token, self._text)
        if field in FILTER_FIELDS:
            return Filter(field, token.text.strip(), token.at)
        return None

    def _word(self, field: str, token: _Token) -> Node:
        if token.text == "*":
            if field:
                raise self._fault(f"{field}: needs at least the beginning of a word before *", token)
            return Everything(token.at)
        stem = token.text.rstrip("*")
        if "*" in stem:
            place = token._replace(at=token.at + stem.index("*"))
            raise self._fault("* stands for the rest of a word, so only at its end", place)
        return Word(stem, field, stem != token.text, token.at)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def _missing(self, token: _Token) -> QueryError:
        if token.kind == "end":
            last = self._tokens[self._next - 1]
            return self._fault(f"{last.text or 'this'} needs something to its right", last)
        if token.kind == ")":
            opened = self._next and self._tokens[self._next - 1].kind in ("AND", "OR")
            if opened:
                return self._fault(f"{self._tokens[self._next - 1].text} needs something to its right",
                                   self._tokens[self._next - 1])  # fmt: skip
            return self._fault("nothing was opened that this closes", token)
        return self._fault(f"{token.text} needs something to its left", token)

    def _fault(self, problem: str, token: _Token) -> QueryError:
        return QueryError(problem, self._text, token.at)


_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$")
OPEN: Final = 9999_12_31


def dates(text: str) -> Dates:
    """The range that a text states: "2001", "2001-05", "2001..2005", "2001.."."""
    return _dates(_Token("word", text, 0), text)


def _dates(token: _Token, text: str) -> Dates:
    low, dots, high = token.text.strip().partition("..")
    if dots:
        first = _date(low, token.at, text)[0] if low else 0
        last = _date(high, token.at + len(low) + 2, text)[1] if high else OPEN
        if first > last:
            raise QueryError("this range of dates ends before it begins", text, token.at)
        return Dates(first, last, token.at)
    return Dates(*_date(low, token.at, text), token.at)


def _date(text: str, at: int, query: str) -> tuple[int, int]:
    """The first and the last day of a year, month or day, as yyyymmdd; a year begins with its day 0."""
    found = _DATE.match(text)
    if found is None:
        raise QueryError(
            "a date is written 2001, 2001-05 or 2001-05-31, and a range of them 2001..2005", query, at
        )
    year, month, day = (int(part) if part else 0 for part in found.groups())
    given = found.lastindex or 1
    if given >= 2 and not 1 <= month <= 12:
        raise QueryError(f"there is no month {month}", query, at)
    if given == 3 and not 1 <= day <= monthrange(year or 4, month)[1]:
        raise QueryError(f"{year:04}-{month:02} has no day {day}", query, at)
    low = year * 10000 + month * 100 + day
    if given == 3:
        return low, low
    return low, (low + 31 if given == 2 else year * 10000 + 1231)
