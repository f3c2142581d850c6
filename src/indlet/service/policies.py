"""The analysis policy that data was harvested under, kept with the data: what a query must be analysed by."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Final

from indlet.settings import Analysis
from indlet.store import Store
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


def policy_for(store: Store, analysis: Analysis) -> Policy:
    """The settings' policy where they state one; where they leave all as it is, that of the data."""
    with store.read() as view:
        kept = Policy.read(view.meta(KEY))
    if kept is None or analysis != Analysis():
        return policy_of(analysis)
    # The choices that were made; the rules behind them are this program's own.
    return Policy(**{field.name: getattr(kept, field.name) for field in fields(Analysis)})
