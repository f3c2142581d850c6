"""How one record comes by its score: the model's formula, the numbers in it, and what they add up to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from indlet.errors import QueryError, UnknownRecord
from indlet.model import JsonObject
from indlet.service.search.rank import MODELS
from indlet.service.search.results import Explained, Share
from indlet.web.citation import record_path
from indlet.web.hit_view import item
from indlet.web.i18n import Strings
from indlet.web.portal import Portal, fault
from indlet.web.svg import shares
from indlet.web.text_origin import text_origin

MOST: Final = 40  # lines of each kind: a prefix may stand for hundreds of terms

# The signs in formulas (`rank.Model.formula`) that have one value for a record and a query; their meanings.
_MEANINGS: Final = {
    "N": "records", "dl": "length", "avgdl": "average", "|C|": "tokens", "‖d‖": "norm", "‖q‖": "query_norm",
    "|q|": "query_size",
}  # fmt: skip
_SIGN: Final = re.compile(r"‖\w‖|\|\w\||½|π|\w+[₁]?")


@dataclass(frozen=True, slots=True)
class Line:
    """A part of the score, with the formula that made it, numbers put in."""

    label: str
    stem: str  # what the word became in the index, where it became another
    frequency: int
    df: int
    cf: int
    worked: str
    value: float


@dataclass(frozen=True, slots=True)
class Story:
    """An explanation as a page tells it: the values of all lines add up to the score."""

    terms: tuple[Line, ...]
    others: tuple[Line, ...]
    symbols: tuple[tuple[str, str], ...]  # a sign with its value, and what it stands for
    lacking: tuple[str, ...]
    held: int  # words and forms of the query that the record has
    asked: int


def story(t: Strings, told: Explained) -> Story:
    numbers = _Numbers(t, told)
    terms = [
        Line(_label(share), _stem(share), share.frequency, share.df, share.cf, numbers.term(share),
             share.contribution)
        for share in sorted(told.shares, key=lambda share: -share.contribution)
    ]  # fmt: skip
    held = set(map(_label, told.shares))
    # A word that the record has in one of its forms is not missing for want of the others.
    lacking = tuple(dict.fromkeys(name for name in map(_label, told.missing) if name not in held))
    return Story(
        tuple(_bounded(t, terms)),
        tuple(_bounded(t, list(numbers.others()))),
        tuple(numbers.symbols()),
        lacking[:MOST],
        len(told.shares),
        len(told.shares) + len(lacking),
    )


class _Numbers:
    """Writes numbers and formulas in one language."""

    def __init__(self, t: Strings, told: Explained) -> None:
        self.t = t
        self.told = told
        self.model = MODELS[told.model]

    def __call__(self, value: float) -> str:
        """A number as short as it can be said in four places."""
        shown = self.t.decimal(value, 4)
        point = self.t.table["format.point"]
        if point in shown:
            shown = shown.rstrip("0").rstrip(point)
        return shown

    def symbol(self, sign: str) -> str:
        told = self.told
        value = {
            "N": told.records,
            "dl": told.length,
            "avgdl": told.average_length,
            "|C|": told.tokens,
            "‖d‖": told.norm or 1.0,
            "‖q‖": told.query_constants[0] or 1.0,
            "|q|": told.query_constants[0],
            **{own: told.parameters[name] for own, name in self.model.signs.items()},
        }[sign]
        return self(float(value))

    def symbols(self) -> Iterator[tuple[str, str]]:
        """The signs in the model's formulas beside tf, df, cf and w, which the table tells for each term."""
        model, t = self.model, self.t
        formulas = " ".join((model.formula, model.remainder, *model.derived.values()))
        for sign in dict.fromkeys(_SIGN.findall(formulas)):
            if sign in model.signs:
                name = model.signs[sign]
                yield f"{sign} = {self.symbol(sign)}", t.known(f"explain.sign.{name}", name)
            elif sign in _MEANINGS:
                yield f"{sign} = {self.symbol(sign)}", t(f"explain.sign.{_MEANINGS[sign]}")
        for sign, definition in model.derived.items():
            yield f"{sign} = {definition}", t("explain.derived")

    def term(self, share: Share) -> str:
        """The formula of the model for a term that the record holds, numbers put in."""
        n, told = self, self.told
        values = {
            "tf": share.frequency, "df": share.df, "cf": share.cf, "w": share.weight, "½": 0.5, "π": math.pi,
            "dl": told.length or 1 if self.model.finishing == "shifted" else told.length, **share.derived,
        }  # fmt: skip
        formula = self.model.formula.removeprefix("w · ") if share.weight == 1.0 else self.model.formula

        def put(match: re.Match[str]) -> str:
            sign = match[0]
            if sign in values:
                return n(float(values[sign]))
            return self.symbol(sign) if sign in _MEANINGS or sign in self.model.signs else sign

        return _SIGN.sub(put, formula)

    def others(self) -> Iterator[Line]:
        """What the language models add for every term of the query, whether the record holds it or not."""
        told, n, s = self.told, self, self.symbol
        if not self.model.remainder:
            return
        if told.model == "lm-dirichlet":
            mu = told.parameters["mu"]
            value = told.query_constants[0] * math.log(mu / (told.length + mu))
            worked = f"{s('|q|')} · ln({s('μ')} / ({s('dl')} + {s('μ')}))"
            yield Line(self.t("explain.discount"), "", 0, 0, 0, worked, value)
        factor = told.parameters.get("lambda", 1.0)
        for share in (*told.shares, *told.missing):
            weight = "" if share.weight == 1.0 else f"{n(share.weight)} · "
            before = f"{s('λ')} · " if told.model == "lm-jm" else ""
            worked = f"{weight}ln({before}{n(share.cf)} / {s('|C|')})"
            value = share.weight * math.log(factor * (share.cf / max(told.tokens, 1)))
            yield Line(_label(share), _stem(share), 0, share.df, share.cf, worked, value)


