"""Compares the columns that a definition declares with those that its query returns.

Names and order must be equal. A type fits when every value of the query's type is a value of the
declared one: narrower types are widened; nothing is rounded, truncated or parsed. All differences
are reported at once, each with its column and a suggestion.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from penstock.graphs.errors import ColumnsDiffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.graphs.snapshots.payloads import Column, Entity

_WIDENED: Mapping[str, tuple[pa.DataType, frozenset[pa.DataType]]] = {
    "BOOL": (pa.bool_(), frozenset()),
    "DATE": (pa.date32(), frozenset({pa.date64()})),
    "DOUBLE": (
        pa.float64(),
        frozenset(
            {pa.float32(), pa.int32(), pa.int16(), pa.int8(), pa.uint32(), pa.uint16(), pa.uint8()}
        ),
    ),
    "FLOAT": (pa.float32(), frozenset({pa.int16(), pa.int8(), pa.uint16(), pa.uint8()})),
    "INT16": (pa.int16(), frozenset({pa.int8(), pa.uint8()})),
    "INT32": (pa.int32(), frozenset({pa.int16(), pa.int8(), pa.uint16(), pa.uint8()})),
    "INT64": (
        pa.int64(),
        frozenset({pa.int32(), pa.int16(), pa.int8(), pa.uint32(), pa.uint16(), pa.uint8()}),
    ),
    "INT8": (pa.int8(), frozenset()),
}
_NULLS: Mapping[str, pa.DataType] = {
    "BLOB": pa.binary(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us"),
    "UUID": pa.string(),
} | {name: exact for name, (exact, _) in _WIDENED.items()}


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_uuid(kind: pa.DataType) -> bool:
    return _is_text(kind) or kind == pa.binary(16) or kind == pa.uuid()


_UNCHANGED: Mapping[str, Callable[[pa.DataType], bool]] = {
    "BLOB": _is_bytes,
    "LIST": _is_list,
    "MAP": types.is_map,
    "STRING": _is_text,
    "STRUCT": types.is_struct,
    "TIMESTAMP": types.is_timestamp,
    "UUID": _is_uuid,
}
TYPES = tuple(sorted({*_WIDENED, *_UNCHANGED}))
_SQL_TYPES = {
    "BLOB": "VARBINARY",
    "BOOL": "BOOLEAN",
    "DOUBLE": "DOUBLE PRECISION",
    "FLOAT": "REAL",
    "INT16": "SMALLINT",
    "INT32": "INTEGER",
    "INT64": "BIGINT",
    "INT8": "TINYINT",
    "STRING": "VARCHAR",
    "UUID": "VARCHAR",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    entity: str
    column: str
    problem: str
    suggestion: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The schema of the exported files; `exact` if the query returns it without casts."""

    schema: pa.Schema
    exact: bool

    def cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.cast(self.schema)


def fit(entity: Entity, declared: Sequence[Column], actual: pa.Schema) -> Fit:
    """How the query's columns become the declared ones; raises `ColumnsDiffer`. Without declared
    columns, all are taken."""
    problems = [
        *_duplicates(entity, actual),
        *_name_problems(entity, [c.name for c in declared] or actual.names, actual.names),
    ]
    if not problems and declared:
        problems = list(_type_problems(entity, declared, actual))
    if problems:
        raise _differ(problems)
    fields = (
        [
            field.with_type(_target(column.type, field.type))
            for column, field in zip(declared, actual, strict=True)
        ]
        if declared
        else list(actual)
    )
    schema = pa.schema(fields)
    return Fit(schema=schema, exact=schema.types == actual.types)


def fits(declared: str, actual: pa.DataType) -> bool:
    """Whether every value of a query's column is one of the declared type."""
    return not types.is_null(actual) and _target(declared, actual) is not None


def _differ(problems: Sequence[Problem]) -> ColumnsDiffer:
    first, *others = problems
    more = f" ({len(others)} more)" if others else ""
    return ColumnsDiffer(
        first.problem + more,
        hint=first.suggestion,
        column=first.column,
        problems=[asdict(problem) for problem in problems[:100]],
    )


def _duplicates(entity: Entity, actual: pa.Schema) -> Iterator[Problem]:
    for name, times in Counter(actual.names).items():
        if times > 1:
            yield Problem(
                entity=str(entity),
                column=name,
                problem=f"The query returns {times} columns named {name!r}.",
                suggestion=f"Give each a unique name: … AS {name}_2.",
            )


def _name_problems(
    entity: Entity, declared: Sequence[str], actual: Sequence[str]
) -> Iterator[Problem]:
    if sorted(declared) == sorted(actual):
        yield from _order_problems(entity, declared, actual)
        return
    for name in declared:
        if name not in actual:
            yield Problem(
                entity=str(entity),
                column=name,
                problem=f"Column {name!r} is declared, but the query does not return it.",
                suggestion=_name_suggestion(name, [n for n in actual if n not in declared]),
            )
    for name in dict.fromkeys(actual):
        if name not in declared:
            yield Problem(
                entity=str(entity),
                column=name,
                problem=f"The query returns a column {name!r}, which is not declared.",
                suggestion="Remove it from the SELECT list, or declare it.",
            )


def _name_suggestion(name: str, others: Sequence[str]) -> str:
    similar = [n for n in others if n.lower() == name.lower()] or get_close_matches(
        name, others, n=1
    )
    if similar:
        return f"Is it {similar[0]!r}? Then write … AS {name}."
    return "Add it to the SELECT list, or remove it from the definition."


def _order_problems(
    entity: Entity, declared: Sequence[str], actual: Sequence[str]
) -> Iterator[Problem]:
    for position, (want, have) in enumerate(zip(declared, actual, strict=True), start=1):
        if want != have:
            yield Problem(
                entity=str(entity),
                column=want,
                problem=f"Column {position} is {have!r} in the query, but declared as {want!r}.",
                suggestion=f"Select the columns in the declared order: {', '.join(declared)}.",
            )
            return


def _type_problems(
    entity: Entity, declared: Sequence[Column], actual: pa.Schema
) -> Iterator[Problem]:
    for column, field in zip(declared, actual, strict=True):
        if column.type is not None and _target(column.type, field.type) is None:
            yield Problem(
                entity=str(entity),
                column=column.name,
                problem=f"Column {column.name!r} is {field.type} at the source,"
                f" which does not fit {column.type}.",
                suggestion=_suggestion(column.name, column.type, field.type),
            )


def _suggestion(name: str, declared: str, actual: pa.DataType) -> str:
    written = _SQL_TYPES.get(declared, declared)
    fitting = [
        type_name
        for type_name in TYPES
        if _target(type_name, actual) is not None and actual != pa.null()
    ]
    declare = f", or declare it {' or '.join(fitting)}" if fitting else ""
    return f"Write CAST({name} AS {written}) AS {name}{declare}."


def _target(declared: str | None, actual: pa.DataType) -> pa.DataType | None:
    """The Arrow type that holds the query's values as the declared type; None if there is none."""
    if declared is None:
        return actual
    if types.is_null(actual):
        return _NULLS.get(declared)
    if declared in _WIDENED:
        exact, narrower = _WIDENED[declared]
        return exact if actual == exact or actual in narrower else None
    return actual if _UNCHANGED[declared](actual) else None
