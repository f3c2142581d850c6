"""The metadata of many records analysed at once: what `Analyzer` gives, term for term, but sooner.

The texts of a batch are cut into tokens by a compiled kernel, which numbers them in a table that lasts.
Python is asked once for each token and language what term it becomes; after that a record is numbers, and
goes to the index as such. What the kernels do not do (soft hyphens, huge records and tokens, positions,
pruning) the analyser does as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import not_
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

from indlet.kernels import dates as plain_dates
from indlet.kernels.postings import LOST
from indlet.memo import remembered
from indlet.model import Stored
from indlet.service.index.dates import date_number
from indlet.service.index.described import described
from indlet.service.index.embedded.batch import noted
from indlet.service.index.embedded.languages import (
    detected,
    first_stated,
    first_told,
    modelled,
    told_by,
    values_of,
)
from indlet.service.index.embedded.postings import COLUMNS, Facets, Words
from indlet.service.index.embedded.record_keys import RecordKeys, sliced
from indlet.service.index.embedded.token_table import NAMES, CutTokens, TokenTable
from indlet.text import FIELDS, LANGUAGES, SEARCHED, Analyzer, searched

# The columns of what is searched where a record has no vector, and of all, a bit for each.
_SEARCHED: Final = sum(1 << COLUMNS.index(name) for name in SEARCHED)
_ALL: Final = (1 << len(COLUMNS)) - 1

Numbers = NDArray[np.int64]


class Analyses:
    """The analyses of one analyser, for one thread. Keep it: it is fast because it remembers."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._keys = RecordKeys(NAMES)

    @cached_property
    def _table(self) -> TokenTable:
        return TokenTable(self.analyzer)

    def one_by_one(self, changes: Sequence[Stored]) -> list[Stored]:
        """Changes with their vectors and the terms of their fields, which are made here and kept in the index
        alone."""
        return described(self.analyzer, changes)

    def together(self, changes: Sequence[Stored]) -> tuple[list[Stored], Words]:
        """The same for many, most of it as words."""
        policy = self.analyzer.policy
        if policy.positions or policy.prune is not None or policy.lead is not None:
            changes = [self.analyzer.completed(stored) for stored in changes]
        table = self._table
        whole = b"".join([*(stored.metadata for stored in changes), bytes(16)])
        tokens = table.cut(whole, [len(stored.metadata) for stored in changes])
        own = [int(stored.vector is None and not stored.deleted) for stored in changes]
        bounds = tokens.spans[:, :4].T.tolist()
        stated, types = map(sliced, (whole, whole), bounds[::2], bounds[1::2])
        languages = self._languages(changes, own, tokens, stated)
        fields = self._keys.vectors(
            [stored.identifier for stored in changes], whole, tokens.whole, tokens.whole_until,
            list(map(first_stated, stated)),
        )  # fmt: skip
        facets = Facets(
            list(map(_joined, types)),
            [
                _joined(said) or (language if mine else stored.language)
                for said, language, mine, stored in zip(stated, languages, own, changes, strict=True)
            ],
            _dates(whole, tokens.spans[:, 4:]),
        )
        by_language: dict[str, list[int]] = {}
        out = list(changes)
        for number, (language, odd) in enumerate(zip(languages, tokens.odd.tolist(), strict=True)):
            if not odd:
                by_language.setdefault(language if language in LANGUAGES else "", []).append(number)
                continue
            own[number] = 0
            out[number] = stored = self.one_by_one([changes[number]])[0]
            fields[number] = stored.fields
            facets.types[number], facets.languages[number], facets.dates[number] = noted(stored)
        terms = np.full(tokens.ids.size, LOST, np.int32)
        for language, numbers in by_language.items():
            table.translate(language, tokens, np.array(numbers, np.int64), terms)
        return out, Words(
            terms, tokens.until, tokens.codes, tokens.firsts, table.runs, np.array(own, np.uint8), _SEARCHED,
            table.names(), facets, fields,
        )  # fmt: skip

    def _languages(
        self,
        changes: Sequence[Stored],
        own: Sequence[int],
        tokens: CutTokens,
        stated: Sequence[bytes],
    ) -> list[str]:
        """The language by whose rules each record is treated. One that has none, and so asks for that of all
        its fields, becomes odd. `stated`: the languages in the metadata, as JSON.
        """
        policy, every = self.analyzer.policy, all(own)
        known = [""] * len(own)
        if not every:
            known = ["" if mine else stored.language for stored, mine in zip(changes, own, strict=True)]
        if policy.language != "auto" or all(known):
            return [self.analyzer.rules_for(language) for language in known]
        told = list(map(first_told, stated))
        if not every:
            told = [one if mine else told_by(span) for one, span, mine in zip(told, stated, own, strict=True)]
        said, numbers, sure = zip(*told, strict=True)
        asked = ~np.array(sure)
        if every:
            found = self._detected(changes, tokens, said, numbers, asked, 1)
        else:
            asked &= np.fromiter(map(not_, known), np.bool_, len(known))
            kinds = {
                mine: self._detected(changes, tokens, said, numbers, asked & (np.array(own) == mine), mine)
                for mine in set(own)
            }
            found = [kinds[mine][number] for number, mine in enumerate(own)]
        if any(sure):
            for number in np.flatnonzero(sure).tolist():
                found[number] = said[number]
        default = policy.default_language
        out = [a or b or c or default for a, b, c in zip(known, found, said, strict=True)]
        if "" in out:
            for number, language in enumerate(out):
                if own[number] and not language:
                    tokens.odd[number] = 1
        return out

    def _detected(
        self,
        changes: Sequence[Stored],
        tokens: CutTokens,
        stated: Sequence[str],
        numbers: Sequence[int],
        asked: NDArray[np.bool_],
        own: int,
    ) -> list[str]:
        """The languages of the records that are asked for: of what is searched of them, or of all fields.
        `stated` and `numbers`: see `Told`.
        """
        fields, mask = (SEARCHED, _SEARCHED) if own else (FIELDS, _ALL)
        judged, long = self._table.judged(tokens, mask, numbers)
        out = judged.answers
        unsure = np.flatnonzero(judged.asks & asked & ~long).tolist()
        texts = [_text(changes[number], fields) for number in unsure]
        for number, language in zip(unsure, modelled(texts, unsure, judged), strict=True):
            out[number] = language
        for number in np.flatnonzero(long & asked).tolist():
            out[number] = detected(_text(changes[number], fields), stated[number])
        return out


def _text(stored: Stored, fields: Sequence[str]) -> str:
    return searched(orjson.loads(stored.metadata or b"{}"), fields)


@remembered(1 << 14)
def _joined(span: bytes) -> str:
    return "\0".join(values_of(span))


def _dates(text: bytes, spans: Numbers) -> list[int]:
    """The dates of records, which stand in JSON."""
    begins, ends = spans.T.copy()
    out = np.empty(begins.size, np.int64)
    plain_dates.numbers(np.frombuffer(text, np.uint8), begins, ends, out)
    for number in np.flatnonzero(out == plain_dates.ASK).tolist():
        out[number] = _date(text[begins[number] : ends[number]])
    dates: list[int] = out.tolist()
    return dates


@remembered(1 << 16)
def _date(span: bytes) -> int:
    return date_number({"date": orjson.loads(b"[%b]" % span)})
