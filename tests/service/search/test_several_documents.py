"""A file of several documents gives several hits, also after it was harvested."""

from __future__ import annotations

from indlet.service.records.normalise import resource_key


def test_documents_of_one_file_are_not_one_resource() -> None:
    keys = {
        resource_key(f"oai:a.example:x/trec;{key}", {"identifier": [f"https://a.example/x/trec.sgml#{key}"]})
        for key in ("1", "2")
    }
    assert len(keys) == 2


def test_one_page_at_two_sources_is_one_resource() -> None:
    one = resource_key("oai:a:1", {"identifier": ["https://www.a.example/x/"]})
    assert one == resource_key("oai:b:2", {"identifier": ["http://a.example/x"]})
