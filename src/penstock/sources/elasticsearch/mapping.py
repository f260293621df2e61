"""A mapping as columns: which field has which Arrow type, and where in a hit its value lies.

Scalars are asked for as `fields`, which Elasticsearch gives in the mapping's type whatever the
document said ("7" in a long is 7, a date in any of its formats one moment). Objects and types
without a scalar come as JSON from the document itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    path: str
    kind: str
    nested_in: str | None = None
    """The nearest nested object above it: its values cannot be told apart outside of that object."""
    also: str | None = None
    """Another type that it has in another index of the pattern."""

    @property
    def arrow(self) -> pa.DataType:
        return _SCALARS.get(self.kind, pa.string())

    @property
    def is_json(self) -> bool:
        return self.kind not in _SCALARS

    @property
    def from_document(self) -> bool:
        """Not among `fields`: it is looked up in `_source`."""
        return self.is_json or self.kind == "binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """`known` are all that can be named, `top` those that `*` means."""

    known: Mapping[str, Field]
    top: tuple[str, ...]

    def named(self, path: str) -> Field:
        if path in META:
            return Field(path=path, kind=path)
        field = self.known.get(path)
        if field is None:
            raise SourceQueryError(f"There is no field {path} in the mapping.")
        if field.nested_in is not None:
            raise SourceQueryError(
                f"Field {path} is inside the nested field {field.nested_in}.",
                hint=f"Select {field.nested_in}: it comes as JSON.",
            )
        if field.also is not None:
            raise SourceQueryError(
                f"Field {path} is {field.kind} in one index and {field.also} in another."
            )
        return field


def read_mappings(answer: Mapping[str, Any]) -> Fields:
    """One view of all indices that a name stood for."""
    known: dict[str, Field] = {}
    top: dict[str, None] = {}
    for index in answer.values():
        properties = {
            **index["mappings"].get("properties", {}),
            **index["mappings"].get("runtime", {}),
        }
        top |= dict.fromkeys(properties)
        for field in _resolved(
            {each.path: each for each in _walk(properties, "", None)}, properties
        ):
            before = known.setdefault(field.path, field)
            if before.arrow != field.arrow or before.is_json != field.is_json:
                known[field.path] = replace(before, also=field.kind)
    return Fields(known=known, top=tuple(top))


def _walk(properties: Mapping[str, Any], prefix: str, nested_in: str | None) -> Iterator[Field]:
    for name, definition in properties.items():
        path, kind = prefix + name, definition.get("type", "object")
        yield Field(path=path, kind=kind, nested_in=nested_in)
        below = path if kind == "nested" else nested_in
        yield from _walk(definition.get("properties", {}), f"{path}.", below)
        yield from _walk(definition.get("fields", {}), f"{path}.", nested_in)


def _resolved(found: dict[str, Field], properties: Mapping[str, Any]) -> Iterator[Field]:
    """An alias has the type of the field that it stands for."""
    targets = dict(_aliases(properties, ""))
    for path, field in found.items():
        target = found.get(targets.get(path, ""))
        yield (
            field
            if target is None
            else replace(field, kind=target.kind, nested_in=target.nested_in)
        )


def _aliases(properties: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, definition in properties.items():
        if definition.get("type") == "alias":
            yield prefix + name, definition["path"]
        yield from _aliases(definition.get("properties", {}), f"{prefix}{name}.")
