"""A query around a query: what its columns are, and the same rows with every moment in UTC.

Trino prints a `timestamp with time zone` with the zone's name, which no exact parser reads, and
ambiguously in the hour that autumn repeats. So the query itself puts moments into UTC and drops the
zone, at any depth. The rows lose the order that the inner query gave them; an export has none to
keep.
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
    """A query of no rows with the same columns; Trino plans it away to nothing."""
    return f"SELECT * FROM (\n{trimmed(sql)}\n) LIMIT 0"


def in_utc(sql: str, columns: Sequence[Column]) -> str:
    """The query with its moments in UTC; itself, when there are none."""
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
