"""Formats that a table describes (`table:NAME`), as metadata formats that are served and harvested."""

from __future__ import annotations

import re
from dataclasses import replace

from indlet.errors import SettingsError
from indlet.exchange.translate import format_named
from indlet.formats.record import MetadataFormat
from indlet.formats.registry import METADATA
from indlet.settings import Settings


def table_formats(settings: Settings) -> dict[str, MetadataFormat]:
    """The tables that the settings name, by metadataPrefix: `table-NAME`, for that may hold no colon."""
    named = [one.format for one in settings.library] + [one.format for one in settings.write]
    found: dict[str, MetadataFormat] = {}
    for name in dict.fromkeys(name for name in named if name.startswith("table:")):
        metadata = format_named(name)
        prefix = re.sub(r"[^A-Za-z0-9._-]", "-", metadata.prefix)
        if prefix in found:
            raise SettingsError(f"{name}: two tables would be served as {prefix}; rename one of them")
        for other in (*METADATA.values(), *found.values()):
            if other.roots & metadata.roots:
                raise SettingsError(
                    f"{name}: its !namespace is that of {other.prefix}; give the table one of its own"
                )
        found[prefix] = replace(metadata, prefix=prefix, schema=f"{prefix}.xsd", served=True)
    return found
