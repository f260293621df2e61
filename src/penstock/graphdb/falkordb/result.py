"""Query results of FalkorDB: the client's parsed rows, converted to Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from falkordb import Edge, Node, Path
from falkordb.query_result import QueryResult

from penstock.graphdb.errors import CypherError
from penstock.graphdb.falkordb.values import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from falkordb import Graph as FalkorGraph

    Row: TypeAlias = list[Any]
    """A value for each column: plain values, nodes, edges, paths and lists of them."""
    Answer: TypeAlias = list[Any]
    """The server's raw response: header, rows and statistics; the header is missing where nothing
    is returned."""

_PARSED_AT_ONCE = 1000


class FalkorResult:
    """A `Result` of the server's response, parsed in pieces: parsing takes longer than the
    query."""

    def __init__(
        self,
        answer: Answer,
        graph: FalkorGraph,
        name: Callable[[Node], str],
        names: Callable[[Sequence[int]], dict[int, str]],
        *,
        check: Callable[[], None],
        hidden: Set[str] = frozenset(),
    ) -> None:
        """`name` returns the id of a node, `names` the ids of nodes by the server's internal ids;
        `check` is called between two pieces and may raise to stop parsing. `hidden` columns are
        left out."""
        self._name = name
        header, *rows_and_more = answer
        raw: list[Row] = rows_and_more[0] if len(answer) > 1 else []
        if len(answer) > 1 and any(_header(column[1]) in hidden for column in header):
            shown = [i for i, column in enumerate(header) if _header(column[1]) not in hidden]
            header, raw = [header[i] for i in shown], [[row[i] for i in shown] for row in raw]
        self.columns: tuple[str, ...] = (
            tuple(_header(column[1]) for column in header) if len(answer) > 1 else ()
        )
        self.rows = len(raw)
        rows: list[Row] = []
        for start in range(0, len(raw), _PARSED_AT_ONCE):
            check()
            rows += _parsed(graph, [header, raw[start : start + _PARSED_AT_ONCE], answer[-1]])
        self._names = names(sorted({i for row in rows for value in row for i in _far_ends(value)}))
        columns = [self._column([row[i] for row in rows]) for i in range(len(self.columns))]
        self.types = tuple(kind for kind, _ in columns)
        self._batch = pa.RecordBatch.from_arrays(
            [values for _, values in columns], names=list(self.columns)
        )

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, max(1, self.rows), size):
            yield self._batch.slice(start, size)

    def close(self) -> None:
        """Nothing to do: the server keeps no state for a result."""

    def _column(self, values: list[Any]) -> tuple[str, pa.Array]:
        first = next((value for value in values if value is not None), None)
        match first:
            case Node():
                return "NODE", self._nodes(values)
            case Edge():
                return "REL", self._edges(values)
            case Path():
                return "PATH", self._paths(values)
            case [Node() | Edge(), *_]:
                return self._entity_lists(values)
        return column(values)

    def _nodes(self, values: Sequence[Node | None]) -> pa.Array:
        ids = [None if n is None else self._name(n) for n in values]
        labels = [None if n is None else (n.labels or [""])[0] for n in values]
        return _entities({"_id": ids, "_label": labels}, values)

    def _edges(self, values: Sequence[Edge | None]) -> pa.Array:
        head = {
            "_id": [None if e is None else f"{e.relation}:{e.id}" for e in values],
            "_type": [None if e is None else e.relation for e in values],
            "_src": [None if e is None else self._names.get(e.src_node) for e in values],
            "_dst": [None if e is None else self._names.get(e.dest_node) for e in values],
        }
        return _entities(head, values)

    def _paths(self, values: Sequence[Path | None]) -> pa.Array:
        nodes = self._entity_lists([None if p is None else p.nodes() for p in values])[1]
        edges = self._entity_lists([None if p is None else p.edges() for p in values])[1]
        mask = pa.array([value is None for value in values])
        return pa.StructArray.from_arrays([nodes, edges], names=["_nodes", "_rels"], mask=mask)

    def _entity_lists(self, values: Sequence[Row | None]) -> tuple[str, pa.Array]:
        name, inner = self._column([item for value in values for item in value or ()])
        offsets = pa.array(np.cumsum([0, *(len(value or ()) for value in values)]), pa.int32())
        mask = pa.array([value is None for value in values])
        return f"LIST<{name}>", pa.ListArray.from_arrays(offsets, inner, mask=mask)


def _parsed(graph: FalkorGraph, answer: Answer) -> list[Row]:
    try:
        rows: list[Row] = QueryResult(graph, answer).result_set
    except (ValueError, OverflowError, OSError) as e:
        # The client converts dates, timestamps and durations from seconds since 1970.
        raise CypherError(
            "The result has a date, a timestamp or a duration outside the years 1 to 9999.",
            hint="Return its toString(), or leave it out.",
        ) from e
    return rows


def _entities(
    head: Mapping[str, list[str | None]], values: Sequence[Node | Edge | None]
) -> pa.Array:
    names = list(
        dict.fromkeys(name for value in values if value is not None for name in value.properties)
    )
    fields = {name: pa.array(items, pa.string()) for name, items in head.items()}
    for name in names:
        fields[name] = column(
            [None if value is None else value.properties.get(name) for value in values]
        )[1]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=mask)


def _far_ends(value: object) -> Iterator[int]:
    """The internal ids of nodes that edges refer to."""
    match value:
        case Edge():
            yield from (end for end in (value.src_node, value.dest_node) if isinstance(end, int))
        case Path():
            yield from (end for edge in value.edges() for end in _far_ends(edge))
        case list():
            yield from (end for item in value for end in _far_ends(item))


def _header(header: str | bytes) -> str:
    return header.decode() if isinstance(header, bytes) else header
