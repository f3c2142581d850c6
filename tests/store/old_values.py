"""What earlier versions kept in `meta`, a key and a value each, and what becomes of it."""

from __future__ import annotations

import json

from indlet.store import View
from indlet.store import kept_tables as kept

ACT = [1.5, "ada", "admin", "127.0.0.1", "pause", "larc", "done"]
SEARCH = {
    "id": "ab", "email": "a@x.org", "query": "wings", "filters": {"set": ["a"]}, "page": "/",
    "every": "daily", "language": "de", "created": 1.0, "confirmed": True, "sent": 2.0, "seq": 3,
}  # fmt: skip
VALUES: dict[str, int | str | bytes] = {
    "seq": 9,
    "set_names": 2,
    "answered": 77,
    "left-out:1": json.dumps([["a/b.zip", "too large"], ["c", "hidden"]]).encode(),
    "withdrawn:1": json.dumps({"oai:x:1": {"by": "ada", "at": "2026-01-01", "path": "a.txt"}}).encode(),
    "echoes:1": json.dumps({"oai:x:2": "oai:y:2"}).encode(),
    "written:00ff": "oai:y:3",
    "credentials:1": json.dumps(["me", "secret"]),
    "credentials:2": json.dumps(["you", "hidden", "https://x.org"]),
    "public hosts": json.dumps(["x.org", "y.org"]).encode(),
    "desk": json.dumps({"added": {"larc": {"url": "https://x.org"}}, "paused": {"afrl": True}}).encode(),
    "saved-searches": json.dumps([SEARCH]).encode(),
    "desk log": json.dumps([ACT, ACT]).encode(),
    "ended sessions": json.dumps({"s1": 5.5}).encode(),
    "worker jobs": json.dumps({"index": [3.0, "", "w1", "done"], "crawl": [4.0, "no", "w2"]}).encode(),
    "jobs asked for": json.dumps({"harvest x": {"asked": 1.0, "full": True, "only": ["a"]}}).encode(),
    "policy": "{}",
}


def assert_moved(view: View) -> None:
    """Every value has become rows; what is a single value is still one."""
    assert view.meta("policy") == "{}"
    assert not any(view.meta(key) for key in VALUES if key != "policy")
    assert view.select(kept.COUNTERS) == [("seq", 9), ("set_names", 2)]
    assert view.select(kept.ANSWERED) == [("answered", 77)]
    assert view.select(kept.LEFT_OUT) == [(1, 0, "a/b.zip", "too large"), (1, 1, "c", "hidden")]
    assert view.select(kept.WITHDRAWN) == [(1, "oai:x:1", "ada", "2026-01-01", "a.txt")]
    assert view.select(kept.ECHO_CLAIMS) == [(1, "oai:x:2", "oai:y:2")]
    assert view.select(kept.WRITTEN_ECHOES) == [("00ff", "oai:y:3")]
    assert view.select(kept.CREDENTIALS) == [(1, "me", "secret", ""), (2, "you", "hidden", "https://x.org")]
    assert view.select(kept.PUBLIC_HOSTS) == [("x.org",), ("y.org",)]
    added, paused = view.select(kept.SOURCE_DECISIONS)
    assert (added[:2], json.loads(added.detail)) == (("added", "larc"), {"url": "https://x.org"})
    assert paused == ("paused", "afrl", "true")
    (search,) = view.select(kept.SAVED_SEARCHES)
    assert search._asdict() | {"filters": json.loads(search.filters)} == SEARCH
    assert view.select(kept.DESK_LOG) == [(1, *ACT), (2, *ACT)]
    assert view.select(kept.ENDED_SESSIONS) == [("s1", 5.5)]
    assert view.select(kept.JOB_ENDS) == [("crawl", 4.0, "no", "w2", ""), ("index", 3.0, "", "w1", "done")]
    assert view.select(kept.JOB_REQUESTS) == [("harvest x", 1.0, 1, '["a"]')]
