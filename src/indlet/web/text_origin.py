"""Where the words of a record come from: its document, the index of its source, or its metadata."""

from __future__ import annotations

import json
from typing import NamedTuple

from indlet.model import Stored
from indlet.store import View
from indlet.web.citation import safe_url
from indlet.web.i18n import Strings


class TextOrigin(NamedTuple):
    kind: str  # "document", "index" or "metadata"
    url: str = ""  # of the document
    reason: str = ""  # why there is none, where one was looked for

    def tell(self, t: Strings) -> tuple[str, str]:
        """The origin in words, and a link."""
        if self.kind == "metadata" and self.reason:
            reason = t.known(f"no_document.{self.reason}", self.reason)
            return t("words.metadata_because", reason=reason), ""
        return t(f"words.{self.kind}"), self.url


def text_origin(view: View, stored: Stored) -> TextOrigin:
    """What the store knows of the text of a record."""
    document = view.document_states(stored.origin, [stored.identifier]).get(stored.identifier)
    if document is not None and document.state == "read":
        files = json.loads(document.files)
        url = str(files[0].get("url", "")) if files else ""
        return TextOrigin("document", safe_url(url))
    held = view.by_id([stored.id], parts=("vector",)).get(stored.id)
    if held is not None and held.vector is not None:
        return TextOrigin("index")
    return TextOrigin("metadata", reason=document.reason if document is not None else "")
