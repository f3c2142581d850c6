"""Which records stand for one resource.

Documents whose resource others have too carry it as their `group`; `ambiguous` are those of which a source
has several records, so that they tell no resource. A commit looks at the resources that it touched, and a
search at the marked documents alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from indlet.cluster.opensearch import schema
from indlet.cluster.opensearch.cluster import PAGE, Cluster, Json, hits, pieces

_AT_ONCE: Final = 5_000  # resources


def regroup(cluster: Cluster, data: str, touched: Iterable[int]) -> bool:
    """Marks the documents of resources whose records have changed; tells whether any mark did."""
    changed = False
    for piece in pieces(sorted(touched), _AT_ONCE):
        marked = [
            doc for _, members in _by_resource(cluster, data, piece).items() for doc in _wrong_marks(members)
        ]
        operations = [
            ({"index": {"_id": doc["_id"], "version": doc["_version"], "version_type": "external_gte"}},
             orjson.dumps(schema.again(doc["_source"])))
            for doc in marked
        ]  # fmt: skip
        for some in pieces(operations, 500):
            cluster.bulk(data, some)
        changed = changed or bool(operations)
    return changed


def ambiguous(origins: list[str]) -> bool:
    """What several records of one source share (the address of their repository, say) tells no resource."""
    return len(set(origins)) < len(origins)


def _by_resource(cluster: Cluster, data: str, resources: list[int]) -> dict[int, list[Json]]:
    """Documents that share one of these resources, or did."""
    wanted: Json = {"terms": {"resource": resources}}
    # Exact: each shard returns all buckets, since there are no more of them than resources.
    each = {"terms": {"field": "resource", "size": len(resources), "shard_size": len(resources)}}
    body = {"size": 0, "query": wanted, "aggs": {"each": each}}
    counted = cluster.search(body, f"{data}/_search")["aggregations"]["each"]["buckets"]
    shared = [bucket["key"] for bucket in counted if bucket["doc_count"] > 1]
    filters = [
        wanted,
        {"bool": {"should": [{"terms": {"resource": shared}}, {"exists": {"field": "group"}}]}},
    ]
    found: dict[int, list[Json]] = {}
    for doc in _all(cluster, data, {"bool": {"filter": filters}}):
        found.setdefault(doc["_source"]["resource"], []).append(doc)
    return found


def _all(cluster: Cluster, data: str, query: Json) -> Iterator[Json]:
    body: Json = {"size": PAGE // 10, "query": query, "sort": [{"id": "asc"}], "version": True}
    while True:
        page = hits(cluster.search(body, f"{data}/_search"))
        yield from page
        if len(page) < body["size"]:
            return
        body["search_after"] = page[-1]["sort"]


def _wrong_marks(members: list[Json]) -> Iterator[Json]:
    """The documents of a resource whose marks are not what they should be, with those that should."""
    several = len(members) > 1
    doubtful = several and ambiguous([doc["_source"]["key_origin"][0] for doc in members])
    for doc in members:
        source = doc["_source"]
        if (source.get("group") is not None, bool(source.get("ambiguous"))) != (several, doubtful):
            marks = {"group": source["resource"], "ambiguous": doubtful} if several else {}
            bare = {name: value for name, value in source.items() if name not in ("group", "ambiguous")}
            yield {**doc, "_source": bare | marks}
