"""What a source and the nodes beyond it decided about duplicates: taken after its records."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import orjson

from indlet import datestamps as dates
from indlet.errors import BadResponse
from indlet.exchange.duplicates import decisions
from indlet.net.client import NoAnswer
from indlet.oai.names import DECISIONS_PATH, FT_PATH
from indlet.service.harvest.mesh import origin_key

if TYPE_CHECKING:
    from indlet.model import JsonObject
    from indlet.service.harvest.run import LessonRequest

BYTES: Final = 16 << 20
_EACH: Final = 640  # bytes of one decision's texts: so all that are kept, given out, are less than BYTES
_NODE: Final = re.compile(r"https?://[!-~]{1,500}")
_ID: Final = re.compile(r"[!-~]{0,500}")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def learn(asked: LessonRequest) -> tuple[JsonObject, str]:
    """Take what a source decided: what to ask with next time, what went wrong.

    Decisions of this node's own, coming back, are left alone.
    """
    store, known = asked.store, asked.known
    with store.read() as view:
        ours = {asked.own, decisions.own_id(view)} - {""}
    try:
        url = asked.url.removesuffix(FT_PATH) + DECISIONS_PATH
        answer = asked.fetcher.get(url, BYTES, "application/json", known)
        if answer.status == 304:
            return dict(known), ""
        if answer.trouble is not None:
            raise answer.trouble
        told = [(pair, replace(made, via=asked.source)) for pair, made in read(answer.body, ours, asked.now)]
    except NoAnswer as e:
        # A node that does not exchange decisions has no such address.
        return {}, "" if e.failed.trouble == "fatal" else str(e)
    except BadResponse as e:
        return {}, str(e)
    decisions.take(store, told)
    return ({"If-None-Match": answer.etag} if answer.etag else {}), ""


def read(
    body: bytes, own: Collection[str], now: datetime
) -> Iterator[tuple[decisions.Pair, decisions.PairDecision]]:
    """The decisions that can be used. One that is dated ahead of time could never be taken back.

    `own`: the key and the id of this node. A node that gives no id is told by its key.
    """
    latest = dates.write(now + timedelta(days=1), True)
    try:
        told = orjson.loads(body)["decisions"]
        for one in told[: decisions.KEPT]:
            first, second = one["records"]
            made = decisions.PairDecision(
                one["decision"], one["at"], _UNSEEN.sub(" ", one["by"])[:200], one["node"], one["revision"],
                one.get("node_id", ""),
            )  # fmt: skip
            named = [name for name in (first, second) if isinstance(name, str) and not _UNSEEN.search(name)]
            usable = len(named) == 2 and all(named)
            usable = usable and first != second and made.decision in decisions.CHOICES
            usable = usable and _MOMENT.fullmatch(made.at) is not None and made.at <= latest
            usable = usable and _NODE.fullmatch(made.node) is not None
            usable = usable and type(made.revision) is int and 0 <= made.revision < 1 << 31
            usable = usable and _ID.fullmatch(made.node_id) is not None
            usable = usable and len(orjson.dumps([*named, made.by, made.node, made.node_id])) <= _EACH
            if usable and made.node_id not in own and (key := origin_key(made.node)) not in own:
                made = replace(made, node_id=made.node_id or key)
                yield decisions.pair_of(first, second), made
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as e:
        raise BadResponse(f"decisions about duplicates that cannot be read: {e!r}"[:300]) from e
