"""The analysis policy that data was harvested under, kept with the data: what a query must be analysed by."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import lru_cache
from typing import Final

from indlet.settings import Analysis
from indlet.store import Meta, Readable, Store
from indlet.text import Policy, policy_of

KEY: Final = "policy"


def remember(store: Store, policy: Policy) -> None:
    """Keep the policy by which records are brought to terms from now on."""
    form = json.dumps(policy.to_json(), sort_keys=True)
    with store.read() as view:
        if view.meta(KEY) == form:
            return
    with store.write() as tx:
        tx.meta(KEY, form)


def kept(store: Readable) -> Policy | None:
    """The policy of the data."""
    with store.read() as view:
        return kept_in(view)


def kept_in(view: Meta) -> Policy | None:
    return _read(view.meta(KEY))


@lru_cache(maxsize=16)
def _read(form: str | None) -> Policy | None:
    """The choices that were made; the rules behind them are this program's own."""
    found = Policy.read(form)
    return found and Policy(**{field.name: getattr(found, field.name) for field in fields(Analysis)})


def policy_for(store: Readable, analysis: Analysis) -> Policy:
    """The settings' policy where they state one; where they leave all as it is, that of the data."""
    return (kept(store) if analysis == Analysis() else None) or policy_of(analysis)
