"""What is inferred is marked on the record page and in facets, and is in no export and no feed."""

from __future__ import annotations

from pathlib import Path

from tests.web.nodes import make_client, settings_for

from indlet.model import Record, TermVector
from indlet.service.index import follow
from indlet.settings import IndexEngine, Source
from indlet.store import Store
from indlet.web.export import EXPORTS


def test_inferred_values_are_marked_and_never_the_sources_own(tmp_path: Path) -> None:
    lacking = Record("oai:x.org:lacks", {"title": ["A wing"]}, TermVector.of({"wing": 2, "air": 2}))
    with Store.open(tmp_path) as store:
        engine = IndexEngine(infer=("subject",))
        with store.write() as tx:
            taught = [
                Record(
                    f"oai:x.org:{word}{n}", {"subject": [subject]}, TermVector.of({word: 3, f"{word}{n}": 1})
                )
                for word, subject in (("wing", "Aeronautics"), ("wheat", "Grain"))
                for n in range(10)
            ]
            tx.put(tx.origin("source", "texts", {"republish": True}), [*taught, lacking])
        follow.rebuild(store, engine=engine)
        republished = Source("http://127.0.0.1:9/oai", name="texts", republish=True, paused=True)
        settings = settings_for(tmp_path, index=engine, source=(republished,))
        client = make_client(store, settings)
        page = client.get("/record/oai:x.org:lacks").text
        assert "Subject (inferred)" in page
        assert '<span class="badge">inferred</span> Aeronautics' in page
        assert "the source does not say it" in page
        found = client.get("/?q=*").text
        assert "Subject (inferred)" in found
        assert "inferred_subject=Aeronautics" in found
        told = client.get("/api/record", params={"identifier": "oai:x.org:lacks"}).json()
        assert told["inferred"] == {"subject": ["Aeronautics"]}
        assert "subject" not in told["metadata"]
        for name in EXPORTS:
            export = client.get(f"/export/{name}", params={"id": "oai:x.org:lacks"})
            assert export.status_code == 200 and "Aeronautics" not in export.text
        asked = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x.org:"
        served = client.get(f"/oai?{asked}lacks").text
        assert "A wing" in served and "Aeronautics" not in served
        assert "Aeronautics" in client.get(f"/oai?{asked}wing1").text
