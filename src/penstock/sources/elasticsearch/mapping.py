"""Translate a mapping to columns: the Arrow type of each field, and where a hit has its value.

Scalars are requested as `fields`, which Elasticsearch returns in the mapping's type whatever the
document contains ("7" in a long is 7, a date in any of its formats is one timestamp). Objects and
types without a scalar are read as JSON from the document itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from penstock.sources.errors import SourceQueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

META = ("_id", "_index")
DATES = ("date", "date_nanos")
_TEXT = (
    "constant_keyword",
    "ip",
    "keyword",
    "match_only_text",
    "text",
    "version",
    "wildcard",
    *META,
)
_SCALARS: Mapping[str, pa.DataType] = {
    **dict.fromkeys(_TEXT, pa.string()),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "date": pa.timestamp("ms", tz="UTC"),
    "date_nanos": pa.timestamp("ns", tz="UTC"),
    "double": pa.float64(),
    "float": pa.float32(),
    "half_float": pa.float32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "scaled_float": pa.float64(),
    "short": pa.int16(),
    "unsigned_long": pa.uint64(),
}


class Property(TypedDict, total=False):
    """A field of a mapping as Elasticsearch describes it."""

    type: str
    path: str
    properties: dict[str, Property]
    fields: dict[str, Property]


class _Mappings(TypedDict, total=False):
    properties: dict[str, Property]
    runtime: dict[str, Property]


class IndexMapping(TypedDict):
    mappings: _Mappings


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    path: str
    kind: str
    nested_in: str | None = None
    """The nearest enclosing nested object; outside of it the values are indistinguishable."""
    also: str | None = None
    """A different type of the field in another index of the pattern."""

    @property
    def arrow(self) -> pa.DataType:
        return _SCALARS.get(self.kind, pa.string())

    @property
    def is_json(self) -> bool:
        return self.kind not in _SCALARS

    @property
    def from_document(self) -> bool:
        """Whether the value is read from `_source` instead of `fields`."""
        return self.is_json or self.kind == "binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """All fields by path; `top` are the paths that `*` selects."""

    by_path: Mapping[str, Field]
    top: tuple[str, ...]

    def named(self, path: str) -> Field:
        if path in META:
            return Field(path=path, kind=path)
        field = self.by_path.get(path)
        if field is None:
            raise SourceQueryError(f"There is no field {path} in the mapping.")
        if field.nested_in is not None:
            raise SourceQueryError(
                f"Field {path} is inside the nested field {field.nested_in}.",
                hint=f"Select {field.nested_in}, which is returned as JSON.",
            )
        if field.also is not None:
            raise SourceQueryError(
                f"Field {path} is {field.kind} in one index and {field.also} in another."
            )
        return field


def read_mappings(answer: Mapping[str, IndexMapping]) -> Fields:
    """The merged fields of all indices that a name resolves to."""
    by_path: dict[str, Field] = {}
    top: dict[str, None] = {}
    for index in answer.values():
        properties = {
            **index["mappings"].get("properties", {}),
            **index["mappings"].get("runtime", {}),
        }
        top |= dict.fromkeys(properties)
        for field in _resolved(
            {field.path: field for field in _walk(properties, "", None)}, properties
        ):
            before = by_path.setdefault(field.path, field)
            if before.arrow != field.arrow or before.is_json != field.is_json:
                by_path[field.path] = replace(before, also=field.kind)
    return Fields(by_path=by_path, top=tuple(top))


def _walk(
    properties: Mapping[str, Property], prefix: str, nested_in: str | None
) -> Iterator[Field]:
    for name, definition in properties.items():
        path, kind = prefix + name, definition.get("type", "object")
        yield Field(path=path, kind=kind, nested_in=nested_in)
        below = path if kind == "nested" else nested_in
        yield from _walk(definition.get("properties", {}), f"{path}.", below)
        yield from _walk(definition.get("fields", {}), f"{path}.", nested_in)


def _resolved(fields: dict[str, Field], properties: Mapping[str, Property]) -> Iterator[Field]:
    """The fields, with aliases replaced by the type of their target."""
    targets = dict(_aliases(properties, ""))
    for path, field in fields.items():
        target = fields.get(targets.get(path, ""))
        yield (
            field
            if target is None
            else replace(field, kind=target.kind, nested_in=target.nested_in)
        )


def _aliases(properties: Mapping[str, Property], prefix: str) -> Iterator[tuple[str, str]]:
    for name, definition in properties.items():
        if definition.get("type") == "alias":
            yield prefix + name, definition["path"]
        yield from _aliases(definition.get("properties", {}), f"{prefix}{name}.")
