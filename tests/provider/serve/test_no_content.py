"""Law 5: no content leaves. What is served of a text depends on its words and their frequencies alone."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from indlet.formats.metadata import oai_dc
from indlet.model import Record
from indlet.provider.serve.access import Permit
from indlet.provider.serve.repository import Repository
from indlet.settings import Analysis, Settings
from indlet.store import Store
from indlet.text import Analyzer, policy_of

REQUESTS: list[tuple[bool, dict[str, str]]] = [
    *(
        (False, {"metadataPrefix": p})
        for p in ("oai_dc", "oai_dc_tf", "oai_dc_tf_basic", "oai_dc_tf_boolean")
    ),
    *(
        (True, {"metadataPrefix": "oai_dc", "indexPrefix": p})
        for p in ("tf_basic", "tf_compact", "tf_boolean")
    ),
]
CHOSEN = replace(Settings(), analysis=Analysis(language="en"))
ANALYZER = Analyzer(policy_of(CHOSEN.analysis))


def served(text: str) -> list[bytes]:
    """Every answer about a document of this text."""
    metadata = {"title": ["A title"]}
    record = Record("oai:x.org:a", metadata, ANALYZER.vector(text, "en"), raw=oai_dc.write(metadata))
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), clock=lambda: 1e9) as store:
        with store.write() as tx:
            tx.put(tx.origin("hierarchy", "h"), [record])
        repository = Repository(store, CHOSEN, lambda: 1e9, policy_of(CHOSEN.analysis))
        return [
            repository.answer([("verb", "ListRecords"), *arguments.items()], Permit(), extended).body.data
            for extended, arguments in REQUESTS
        ]


words = st.text("abcdefgxyzäé", min_size=2, max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.lists(words, min_size=1, max_size=12), st.data())
def test_the_order_of_words_stays_at_home(text: list[str], data: Any) -> None:
    shuffled = data.draw(st.permutations(text))
    assert served(" ".join(text)) == served(", ".join(shuffled))
