"""The shapes of the API's answers, as JSON Schema (2020-12)."""

from __future__ import annotations

from typing import Final

from indlet.model import JsonObject

_STRING: Final[JsonObject] = {"type": "string"}
_NUMBER: Final[JsonObject] = {"type": "number"}
_COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}
_STRINGS: Final[JsonObject] = {"type": "array", "items": _STRING}
_NUMBERS: Final[JsonObject] = {"type": "object", "additionalProperties": _NUMBER}
_WHEN: Final[JsonObject] = {"type": "string", "format": "date-time"}
_MAYBE_COUNT: Final[JsonObject] = {"type": ["integer", "null"], "minimum": 0}
_MAYBE_WHEN: Final[JsonObject] = {"type": ["string", "null"], "format": "date-time"}


def _object(**properties: JsonObject) -> JsonObject:
    """An object that has all of these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _ref(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


_HIT: Final = {
    "rank": _COUNT,
    "identifier": _STRING,
    "source": _STRING,
    "sources": _STRINGS,
    "score": _NUMBER,
    "url": _STRING,
    "date": _STRING,
    "language": _STRING,
    "sets": _STRINGS,
    "datestamp": _WHEN,
    "length": _COUNT,
    "metadata": {"type": "object", "additionalProperties": _STRINGS},
    "terms": _list(
        _object(
            term=_STRING, field=_STRING, words=_STRINGS, frequency=_COUNT, df=_COUNT,
            share={"type": "number", "minimum": 0, "maximum": 1.000001},
        )
    ),
}  # fmt: skip

_ORIGIN: Final = {
    "name": _STRING,
    "kind": {"enum": ["source", "hierarchy"]},
    "records": _COUNT,
    "deleted": _COUNT,
    "failures": _COUNT,
}

SCHEMAS: Final[JsonObject] = {
    "Hit": _object(**_HIT),
    "Record": _object(
        **_HIT,
        frequencies={"type": "object", "additionalProperties": _COUNT},
        inferred={"type": "object", "additionalProperties": _STRINGS},
    ),
    "Result": _object(
        query=_STRING,
        model=_STRING,
        parameters=_NUMBERS,
        languages=_STRINGS,
        sort=_STRING,
        total=_COUNT,
        total_is_exact={"type": "boolean"},
        offset=_COUNT,
        limit=_COUNT,
        hits=_list(_ref("Hit")),
        facets={
            "type": "object",
            "additionalProperties": _list(
                _object(value=_STRING, count=_COUNT, label=_STRING) | {"required": ["value", "count"]}
            ),
        },
        histogram=_list(_object(year={"type": "integer"}, count=_COUNT)),
        notes=_STRINGS,
        suggestions=_list(_object(word=_STRING, at=_COUNT, instead=_STRINGS)),
        corrected=_STRING,
        took_ms=_NUMBER,
        ahead=_COUNT,
        any_words=_COUNT,
    ),
    "Comparison": _object(
        models=_STRINGS,
        results=_list(_ref("Result")),
        rows=_list(
            _object(
                identifier=_STRING,
                source=_STRING,
                title=_STRING,
                ranks=_list({"type": ["integer", "null"]}),
            )
        ),
        overlap=_list(_list(_NUMBER)),
    ),
    "Explanation": _object(
        identifier=_STRING,
        model=_STRING,
        parameters=_NUMBERS,
        score=_NUMBER,
        matches={"type": "boolean"},
        terms=_list(_ref("Share")),
        missing=_list(_ref("Share")),
        remainder=_NUMBER,
        formula=_STRING,
        length=_COUNT,
        average_length=_NUMBER,
        records=_COUNT,
        tokens=_COUNT,
        norm=_NUMBER,
        all_words={"enum": ["", "all", "some"]},
    ),
    "Share": _object(
        term=_STRING, field=_STRING, words=_STRINGS, frequency=_COUNT, df=_COUNT, cf=_COUNT,
        weight=_NUMBER, contribution=_NUMBER,
    ),
    "Completions": _object(
        q=_STRING,
        completions=_list(
            _object(word=_STRING, query=_STRING, kind={"enum": ["word", "person", "title"]}, records=_COUNT)
        ),
    ),
    "Listing": _object(
        facet=_STRING, values=_list(_object(value=_STRING, label=_STRING, records=_COUNT)),
        previous=_STRING, next=_STRING,
    ),
    "Sources": _object(
        sources=_list(
            {
                "type": "object",
                "properties": {
                    **_ORIGIN,
                    "last_run": {
                        "anyOf": [
                            {"type": "null"},
                            _object(kind=_STRING, started=_WHEN, finished=_MAYBE_WHEN, outcome=_STRING),
                        ]
                    },
                },
                "required": [*_ORIGIN, "last_run"],
            }
        )
    ),
    "Statistics": _object(
        store=_object(
            records=_COUNT, deleted=_COUNT, failures=_COUNT,
            earliest=_MAYBE_WHEN, latest=_MAYBE_WHEN, sources=_list(_object(**_ORIGIN)),
        ),
        index=_object(
            records=_COUNT, terms=_MAYBE_COUNT, postings=_COUNT, length=_COUNT, average_length=_NUMBER,
            fingerprint=_STRING, loss=_STRING,
        ),
    ),
    "Problem": {
        "type": "object",
        "properties": {
            "type": _STRING, "title": _STRING, "status": {"type": "integer"}, "detail": _STRING,
            "query": _STRING, "position": _COUNT,
        },
        "required": ["type", "title", "status", "detail"],
    },
}  # fmt: skip
