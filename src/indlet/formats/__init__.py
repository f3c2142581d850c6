"""One file for each metadata or index format; `registry.py` knows them all.

The registry is loaded when it is first asked for: who reads one format only, as a mirror does, need not load
the others and their tables.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indlet.formats.index.terms import IndexFormat
    from indlet.formats.metadata import oai_dc
    from indlet.formats.record import CommonRecord, MetadataFormat
    from indlet.formats.registry import (
        INDEX,
        METADATA,
        common_record,
        format_of,
        in_format,
        pairs,
        root_name,
    )
else:

    def __getattr__(name):
        if name in __all__:
            return getattr(import_module("indlet.formats.registry"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "INDEX",
    "METADATA",
    "CommonRecord",
    "IndexFormat",
    "MetadataFormat",
    "common_record",
    "format_of",
    "in_format",
    "oai_dc",
    "pairs",
    "root_name",
]
