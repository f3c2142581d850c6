"""Requests to the JSON API as people would write them, with the address of this node."""

from __future__ import annotations


def examples(root: str, keyed: bool) -> list[tuple[str, str]]:
    """A search by curl, by Python and in a web page; with a key, where the node gives out some."""
    query = f"{root}/api/search?q=climate+change&limit=3"
    curl = f"curl -H 'X-API-Key: YOUR_KEY' '{query}'" if keyed else f"curl '{query}'"
    given = ', headers={"X-API-Key": "YOUR_KEY"}' if keyed else ""
    sent = ', { headers: { "X-API-Key": "YOUR_KEY" } }' if keyed else ""
    python = f"""\
import json
import urllib.request

request = urllib.request.Request("{query}"{given})
with urllib.request.urlopen(request) as answer:
    found = json.load(answer)
print(found["total"], "records")
for hit in found["hits"]:
    print(hit["title"], hit["url"])"""
    script = f"""\
const answer = await fetch("{query}"{sent});
const {{ total, hits }} = await answer.json();
console.log(total, hits.map((hit) => hit.title));"""
    return [("curl", curl), ("Python", python), ("JavaScript", script)]
