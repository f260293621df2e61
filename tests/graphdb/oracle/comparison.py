"""Compares an engine's rows with those of the reference."""

from __future__ import annotations

import base64
import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from tests.graphdb.oracle.reference import Edge, Node
from tests.graphdb.oracle.syntax import Aggregate, Projection, Variable

if TYPE_CHECKING:
    import networkx as nx

    from tests.graphdb.oracle.reference import Row
    from tests.graphdb.oracle.syntax import Query

TOLERANCE = 1e-9


def plain(value: Any, graph: nx.MultiDiGraph) -> Any:
    """A value of the reference as a client sees it."""
    match value:
        case Node(id=name):
            data = graph.nodes[name]
            properties = {
                k: plain(v, graph) for k, v in data["properties"].items() if v is not None
            }
            return {"_id": name, "_label": data["label"]} | properties
        case Edge():
            properties = next(
                data["properties"]
                for _, _, data in graph.edges(data=True)
                if data["number"] == value.number
            )
            own = {k: plain(v, graph) for k, v in properties.items() if v is not None}
            return {"_type": value.type, "_src": value.start, "_dst": value.end} | own
        case list():
            return [plain(item, graph) for item in value]
    return value


def shaped(value: Any) -> Any:
    """A value of an engine without what cannot be compared: an edge's number, and properties that
    are null."""
    if isinstance(value, dict):
        hidden = {"_id"} if "_type" in value else set()
        return {k: shaped(v) for k, v in value.items() if v is not None and k not in hidden}
    return [shaped(item) for item in value] if isinstance(value, list) else value


def same(
    query: Query, expected: list[Row], actual: list[tuple[Any, ...]], graph: nx.MultiDiGraph
) -> bool:
    """In the same order where the query has one, else in any."""
    bags = {
        i for i, column in enumerate(query.returned.columns) if _is_bag(query, column.expression)
    }
    left = [_row([plain(value, graph) for value in row.values()], bags) for row in expected]
    right = [_row([shaped(value) for value in row], bags) for row in actual]
    if len(left) != len(right):
        return False
    if not query.returned.order:
        left, right = sorted(left, key=_rank), sorted(right, key=_rank)
    return all(equal(one, other) for one, other in zip(left, right, strict=True))


def _row(values: list[Any], bags: set[int]) -> list[Any]:
    return [
        sorted(value, key=_rank) if i in bags and value is not None else value
        for i, value in enumerate(values)
    ]


def _is_bag(query: Query, expression: object) -> bool:
    """What was collected has no order, here or in a clause before."""
    if isinstance(expression, Variable):
        projections = (clause for clause in query.clauses if isinstance(clause, Projection))
        columns = (column for projection in projections for column in projection.columns)
        origins = (column.expression for column in columns if column.name == expression.name)
        expression = next((origin for origin in origins if isinstance(origin, Aggregate)), None)
    return isinstance(expression, Aggregate) and expression.function == "collect"


def _rank(value: Any) -> Any:
    """Some order of values of any type, the same for equal ones."""
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case int() | float():
            # Six digits, for the last ones of a DOUBLE may differ; all of a whole number.
            whole = int(value) if math.isfinite(value) and value == int(value) else 0
            return (2, "nan", 0) if math.isnan(value) else (2, f"{float(value):.6g}", whole)
        case list():
            return (3, tuple(map(_rank, value)))
        case dict():
            return (4, tuple((k, _rank(value[k])) for k in sorted(value)))
    return (5, str(value))


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if isinstance(left, int | float) and isinstance(right, int | float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or math.isclose(left, right, rel_tol=TOLERANCE)
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        return left.replace(tzinfo=None) == right.replace(tzinfo=None)
    if isinstance(left, bytes) and isinstance(right, str):
        # FalkorDB has no bytes and holds them as base64.
        return base64.b64encode(left).decode() == right
    return type(left) is type(right) and left == right
