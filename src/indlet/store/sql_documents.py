"""What is known of the documents of records, in SQL that SQLite and PostgreSQL both understand.

A record whose document was read has the document's vector; the row here says where the document is and when
to look at it again. Docstrings are those of the contract (contract.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from indlet.model import Packed, Record, TermVector
from indlet.store.content import decode_content, is_encoded
from indlet.store.contract import DocumentCount, DocumentState
from indlet.store.packed import packed_parts
from indlet.store.sql_waiting import SqlValue

Row = tuple[Any, ...]
SCHEMA: Final = (
    "CREATE TABLE documents ("
    "origin {number} NOT NULL REFERENCES origins (id), identifier {text} NOT NULL, state {text} NOT NULL, "
    "reason {text} NOT NULL, note {text} NOT NULL, way {text} NOT NULL, host {text} NOT NULL, "
    "priority {number} NOT NULL, due {number}, attempts {number} NOT NULL, seq {number} NOT NULL, "
    "policy {text} NOT NULL, files {text} NOT NULL, requests {number} NOT NULL, bytes {number} NOT NULL, "
    "at {number} NOT NULL, PRIMARY KEY (origin, identifier))",
    "CREATE INDEX documents_due ON documents (origin, priority, due)",
)
PRIORITIES: Final = 3
_TOGETHER: Final = 400  # identifiers in one question
_FIELDS: Final = ", ".join(DocumentState._fields)
_REPLACED: Final = ", ".join(
    f"{name} = excluded.{name}" for name in DocumentState._fields if name not in ("origin", "identifier")
)


class SqlDocumentsView:
    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]: ...

    def document_states(self, origin: int, identifiers: Sequence[str]) -> dict[str, DocumentState]:
        found: dict[str, DocumentState] = {}
        for start in range(0, len(identifiers), _TOGETHER):
            part = identifiers[start : start + _TOGETHER]
            rows = self._all(
                f"SELECT {_FIELDS} FROM documents WHERE origin = ? "
                f"AND identifier IN ({', '.join('?' * len(part))})",
                [origin, *part],
            )
            found |= {row[1]: DocumentState._make(row) for row in rows}
        return found

    def due_documents(
        self, origin: int, now: int, limit: int, without_hosts: Sequence[str] = ()
    ) -> list[DocumentState]:
        found: list[DocumentState] = []
        others = f" AND host NOT IN ({', '.join('?' * len(without_hosts))})" if without_hosts else ""
        for priority in range(PRIORITIES):
            rows = self._all(
                f"SELECT {_FIELDS} FROM documents WHERE origin = ? AND priority = ? AND due <= ?{others} "
                "ORDER BY due, identifier LIMIT ?",
                [origin, priority, now, *without_hosts, limit - len(found)],
            )
            found += map(DocumentState._make, rows)
            if len(found) >= limit:
                break
        return found

    def next_document_due(self, origin: int) -> int | None:
        found = [
            self._all("SELECT min(due) FROM documents WHERE origin = ? AND priority = ?", (origin, priority))
            for priority in range(PRIORITIES)
        ]
        return min((int(rows[0][0]) for rows in found if rows[0][0] is not None), default=None)

    def document_counts(self, origin: int) -> list[DocumentCount]:
        rows = self._all(
            "SELECT state, reason, way, count(*), sum(requests), sum(bytes) FROM documents WHERE origin = ? "
            "GROUP BY state, reason, way ORDER BY state, reason, way",
            (origin,),
        )
        return [DocumentCount(*row[:3], *map(int, row[3:])) for row in rows]


class SqlDocumentsWriter:
    @abstractmethod
    def _all(self, statement: str, values: Sequence[SqlValue] = ()) -> list[Row]: ...

    @abstractmethod
    def _run(self, statement: str, values: Sequence[SqlValue] = ()) -> None: ...

    @abstractmethod
    def _many(self, statement: str, rows: Sequence[Sequence[SqlValue]]) -> None: ...

    @abstractmethod
    def become_only_writer(self) -> None: ...

    @abstractmethod
    def put(self, origin: int, records: Iterable[Record | Packed]) -> int: ...

    def put_documents(self, documents: Iterable[DocumentState]) -> None:
        marks = ", ".join("?" * len(DocumentState._fields))
        self._many(
            f"INSERT INTO documents ({_FIELDS}) VALUES ({marks}) "
            f"ON CONFLICT (origin, identifier) DO UPDATE SET {_REPLACED}",
            list(documents),
        )

    def drop_documents(self, origin: int, identifiers: Iterable[str] | None = None) -> None:
        if identifiers is None:
            self._run("DELETE FROM documents WHERE origin = ?", (origin,))
            return
        self._many(
            "DELETE FROM documents WHERE origin = ? AND identifier = ?",
            [(origin, identifier) for identifier in identifiers],
        )

    def replace_vectors(self, origin: int, vectors: Mapping[str, TermVector | None]) -> int:
        self.become_only_writer()
        rows = self._in_parts(
            "SELECT identifier, sets, resource, metadata, properties, raw FROM records "
            "WHERE origin = ? AND deleted = 0 AND identifier IN ({})",
            [origin],
            list(vectors),
        )
        return self.put(
            origin,
            [
                packed_parts(identifier, sets.split(), vectors[identifier], resource, *_decoded(*content))
                for identifier, sets, resource, *content in rows
            ],
        )

    def keep_vectors(
        self, origin: int, records: Sequence[Record | Packed], policy: str
    ) -> Sequence[Record | Packed]:
        self.become_only_writer()
        wanted = [record.identifier for record in records if not record.deleted]
        rows = self._in_parts(
            "SELECT r.identifier, r.vector, r.length, r.positions, r.language FROM documents d "
            "JOIN records r ON r.identifier = d.identifier AND r.origin = d.origin "
            "WHERE d.origin = ? AND d.state = 'read' AND d.policy = ? AND r.vector IS NOT NULL "
            "AND d.identifier IN ({})",
            [origin, policy],
            wanted,
        )
        held = {
            identifier: TermVector(
                bytes(vector), length, bytes(places) if places is not None else None, language
            )
            for identifier, vector, length, places, language in rows
        }
        return [_with_vector(record, held[record.identifier]) if record.identifier in held else record
                for record in records]  # fmt: skip

    def _in_parts(self, statement: str, values: Sequence[SqlValue], names: list[str]) -> list[Row]:
        """The rows of all names (identifiers, setSpecs), asked for in parts."""
        found: list[Row] = []
        for start in range(0, len(names), _TOGETHER):
            part = names[start : start + _TOGETHER]
            found += self._all(statement.format(", ".join("?" * len(part))), [*values, *part])
        return found


def _decoded(metadata: bytes, properties: bytes, raw: bytes) -> tuple[bytes, bytes, bytes]:
    if is_encoded(metadata):
        metadata, raw = decode_content(metadata)
    return metadata, properties, raw


def _with_vector(record: Record | Packed, vector: TermVector) -> Record | Packed:
    if record.deleted:
        return record
    if isinstance(record, Record):
        return replace(record, vector=vector)
    return packed_parts(
        record.identifier, record.sets.split(), vector, record.resource, record.metadata, record.properties,
        record.raw,
    )  # fmt: skip
