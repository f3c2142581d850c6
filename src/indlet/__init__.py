"""Search collections that you do not hold: harvest the index, not the content.

    import indlet

    library = indlet.open("indlet-data")
    library.harvest("http://127.0.0.1:8080")
    for hit in library.search("boundary layer"):
        print(hit.score, hit.title)

What is named here is public; anything else may change. Names are imported when they are first used, so that a
provider needs none of what only a service needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indlet._core import VERSION as __version__

if TYPE_CHECKING:
    from pathlib import Path

    from indlet.errors import IndletError as IndletError
    from indlet.model import Record as Record
    from indlet.model import TermVector as TermVector
    from indlet.service.search.library import Library as Library
    from indlet.service.search.results import Comparison as Comparison
    from indlet.service.search.results import Explained as Explained
    from indlet.service.search.results import Hit as Hit
    from indlet.service.search.results import Result as Result
    from indlet.settings import Settings as Settings
    from indlet.store import Store as Store
    from indlet.store import open_store as open_store
    from indlet.text import Analyzer as Analyzer
    from indlet.text import Policy as Policy


_WHERE = {
    "Analyzer": "text",
    "Comparison": "service.search.results",
    "Explained": "service.search.results",
    "Hit": "service.search.results",
    "IndletError": "errors",
    "Library": "service.search.library",
    "Policy": "text",
    "Record": "model",
    "Result": "service.search.results",
    "Settings": "settings",
    "Store": "store",
    "TermVector": "model",
    "open_store": "store",
}

__all__ = ["__version__", "open", *_WHERE]


def open(folder: Path | str = "indlet-data", settings: Settings | None = None) -> Library:
    """The library in a data folder, made if it is not there."""
    try:
        from indlet.service.search.library import Library
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("indlet"):
            raise
        from indlet.errors import MissingExtra

        raise MissingExtra(f"indlet.open (it imports {e.name})", "service") from e
    return Library.open(folder, settings)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'indlet' has no attribute {name!r}")
    return getattr(import_module(f"indlet.{_WHERE[name]}"), name)
