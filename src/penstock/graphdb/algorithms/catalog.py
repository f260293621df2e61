"""The catalog of native algorithms by name, and `run`, which checks weights first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.graphdb.algorithms import (
    centrality,
    community,
    embedding,
    paths,
    ranking,
    similarity,
    structure,
)
from penstock.graphdb.algorithms.errors import AlgorithmNotFound
from penstock.kit.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.graphdb.algorithms.algorithm import Algorithm, Outcome, Task
    from penstock.graphdb.algorithms.topology import Topology

_MODULES = (centrality, community, embedding, paths, ranking, similarity, structure)
_ALL: list[Algorithm] = sorted(
    (a for module in _MODULES for a in module.ALGORITHMS), key=lambda a: a.name
)
CATALOG = {a.name: a for a in _ALL}
CATEGORIES = ("centrality", "community", "pathfinding", "similarity", "embedding", "structure")
_LARGEST_WEIGHT = 1e100


def algorithm(name: str) -> Algorithm:
    if name not in CATALOG:
        raise AlgorithmNotFound(
            f"There is no algorithm {name[:80]!r}.",
            hint="GET /algo/algorithms lists them.",
            algorithm=name[:80],
        )
    return CATALOG[name]


def direction(chosen: Algorithm, requested: bool | None) -> bool:
    """Whether edges are directed; raises if the algorithm does not support the request."""
    if requested is None or chosen.direction == "either":
        return chosen.directed if requested is None else requested
    if requested != chosen.directed:
        raise InvalidInput(
            f"directed must be {str(chosen.directed).lower()}:"
            f" {chosen.name} supports {chosen.direction} graphs only.",
            parameter="directed",
        )
    return requested


def run(chosen: Algorithm, task: Task) -> Outcome:
    _check_weights(chosen, task.graph)
    return chosen.run(task)


def _check_range(graph: Topology) -> None:
    """Products and sums of weights outside this range overflow or lose precision."""
    numbers = graph.sums.data[graph.sums.data > 0]
    if len(numbers) and (numbers.max() > _LARGEST_WEIGHT or numbers.min() < 1 / _LARGEST_WEIGHT):
        raise InvalidInput(
            "weight_property: weights must be 0 or between"
            f" {1 / _LARGEST_WEIGHT:g} and {_LARGEST_WEIGHT:g}.",
            hint="Scale them in the mapping's query.",
            parameter="weight_property",
        )


def _check_weights(chosen: Algorithm, graph: Topology) -> None:
    if not graph.weighted or not graph.sums.nnz:
        return
    least = float((graph.sums if graph.lightest is None else graph.lightest).data.min())
    if least < 0 or (least == 0 and chosen.weights == "positive"):
        bound = "more than 0" if chosen.weights == "positive" else "at least 0"
        raise InvalidInput(
            f"weight_property: {chosen.name} needs weights of {bound};"
            f" the smallest weight is {least:g}.",
            parameter="weight_property",
            range=bound,
        )
    _check_range(graph)
