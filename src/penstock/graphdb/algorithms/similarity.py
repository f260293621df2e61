"""Node similarity by common neighbors: of given pairs, of one node, or the best of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp

from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task
from penstock.graphdb.algorithms.parameters import Parameter
from penstock.kit.errors import InvalidInput
from penstock.kit.json_value import JsonValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graphdb.algorithms.nodes import Floats, Ints
    from penstock.graphdb.algorithms.topology import Matrix
    from penstock.kit.json_value import JsonValue

_PRODUCTS = 20_000_000


@dataclass(frozen=True, slots=True)
class _Measure:
    """`worth` is the weight of a common neighbor by its degree; `scale` normalizes the sum by the
    degrees of the two nodes."""

    worth: Callable[[Floats], Floats]
    scale: Callable[[Floats, Floats, Floats], Floats]


def _run(task: Task, measure: _Measure) -> Outcome:
    simple = task.graph.simple
    degrees = np.diff(simple.indptr).astype(np.float64)
    weighted = sp.diags_array(measure.worth(degrees)).dot(simple).tocsr()
    chosen = _pairs(task)
    if chosen is not None:
        left, right = chosen
        common = np.asarray(simple[left].multiply(weighted.T.tocsr()[right]).sum(axis=1)).ravel()
        scores = measure.scale(common, degrees[left], degrees[right])
        return _outcome(task, left, right, scores)
    rows = [task.node("source_id")] if task.parameters["source_id"] is not None else None
    return _best(task, simple, weighted, degrees, measure, rows)


def _pairs(task: Task) -> tuple[Ints, Ints] | None:
    pairs, source, target = (task.parameters[name] for name in ("pairs", "source_id", "target_id"))
    if target is not None and source is None:
        raise InvalidInput("target_id needs a source_id.", parameter="target_id")
    if isinstance(pairs, list):
        find = task.graph.nodes.find
        indexes = [
            (find(a, "pairs"), find(b, "pairs")) for a, b in cast("list[list[JsonValue]]", pairs)
        ]
    elif target is not None:
        indexes = [(task.node("source_id"), task.node("target_id"))]
    else:
        return None
    ends = np.asarray(indexes, dtype=np.int64)
    return ends[:, 0], ends[:, 1]


def _best(
    task: Task,
    simple: Matrix,
    weighted: Matrix,
    degrees: Floats,
    measure: _Measure,
    rows: list[int] | None,
) -> Outcome:
    """The highest scores of all pairs with a common neighbor, in slices that bound memory."""
    limit, chosen = (
        task.integer("limit"),
        np.arange(task.graph.count) if rows is None else np.asarray(rows),
    )
    best: tuple[Ints, Ints, Floats] = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    work = np.cumsum((simple @ degrees)[chosen])
    start = 0
    while start < len(chosen):
        done = work[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(work, done + _PRODUCTS)))
        common = (simple[chosen[start:stop]] @ weighted).tocoo()
        left, right = chosen[common.row], common.col.astype(np.int64)
        keep = left < right if rows is None else left != right
        left, right = left[keep], right[keep]
        scores = measure.scale(common.data[keep], degrees[left], degrees[right])
        best = _top(
            limit, *(np.concatenate(pair) for pair in zip(best, (left, right, scores), strict=True))
        )
        start = stop
        task.progress(stop / len(chosen))
    return _outcome(task, *best)


def _top(limit: int, left: Ints, right: Ints, scores: Floats) -> tuple[Ints, Ints, Floats]:
    if len(scores) > 4 * limit:
        edge = np.partition(scores, -limit)[-limit]
        left, right, scores = (x[scores >= edge] for x in (left, right, scores))
    order = np.lexsort((right, left, -scores))[:limit]
    return left[order], right[order], scores[order]


def _outcome(task: Task, left: Ints, right: Ints, scores: Floats) -> Outcome:
    ids = task.graph.nodes.ids
    rows = zip(ids(left), ids(right), scores.tolist(), strict=True)
    pairs = [{"source": a, "target": b, "score": s} for a, b, s in rows]
    return Outcome(summary={"pairs": cast("JsonValue", pairs), "pair_count": len(pairs)})


def _counting(degrees: Floats) -> Floats:
    return np.ones_like(degrees)


def _rarity(degrees: Floats) -> Floats:
    """A node of degree 1 is no common neighbor, so its weight does not matter."""
    return 1 / np.log(np.maximum(degrees, 2))


def _ratio(common: Floats, whole: Floats) -> Floats:
    return np.divide(common, whole, out=np.zeros_like(common), where=whole > 0)


_MEASURES = {
    "common_neighbors": _Measure(_counting, lambda common, _a, _b: common),
    "jaccard": _Measure(_counting, lambda common, a, b: _ratio(common, a + b - common)),
    "overlap": _Measure(_counting, lambda common, a, b: _ratio(common, np.minimum(a, b))),
    "adamic_adar": _Measure(_rarity, lambda common, _a, _b: common),
}
_DESCRIPTIONS = {
    "adamic_adar": "The sum of the inverse logarithm of the degree over all common neighbors.",
    "common_neighbors": "The number of common neighbors.",
    "jaccard": "The common neighbors divided by all neighbors of the two.",
    "overlap": "The common neighbors divided by the neighbors of the node that has fewer.",
}
_PARAMETERS = (
    Parameter(
        name="source_id", type="node", description="One node; returns the most similar ones."
    ),
    Parameter(
        name="target_id", type="node", description="With source_id: the score of this pair only."
    ),
    Parameter(name="pairs", type="pairs", description="Pairs of ids to score, in this order."),
    Parameter(
        name="limit",
        type="integer",
        default=100,
        minimum=1,
        maximum=100_000,
        description="Maximum number of pairs returned, best first.",
    ),
)


def _algorithm(name: str) -> Algorithm:
    return Algorithm(
        name=name,
        category="similarity",
        description=_DESCRIPTIONS[name],
        parameters=_PARAMETERS,
        direction="undirected",
        directed=False,
        per_node=False,
        run=lambda task: _run(task, _MEASURES[name]),
    )


ALGORITHMS = tuple(_algorithm(name) for name in sorted(_MEASURES))
