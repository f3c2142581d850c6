"""What a half-typed query may become: words, people and titles, each with what the query then finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from indlet.errors import QueryError
from indlet.model import JsonObject
from indlet.service.index import Searcher
from indlet.service.index import expression as e
from indlet.service.index.values import title_beginning
from indlet.service.search.browse import order_key
from indlet.service.search.lexer import FIELDS, WORD_FIELDS
from indlet.service.search.suggest import Speller
from indlet.store import Store
from indlet.text.tokens import words

_PEOPLE: Final = 3  # people, and titles, that are proposed at most
_COUNTED: Final = 16  # proposals whose records are counted
_SCANNED: Final = 200  # names that are looked at
_SHORTEST: Final = 3  # letters of a name or title
_LONGEST: Final = 500  # characters of a query that is completed: to find its last word takes their square
_QUOTES: Final = '"“”„«»'
_PLAIN: Final = re.compile(r"[\w\s.,;:'’&/-]+")
_IN_QUOTES: Final = re.compile(rf"(.*?)([+-]?)(?:(\w+):)?[{_QUOTES}]([^{_QUOTES}]*)", re.DOTALL)
_LAST: Final = re.compile(r"(.*?)([+-]?)(?:(\w+):)?([^\s:(+\-\"“„]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Completion:
    """`word` is what is proposed, `query` the whole query with it, `records` how many have all its words."""

    word: str
    query: str
    kind: str  # "word", "person" or "title"
    records: int

    def to_json(self) -> JsonObject:
        return {"word": self.word, "query": self.query, "kind": self.kind, "records": self.records}


class _Typed(NamedTuple):
    """A query that is being typed: what stays, and the last word or phrase, with its field."""

    head: str  # up to that word, its field and sign included
    before: str  # up to its field
    field: str | None  # None where a field is named that has no words
    text: str
    whole: str  # all of it, if there is nothing but words


def typed(text: str) -> _Typed:
    quoted = sum(text.count(quote) for quote in _QUOTES) % 2 == 1
    match = (_IN_QUOTES if quoted else _LAST).fullmatch(text)
    assert match is not None  # both end in what may be empty
    before, sign, name, last = match.groups()
    field = FIELDS.get(name.casefold(), "") if name else ""
    plain = not name and not quoted and _PLAIN.fullmatch(text) and text == text.lstrip()
    return _Typed(
        text[: len(text) - len(last)],
        before + (sign or ""),
        field if field in ("", *WORD_FIELDS) else None,
        last,
        text if plain else "",
    )


@dataclass(frozen=True, slots=True)
class Completer:
    """Completions from one snapshot; `found` counts the records with all words of a query."""

    searcher: Searcher
    store: Store
    speller: Speller
    languages: tuple[str, ...]
    found: Callable[[str], int]

    def completions(self, text: str, limit: int) -> list[Completion]:
        if len(text) > _LONGEST or not text.strip():
            return []
        asked = typed(text)
        if asked.field is None:
            return []
        people = titles = list[Completion]()
        if asked.field in ("", "creator"):
            people = self._people(asked)
        if asked.field in ("", "title"):
            titles = self._titles(asked)
        few = [*people[:_PEOPLE], *titles[:_PEOPLE]][: max(limit - 1, 0)]
        own = self._words(asked, limit - len(few)) if not text[-1:].isspace() else []
        return [*own, *few][:limit]

    def _words(self, asked: _Typed, limit: int) -> list[Completion]:
        beginnings = self.speller.beginning(asked.text, self.languages, 3 * limit, asked.field or "")
        found = self._counted(
            (word, asked.head + word + _closing(asked.head), "word") for word, _ in beginnings
        )
        return sorted(found, key=lambda one: -one.records)[:limit]

    def _people(self, asked: _Typed) -> list[Completion]:
        if asked.field == "creator":
            return self._named(asked.text, asked.before)
        found = self._named(asked.whole, "") if asked.whole else []
        if not found and " " in asked.whole.strip():
            *_, last = asked.whole.split()
            found = self._named(last, asked.whole[: asked.whole.rindex(last)] + "+")
        return found

    def _named(self, name: str, before: str) -> list[Completion]:
        """People whose names begin so, in either order of its parts."""
        parts = words(order_key(name))
        if not parts or sum(map(len, parts)) < _SHORTEST:
            return []
        labels = dict.fromkeys(self._with_family(parts[0], parts[1:]))
        if len(parts) > 1:
            labels |= dict.fromkeys(self._with_family(parts[-1], parts[:-1]))
        counted = self._counted((label, f'{before}creator:"{_bare(label)}"', "person") for label in labels)
        return sorted(counted, key=lambda one: -one.records)

    def _with_family(self, family: str, given: list[str]) -> Iterator[str]:
        for value in self.searcher.listed("creator", family, _SCANNED):
            if not value.key.startswith(family):
                return
            rest = words(value.key)[1:]
            if all(any(own.startswith(part) for own in rest) for part in given):
                yield value.label

    def _titles(self, asked: _Typed) -> list[Completion]:
        text = asked.text if asked.field == "title" else asked.whole
        if len(text.strip()) <= _SHORTEST:
            return []
        terms = [term for term, _, _ in self.searcher.terms(title_beginning(text), _PEOPLE)]
        ids = [hit.id for term in terms for hit in self.searcher.search(e.Term(term), limit=1).hits]
        with self.store.read() as view:
            records = view.by_id(ids, parts=("metadata",))
        titles = dict.fromkeys(
            title
            for number in ids
            if number in records
            for title in records[number].record.metadata.get("title", ())[:1]
        )
        before = asked.before if asked.field == "title" else ""
        return self._counted((title, f'{before}title:"{_bare(title)}"', "title") for title in titles)

    def _counted(self, proposed: Iterator[tuple[str, str, str]]) -> list[Completion]:
        out = []
        for word, query, kind in list(proposed)[:_COUNTED]:
            try:
                records = self.found(query + ")" * max(query.count("(") - query.count(")"), 0))
            except QueryError:
                continue  # half of a query, which nobody can ask yet
            if records:
                out.append(Completion(word, query, kind, records))
        return out


def _closing(head: str) -> str:
    return '"' if sum(head.count(quote) for quote in _QUOTES) % 2 else ""


def _bare(value: str) -> str:
    """A value as it may stand in quotation marks."""
    return " ".join(re.sub(rf"[{_QUOTES}\\]", " ", value[:300]).split())
