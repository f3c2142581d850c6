"""One file for each metadata or index format, with what writes it and what reads it back.

`INDEX` holds the index formats by prefix, dearest first for a harvester to choose from; `bundle.INSIDE` the
metadata formats that bind oai_dc and an index part. What a reader cannot use raises `BadResponse`.
"""

from indlet.formats import bundle
from indlet.formats.index import tf_basic, tf_boolean, tf_compact, tf_positions
from indlet.formats.index.terms import IndexFormat
from indlet.formats.metadata import oai_dc

INDEX: dict[str, IndexFormat] = {
    f.prefix: f for f in (tf_positions.FORMAT, tf_compact.FORMAT, tf_basic.FORMAT, tf_boolean.FORMAT)
}

__all__ = ["INDEX", "IndexFormat", "bundle", "oai_dc"]
