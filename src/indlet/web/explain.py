"""How one record comes by its score: the model's formula, the numbers in it, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from indlet.errors import QueryError, UnknownRecord
from indlet.service.rank import MODELS
from indlet.service.search.results import Explained, Share
from indlet.web.citation import record_path
from indlet.web.hit_view import item
from indlet.web.i18n import Strings, strings
from indlet.web.portal import Portal, fault
from indlet.web.svg import shares

MOST: Final = 40  # lines of each kind: a prefix may stand for hundreds of terms

# What a term that the record holds adds, and what the model makes of the sum; docs of rank/models.py cite
# the papers.
FORMULAS: Final = {
    "bm25": "w · ln(1 + (N − df + ½) / (df + ½)) · tf · (k₁ + 1) / (tf + k₁ · (1 − b + b · dl / avgdl))",
    "vsm": "(1 + ln w) · ln(N / df) · (1 + ln tf) / (‖d‖ · ‖q‖)",
    "lm-dirichlet": "w · ln(1 + tf / (μ · cf / |C|))",
    "lm-jm": "w · ln(1 + (tf / dl) · (1 − λ) / (λ · cf / |C|))",
}
REMAINDERS: Final = {
    "lm-dirichlet": "|q| · ln(μ / (dl + μ)) + Σ w · ln(cf / |C|)",
    "lm-jm": "Σ w · ln(λ · cf / |C|)",
}
# The symbols in each formula beside tf, df, cf and w, which the table tells for each term.
_SYMBOLS: Final = {
    "bm25": ("N", "dl", "avgdl", "k₁", "b"),
    "vsm": ("N", "‖d‖", "‖q‖"),
    "lm-dirichlet": ("|C|", "dl", "|q|", "μ"),
    "lm-jm": ("|C|", "dl", "λ"),
    "boolean": (),
}
_MEANINGS: Final = {
    "N": "records", "dl": "length", "avgdl": "average", "|C|": "tokens", "‖d‖": "norm", "‖q‖": "query_norm",
    "|q|": "query_size", "k₁": "k1", "b": "b", "μ": "mu", "λ": "lambda",
}  # fmt: skip


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
    symbols: tuple[tuple[str, str, str], ...]  # sign, key of its meaning, value
    lacking: tuple[str, ...]


def story(t: Strings, told: Explained) -> Story:
    numbers = _Numbers(t, told)
    terms = [
        Line(_label(share), _stem(share), share.frequency, share.df, share.cf, numbers.term(share),
             share.contribution)
        for share in sorted(told.shares, key=lambda share: -share.contribution)
    ]  # fmt: skip
    return Story(
        tuple(_bounded(t, terms)),
        tuple(_bounded(t, list(numbers.others()))),
        tuple((sign, _MEANINGS[sign], numbers.symbol(sign)) for sign in _SYMBOLS[told.model]),
        tuple(dict.fromkeys(_label(share) for share in told.missing))[:MOST],
    )


class _Numbers:
    """Writes numbers and formulas in one language."""

    def __init__(self, t: Strings, told: Explained) -> None:
        self.t = t
        self.told = told

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
            "‖q‖": told.outlook[0] or 1.0,
            "|q|": told.outlook[0],
            "k₁": told.parameters.get("k1", 0.0),
            "b": told.parameters.get("b", 0.0),
            "μ": told.parameters.get("mu", 0.0),
            "λ": told.parameters.get("lambda", 0.0),
        }[sign]
        return self(float(value))

    def term(self, share: Share) -> str:
        """The formula of the model for a term that the record holds."""
        n, s = self, self.symbol
        tf, df, cf = n(share.frequency), n(share.df), n(share.cf)
        weight = "" if share.weight == 1.0 else f"{n(share.weight)} · "
        half, one = n(0.5), n(1.0)
        match self.told.model:
            case "bm25":
                return (
                    f"{weight}ln(1 + ({s('N')} − {df} + {half}) / ({df} + {half})) · "
                    f"{tf} · ({s('k₁')} + 1) / "
                    f"({tf} + {s('k₁')} · (1 − {s('b')} + {s('b')} · {s('dl')} / {s('avgdl')}))"
                )
            case "vsm":
                asked = f"({one} + ln {n(share.weight)})" if share.weight >= 1.0 else n(share.weight)
                return f"{asked} · ln({s('N')} / {df}) · (1 + ln {tf}) / ({s('‖d‖')} · {s('‖q‖')})"
            case "lm-dirichlet":
                return f"{weight}ln(1 + {tf} / ({s('μ')} · {cf} / {s('|C|')}))"
            case "lm-jm":
                length = n(float(self.told.length or 1))
                return f"{weight}ln(1 + ({tf} / {length}) · (1 − {s('λ')}) / ({s('λ')} · {cf} / {s('|C|')}))"
            case _:
                return ""

    def others(self) -> Iterator[Line]:
        """What the language models add for every term of the query, whether the record holds it or not."""
        told, n, s = self.told, self, self.symbol
        if told.model not in REMAINDERS:
            return
        if told.model == "lm-dirichlet":
            mu = told.parameters["mu"]
            value = told.outlook[0] * math.log(mu / (told.length + mu))
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
        t = strings(pages.language(request))
        identifier = request.query_params.get("id", "")[:2000]
        via = request.query_params.get("via", "")[:500]
        common: dict[str, Any] = {"here": "search", "state": state, "identifier": identifier, "via": via}
        if not state.q or not identifier:
            return RedirectResponse(record_path(identifier, via) if identifier else state.link(), 303)
        try:
            hit = portal.library.record(identifier, via)
            told = portal.library.explain(state.q, identifier, source=via, model=state.model)
        except UnknownRecord:
            told_so = t("record.missing_text", identifier=identifier)
            action = (t("error.start"), state.link())
            return pages.message(request, 404, t("record.missing"), told_so, action=action)
        except QueryError as e:
            return pages.render(request, "explain.html", 400, fault=fault(e, t), **common)
        found = story(t, told)
        numbers: Callable[[float], str] = _Numbers(t, told)
        return pages.render(
            request,
            "explain.html",
            fault=None,
            item=item(hit),
            told=told,
            story=found,
            formula=FORMULAS.get(told.model, ""),
            remainder=REMAINDERS.get(told.model, ""),
            number=numbers,
            bar=shares([(line.label, line.value) for line in found.terms]),
            models=[(name, state.explain(identifier, via, model=name)) for name in MODELS],
            back=state.link(page=state.page),
            **common,
        )
