"""Convert a page of hits to one record batch.

Elasticsearch has no columnar format over REST, so values are Python objects between the JSON parser
and the typed array, for one page at a time, which bounds the memory.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import orjson
import pyarrow as pa

from penstock.sources.elasticsearch.mapping import DATES, META
from penstock.sources.elasticsearch.query import Column, schema_of
from penstock.sources.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.kit.json_value import JsonObject, JsonValue
    from penstock.sources.elasticsearch.mapping import Field
    from penstock.sources.rest import Document

_ISO = "strict_date_optional_time_nanos"


class Hit(TypedDict, total=False):
    _id: str
    _index: str
    _source: JsonObject
    fields: dict[str, list[JsonValue]]
    sort: list[JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    batch: pa.RecordBatch
    pit: str
    after: list[JsonValue] | None
    timed_out: bool
    shards: Document


class Decoder:
    def __init__(self, columns: list[Column]) -> None:
        self._columns = columns
        self.schema = schema_of(columns)

    def request(self) -> dict[str, object]:
        """The part of a search request that selects the fields for `page`."""
        fields = [column.field for column in self._columns if column.field.kind not in META]
        scalars = [_asked(field) for field in fields if not field.from_document]
        documents = sorted({field.path for field in fields if field.from_document})
        return {"_source": documents or False, "fields": scalars}

    def page(self, answer: Document) -> Page:
        hits: list[Hit] = answer["hits"]["hits"]
        arrays = [self._array(column, hits) for column in self._columns]
        return Page(
            batch=pa.RecordBatch.from_arrays(arrays, schema=self.schema),
            pit=answer.get("pit_id", ""),
            after=hits[-1]["sort"] if hits else None,
            timed_out=answer.get("timed_out", False),
            shards=answer.get("_shards", {}),
        )

    def _array(self, column: Column, hits: list[Hit]) -> pa.Array:
        field = column.field
        values = list(_values(field, hits))
        try:
            if field.kind in DATES:
                return pa.array(values, pa.string()).cast(field.arrow)
            return pa.array(values, field.arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            raise SourceError(
                f"Field {field.path} has a value that is not a {field.kind}.", field=field.path
            ) from None


def _asked(field: Field) -> str | dict[str, str]:
    return {"field": field.path, "format": _ISO} if field.kind in DATES else field.path


def _values(field: Field, hits: list[Hit]) -> Iterator[JsonValue | bytes]:
    if field.kind in META:
        return (hit["_id"] if field.kind == "_id" else hit["_index"] for hit in hits)
    if field.is_json:
        return (_json(_dig(hit.get("_source"), field.path)) for hit in hits)
    if field.kind == "binary":
        return (_bytes(_dig(hit.get("_source"), field.path), field.path) for hit in hits)
    return (_only(hit.get("fields", {}).get(field.path), field.path) for hit in hits)


def _only(values: list[JsonValue] | None, path: str) -> JsonValue:
    """The single value of a `fields` list; more than one does not fit into a column."""
    if not values:
        return None
    if len(values) > 1:
        raise _array_in(path)
    return values[0]


def _json(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _bytes(value: object, path: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _array_in(path)
    try:
        return base64.b64decode(value, validate=False)
    except binascii.Error:
        raise SourceError(f"Field {path} has a value that is not base64.", field=path) from None


def _dig(node: JsonValue, path: str) -> JsonValue:
    """The value at a path; `a.b` may be a nested object or a single name in the document."""
    if isinstance(node, list):
        raise _array_in(path)
    if not isinstance(node, dict):
        return None
    if path in node:
        return node[path]
    for at in (at for at, sign in enumerate(path) if sign == "."):
        if (value := _dig(node.get(path[:at]), path[at + 1 :])) is not None:
            return value
    return None


def _array_in(path: str) -> SourceError:
    return SourceError(
        f"Field {path} has an array in a document; a column has one value per row.",
        hint="Select the enclosing object, which is returned as JSON, or exclude such documents.",
        field=path,
    )
