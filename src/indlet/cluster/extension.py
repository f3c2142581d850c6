"""What the cluster adds: PostgreSQL, OpenSearch, workers and copies of stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from indlet.errors import MissingExtra
from indlet.extension import CommandEntry, Extension

if TYPE_CHECKING:
    from indlet.node.schedule import Job
    from indlet.service.index.protocol import Index
    from indlet.settings import IndexEngine, Settings
    from indlet.store import Clock, Store


def _open_postgresql(
    url: Path | str, *, create: bool, clock: Clock | None, local_folder: Path | None
) -> Store:
    try:
        from indlet.cluster.postgresql.store import PostgresStore
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        raise MissingExtra(f"a store on PostgreSQL (it imports {e.name})", "postgresql") from e
    return PostgresStore.open(url, create=create, clock=clock, local_folder=local_folder)


def _opensearch_index(store: Store, engine: IndexEngine) -> Index:
    try:
        from indlet.cluster.opensearch.index import index_on
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        raise MissingExtra(f"an index on OpenSearch (it imports {e.name})", "opensearch") from e
    return index_on(store, engine)


def _other_jobs(store: Store, settings: Settings) -> Sequence[Job]:
    from indlet.cluster.worker import table

    return table(store, settings)


EXTENSION: Final = Extension(
    name="cluster",
    commands={
        "worker": CommandEntry(
            "indlet.cluster.worker_command", "Do the jobs of a store, beside other workers."
        ),
        "copy": CommandEntry(
            "indlet.cluster.copy_command", "Copy a store, to PostgreSQL for one, and compare both."
        ),
    },
    stores={"postgresql": _open_postgresql, "postgres": _open_postgresql},
    index_engines={"opensearch": _opensearch_index},
    other_jobs=_other_jobs,
)
