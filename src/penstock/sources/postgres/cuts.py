"""Split a table or query into disjoint parts whose union is the whole, whatever the statistics say.

- A table is split by pages (ctid ranges, Tid Range Scan): together the parts read each page once.
- A partitioned table is split by the pages of its partitions, if the user may read them.
- A view, or a partitioned table with unreadable partitions, is split at quantiles of an indexed
  column, from ANALYZE or a sample. Nulls belong to the first part. A view that limits, ranks or
  samples its rows is not split.
- Any other query is split at quantiles of a sample of its rows, if the caller names a key.
- Anything else is one part.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from penstock.sources.errors import SourceQueryError
from penstock.sources.postgres.session import SQL, Session, literal
from penstock.sources.postgres.types import quoted
from penstock.sources.single_table import OneTable, bare, one_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.sources.contract import Limits

_SAMPLED_ROWS = 20_000
_ORDERED = (
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "text",
    "character varying",
    "uuid",
    "date",
    "timestamp without time zone",
    "timestamp with time zone",
)
_UNSTEADY = {
    "Foreign Scan",
    "Function Scan",
    "Limit",
    "Sample Scan",
    "Table Function Scan",
    "Unique",
    "WindowAgg",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    sql: str
    way: str
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heap:
    """A relation whose pages can be read in ranges; without `partition` it is the query's table."""

    pages: int
    rows: float
    partition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Pages [low, high) of one relation; without `high`, all pages from `low`."""

    heap: _Heap
    low: int
    high: int | None


def cut(session: Session, sql: str, names: Sequence[str], limits: Limits) -> Sequence[Part]:
    query = one_table(sql, "postgres")
    parts: Sequence[Part] = ()
    if query is not None and not _aggregates(session, query):
        parts = _of_relation(session, query, names, limits)
    if len(parts) < 2 and limits.key is not None:
        parts = _by_named_key(session, sql, limits.key, limits)
    return parts if len(parts) > 1 else [Part(sql=sql, way="whole")]


def _aggregates(session: Session, query: OneTable) -> bool:
    [(aggregates,)] = (
        session.ask(SQL.functions, names=list(query.functions)) if query.functions else [(False,)]
    )
    return bool(aggregates)


def _of_relation(
    session: Session, query: OneTable, names: Sequence[str], limits: Limits
) -> Sequence[Part]:
    relations = session.ask(SQL.relation, name=query.table)
    if not relations:
        return ()
    [(oid, kind, heap, guarded, rows, pages, page_bytes)] = relations
    if kind in {"r", "m"} and heap:
        return _by_pages(query, names, [_Heap(pages=pages, rows=rows)], page_bytes, limits)
    if kind == "p":
        heaps = [] if guarded else _leaves(session, oid)
        if heaps:
            return _by_pages(query, names, heaps, page_bytes, limits)
    return _by_key(session, query, oid, limits) if kind in {"p", "v"} else ()


def _leaves(session: Session, oid: int) -> Sequence[_Heap]:
    """The partitions; none if one of them is unreadable or not a heap."""
    leaves = session.ask(SQL.leaves, oid=oid)
    if not all(open_ for _, open_, _, _ in leaves):
        return []
    return [_Heap(pages=pages, rows=rows, partition=name) for name, _, rows, pages in leaves]


def _by_pages(
    query: OneTable, names: Sequence[str], heaps: Sequence[_Heap], page_bytes: int, limits: Limits
) -> Sequence[Part]:
    total = sum(heap.pages for heap in heaps)
    rows = None if any(heap.rows < 0 for heap in heaps) else sum(heap.rows for heap in heaps)
    count = limits.count(size=total * page_bytes, rows=rows)
    size = math.ceil(total / count) if count else 0
    groups = [list(group) for group in _spans(heaps, size)] if size else []
    return [
        Part(
            sql="\nUNION ALL\n".join(_select(query, names, span) for span in group),
            way="partitions" if heaps[0].partition else "pages",
            rows=_rows(group),
        )
        for group in groups
    ]


def _spans(heaps: Sequence[_Heap], size: int) -> Iterator[list[_Span]]:
    """Groups of about `size` pages; the last span of a relation is open-ended, because the relation
    may have grown."""
    group: list[_Span] = []
    room = size
    for heap in heaps:
        low = 0
        while heap.pages - low > room:
            yield [*group, _Span(heap=heap, low=low, high=low + room)]
            low, group, room = low + room, [], size
        group.append(_Span(heap=heap, low=low, high=None))
        room -= heap.pages - low
    yield group


def _select(query: OneTable, names: Sequence[str], span: _Span) -> str:
    predicate = f"{query.alias}.ctid >= '({span.low},0)'::tid"
    if span.high is not None:
        predicate += f" AND {query.alias}.ctid < '({span.high},0)'::tid"
    if span.heap.partition is None:
        return query.where(predicate)
    # A partition may have its columns in another order.
    listed = ", ".join(map(quoted, names))
    return (
        f"SELECT {listed} FROM (\n{query.reading(span.heap.partition).where(predicate)}\n) AS part"
    )


def _rows(group: Sequence[_Span]) -> int | None:
    if any(span.heap.rows < 0 for span in group):
        return None
    shares = (
        span.heap.rows * ((span.high or span.heap.pages) - span.low) / span.heap.pages
        for span in group
        if span.heap.pages
    )
    return round(sum(shares))


def _by_key(session: Session, query: OneTable, oid: int, limits: Limits) -> Sequence[Part]:
    size, expected = _estimated(session, query.text)
    count = limits.count(size=size, rows=expected)
    range_keys = session.ask(SQL.range_key, oid=oid, key=limits.key) if count > 1 else []
    if not range_keys:
        return ()
    [(column, kind, schema, table, rows)] = range_keys
    bounds = _histogram(session, schema, table, column) or _sample(
        session, schema, table, column, rows
    )
    key = f"{query.alias}.{quoted(column)}"
    edges = [f"{literal(bound)}::{kind}" for bound in _quantiles(bounds, count)]
    return [Part(sql=query.where(predicate), way="ranges") for predicate in _ranges(key, edges)]


def _by_named_key(session: Session, sql: str, key: str, limits: Limits) -> Sequence[Part]:
    """Split any query by a key; costs an extra read of its rows for a sample."""
    inner = f"(\n{bare(sql, 'postgres')}\n) AS q"
    size, rows = _estimated(session, sql)
    count = limits.count(size=size, rows=rows)
    if count < 2:
        return ()
    column = f"q.{quoted(key)}"
    share = min(1.0, _SAMPLED_ROWS / max(rows, 1))
    [(bounds, kinds)] = session.rows(
        "SELECT bounds::text[], pg_typeof(bounds)::text FROM (SELECT percentile_disc(ARRAY("
        "SELECT i / 100.0 FROM generate_series(0, 100) AS i))"
        f" WITHIN GROUP (ORDER BY {column}) AS bounds"
        f" FROM {inner} WHERE random() < {share:.9f}) AS sample"
    )
    kind = kinds.removesuffix("[]")
    if kind not in _ORDERED:
        raise SourceQueryError(
            f"{key} is a {kind}, which a table cannot be split by.",
            hint=f"Supported: {', '.join(_ORDERED)}.",
        )
    edges = [f"{literal(bound)}::{kind}" for bound in _quantiles(bounds or [], count)]
    return [
        Part(sql=f"SELECT * FROM {inner}\nWHERE {condition}", way="ranges")
        for condition in _ranges(column, edges)
    ]


def _estimated(session: Session, sql: str) -> tuple[float, float]:
    """Estimated bytes and rows; zero if the rows may differ between executions, so that the query
    must not be split."""
    [(text,)] = session.rows(f"EXPLAIN (FORMAT JSON) {sql}")
    top = json.loads(text)[0]["Plan"]
    if _nodes(top) & _UNSTEADY:
        return 0.0, 0.0
    return float(top["Plan Rows"] * max(top["Plan Width"], 1)), float(top["Plan Rows"])


def _nodes(plan: dict[str, Any]) -> set[str]:
    return {plan["Node Type"]}.union(*(_nodes(child) for child in plan.get("Plans", ())))


def _histogram(session: Session, schema: str, table: str, column: str) -> list[str]:
    histograms = session.ask(SQL.histogram, schema=schema, table=table, column=column)
    return histograms[0][0] if histograms else []


def _sample(session: Session, schema: str, table: str, column: str, rows: float) -> list[str]:
    percent = min(100.0, 100 * _SAMPLED_ROWS / max(rows, 1))
    [(edges,)] = session.rows(
        "SELECT (percentile_disc(ARRAY(SELECT i / 100.0 FROM generate_series(0, 100) AS i))"
        f" WITHIN GROUP (ORDER BY {quoted(column)}))::text[]"
        f" FROM {quoted(schema)}.{quoted(table)} TABLESAMPLE SYSTEM ({percent:.6f})"
    )
    return edges or []


def _quantiles(bounds: Sequence[str], count: int) -> Sequence[str]:
    """Up to `count - 1` distinct inner bounds, evenly spaced."""
    places = (round(i * (len(bounds) - 1) / count) for i in range(1, count))
    return list(dict.fromkeys(bounds[place] for place in places)) if bounds else []


def _ranges(key: str, edges: Sequence[str]) -> Iterator[str]:
    if not edges:
        return
    yield f"({key} < {edges[0]} OR {key} IS NULL)"
    for low, high in pairwise(edges):
        yield f"({key} >= {low} AND {key} < {high})"
    yield f"{key} >= {edges[-1]}"
