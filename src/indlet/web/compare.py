"""One query under several models, side by side: what moves, and how far the rankings agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from indlet.errors import QueryError
from indlet.model import JsonObject
from indlet.service.search.rank import MODELS
from indlet.web.hit_view import item
from indlet.web.portal import Portal, fault
from indlet.web.svg import movements

USUAL: Final = ("bm25", "vsm", "lm-dirichlet")
DEPTH: Final = 10
# What the style sheet gives a ranking's head and its rows, in rem.
_HEAD, _ROW, _CARD = 6.25, 5.0, 4.5


class Comparing:
    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def compare(self, request: Request) -> Response:
        portal = self.portal
        # The comparison is by relevance, from the top.
        state = replace(portal.state(request), page=1, sort="score")
        asked = [m for m in request.query_params.getlist("models") if m in MODELS]
        chosen = tuple(dict.fromkeys(asked)) or USUAL
        common: JsonObject = {"here": "compare", "state": state, "models": list(MODELS), "chosen": chosen}
        if not state.q and not state.filtered:
            return portal.pages.render(request, "compare.html", fault=None, rankings=[], **common)
        t = portal.pages.strings(request)
        try:
            found = portal.library.compare(state.q or "*", models=chosen, limit=DEPTH, filters=state.chosen())
        except QueryError as e:
            return portal.pages.render(request, "compare.html", 400, fault=fault(e, t), rankings=[], **common)
        # Numbers of this page: those of the store would tell of records that are not shown.
        numbers = {row.hit.id: str(number) for number, row in enumerate(found.rows)}
        orders = [[numbers[hit.id] for hit in result.hits] for result in found.results]
        rankings: list[JsonObject] = []
        for i, result in enumerate(found.results):
            others = {name for j, order in enumerate(orders) if j != i for name in order}
            before = {name: place for place, name in enumerate(orders[i - 1])} if i else {}
            items = []
            for place, hit in enumerate(result.hits):
                own = numbers[hit.id]
                moved = before[own] - place if own in before else 0
                items.append(
                    {
                        "href": (one := item(hit)).href,
                        "identifier": own,
                        "title": one.title,
                        "explain": state.explain(hit.identifier, one.source, model=result.model)
                        if state.q
                        else "",
                        "score": t("compare.score", score=t.decimal(hit.score, 3)),
                        "change": f"{'↑' if moved > 0 else '↓'} {abs(moved)}" if moved else "",
                        "alone": len(orders) > 1 and own not in others,
                    }
                )
            following = orders[i + 1] if i + 1 < len(orders) else None
            lines = None
            if following is not None:
                lines = movements(orders[i], following, _ROW * 16, (_HEAD + _CARD / 2) * 16)
            rankings.append({"model": result.model, "items": items, "moves": lines})
        names = [t.known(f"model.{model}.name", model) for model in chosen]
        pairs = [
            {
                "label": f"{names[i]} – {names[j]}",
                "common": t("format.percent", value=t.decimal(100 * found.overlap[i][j], 0)),
                "rbo": t.decimal(rank_biased_overlap(orders[i], orders[j]), 2),
            }
            for i in range(len(names))
            for j in range(i + 1, len(names))
        ]
        rows = max((len(order) for order in orders), default=1) or 1
        return portal.pages.render(
            request, "compare.html", fault=None, rankings=rankings, pairs=pairs, depth=DEPTH,
            height=_HEAD + rows * _ROW, **common,
        )  # fmt: skip


def rank_biased_overlap(one: Sequence[str], two: Sequence[str], p: float = 0.9) -> float:
    """How alike two rankings are, the top counting most: 0 to 1, extrapolated (Webber, Moffat, Zobel 2010).

    RBO = (X_k / k) p^k + (1 - p)/p Σ_{d=1..k} (X_d / d) p^d, X_d being the overlap of the first d.
    """
    depth = max(len(one), len(two))
    if depth == 0:
        return 1.0
    total, common = 0.0, 0
    for d in range(1, depth + 1):
        common = len(set(one[:d]) & set(two[:d]))
        total += common / d * p**d
    return common / depth * p**depth + (1 - p) / p * total
