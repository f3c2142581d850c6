"""The system of record: records, change feed, crawl and harvest state, failures, journal. SQLite in WAL mode.

store = Store.open(path)
with store.write() as tx:          # one transaction: all of it, or none
    tx.put(origin, records)
    tx.state(origin, {...})
with store.read() as view:         # a consistent snapshot
    for stored in view.changes(after=0): ...
"""

from indlet.store.sqlite.read import FileState, OpenFailure, Origin, RunEntry, StoredFailure, View
from indlet.store.sqlite.store import Store
from indlet.store.sqlite.write import Transaction, fingerprint, packed, resource_hash

__all__ = [
    "FileState", "OpenFailure", "Origin", "RunEntry", "Store", "StoredFailure", "Transaction", "View",
    "fingerprint", "packed", "resource_hash",
]  # fmt: skip
