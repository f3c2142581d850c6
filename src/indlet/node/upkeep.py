"""The check of store and index, and the index made anew: what came of it, in words."""

from __future__ import annotations

import threading

from indlet.node.indexing import index_in_child
from indlet.service.index import Searcher
from indlet.settings import Settings
from indlet.store import Store
from indlet.wording import amount


def check(store: Store, searcher: Searcher) -> str:
    """The store's own check, then whether the index holds exactly the store's live records."""
    if problems := store.check():
        return "store: " + "; ".join(problems)
    with store.read() as view:
        live = sum(count for count, _ in view.totals().values())
        newest = view.last_seq()
    if searcher.position < newest:
        return f"store: ok; index: {amount(newest - searcher.position, 'change')} behind, check again later"
    if searcher.collection.documents != live:
        return f"store: ok; index: {amount(searcher.collection.documents, 'record')} for {live:,}: rebuild it"
    return f"store: ok; index: ok, {live} {'record' if live == 1 else 'records'} in both"


def rebuild(store: Store, settings: Settings, stop: threading.Event) -> str:
    progress = index_in_child(store, settings, stop, rebuild=True)
    if progress is None:
        return "stopped; the index is as it was"
    return f"{amount(progress.applied, 'change')} applied; the index stands at {progress.position}"
