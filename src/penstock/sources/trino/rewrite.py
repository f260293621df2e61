"""Wrap a query: to describe its columns, and to convert timestamps to UTC.

Trino prints a `timestamp with time zone` with the zone's name, which Arrow cannot parse and which
is ambiguous in the repeated hour at the end of daylight saving time. So the query converts such
values to UTC and drops the zone, at any depth. The rows lose the order of the inner query, which
exports do not preserve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.sources.single_table import bare
from penstock.sources.trino.types import ZONED, TrinoType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sources.trino.types import Column


def trimmed(sql: str) -> str:
    return bare(sql, "trino").strip()


def describing(sql: str) -> str:
    """A query with the same columns and no rows; Trino's planner reduces it to nothing."""
    return f"SELECT * FROM (\n{trimmed(sql)}\n) LIMIT 0"


def in_utc(sql: str, columns: Sequence[Column]) -> str:
    """The query with its zoned timestamps in UTC; unchanged if it has none."""
    if not any(column.type.zoned for column in columns):
        return trimmed(sql)
    names = [f"c{number}" for number in range(len(columns))]
    chosen = (f"{_utc(n, c.type)} AS {quoted(c.name)}" for n, c in zip(names, columns, strict=True))
    return f"SELECT {', '.join(chosen)} FROM (\n{trimmed(sql)}\n) AS q({', '.join(names)})"


def quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _utc(value: str, kind: TrinoType, depth: int = 0) -> str:
    if not kind.zoned:
        return value
    k, v = f"k{depth}", f"v{depth}"
    match kind.name:
        case name if name == ZONED:
            return f"CAST({value} AT TIME ZONE 'UTC' AS timestamp({kind.precision}))"
        case "array":
            return f"transform({value}, {v} -> {_utc(v, kind.children[0][1], depth + 1)})"
        case "map":
            (_, key), (_, item) = kind.children
            rekeyed = (
                f"transform_keys({value}, ({k}, {v}) -> {_utc(k, key, depth + 1)})"
                if key.zoned
                else value
            )
            return f"transform_values({rekeyed}, ({k}, {v}) -> {_utc(v, item, depth + 1)})"
        case _:
            fields = (
                _utc(f"{value}[{n}]", child, depth) for n, (_, child) in enumerate(kind.children, 1)
            )
            return f"IF({value} IS NULL, NULL, ROW({', '.join(fields)}))"
