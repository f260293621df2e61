"""Chunks by key ranges, for sources whose connections cannot share a snapshot.

Used only if a recipe sets `partition_key`, and if concurrent changes are excluded or detected. The
bounds are quantiles of a sample sorted by the source itself, so skewed and text keys split evenly
and every row is in exactly one range, whatever the source's collation. Nulls go to the first range.
A DuckDB file has one reader, which is parallel.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from penstock.kit.errors import InvalidInput
from penstock.reconcile.staging.consistent_read import pinned, rows, unchanged
from penstock.sources.single_table import bare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.sources.contract import Limits, Plan, Row, Source

DIALECTS = frozenset({"mysql", "trino"})
_SAMPLED_ROWS = 20_000


async def in_ranges(source: Source, sql: str, plan: Plan, limits: Limits) -> Plan:
    """The plan, split by the key of the limits if the source did not split it itself."""
    if (
        limits.key is None
        or limits.chunk_rows is None
        or len(plan.chunks) > 1
        or source.dialect not in DIALECTS
    ):
        return plan
    key = _key(plan.schema, limits.key, source.dialect)
    at_one = await pinned(source, sql)
    inner = f"(\n{bare(at_one or sql, source.dialect)}\n) AS q"
    [(total,)] = await rows(source, f"SELECT COUNT(*) AS n FROM {inner}")
    count = limits.count(size=0, rows=total)
    parts = [] if count < 2 else await _cut(source, inner, key, total, count)
    hold = None if at_one or len(parts) < 2 else await unchanged(source, sql, plan.schema.names)
    if len(parts) < 2 or not (at_one or hold):
        return plan
    [whole] = plan.chunks
    return replace(
        plan, chunks=[replace(whole, number=n, sql=part) for n, part in enumerate(parts)], hold=hold
    )


async def _cut(source: Source, inner: str, key: str, total: int, count: int) -> list[str]:
    quantiles = _quantiles(await _sample(source, inner, key, total), count)
    edges = [_literal(edge).sql(dialect=source.dialect) for edge in quantiles]
    return [f"SELECT * FROM {inner}\nWHERE {condition}" for condition in _ranges(key, edges)]


def _key(schema: pa.Schema, name: str, dialect: str) -> str:
    if name not in schema.names:
        raise InvalidInput(
            f"There is no column {name!r} to split by.",
            hint=f"There are: {', '.join(schema.names[:20])}.",
        )
    kind = schema.field(name).type
    ordered = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_string(kind)
    if not (ordered or pa.types.is_date(kind)):
        raise InvalidInput(
            f"{name} is a {kind}; a table is not cut by it.",
            hint="Name a number, a text or a date.",
        )
    return exp.column(name, "q", quoted=True).sql(dialect=dialect)


async def _sample(source: Source, inner: str, key: str, total: int) -> Row:
    share = min(1.0, _SAMPLED_ROWS / total)
    random = exp.Rand().sql(dialect=source.dialect)
    sampled = (
        f"SELECT {key} AS k FROM {inner}\nWHERE {key} IS NOT NULL"
        f" AND {random} < {share:.9f} ORDER BY k"
    )
    return tuple(value for (value,) in await rows(source, sampled))


def _quantiles(ordered: Row, count: int) -> list[object]:
    """`count - 1` distinct inner bounds."""
    places = (i * len(ordered) // count for i in range(1, count))
    return list(dict.fromkeys(ordered[place] for place in places)) if ordered else []


def _ranges(key: str, edges: Sequence[str]) -> Iterator[str]:
    if not edges:
        return
    yield f"({key} < {edges[0]} OR {key} IS NULL)"
    for low, high in pairwise(edges):
        yield f"({key} >= {low} AND {key} < {high})"
    yield f"{key} >= {edges[-1]}"


def _literal(value: object) -> exp.Expr:
    match value:
        case int():
            return exp.Literal.number(value)
        case Decimal():
            return exp.cast(
                exp.Literal.string(f"{value:f}"),
                f"decimal(38, {max(0, -int(value.as_tuple().exponent))})",
            )
        case str():
            return exp.Literal.string(value)
        case _:
            return exp.cast(exp.Literal.string(str(value)), "date")
