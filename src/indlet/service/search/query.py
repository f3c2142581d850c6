"""The query language: from what a person types to a tree. docs/query.md is its grammar in words.

    query  = all ("OR" all)*
    all    = run ("AND" run)*
    run    = item+
    item   = ["NOT" | "+" | "-"] thing
    thing  = word | prefix"*" | '"' phrase '"' | field ":" thing | "(" query ")" | "*"

Nothing here knows an index or an analysis: `interpret.py` gives the tree its meaning.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indlet.errors import QueryError
from indlet.service.search.lexer import (
    FIELDS,
    FILTER_FIELDS,
    KEY_FIELDS,
    SPOKEN,
    WORD_FIELDS,
    Token,
    clean,
    date_range,
    tokenise,
)
from indlet.service.search.notes import Note

MAX_LENGTH: Final = 20_000  # characters: a pasted abstract fits, a pasted book does not
MAX_DEPTH: Final = 40  # nested parentheses
MAX_CLAUSES: Final = 1024
# Costly parts: a short prefix stands for thousands of terms (70 ms each among 400,000), a phrase is looked up
# place by place.
MAX_PREFIXES: Final = 16
MAX_PHRASES: Final = 64


@dataclass(frozen=True, slots=True)
class Word:
    """A word as typed; `field` is empty for the whole text. `at` counts characters from 0."""

    text: str
    field: str = ""
    prefix: bool = False
    at: int = 0


@dataclass(frozen=True, slots=True)
class QueryPhrase:
    text: str
    field: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class QueryFilter:
    """A condition that selects and does not score: source, set, type or language."""

    field: str
    value: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class IdentifierWord:
    """A record by one of its identifiers, `doi:10.1000/182`; in the field `key` its key as it stands."""

    field: str
    value: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class QueryDates:
    """Dates from `low` to `high`, both as yyyymmdd and inclusive; 0 and 99991231 are open ends."""

    low: int
    high: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class QueryEverything:
    at: int = 0


@dataclass(frozen=True, slots=True)
class QueryItem:
    """One member of a run: `sign` is "" (wanted), "+" (required) or "-" (excluded)."""

    sign: str
    node: Node


@dataclass(frozen=True, slots=True)
class QueryRun:
    """Things side by side: any of the wanted, all of the required, none of the excluded."""

    items: tuple[QueryItem, ...]


@dataclass(frozen=True, slots=True)
class All:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    nodes: tuple[Node, ...]


Node = (
    Word | QueryPhrase | QueryFilter | IdentifierWord | QueryDates | QueryEverything | QueryRun | All | AnyOf
)


@dataclass(frozen=True, slots=True)
class Query:
    """What was typed, what it says, and what had to be said about reading it."""

    text: str
    tree: Node
    notes: tuple[str, ...] = ()


def parse(text: str, max_clauses: int = MAX_CLAUSES) -> Query:
    """The query that a text states; QueryError points at the place of a fault."""
    if len(text) > MAX_LENGTH:
        raise QueryError(Note("too_long", characters=len(text), most=MAX_LENGTH), clean(text[:60]), 0)
    parser = _Parser(clean(text), max_clauses)
    tree = parser.query()
    return Query(text, tree, tuple(parser.notes))


def plain(text: str, max_clauses: int = MAX_CLAUSES) -> Query:
    """A query of the words in a text, whatever signs it holds: for topics that were written for people."""
    words = tuple(
        QueryItem("", Word(found.group(), at=found.start()))
        for found in re.finditer(r"\S+", clean(text[:MAX_LENGTH]))
        if SPOKEN.search(found.group())
    )
    if not words:
        raise QueryError(Note("no_word"), clean(text[:60]), 0)
    return Query(text, QueryRun(words[:max_clauses]))


def words_of(node: Node) -> Iterator[Word | QueryPhrase]:
    """The words and phrases that a tree wants found, in order; excluded ones are left out."""
    match node:
        case Word() | QueryPhrase():
            yield node
        case QueryRun(items):
            for item in items:
                if item.sign != "-":
                    yield from words_of(item.node)
        case All(nodes) | AnyOf(nodes):
            for part in nodes:
                yield from words_of(part)
        case _:
            pass


class _Parser:
    def __init__(self, text: str, max_clauses: int) -> None:
        self.notes: list[str] = []
        self._text = text
        self._tokens = list(tokenise(text, self.notes))
        self._next = 0
        self._clauses = self._prefixes = self._phrases = 0
        self._max_clauses = max_clauses

    def query(self) -> Node:
        if self._peek().kind == "end":
            raise QueryError(Note("no_word_but_all" if self._text.strip() else "empty"), self._text, 0)
        tree = self._either("", 0)
        token = self._peek()
        if token.kind == ")":
            raise self._fault(Note("unopened"), token)
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
        items: list[QueryItem] = []
        while (token := self._peek()).kind not in ("AND", "OR", ")", "end"):
            sign = ""
            if token.kind in ("NOT", "sign"):
                self._take()
                sign = "+" if token.text == "+" else "-"
                if self._peek().kind in ("AND", "OR", "NOT", "sign", ")", "end"):
                    raise self._fault(Note("right", word=token.text), token)
            items.append(QueryItem(sign, self._thing(field, depth)))
        if not items:
            raise self._missing(token)
        if len(items) == 1 and not items[0].sign:
            return items[0].node
        return QueryRun(tuple(items))

    def _thing(self, field: str, depth: int) -> Node:
        token = self._take()
        self._clauses += 1
        if self._clauses > self._max_clauses:
            raise self._fault(Note("too_many_parts", most=str(self._max_clauses)), token)
        if token.kind == "(":
            return self._group(field, depth, token)
        if token.kind == "field":
            return self._fielded(token, depth)
        if token.kind == "phrase":
            if not SPOKEN.search(token.text):
                raise self._fault(Note("empty_phrase"), token)
            return self._value(field, token) or self._phrase(field, token)
        assert token.kind == "word", token
        return self._value(field, token) or self._word(field, token)

    def _group(self, field: str, depth: int, opening: Token) -> Node:
        if depth >= MAX_DEPTH:
            raise self._fault(Note("too_deep", most=MAX_DEPTH), opening)
        if self._peek().kind == ")":
            raise self._fault(Note("empty_group"), opening)
        inner = self._either(field, depth + 1)
        if self._take().kind != ")":
            raise self._fault(Note("unclosed"), opening)
        # A group stays one: of "(heat-transfer)" any part may match, of "+heat-transfer" all must.
        return QueryRun((QueryItem("", inner),)) if isinstance(inner, Word) else inner

    def _fielded(self, token: Token, depth: int) -> Node:
        name = FIELDS.get(token.text)
        if name is None:
            near = difflib.get_close_matches(token.text, FIELDS, n=1)
            if near:
                raise self._fault(Note("no_field_but", field=token.text, near=near[0]), token)
            known = ", ".join((*WORD_FIELDS, *FILTER_FIELDS, *KEY_FIELDS))
            raise self._fault(Note("no_field", field=token.text, known=known), token)
        if self._peek().kind not in ("word", "phrase", "("):
            raise self._fault(Note("field_alone", field=token.text), token)
        return self._thing(name, depth)

    def _value(self, field: str, token: Token) -> Node | None:
        if field == "date":
            return QueryDates(*date_range(token.text, self._text, token.at), token.at)
        if field in FILTER_FIELDS:
            return QueryFilter(field, token.text.strip(), token.at)
        if field in KEY_FIELDS:
            return IdentifierWord(field, token.text.strip(), token.at)
        return None

    def _phrase(self, field: str, token: Token) -> Node:
        self._phrases += 1
        if self._phrases > MAX_PHRASES:
            raise self._fault(Note("too_many_phrases", most=MAX_PHRASES), token)
        return QueryPhrase(token.text, field, token.at)

    def _word(self, field: str, token: Token) -> Node:
        if token.text == "*":
            if field:
                raise self._fault(Note("star_alone", field=field), token)
            return QueryEverything(token.at)
        stem = token.text.rstrip("*")
        if "*" in stem:
            place = token._replace(at=token.at + stem.index("*"))
            raise self._fault(Note("star_within"), place)
        self._prefixes += stem != token.text
        if self._prefixes > MAX_PREFIXES:
            raise self._fault(Note("too_many_prefixes", most=MAX_PREFIXES), token)
        return Word(stem, field, stem != token.text, token.at)

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def _missing(self, token: Token) -> QueryError:
        if token.kind == "end":
            last = self._tokens[self._next - 1]
            return self._fault(Note("right", word=last.text) if last.text else Note("right_of_this"), last)
        if token.kind == ")":
            opened = self._next and self._tokens[self._next - 1].kind in ("AND", "OR")
            if opened:
                last = self._tokens[self._next - 1]
                return self._fault(Note("right", word=last.text), last)
            return self._fault(Note("unopened"), token)
        return self._fault(Note("left", word=token.text), token)

    def _fault(self, problem: Note, token: Token) -> QueryError:
        return QueryError(problem, self._text, token.at)