def _bounded(t: Strings, lines: list[Line]) -> Iterator[Line]:
    """The first lines, and the others as one."""
    yield from lines[:MOST]
    if rest := lines[MOST:]:
        total = math.fsum(line.value for line in rest)
        yield Line(t("explain.more", n=len(rest)), "", 0, 0, 0, "", total)


def _label(share: Share) -> str:
    word = share.words[0] if share.words else share.term
    return f"{share.field}:{word}" if share.field and not word.startswith(f"{share.field}:") else word


def _stem(share: Share) -> str:
    return share.term if share.words and share.term != share.words[0].casefold() else ""


class Explaining:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def page(self, request: Request) -> Response:
        portal, pages = self.portal, self.portal.pages
        state = portal.state(request)
        t = pages.strings(request)
        identifier = request.query_params.get("id", "")[:2000]
        via = request.query_params.get("via", "")[:500]
        common: JsonObject = {"here": "search", "state": state, "identifier": identifier, "via": via}
        if not state.q or not identifier:
            return RedirectResponse(record_path(identifier, via) if identifier else state.link(), 303)
        try:
            hit = portal.library.record(identifier, via)
            told = portal.library.explain(
                state.q, identifier, source=via, model=state.model, filters=state.chosen()
            )
        except UnknownRecord:
            told_so = t("record.missing_text", identifier=identifier)
            action = (t("error.start"), state.link())
            return pages.message(request, 404, t("record.missing"), told_so, action=action)
        except QueryError as e:
            return pages.render(request, "explain.html", 400, fault=fault(e, t), **common)
        found = story(t, told)
        with portal.store.read() as view:
            stored = view.by_id([hit.id], parts=()).get(hit.id)
            words = text_origin(view, stored).tell(t) if stored else ("", "")
        numbers: Callable[[float], str] = _Numbers(t, told)
        return pages.render(
            request,
            "explain.html",
            fault=None,
            item=item(hit),
            told=told,
            words=words,
            story=found,
            formula=MODELS[told.model].formula,
            remainder=MODELS[told.model].remainder,
            number=numbers,
            bar=shares([(line.label, line.value) for line in found.terms]),
            models=[(name, state.explain(identifier, via, model=name)) for name in MODELS],
            back=state.link(page=state.page),
            **common,
        )
