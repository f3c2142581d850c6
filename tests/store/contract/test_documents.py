"""What is known of documents, and vectors that a harvest must not undo."""

from __future__ import annotations

from dataclasses import replace

from tests.store.contract.given import Clock, record

from indlet.model import Record, TermVector
from indlet.store import DocumentCount, DocumentState, Store, packed

POLICY = "p1"


def state(origin: int, name: str, **fields: object) -> DocumentState:
    plain = DocumentState(
        origin, f"oai:x.org:{name}", "waiting", "", "", "", "a.org", 0, 100, 0, 0, "", "[]", 0, 0, 0
    )
    return plain._replace(**fields)  # type: ignore[arg-type]


def bare(name: str, title: str = "") -> Record:
    return replace(record(name), vector=None, metadata={"title": [title or name]})


def put(store: Store, *names: str) -> int:
    with store.write() as tx:
        origin = tx.origin("source", "s")
        tx.put(origin, [bare(name) for name in names])
    return origin


def test_what_is_due_comes_by_priority_then_by_time(store: Store) -> None:
    origin = put(store)
    with store.write() as tx:
        tx.put_documents([
            state(origin, "old", priority=2, due=1), state(origin, "late", due=90),
            state(origin, "new", due=10), state(origin, "later", due=101), state(origin, "never", due=None),
            state(origin, "elsewhere", due=5, host="b.org"),
        ])  # fmt: skip
    with store.read() as view:
        names = [d.identifier[10:] for d in view.due_documents(origin, 100, 10)]
        assert names == ["elsewhere", "new", "late", "old"]
        assert [d.identifier[10:] for d in view.due_documents(origin, 100, 1, ["b.org"])] == ["new"]
        assert view.next_document_due(origin) == 1
        assert view.next_document_due(origin + 1) is None


def test_documents_are_counted_by_what_became_of_them(store: Store) -> None:
    origin = put(store)
    with store.write() as tx:
        tx.put_documents([
            state(origin, "a", state="read", way="xoai", requests=2, bytes=7),
            state(origin, "b", state="read", way="xoai", requests=3, bytes=1), state(origin, "c"),
        ])  # fmt: skip
        tx.put_documents([state(origin, "c", state="none", reason="login")])
    with store.read() as view:
        assert view.document_counts(origin) == [
            DocumentCount("none", "login", "", 1, 0, 0),
            DocumentCount("read", "", "xoai", 2, 5, 8),
        ]


def test_a_vector_is_replaced_and_the_metadata_keep_their_date(store: Store, clock: Clock) -> None:
    origin = put(store, "a", "b")
    clock.now += 10
    vector = TermVector.of({"wing": 3}, language="en")
    with store.write() as tx:
        assert tx.replace_vectors(origin, {"oai:x.org:a": vector, "oai:x.org:gone": vector}) == 1
        assert tx.replace_vectors(origin, {"oai:x.org:a": vector}) == 0
    with store.read() as view:
        stored = view.get("oai:x.org:a")
        assert stored is not None and stored.record.vector == vector and stored.datestamp == 1_000_010
        plain = view.get("oai:x.org:a", metadata_only=True)
        assert plain is not None and plain.datestamp == 1_000_000


def test_a_harvest_keeps_the_vectors_of_documents(store: Store) -> None:
    origin = put(store, "a", "b", "c")
    vector = TermVector.of({"wing": 3}, language="en")
    with store.write() as tx:
        tx.replace_vectors(origin, {f"oai:x.org:{name}": vector for name in "abc"})
        tx.put_documents([
            state(origin, "a", state="read", policy=POLICY), state(origin, "b", state="read", policy="other"),
            state(origin, "c"),
        ])  # fmt: skip
    with store.write() as tx:
        same = tx.keep_vectors(origin, [bare("a"), packed(bare("a"))], POLICY)
        assert tx.put(origin, same) == 0
    with store.write() as tx:
        assert (
            tx.put(origin, tx.keep_vectors(origin, [bare("a", "another"), bare("b"), bare("c")], POLICY)) == 3
        )
    with store.read() as view:
        found = {name: view.get(f"oai:x.org:{name}") for name in "abc"}
    vectors = {name: stored.record.vector for name, stored in found.items() if stored}
    assert vectors == {"a": vector, "b": None, "c": None}


def test_documents_go_with_their_origin(store: Store) -> None:
    origin = put(store, "a", "b")
    with store.write() as tx:
        tx.put_documents([state(origin, "a"), state(origin, "b")])
        tx.drop_documents(origin, ["oai:x.org:a"])
    with store.read() as view:
        assert list(view.document_states(origin, ["oai:x.org:a", "oai:x.org:b"])) == ["oai:x.org:b"]
    with store.write() as tx:
        tx.forget(origin)
    with store.read() as view:
        assert not view.document_counts(origin)
