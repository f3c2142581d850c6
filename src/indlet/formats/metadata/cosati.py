"""cosati: report citations by the field numbers of COSATI, in a profile of our own (docs/formats.md)."""

from __future__ import annotations

from typing import Final

from indlet.formats.crosswalk import standard
from indlet.formats.tagged import text_format

FORMAT: Final = text_format(standard("cosati"), "cosati", "COSATI", "cosati.xsd")
